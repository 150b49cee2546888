//! Examples for OpenAI's fine-tuning: the messages of chat completions, and the tools that are called.

use super::{Part, Reply, Turn, tools};
use crate::json::write::Members;
use crate::json::{Object, quote};

/// Returns the example as a line.
pub fn line(turns: &[Turn]) -> String {
    let mut messages = Messages::default();
    turns.iter().for_each(|turn| messages.turn(turn));
    let definitions = tools::definitions(turns);
    let members = Members::new().list("messages", messages.lines);
    members.optional(Members::raw, "tools", definitions.as_deref()).into_line()
}

/// The messages of an example.
#[derive(Default)]
struct Messages {
    lines: Vec<String>,
    /// The number of calls so far, which gives them their ids: those of the session may be too long, or occur twice.
    calls: usize,
}

impl Messages {
    fn turn(&mut self, turn: &Turn) {
        self.lines.push(user(&turn.prompt));
        turn.replies.iter().for_each(|reply| self.reply(reply));
    }

    fn reply(&mut self, reply: &Reply) {
        let first = self.calls;
        self.calls += reply.calls.len();
        let id = |index: usize| format!("call_{}", first + index + 1);
        let text = Some(reply.text.as_str()).filter(|text| !text.trim().is_empty());
        let message = Members::new().string("role", "assistant");
        let message = message.or_null(Members::string, "content", text);
        if reply.calls.is_empty() {
            return self.lines.push(message.into_json());
        }
        let calls = reply.calls.iter().enumerate();
        let message = message.objects("tool_calls", calls, |it, (index, call)| {
            let function =
                |it: Members| it.string("name", &call.name).string("arguments", &call.input);
            it.string("id", &id(index)).string("type", "function").object("function", function)
        });
        self.lines.push(message.into_json());
        for (index, call) in reply.calls.iter().enumerate() {
            let result = call.result.as_deref().unwrap_or_default();
            let result = Members::new()
                .string("role", "tool")
                .string("tool_call_id", &id(index))
                .string("content", result);
            self.lines.push(result.into_json());
        }
    }
}

/// Returns a prompt: one text, or a list of texts and images.
fn user(parts: &[Part]) -> String {
    let message = Members::new().string("role", "user");
    let texts = || {
        parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image(_) => None,
        })
    };
    if texts().count() == parts.len() {
        let text = texts().collect::<Vec<_>>().join("\n\n");
        return message.string("content", &text).into_json();
    }
    message.list("content", parts.iter().filter_map(part)).into_json()
}

fn part(part: &Part) -> Option<String> {
    let raw = match part {
        Part::Text(text) => {
            return Some(
                Members::new().string("type", "text").raw("text", &quote(text)).into_json(),
            );
        }
        Part::Image(raw) => raw,
    };
    let block = Object::parse(raw).ok()?;
    let source = Object::parse(block.get("source")?).ok()?;
    let url = format!("data:{};base64,{}", source.string("media_type")?, source.string("data")?);
    let image = Members::new().string("type", "image_url");
    Some(image.object("image_url", |it| it.string("url", &url)).into_json())
}
