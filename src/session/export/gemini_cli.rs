//! A chat of Gemini CLI: a line that describes the session, and a line for each message.
//!
//! Calls and results are parts of messages, as after a resume. If results were members of their calls, as Gemini CLI 0.61
//! writes them first, it would send them twice once it has resumed the session, which Gemini refuses.

use super::{Exported, ExportedMessage};
use crate::json::write::Members;
use crate::json::{self, Object, elements, quote};
use crate::messages::summary;
use crate::record::content::{Block, BlockKind, Content, Role};
use sha2::{Digest, Sha256};

/// Returns the text of the file.
pub fn text(exported: &Exported) -> String {
    let hash = Sha256::digest(&exported.directory);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let last = exported.messages.last().map_or(exported.time, ExportedMessage::time);
    let header = Members::new()
        .string("sessionId", &exported.uuid(0))
        .string("projectHash", &hash)
        .string("startTime", &super::timestamp(exported.time))
        .string("lastUpdated", &super::timestamp(last))
        .string("kind", "main")
        .optional(Members::string, "summary", exported.title.as_deref());
    let mut chat = Chat { exported, text: header.into_line(), count: 0 };
    if let Some(summary) = &exported.summary {
        chat.message(Role::User, exported.time, None, &[text_part(&quote(summary))]);
        let Content::Text(reply) = summary::acknowledgement().content else { return chat.text };
        chat.message(Role::Assistant, exported.time, None, &[text_part(&reply)]);
    }
    for message in &exported.messages {
        let model = message.facts.model.as_deref().filter(|_| message.is_reply());
        // The files after a response belong to it, so a prompt has a line of its own.
        let (results, others) = message.parts();
        for blocks in [results, others] {
            let parts: Vec<String> = blocks.iter().flat_map(|it| parts(it, message)).collect();
            chat.message(message.message.role, message.time(), model, &parts);
        }
    }
    chat.text
}

/// The lines written so far.
struct Chat<'e> {
    exported: &'e Exported,
    text: String,
    count: usize,
}

impl Chat<'_> {
    fn message(&mut self, role: Role, time: i64, model: Option<&str>, parts: &[String]) {
        if parts.is_empty() {
            return;
        }
        self.count += 1;
        let line = Members::new()
            .string("id", &self.exported.uuid(self.count))
            .string("timestamp", &super::timestamp(time))
            .string("type", if role == Role::User { "user" } else { "gemini" })
            .list("content", parts)
            .optional(Members::string, "model", model);
        self.text.push_str(&line.into_line());
    }
}

fn text_part(text: &str) -> String {
    Members::new().raw("text", text).into_json()
}

/// Returns a block as parts. A prompt that Gemini CLI would take for a command gets a word before it.
fn parts(block: &Block<'_>, message: &ExportedMessage) -> Vec<String> {
    let object = Object::parse(&block.raw).ok();
    let get = |name: &str| object.as_ref().and_then(|object| object.get(name));
    match &block.kind {
        BlockKind::ToolUse { .. } => {
            let call = |it: Members| {
                it.raw("id", get("id").unwrap_or("\"\""))
                    .raw("name", get("name").unwrap_or("\"\""))
                    .raw("args", get("input").unwrap_or("{}"))
            };
            vec![Members::new().object("functionCall", call).into_json()]
        }
        BlockKind::ToolResult { id } => result(id, get("content"), get("is_error"), message),
        BlockKind::Thinking { .. } => Vec::new(),
        BlockKind::Text | BlockKind::Blank => {
            let text = block.text().unwrap_or_default();
            let is_command = !message.is_reply() && text.trim_start().starts_with(['/', '?']);
            let text = if is_command { format!("[prompt] {text}") } else { text };
            vec![text_part(&quote(&text))]
        }
        BlockKind::Media | BlockKind::Other => {
            vec![media(&block.raw).unwrap_or_else(|| text_part(&quote(&block.raw)))]
        }
    }
}

/// Returns a result as a response, and the files in it as parts after it.
fn result(
    id: &str,
    content: Option<&str>,
    is_error: Option<&str>,
    message: &ExportedMessage,
) -> Vec<String> {
    let content = content.unwrap_or("\"\"");
    let blocks = elements(content).unwrap_or_default();
    let files: Vec<String> = blocks.iter().filter_map(|block| media(block)).collect();
    let text = |block: &&str| Some(Object::parse(block).ok()?.string("text")?.into_owned());
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    let text = json::string(content).map_or_else(|| texts.join("\n"), std::borrow::Cow::into_owned);
    let name = if is_error == Some("true") { "error" } else { "output" };
    let response = |it: Members| {
        it.string("id", id)
            .string("name", message.tool_of(id))
            .object("response", |it| it.string(name, &text))
    };
    let response = Members::new().object("functionResponse", response).into_json();
    std::iter::once(response).chain(files).collect()
}

/// Returns a file as a part.
fn media(block: &str) -> Option<String> {
    let source = Object::parse(block).ok()?.object("source")?;
    let (media_type, data) = (source.get("media_type")?, source.get("data")?);
    let data = |it: Members| it.raw("mimeType", media_type).raw("data", data);
    Some(Members::new().object("inlineData", data).into_json())
}
