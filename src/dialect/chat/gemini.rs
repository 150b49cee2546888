//! Translates Gemini API messages (`contents`) into records.

use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Block, Content, Reply, ReplyPart};
use crate::json;
use crate::json::outline::Value;
use std::borrow::Cow;
use std::collections::VecDeque;

/// The state of a conversation. A function call in Gemini's format may have no id; it then gets one here.
#[derive(Debug, Default)]
pub struct Gemini {
    /// The calls without a response: name and id, as JSON.
    open: VecDeque<(String, String)>,
    /// The number of calls that this module gave an id.
    calls: usize,
}

impl Gemini {
    /// Writes a message.
    pub fn message(&mut self, source: &RecordSource<'_>, out: &mut Translation<'_>) {
        let message = source.line.value;
        let parts = message.list("parts").filter(|part| part.is_object());
        match message.string("role").as_deref() {
            Some("model") => out.reply(source, 1, &self.reply(parts)),
            Some("user" | "function") | None => self.user(parts, source, out),
            Some(role) => {
                out.unknown(format!("messages of the unknown role '{role}'"), source.line.place);
                out.imported(source);
            }
        }
    }

    /// Returns the reply that consists of these parts.
    pub fn reply<'a>(&mut self, parts: impl Iterator<Item = Value<'a>>) -> Reply<'a> {
        let mut reply = Reply::default();
        for part in parts {
            if let Some(text) = part.quoted("text") {
                if part.is_true("thought") {
                    let text = json::string(text).unwrap_or_default();
                    reply.reasoning.get_or_insert_default().push_str(&text);
                } else {
                    reply.parts.push(ReplyPart::text(text));
                }
            } else if let Some(call) = inner(part, "functionCall", "function_call") {
                let name = call.get("name").unwrap_or("\"\"");
                let id = call.quoted("id").map_or_else(
                    || {
                        self.calls += 1;
                        json::quote(&format!("call_{}", self.calls))
                    },
                    str::to_owned,
                );
                self.open.push_back((name.to_owned(), id.clone()));
                let input = call.object("args").map_or("{}", Value::text).into();
                reply.parts.push(ReplyPart::Call { id: Cow::Owned(id), name, input });
            }
        }
        reply
    }

    /// Writes the results in these parts, and a prompt with the others.
    pub fn user<'a>(
        &mut self,
        parts: impl Iterator<Item = Value<'a>>,
        source: &RecordSource<'_>,
        out: &mut Translation<'_>,
    ) {
        let (mut number, mut blocks) = (0, Vec::new());
        for part in parts {
            if let Some(text) = part.quoted("text") {
                blocks.push(Block::Text(text.into()));
            } else if let Some(data) = inner(part, "inlineData", "inline_data") {
                let media = data.get("mimeType").or_else(|| data.get("mime_type"));
                let (media, data) = (media.unwrap_or("\"\""), data.get("data").unwrap_or("\"\""));
                blocks.push(Block::Image(media.into(), data.into()));
            } else if let Some(answer) = inner(part, "functionResponse", "function_response") {
                number += 1;
                out.record(source, number, "tool_result")
                    .raw("tool_use_id", &self.call_of(answer))
                    .raw("content", &response(answer.member("response")));
            } else {
                out.unknown("parts of an unknown kind", source.line.place);
            }
        }
        if number == 0 || !blocks.is_empty() {
            let content = Content::Blocks(blocks);
            out.record(source, number + 1, "user").content("content", &content);
        }
    }

    /// Returns the id of the call that a response belongs to: the id in the response, or else the id of the oldest open
    /// call with the same name, or else that name.
    fn call_of(&mut self, response: Value<'_>) -> String {
        let (name, own) = (response.get("name"), response.get("id"));
        let is_it = |(call, id): &(String, String)| match own {
            Some(own) => id == own,
            None => Some(call.as_str()) == name,
        };
        let found = self.open.iter().position(is_it).and_then(|index| self.open.remove(index));
        let own = own.map(str::to_owned);
        found.map(|(_, id)| id).or(own).unwrap_or_else(|| name.unwrap_or("\"\"").to_owned())
    }
}

/// Returns the object that a part has under a name or another spelling of it.
#[must_use]
pub fn inner<'a>(part: Value<'a>, name: &str, other: &str) -> Option<Value<'a>> {
    part.object(name).or_else(|| part.object(other))
}

/// Returns the content of a response, as a JSON string: the text of its only member if that has a common name such as
/// `output`, and otherwise the JSON of the whole response.
#[must_use]
pub fn response(response: Option<Value<'_>>) -> Cow<'_, str> {
    let Some(response) = response else { return Cow::Borrowed("\"{}\"") };
    let usual = ["output", "result", "content", "error"];
    match usual.into_iter().find_map(|name| response.quoted(name)) {
        Some(text) if response.member_count() == 1 => Cow::Borrowed(text),
        _ => Cow::Owned(json::quote(response.text())),
    }
}
