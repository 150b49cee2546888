//! The provider's own summary of the old part of a conversation, which goes back to the model that made it.
//!
//! Anthropic's summary is a block of the type `compaction`, with readable text and a signature; OpenAI's is an encrypted item. A
//! compaction record keeps it with the protocol, the server and the model, beside the text that all others get.

use crate::json::Object;
use crate::messages::Message;
use crate::provider::ModelRequest;
use crate::provider::reasoning::Author;
use crate::provider::refusal::Feature;
use crate::record::compaction::Summary;
use crate::record::content::{Block, Content, Role};
use std::borrow::Cow;

/// Returns true if the request begins with a summary that its server and model made.
#[must_use]
pub fn is_among(messages: &[Message<'_>], author: Option<&Author>) -> bool {
    own(messages, author).is_some()
}

/// Returns the messages of a request as they are sent: with the provider's own summary in the place of the text of the summary. The text that is
/// kept verbatim stays beside it. The number of messages does not change.
pub(super) fn applied<'m, 'a>(request: &ModelRequest<'m, 'a>) -> Cow<'m, [Message<'a>]> {
    let messages = request.messages;
    let author = request.author.filter(|_| !request.without.has(Feature::OwnSummary));
    let Some((summary, block)) = own(messages, author) else {
        return Cow::Borrowed(messages);
    };
    let kept = summary.kept().map(|text| Block::from_text(&text));
    let content = Content::Blocks([block].into_iter().chain(kept).collect());
    let mut messages = messages.to_vec();
    if let Some(first) = messages.first_mut() {
        *first = Message { role: Role::Assistant, content, ..first.clone() };
    }
    Cow::Owned(messages)
}

/// Returns the summary that the messages begin with, and the provider's own, if `author` made it.
fn own<'m>(
    messages: &'m [Message<'_>],
    author: Option<&Author>,
) -> Option<(&'m Summary, Block<'static>)> {
    let summary = messages.first()?.meta.as_ref()?.summary.as_ref()?;
    let own = Object::parse(summary.own.as_deref()?).ok()?;
    let block = own.get("block").filter(|_| author.is_some_and(|author| author.wrote(&own)))?;
    Some((summary, Block::parse(block.to_owned()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::Members;
    use crate::provider::protocol::Protocol;

    const BLOCK: &str = r#"{"type":"compaction","content":"So far.","signature":"s"}"#;

    fn body(protocol: Protocol, model: &str, block: &str, refused: bool) -> String {
        let author = Author::new(protocol.name(), "https://x", "m");
        let own = author.add_to(Members::new()).raw("block", block).into_json();
        let lines = format!(
            r#"{{"role":"user","content":"[Previous conversation summary]\nOurs.","_meta":{{"id":"c","compaction":{{"summary":"Ours.","pinned":["Never push."],"provider_summary":{own}}}}}}}
{{"role":"assistant","content":"Agreed."}}
{{"role":"user","content":"Go on."}}"#
        );
        let messages = crate::messages::read("t", lines.as_bytes()).unwrap();
        let author = Author::new(protocol.name(), "https://x", model);
        let mut request =
            ModelRequest { author: Some(&author), ..ModelRequest::plain(&messages, 9) };
        if refused {
            request.without.add(Feature::OwnSummary);
        }
        protocol.body(&request)
    }

    #[test]
    fn the_servers_summary_goes_back_to_its_model_and_the_text_to_others() {
        let sent = body(Protocol::Anthropic, "m", BLOCK, false);
        let expected = format!(
            r#""messages":[{{"role":"assistant","content":[{BLOCK},{{"type":"text","text":"[Pinned, kept as it was]\nNever push."}}]}},{{"role":"assistant","content":"Agreed."}},{{"role":"user""#
        );
        assert!(sent.contains(&expected), "{sent}");
        for text in [
            body(Protocol::Anthropic, "n", BLOCK, false),
            body(Protocol::Anthropic, "m", BLOCK, true),
        ] {
            assert!(text.contains("Ours.") && !text.contains("So far."), "{text}");
        }
    }

    #[test]
    fn an_encrypted_item_is_sent_as_it_is() {
        let item = r#"{"type":"compaction","id":"cmp_1","encrypted_content":"e=="}"#;
        let author = Author::new("responses", "https://x", "m");
        let block = author.sign(format!(r#"{{"type":"reasoning","item":{item}}}"#));
        let sent = body(Protocol::Responses, "m", &block, false);
        assert!(sent.contains(&format!(r#""input":[{item},"#)), "{sent}");
        assert!(!sent.contains("Ours.") && sent.contains("Never push."), "{sent}");
    }
}
