//! An output file that appears under its name only when it is complete.
//!
//! Until then it has no name, so a process that is killed leaves nothing. If it replaces a file, it has a temporary name in
//! the same directory for a moment. On a file system that does not support unnamed files, it is written under such a name.
//! The process holds a lock on a file with a temporary name. If it is killed, the next process that replaces the file finds
//! the name without a lock and removes it. A device, a pipe or an open file cannot be replaced; it is written directly.

use crate::system::{link_unnamed, unnamed_file};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions, TryLockError, hard_link, remove_file, rename};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The mode of a file that only its owner can read.
pub const PRIVATE: u32 = 0o600;
/// The mode of a file that others can read if the umask permits it.
pub const SHARED: u32 = 0o666;
/// The most temporary names of a file.
const MOST_NAMES: u32 = 1000;

/// A file that is being written. The first error in writing is stored, and [`NewFile::finish`] returns it.
#[derive(Debug)]
pub struct NewFile {
    /// The final name; `None` if the file is written directly.
    path: Option<PathBuf>,
    /// The name until then, if there is one.
    temporary: Option<Temporary>,
    file: BufWriter<File>,
    result: io::Result<()>,
}

impl NewFile {
    /// Creates the file without its name. The program must catch SIGXFSZ first, so that a write past the
    /// file size limit is an error.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn create(path: &Path, mode: u32) -> io::Result<NewFile> {
        path.file_name().ok_or(ErrorKind::IsADirectory)?;
        let (file, temporary) = match unnamed(path, mode) {
            Ok(file) => (file, None),
            Err(_) => Temporary::create(path, mode).map(|(name, file)| (file, Some(name)))?,
        };
        let file = BufWriter::new(file);
        Ok(NewFile { path: Some(path.to_owned()), temporary, file, result: Ok(()) })
    }

    /// Returns an output that is written directly to an open file.
    #[must_use]
    pub fn direct(file: File) -> NewFile {
        NewFile { path: None, temporary: None, file: BufWriter::new(file), result: Ok(()) }
    }

    /// Gives the file this mode, whatever the umask is.
    ///
    /// # Errors
    /// Fails if the mode cannot be changed.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.get_ref().set_permissions(Permissions::from_mode(mode))
    }

    /// Gives the file this time of modification. No data can follow, because writing sets the time again.
    ///
    /// # Errors
    /// Returns the first error in writing the file, or the error in setting the time.
    pub fn set_modified(&mut self, time: SystemTime) -> io::Result<()> {
        self.flush_all()?;
        self.file.get_ref().set_modified(time)
    }

    /// Completes the file and gives it its name. Unless `may_replace` is true, an existing file of this name is an
    /// error. On a file system without hard links, the existing file is replaced instead, so the caller should check
    /// for one first.
    ///
    /// # Errors
    /// Returns the first error in writing the file, or the error in renaming it.
    pub fn finish(mut self, may_replace: bool) -> io::Result<()> {
        self.flush_all()?;
        if self.path.is_some() {
            self.file.get_ref().sync_data()?;
        }
        self.name(may_replace)
    }

    /// Completes one of many files, and gives it its name, which replaces an existing file. The caller makes all of them
    /// durable afterwards.
    ///
    /// # Errors
    /// As [`NewFile::finish`].
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        self.flush_all()?;
        self.name(true)
    }

    fn flush_all(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.result, Ok(()))?;
        self.file.flush()
    }

    fn name(self, may_replace: bool) -> io::Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let temporary = match self.temporary {
            Some(temporary) => temporary,
            None => match link_unnamed(self.file.get_ref(), &path) {
                Err(error) if may_replace && error.kind() == ErrorKind::AlreadyExists => {
                    Temporary::link(&path, self.file.get_ref())?
                }
                linked => return linked,
            },
        };
        match may_replace {
            true => temporary.rename(&path),
            false => match hard_link(&temporary.0, &path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => temporary.rename(&path),
                linked => linked,
            },
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.result.is_ok() {
            self.result = self.file.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a file in the directory of `path` that has no name until it is linked to one.
fn unnamed(path: &Path, mode: u32) -> io::Result<File> {
    unnamed_file(directory_of(path), mode)
}

/// Returns the directory that has a file.
#[must_use]
pub fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// The temporary name of a file, which is removed on drop unless the file was renamed. The name is empty then.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    /// Creates a file with a temporary name.
    fn create(path: &Path, mode: u32) -> io::Result<(Temporary, File)> {
        Temporary::find(path, |name| {
            let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(name)?;
            match file.try_lock() {
                // Another process takes the name for an abandoned one, and removes it.
                Err(TryLockError::WouldBlock) => Err(ErrorKind::AlreadyExists.into()),
                _ if !is_named(&file, name) => Err(ErrorKind::AlreadyExists.into()),
                _ => Ok(file),
            }
        })
    }

    /// Gives a temporary name to a file that has none.
    fn link(path: &Path, file: &File) -> io::Result<Temporary> {
        let _ = file.try_lock();
        Temporary::find(path, |name| link_unnamed(file, name)).map(|(name, ())| name)
    }

    /// Calls `make` with hidden names in the directory of `path`, until one is free.
    fn find<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Temporary, T)> {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        for number in 1..=MOST_NAMES {
            let own = path.with_file_name(format!(".{name}.claw-{number}"));
            let made = match make(&own) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if !remove_abandoned(&own) {
                        continue;
                    }
                    make(&own)
                }
                made => made,
            };
            match made {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|made| (Temporary(own), made)),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its final name. Another process may have the temporary one from then on.
    fn rename(mut self, path: &Path) -> io::Result<()> {
        rename(&self.0, path)?;
        self.0.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = remove_file(&self.0);
        }
    }
}

/// Removes the temporary name that a killed process left. Returns false if a process still uses it.
fn remove_abandoned(name: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(name) else {
        return false;
    };
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    is_file && file.try_lock().is_ok() && is_named(&file, name) && remove_file(name).is_ok()
}

/// Returns true if `name` is a name of this file or directory, not a link to it.
pub(crate) fn is_named(file: &File, name: &Path) -> bool {
    match (file.metadata(), name.symlink_metadata()) {
        (Ok(own), Ok(named)) => (own.dev(), own.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_name_or_a_temporary_one_until_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        let names = || std::fs::read_dir(directory.path()).unwrap().count();
        for is_unnamed in [true, false] {
            std::fs::write(&path, "old").unwrap();
            let mut file = NewFile::create(&path, PRIVATE).unwrap();
            if !is_unnamed {
                // As on a file system that does not support unnamed files.
                let (temporary, named) = Temporary::create(&path, PRIVATE).unwrap();
                (file.file, file.temporary) = (BufWriter::new(named), Some(temporary));
            }
            assert!(names() == 1 || file.temporary.is_some());
            file.write_all(b"new").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            file.finish(true).unwrap();
            assert_eq!((std::fs::read(&path).unwrap(), names()), (b"new".to_vec(), 1));
        }
        drop(NewFile::create(&directory.path().join("never"), PRIVATE).unwrap());
        assert_eq!(names(), 1);
    }

    #[test]
    fn a_temporary_name_that_a_killed_process_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        let names = || {
            let entries = std::fs::read_dir(directory.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let left = directory.path().join(".report.claw-1");
        for is_unnamed in [true, false] {
            std::fs::write(&path, "old").unwrap();
            std::fs::write(&left, "from a killed process").unwrap();
            let mut file = NewFile::create(&path, PRIVATE).unwrap();
            if !is_unnamed {
                let (temporary, named) = Temporary::create(&path, PRIVATE).unwrap();
                (file.file, file.temporary) = (BufWriter::new(named), Some(temporary));
            }
            file.write_all(b"new").unwrap();
            file.finish(true).unwrap();
            assert_eq!(
                (std::fs::read(&path).unwrap(), names()),
                (b"new".to_vec(), vec!["report".into()])
            );
        }

        // That of a process that lives stays.
        let other = File::create(&left).unwrap();
        other.lock().unwrap();
        NewFile::create(&path, PRIVATE).unwrap().finish(true).unwrap();
        assert_eq!(names(), [".report.claw-1", "report"]);
    }

    #[test]
    fn processes_that_replace_a_file_at_once_do_not_remove_each_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        std::fs::write(&path, "old").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        NewFile::create(&path, PRIVATE).unwrap().finish_unsynced().unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_replaces_none_has_no_temporary_name() {
        let directory = tempfile::tempdir().unwrap();
        if unnamed_file(directory.path(), PRIVATE).is_err() {
            return;
        }
        // There is no longer name, so there is none for a moment, either.
        let path = directory.path().join("n".repeat(255));
        for may_replace in [true, false] {
            NewFile::create(&path, PRIVATE).unwrap().finish(may_replace).unwrap();
            let again = NewFile::create(&path, PRIVATE).unwrap().finish(false);
            assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
            remove_file(&path).unwrap();
        }
    }
}
