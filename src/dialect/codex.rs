//! Rollout files of Codex CLI: lists of records with `timestamp`, `type` and `payload`.
//!
//! They are read as versions 0.80.0 and 0.169.0 read them (openai/codex, codex-rs/core/src/rollout and
//! codex-rs/protocol). These versions were observed while they resumed sessions. The types of records and items that the
//! program of version 0.171.0 has are known by name.
//!
//! - The `response_item` records are what is sent to the model. `event_msg` records are for display.
//! - A `compacted` record replaces everything before it with its `replacement_history`. Version 0.80.0 has only
//!   `message`: the prompts stay, and the message follows them.
//! - `token_usage_record` or, in old versions, `token_count` has the counts of a call; see `calls.rs`.
//! - A rewound or forked conversation is stored in a file whose `history_base` names another file, which may name a
//!   third. Each continues the beginning of the file that it names, so the text to read consists of parts of several
//!   files; see `history.rs`.
//!
//! Developer messages and instructions are system prompts and do not become messages.

pub mod calls;
mod history;
pub mod item;
mod title;

use crate::dialect::Choice;
use crate::dialect::joined::Joined;
use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{Chunk, IMPORTED, RecordSource, Translation};
use crate::finding::rules;
use crate::input::Input;
use crate::input::origin::SourcePlace;
use crate::json;
use crate::json::outline::{Outline, Value};
use calls::{Call, Calls};
use history::History;
use item::{Facts, Item, Kind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// An item or a compaction.
struct Entry {
    place: SourcePlace,
    chunk: Chunk,
    /// The number of the model of its turn, counted from 1; 0 if it is not known.
    model: usize,
    /// The call that the reply which begins with it answers.
    call: Option<Call>,
}

/// A line that is kept in memory.
#[derive(Default)]
struct KeptLine {
    text: String,
    outline: Outline,
    nodes: Range<usize>,
    /// The offset of its object in the source.
    at: u64,
}

/// The records of a file.
#[derive(Default)]
struct Rollout {
    /// The offset at which the file itself begins, after the files that it continues.
    begin: u64,
    /// The record with the header.
    header: Option<SourcePlace>,
    /// What the program calls the session.
    title: Option<String>,
    entries: Vec<Entry>,
    /// The models of turns, as JSON.
    models: Vec<String>,
    /// The index of the first item of the newest reply, until an item of another kind follows.
    reply: Option<usize>,
    /// The index of this item in `entries` if it is not translated yet. Its counts come after it, so it is translated
    /// once they are known or can no longer come.
    untranslated: Option<usize>,
    /// The line of this item.
    copy: KeptLine,
    calls: Calls,
    /// The indices of the prompts since the newest compaction that has a `replacement_history`.
    prompts: Vec<usize>,
    /// The indices of the prompts that compactions without a `replacement_history` keep, by the compaction's index.
    kept: HashMap<usize, Vec<usize>>,
}

/// Translates a rollout file.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if a leaf is chosen, because a file
/// has only one branch.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    choice.require_no_leaf(input)?;
    let History { text: Joined { source, files }, missing } = History::of(input)?;
    let mut out = Translation::new(&source, choice);
    out.set_files(files);
    missing.into_iter().for_each(|remark| out.remark(remark));
    let mut rollout = Rollout { begin: source.length - input.length, ..Rollout::default() };
    out.each_line(&mut |line, out| rollout.take(line, out))?;
    rollout.translate(&mut out);
    rollout.write_title(input, &mut out)?;
    rollout.write(&mut out)?;
    out.finish(&rules::UNKNOWN_TYPE)
}

impl Rollout {
    /// Writes the header again if the session has a name, which stands after it in the file or in another file.
    fn write_title(&self, input: &Input, out: &mut Translation<'_>) -> anyhow::Result<()> {
        let Some(place) = self.header else { return Ok(()) };
        if let Some(line) = out.reader().line(place)?
            && let (source, _, Some(meta)) = members(line)
            && let id = meta.string("id").unwrap_or_default()
            && let Some(title) = title::of(input, &id).as_ref().or(self.title.as_ref())
        {
            out.header(place, |out| header(&source, meta, Some(title), out));
        }
        Ok(())
    }

    /// Adds a record, and translates it unless the translation depends on other records.
    fn take(&mut self, line: SourceLine<'_>, out: &mut Translation<'_>) {
        let place = line.place;
        let (source, kind, payload) = members(line);
        out.keep(&source);
        let kind = kind.and_then(json::string).unwrap_or_default();
        if let Some(call) = payload.and_then(|payload| self.calls.take(&kind, payload)) {
            self.count(call, out);
        }
        match (&*kind, payload.filter(|payload| payload.is_object())) {
            ("session_meta", Some(meta)) if self.header.is_none() && place.offset >= self.begin => {
                self.header = Some(place);
                out.header(place, |out| header(&source, meta, None, out));
            }
            ("event_msg", Some(event)) if event.get("type") == Some(RENAMED) => {
                self.title = event.string("thread_name").map(Cow::into_owned);
            }
            ("event_msg", Some(event)) => {
                if let Some(message) = failure(event) {
                    self.end_reply(out);
                    let chunk = out.chunk(|out| out.failure(&source, "failed", None, &message));
                    self.entries.push(Entry { place, chunk, model: 0, call: None });
                }
            }
            ("response_item", Some(item)) => self.item(&source, item, out),
            ("turn_context", Some(turn)) => {
                let model = turn.get("model").unwrap_or_default();
                if self.models.last().is_none_or(|last| last != model) {
                    self.models.push(model.to_owned());
                }
            }
            ("compacted", Some(compacted)) => {
                let index = self.entries.len();
                let is_list = |items: Value<'_>| items.elements().is_some();
                let chunk = if compacted.member("replacement_history").is_some_and(is_list) {
                    self.prompts.clear();
                    out.chunk(|out| compaction(&source, compacted, &[], out))
                } else {
                    self.kept.insert(index, self.prompts.clone());
                    Chunk::default()
                };
                self.end_reply(out);
                self.entries.push(Entry { place, chunk, model: 0, call: None });
            }
            (kind, _) if NOT_SENT.contains(&kind) => {}
            ("inter_agent_communication", _) => {
                out.unknown("messages between agents, which cannot be converted", place);
            }
            (kind, _) => out.unknown(format!("records of the unknown type '{kind}'"), place),
        }
    }

    fn item(&mut self, source: &RecordSource<'_>, item: Value<'_>, out: &mut Translation<'_>) {
        let (index, item) = (self.entries.len(), Item::of(item));
        let model = self.models.len();
        let place = source.line.place;
        let continues = self.reply.is_some_and(|reply| self.entries[reply].call.is_none());
        let is_reply = matches!(item.kind, Kind::Reply | Kind::Call);
        if !is_reply || !continues {
            self.end_reply(out);
        }
        let mut chunk = Chunk::default();
        if is_reply && !continues {
            (self.reply, self.untranslated) = (Some(index), Some(index));
            let KeptLine { text, outline, nodes, at } = &mut self.copy;
            (*nodes, *at) = (outline.copy(source.line.value, text), source.line.at);
        } else {
            let facts = Facts { model: self.model(model), call: None };
            chunk = out.chunk(|out| item::write(&item, source, 1, facts, out));
        }
        if item::prompt(&item).is_some() {
            self.prompts.push(index);
        }
        self.entries.push(Entry { place, chunk, model, call: None });
    }

    /// Ends the newest reply.
    fn end_reply(&mut self, out: &mut Translation<'_>) {
        self.translate(out);
        self.reply = None;
    }

    /// Translates the first item of the newest reply, unless that was done.
    fn translate(&mut self, out: &mut Translation<'_>) {
        let Some(index) = self.untranslated.take() else { return };
        let Entry { place, model, ref call, .. } = self.entries[index];
        let KeptLine { text, outline, nodes, at } = &self.copy;
        let value = outline.value(text, nodes.clone());
        let (source, _, item) = members(SourceLine { value, place, at: *at });
        let facts = Facts { model: self.model(model), call: call.as_ref() };
        let item = item.map(Item::of);
        let chunk = out.chunk(|out| {
            item.iter().for_each(|item| item::write(item, &source, 1, facts, out));
        });
        self.entries[index].chunk = chunk;
    }

    /// Returns the model with this number.
    fn model(&self, number: usize) -> Option<&str> {
        let model = self.models.get(number.checked_sub(1)?)?;
        model.starts_with('"').then_some(model)
    }

    /// Stores the call of the newest reply, and translates its first item.
    fn count(&mut self, call: Call, out: &mut Translation<'_>) {
        let Some(entry) = self.reply.and_then(|reply| self.entries.get_mut(reply)) else { return };
        entry.call.get_or_insert(call);
        self.translate(out);
    }

    /// Appends the items and compactions to the translation. Compactions that keep earlier prompts are translated now.
    fn write(&self, out: &mut Translation<'_>) -> anyhow::Result<()> {
        let mut lines = out.reader();
        for (index, entry) in self.entries.iter().enumerate() {
            let &Entry { place, mut chunk, .. } = entry;
            if let Some(kept) = self.kept.get(&index) {
                let mut prompts = Vec::new();
                for prompt in kept {
                    let line = lines.line(self.entries[*prompt].place)?;
                    let item = line.and_then(|line| line.value.object("payload"));
                    prompts.extend(item.and_then(|item| item::prompt(&Item::of(item))));
                }
                if let Some(line) = lines.line(place)?
                    && let Some(compacted) = line.value.object("payload")
                {
                    let (source, ..) = members(line);
                    chunk = out.chunk(|out| compaction(&source, compacted, &prompts, out));
                }
            }
            out.add(place, chunk);
        }
        Ok(())
    }
}

/// Returns the source of the records that a line becomes, and the line's type and payload as JSON.
fn members(line: SourceLine<'_>) -> (RecordSource<'_>, Option<&str>, Option<Value<'_>>) {
    let [time, kind, payload] = line.value.pick(["timestamp", "type", "payload"]);
    let ts = time.map(|time| Time::Text(time.text()));
    (RecordSource { line, id: None, ts }, kind.map(Value::text), payload)
}

/// The type of the event with a new name of the session, as JSON.
const RENAMED: &str = "\"thread_name_updated\"";

/// The types of records that are not sent.
const NOT_SENT: [&str; 9] = [
    "session_meta",
    "event_msg",
    "world_state",
    "token_usage_record",
    "ghost_snapshot",
    "dynamic_tools_updated",
    "inter_agent_communication_metadata",
    "security_risk_score",
    "realtime_item",
];

/// Returns the message of the error with which a turn ended.
fn failure<'a>(event: Value<'a>) -> Option<Cow<'a, str>> {
    let ends = matches!(event.string("type").as_deref(), Some("task_complete" | "turn_complete"));
    event.object("error").filter(|_| ends)?.string("message")
}

/// Writes the header of the session.
fn header(
    source: &RecordSource<'_>,
    meta: Value<'_>,
    title: Option<&str>,
    out: &mut Translation<'_>,
) {
    let source = RecordSource { id: meta.string("id"), ..source.clone() };
    let spawn = meta.object("source").and_then(|it| it.object("subagent"));
    let spawn = spawn.and_then(|it| it.object("thread_spawn"));
    let parent = spawn.and_then(|it| it.get("parent_thread_id")).filter(|it| it.starts_with('"'));
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("label", title.map(json::quote).as_deref())
        .optional("created", source.line.value.get("timestamp"))
        .object("source", |it| {
            it.string("dialect", "codex")
                .optional("version", meta.get("cli_version"))
                .optional("cwd", meta.get("cwd"))
                .optional("parent", parent.or_else(|| meta.get("forked_from_id")))
                .optional("agent", parent.and_then(|_| meta.get("id")));
        });
}

/// Writes a compaction: an ignored record as a mark, the items that replace the history, and the summary, which keeps
/// everything from the mark on. `kept` are the prompts to keep if there are no such items.
fn compaction(
    source: &RecordSource<'_>,
    compacted: Value<'_>,
    kept: &[String],
    out: &mut Translation<'_>,
) {
    let summary = compacted.string("message").unwrap_or_default();
    drop(out.record(source, 1, IMPORTED));
    let mut number = 2;
    let items = compacted.list("replacement_history").filter(|item| item.is_object());
    for item in items {
        let item = Item::of(item);
        if item::prompt(&item).as_deref() != Some(&summary) {
            item::write(&item, source, number, Facts::default(), out);
            number += 1;
        }
    }
    let mut record = out.record(source, number, "compaction");
    record.string("summary", &summary).strings("kept_user", kept);
    record.string("first_kept_entry_id", &source.first_id());
}

#[cfg(test)]
mod tests;
