//! Shows a transcript as it grows.

use super::text::TextWriter;
use super::walk::TranscriptWalk;
use super::{ShowNotes, ShowOptions, ShownEntry, ShownPart};
use crate::dialect::looks;
use crate::exit::{Exit, fail};
use crate::input::Input;
use crate::messages::view;
use anyhow::Context;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::slice;

/// A file that is shown as it grows. A line is shown when it is complete. If the file is truncated or replaced, it is
/// shown again from the start, with the same limit on turns.
pub struct Follow<'o, W> {
    path: PathBuf,
    name: String,
    options: &'o ShowOptions,
    file: File,
    walk: TranscriptWalk<'o>,
    text: TextWriter<'o, W>,
    /// The offset of the next line.
    at: u64,
    /// The offset up to which the file has been searched for line feeds.
    seen: u64,
}

/// The result of checking the file for new lines.
#[derive(Debug)]
pub enum FollowEvent {
    /// New lines were shown.
    Read(ShowNotes),
    /// The file was replaced or truncated. The next step shows its new content. Holds a message for the user.
    Restarted(String),
    /// The file has no new lines.
    Nothing,
}

impl<'o, W: Write> Follow<'o, W> {
    /// Opens the file. Its lines will be written to `out`.
    ///
    /// # Errors
    /// 74 or 77 if it cannot be read, 2 if it is not a regular file, 65 if it is not a transcript.
    pub fn open(path: &Path, options: &'o ShowOptions, out: W) -> anyhow::Result<Follow<'o, W>> {
        let name = path.display().to_string();
        let (file, at, walk) = begin(path, &name, options)?;
        let text = TextWriter::new(options, out);
        Ok(Follow { path: path.to_owned(), name, options, file, walk, text, at, seen: at })
    }

    /// Shows the new lines.
    ///
    /// # Errors
    /// 74 or 77 if the file cannot be read, 141 if the reader of the output has closed it, 65 if the
    /// file turns out to be in another dialect or, after it was replaced, not to be a transcript.
    pub fn step(&mut self) -> anyhow::Result<FollowEvent> {
        let cannot = || format!("cannot read '{}'", self.name);
        let input = self.file.try_clone().and_then(|file| Input::file(&self.name, file));
        let input = input.with_context(cannot)?;
        if input.length < self.at {
            return self.restart("was truncated");
        }
        if let Some(end) = input.last_line_end(self.seen, input.length)? {
            let mut show = |entry: &ShownEntry| self.text.show(entry);
            self.walk.read(slice::from_ref(&input), self.at..end, &mut show)?;
            self.text.flush().context("cannot write '<stdout>'")?;
            (self.at, self.seen) = (end, end);
            return Ok(FollowEvent::Read(self.walk.notes(slice::from_ref(&input))));
        }
        self.seen = input.length;
        let own = self.file.metadata().with_context(cannot)?;
        // A file that was removed is not an error: it may be created again.
        match self.path.metadata() {
            Ok(other) if (other.dev(), other.ino()) != (own.dev(), own.ino()) => {
                self.restart("was replaced")
            }
            _ => Ok(FollowEvent::Nothing),
        }
    }

    fn restart(&mut self, why: &str) -> anyhow::Result<FollowEvent> {
        let (file, at, walk) = begin(&self.path, &self.name, self.options)?;
        (self.file, self.at, self.seen, self.walk) = (file, at, at, walk);
        self.text.restart();
        Ok(FollowEvent::Restarted(format!("'{}' {why}; starting over", self.name)))
    }
}

/// Opens a file, and finds the offset where reading begins.
fn begin<'o>(
    path: &Path,
    name: &str,
    options: &'o ShowOptions,
) -> anyhow::Result<(File, u64, TranscriptWalk<'o>)> {
    let cannot = || format!("cannot read '{name}'");
    let file = File::open(path).with_context(cannot)?;
    if !file.metadata().with_context(cannot)?.is_file() {
        return fail(Exit::Usage, format!("cannot follow '{name}': not a regular file"));
    }
    let input = file.try_clone().and_then(|file| Input::file(name, file)).with_context(cannot)?;
    looks::require_records(&input)?;
    let inputs = [input];
    let start = ShownPart::find(&inputs, options.limit_turns)?;
    let walk = TranscriptWalk::new(Rc::new(view::whole(&inputs)?), options, start);
    Ok((file, start.offset, walk))
}
