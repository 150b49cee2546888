//! A project file of Claude Code: one chain of records. Each block of a reply and each tool result has its own record;
//! the rest of a user message is one record.
//!
//! Version 2.0.76 of Claude Code resumes from the record with the newest time. If several records have that time, it
//! resumes from the first of them and loses the rest. Therefore, each record is at least a millisecond newer than the
//! one before it.

use super::{Exported, ExportedMessage, timestamp};
use crate::json::write::Members;
use crate::record::content::Block;

/// The version of Claude Code that the records name.
const VERSION: &str = "2.1.330";

/// Returns the text of the file.
pub fn text(exported: &Exported) -> String {
    let mut chain = Chain { exported, text: String::new(), count: 0, time: i64::MIN };
    if let Some(summary) = exported.summary() {
        chain.record("system", exported.time, |it| {
            it.string("subtype", "compact_boundary")
                .string("content", "Conversation compacted")
                .string("level", "info")
                .object("compactMetadata", |it| it.string("trigger", "manual"))
        });
        chain.record("user", exported.time, |it| {
            it.bool("isCompactSummary", true)
                .bool("isVisibleInTranscriptOnly", true)
                .object("message", |it| it.string("role", "user").string("content", summary))
        });
    }
    for (index, message) in exported.messages.iter().enumerate() {
        if message.is_reply() {
            chain.reply(message, index);
            continue;
        }
        let (results, others) = message.parts();
        for result in &results {
            chain.user(message, std::slice::from_ref(result));
        }
        if !others.is_empty() {
            chain.user(message, &others);
        }
    }
    if let Some(title) = &exported.title {
        let title = Members::of_type("custom-title").string("customTitle", title);
        chain.text.push_str(&title.string("sessionId", &exported.uuid(0)).into_line());
    }
    chain.text
}

/// The records written so far, each with the id of the one before it.
struct Chain<'e> {
    exported: &'e Exported,
    text: String,
    count: usize,
    /// The time of the last record, in microseconds since 1970.
    time: i64,
}

/// The smallest difference between two times that Claude Code distinguishes, in microseconds.
const MILLISECOND: i64 = 1000;

impl Chain<'_> {
    fn record(&mut self, kind: &str, time: i64, add: impl FnOnce(Members) -> Members) {
        self.time = time.max(self.time.saturating_add(MILLISECOND));
        let parent = (self.count > 0).then(|| self.exported.uuid(self.count));
        self.count += 1;
        let members = Members::new()
            .or_null(Members::string, "parentUuid", parent.as_deref())
            .bool("isSidechain", false)
            .string("userType", "external")
            .string("cwd", &self.exported.directory)
            .string("sessionId", &self.exported.uuid(0))
            .string("version", VERSION)
            .string("type", kind)
            .string("uuid", &self.exported.uuid(self.count))
            .string("timestamp", &timestamp(self.time));
        self.text.push_str(&add(members).into_line());
    }

    fn user(&mut self, message: &ExportedMessage, blocks: &[Block<'_>]) {
        self.record("user", message.time(), |it| {
            it.flag("isMeta", message.is_hidden && !blocks.iter().all(Block::is_result)).object(
                "message",
                |it| {
                    it.string("role", "user")
                        .list("content", blocks.iter().map(|block| &*block.raw))
                },
            )
        });
    }

    fn reply(&mut self, message: &ExportedMessage, index: usize) {
        let id = format!("msg_{}", self.exported.uuid(index).replace('-', ""));
        let stop_reason = if message.has_calls() { "tool_use" } else { "end_turn" };
        let usage = |it: Members| {
            [
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "output_tokens",
            ]
            .into_iter()
            .fold(it, |it, name| it.number(name, message.count(name)))
        };
        for block in message.blocks() {
            self.record("assistant", message.time(), |it| {
                it.object("message", |it| {
                    it.string("id", &id)
                        .string("type", "message")
                        .string("role", "assistant")
                        .string("model", message.model())
                        .list("content", [&*block.raw])
                        .string("stop_reason", stop_reason)
                        .raw("stop_sequence", "null")
                        .object("usage", usage)
                })
            });
        }
    }
}
