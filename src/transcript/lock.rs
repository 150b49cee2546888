//! Exclusive locks on the file that a path names.
//!
//! The kernel locks the open file, not its name. While a program waits for the lock, another program may remove or
//! replace the file, and records written to the old file would be lost. So once [`locked`] has the lock, it checks that
//! the path still names the file, and if not, opens the path again.

use crate::exit::{Error, Exit};
use anyhow::Context;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of times that a file is opened before the program gives up.
const MAX_TRIES: usize = 16;

/// Opens the file or directory at `path` and locks it; the lock is released when the file is closed.
///
/// # Errors
/// Fails with the error of `open`, with 75 if another program held the lock until `timeout`, and with 74 if the path
/// named another file after every try.
pub(crate) fn locked(
    path: &Path,
    timeout: Duration,
    mut open: impl FnMut() -> anyhow::Result<File>,
) -> anyhow::Result<File> {
    let begun = Instant::now();
    for _ in 0..MAX_TRIES {
        let file = open()?;
        let cannot = || format!("cannot lock '{}'", path.display());
        lock(&file, begun, timeout).with_context(cannot)?;
        if is_named(&file, path) {
            return Ok(file);
        }
    }
    let text = "it was removed or replaced again and again while it was being locked; try again";
    Err(Error::new(Exit::Io, format!("cannot lock '{}': {text}", path.display())).into())
}

/// Returns true if `path` still names this file.
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
    fn audit_07_locking_fails_if_the_path_names_another_file_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut opened = 0;
        let error = locked(&path, Duration::from_secs(1), || {
            opened += 1;
            let file = File::create(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        });
        let error = error.unwrap_err();
        assert_eq!((crate::exit::status(&error), opened), (Exit::Io, MAX_TRIES));
    }
}
