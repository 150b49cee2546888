//! Temporary directories for commands that run under a lock, and their removal after the process that owns one was killed.
//!
//! A directory contains an empty file `lock`, on which its owner holds a kernel lock as long as it lives. A directory
//! whose lock nobody holds is therefore abandoned, and [`TemporaryDirectory::create`] removes those that it finds.

use super::turn::HeldTurn;
use rustix::process::geteuid;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The beginning of the names.
const PREFIX: &str = "claw-turn.";
/// The file that the owner locks.
const LOCK: &str = "lock";
/// The age at which a directory without a lock file counts as abandoned. A new one has no lock file for a moment.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// A temporary directory that this process owns.
#[derive(Debug)]
pub struct TemporaryDirectory {
    lock: HeldTurn,
}

impl TemporaryDirectory {
    /// Returns a path for a new temporary directory in `parent`.
    #[must_use]
    pub fn path_in(parent: &Path) -> PathBuf {
        let random = RandomState::new().build_hasher().finish();
        parent.join(format!("{PREFIX}{random:016x}"))
    }

    /// Creates the directory `path`, which only this user can read, and removes abandoned directories beside it.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn create(path: &Path) -> io::Result<TemporaryDirectory> {
        if let Some(parent) = path.parent() {
            remove_abandoned(parent);
        }
        DirBuilder::new().mode(0o700).create(path)?;
        let lock = HeldTurn::try_take(&path.join(LOCK))?;
        let lock = lock.ok_or_else(|| io::Error::other("another process has locked it"))?;
        Ok(TemporaryDirectory { lock })
    }

    /// Keeps the directory for the program that this process executes next.
    ///
    /// # Errors
    /// If the descriptor of the lock cannot be changed.
    pub fn leave(self) -> io::Result<()> {
        self.lock.leave()
    }
}

/// Removes a temporary directory if no process owns it.
pub fn remove(path: &Path) {
    let lock = path.join(LOCK);
    let is_abandoned = if lock.symlink_metadata().is_ok() {
        matches!(HeldTurn::try_take(&lock), Ok(Some(_)))
    } else {
        let changed = path.symlink_metadata().and_then(|directory| directory.modified());
        let age = changed.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        age.is_some_and(|age| age > ABANDONED)
    };
    if is_abandoned {
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes this user's abandoned temporary directories.
fn remove_abandoned(parent: &Path) {
    let user = geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.metadata().is_ok_and(|file| file.is_dir() && file.uid() == user);
        if is_ours {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::FileTimes;

    #[test]
    fn only_abandoned_directories_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let [abandoned, fresh, old, other] = ["claw-turn.1", "claw-turn.2", "claw-turn.3", "other"]
            .map(|name| parent.path().join(name));
        for path in [&abandoned, &fresh, &old, &other] {
            fs::create_dir(path).unwrap();
        }
        for path in [&abandoned, &other] {
            fs::write(path.join(LOCK), "").unwrap();
            fs::write(path.join("reply"), "{}").unwrap();
        }
        let yesterday = SystemTime::now() - 2 * ABANDONED;
        let times = FileTimes::new().set_modified(yesterday);
        fs::File::open(&old).unwrap().set_times(times).unwrap();

        let path = TemporaryDirectory::path_in(parent.path());
        let owned = TemporaryDirectory::create(&path).unwrap();
        assert_eq!(
            [&abandoned, &fresh, &old, &other, &path].map(|path| path.exists()),
            [false, true, false, true, true]
        );
        drop(owned);
        remove(&path);
        assert!(!path.exists());
    }
}
