//! A transcript that is open for reading.

use anyhow::Context;
use clawutils::cli::DialectArgs;
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    name: String,
    /// Its size, times and mode.
    pub meta: Metadata,
    path: PathBuf,
    file: File,
}

impl OpenFile {
    /// Opens a file. Does not wait for the writer of a named pipe.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be opened, and with 65 if it is not a regular file.
    pub fn open(path: &Path) -> anyhow::Result<OpenFile> {
        let name = path.display().to_string();
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let with_meta = opened.and_then(|file| Ok((file.metadata()?, file)));
        let (meta, file) = with_meta.with_context(|| format!("cannot read '{name}'"))?;
        if !meta.is_file() {
            let advice = "give a file, or check other input with claw-check";
            return fail(Exit::Data, format!("cannot read '{name}': not a regular file; {advice}"));
        }
        Ok(OpenFile { name, meta, path: path.to_owned(), file })
    }

    /// Returns the file as a transcript.
    ///
    /// # Errors
    /// Fails with 74 if it cannot be read, and with 65 if it is not empty and contains no record.
    pub fn into_transcript(self) -> anyhow::Result<Transcript> {
        let OpenFile { name, path, file, .. } = self;
        let input = Input::file(&name, file).with_context(|| format!("cannot read '{name}'"))?;
        Ok(Transcript { input: DialectArgs::default().open(input)?, name, path })
    }
}

/// A transcript that is open for reading.
#[derive(Debug)]
pub struct Transcript {
    /// Its path as text.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Its records.
    pub input: Input,
}
