//! A session of pi in version 3: one chain of records.

use super::{Exported, ExportedMessage, timestamp};
use crate::json::write::{self, Members};
use crate::json::{self, Object, elements};
use crate::record::content::Block;

/// Returns the text of the file.
pub fn text(exported: &Exported) -> String {
    let mut chain = Chain { text: String::new(), count: 0 };
    chain.text.push_str(
        &Members::of_type("session")
            .number("version", 3)
            .string("id", &exported.uuid(0))
            .string("timestamp", &timestamp(exported.time))
            .string("cwd", &exported.directory)
            .into_line(),
    );
    if let Some(summary) = exported.summary() {
        // A compaction must name an earlier record as the first one kept, so write an empty record
        // before it.
        let time = timestamp(exported.time);
        chain.entry("custom", &time, |it| it.string("customType", "clawutils"));
        let kept = chain.id(chain.count);
        chain.entry("compaction", &time, |it| {
            it.string("summary", summary)
                .string("firstKeptEntryId", &kept)
                .number("tokensBefore", 0)
        });
    }
    for message in &exported.messages {
        if message.is_reply() {
            chain.message(message, |it| reply(message, it));
            continue;
        }
        let (results, others) = message.parts();
        for result in &results {
            chain.message(message, |it| tool_result(result, message, it));
        }
        if !others.is_empty() {
            let content = write::list(others.iter().map(|block| content(&block.raw)));
            chain.message(message, |it| it.string("role", "user").raw("content", &content));
        }
    }
    if let Some(title) = &exported.title {
        let last = exported.messages.last().map_or(exported.time, |last| last.time());
        chain.entry("session_info", &timestamp(last), |it| it.string("name", title));
    }
    chain.text
}

/// The records written so far, each with the id of the one before it.
struct Chain {
    text: String,
    count: usize,
}

impl Chain {
    fn id(&self, number: usize) -> String {
        format!("{number:08x}")
    }

    fn entry(&mut self, kind: &str, time: &str, add: impl FnOnce(Members) -> Members) {
        let parent = (self.count > 0).then(|| self.id(self.count));
        self.count += 1;
        let members = Members::of_type(kind)
            .string("id", &self.id(self.count))
            .or_null(Members::string, "parentId", parent.as_deref())
            .string("timestamp", time);
        self.text.push_str(&add(members).into_line());
    }

    fn message(&mut self, message: &ExportedMessage, add: impl FnOnce(Members) -> Members) {
        let millis = message.time().div_euclid(1000);
        self.entry("message", &message.timestamp(), |it| {
            it.object("message", |it| add(it).number("timestamp", millis))
        });
    }
}

fn reply(message: &ExportedMessage, members: Members) -> Members {
    let counts = [
        ("input", message.count("input_tokens")),
        ("output", message.count("output_tokens")),
        ("cacheRead", message.count("cache_read_input_tokens")),
        ("cacheWrite", message.count("cache_creation_input_tokens")),
    ];
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let usage = |it: Members| {
        let it = counts.iter().fold(it, |it, (name, count)| it.number(name, *count));
        let cost = |it: Members| {
            let it = counts.iter().fold(it, |it, (name, _)| it.number(name, 0));
            it.number("total", 0)
        };
        it.number("totalTokens", total).object("cost", cost)
    };
    let blocks = message.blocks();
    // Only sessions of pi and Claude Code name the provider.
    let provider = message.facts.provider.as_deref().unwrap_or(match message.model() {
        model if model.starts_with("gpt-") => "openai",
        _ => "anthropic",
    });
    let api = if provider == "openai" { "openai-responses" } else { "anthropic-messages" };
    members
        .string("role", "assistant")
        .list("content", blocks.iter().map(reply_block))
        .string("api", api)
        .string("provider", provider)
        .string("model", message.model())
        .object("usage", usage)
        .string("stopReason", if message.has_calls() { "toolUse" } else { "stop" })
}

fn reply_block(block: &Block<'_>) -> String {
    let Ok(object) = Object::parse(&block.raw) else { return block.raw.to_string() };
    let get = |name: &str| object.get(name).unwrap_or("\"\"");
    match object.string("type").as_deref() {
        Some("tool_use") => Members::of_type("toolCall")
            .raw("id", get("id"))
            .raw("name", get("name"))
            .raw("arguments", object.get("input").unwrap_or("{}"))
            .into_json(),
        Some("thinking") => Members::of_type("thinking")
            .raw("thinking", get("thinking"))
            .raw("thinkingSignature", get("signature"))
            .into_json(),
        Some("redacted_thinking") => Members::of_type("thinking")
            .string("thinking", "[Reasoning redacted]")
            .raw("thinkingSignature", get("data"))
            .bool("redacted", true)
            .into_json(),
        _ => content(&block.raw),
    }
}

fn tool_result(block: &Block<'_>, message: &ExportedMessage, members: Members) -> Members {
    let object = Object::parse(&block.raw);
    let get = |name: &str| object.as_ref().ok().and_then(|it| it.get(name));
    let raw = get("content").unwrap_or("\"\"");
    let blocks = match elements(raw) {
        Some(blocks) => write::list(blocks.into_iter().map(content)),
        None => write::list([text_block(raw)]),
    };
    let call = get("tool_use_id").unwrap_or("\"\"");
    let tool = json::string(call).unwrap_or_default();
    members
        .string("role", "toolResult")
        .raw("toolCallId", call)
        .string("toolName", message.tool_of(&tool))
        .raw("content", &blocks)
        .bool("isError", get("is_error") == Some("true"))
}

fn text_block(raw: &str) -> String {
    Members::of_type("text").raw("text", raw).into_json()
}

/// Converts a text or image block to pi's form. Any other block becomes text with its JSON, because pi has no
/// equivalent block.
fn content(raw: &str) -> String {
    let Ok(object) = Object::parse(raw) else { return text_block(&json::quote(raw)) };
    let source = object.object("source");
    match (object.string("type").as_deref(), source) {
        (Some("text"), _) => text_block(object.get("text").unwrap_or("\"\"")),
        (Some("image"), Some(source)) if source.get("data").is_some() => Members::of_type("image")
            .raw("data", source.get("data").unwrap_or("\"\""))
            .raw("mimeType", source.get("media_type").unwrap_or("\"\""))
            .into_json(),
        _ => text_block(&json::quote(raw)),
    }
}
