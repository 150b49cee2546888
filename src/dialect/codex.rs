//! Rollout files of Codex CLI: lists of records with `timestamp`, `type` and `payload`.
//!
//! They are read as versions 0.80.0 and 0.169.0 read them (openai/codex, codex-rs/core/src/rollout and
//! codex-rs/protocol). These versions were observed while they resumed sessions.
//!
//! - The `response_item` records are what is sent to the model. `event_msg` records are for display.
//! - A `compacted` record replaces everything before it with its `replacement_history`. Version 0.80.0 has only
//!   `message`: the prompts stay, and the message follows them.
//! - `token_usage_record` has the counts of one call. Version 0.80.0 has only `token_count` events, which repeat the
//!   counts of the last call.
//!
//! Developer messages and instructions are system prompts and do not become messages.

pub mod item;

use crate::dialect::source::SourceReader;
use crate::dialect::translation::{IMPORTED, SourceLine, Translation};
use crate::dialect::{Choice, time};
use crate::exit::{Exit, fail};
use crate::finding::rules;
use crate::id;
use crate::input::Input;
use crate::input::line::LineObject;
use crate::input::origin::{Remark, SourcePlace};
use crate::json::write::Members;
use crate::json::{Object, elements};
use item::Kind;
use std::borrow::Cow;
use std::collections::HashMap;

/// The results of the first pass over a file.
#[derive(Default)]
struct Rollout {
    header: Option<SourcePlace>,
    /// The places of items, models and compactions, in order.
    places: Vec<SourcePlace>,
    /// For each reply, by the offset of its first item: the place of its token counts.
    usage: HashMap<u64, SourcePlace>,
    /// The offset of the newest reply's first item. `None` once an item that is not part of a reply follows.
    reply: Option<u64>,
    /// The total usage in the newest `token_count` event, as JSON.
    total: Option<String>,
    /// The prompts since the newest compaction that has a `replacement_history`.
    prompts: Vec<SourcePlace>,
    /// The prompts that compactions without a `replacement_history` keep, by the offset of the compaction.
    kept: HashMap<u64, Vec<SourcePlace>>,
}

/// Translates a rollout file.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if a leaf is chosen, because a file
/// has only one branch.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    if choice.leaf.is_some() {
        let name = &input.name;
        return fail(Exit::Data, format!("cannot choose a leaf in '{name}': it has no branches"));
    }
    let mut out = Translation::new(&choice.directory);
    let rollout = Rollout::index(input, &mut out)?;
    let mut source = SourceReader::new(input);
    if let Some(place) = rollout.header
        && let Some(line) = source.object(place)?
    {
        header(&line.object, place, &mut out)?;
    }
    let mut writer = Writer { model: None, out: &mut out };
    for place in &rollout.places {
        let usage = match rollout.usage.get(&place.offset) {
            Some(place) => source.object(*place)?.and_then(|line| usage(&line.object)),
            None => None,
        };
        let mut kept = Vec::new();
        for prompt in rollout.kept.get(&place.offset).into_iter().flatten() {
            let line = source.object(*prompt)?;
            kept.extend(line.and_then(|line| item::prompt(&payload(&line.object)?)));
        }
        let Some(line) = source.object(*place)? else { continue };
        writer.record(&line.object, *place, (usage, kept))?;
    }
    out.finish(&input.name, &rules::UNKNOWN_TYPE)
}

impl Rollout {
    fn index(input: &Input, out: &mut Translation) -> anyhow::Result<Rollout> {
        let mut rollout = Rollout::default();
        out.each_line(input, |line, out| rollout.take(line, out))?;
        Ok(rollout)
    }

    fn take(&mut self, line: &LineObject<'_>, out: &mut Translation) {
        let (object, place) = (&line.object, SourcePlace::of(&line.place));
        let kind = object.string("type").unwrap_or_default();
        match (&*kind, payload(object)) {
            ("session_meta", Some(payload)) if self.header.is_none() => {
                self.header = Some(place);
                note_base(&payload, place, out);
            }
            ("response_item", Some(item)) => {
                match Kind::of(&item) {
                    Kind::Reply | Kind::Call => match self.reply {
                        Some(reply) if !self.usage.contains_key(&reply) => {}
                        _ => self.reply = Some(place.offset),
                    },
                    _ => self.reply = None,
                }
                if item::prompt(&item).is_some() {
                    self.prompts.push(place);
                }
                self.places.push(place);
            }
            ("token_usage_record", Some(_)) => self.count(place),
            ("event_msg", Some(event)) if event.get("type") == Some("\"token_count\"") => {
                let info = event.get("info").and_then(|raw| Object::parse(raw).ok());
                let total = info.and_then(|it| it.get("total_token_usage").map(str::to_owned));
                if total.is_some() && total != self.total {
                    self.total = total;
                    self.count(place);
                }
            }
            ("turn_context", Some(_)) => self.places.push(place),
            ("compacted", Some(compacted)) => {
                if compacted.get("replacement_history").and_then(elements).is_none() {
                    self.kept.insert(place.offset, self.prompts.clone());
                } else {
                    self.prompts.clear();
                }
                self.reply = None;
                self.places.push(place);
            }
            (kind, _) if NOT_SENT.contains(&kind) => {}
            (kind, _) => out.unknown(format!("records of the unknown type '{kind}'"), place),
        }
    }

    /// Stores the place of counts for the newest reply.
    fn count(&mut self, place: SourcePlace) {
        if let Some(reply) = self.reply {
            // A usage record comes before the event that repeats it.
            self.usage.entry(reply).or_insert(place);
        }
    }
}

/// Returns the payload of a record.
fn payload<'a>(record: &Object<'a>) -> Option<Object<'a>> {
    record.get("payload").and_then(|raw| Object::parse(raw).ok())
}

/// The types of records that are not sent.
const NOT_SENT: [&str; 5] =
    ["session_meta", "event_msg", "world_state", "token_usage_record", "ghost_snapshot"];

/// Adds a remark if the file continues another one, which is not read.
fn note_base(meta: &Object<'_>, place: SourcePlace, out: &mut Translation) {
    let base = meta.get("history_base").and_then(|raw| Object::parse(raw).ok());
    let Some(base) = base else { return };
    let thread = base.string("thread_id").unwrap_or_default();
    let message = format!(
        "the file continues the one of thread '{thread}', which is not read; give that file for what came before"
    );
    out.remark(Remark { rule: &rules::MISSING_BASE, place, id: None, message });
}

/// Writes the header of the session.
fn header(record: &Object<'_>, place: SourcePlace, out: &mut Translation) -> anyhow::Result<()> {
    let Some(meta) = payload(record) else { return Ok(()) };
    let id = meta.string("id").unwrap_or_else(|| Cow::Owned(id::address(place.offset)));
    let ts = record.get("timestamp").and_then(time::of_text);
    let line = SourceLine { place, id: id.clone(), ts };
    out.record(&line, 1, "session", |it| {
        it.string("key", &id).optional(Members::raw, "created", record.get("timestamp")).object(
            "source",
            |it| {
                it.string("dialect", "codex")
                    .optional(Members::raw, "version", meta.get("cli_version"))
                    .optional(Members::raw, "cwd", meta.get("cwd"))
                    .optional(Members::raw, "parent", meta.get("forked_from_id"))
            },
        )
    })
}

/// Returns the counts of a call, under the names of chat completions, where prompt tokens also include cached tokens.
fn usage(record: &Object<'_>) -> Option<String> {
    let payload = payload(record)?;
    let raw = match payload.get("usage") {
        Some(usage) => usage,
        None => Object::parse(payload.get("info")?).ok()?.get("last_token_usage")?,
    };
    let usage = Object::parse(raw).ok()?;
    let number = |name: &str| usage.number(name).unwrap_or(0);
    let members = Members::new()
        .number("prompt_tokens", number("input_tokens"))
        .number("completion_tokens", number("output_tokens"))
        .object("prompt_tokens_details", |it| {
            it.number("cached_tokens", number("cached_input_tokens"))
        });
    Some(members.into_json())
}

/// A writer of translated records.
struct Writer<'o> {
    /// The model of the turn, as JSON.
    model: Option<String>,
    out: &'o mut Translation,
}

impl Writer<'_> {
    fn record(
        &mut self,
        record: &Object<'_>,
        place: SourcePlace,
        (usage, kept): (Option<String>, Vec<String>),
    ) -> anyhow::Result<()> {
        let Some(payload) = payload(record) else { return Ok(()) };
        let id = Cow::Owned(id::address(place.offset));
        let ts = record.get("timestamp").and_then(time::of_text);
        let line = SourceLine { place, id, ts };
        match record.get("type") {
            Some("\"turn_context\"") => {
                self.model = payload.get("model").map(str::to_owned);
                Ok(())
            }
            Some("\"compacted\"") => self.compacted(&payload, &line, kept),
            _ => item::write(&payload, &line, 1, (self.model.as_deref(), usage), self.out),
        }
    }

    /// Writes a compaction: an ignored record as a mark, the items that replace the history, and the summary, which
    /// keeps everything from the mark on. `kept` are the prompts to keep if the file has no such items.
    fn compacted(
        &mut self,
        payload: &Object<'_>,
        line: &SourceLine<'_>,
        kept: Vec<String>,
    ) -> anyhow::Result<()> {
        let items = payload.get("replacement_history").and_then(elements).unwrap_or_default();
        let summary = payload.string("message").unwrap_or_default();
        self.out.record(line, 1, IMPORTED, |it| it)?;
        let mut number = 2;
        for item in items.into_iter().filter_map(|raw| Object::parse(raw).ok()) {
            if item::prompt(&item).as_deref() != Some(&summary) {
                item::write(&item, line, number, (None, None), self.out)?;
                number += 1;
            }
        }
        self.out.record(line, number, "compaction", |it| {
            it.string("summary", &summary)
                .strings("kept_user", kept)
                .string("first_kept_entry_id", &line.id)
        })
    }
}

#[cfg(test)]
mod tests;
