//! Shows a transcript as text, Markdown or HTML.
//!
//! [`walk`] reads records in file order and turns them into [`ShownEntry`] values, the same for every format. Compacted
//! records are shown like all other records, and view records are shown at their place in the file. [`text`],
//! [`markdown`] and [`html`] write one entry at a time, so the text of a long transcript is never in memory as a whole.
//! `words` has the wording that all formats share. [`diff`] shows two sessions side by side.
//!
//! Control characters and characters that change the text direction are escaped before they reach the output, and
//! each format escapes text that would be taken for its markup.

pub(crate) mod acts;
pub mod agents;
pub mod chart;
mod code;
pub mod diff;
pub mod edit;
mod emphasis;
pub mod follow;
pub mod html;
mod inline;
mod facts;
mod hosted;
mod injections;
mod language;
pub mod markdown;
pub mod outcome;
mod plot;
pub mod render;
pub mod stream;
mod table;
pub mod totals;
pub mod text;
pub mod walk;
pub(crate) mod wording;
pub(crate) mod words;
mod wrap;

use crate::cost::PriceList;
use crate::exit::{Exit, fail};
use crate::finding::Findings;
use crate::hosted::HostedAct;
use crate::input::{self, Input};
use crate::messages::range;
use crate::record::checkpoint::Checkpoint;
use crate::record::compaction::Summary;
use crate::record::content::Role;
use crate::record::omission::Omission;
use crate::record::truncation::KeptSpan;
use crate::redact::Patterns;
use crate::usage::Counts;
use agents::Agents;
use anyhow::Context;
use jiff::tz::TimeZone;
use std::io::Write;
use walk::Reading;
pub use wording::Language;

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

/// The options for showing transcripts.
#[derive(Clone, Debug)]
pub struct ShowOptions {
    /// Do not fold anything.
    pub full: bool,
    /// Show only this many of the last turns.
    pub limit_turns: Option<u64>,
    /// Show only the turn with this number, from 1.
    pub turn: Option<u64>,
    /// The patterns to redact before anything is shown.
    pub redact: Option<Patterns>,
    /// The prices of tokens.
    pub prices: PriceList,
    /// The time zone for display.
    pub zone: TimeZone,
    /// The width of text output in columns.
    pub width: usize,
    /// Use colours in text output.
    pub color: bool,
    /// The language of the program's own words.
    pub language: Language,
}

impl Default for ShowOptions {
    /// Returns options that show all turns, folded, without colours, 80 columns wide, with times in UTC.
    fn default() -> ShowOptions {
        ShowOptions {
            full: false,
            limit_turns: None,
            turn: None,
            redact: None,
            prices: PriceList::default(),
            zone: TimeZone::UTC,
            width: 80,
            color: false,
            language: Language::En,
        }
    }
}

/// A part of a record as it is shown.
#[derive(Clone, Debug)]
pub struct ShownEntry {
    /// The id of its record.
    pub id: String,
    /// The time of its record, in microseconds since 1970.
    pub time: Option<i64>,
    /// True if the record was retracted.
    pub retracted: bool,
    /// True if the record is pinned.
    pub pinned: bool,
    /// The use of the call to the provider, at the start of a reply, a compaction or a checkpoint.
    pub spent: Option<Spent>,
    /// The content.
    pub item: Item,
}

/// The tokens and the cost of a call to a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// The provider's token counts.
    pub counts: Counts,
    /// The cost in dollars, if the price of the model is known.
    pub cost: Option<f64>,
}

/// The content of an entry.
#[derive(Clone, Debug)]
pub enum Item {
    /// The header of a session.
    Session(Session),
    /// The start of a turn, counted from 1.
    Turn(u64),
    /// The start of a reply.
    Reply(ReplyFacts),
    /// Text of a message.
    Text {
        /// The author.
        role: Role,
        /// The text.
        text: String,
    },
    /// Text in a message of the user that a program wrote.
    Injected {
        /// The name of the text, such as `system reminder`.
        name: String,
        /// The text.
        text: String,
    },
    /// The model's thinking.
    Thinking(String),
    /// A tool call.
    Call {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// The input as JSON.
        input: String,
        /// True if the result comes before the call in the file.
        is_answered: bool,
    },
    /// A tool result.
    Result(CallOutcome),
    /// An image or a document.
    Media {
        /// The author.
        role: Role,
        /// Its properties and data.
        media: Media,
    },
    /// What a provider's own tool did, or the sources that the text before it cites.
    Hosted(Box<HostedAct>),
    /// A block of another kind.
    Other {
        /// The author.
        role: Role,
        /// The type of the block.
        kind: String,
        /// The length of the block in bytes.
        bytes: usize,
    },
    /// A compaction, with a summary of the records before it.
    Compaction(ShownCompaction),
    /// A truncation: from here on, a tool result is sent shortened.
    Truncation {
        /// The name of the tool, if known.
        name: Option<String>,
        /// The id of the call.
        call: String,
        /// The part of the result that is sent.
        shown: KeptSpan,
    },
    /// An omission: from here on, a block is not sent.
    Omission(Box<Omission>),
    /// A checkpoint, a summary that was made in advance.
    Checkpoint(Box<Checkpoint>),
    /// The retraction of the record with this id.
    Retract(String),
    /// A failed call to the provider.
    Error(Refusal),
    /// The session's new label.
    Label(String),
}

/// The header of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The id of the session.
    pub id: String,
    /// The key.
    pub key: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The time of creation, in microseconds since 1970.
    pub created: Option<i64>,
    /// The session that it was forked from.
    pub parent: Option<String>,
    /// The dialect of the program that wrote it, if another program did.
    pub dialect: Option<String>,
    /// The directory in which that program ran.
    pub directory: Option<String>,
    /// The id of the subagent whose transcript it is.
    pub agent: Option<String>,
}

/// The model, token counts and outcome of a reply.
#[derive(Clone, Debug, Default)]
pub struct ReplyFacts {
    /// The model.
    pub model: Option<String>,
    /// The provider's token counts.
    pub counts: Option<Counts>,
    /// The cost in dollars, if the price of the model is known.
    pub cost: Option<f64>,
    /// The provider.
    pub provider: Option<String>,
    /// The reason why it ended.
    pub stop_reason: Option<String>,
    /// True if it was interrupted.
    pub interrupted: bool,
}

/// A tool result.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The id of the call.
    pub id: String,
    /// The tool and the start of its input; `None` if the call is missing.
    pub call: Option<(String, String)>,
    /// True if the call comes immediately before the result.
    pub follows: bool,
    /// The complete text.
    pub text: String,
    /// The images and documents in the result.
    pub media: Vec<Media>,
    /// True if the tool failed.
    pub is_error: bool,
    /// The part that is sent, if the result is shortened.
    pub shown: Option<KeptSpan>,
    /// The tokens that shortening saves.
    pub saved: u64,
}

/// An image or a document.
#[derive(Clone, Debug, Default)]
pub struct Media {
    /// `image` or `document`.
    pub kind: String,
    /// The media type.
    pub media_type: Option<String>,
    /// The length in bytes, if the data is included.
    pub bytes: Option<usize>,
    /// The data in base64.
    pub data: Option<String>,
    /// The JSON text of the block.
    pub raw: String,
}

/// A compaction.
#[derive(Clone, Debug)]
pub struct ShownCompaction {
    /// The summary, with the messages that it keeps verbatim.
    pub summary: Summary,
    /// The number of records that it replaces, if known.
    pub records: Option<u64>,
    /// The tokens of the request before the compaction.
    pub before: Option<u64>,
    /// The method that made the summary.
    pub strategy: Option<String>,
    /// The model that wrote the summary.
    pub model: Option<String>,
    /// The id of the compaction whose summary this one replaces.
    pub retry_of: Option<String>,
}

/// A failed call to the provider.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The failure class.
    pub class: String,
    /// The HTTP status.
    pub status: Option<u64>,
    /// The provider's message.
    pub message: String,
    /// The window according to the provider.
    pub limit: Option<u64>,
    /// The tokens of the prompt according to the provider.
    pub actual: Option<u64>,
}

/// The diagnostics from showing a transcript.
#[derive(Debug, Default)]
pub struct ShowNotes {
    /// The findings in the inputs.
    pub findings: Findings,
    /// The number of lone surrogates that became U+FFFD.
    pub replaced: usize,
}

impl ShowNotes {
    /// Adds the diagnostics of another transcript.
    pub fn append(&mut self, other: ShowNotes) {
        self.findings.append(other.findings);
        self.replaced += other.replaced;
    }
}

/// The part to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownPart {
    /// The byte offset of its beginning, over all inputs.
    pub offset: u64,
    /// The byte offset of its end, or `None` if it extends to the end of the inputs.
    pub end: Option<u64>,
    /// The number of turns before it.
    pub turns: u64,
}

impl ShownPart {
    /// Returns the part with the last `limit` turns. Without a limit, or if there are no more turns than that, the part
    /// is everything.
    ///
    /// # Errors
    /// If an input cannot be read.
    pub fn find(inputs: &[Input], limit: Option<u64>) -> anyhow::Result<ShownPart> {
        let Some(limit) = limit else { return Ok(ShownPart::default()) };
        let end = input::total(inputs);
        let starts = range::turn_starts(inputs, end)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let turns = starts.len().saturating_sub(limit);
        match (turns, starts.get(turns)) {
            (0, _) if limit > 0 => Ok(ShownPart::default()),
            (_, offset) => {
                let offset = offset.copied().unwrap_or(end);
                Ok(ShownPart { offset, end: None, turns: turns as u64 })
            }
        }
    }

    /// Returns turn `number`, counted from 1.
    ///
    /// # Errors
    /// 1 if there is no such turn. Also fails if an input cannot be read.
    pub fn of_turn(inputs: &[Input], number: u64) -> anyhow::Result<ShownPart> {
        let starts = range::turn_starts(inputs, input::total(inputs))?;
        let turns = number.saturating_sub(1);
        let index = usize::try_from(turns).unwrap_or(usize::MAX);
        let Some(offset) = starts.get(index).copied().filter(|_| number > 0) else {
            let text = format!("cannot show turn {number}: the turns are 1 to {}", starts.len());
            return fail(Exit::Failed, text);
        };
        Ok(ShownPart { offset, end: starts.get(index + 1).copied(), turns })
    }
}

/// Shows all inputs as if they were concatenated. `name` is the title of an HTML page whose session has no
/// name. Such a page has the transcripts of subagents in `agents`.
///
/// # Errors
/// If an input cannot be read or `out` cannot be written to; 65 if an input is in a dialect that cannot be
/// read.
pub fn show(
    inputs: &[Input],
    name: &str,
    agents: &Agents,
    format: Format,
    options: &ShowOptions,
    out: &mut dyn Write,
) -> anyhow::Result<ShowNotes> {
    let start = match options.turn {
        Some(number) => ShownPart::of_turn(inputs, number)?,
        None => ShownPart::find(inputs, options.limit_turns)?,
    };
    let reading = Reading::new(inputs, options, start)?;
    let mut chart = chart::Chart::default();
    if format != Format::Text {
        reading.visit(&mut |entry| chart.take(entry))?;
    }
    let cannot = "cannot write '<stdout>'";
    match format {
        Format::Text => {
            let mut text = text::TextWriter::new(options, out);
            let notes = reading.read(&mut |entry| text.show(entry))?;
            text.end().context(cannot)?;
            Ok(notes)
        }
        Format::Markdown => {
            let mut markdown = markdown::Markdown::new(options, out);
            let notes = reading.read(&mut |entry| markdown.show(entry, &chart.prompts))?;
            markdown.end().context(cannot)?;
            Ok(notes)
        }
        Format::Html => {
            let agents = agents.writer(options);
            let agent = |result: &CallOutcome, language, out: &mut dyn Write| {
                agents.write(result, language, out)
            };
            let frame = html::Frame { name, agent: Some(&agent), ..html::Frame::default() };
            let mut page = html::Page::begin(options, frame, &chart, out).context(cannot)?;
            let mut notes = reading.read(&mut |entry| page.show(entry))?;
            page.end().context(cannot)?;
            notes.append(agents.notes());
            Ok(notes)
        }
    }
}
