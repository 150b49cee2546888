//! Text that is written once and then read as an input: in memory while it is short, else in a temporary file.

use crate::input::Input;
use crate::system::unnamed_file;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The length in bytes up to which the text is kept in memory.
const MAX_IN_MEMORY: usize = 8 * 1024 * 1024;
/// The number of bytes written to the file at once.
const PART: usize = 256 * 1024;

/// The mode of the file: only its owner can read it.
const PRIVATE: u32 = 0o600;

/// Text that is being written.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    /// The end of the text, which is not in the file yet.
    end: String,
    file: Option<File>,
    /// The length of the text in the file.
    written: u64,
    /// The error that ended writing to the file.
    error: Option<io::Error>,
}

impl Spool {
    /// Creates an empty text. A long one goes to an unnamed file in `directory`, which only its owner can read and
    /// which disappears with the process.
    #[must_use]
    pub fn new(directory: PathBuf) -> Spool {
        Spool { directory, end: String::new(), file: None, written: 0, error: None }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.written + self.end.len() as u64
    }

    /// Returns the end of the text, to append to it.
    pub fn end(&mut self) -> &mut String {
        &mut self.end
    }

    /// Moves the end of the text to the file if it has become too long for memory. [`Spool::finish`] returns the error
    /// if that fails.
    pub fn settle(&mut self) {
        let is_in_file = self.file.is_some() || self.error.is_some();
        if self.end.len() >= if is_in_file { PART } else { MAX_IN_MEMORY } {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.written += self.end.len() as u64;
        if self.error.is_none() {
            self.error = self.write().err();
        }
        self.end.clear();
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unnamed(&self.directory)?),
        };
        file.write_all(self.end.as_bytes())
    }

    /// Returns the text as the input `name`.
    ///
    /// # Errors
    /// Fails if the temporary file could not be created, written or read.
    pub fn finish(mut self, name: &str) -> anyhow::Result<Input> {
        if self.file.is_some() {
            self.flush();
        }
        let directory = self.directory.display();
        let cannot = || {
            format!(
                "cannot write a temporary file in '{directory}'; set TMPDIR to another directory"
            )
        };
        match (self.error, self.file) {
            (Some(error), _) => Err(error).with_context(cannot),
            (None, Some(file)) => Input::file(name, file).with_context(cannot),
            (None, None) => Ok(Input::memory(name, self.end.into_bytes())),
        }
    }
}

/// Creates a file without a name, which disappears with the process. If that fails, creates a file with a name and removes the
/// name at once.
///
/// # Errors
/// Fails if neither can be done.
pub fn unnamed(directory: &Path) -> io::Result<File> {
    unnamed_file(directory, PRIVATE).or_else(|_| {
        let path = directory.join(format!(".clawutils.{}.{directory:p}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(PRIVATE).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(directory: PathBuf) -> anyhow::Result<Input> {
        let mut spool = Spool::new(directory);
        for _ in 0..MAX_IN_MEMORY / PART + 2 {
            spool.end().push_str(&["\"", &"x".repeat(PART), "\""].concat());
            spool.settle();
        }
        assert_eq!(spool.length(), (MAX_IN_MEMORY / PART + 2) as u64 * (PART as u64 + 2));
        spool.finish("t")
    }

    #[test]
    fn a_long_text_goes_to_a_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let input = spool(directory.path().to_owned()).unwrap();
        assert!(input.in_memory().is_none());
        assert_eq!(*input.part(PART as u64, PART as u64 + 4).unwrap(), *b"x\"\"x");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let error = spool(directory.path().join("none")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("cannot write a temporary file in '"), "{text}");
        assert!(text.contains("; set TMPDIR to another directory: No such file"), "{text}");
    }
}
