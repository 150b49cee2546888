//! Translates messages in the form of the Anthropic Messages API into records.

use crate::dialect::translation::{
    ReplyPart, SourceLine, ToolResult, Translation, image_url_block,
};
use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// Writes the results in a user's message, and then its other content as a prompt.
///
/// # Errors
/// Fails if the translation cannot be written.
pub fn user(line: &SourceLine<'_>, content: &str, out: &mut Translation) -> anyhow::Result<()> {
    let Some(blocks) = elements(content) else { return out.user(line, content) };
    let (mut number, mut others) = (0, Vec::new());
    for raw in blocks {
        let block = Object::parse(raw).ok().filter(|it| it.get("type") == Some("\"tool_result\""));
        let Some(block) = block else {
            others.push(block_of_chat(raw));
            continue;
        };
        number += 1;
        let call = block.get("tool_use_id").filter(|id| id.starts_with('"')).unwrap_or("\"\"");
        let content = Cow::Borrowed(block.get("content").unwrap_or("\"\""));
        let is_error = block.is_true("is_error");
        out.result(line, number, &ToolResult { call, content, is_error })?;
    }
    if number > 0 && others.is_empty() {
        return Ok(());
    }
    out.record(line, number + 1, "user", |it| it.list("content", others))
}

/// Returns a block in the form that records use. An image of chat completions is converted; any other block keeps its
/// bytes.
fn block_of_chat(raw: &str) -> Cow<'_, str> {
    let url = || {
        let block = Object::parse(raw).ok().filter(|it| it.get("type") == Some("\"image_url\""))?;
        Object::parse(block.get("image_url")?).ok()?.string("url")
    };
    url().map_or(Cow::Borrowed(raw), |url| Cow::Owned(image_url_block(&url)))
}

/// Returns the parts of a reply. Blocks other than tool calls keep their bytes, because thinking is signed.
#[must_use]
pub fn parts(content: &str) -> Vec<ReplyPart<'_>> {
    let Some(blocks) = elements(content) else { return vec![ReplyPart::text(content)] };
    let part = |raw| {
        let block = Object::parse(raw).ok()?;
        if block.get("type") != Some("\"tool_use\"") {
            return Some(ReplyPart::Block(Cow::Borrowed(raw)));
        }
        let quoted = |name: &str| {
            let value = block.get(name).filter(|raw| raw.starts_with('"'));
            Cow::Borrowed(value.unwrap_or("\"\""))
        };
        let input = block.get("input").filter(|raw| raw.starts_with('{')).unwrap_or("{}");
        Some(ReplyPart::Call(quoted("id"), quoted("name"), Cow::Borrowed(input)))
    };
    blocks.into_iter().filter_map(part).collect()
}

/// Returns the text of a message.
#[must_use]
pub fn text(content: &str) -> String {
    if let Some(text) = json::string(content) {
        return text.into_owned();
    }
    let blocks = elements(content).unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|raw| {
        Object::parse(raw).ok().and_then(|block| block.string("text").map(Cow::into_owned))
    });
    texts.collect::<Vec<_>>().join("\n")
}
