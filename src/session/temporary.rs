//! Temporary directories for commands that run under a lock, and their removal after the process that owns one was killed.
//!
//! A directory contains an empty file `lock`, on which its owner holds a kernel lock as long as it lives. The file is made
//! first and removed last, so a directory without it is empty. Each directory whose lock no process holds, or that is empty,
//! is abandoned: [`TemporaryDirectory::remove_abandoned`] removes those that it finds. If that was a new one, its owner makes it again.

use super::turn::HeldTurn;
use rustix::process::geteuid;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The beginning of the names.
const PREFIX: &str = "claw-turn.";
/// The file that the owner locks.
const LOCK: &str = "lock";
/// How often a new directory is made again after another process removed it.
const ATTEMPTS: usize = 2000;
/// The pause before a directory is made again that is still being removed.
const PAUSE: Duration = Duration::from_millis(1);

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

    /// Creates the directory `path`, which only this user can read.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn create(path: &Path) -> io::Result<TemporaryDirectory> {
        for attempt in 0..ATTEMPTS {
            let locked = DirBuilder::new()
                .mode(0o700)
                .create(path)
                .and_then(|()| HeldTurn::try_take(&path.join(LOCK)));
            match locked {
                Ok(Some(lock)) => return Ok(TemporaryDirectory { lock }),
                // Another process took the new directory for an abandoned one, and has not removed all of it yet.
                Ok(None) => thread::sleep(PAUSE),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt > 0 => {
                    thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("another process removes it"))
    }

    /// Removes this user's abandoned temporary directories beside this one.
    pub fn remove_abandoned(&self) {
        let own = self.lock.path().parent();
        let user = geteuid().as_raw();
        let entries = own.and_then(Path::parent).map(fs::read_dir);
        for entry in entries.into_iter().flatten().flatten().flatten() {
            let is_candidate = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
                && entry.metadata().is_ok_and(|file| file.is_dir() && file.uid() == user)
                && Some(entry.path().as_path()) != own;
            if is_candidate {
                remove(&entry.path());
            }
        }
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
    if lock.symlink_metadata().is_err() {
        let _ = fs::remove_dir(path);
    } else if let Ok(Some(_held)) = HeldTurn::try_take(&lock) {
        let _ = remove_all(path);
    }
}

/// Removes a directory, and its lock last: if this is interrupted, the directory is still one without an owner.
fn remove_all(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(path.join(LOCK))?;
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn only_abandoned_directories_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let [abandoned, empty, filled, other] =
            ["claw-turn.1", "claw-turn.2", "claw-turn.3", "other"]
                .map(|name| parent.path().join(name));
        for path in [&abandoned, &empty, &filled, &other] {
            fs::create_dir(path).unwrap();
        }
        for path in [&abandoned, &other] {
            fs::write(path.join(LOCK), "").unwrap();
        }
        for path in [&abandoned, &filled] {
            fs::write(path.join("reply"), "{}").unwrap();
        }

        let path = TemporaryDirectory::path_in(parent.path());
        let owned = TemporaryDirectory::create(&path).unwrap();
        owned.remove_abandoned();
        assert_eq!(
            [&abandoned, &empty, &filled, &other, &path].map(|path| path.exists()),
            [false, false, true, true, true]
        );
        drop(owned);
        remove(&path);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_has_its_lock_as_long_as_it_has_anything() {
        let parent = tempfile::tempdir().unwrap();
        let path = TemporaryDirectory::path_in(parent.path());
        drop(TemporaryDirectory::create(&path).unwrap());
        fs::create_dir_all(path.join("a/b")).unwrap();
        for number in 0..2000 {
            fs::write(path.join(format!("file.{number}")), "").unwrap();
        }
        thread::scope(|scope| {
            scope.spawn(|| remove(&path));
            while path.join(LOCK).exists() {}
            // A removal that is killed now leaves a directory that the next one removes.
            assert_eq!(fs::read_dir(&path).map_or(0, Iterator::count), 0);
        });
        assert!(!path.exists());
    }

    #[test]
    fn a_new_directory_that_another_process_removes_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let path = TemporaryDirectory::path_in(parent.path());
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _ = fs::remove_dir(&path);
                    thread::sleep(Duration::from_micros(50));
                }
            });
            for _ in 0..200 {
                let owned = TemporaryDirectory::create(&path);
                let has_lock = path.join(LOCK).exists();
                is_done.store(owned.is_err() || !has_lock, Ordering::Relaxed);
                assert!(owned.is_ok() && has_lock, "{owned:?}");
                drop(owned);
                remove(&path);
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_new_directory_whose_lock_another_process_takes_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let path = TemporaryDirectory::path_in(parent.path());
        let [is_done, is_looking] = [(); 2].map(|()| AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    is_looking.store(true, Ordering::Relaxed);
                    let Ok(file) = fs::File::open(path.join(LOCK)) else { continue };
                    if file.try_lock().is_ok() {
                        is_looking.store(false, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(3));
                        let _ = fs::remove_dir_all(&path);
                    }
                }
            });
            let make = |_| {
                while !is_looking.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                let owned = TemporaryDirectory::create(&path).map(drop);
                while path.exists() {
                    let _ = fs::remove_dir_all(&path);
                }
                owned
            };
            let owned: Vec<_> = (0..200).map(make).collect();
            is_done.store(true, Ordering::Relaxed);
            assert!(owned.iter().all(Result::is_ok), "{owned:?}");
        });
    }
}
