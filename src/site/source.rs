//! The sources of a site: files that are read in passes, an entry at a time.

use super::summary::Collector;
use crate::dialect::{self, Choice};
use crate::input::{self, Input};
use crate::messages::view;
use crate::session::probe::Stamp;
use crate::show::walk::TranscriptWalk;
use crate::show::{ShowNotes, ShowOptions, ShownEntry, ShownPart};
use anyhow::Context;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::rc::Rc;

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

/// A source that is read several times.
pub struct Reading<'r> {
    inputs: &'r [Input],
    view: Rc<view::View>,
    options: &'r SiteOptions,
}

impl<'r> Reading<'r> {
    /// Prepares to read the inputs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn new(inputs: &'r [Input], options: &'r SiteOptions) -> anyhow::Result<Reading<'r>> {
        Ok(Reading { inputs, view: Rc::new(view::whole(inputs)?), options })
    }

    /// Passes each entry to `each`.
    ///
    /// # Errors
    /// If the source cannot be read, or `each` fails.
    pub fn read(
        &self,
        each: &mut dyn FnMut(&ShownEntry) -> io::Result<()>,
    ) -> anyhow::Result<ShowNotes> {
        let show = &self.options.show;
        let mut walk = TranscriptWalk::new(Rc::clone(&self.view), show, ShownPart::default());
        walk.read_all(self.inputs, each)?;
        let ShowNotes { findings, replaced } = walk.notes();
        Ok(ShowNotes { findings: input::with_origins(self.inputs, findings), replaced })
    }

    /// Reads the facts.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn collect(&self) -> anyhow::Result<(Collector, ShowNotes)> {
        let mut collector = Collector::default();
        let notes = self.read(&mut |entry| {
            collector.take(entry);
            Ok(())
        })?;
        Ok((collector, notes))
    }
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
