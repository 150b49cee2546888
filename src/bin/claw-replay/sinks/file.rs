//! A file that a sink writes.

use anyhow::Context;
use clawutils::cli::output_file;
use clawutils::new_file::{NewFile, SHARED};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that replaces an older one when it is complete. Its mode depends on the umask, because other programs of a CI
/// system must be able to read it.
pub struct ReportFile {
    path: PathBuf,
    file: NewFile,
}

impl ReportFile {
    /// Creates the file.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be created, and with 65 if it would replace a transcript.
    pub fn create(path: &Path) -> anyhow::Result<ReportFile> {
        output_file::refuse_transcript(path)?;
        let file = output_file::create(path, SHARED).with_context(|| cannot(path))?;
        Ok(ReportFile { path: path.to_owned(), file })
    }

    /// Completes the file and replaces the old one.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        self.file.finish(true).with_context(|| cannot(&self.path))
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot write '{}'", path.display())
}

/// Writing never fails. If there is an error, [`ReportFile::finish`] returns it.
impl Write for ReportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
