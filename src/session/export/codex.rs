//! A rollout file of Codex: a header, and the items of the Responses API. Events show the texts again, for the list of
//! sessions and the display; Codex 0.171.0 reads those of older versions, which are simpler.

use super::{Exported, ExportedMessage, timestamp};
use crate::dialect::codex::item::is_context;
use crate::json::write::{self, Members};
use crate::json::{self, Object, elements};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Role};

/// The version of Codex that the header names.
const VERSION: &str = "0.171.0";

/// Returns the text of the file.
pub fn text(exported: &Exported) -> String {
    let mut rollout = Rollout { text: String::new() };
    let time = timestamp(exported.time);
    rollout.record(&time, "session_meta", |it| {
        it.string("id", &exported.uuid(0))
            .string("timestamp", &time)
            .string("cwd", &exported.directory)
            .string("originator", "codex_cli_rs")
            .string("cli_version", VERSION)
            .string("source", "cli")
    });
    if let Some(summary) = exported.summary() {
        let summary_item = item(Role::User, &[Block::from_text(summary)]);
        rollout.record(&time, "compacted", |it| {
            it.string("message", summary).list("replacement_history", [summary_item])
        });
    }
    for message in &exported.messages {
        rollout.message(message);
    }
    rollout.text
}

/// The records written so far.
struct Rollout {
    text: String,
}

impl Rollout {
    fn record(&mut self, time: &str, kind: &str, payload: impl FnOnce(Members) -> Members) {
        let record = Members::new().string("timestamp", time).string("type", kind);
        self.text.push_str(&record.object("payload", payload).into_line());
    }

    fn message(&mut self, message: &ExportedMessage) {
        let time = message.timestamp();
        if message.is_reply() {
            self.event(&time, "agent_message", message);
        }
        for item in items(message) {
            self.record(&time, "response_item", |it| it.spread(&item));
        }
        if !message.is_reply() {
            self.event(&time, "user_message", message);
        }
    }

    /// Writes an event with the text of a message, if the user saw any.
    fn event(&mut self, time: &str, kind: &str, message: &ExportedMessage) {
        let texts = message.blocks().into_iter().filter_map(|block| block.text());
        let texts: Vec<String> = texts.filter(|text| !is_context(text)).collect();
        if !texts.is_empty() && !message.is_hidden {
            self.record(time, "event_msg", |it| {
                it.string("type", kind).string("message", &texts.join("\n\n"))
            });
        }
    }
}

/// Returns the items of a message: an item for each call and each result, and messages of the blocks between them.
fn items(message: &ExportedMessage) -> Vec<String> {
    let Message { role, .. } = message.message;
    let (mut items, mut blocks) = (Vec::new(), Vec::new());
    for block in message.blocks() {
        let own = match &block.kind {
            BlockKind::ToolUse { .. } => call(&block),
            BlockKind::ToolResult { .. } => result(&block),
            BlockKind::Thinking { .. } => continue,
            _ => None,
        };
        match own {
            Some(own) => {
                items
                    .extend((!blocks.is_empty()).then(|| item(role, &std::mem::take(&mut blocks))));
                items.push(own);
            }
            None => blocks.push(block),
        }
    }
    items.extend((!blocks.is_empty()).then(|| item(role, &blocks)));
    items
}

fn item(role: Role, blocks: &[Block<'_>]) -> String {
    let text = if role == Role::User { "input_text" } else { "output_text" };
    let parts = blocks.iter().map(|block| part(text, &block.raw));
    Members::of_type("message").string("role", role.name()).list("content", parts).into_json()
}

fn call(block: &Block<'_>) -> Option<String> {
    let call = Object::parse(&block.raw).ok()?;
    let item = Members::of_type("function_call")
        .raw("name", call.get("name")?)
        .string("arguments", call.get("input")?)
        .raw("call_id", call.get("id")?);
    Some(item.into_json())
}

fn result(block: &Block<'_>) -> Option<String> {
    let result = Object::parse(&block.raw).ok()?;
    let content = result.get("content").unwrap_or("\"\"");
    let output = match elements(content) {
        Some(blocks) => write::list(blocks.into_iter().map(|block| part("input_text", block))),
        None => content.to_owned(),
    };
    let item = Members::of_type("function_call_output")
        .raw("call_id", result.get("tool_use_id")?)
        .raw("output", &output);
    Some(item.into_json())
}

/// Returns a part of a message or an output. Text has the type `text`; any block without an equivalent becomes its JSON.
fn part(text: &str, block: &str) -> String {
    let object = Object::parse(block).ok();
    let get = |name: &str| object.as_ref().and_then(|object| object.get(name));
    let source = get("source").and_then(|source| Object::parse(source).ok());
    let of_source = |name: &str| source.as_ref().and_then(|source| source.string(name));
    let url = match (of_source("media_type"), of_source("data"), of_source("url")) {
        (Some(media_type), Some(data), _) => Some(format!("data:{media_type};base64,{data}")),
        (_, _, url) => url.map(std::borrow::Cow::into_owned),
    };
    match (get("type"), get("text"), url) {
        (Some("\"text\""), Some(own), _) => Members::of_type(text).raw("text", own),
        (Some("\"image\""), _, Some(url)) => {
            Members::of_type("input_image").string("image_url", &url)
        }
        _ => Members::of_type(text).raw("text", &json::quote(block)),
    }
    .into_json()
}
