//! A file under the kernel's exclusive lock that is still the one its path names.
//!
//! The lock belongs to the open file, not to its name. Whoever waits for it may get it on a file that was
//! removed or replaced meanwhile, and what is written there is lost. So [`locked`] compares the two once it
//! has the lock, and opens the path again if they differ.

use crate::exit::{Error, Exit};
use anyhow::Context;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a file is opened again before it counts as one that cannot be kept.
const MOST_TRIES: usize = 16;

/// Opens the file or folder at `path` and locks it; the lock is released when the file is closed.
///
/// # Errors
/// The error of `open`; 75 when another program held the lock for longer than `timeout` in all; 74 when
/// the path named another file each time.
pub(crate) fn locked(
    path: &Path,
    timeout: Duration,
    mut open: impl FnMut() -> anyhow::Result<File>,
) -> anyhow::Result<File> {
    let begun = Instant::now();
    for _ in 0..MOST_TRIES {
        let file = open()?;
        let cannot = || format!("cannot lock '{}'", path.display());
        lock(&file, begun, timeout).with_context(cannot)?;
        if is_named(&file, path) {
            return Ok(file);
        }
    }
    let text = "it was removed or replaced each time that the lock was there; try again";
    Err(Error::new(Exit::Io, format!("cannot lock '{}': {text}", path.display())).into())
}

/// Returns whether `path` still names this file.
pub(super) fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(named)) => (own.dev(), own.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn lock(file: &File, begun: Instant, timeout: Duration) -> anyhow::Result<()> {
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= timeout => {
                let text =
                    format!("another writer held it for {} s; try again", timeout.as_secs_f64());
                return Err(Error::new(Exit::TryLater, text).into());
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_07_a_path_that_always_names_another_file_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut opened = 0;
        let error = locked(&path, Duration::from_secs(1), || {
            opened += 1;
            let file = File::create(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        });
        let error = error.unwrap_err();
        assert_eq!((crate::exit::status(&error), opened), (Exit::Io, MOST_TRIES));
    }
}
