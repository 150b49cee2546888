//! The weights of messages and of their blocks, in units of [`script::UNIT`]: text by script, images by size, and a
//! fixed weight for what a provider adds around each message, call and result.

use super::{Kinds, Method, images, script};
use crate::json::{self, Object, elements};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content};

/// The weight of a message's overhead: role and turn markers. No provider publishes the number; the chat
/// templates of open models take 4 to 8 tokens.
const MESSAGE: u64 = 8 * script::UNIT;
/// The weight of the overhead of a tool call or result: block markers and the id.
const CALL: u64 = 24 * script::UNIT;
/// The weight of the instructions that a provider adds to a request with tools. Anthropic documents 264 to 530
/// tokens, depending on the model.
const TOOLS: u64 = 530 * script::UNIT;
/// The assumed number of base64 bytes per token of a document, whose pages are not counted.
const DOCUMENT_BYTES: u64 = 12;

/// Converts a weight to whole tokens, rounded up.
pub(super) fn tokens(weight: u64) -> u64 {
    weight.div_ceil(script::UNIT)
}

fn text(text: &str, method: Method) -> u64 {
    match method {
        Method::Script => script::weigh(text),
        Method::Chars4 => text.chars().count() as u64 / 4 * script::UNIT,
    }
}

pub(super) fn weigh_system(system: &str, method: Method) -> u64 {
    match method {
        Method::Script => script::weigh(system),
        Method::Chars4 => 0,
    }
}

pub(super) fn weigh_tools(tools: &str, method: Method) -> u64 {
    match method {
        Method::Script => TOOLS + script::weigh(tools),
        Method::Chars4 => 0,
    }
}

/// Returns the weight of a message and adds it to `kinds`.
pub(super) fn weigh(message: &Message<'_>, method: Method, kinds: &mut Kinds) -> u64 {
    let overhead = if method == Method::Script { MESSAGE } else { 0 };
    kinds.other += overhead;
    let content = match &message.content {
        Content::Text(raw) => {
            let weight = text(&json::string(raw).unwrap_or_default(), method);
            kinds.text += weight;
            weight
        }
        Content::Blocks(blocks) => {
            blocks.iter().map(|block| weigh_block(block, method, kinds)).sum()
        }
    };
    overhead + content
}

pub(super) fn weight_of(block: &Block<'_>) -> u64 {
    weigh_block(block, Method::Script, &mut Kinds::default())
}

fn weigh_block(block: &Block<'_>, method: Method, kinds: &mut Kinds) -> u64 {
    let Ok(object) = Object::parse(&block.raw) else { return 0 };
    let string = |name: &str| object.string(name).map_or(0, |value| text(&value, method));
    let script = method == Method::Script;
    let (kind, weight) = match block.kind {
        BlockKind::Text | BlockKind::Blank => (&mut kinds.text, string("text")),
        BlockKind::ToolUse { .. } => {
            let name = if script { CALL + string("name") } else { 0 };
            let input = object.get("input").map_or(0, |input| text(&as_sent(input), method));
            (&mut kinds.calls, name + input)
        }
        BlockKind::ToolResult { .. } => {
            let overhead = if script { CALL } else { 0 };
            let content = object.get("content").map_or(0, |raw| weigh_result(raw, method));
            (&mut kinds.results, overhead + content)
        }
        BlockKind::Thinking { .. } => {
            let is_redacted = object.get("thinking").is_none();
            let weigh = || if is_redacted { script::weigh(&block.raw) } else { string("thinking") };
            (&mut kinds.thinking, if script { weigh() } else { 0 })
        }
        BlockKind::Media => (&mut kinds.media, if script { weigh_media(&object) } else { 0 }),
        BlockKind::Other => (&mut kinds.other, if script { script::weigh(&block.raw) } else { 0 }),
    };
    *kind += weight;
    weight
}

/// Returns JSON with its `\u` escapes decoded, as a model reads it.
fn as_sent(json: &str) -> String {
    if !json.contains("\\u") {
        return json.to_owned();
    }
    // Invalid JSON is weighed unchanged.
    serde_json::from_str::<serde_json::Value>(json)
        .map_or(json.to_owned(), |value| value.to_string())
}

fn weigh_result(raw: &str, method: Method) -> u64 {
    if let Some(value) = json::string(raw) {
        return text(&value, method);
    }
    if method == Method::Chars4 {
        return 0;
    }
    let blocks = elements(raw).unwrap_or_default();
    let kinds = &mut Kinds::default();
    let block = |raw| Block::parse(raw).map_or(0, |block| weigh_block(&block, method, kinds));
    blocks.into_iter().map(block).sum()
}

fn weigh_media(object: &Object<'_>) -> u64 {
    let source = object.get("source").and_then(|source| Object::parse(source).ok());
    let unknown = images::UNKNOWN * script::UNIT;
    let Some(source) = source else { return unknown };
    let data = source.string("data").unwrap_or_default();
    let is_document = object.string("type").as_deref() == Some("document");
    match source.string("type").as_deref() {
        Some("text") => script::weigh(&data),
        Some("base64") if is_document => {
            (data.len() as u64 / DOCUMENT_BYTES * script::UNIT).max(unknown)
        }
        Some("base64") => images::tokens(&data) * script::UNIT,
        _ => unknown,
    }
}
