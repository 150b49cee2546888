//! Blocks that an omission leaves out: the line of text in their place.

use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::record::content::{Block, BlockKind};
use crate::record::omission::Omission;

/// The member that replaces the input of a call that is left out.
pub const INPUT: &str = "left_out";

/// Returns the line that replaces a block of `bytes` bytes.
#[must_use]
pub fn line(omission: &Omission, bytes: usize) -> String {
    let Omission { record_id, kind, reason, .. } = omission;
    let (what, colon) = (what(kind), if reason.is_empty() { "" } else { ": " });
    let how = match record_id.is_empty() {
        true => String::new(),
        false => format!("; all of it: claw-rebuild --record {record_id}"),
    };
    format!("[... {what} of {bytes} bytes left out{colon}{reason}{how} ...]")
}

/// Returns the word for a type of block.
#[must_use]
pub fn what(kind: &str) -> &str {
    match kind {
        "tool_result" => "result",
        "tool_use" => "input",
        "redacted_thinking" => "thinking",
        other => other,
    }
}

/// Returns the block that replaces `block`: a line of text, or for a call and a result the same with a line of text as
/// input or content. `None` for thinking, which is left out without a line.
#[must_use]
pub fn of(block: &Block<'_>, omission: &Omission) -> Option<Block<'static>> {
    let bytes = block.raw.len();
    match &block.kind {
        BlockKind::Thinking { .. } => None,
        BlockKind::ToolUse { .. } => {
            let bytes = block.member("input").map_or(bytes, str::len);
            let input = Members::new().string(INPUT, &line(omission, bytes)).into_json();
            Some(with(block, "input", &input))
        }
        BlockKind::ToolResult { .. } => {
            let bytes = block.member("content").map_or(bytes, str::len);
            Some(with(block, "content", &quote(&line(omission, bytes))))
        }
        _ => Some(Block::from_text(&line(omission, bytes))),
    }
}

/// Returns the line that replaces an item of a result. It does not count as text of the result.
#[must_use]
pub fn of_part(part: &Block<'_>, omission: &Omission) -> Block<'static> {
    Block { kind: BlockKind::Other, ..Block::from_text(&line(omission, part.raw.len())) }
}

/// Returns the type of a block, as its JSON text states it.
#[must_use]
pub fn kind_of(block: &Block<'_>) -> String {
    let object = Object::parse(&block.raw).ok();
    object.and_then(|object| Some(object.string("type")?.into_owned())).unwrap_or_default()
}

/// Returns true for a block that is such a line.
#[must_use]
pub fn is_line(block: &Block<'_>) -> bool {
    let object = Object::parse(&block.raw).ok();
    object
        .and_then(|object| object.string("text").map(|text| reads_like_line(&text)))
        .unwrap_or(false)
}

/// Returns true for the text of such a line, or of one that replaces an image in a truncated result.
#[must_use]
pub fn reads_like_line(text: &str) -> bool {
    text.starts_with("[... ") && text.ends_with(" ...]") && text.contains(" bytes left out")
}

fn with(block: &Block<'_>, member: &str, value: &str) -> Block<'static> {
    match Object::parse(&block.raw) {
        Ok(object) => Block { raw: object.with(member, value).into(), kind: block.kind.clone() },
        Err(_) => Block::from_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn omission(kind: &str) -> Omission {
        let (kind, reason) = (kind.to_owned(), "it is refused".to_owned());
        Omission { record_id: "abc".to_owned(), kind, reason, ..Omission::default() }
    }

    #[test]
    fn a_line_says_what_is_left_out_why_and_how_to_see_it() {
        for (raw, kind, expected) in [
            (
                r#"{"type":"image","source":{}}"#,
                "image",
                Some(
                    r#"{"type":"text","text":"[... image of 28 bytes left out: it is refused; all of it: claw-rebuild --record abc ...]"}"#,
                ),
            ),
            (
                r#"{"type":"tool_use","id":"c","name":"f","input":{"a":1}}"#,
                "tool_use",
                Some(
                    r#"{"type":"tool_use","id":"c","name":"f","input":{"left_out":"[... input of 7 bytes left out: it is refused; all of it: claw-rebuild --record abc ...]"}}"#,
                ),
            ),
            (
                r#"{"type":"tool_result","tool_use_id":"c","content":"long","is_error":true}"#,
                "tool_result",
                Some(
                    r#"{"type":"tool_result","tool_use_id":"c","content":"[... result of 6 bytes left out: it is refused; all of it: claw-rebuild --record abc ...]","is_error":true}"#,
                ),
            ),
            (r#"{"type":"thinking","thinking":"a","signature":"b"}"#, "thinking", None),
        ] {
            let block = Block::parse(raw).unwrap();
            let shown = of(&block, &omission(kind)).map(|block| block.raw.to_string());
            assert_eq!(shown.as_deref(), expected);
        }
    }
}
