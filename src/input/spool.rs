//! A text that is written once and then read as an input: in memory while it is short, else in a temporary file.

use crate::input::Input;
use crate::input::origin::Origin;
use anyhow::Context;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// The length in bytes up to which the text is kept in memory.
const MAX_IN_MEMORY: usize = 8 * 1024 * 1024;
/// The number of bytes written to the file at once.
const PART: usize = 256 * 1024;

/// A text that is being written.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    buffer: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Spool {
    /// Creates an empty text. A long one goes to an unnamed file in `directory`, which only its owner can read and
    /// which disappears with the process.
    #[must_use]
    pub fn new(directory: PathBuf) -> Spool {
        Spool { directory, buffer: Vec::new(), file: None, length: 0 }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be created or written.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        let most = if self.file.is_some() { PART } else { MAX_IN_MEMORY };
        if self.buffer.len() < most { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let cannot = || {
            let directory = self.directory.display();
            format!(
                "cannot write a temporary file in '{directory}'; set TMPDIR to another directory"
            )
        };
        if self.file.is_none() {
            self.file = Some(unnamed(&self.directory).with_context(cannot)?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer).with_context(cannot)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Returns the text as the input `name`.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be written or read.
    pub fn finish(mut self, name: &str, origin: Origin) -> anyhow::Result<Input> {
        if self.file.is_some() {
            self.flush()?;
        }
        let input = match self.file {
            Some(file) => Input::file(name, file)?,
            None => Input::memory(name, self.buffer),
        };
        Ok(input.with_origin(origin))
    }
}

/// Creates a file without a name. On file systems that do not support this, creates a file and removes its name at
/// once.
fn unnamed(directory: &PathBuf) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(File::from(file)),
        Err(_) => {
            let name = format!(".clawutils.{}.{:p}", std::process::id(), directory);
            let path = directory.join(name);
            let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            std::fs::remove_file(&path)?;
            Ok(File::from(file))
        }
    }
}
