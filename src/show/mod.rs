//! Show: a transcript for a person, as text, Markdown or HTML.
//!
//! [`walk`] reads records in the order of the file and makes [`Entry`]s of them, the same for every format; what a
//! compaction covers is shown like all else, and view records are lines at their place. [`text`], [`markdown`] and
//! [`html`] write an entry at a time, so memory follows the longest record and not the transcript. `words`
//! holds what all formats say in the same words.
//!
//! No text of a transcript reaches the output raw: control characters and direction controls are shown
//! escaped, and each format has its own way to keep text from being taken for its structure.

pub mod chart;
mod code;
mod edit;
mod emphasis;
pub mod follow;
pub mod html;
mod inline;
mod facts;
mod language;
pub mod markdown;
mod plot;
pub mod render;
pub mod stream;
mod table;
pub mod text;
pub mod walk;
mod words;
mod wrap;

use crate::finding::Finding;
use crate::input::{self, Input};
use crate::messages::{range, view};
use crate::record::checkpoint::Checkpoint;
use crate::record::compaction::Summary;
use crate::record::content::Role;
use crate::record::truncation::KeptSpan;
use crate::redact::Patterns;
use crate::usage::{Counts, Table};
use anyhow::Context;
use jiff::tz::TimeZone;
use std::io::{self, Write};
use std::rc::Rc;
use walk::Walk;

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a terminal
    #[default]
    Text,
    /// For a repository, an issue or a chat
    Markdown,
    /// One file for a browser
    Html,
}

/// Choices of the caller.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fold nothing.
    pub full: bool,
    /// Only the last turns, this many.
    pub limit_turns: Option<u64>,
    /// What is taken out before anything is shown.
    pub redact: Option<Patterns>,
    /// What tokens cost.
    pub prices: Option<Table>,
    /// The zone of the times that are shown.
    pub zone: TimeZone,
    /// The columns of a line of text.
    pub width: usize,
    /// Colours in text.
    pub color: bool,
}

impl Default for Options {
    /// Everything, folded, without colours, 80 columns wide, in UTC.
    fn default() -> Options {
        Options {
            full: false,
            limit_turns: None,
            redact: None,
            prices: None,
            zone: TimeZone::UTC,
            width: 80,
            color: false,
        }
    }
}

/// What is shown in one place: a piece of a record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The id of its record.
    pub id: String,
    /// The time of its record, in microseconds since 1970.
    pub time: Option<i64>,
    /// The record was taken back.
    pub taken_back: bool,
    /// The record is pinned.
    pub pinned: bool,
    /// What it is.
    pub what: What,
}

/// What an entry is.
#[derive(Clone, Debug)]
pub enum What {
    /// The header of a session.
    Session(Session),
    /// A turn begins, counted from 1.
    Turn(u64),
    /// The model begins to speak.
    Reply(Reply),
    /// Words.
    Said {
        /// Whose.
        role: Role,
        /// The words.
        text: String,
    },
    /// What the model thought.
    Thinking(String),
    /// A call.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// Its input, as JSON.
        input: String,
        /// Its result stands before it.
        is_answered: bool,
    },
    /// The result of a call.
    Result(Outcome),
    /// An image or a document.
    Media {
        /// Whose.
        role: Role,
        /// What it is.
        media: Media,
    },
    /// A block of another kind.
    Other {
        /// Whose.
        role: Role,
        /// Its type.
        kind: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A summary stands for what is before.
    Compaction(Compaction),
    /// A result is sent shortened from here on.
    Truncation {
        /// The tool, where it is known.
        name: Option<String>,
        /// The id of the call.
        call: String,
        /// How much is sent.
        shown: KeptSpan,
    },
    /// A summary made ahead of need.
    Checkpoint(Box<Checkpoint>),
    /// The record with this id is taken back.
    Retract(String),
    /// A call to the provider that failed.
    Error(Refusal),
    /// The session's new label.
    Label(String),
}

/// The header of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its key.
    pub key: Option<String>,
    /// Its label.
    pub label: Option<String>,
    /// When it was made, in microseconds since 1970.
    pub created: Option<i64>,
    /// The session that it is a copy of.
    pub parent: Option<String>,
}

/// What is known of a reply as a whole.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The model.
    pub model: Option<String>,
    /// What the provider counted.
    pub counts: Option<Counts>,
    /// Why it ended.
    pub stop_reason: Option<String>,
    /// It was cut off from outside.
    pub interrupted: bool,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The id of the call.
    pub id: String,
    /// The tool, and the beginning of the input; `None` when the call does not stand before.
    pub call: Option<(String, String)>,
    /// The call stands right before.
    pub follows: bool,
    /// All of its text.
    pub text: String,
    /// Images and documents in it.
    pub media: Vec<Media>,
    /// The tool failed.
    pub is_error: bool,
    /// How much of it is sent, where that is not all.
    pub shown: Option<KeptSpan>,
    /// What it weighs less in a request for that, in tokens.
    pub saved: u64,
}

/// An image or a document.
#[derive(Clone, Debug, Default)]
pub struct Media {
    /// `image` or `document`.
    pub kind: String,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its length in bytes, where it is there.
    pub bytes: Option<usize>,
    /// Its bytes in base64.
    pub data: Option<String>,
    /// The block's JSON text.
    pub raw: String,
}

/// A compaction.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The summary, and what it keeps word for word.
    pub summary: Summary,
    /// How many records it stands for, where that is known.
    pub records: Option<u64>,
    /// The request's tokens before.
    pub before: Option<u64>,
    /// Where the summary is from.
    pub strategy: Option<String>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The compaction in whose place it stands.
    pub retry_of: Option<String>,
}

/// A call to the provider that failed.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The kind of failure.
    pub class: String,
    /// The status of HTTP.
    pub status: Option<u64>,
    /// What the provider said.
    pub message: String,
    /// The window, as the provider named it.
    pub limit: Option<u64>,
    /// The tokens of the prompt, as the provider counted them.
    pub actual: Option<u64>,
}

/// What there is to say beside the output.
#[derive(Debug, Default)]
pub struct Notes {
    /// What is wrong in the inputs.
    pub findings: Vec<Finding>,
    /// So many lone surrogates became U+FFFD.
    pub replaced: usize,
}

/// Where the reading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The byte, over all inputs.
    pub offset: u64,
    /// The turns before it.
    pub turns: u64,
}

impl Start {
    /// Where the last `limit` turns begin; the beginning, if all are to be shown.
    ///
    /// # Errors
    /// When an input cannot be read.
    pub fn find(inputs: &[Input], limit: Option<u64>) -> anyhow::Result<Start> {
        let Some(limit) = limit else { return Ok(Start::default()) };
        let end = input::total(inputs);
        let starts = range::turn_starts(inputs, end)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let turns = starts.len().saturating_sub(limit);
        match (turns, starts.get(turns)) {
            (0, _) if limit > 0 => Ok(Start::default()),
            (_, offset) => {
                Ok(Start { offset: offset.copied().unwrap_or(end), turns: turns as u64 })
            }
        }
    }
}

/// A reader of all entries.
type Read<'r> = dyn Fn(&mut dyn FnMut(&Entry) -> io::Result<()>) -> anyhow::Result<Notes> + 'r;

/// Shows all inputs, which are read as if they had been concatenated. `name` is what the page is called if it
/// has no name of its own.
///
/// # Errors
/// When an input cannot be read or `out` cannot be written to; 65 when an input is of a dialect that
/// cannot be read.
pub fn show(
    inputs: &[Input],
    name: &str,
    format: Format,
    options: &Options,
    out: &mut dyn Write,
) -> anyhow::Result<Notes> {
    let chart = |read: &Read<'_>| -> anyhow::Result<chart::Chart> {
        let mut chart = chart::Chart::default();
        read(&mut |entry| {
            chart.take(entry);
            Ok(())
        })?;
        Ok(chart)
    };
    let (start, view) = (Start::find(inputs, options.limit_turns)?, Rc::new(view::whole(inputs)?));
    let read = |each: &mut dyn FnMut(&Entry) -> io::Result<()>| -> anyhow::Result<Notes> {
        let mut walk = Walk::new(Rc::clone(&view), options.redact.as_ref(), start);
        walk.read_all(inputs, each)?;
        Ok(walk.notes())
    };
    match format {
        Format::Text => {
            let mut text = text::Text::new(options, out);
            read(&mut |entry| text.show(entry))
        }
        Format::Markdown => {
            let mut markdown = markdown::Markdown::new(options, out);
            let chart = chart(&read)?;
            read(&mut |entry| markdown.show(entry, &chart.prompts))
        }
        Format::Html => {
            let chart = chart(&read)?;
            let cannot = "cannot write '<stdout>'";
            let mut page = html::Page::begin(options, name, &chart, out).context(cannot)?;
            let notes = read(&mut |entry| page.show(entry))?;
            page.end().context(cannot)?;
            Ok(notes)
        }
    }
}
