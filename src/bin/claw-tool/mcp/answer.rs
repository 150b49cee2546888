//! The answer of a server as the text of a tool result.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::borrow::Cow;

/// The longest text of an error, in bytes. A model sees the last 4000 bytes of a tool's standard error.
const MAX_ERROR: usize = 3000;
/// Stands for content of a revision of the protocol that this program does not know.
const UNKNOWN: &str = "[content of an unknown kind, left out]";

/// Returns the text of a result, and true if it is an error.
pub fn text(result: CallToolResult) -> (String, bool) {
    let mut parts: Vec<String> = result.content.into_iter().map(part).collect();
    // A server that writes structured content should write it as text, too.
    if parts.is_empty() {
        parts.extend(result.structured_content.map(|content| content.to_string()));
    }
    let mut text = parts.join("\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    (text, result.is_error == Some(true))
}

/// Returns a part of a result as text. A tool's result has only text, so other content is left out, and the model told so.
fn part(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => left_out(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => left_out(&audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("binary data");
                format!("[{uri}] {}", left_out(kind, &blob))
            }
            _ => UNKNOWN.to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link to {}: {}]", link.name, link.uri),
        _ => UNKNOWN.to_owned(),
    }
}

fn left_out(kind: &str, base64: &str) -> String {
    format!("[{kind}, {} bytes, left out: only text can be shown here]", base64.len() / 4 * 3)
}

/// Cuts a long text of an error, and says how much is missing.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_ERROR {
        return Cow::Borrowed(text);
    }
    let end = (0..=MAX_ERROR).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}… ({} more bytes)", &text[..end], text.len() - end))
}
