//! The provider's own summary: the messages to summarise, and the record of the answer.

use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content};
use crate::shorten::media::stand_in;

/// The provider's own summary of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSummary {
    /// The summary as a compaction record keeps it; see [`Summary::own`](crate::record::compaction::Summary::own).
    pub own: Box<str>,
    /// Its text. `None` if only the provider can read it.
    pub text: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The provider's usage as JSON.
    pub usage: Option<String>,
}

impl OwnSummary {
    /// Reads the record that `claw-call --compact` wrote.
    ///
    /// # Errors
    /// Returns the reason if the records have no summary.
    pub fn read(records: &str) -> Result<OwnSummary, String> {
        let line = records.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let record = Object::parse(line).map_err(|_| "it is not a record".to_owned())?;
        let reason = record.string("stop_reason").unwrap_or_default();
        if reason != "compaction" {
            return Err(format!("it is not complete: stop reason '{reason}'"));
        }
        let blocks = record.get("content").and_then(elements).unwrap_or_default();
        let [block] = blocks[..] else {
            return Err("it is not one block".to_owned());
        };
        let object = Object::parse(block).map_err(|_| "it is not one block".to_owned())?;
        if object.get("content") == Some("null") {
            return Err("the server could not make one".to_owned());
        }
        let author = record.get("author").and_then(|raw| Object::parse(raw).ok());
        let author = author.ok_or("it does not say who made it")?;
        let own = author.members().fold(Members::new(), Members::member);
        let string = |name: &str| record.string(name).map(|text| text.into_owned());
        Ok(OwnSummary {
            own: own.raw("block", block).into_json().into(),
            text: object.string("content").map(|text| text.into_owned()),
            model: string("model"),
            usage: record.get("usage").filter(|usage| usage.starts_with('{')).map(str::to_owned),
        })
    }
}

/// Returns the messages to summarise, as lines of JSON with `_meta`. They have no images and documents.
#[must_use]
pub fn request(covered: &[Message<'_>]) -> String {
    covered.iter().map(|message| without_media(message).to_line() + "\n").collect()
}

fn without_media<'a>(message: &Message<'a>) -> Message<'a> {
    let mut message = message.clone();
    if matches!(message.content, Content::Blocks(_)) {
        message.content.blocks_mut().iter_mut().for_each(remove_media);
    }
    message
}

fn remove_media(block: &mut Block<'_>) {
    if block.kind == BlockKind::Media {
        *block = stand_in(block, None);
    }
    let content = block.member("content").filter(|_| block.is_result());
    let Some(Ok(Content::Blocks(mut items))) = content.map(Content::parse) else { return };
    if !items.iter().any(|item| item.kind == BlockKind::Media) {
        return;
    }
    items.iter_mut().for_each(remove_media);
    let content = Content::Blocks(items).to_json();
    if let Ok(object) = Object::parse(&block.raw) {
        block.raw = object.with("content", &content).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_block_with_its_author() {
        let record = |content: &str, reason: &str| {
            format!(
                r#"{{"type":"assistant","content":[{content}],"model":"m","stop_reason":"{reason}","usage":{{"input_tokens":9}},"author":{{"api":"anthropic","server":"s","model":"m"}}}}"#
            )
        };
        let block = r#"{"type":"compaction","content":"So far.","signature":"x"}"#;
        let read = OwnSummary::read(&record(block, "compaction")).unwrap();
        assert_eq!(
            &*read.own,
            format!(r#"{{"api":"anthropic","server":"s","model":"m","block":{block}}}"#)
        );
        assert_eq!((read.text.as_deref(), read.model.as_deref()), (Some("So far."), Some("m")));
        let opaque = r#"{"type":"reasoning","item":{"type":"compaction","encrypted_content":"e"}}"#;
        assert_eq!(OwnSummary::read(&record(opaque, "compaction")).unwrap().text, None);
        for (content, reason) in [(block, "max_tokens"), ("", "compaction")] {
            assert!(OwnSummary::read(&record(content, reason)).is_err(), "{content} {reason}");
        }
        assert!(OwnSummary::read("").is_err());
    }

    #[test]
    fn images_are_not_sent() {
        let image =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}"#;
        let lines = format!(
            r#"{{"role":"user","content":[{image},{{"type":"text","text":"see"}}]}}
{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{}}}}]}}
{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{image},{{"type":"text","text":"r"}}]}}]}}"#
        );
        let messages = crate::messages::read("t", lines.as_bytes()).unwrap();
        let sent = request(&messages);
        assert_eq!(sent.matches("left out").count(), 2, "{sent}");
        assert!(!sent.contains("eA==") && sent.contains("see") && sent.contains("\"r\""), "{sent}");
    }
}
