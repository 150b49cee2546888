//! Writes the records into which a transcript in another dialect is translated. The result is read like any other
//! input.
//!
//! Every record names the line it comes from: its id is the id in that line or, if the line has none, `@` and the
//! line's byte offset. If a line becomes several records, the ids of the second and later ones end in `.2`, `.3` and so
//! on.

use crate::finding::Finding;
use crate::finding::rules::Rule;
use crate::input::Input;
use crate::input::line::LineObject;
use crate::input::lines::Lines;
use crate::input::origin::{Origin, Remark, SourcePlace};
use crate::input::spool::Spool;
use crate::json;
use crate::json::write::Members;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// A line of the source that becomes records.
#[derive(Clone, Debug)]
pub struct SourceLine<'a> {
    /// Its place.
    pub place: SourcePlace,
    /// The id of its first record.
    pub id: Cow<'a, str>,
    /// Its time in Unix seconds, as JSON.
    pub ts: Option<String>,
}

impl SourceLine<'_> {
    /// Returns the id of record `number` of the line, counted from 1.
    fn id(&self, number: usize) -> Cow<'_, str> {
        match number {
            1 => Cow::Borrowed(&self.id),
            _ => Cow::Owned(format!("{}.{number}", self.id)),
        }
    }
}

/// A translation that is being written.
#[derive(Debug)]
pub struct Translation {
    spool: Spool,
    origin: Origin,
    buffer: String,
    /// By the description of something unknown: the number of times that it occurred, and the first place.
    unknown: HashMap<String, (usize, SourcePlace)>,
}

/// A part of a reply.
#[derive(Clone, Debug)]
pub enum ReplyPart<'a> {
    /// A block that is not a call, as JSON.
    Block(Cow<'a, str>),
    /// A tool call: its id, its name and its input, all as JSON.
    Call(Cow<'a, str>, Cow<'a, str>, Cow<'a, str>),
}

impl<'a> ReplyPart<'a> {
    /// Returns a text block with the JSON string `text`.
    #[must_use]
    pub fn text(text: &str) -> ReplyPart<'a> {
        ReplyPart::Block(Cow::Owned(text_block(text)))
    }
}

/// A reply: its parts in order, and the members of its first record.
#[derive(Clone, Debug, Default)]
pub struct Reply<'a> {
    /// Its parts.
    pub parts: Vec<ReplyPart<'a>>,
    /// The model, as JSON.
    pub model: Option<&'a str>,
    /// The provider, as JSON.
    pub provider: Option<&'a str>,
    /// The reason why it ended.
    pub stop_reason: Option<&'a str>,
    /// The token counts, as JSON.
    pub usage: Option<Cow<'a, str>>,
    /// Reasoning that is never sent.
    pub reasoning: Option<String>,
    /// True if it was interrupted. Then only its text is kept.
    pub is_interrupted: bool,
}

/// A tool result.
#[derive(Clone, Debug)]
pub struct ToolResult<'a> {
    /// The id of the call, as JSON.
    pub call: &'a str,
    /// The content, as JSON.
    pub content: Cow<'a, str>,
    /// True if the tool failed.
    pub is_error: bool,
}

impl Translation {
    /// Begins a translation. A long one is written to a temporary file in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> Translation {
        let spool = Spool::new(directory.to_owned());
        let (origin, buffer, unknown) = Default::default();
        Translation { spool, origin, buffer, unknown }
    }

    /// Passes each line of `input` that holds an object to `take`, and keeps the findings about the others.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn each_line(
        &mut self,
        input: &Input,
        mut take: impl FnMut(&LineObject<'_>, &mut Translation),
    ) -> anyhow::Result<()> {
        let mut lines = Lines::of(input);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                match line {
                    Ok(line) => take(&line, self),
                    Err(finding) => self.finding(finding),
                }
            }
        }
        Ok(())
    }

    /// Writes a record of type `kind` with the members that `add` adds. `number` is its number among the records that
    /// the line becomes, counted from 1.
    ///
    /// # Errors
    /// Fails if the text cannot be written.
    pub fn record(
        &mut self,
        line: &SourceLine<'_>,
        number: usize,
        kind: &str,
        add: impl FnOnce(Members) -> Members,
    ) -> anyhow::Result<()> {
        self.origin.places.push((self.spool.length(), line.place));
        let members = Members::reusing(std::mem::take(&mut self.buffer));
        let members = members.string("type", kind).string("id", &line.id(number));
        let members = members.optional(Members::raw, "ts", line.ts.as_deref());
        let text = add(members).into_line();
        self.spool.write(text.as_bytes())?;
        self.buffer = text;
        Ok(())
    }

    /// Writes a prompt, whose `content` is JSON.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn user(&mut self, line: &SourceLine<'_>, content: &str) -> anyhow::Result<()> {
        self.record(line, 1, "user", |it| it.raw("content", content))
    }

    /// Writes a tool result.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn result(
        &mut self,
        line: &SourceLine<'_>,
        number: usize,
        result: &ToolResult<'_>,
    ) -> anyhow::Result<()> {
        self.record(line, number, "tool_result", |it| {
            it.raw("tool_use_id", result.call)
                .raw("content", &result.content)
                .flag("is_error", result.is_error)
        })
    }

    /// Writes a reply: a record with the blocks before its first call, one for each call, and one for each run of
    /// blocks after a call.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn reply(&mut self, line: &SourceLine<'_>, reply: &Reply<'_>) -> anyhow::Result<()> {
        self.reply_from(line, 1, reply)
    }

    /// Writes a reply as [`Translation::reply`] does, from record `number` of the line on.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn reply_from(
        &mut self,
        line: &SourceLine<'_>,
        number: usize,
        reply: &Reply<'_>,
    ) -> anyhow::Result<()> {
        let (blocks, rest) = split_blocks(&reply.parts);
        self.record(line, number, "assistant", |it| {
            reply.add_to(it.list("content", blocks.iter().filter_map(block)))
        })?;
        self.more_of_reply(line, number + 1, rest)
    }

    /// Writes further parts of a reply, from record `number` of the line on.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn more_of_reply(
        &mut self,
        line: &SourceLine<'_>,
        mut number: usize,
        parts: &[ReplyPart<'_>],
    ) -> anyhow::Result<()> {
        let mut parts = parts;
        while let Some((first, rest)) = parts.split_first() {
            if let ReplyPart::Call(id, name, call_input) = first {
                self.record(line, number, "tool_use", |it| {
                    it.raw("tool_use_id", id).raw("name", name).raw("input", call_input)
                })?;
                parts = rest;
            } else {
                let (blocks, rest) = split_blocks(parts);
                self.record(line, number, "assistant", |it| {
                    it.list("content", blocks.iter().filter_map(block))
                })?;
                parts = rest;
            }
            number += 1;
        }
        Ok(())
    }

    /// Keeps a record of the source that has no equivalent in clawutils, in a record that readers ignore.
    ///
    /// # Errors
    /// As [`Translation::record`].
    pub fn imported(&mut self, line: &SourceLine<'_>, source: &str) -> anyhow::Result<()> {
        self.record(line, 1, IMPORTED, |it| it.raw("record", source))
    }

    /// Adds a remark, which every program that reads the input reports.
    pub fn remark(&mut self, remark: Remark) {
        self.origin.remarks.push(remark);
    }

    /// Adds a note, which only claw-check reports.
    pub fn note(&mut self, remark: Remark) {
        self.origin.notes.push(remark);
    }

    /// Adds the finding about a damaged line.
    pub fn finding(&mut self, finding: Finding) {
        let Finding { rule, place, id, message } = finding;
        let (place, id) = (SourcePlace::of(&place), id.map(|id| id.to_string()));
        self.remark(Remark { rule, place, id, message });
    }

    /// Counts a part of the source that is skipped because its type is unknown.
    pub fn unknown(&mut self, what: impl Into<String>, place: SourcePlace) {
        self.unknown.entry(what.into()).or_insert((0, place)).0 += 1;
    }

    /// Ends the translation and returns it as an input. Remarks about skipped parts of unknown types have the rule
    /// `rule`.
    ///
    /// # Errors
    /// Fails if the text cannot be written.
    pub fn finish(mut self, name: &str, rule: &'static Rule) -> anyhow::Result<Input> {
        let mut unknown: Vec<_> = std::mem::take(&mut self.unknown).into_iter().collect();
        unknown.sort_by_key(|(_, (_, place))| place.offset);
        for (what, (count, place)) in unknown {
            let message = match count {
                1 => format!("passed over {what}"),
                _ => format!("passed over {what}, here and {} more times", count - 1),
            };
            self.remark(Remark { rule, place, id: None, message });
        }
        self.spool.finish(name, self.origin)
    }
}

/// The type of records that only keep what another program wrote.
pub const IMPORTED: &str = "imported";

impl Reply<'_> {
    /// Adds the members of the first record, except for its content.
    fn add_to(&self, members: Members) -> Members {
        members
            .optional(Members::raw, "model", self.model)
            .optional(Members::raw, "provider", self.provider)
            .optional(Members::string, "stop_reason", self.stop_reason)
            .optional(Members::raw, "usage", self.usage.as_deref())
            .optional(Members::string, "reasoning", self.reasoning.as_deref())
            .flag("interrupted", self.is_interrupted)
    }
}

/// Splits off the blocks before the first call.
fn split_blocks<'p, 'a>(parts: &'p [ReplyPart<'a>]) -> (&'p [ReplyPart<'a>], &'p [ReplyPart<'a>]) {
    let end = parts.iter().position(|part| matches!(part, ReplyPart::Call(..)));
    parts.split_at(end.unwrap_or(parts.len()))
}

fn block<'p>(part: &'p ReplyPart<'_>) -> Option<&'p str> {
    match part {
        ReplyPart::Block(block) => Some(block),
        ReplyPart::Call(..) => None,
    }
}

/// Returns a text block with the JSON string `text`.
#[must_use]
pub fn text_block(text: &str) -> String {
    let members = Members::with_capacity(text.len() + 21).string("type", "text");
    members.raw("text", text).into_json()
}

/// Returns an image block with base64 data. Type and data are JSON strings.
#[must_use]
pub fn image_block(media_type: &str, data: &str) -> String {
    Members::of_type("image")
        .object("source", |it| {
            it.string("type", "base64").raw("media_type", media_type).raw("data", data)
        })
        .into_json()
}

/// Returns an image block for a URL, which may contain the data.
#[must_use]
pub fn image_url_block(url: &str) -> String {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, data)) => image_block(&json::quote(media_type), &json::quote(data)),
        None => Members::of_type("image")
            .object("source", |it| it.string("type", "url").string("url", url))
            .into_json(),
    }
}
