//! Sessions of pi, OpenClaw and GoClaw: JSONL in versions 1 to 3. From version 2 on, the records form a tree through
//! `parentId`.
//!
//! They are read as pi 0.73.1 and 1.5.2 read them (earendil-works/pi, before badlogic/pi-mono;
//! packages/coding-agent/src/core/session-manager.ts and messages.ts; packages/ai, transform-messages.ts and
//! anthropic-messages.ts). GoClaw and OpenClaw write the same format.
//!
//! - Version 1 is a list. Its records have no ids, and a compaction names the first kept record by its index.
//! - Version 2 has `id` and `parentId`; version 3 renames the role `hookMessage` to `custom`.
//! - The leaf is the last record of the file, whatever its type.
//! - OpenClaw also writes where it goes on and when a conversation begins anew; see `navigation.rs`.
//! - A `context_edit` omits an earlier record of its branch, or replaces its content; see `edits.rs`.
//!
//! Every record of the path is written, because any of them may be the first one that a compaction keeps. Those that
//! are not part of the conversation become records that readers ignore.
//!
//! Apart from edits, only the translation of thinking depends on the path: it differs if the reply came from another
//! model than the one that is selected at the end of the path. Each reply is first translated as if it came from that
//! model, and translated again if it did not.

mod edits;
mod navigation;
pub mod message;

use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{Chunk, IMPORTED, RecordSource, Translation};
use crate::dialect::tree::{Node, ParentName, Tree};
use crate::dialect::writer::{Author, RecordWriter};
use crate::dialect::{Choice, choose_leaf, note_branches, remark_path, remark_twins, time};
use crate::finding::rules;
use crate::id;
use crate::input::Input;
use crate::input::origin::{Remark, SourcePlace};
use crate::json;
use crate::json::outline::Value;
use edits::{Edit, PathEdits};
use message::{Message, Replay};
use navigation::Navigation;
use std::borrow::Cow;
use std::collections::HashMap;

/// The newest known version of the format.
const NEWEST: u64 = 4;

/// The properties of a record in the index.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    chunk: Chunk,
    /// The number of records that it becomes.
    records: usize,
    /// The number of the model that it selects, counted from 1; 0 if it selects none.
    model: usize,
    /// True if it has thinking, so that its translation depends on the model that it is sent to.
    thinks: bool,
    /// True if a later record can edit it.
    is_editable: bool,
    /// True if it is a message, and not a summary or a record about the session.
    is_message: bool,
}

/// The records of a file.
#[derive(Default)]
struct Session {
    tree: Tree<Kind>,
    /// The index of the header among the records.
    header: Option<usize>,
    version: Option<u64>,
    /// The models and their providers, as JSON.
    models: Vec<[Option<String>; 2]>,
    /// The edits of earlier records.
    edits: HashMap<Node, Edit>,
    /// What OpenClaw writes about its place in the tree.
    navigation: Navigation,
    /// True after a system message, which newer versions of pi write before the first prompt.
    has_system_messages: bool,
}

/// The members of a record, as JSON.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    line: SourceLine<'a>,
    kind: Option<&'a str>,
    id: Option<&'a str>,
    parent: Option<&'a str>,
    timestamp: Option<&'a str>,
    message: Option<Message<'a>>,
}

/// Translates a session.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if the leaf does not exist.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    let mut out = Translation::new(input, choice);
    let mut session = Session::default();
    out.each_line(&mut |line, out| session.take(line, out))?;
    let twins = session.tree.finish();
    let tree = &session.tree;
    remark_twins(tree, &twins, &mut out);
    let last = session.navigation.leaf(tree);
    if let Some(leaf) = choose_leaf(tree, input, choice, last)? {
        let path = tree.path(leaf, |_| None);
        remark_path(tree, &path, &mut out);
        note_branches(tree, &path.nodes, |_| true, |_| true, &mut out);
        session.write(&session.navigation.since_reset(path.nodes, tree), &mut out)?;
    }
    out.finish(&rules::UNKNOWN_TYPE)
}

impl<'a> Entry<'a> {
    fn of(line: SourceLine<'a>) -> Entry<'a> {
        let names = ["type", "id", "parentId", "timestamp"];
        let [kind, id, parent, timestamp] = line.value.texts(names);
        let message = match kind {
            Some("\"custom_message\"") => Some(Message::custom(line.value)),
            _ => line.value.object("message").map(Message::of),
        };
        Entry { line, kind, id, parent, timestamp, message }
    }

    /// Returns the model and the provider that the record selects, as JSON.
    fn model(&self) -> Option<[Option<&'a str>; 2]> {
        match self.kind {
            Some("\"message\"") => self.message?.selected_model(),
            Some("\"model_change\"") => {
                Some(["modelId", "provider"].map(|name| self.line.value.quoted(name)))
            }
            _ => None,
        }
    }

    /// Returns true if a later record can edit it.
    fn is_editable(&self) -> bool {
        self.message.is_some_and(|message| message.is_editable())
    }
}

impl Session {
    /// Adds a record to the index, and translates it.
    fn take(&mut self, line: SourceLine<'_>, out: &mut Translation<'_>) {
        let (entry, place) = (Entry::of(line), line.place);
        if entry.kind == Some("\"session\"") && self.header.is_none() {
            self.header = Some(self.tree.len());
            let version = line.value.number("version").unwrap_or(1);
            self.version = Some(version);
            if version > NEWEST {
                let message = format!("version {version} is read like version {NEWEST}");
                out.remark(Remark { rule: &rules::UNKNOWN_VERSION, place, id: None, message });
            }
            out.header(place, |out| header(line, version, out));
            return;
        }
        let source = self.source(&entry);
        let (parent, parent_id) = self.navigation.take(entry.parent, line.value, &self.tree);
        let parent = match (parent, &parent_id) {
            _ if self.is_list() => ParentName::Previous,
            (None, _) => ParentName::Previous,
            (_, Some(parent)) => ParentName::Id(parent),
            (Some(_), None) => ParentName::None,
        };
        out.keep(&source);
        if entry.kind == Some("\"context_edit\"") {
            self.edits.insert(self.tree.len() as Node, Edit::of(line.value));
        }
        self.has_system_messages |= entry.message.is_some_and(|message| message.is_system());
        let (model, is_editable) = (self.model(&entry), entry.is_editable());
        let is_message = entry.kind == Some("\"message\"");
        let mut kind = Kind { model, is_editable, is_message, ..Kind::default() };
        let before = out.records();
        let replay = Replay::SameModel;
        kind.chunk = out.chunk(|out| kind.thinks = self.write_entry(&entry, &source, replay, out));
        kind.records = out.records() - before;
        self.tree.add(place, source.id.as_deref(), parent, kind);
    }

    /// Returns true if the records have no ids and parents.
    fn is_list(&self) -> bool {
        self.version.is_some_and(|version| version < 2)
    }

    /// Returns the number of the model that a record selects; 0 if it selects none.
    fn model(&mut self, entry: &Entry<'_>) -> usize {
        let Some(model) = entry.model() else { return 0 };
        let is_it = |known: &[Option<String>; 2]| known.each_ref().map(Option::as_deref) == model;
        match self.models.iter().rposition(is_it) {
            Some(index) => index + 1,
            None => {
                self.models.push(model.map(|part| part.map(str::to_owned)));
                self.models.len()
            }
        }
    }

    /// Appends the records of the path to the translation.
    fn write(&self, path: &[Node], out: &mut Translation<'_>) -> anyhow::Result<()> {
        let kinds = path.iter().map(|node| self.tree.entry(*node).kind);
        let model = kinds.map(|kind| kind.model).rfind(|model| *model > 0).unwrap_or(0);
        let mut edits = PathEdits::of(&self.edits, &self.tree, path);
        let (mut lines, mut other_lines) = (out.reader(), out.reader());
        for node in path {
            let entry = self.tree.entry(*node);
            let Kind { mut chunk, mut records, thinks, model: own, .. } = entry.kind;
            let replay = self.replay(own == model);
            if thinks
                && replay != Replay::SameModel
                && let Some(line) = lines.line(entry.place)?
            {
                let own = Entry::of(line);
                let (source, before) = (self.source(&own), out.records());
                chunk = out.chunk(|out| _ = self.write_entry(&own, &source, replay, out));
                records = out.records() - before;
            }
            if let Some((target, records)) = edits.target(*node)
                && let Some(line) = lines.line(entry.place)?
            {
                let source = self.source(&Entry::of(line));
                chunk = out.chunk(|out| self.retract(target, records, &source, out));
            }
            out.add(entry.place, chunk);
            if let Some(edit) = edits.replacement(*node, records)
                && let Some(line) = lines.line(entry.place)?
                && let Some(edit) = other_lines.line(self.tree.entry(edit).place)?
            {
                let (edited, edit) = (Entry::of(line), Entry::of(edit));
                let source = RecordSource { ts: self.source(&edited).ts, ..self.source(&edit) };
                let message = edited.message.map(|it| it.replaced(edit.line.value));
                out.append(edit.line.place, |out| {
                    message.iter().for_each(|it| _ = it.write(&source, records + 1, replay, out));
                });
            }
        }
        for edit in edits.lost {
            let target = self.edits.get(&edit).map_or("", |edit| &edit.target);
            let message = format!("nothing edited: no message '{target}' before it");
            let (rule, place) = (&rules::UNKNOWN_TARGET, self.tree.entry(edit).place);
            let id = Some(self.tree.id(edit).to_owned()).filter(|id| !id.is_empty());
            out.remark(Remark { rule, place, id, message });
        }
        out.sort_remarks();
        Ok(())
    }

    /// Returns the way in which a reply is sent again.
    fn replay(&self, is_same_model: bool) -> Replay {
        match (is_same_model, self.has_system_messages) {
            (true, _) => Replay::SameModel,
            (false, true) => Replay::OtherModel,
            (false, false) => Replay::OtherModelAsText,
        }
    }

    /// Retracts the first `records` records that a record has become.
    fn retract(
        &self,
        target: Node,
        records: usize,
        source: &RecordSource<'_>,
        out: &mut Translation<'_>,
    ) {
        let own = self.tree.id(target);
        let address = || id::address(self.tree.entry(target).place.offset);
        let first = if own.is_empty() { address() } else { own.to_owned() };
        for number in 1..=records {
            let id = if number == 1 { first.clone() } else { format!("{first}.{number}") };
            out.record(source, number, "retract").string("target", &id);
        }
    }

    /// Returns the source of the records that a record becomes.
    fn source<'a>(&self, entry: &Entry<'a>) -> RecordSource<'a> {
        let id = entry.id.and_then(json::string).filter(|_| !self.is_list());
        let millis = entry.message.and_then(|it| it.timestamp).and_then(time::of_millis);
        let ts = millis.map(Time::Micros).or_else(|| entry.timestamp.map(Time::Text));
        RecordSource { line: entry.line, id, ts }
    }

    /// Translates a record. Returns true if the translation depends on `replay`.
    fn write_entry(
        &self,
        own: &Entry<'_>,
        source: &RecordSource<'_>,
        replay: Replay,
        out: &mut Translation<'_>,
    ) -> bool {
        let (entry, place) = (source.line.value, source.line.place);
        match own.kind.and_then(json::string).as_deref() {
            Some("message" | "custom_message") => match &own.message {
                Some(message) => return message.write(source, 1, replay, out),
                None => {
                    out.unknown("message records without a message", place);
                    out.imported(source);
                }
            },
            Some("branch_summary") => match entry.string("summary").filter(|it| !it.is_empty()) {
                Some(summary) => {
                    out.record(source, 1, "user")
                        .author(&Author::program("summary"))
                        .string("content", &message::branch_summary(&summary));
                }
                None => out.imported(source),
            },
            Some("compaction") => self.compaction(source, out),
            Some("checkpoint") => checkpoint(entry, &mut out.record(source, 1, "checkpoint")),
            Some("session_info") if entry.quoted("name").is_some() => {
                out.record(source, 1, "label").optional("label", entry.get("name"));
            }
            kind => {
                if !matches!(kind, Some(kind) if NOT_SENT.contains(&kind)) {
                    let what = kind.map_or("records without a type".to_owned(), |kind| {
                        format!("records of the unknown type '{kind}'")
                    });
                    out.unknown(what, place);
                }
                out.imported(source);
            }
        }
        false
    }

    fn compaction(&self, source: &RecordSource<'_>, out: &mut Translation<'_>) {
        let entry = source.line.value;
        let by_index = entry.number("firstKeptEntryIndex").and_then(|index| self.at_index(index));
        let by_index = by_index.map(|place| Cow::Owned(id::address(place.offset)));
        let first_kept = by_index.or_else(|| entry.string("firstKeptEntryId"));
        let first_kept = first_kept.filter(|id| !id.is_empty()).unwrap_or("(none)".into());
        let details = entry.object("details");
        let list = |name| details.into_iter().flat_map(move |it| it.list(name)).map(Value::text);
        // A compaction that names itself keeps nothing, so everything from this mark on is kept.
        let keeps_nothing = source.id.as_ref() == Some(&first_kept);
        if keeps_nothing {
            drop(out.record(source, 1, IMPORTED));
        }
        out.record(source, 1 + usize::from(keeps_nothing), "compaction")
            .raw("summary", entry.get("summary").unwrap_or("\"\""))
            .string("first_kept_entry_id", &first_kept)
            .optional("tokens_before", entry.get("tokensBefore"))
            .object("details", |it| {
                it.list("read_files", list("readFiles"))
                    .list("modified_files", list("modifiedFiles"));
            });
    }

    /// Returns the place of the record with this index in the file. A compaction in version 1 names the first record
    /// that it keeps by such an index.
    fn at_index(&self, index: u64) -> Option<SourcePlace> {
        let index = usize::try_from(index).ok()?;
        let headers = usize::from(self.header.is_some_and(|header| header < index));
        let node = index.checked_sub(headers).filter(|node| *node < self.tree.len())?;
        Some(self.tree.entry(Node::try_from(node).ok()?).place)
    }
}

/// The known types of records that are not part of the conversation.
const NOT_SENT: [&str; 10] = [
    "thinking_level_change",
    "model_change",
    "custom",
    "label",
    "session_info",
    "session",
    "usage",
    "context_edit",
    "leaf",
    "reset",
];

/// Writes the header of the session.
fn header(line: SourceLine<'_>, version: u64, out: &mut Translation<'_>) {
    let entry = line.value;
    let id = entry.string("id");
    let ts = entry.get("timestamp").map(Time::Text);
    let source = RecordSource { line, id, ts };
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("created", entry.get("timestamp"))
        .object("source", |it| {
            it.string("dialect", "pi")
                .number("version", version)
                .optional("cwd", entry.get("cwd"))
                .optional("parent", entry.get("parentSession"));
        });
}

/// Adds the members of a checkpoint. Only GoClaw writes checkpoints.
fn checkpoint(entry: Value<'_>, record: &mut RecordWriter<'_>) {
    let inner = entry.object("checkpoint");
    let get = |name: &str| entry.get(name).or_else(|| inner.and_then(|it| it.get(name)));
    let list = |name: &str| get(name).filter(|raw| raw.starts_with('['));
    record
        .raw("summary", get("summary").filter(|raw| raw.starts_with('"')).unwrap_or("\"\""))
        .optional("topics", list("topics"))
        .optional("key_decisions", list("keyDecisions"))
        .optional("open_questions", list("openQuestions"))
        .optional("tokens_at_checkpoint", get("tokensAtCheckpoint"))
        .optional("message_count_at_checkpoint", get("messageCountAtCheckpoint"));
}

#[cfg(test)]
mod tests;
