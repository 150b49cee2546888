//! Converts messages to the form of a provider's API, without the rest of a request.
//!
//! claw-call converts the messages of its requests in the same way, but sends thinking only to Anthropic's API.

use crate::messages::Message;
use crate::provider::reasoning::without_reasoning;
use crate::provider::turns::{self, Thoughts};
use crate::provider::{chat, gemini, ollama, responses};
use crate::record::content::{Content, Role};

/// The API to convert messages for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The Anthropic Messages API
    #[default]
    Anthropic,
    /// OpenAI's chat completions, which many servers offer
    Openai,
    /// OpenAI's Responses API
    Responses,
    /// Ollama
    Ollama,
    /// Gemini
    Gemini,
}

/// The treatment of thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Thinking {
    /// Keep it, in the member that servers of this API use
    Keep,
    /// Leave it out
    Strip,
    /// Keep it if the API accepts it in requests: only Anthropic's does
    #[default]
    Auto,
}

/// Converts messages, and returns the JSON text of each.
#[must_use]
pub fn convert(messages: Vec<Message<'_>>, target: Target, thinking: Thinking) -> Vec<String> {
    let keeps = if thinking == Thinking::Keep { Thoughts::All } else { Thoughts::None };
    match target {
        Target::Anthropic => {
            let strips = thinking == Thinking::Strip;
            let messages = if strips { without_thinking(messages) } else { messages };
            messages.iter().map(|it| without_reasoning(it).to_json()).collect()
        }
        Target::Openai => turns::convert(&messages, keeps, chat::message),
        Target::Responses => responses::items(&messages, Thoughts::None),
        Target::Ollama => turns::convert(&messages, keeps, ollama::message),
        Target::Gemini => gemini::contents(&messages, keeps),
    }
}

/// Removes thinking. A message that consists only of thinking is dropped, and its neighbours are merged.
fn without_thinking(messages: Vec<Message<'_>>) -> Vec<Message<'_>> {
    let mut kept: Vec<Message<'_>> = Vec::with_capacity(messages.len());
    for mut message in messages {
        if let (Role::Assistant, Content::Blocks(blocks)) = (message.role, &mut message.content) {
            blocks.retain(|block| !block.is_thinking());
        }
        match kept.last_mut().filter(|last| last.role == message.role) {
            _ if message.is_empty() => {}
            Some(last) => last.absorb(message.content),
            None => kept.push(message),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    const LINES: &str = r#"{"role":"user","content":"look \u00e9"}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a:1","name":"f","input":{"x": 1e2}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a:1","content":[{"type":"text","text":"found"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"text","text":"and?"}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}
{"role":"user","content":"again"}"#;

    fn converted(target: Target, thinking: Thinking) -> String {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        convert(messages, target, thinking).join("\n")
    }

    #[test]
    fn messages_are_converted_for_each_api() {
        let image = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}"#;
        let openai = [
            r#"{"role":"user","content":"look \u00e9"}"#,
            r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"a:1","type":"function","function":{"name":"f","arguments":"{\"x\": 1e2}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"a:1","content":"found\n[image]"}"#,
            &format!(
                r#"{{"role":"user","content":[{image},{{"type":"text","text":"and?"}},{{"type":"text","text":"again"}}]}}"#
            ),
        ];
        assert_eq!(converted(Target::Openai, Thinking::Auto), openai.join("\n"));
        let gemini = [
            r#"{"role":"user","parts":[{"text":"look \u00e9"}]}"#,
            r#"{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"a:1","name":"f","args":{"x": 1e2}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"a:1","name":"f","response":{"output":"found\n[image]"}}},{"inlineData":{"mimeType":"image/png","data":"eA=="}},{"text":"and?"},{"text":"again"}]}"#,
        ];
        assert_eq!(converted(Target::Gemini, Thinking::Strip), gemini.join("\n"));
        let ollama = converted(Target::Ollama, Thinking::Auto);
        assert!(ollama.contains(r#""images":["eA=="]"#) && !ollama.contains("hm"), "{ollama}");
        assert_eq!(converted(Target::Anthropic, Thinking::Auto), LINES);
    }

    #[test]
    fn thinking_is_kept_in_the_member_of_each_api() {
        for (target, member) in [
            (Target::Openai, r#""reasoning_content":"hm""#),
            (Target::Ollama, r#""thinking":"hm""#),
            (Target::Gemini, r#"{"text":"hm","thought":true}"#),
            (Target::Anthropic, r#""thinking":"hm","signature":"s""#),
        ] {
            assert_eq!(converted(target, Thinking::Keep).matches(member).count(), 2, "{target:?}");
            assert!(!converted(target, Thinking::Strip).contains("hm"), "{target:?}");
        }
        let stripped = converted(Target::Anthropic, Thinking::Strip);
        assert_eq!(stripped.lines().count(), 3, "{stripped}");
    }
}
