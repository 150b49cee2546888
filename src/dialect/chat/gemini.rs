//! Translates Gemini API messages (`contents`) into records.

use crate::dialect::translation::{
    IMPORTED, Reply, ReplyPart, SourceLine, ToolResult, Translation, image_block, text_block,
};
use crate::json::{self, Object, elements};
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
    ///
    /// # Errors
    /// Fails if the translation cannot be written.
    pub fn message(
        &mut self,
        message: &Object<'_>,
        line: &SourceLine<'_>,
        out: &mut Translation,
    ) -> anyhow::Result<()> {
        let parts = message.get("parts").and_then(elements).unwrap_or_default();
        let parts: Vec<Object<'_>> =
            parts.into_iter().filter_map(|raw| Object::parse(raw).ok()).collect();
        match message.string("role").as_deref() {
            Some("model") => out.reply(line, &self.reply(&parts)),
            Some("user" | "function") | None => self.user(&parts, line, out),
            Some(role) => {
                out.unknown(format!("messages of the unknown role '{role}'"), line.place);
                out.record(line, 1, IMPORTED, |it| it.raw("record", message.text()))
            }
        }
    }

    fn reply<'a>(&mut self, parts: &[Object<'a>]) -> Reply<'a> {
        let mut reply = Reply::default();
        for part in parts {
            if let Some(text) = part.get("text").filter(|raw| raw.starts_with('"')) {
                if part.is_true("thought") {
                    let text = json::string(text).unwrap_or_default();
                    reply.reasoning.get_or_insert_default().push_str(&text);
                } else {
                    reply.parts.push(ReplyPart::text(text));
                }
            } else if let Some(Ok(call)) = inner(part, "functionCall", "function_call") {
                let name = call.get("name").unwrap_or("\"\"");
                let own = call.get("id").filter(|id| id.starts_with('"')).map(str::to_owned);
                let id = own.unwrap_or_else(|| {
                    self.calls += 1;
                    json::quote(&format!("call_{}", self.calls))
                });
                self.open.push_back((name.to_owned(), id.clone()));
                let input = call.get("args").filter(|raw| raw.starts_with('{')).unwrap_or("{}");
                let (id, name) = (Cow::Owned(id), Cow::Borrowed(name));
                reply.parts.push(ReplyPart::Call(id, name, Cow::Borrowed(input)));
            }
        }
        reply
    }

    fn user(
        &mut self,
        parts: &[Object<'_>],
        line: &SourceLine<'_>,
        out: &mut Translation,
    ) -> anyhow::Result<()> {
        let (mut number, mut blocks) = (0, Vec::new());
        for part in parts {
            if let Some(text) = part.get("text").filter(|raw| raw.starts_with('"')) {
                blocks.push(text_block(text));
            } else if let Some(Ok(data)) = inner(part, "inlineData", "inline_data") {
                let media = data.get("mimeType").or_else(|| data.get("mime_type"));
                blocks
                    .push(image_block(media.unwrap_or("\"\""), data.get("data").unwrap_or("\"\"")));
            } else if let Some(Ok(answer)) = inner(part, "functionResponse", "function_response") {
                number += 1;
                let call = self.call_of(&answer);
                let content = Cow::Owned(response(answer.get("response").unwrap_or("{}")));
                let result = ToolResult { call: &call, content, is_error: false };
                out.result(line, number, &result)?;
            } else {
                out.unknown("parts of an unknown kind", line.place);
            }
        }
        if number > 0 && blocks.is_empty() {
            return Ok(());
        }
        out.record(line, number + 1, "user", |it| it.list("content", blocks))
    }

    /// Returns the id of the call that a response belongs to: the id in the response, or else the id of the oldest open
    /// call with its name.
    fn call_of(&mut self, response: &Object<'_>) -> String {
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

fn inner<'a>(
    part: &Object<'a>,
    name: &str,
    other: &str,
) -> Option<Result<Object<'a>, serde_json::Error>> {
    part.get(name).or_else(|| part.get(other)).map(Object::parse)
}

/// Returns the content of a response, as a JSON string: the text of its only member if that has a common name such as
/// `output`, and otherwise the JSON of the whole response.
fn response(raw: &str) -> String {
    let only = Object::parse(raw).ok().and_then(|object| {
        let mut members = object.members();
        let first = members.next()?;
        let is_usual = ["output", "result", "content", "error"].contains(&&*first.name());
        (is_usual && members.next().is_none() && first.value.starts_with('"'))
            .then(|| first.value.to_owned())
    });
    only.unwrap_or_else(|| json::quote(raw))
}
