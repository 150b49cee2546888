//! Messages for OpenAI's and Gemini's APIs, as programs log them: a JSON array, one message per line, or the body of a
//! request.
//!
//! Messages of chat completions may also have blocks of the Anthropic Messages API. The `input` of OpenAI's Responses
//! API is read like the items of Codex. The whole input is read into memory, because it may be a single JSON value.

pub mod gemini;

use crate::dialect::blocks;
use crate::dialect::codex;
use crate::dialect::source::SourceLine;
use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Author, Reply, ReplyPart};
use crate::dialect::{Choice, Dialect};
use crate::exit::{Exit, fail};
use crate::finding::rules;
use crate::input::Input;
use crate::input::line::without_mark;
use crate::input::origin::{Remark, SourcePlace};
use crate::json::outline::{Outline, Value};
use crate::json::write::Members;
use crate::json::{self, Object, elements, offset_in};
use gemini::Gemini;
use std::borrow::Cow;

/// The messages of an input, each with its JSON text.
struct Messages<'a> {
    texts: Vec<&'a str>,
    /// True if they are items of the Responses API.
    are_items: bool,
    /// True if the input also has a system prompt.
    has_system: bool,
}

/// Translates messages of `dialect`, which is OpenAI's or Gemini's.
///
/// # Errors
/// Fails if they cannot be read or the translation cannot be written, and with 65 if the input is not UTF-8, there are
/// no messages, or a leaf is chosen.
pub fn read(input: &Input, dialect: Dialect, choice: &Choice) -> anyhow::Result<Input> {
    let name = &input.name;
    choice.require_no_leaf(input)?;
    let bytes = input.bytes()?;
    let Ok(text) = std::str::from_utf8(without_mark(&bytes)) else {
        return fail(Exit::Data, format!("cannot read '{name}': not UTF-8; give JSON"));
    };
    let mut out = Translation::new(input, choice);
    let Some(messages) = Messages::find(text) else {
        let help = "give a JSON array of messages, one message per line, or the body of a request";
        return fail(Exit::Data, format!("cannot read '{name}': no messages; {help}"));
    };
    let mut places = Places::new(text, bytes.len() - text.len());
    let mut chat = Chat::default();
    if messages.has_system {
        note_system(SourcePlace { line: 1, offset: 0, length: 0 }, &mut out);
    }
    let mut outline = Outline::default();
    for own in &messages.texts {
        let place = places.of(own);
        let Some(line) = SourceLine::of(own, place.offset, place, &mut outline) else {
            out.unknown("elements that are not messages", place);
            continue;
        };
        let source = &RecordSource { line, id: None, ts: None };
        out.append(place, |out| match dialect {
            _ if messages.are_items => {
                let item = codex::item::Item::of(line.value);
                codex::item::write(&item, source, 1, Default::default(), out);
            }
            Dialect::Gemini => chat.gemini.message(source, out),
            _ => chat.message(source, out),
        });
    }
    out.finish(&rules::UNKNOWN_TYPE)
}

impl<'a> Messages<'a> {
    fn find(text: &'a str) -> Option<Messages<'a>> {
        let trimmed = text.trim();
        let list = |texts, are_items, has_system| Messages { texts, are_items, has_system };
        if trimmed.starts_with('[') {
            return elements(trimmed).map(|texts| list(texts, false, false));
        }
        if let Ok(body) = Object::parse(trimmed) {
            let of = |name: &str| body.get(name).and_then(elements);
            let has_system = ["system", "systemInstruction", "system_instruction", "instructions"]
                .iter()
                .any(|name| body.get(name).is_some_and(|raw| raw != "null"));
            if let Some(texts) = of("messages").or_else(|| of("contents")) {
                return Some(list(texts, false, has_system));
            }
            if let Some(texts) = of("input") {
                return Some(list(texts, true, has_system));
            }
        }
        let lines: Vec<&str> =
            text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_message = |line: &&str| Object::parse(line).is_ok_and(|it| it.get("role").is_some());
        lines.iter().any(is_message).then(|| list(lines, false, false))
    }
}

/// The places of values in a text.
#[derive(Debug)]
pub struct Places<'t> {
    text: &'t str,
    /// The offset up to which lines were counted, and the number of the line there.
    seen: (usize, u64),
    /// The length of a byte order mark before the text.
    mark: usize,
}

impl<'t> Places<'t> {
    /// Creates the places in `text`, which follows a byte order mark of `mark` bytes.
    #[must_use]
    pub fn new(text: &'t str, mark: usize) -> Places<'t> {
        Places { text, seen: (0, 1), mark }
    }

    /// Returns the place of a value, which must be a slice of the text. The values must come in order.
    pub fn of(&mut self, own: &str) -> SourcePlace {
        let at = offset_in(self.text, own);
        let feeds = memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.seen.0..at]).count();
        self.seen = (at, self.seen.1 + feeds as u64);
        let offset = (at + self.mark) as u64;
        SourcePlace { line: self.seen.1, offset, length: own.len() as u64 }
    }
}

/// Reports a system prompt, which is not part of messages.
fn note_system(place: SourcePlace, out: &mut Translation<'_>) {
    let message = "a system prompt is not part of the messages; give it with --system";
    let (rule, message) = (&rules::SYSTEM_PROMPT, message.to_owned());
    out.remark(Remark { rule, place, id: None, message });
}

/// The state of a conversation.
#[derive(Default)]
struct Chat {
    /// The id given to the newest `function_call`, an older form of tool calls, which has no ids.
    function: Option<String>,
    gemini: Gemini,
}

impl Chat {
    /// Writes a message of chat completions.
    fn message(&mut self, source: &RecordSource<'_>, out: &mut Translation<'_>) {
        let (message, place) = (source.line.value, source.line.place);
        let content = message.member("content").filter(|content| content.text() != "null");
        match message.string("role").as_deref() {
            Some("system" | "developer") => {
                note_system(place, out);
                out.imported(source);
            }
            Some("user") => blocks::user(source, content, &Author::default(), out),
            Some("assistant") => out.reply(source, 1, &self.reply(message, content, place)),
            Some(role @ ("tool" | "function")) => {
                let function = self.function.take().filter(|_| role == "function");
                let call = message.quoted("tool_call_id").or(function.as_deref());
                out.record(source, 1, "tool_result")
                    .raw("tool_use_id", call.unwrap_or("\"\""))
                    .raw("content", content.map_or("[]", Value::text));
            }
            role => {
                let role = role.unwrap_or_default();
                out.unknown(format!("messages of the unknown role '{role}'"), place);
                out.imported(source);
            }
        }
    }

    fn reply<'a>(
        &mut self,
        message: Value<'a>,
        content: Option<Value<'a>>,
        place: SourcePlace,
    ) -> Reply<'a> {
        let mut parts = content.map(blocks::parts).unwrap_or_default();
        parts.extend(message.quoted("refusal").map(ReplyPart::text));
        parts.extend(message.list("tool_calls").filter_map(call));
        if let Some(function) = message.object("function_call") {
            let id = json::quote(&format!("call_{}", place.offset));
            self.function = Some(id.clone());
            parts.extend(call_of(Cow::Owned(id), function));
        }
        let reasoning = message.string("reasoning_content").or_else(|| message.string("reasoning"));
        Reply {
            parts,
            model: message.quoted("model"),
            reasoning: reasoning.filter(|it| !it.is_empty()).map(Cow::into_owned),
            ..Reply::default()
        }
    }
}

/// Returns a tool call of chat completions: a function, or a custom tool with plain text.
fn call(call: Value<'_>) -> Option<ReplyPart<'_>> {
    let function = call.object("function").or_else(|| call.object("custom"))?;
    call_of(Cow::Borrowed(call.quoted("id").unwrap_or("\"\"")), function)
}

fn call_of<'a>(id: Cow<'a, str>, function: Value<'a>) -> Option<ReplyPart<'a>> {
    let name = function.quoted("name")?;
    let raw = function.get("arguments").or_else(|| function.get("input")).unwrap_or("{}");
    let text = json::string(raw).unwrap_or(Cow::Borrowed(raw));
    let input = match Object::parse(&text) {
        Ok(_) => json::on_one_line(&text),
        Err(_) if text.trim().is_empty() => "{}".to_owned(),
        Err(_) => Members::new().string("input", &text).into_json(),
    };
    Some(ReplyPart::Call { id, name, input: Cow::Owned(input) })
}

#[cfg(test)]
mod tests;
