//! Sessions of pi, OpenClaw and GoClaw: JSONL in versions 1 to 3. From version 2 on, the records form a tree through
//! `parentId`.
//!
//! They are read as pi 0.73.1 reads them (badlogic/pi-mono, packages/coding-agent/src/core/session-manager.ts and
//! messages.ts; packages/ai/src/providers/transform-messages.ts and anthropic.ts). GoClaw and OpenClaw write the
//! same format.
//!
//! - Version 1 is a list. Its records have no ids, and a compaction names the first kept record by its index.
//! - Version 2 has `id` and `parentId`; version 3 renames the role `hookMessage` to `custom`.
//! - The leaf is the last record of the file, whatever its type.
//!
//! Every record of the path is written, because any of them may be the first one that a compaction keeps. Those that
//! are not part of the conversation become records that readers ignore.

mod message;

use crate::dialect::source::SourceReader;
use crate::dialect::translation::{SourceLine, Translation};
use crate::dialect::tree::{Node, ParentName, Tree};
use crate::dialect::{Choice, choose_leaf, note_branches, remark_path, time};
use crate::finding::rules;
use crate::id;
use crate::input::Input;
use crate::input::line::LineObject;
use crate::input::origin::{Remark, SourcePlace};
use crate::json::write::Members;
use crate::json::{self, Object, elements};
use message::Model;
use std::borrow::Cow;

/// The newest version that is known.
const NEWEST: u64 = 3;

/// The records of a file.
struct Session {
    tree: Tree<()>,
    /// The place of the header, and its index among the records.
    header: Option<(SourcePlace, usize)>,
    version: Option<u64>,
    /// The number of records so far, the header included.
    count: usize,
}

/// Translates a session.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if the leaf does not exist.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    let mut out = Translation::new(&choice.directory);
    let session = Session::index(input, &mut out)?;
    let tree = &session.tree;
    let mut source = SourceReader::new(input);
    if let Some((place, _)) = session.header
        && let Some(line) = source.object(place)?
    {
        header(&line.object, place, &mut out)?;
    }
    let last = tree.nodes().next_back();
    if let Some(leaf) = choose_leaf(tree, input, choice, last)? {
        let path = tree.path(leaf, |_| None);
        remark_path(tree, &path, &mut out);
        note_branches(tree, &path.nodes, |_| true, |_| true, &mut out);
        let model = session.model_at_end(&path.nodes, &mut source)?;
        for node in path.nodes {
            let place = tree.entry(node).place;
            let Some(line) = source.object(place)? else { continue };
            session.entry(&line.object, place, model.as_ref(), &mut out)?;
        }
    }
    out.finish(&input.name, &rules::UNKNOWN_TYPE)
}

impl Session {
    /// Reads the ids and parents of all records.
    fn index(input: &Input, out: &mut Translation) -> anyhow::Result<Session> {
        let mut session = Session { tree: Tree::default(), header: None, version: None, count: 0 };
        out.each_line(input, |line, out| session.take(line, out))?;
        session.tree.finish();
        Ok(session)
    }

    fn take(&mut self, line: &LineObject<'_>, out: &mut Translation) {
        let (object, place) = (&line.object, SourcePlace::of(&line.place));
        let kind = object.get("type").unwrap_or_default();
        self.count += 1;
        if kind == "\"session\"" && self.header.is_none() {
            self.header = Some((place, self.count - 1));
            let version = object.number("version").unwrap_or(1);
            self.version = Some(version);
            if version > NEWEST {
                let message = format!("version {version} is read like version {NEWEST}");
                out.remark(Remark { rule: &rules::UNKNOWN_VERSION, place, id: None, message });
            }
            return;
        }
        let is_list = self.version.is_some_and(|version| version < 2);
        let id = object.string("id").filter(|_| !is_list);
        let parent_text = object.string("parentId");
        let parent = match (object.get("parentId"), &parent_text) {
            _ if is_list => ParentName::Previous,
            (None, _) => ParentName::Previous,
            (_, Some(parent)) => ParentName::Id(parent),
            (Some(_), None) => ParentName::None,
        };
        if self.tree.add(place, id.as_deref(), parent, ()) {
            let id = id.map(Cow::into_owned);
            let message = "an earlier record has the same id; its children are read as this one's";
            let message = message.to_owned();
            out.remark(Remark { rule: &rules::DUPLICATE_ID, place, id, message });
        }
    }

    /// Returns the model that the conversation would continue with.
    fn model_at_end(
        &self,
        path: &[Node],
        source: &mut SourceReader<'_>,
    ) -> anyhow::Result<Option<Model>> {
        for node in path.iter().rev() {
            let Some(line) = source.object(self.tree.entry(*node).place)? else { continue };
            if let Some(model) = Model::of_entry(&line.object) {
                return Ok(Some(model));
            }
        }
        Ok(None)
    }

    /// Translates a record of the path.
    fn entry(
        &self,
        entry: &Object<'_>,
        place: SourcePlace,
        model: Option<&Model>,
        out: &mut Translation,
    ) -> anyhow::Result<()> {
        let own = entry.string("id").filter(|_| self.version.is_none_or(|version| version > 1));
        let id = own.unwrap_or_else(|| Cow::Owned(id::address(place.offset)));
        let ts = entry.get("timestamp").and_then(time::of_text);
        let line = SourceLine { place, id, ts };
        match entry.string("type").as_deref() {
            Some("message") => message::message(entry, &line, model, out),
            Some("custom_message") => {
                let content = entry.get("content").unwrap_or("\"\"");
                out.user(&line, &message::content(content))
            }
            Some("branch_summary") => match entry.string("summary").filter(|it| !it.is_empty()) {
                Some(summary) => out.user(&line, &json::quote(&branch_summary(&summary))),
                None => out.imported(&line, entry.text()),
            },
            Some("compaction") => self.compaction(entry, &line, out),
            Some("checkpoint") => out.record(&line, 1, "checkpoint", |it| checkpoint(entry, it)),
            Some("session_info") if entry.string("name").is_some() => {
                out.record(&line, 1, "label", |it| {
                    it.raw("label", entry.get("name").unwrap_or_default())
                })
            }
            kind => {
                if !matches!(kind, Some(kind) if SETTINGS.contains(&kind)) {
                    let what = kind.map_or("records without a type".to_owned(), |kind| {
                        format!("records of the unknown type '{kind}'")
                    });
                    out.unknown(what, place);
                }
                out.imported(&line, entry.text())
            }
        }
    }

    fn compaction(
        &self,
        entry: &Object<'_>,
        line: &SourceLine<'_>,
        out: &mut Translation,
    ) -> anyhow::Result<()> {
        let by_index = entry.number("firstKeptEntryIndex").and_then(|index| self.at_index(index));
        let by_index = by_index.map(|place| Cow::Owned(id::address(place.offset)));
        let first_kept = by_index.or_else(|| entry.string("firstKeptEntryId"));
        let first_kept = first_kept.filter(|id| !id.is_empty()).unwrap_or("(none)".into());
        let details = entry.get("details").and_then(|raw| Object::parse(raw).ok());
        let list = |name: &str| -> Vec<&str> {
            details.as_ref().and_then(|it| it.get(name)).and_then(elements).unwrap_or_default()
        };
        out.record(line, 1, "compaction", |it| {
            it.raw("summary", entry.get("summary").unwrap_or("\"\""))
                .string("first_kept_entry_id", &first_kept)
                .optional(Members::raw, "tokens_before", entry.get("tokensBefore"))
                .object("details", |it| {
                    it.list("read_files", list("readFiles"))
                        .list("modified_files", list("modifiedFiles"))
                })
        })
    }

    /// Returns the place of a record by its index in the file, as version 1 names the first kept one.
    fn at_index(&self, index: u64) -> Option<SourcePlace> {
        let index = usize::try_from(index).ok()?;
        let headers = usize::from(self.header.is_some_and(|(_, header)| header < index));
        let node = index.checked_sub(headers).filter(|node| *node < self.tree.len())?;
        Some(self.tree.entry(Node::try_from(node).ok()?).place)
    }
}

/// The types of records that hold settings and are not part of the conversation.
const SETTINGS: [&str; 6] =
    ["thinking_level_change", "model_change", "custom", "label", "session_info", "session"];

/// Writes the header of the session.
fn header(object: &Object<'_>, place: SourcePlace, out: &mut Translation) -> anyhow::Result<()> {
    let id = object.string("id").unwrap_or_else(|| Cow::Owned(id::address(place.offset)));
    let ts = object.get("timestamp").and_then(time::of_text);
    let line = SourceLine { place, id: id.clone(), ts };
    out.record(&line, 1, "session", |it| {
        it.string("key", &id).optional(Members::raw, "created", object.get("timestamp")).object(
            "source",
            |it| {
                it.string("dialect", "pi")
                    .number("version", object.number("version").unwrap_or(1))
                    .optional(Members::raw, "cwd", object.get("cwd"))
                    .optional(Members::raw, "parent", object.get("parentSession"))
            },
        )
    })
}

/// Adds the members of a checkpoint, which only GoClaw writes.
fn checkpoint(entry: &Object<'_>, members: Members) -> Members {
    let inner = entry.get("checkpoint").and_then(|raw| Object::parse(raw).ok());
    let get = |name: &str| entry.get(name).or_else(|| inner.as_ref().and_then(|it| it.get(name)));
    let list = |name: &str| get(name).filter(|raw| raw.starts_with('['));
    members
        .raw("summary", get("summary").filter(|raw| raw.starts_with('"')).unwrap_or("\"\""))
        .optional(Members::raw, "topics", list("topics"))
        .optional(Members::raw, "key_decisions", list("keyDecisions"))
        .optional(Members::raw, "open_questions", list("openQuestions"))
        .optional(Members::raw, "tokens_at_checkpoint", get("tokensAtCheckpoint"))
        .optional(Members::raw, "message_count_at_checkpoint", get("messageCountAtCheckpoint"))
}

/// Returns the text that pi sends for the summary of a branch.
fn branch_summary(summary: &str) -> String {
    format!(
        "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
    )
}

#[cfg(test)]
mod tests;
