//! The sources of a site: files that are read in passes, an entry at a time.

use crate::dialect::{self, Choice};
use crate::input::Input;
use crate::session::probe::Stamp;
use crate::show::ShowOptions;
use anyhow::Context;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The options of a site.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// How sessions are shown.
    pub show: ShowOptions,
    /// How transcripts of other programs are read.
    pub choice: Choice,
    /// A digest of the options, so that a change of them makes all pages anew.
    pub digest: String,
    /// True if all that was asked for could be found, so that sessions that are missing are gone.
    pub is_whole: bool,
}

/// A file that may be a transcript.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path, without symbolic links.
    pub path: PathBuf,
    /// Its state.
    pub stamp: Stamp,
    /// True if the user named the file; false if it was found in a directory and need not be a transcript.
    pub is_given: bool,
}

/// Opens a source.
///
/// # Errors
/// If it cannot be read; 65 if it is not a transcript.
pub fn open(source: &Source, options: &SiteOptions) -> anyhow::Result<Input> {
    let path = &source.path;
    let name = path.display().to_string();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let input = file.and_then(|file| Input::file(&name, file));
    dialect::open(input.with_context(|| format!("cannot read '{name}'"))?, &options.choice)
}
