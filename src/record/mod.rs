//! Records: the lines of a transcript, each as its original text and a parsed body.
//!
//! The types and their members are documented in claw-record(5) and `schema/claw-record.schema.json`. Members that may
//! be long are not decoded: content, input and usage keep the text that was read. Records of unknown types become
//! [`Body::Other`] and have no effect.

pub mod block_text;
pub mod checkpoint;
pub mod compaction;
pub mod content;
pub mod details;
mod hash;
pub mod omission;
pub mod scale;
mod seal;
pub mod truncation;

use crate::finding::Place;
use crate::input::backward::FoundLine;
use crate::input::line::LineObject;
use crate::json::Object;
use crate::record::checkpoint::Checkpoint;
use crate::record::compaction::Summary;
use crate::record::content::Content;
use crate::record::omission::Omission;
use crate::record::scale::Scale;
use crate::record::truncation::KeptSpan;
pub use seal::{LineHash, check_calls, digest, id, seal};
use std::borrow::Cow;

/// A record and its place.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Its `id`, or its address if it has none.
    pub id: Cow<'a, str>,
    /// The byte offset of its beginning in the concatenated inputs.
    pub offset: u64,
    /// The byte offset of its end in the concatenated inputs.
    pub end: u64,
    /// Its place in the input that contains it, for findings.
    pub place: Place,
    /// The JSON text of the record.
    pub text: Cow<'a, str>,
    /// The content, by type.
    pub body: Body<'a>,
}

/// The content of a record, by type.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// The header of a session.
    Session,
    /// A prompt. In files of other programs it may also contain tool results.
    User {
        /// The text or blocks.
        content: Content<'a>,
        /// True if a summary must not replace the prompt.
        pin: bool,
        /// True if the record says that it has words of a person, false if it says that a program wrote all of it.
        is_typed: Option<bool>,
    },
    /// A reply, or a part of one.
    Assistant {
        /// The text or blocks. In files of other programs it may contain tool calls.
        content: Content<'a>,
        /// The provider's token count for the whole reply, as the provider sent it.
        usage: Option<Cow<'a, str>>,
        /// The name of the model, as JSON.
        model: Option<Cow<'a, str>>,
        /// The time of the record in seconds since 1970.
        time: Option<f64>,
    },
    /// The part of a reply that was shown before it broke off. Rebuild leaves it out unless an option includes it.
    Interrupted {
        /// The part that was shown.
        content: Content<'a>,
    },
    /// A tool call.
    ToolUse {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The name of the tool, as JSON.
        name: Cow<'a, str>,
        /// The input, as JSON.
        input: Cow<'a, str>,
    },
    /// A tool result.
    ToolResult {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The result, as JSON: a string, or a list of blocks.
        content: Cow<'a, str>,
        /// The blocks of a list, unless the body was copied: they refer to the text that was parsed.
        blocks: Option<Content<'a>>,
        /// True if the tool failed.
        is_error: bool,
        /// True if the result must not be shortened or summarised.
        pin: bool,
    },
    /// Shortens a tool result.
    Truncation {
        /// The id of the call, as written in the transcript.
        tool_use_id: String,
        /// The id of the record that contains the result.
        record_id: String,
        /// The part of the result that is kept.
        shown: Box<KeptSpan>,
        /// The ratio of the provider's newest token count to the estimate. A record with this ratio makes all earlier
        /// counts invalid; estimates are scaled by the ratio instead.
        scale: Option<Scale>,
    },
    /// Leaves a block out.
    Omission {
        /// The block and the reason.
        omission: Box<Omission>,
        /// The ratio of the provider's newest token count to the estimate, as in a truncation.
        scale: Option<Scale>,
    },
    /// Replaces all records before the first kept one with a summary.
    Compaction {
        /// The summary.
        summary: Box<Summary>,
        /// The id of the first kept record.
        first_kept: String,
        /// The presumed byte offset of the first kept record. The caller must check that the record there has this id.
        hint: Option<u64>,
        /// The id of the compaction whose summary this one replaces, if there is one.
        retry_of: Option<String>,
        /// The ratio of the provider's newest token count to the estimate. A record with this ratio makes all earlier
        /// counts invalid; estimates are scaled by the ratio instead.
        scale: Option<Scale>,
    },
    /// A structured summary that was made before it was needed.
    Checkpoint(Box<Checkpoint>),
    /// Retracts a record: rebuild ignores that record.
    Retract {
        /// The id of the retracted record.
        target: String,
    },
    /// A failed call to the provider.
    Error,
    /// A new label of the session.
    Label,
    /// A record of an unknown type.
    Other,
}

impl Body<'_> {
    /// Returns the body with owned data.
    #[must_use]
    pub fn into_owned(self) -> Body<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Body::User { content, pin, is_typed } => {
                Body::User { content: content.into_owned(), pin, is_typed }
            }
            Body::Assistant { content, usage, model, time } => Body::Assistant {
                time,
                content: content.into_owned(),
                usage: usage.map(owned),
                model: model.map(owned),
            },
            Body::Interrupted { content } => Body::Interrupted { content: content.into_owned() },
            Body::ToolUse { id, name, input } => {
                Body::ToolUse { id: owned(id), name: owned(name), input: owned(input) }
            }
            Body::ToolResult { id, content, is_error, pin, .. } => {
                let (id, content, blocks) = (owned(id), owned(content), None);
                Body::ToolResult { id, content, blocks, is_error, pin }
            }
            Body::Session => Body::Session,
            Body::Truncation { tool_use_id, record_id, shown, scale } => {
                Body::Truncation { tool_use_id, record_id, shown, scale }
            }
            Body::Omission { omission, scale } => Body::Omission { omission, scale },
            Body::Compaction { summary, first_kept, hint, retry_of, scale } => {
                Body::Compaction { summary, first_kept, hint, retry_of, scale }
            }
            Body::Checkpoint(checkpoint) => Body::Checkpoint(checkpoint),
            Body::Retract { target } => Body::Retract { target },
            Body::Error => Body::Error,
            Body::Label => Body::Label,
            Body::Other => Body::Other,
        }
    }

    /// Returns true if rebuild makes messages from the record.
    #[must_use]
    pub fn is_message_part(&self) -> bool {
        matches!(
            self,
            Body::User { .. }
                | Body::Assistant { .. }
                | Body::ToolUse { .. }
                | Body::ToolResult { .. }
        )
    }

    /// Returns true for a user record with words or media of a person. If there is no text at all, the words are assumed.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        match self {
            Body::User { content, is_typed, .. } => is_typed.unwrap_or_else(|| content.is_typed()),
            _ => false,
        }
    }

    /// Returns true for a view record, which changes the messages that rebuild makes from other records.
    #[must_use]
    pub fn is_view(&self) -> bool {
        matches!(
            self,
            Body::Truncation { .. }
                | Body::Omission { .. }
                | Body::Compaction { .. }
                | Body::Retract { .. }
        )
    }
}

impl<'a> Record<'a> {
    /// Parses the record of a line.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn new(line: LineObject<'a>) -> Result<Record<'a>, String> {
        Ok(Record::of(parse(&line.object)?, line))
    }

    /// Creates a record from a line and its parsed body.
    #[must_use]
    pub fn of(body: Body<'a>, line: LineObject<'a>) -> Record<'a> {
        let (id, text) = (line.id(), Cow::Borrowed(line.object.text()));
        let LineObject { place, offset, .. } = line;
        Record { id, offset, end: offset + place.length, place, text, body }
    }

    /// Returns the record with owned data.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        let Record { id, offset, end, place, text, body } = self;
        let (id, text) = (Cow::Owned(id.into_owned()), Cow::Owned(text.into_owned()));
        Record { id, offset, end, place, text, body: body.into_owned() }
    }
}

/// Returns the records of a line and ignores everything else in it. A damaged line can contain several records.
#[must_use]
pub fn in_line(line: &FoundLine) -> Vec<Record<'_>> {
    line.read().into_iter().flatten().filter_map(|line| Record::new(line).ok()).collect()
}

/// Parses the body of a record from the object of a line.
///
/// # Errors
/// Returns the reason if there is no `type`, a record of a known type lacks a member or has one of the wrong type, or
/// the `type` of a view record is written with escapes.
pub fn parse<'a>(object: &Object<'a>) -> Result<Body<'a>, String> {
    let Some(kind) = object.string("type") else {
        return Err("a record has no 'type'".to_owned());
    };
    let wrong = |why: String| format!("'{kind}' record: {why}");
    let body = match kind.as_ref() {
        "session" => Body::Session,
        "user" => Body::User {
            content: content(object).map_err(wrong)?,
            pin: object.is_true("pin"),
            is_typed: object.get("injected").map(|_| object.get("typed").is_some()),
        },
        "assistant" if object.is_true("interrupted") => {
            Body::Interrupted { content: content(object).map_err(wrong)? }
        }
        "assistant" => Body::Assistant {
            content: content(object).map_err(wrong)?,
            usage: object.get("usage").filter(|usage| usage.starts_with('{')).map(Cow::Borrowed),
            model: object.get("model").filter(|model| model.starts_with('"')).map(Cow::Borrowed),
            // A number beyond the range of a double is no time.
            time: object.get("ts").and_then(|ts| ts.parse().ok()).filter(|ts: &f64| ts.is_finite()),
        },
        "tool_use" => tool_use(object).map_err(wrong)?,
        "tool_result" => tool_result(object).map_err(wrong)?,
        "truncation" => truncation(object).map_err(wrong)?,
        "omission" => Body::Omission {
            omission: Box::new(Omission::parse(object).map_err(wrong)?),
            scale: Scale::read(object),
        },
        "compaction" => Body::Compaction {
            summary: Box::new(Summary::parse_object(object).map_err(wrong)?),
            first_kept: text(object, "first_kept_entry_id").map_err(wrong)?,
            hint: object.number("first_kept_offset"),
            retry_of: object.string("retry_of").map(Cow::into_owned),
            scale: Scale::read(object),
        },
        "checkpoint" => {
            Body::Checkpoint(Box::new(Checkpoint::parse_object(object).map_err(wrong)?))
        }
        "retract" => Body::Retract { target: text(object, "target").map_err(wrong)? },
        "error" => Body::Error,
        "label" => {
            object.string("label").ok_or_else(|| wrong("no 'label'".to_owned()))?;
            Body::Label
        }
        _ => Body::Other,
    };
    // The search for view records finds a type only if it is written without escapes.
    if body.is_view() && object.get("type").is_some_and(|raw| raw.contains('\\')) {
        return Err(wrong("'type' must not contain escapes".to_owned()));
    }
    Ok(body)
}

fn content<'a>(object: &Object<'a>) -> Result<Content<'a>, String> {
    let raw = object.get("content").ok_or("no 'content'")?;
    if raw == "null" {
        return Ok(Content::Blocks(Vec::new()));
    }
    Content::parse(raw)
}

fn tool_use<'a>(object: &Object<'a>) -> Result<Body<'a>, String> {
    let name = object.get("name").filter(|name| name.starts_with('"')).unwrap_or("\"\"");
    let input = object.get("input").unwrap_or("null");
    let (name, input) = (Cow::Borrowed(name), Cow::Borrowed(input));
    Ok(Body::ToolUse { id: call_id(object)?, name, input })
}

fn tool_result<'a>(object: &Object<'a>) -> Result<Body<'a>, String> {
    let content = object.get("content").or_else(|| object.get("output")).ok_or("no 'content'")?;
    if !matches!(content.as_bytes().first(), Some(b'"' | b'[')) && content != "null" {
        return Err("'content' is neither a string nor a list".to_owned());
    }
    let blocks = content.starts_with('[').then(|| Content::parse(content)).transpose()?;
    Ok(Body::ToolResult {
        id: call_id(object)?,
        content: Cow::Borrowed(if content == "null" { "\"\"" } else { content }),
        blocks,
        is_error: object.is_true("is_error"),
        pin: object.is_true("pin"),
    })
}

fn truncation<'a>(object: &Object<'a>) -> Result<Body<'a>, String> {
    Ok(Body::Truncation {
        tool_use_id: text(object, "tool_use_id")?,
        record_id: text(object, "record_id")?,
        shown: Box::new(KeptSpan::parse(object)?),
        scale: Scale::read(object),
    })
}

/// Returns the id of the call. It may be empty, because some servers send no other.
fn call_id<'a>(object: &Object<'a>) -> Result<Cow<'a, str>, String> {
    object.string("tool_use_id").ok_or_else(|| "no 'tool_use_id'".to_owned())
}

/// Returns the string member `name`, which must not be missing or empty.
fn required<'a>(object: &Object<'a>, name: &str) -> Result<Cow<'a, str>, String> {
    let text = object.string(name).filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("no '{name}'"))
}

fn text(object: &Object<'_>, name: &str) -> Result<String, String> {
    required(object, name).map(Cow::into_owned)
}
