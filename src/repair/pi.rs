//! Sessions of pi, OpenClaw and GoClaw; see [`crate::dialect::pi`]. pi itself leaves out empty texts and replies that
//! failed, and sends the thinking of other models as text.

use super::blocks::{judge_base64, judge_call, judge_images, judge_thinking};
use super::program::{
    Context, Links, Mended, NO_RESULT, Part, PartKind, Program, Said, text_block, with,
};
use super::salvage;
use super::sheet::Sheet;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::record::content::Role;
use crate::record::digest;
use memchr::memmem;

/// pi.
pub(super) struct Pi {
    /// True if the records form a tree, as from version 2 on.
    is_tree: bool,
}

impl Pi {
    /// Returns the format of a file.
    pub(super) fn of(bytes: &[u8]) -> Pi {
        Pi { is_tree: memmem::find(bytes, b"\"parentId\"").is_some() }
    }
}

impl Program for Pi {
    fn links(&self) -> Option<Links> {
        self.is_tree.then_some(Links { id: "id", parent: "parentId" })
    }

    /// pi opens a file only if its first line is the header.
    fn begin(&self, sheet: &mut Sheet<'_>, name: &str) -> Result<(), String> {
        let Some((first, record)) = sheet.records().next() else { return Ok(()) };
        if record.string("type").as_deref() == Some("session") {
            return Ok(());
        }
        let version = if self.is_tree { 3 } else { 1 };
        let torn = salvage::torn(sheet, first);
        let cwd = salvage::string(&torn, "cwd").unwrap_or_else(|| ".".to_owned());
        let id = salvage::string(&torn, "id").or_else(|| salvage::uuid(name));
        let header = Members::of_type("session")
            .number("version", version)
            .string("id", &id.unwrap_or_else(|| digest(name)))
            .optional(Members::raw, "timestamp", record.get("timestamp"))
            .string("cwd", &cwd)
            .into_json();
        sheet.insert(first, header, "the header of the session is missing");
        Ok(())
    }

    fn sent(&self, sheet: &Sheet<'_>, path: &[usize]) -> Vec<usize> {
        if self.is_tree { path.to_vec() } else { (0..sheet.len()).collect() }
    }

    fn said<'a>(&self, text: &'a str) -> Option<Said<'a>> {
        let record = Object::parse(text).ok()?;
        let (reply, model) = (None, None);
        let prompt = |content| {
            Some(Said { role: Role::User, reply: None, model: None, parts: blocks(content) })
        };
        match record.string("type").as_deref()? {
            "message" => {}
            "custom_message" => return prompt(record.get("content")),
            "branch_summary" | "compaction" => return prompt(None),
            _ => return None,
        }
        let raw = record.get("message")?;
        let message = Object::parse(raw).ok()?;
        match message.string("role").as_deref()? {
            "assistant" => {
                let stop = message.get("stopReason");
                let is_sent = !matches!(stop, Some("\"error\"" | "\"aborted\""));
                let (role, model) = (Role::Assistant, message.string("model"));
                let parts = blocks(message.get("content"));
                is_sent.then_some(Said { role, reply, model, parts })
            }
            "toolResult" => {
                let kind = PartKind::Result(message.string("toolCallId").unwrap_or_default());
                let parts = vec![Part { raw, kind }];
                Some(Said { role: Role::User, reply, model, parts })
            }
            "bashExecution" if message.is_true("excludeFromContext") => None,
            "bashExecution" => prompt(None),
            // A message without content is a part that cannot be sent.
            _ => prompt(message.get("content").filter(|it| *it != "[]").or(Some(raw))),
        }
    }

    fn judge(&self, part: &Part<'_>, context: Context<'_>) -> Mended {
        let Ok(block) = Object::parse(part.raw) else { return Mended::Fine };
        if matches!(part.kind, PartKind::Result(_)) {
            return judge_images(part.raw, &block, "content", judge_image);
        }
        match part.kind {
            PartKind::Call(_) => judge_call(part.raw, "name", "arguments"),
            PartKind::Thinking if context.drops_thinking => judge_thinking(None, context),
            PartKind::Thinking if context.model == context.now => {
                match block.get("thinkingSignature") {
                    // Without a signature, pi sends the thinking as text. Other APIs than Anthropic's store an object here.
                    Some(seal) if !json::is_blank(seal) && !seal.contains('{') => {
                        judge_thinking(Some(seal), context)
                    }
                    _ => Mended::Fine,
                }
            }
            _ => judge_image(part.raw, &block),
        }
    }

    fn with_parts(&self, text: &str, parts: &[String]) -> String {
        let Ok(record) = Object::parse(text) else { return text.to_owned() };
        if record.string("type").as_deref() == Some("custom_message") {
            return with(text, &["content"], &json::write::list(parts));
        }
        let message = record.get("message").and_then(|message| Object::parse(message).ok());
        match (
            message.and_then(|it| it.string("role").map(std::borrow::Cow::into_owned)).as_deref(),
            parts,
        ) {
            (Some("toolResult"), [only]) => with(text, &["message"], only),
            _ => with(text, &["message", "content"], &json::write::list(parts)),
        }
    }

    /// A `custom` entry is a link of the tree that is not sent. It keeps what it replaces.
    fn silent(&self, text: &str) -> Option<String> {
        let record = Object::parse(text).ok()?;
        let own = |name: &str| record.get(name);
        let silent = Members::of_type("custom")
            .optional(Members::raw, "id", own("id"))
            .optional(Members::raw, "parentId", own("parentId"))
            .optional(Members::raw, "timestamp", own("timestamp"))
            .string("customType", "left-out")
            .raw("data", own("message").or_else(|| own("content")).unwrap_or("null"));
        Some(silent.into_json())
    }

    fn with_call_id(&self, part: &Part<'_>, id: &str) -> String {
        let name = if matches!(part.kind, PartKind::Call(_)) { "id" } else { "toolCallId" };
        with(part.raw, &[name], &json::quote(id))
    }

    fn no_result(&self, call: &Part<'_>, id: &str) -> String {
        let call = Object::parse(call.raw).ok();
        let name = call.as_ref().and_then(|call| call.get("name")).unwrap_or("\"\"");
        Members::new()
            .string("role", "toolResult")
            .string("toolCallId", id)
            .raw("toolName", name)
            .list("content", [text_block("text", NO_RESULT)])
            .bool("isError", true)
            .into_json()
    }

    fn record_of(&self, near: &str, result: &str, id: &str, parent: &str) -> String {
        let near = Object::parse(near).ok();
        let message = near.as_ref().and_then(|near| Object::parse(near.get("message")?).ok());
        let millis = message.as_ref().and_then(|message| message.get("timestamp"));
        let has_time = Object::parse(result).is_ok_and(|result| result.get("timestamp").is_some());
        let result = match millis.filter(|_| !has_time) {
            Some(millis) => with(result, &["timestamp"], millis),
            None => result.to_owned(),
        };
        let links = |it: Members| it.string("id", id).raw("parentId", parent);
        Members::of_type("message")
            .with(|it| if self.is_tree { links(it) } else { it })
            .optional(
                Members::raw,
                "timestamp",
                near.as_ref().and_then(|near| near.get("timestamp")),
            )
            .raw("message", &result)
            .into_json()
    }

    fn new_id(&self, seed: &str) -> String {
        digest(seed)[..8].to_owned()
    }
}

/// Returns the blocks of a content.
fn blocks(content: Option<&str>) -> Vec<Part<'_>> {
    let list = content.and_then(json::elements);
    let only = |raw| vec![Part { raw, kind: PartKind::Other }];
    list.map_or_else(
        || content.map_or_else(Vec::new, only),
        |list| list.into_iter().map(part).collect(),
    )
}

fn part(raw: &str) -> Part<'_> {
    let block = Object::parse(raw).ok();
    let kind = match block.as_ref().and_then(|block| block.get("type")) {
        Some("\"toolCall\"") => {
            let id = block.as_ref().and_then(|block| block.get("id")).and_then(json::string);
            PartKind::Call(id.unwrap_or_default())
        }
        Some("\"thinking\"") if is_sealed(block.as_ref()) => PartKind::Thinking,
        _ => PartKind::Other,
    };
    Part { raw, kind }
}

/// Returns true if a block has a signature, so that it is sent as thinking.
fn is_sealed(block: Option<&Object<'_>>) -> bool {
    block.and_then(|block| block.get("thinkingSignature")).is_some_and(|seal| !json::is_blank(seal))
}

/// Judges an image by its form in Anthropic's API.
fn judge_image(raw: &str, block: &Object<'_>) -> Mended {
    let (Some("\"image\""), Some(data)) = (block.get("type"), block.get("data")) else {
        return Mended::Fine;
    };
    let media_type = block.get("mimeType").unwrap_or("\"\"");
    judge_base64(media_type, data, "text", |media_type, data| {
        with(&with(raw, &["data"], data), &["mimeType"], media_type)
    })
}
