//! Translates messages in the form of the Anthropic Messages API into records.

use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Author, Block, Content, ReplyPart};
use crate::json;
use crate::json::outline::Value;
use std::borrow::Cow;

/// Writes the results in a user's message, and then its other content as a prompt of `author`.
pub fn user(
    source: &RecordSource<'_>,
    content: Option<Value<'_>>,
    author: &Author<'_>,
    out: &mut Translation<'_>,
) {
    let Some(blocks) = content.and_then(Value::elements) else {
        let content = Content::Json(content.map_or("[]", Value::text).into());
        out.record(source, 1, "user").author(author).content("content", &content);
        return;
    };
    let (mut number, mut others) = (0, Vec::new());
    for block in blocks {
        if block.get("type") != Some("\"tool_result\"") {
            others.push(block_of_chat(block));
            continue;
        }
        number += 1;
        out.record(source, number, "tool_result")
            .raw("tool_use_id", block.quoted("tool_use_id").unwrap_or("\"\""))
            .raw("content", block.get("content").unwrap_or("\"\""))
            .flag("is_error", block.is_true("is_error"));
    }
    if number == 0 || !others.is_empty() {
        let content = Content::Blocks(others);
        out.record(source, number + 1, "user").author(author).content("content", &content);
    }
}

/// Returns a block in the form that records use. An image of chat completions is converted; any other block keeps its
/// bytes.
fn block_of_chat(block: Value<'_>) -> Block<'_> {
    let image = block.object("image_url").filter(|_| block.get("type") == Some("\"image_url\""));
    let url = image.and_then(|image| image.string("url"));
    url.map_or(Block::Json(block.text()), |url| Block::image(&url))
}

/// Returns the parts of a reply. Blocks other than tool calls keep their bytes, because thinking is signed.
#[must_use]
pub fn parts(content: Value<'_>) -> Vec<ReplyPart<'_>> {
    let Some(blocks) = content.elements() else { return vec![ReplyPart::text(content.text())] };
    blocks.filter(|block| block.is_object()).map(part).collect()
}

fn part(block: Value<'_>) -> ReplyPart<'_> {
    if block.get("type") != Some("\"tool_use\"") {
        return ReplyPart::Block(Block::Json(block.text()));
    }
    let quoted = |name| block.quoted(name).unwrap_or("\"\"");
    let input = block.object("input").map_or("{}", Value::text).into();
    ReplyPart::Call { id: quoted("id").into(), name: quoted("name"), input }
}

/// Returns `raw` if it is a string.
#[must_use]
pub fn only_quoted(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| raw.starts_with('"'))
}

/// Returns `raw` if it is the number of an HTTP status.
#[must_use]
pub fn status(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| raw.len() == 3 && raw.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the text of a message.
#[must_use]
pub fn text(content: Value<'_>) -> String {
    if let Some(text) = json::string(content.text()) {
        return text.into_owned();
    }
    let blocks = content.elements().into_iter().flatten();
    let texts = blocks.filter_map(|block| block.string("text").map(Cow::into_owned));
    texts.collect::<Vec<_>>().join("\n")
}
