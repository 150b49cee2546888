//! Messages in the form of the conventions, as JSON: roles with parts.

use crate::json::write::{Members, list};
use crate::json::{Object, on_one_line};

/// Messages. Parts of the same role that follow each other are one message.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<(&'static str, Vec<String>)>);

impl Messages {
    /// Adds a part.
    pub fn push(&mut self, role: &'static str, part: String) {
        match self.0.last_mut() {
            Some((last, parts)) if *last == role => parts.push(part),
            _ => self.0.push((role, vec![part])),
        }
    }

    /// Returns the messages as a JSON list. Messages of the model have the reason why it stopped.
    pub fn to_json(&self, finish_reason: Option<&str>) -> String {
        list(self.0.iter().map(|(role, parts)| {
            let message = Members::new().string("role", role).list("parts", parts);
            message.optional(Members::string, "finish_reason", finish_reason).into_json()
        }))
    }
}

/// Returns a part with text.
pub fn text(text: &str) -> String {
    Members::new().string("type", "text").string("content", text).into_json()
}

/// Returns a part with the thinking of a model.
pub fn reasoning(text: &str) -> String {
    Members::new().string("type", "reasoning").string("content", text).into_json()
}

/// Returns a part with a tool call.
pub fn call(id: &str, name: &str, input: &str) -> String {
    let input = Object::parse(input).is_ok().then(|| on_one_line(input));
    Members::new()
        .string("type", "tool_call")
        .string("id", id)
        .string("name", name)
        .optional(Members::raw, "arguments", input.as_deref())
        .into_json()
}

/// Returns a part with a tool result.
pub fn response(id: &str, text: &str) -> String {
    let part = Members::new().string("type", "tool_call_response");
    part.string("id", id).string("response", text).into_json()
}
