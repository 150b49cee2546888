//! Calls and results as text, for models that take neither in a conversation.
//!
//! The template of such a model refuses the role of a result, or its server refuses calls in a request without tools.

use crate::json::Object;
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content};
use std::collections::HashMap;

/// Returns true if a message has a call or a result.
#[must_use]
pub fn has_calls(messages: &[Message<'_>]) -> bool {
    messages.iter().flat_map(Message::blocks).any(is_call_or_result)
}

/// Returns the messages with a line of text in the place of each call, and the content in that of each result, after a line
/// that names the tool.
#[must_use]
pub fn without_calls<'a>(messages: &[Message<'a>]) -> Vec<Message<'a>> {
    let names = names(messages);
    let plain = |message: &Message<'a>| {
        if !message.blocks().any(is_call_or_result) {
            return message.clone();
        }
        let blocks = message.blocks().flat_map(|block| block_as_text(block, &names)).collect();
        Message { content: Content::Blocks(blocks), ..message.clone() }
    };
    messages.iter().map(plain).collect()
}

fn is_call_or_result(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::ToolUse { .. } | BlockKind::ToolResult { .. })
}

/// Returns the names of the tools that were called, by the ids of the calls.
fn names(messages: &[Message<'_>]) -> HashMap<String, String> {
    let calls = messages.iter().flat_map(Message::blocks);
    let name = |block: &Block<'_>| match &block.kind {
        BlockKind::ToolUse { id, .. } => Some((id.to_string(), name_of(block))),
        _ => None,
    };
    calls.filter_map(name).collect()
}

fn name_of(call: &Block<'_>) -> String {
    let object = Object::parse(&call.raw).ok();
    object.and_then(|object| Some(object.string("name")?.into_owned())).unwrap_or_default()
}

fn block_as_text<'a>(block: &Block<'a>, names: &HashMap<String, String>) -> Vec<Block<'a>> {
    match &block.kind {
        BlockKind::ToolUse { .. } => {
            let input = block.member("input").unwrap_or("{}");
            vec![Block::from_text(&format!("[call of {}: {input}]", name_of(block)))]
        }
        BlockKind::ToolResult { id } => {
            let name = names.get(id.as_ref()).map_or("a tool", String::as_str);
            let head = Block::from_text(&format!("[result of {name}]"));
            let content = block.result_content().into_owned();
            std::iter::once(head).chain(content.into_blocks()).collect()
        }
        _ => vec![block.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn calls_and_results_become_text_and_all_else_stays() {
        let lines = r#"{"role":"user","content":"Read a and see b."}
{"role":"assistant","content":[{"type":"text","text":"Yes."},{"type":"tool_use","id":"c","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"d","name":"see","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"hello"},{"type":"tool_result","tool_use_id":"d","content":[{"type":"image","source":{"type":"url","url":"x"}}]},{"type":"text","text":"Next."}]}
{"role":"assistant","content":"Done."}"#;
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        assert!(has_calls(&messages));
        let plain = without_calls(&messages);
        assert!(!has_calls(&plain));
        let lines: Vec<String> = plain.iter().map(Message::to_json).collect();
        assert_eq!(
            lines,
            [
                r#"{"role":"user","content":"Read a and see b."}"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"Yes."},{"type":"text","text":"[call of read: {\"path\":\"a\"}]"},{"type":"text","text":"[call of see: {}]"}]}"#,
                r#"{"role":"user","content":[{"type":"text","text":"[result of read]"},{"type":"text","text":"hello"},{"type":"text","text":"[result of see]"},{"type":"image","source":{"type":"url","url":"x"}},{"type":"text","text":"Next."}]}"#,
                r#"{"role":"assistant","content":"Done."}"#,
            ]
        );
    }
}
