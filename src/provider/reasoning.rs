//! Reasoning that goes back to the model that wrote it.
//!
//! Servers of chat completions and Ollama send the reasoning of a reply in members of their own, and some refuse a request in
//! which a reply with calls lacks it (DeepSeek: "The `reasoning_content` in the thinking mode must be passed back to the API";
//! api-docs.deepseek.com/guides/thinking_mode, and OpenRouter's `reasoning_details`, both read in November 2026). A record keeps
//! them in a block of the type `reasoning`, with the protocol, the server and the model. It is sent to these only.

use crate::hosted;
use crate::json::Object;
use crate::json::write::Members;
use crate::messages::Message;
use crate::provider::address;
use crate::record::content::{Block, Content};
use crate::record::digest;
use std::borrow::Cow;

/// The member of a call that Gemini sends and takes back in chat completions: it has the signature of a thought.
pub const CALL_MEMBER: &str = "extra_content";

/// Returns a message without the blocks of authors, which Anthropic's API does not know: reasoning is left out, and what a
/// provider's own tools did becomes text. Rebuild has seen to it that a reply has more than reasoning; a message that has not keeps
/// a placeholder.
#[must_use]
pub fn without_reasoning<'m, 'a>(message: &'m Message<'a>) -> Cow<'m, Message<'a>> {
    if !message.blocks().any(Block::is_of_author) {
        return Cow::Borrowed(message);
    }
    let mut kept: Vec<Block<'a>> = message.blocks().filter_map(for_anthropic).collect();
    if kept.is_empty() {
        kept.push(Block::from_text("[reasoning]"));
    }
    Cow::Owned(Message { content: Content::Blocks(kept), ..message.clone() })
}

/// Returns a block as Anthropic's API takes it; `None` if it is not sent.
fn for_anthropic<'a>(block: &Block<'a>) -> Option<Block<'a>> {
    match block.is_of_author() {
        true => Some(Block::from_text(&hosted::text(&Object::parse(&block.raw).ok()?)?)),
        false => Some(block.clone()),
    }
}

/// Returns true if Anthropic's API is sent a block, or its text.
#[must_use]
pub fn is_sent(block: &Block<'_>) -> bool {
    for_anthropic(block).is_some()
}

/// The server and the model of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// The name of the protocol.
    api: &'static str,
    /// A hash of the server's address, which may name a machine or an account.
    server: String,
    /// The name of the model in requests.
    model: String,
}

impl Author {
    /// Returns the author of replies from `model` at this URL. `api` is the name of the protocol.
    #[must_use]
    pub fn new(api: &'static str, url: &str, model: &str) -> Author {
        let server = digest(&address::place(url));
        Author { api, server, model: model.to_owned() }
    }

    /// Returns true if this author wrote a block of reasoning.
    #[must_use]
    pub fn wrote(&self, block: &Object<'_>) -> bool {
        self.is_at_server(block) && block.string("model").is_some_and(|own| own == self.model)
    }

    /// Returns true if a block came from this author's server, whatever the model.
    #[must_use]
    pub fn is_at_server(&self, block: &Object<'_>) -> bool {
        let is = |name: &str, own: &str| block.string(name).is_some_and(|value| value == own);
        is("api", self.api) && is("server", &self.server)
    }

    /// Adds the members that name the author.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members.string("api", self.api).string("server", &self.server).string("model", &self.model)
    }

    /// Adds the author to a block of reasoning; returns any other block unchanged.
    #[must_use]
    pub(crate) fn sign(&self, block: String) -> String {
        if !Block::parse(block.as_str()).is_ok_and(|block| block.is_of_author()) {
            return block;
        }
        let Ok(object) = Object::parse(&block) else { return block };
        let begin = self.add_to(Members::of_type("reasoning"));
        let rest = object.members().filter(|member| member.name() != "type");
        rest.fold(begin, Members::member).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_one_model_at_one_server() {
        let author = |url, model| Author::new("chat", url, model);
        let own = author("https://a.example/v1", "m");
        let block = own.sign(r#"{"type":"reasoning","reasoning_content":"hm \u00e9"}"#.to_owned());
        assert!(block.ends_with(r#""reasoning_content":"hm \u00e9"}"#), "{block}");
        assert!(!block.contains("example"), "{block}");
        let block = Object::parse(&block).unwrap();
        assert!(author("https://A.example/v1/chat/completions", "m").wrote(&block));
        for other in [
            author("https://b.example/v1", "m"),
            author("https://a.example/v1", "n"),
            Author::new("ollama", "https://a.example/v1", "m"),
            Author::default(),
        ] {
            assert!(!other.wrote(&block), "{other:?}");
        }
        let text = r#"{"type":"text","text":"a"}"#;
        assert_eq!(own.sign(text.to_owned()), text);
    }

    #[test]
    fn anthropics_api_gets_no_reasoning_of_others() {
        let line = r#"{"role":"assistant","content":[{"type":"reasoning","reasoning":"hm"},{"type":"reasoning","item":{"type":"program","code":"f()"}},{"type":"reasoning","container":{"id":"c"}},{"type":"text","text":"a"}]}"#;
        let messages = crate::messages::read("t", line.as_bytes()).unwrap();
        let sent = without_reasoning(&messages[0]).to_json();
        let expected = r#"{"role":"assistant","content":[{"type":"text","text":"[program: f()]"},{"type":"text","text":"a"}]}"#;
        assert_eq!(sent, expected);
    }
}
