//! An output file that appears under its name only when it is complete.
//!
//! Until then it has no name, so a process that is killed leaves nothing. On a file system that does not support
//! unnamed files, it is written under a temporary name in the same directory. A device, a pipe or an open file cannot be
//! replaced; it is written directly.

use crate::system::{link_unnamed, unnamed_file};
use std::fs::{File, OpenOptions, Permissions, hard_link, remove_file, rename};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a file that only its owner can read.
pub const PRIVATE: u32 = 0o600;
/// The mode of a file that others can read if the umask permits it.
pub const SHARED: u32 = 0o666;

/// A file that is being written. The first error in writing is stored, and [`NewFile::finish`] returns it.
#[derive(Debug)]
pub struct NewFile {
    /// The name before the final one, and the final one; `None` if the file is written directly.
    names: Option<(Temporary, PathBuf)>,
    /// True if the file does not have a name yet.
    is_unnamed: bool,
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
        let temporary = Temporary::beside(path)?;
        let unnamed = unnamed(path, mode).ok();
        let is_unnamed = unnamed.is_some();
        let file = BufWriter::new(unnamed.map_or_else(|| temporary.create(mode), Ok)?);
        let names = Some((temporary, path.to_owned()));
        Ok(NewFile { names, is_unnamed, file, result: Ok(()) })
    }

    /// Returns an output that is written directly to an open file.
    #[must_use]
    pub fn direct(file: File) -> NewFile {
        NewFile { names: None, is_unnamed: false, file: BufWriter::new(file), result: Ok(()) }
    }

    /// Gives the file this mode, whatever the umask is.
    ///
    /// # Errors
    /// Fails if the mode cannot be changed.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.get_ref().set_permissions(Permissions::from_mode(mode))
    }

    /// Completes the file and gives it its name. Unless `may_replace` is true, an existing file of this name is an
    /// error. On a file system without hard links, the existing file is replaced instead, so the caller should check
    /// for one first.
    ///
    /// # Errors
    /// Returns the first error in writing the file, or the error in renaming it.
    pub fn finish(mut self, may_replace: bool) -> io::Result<()> {
        self.flush_all()?;
        if self.names.is_some() {
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
        let Some((temporary, path)) = self.names else { return Ok(()) };
        if self.is_unnamed {
            temporary.link(self.file.get_ref())?;
        }
        match may_replace {
            true => rename(&temporary.0, &path),
            false => match hard_link(&temporary.0, &path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    rename(&temporary.0, &path)
                }
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
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    unnamed_file(directory.unwrap_or(Path::new(".")), mode)
}

/// The temporary name of a file, which is removed on drop if it still exists.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    /// Returns a hidden name in the same directory. A process writes at most one file of each name at a time.
    fn beside(path: &Path) -> io::Result<Temporary> {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        Ok(Temporary(path.with_file_name(format!(".{name}.{}", std::process::id()))))
    }

    fn create(&self, mode: u32) -> io::Result<File> {
        self.remove();
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&self.0)
    }

    /// Gives the name to a file that has none.
    fn link(&self, file: &File) -> io::Result<()> {
        self.remove();
        link_unnamed(file, &self.0)
    }

    /// Removes the file of this name, if there is one. A killed process with the same id may have left it.
    fn remove(&self) {
        let _ = remove_file(&self.0);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.remove();
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
                let named = file.names.as_ref().unwrap().0.create(PRIVATE).unwrap();
                (file.file, file.is_unnamed) = (BufWriter::new(named), false);
            }
            assert!(names() == 1 || !file.is_unnamed);
            file.write_all(b"new").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            file.finish(true).unwrap();
            assert_eq!((std::fs::read(&path).unwrap(), names()), (b"new".to_vec(), 1));
        }
        drop(NewFile::create(&directory.path().join("never"), PRIVATE).unwrap());
        assert_eq!(names(), 1);
    }
}
