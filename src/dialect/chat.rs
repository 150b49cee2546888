//! Messages for OpenAI's and Gemini's APIs, as programs log them: a JSON array, one message per line, or the body of a
//! request.
//!
//! Messages of chat completions may also have blocks of the Anthropic Messages API. The `input` of OpenAI's Responses
//! API is read like the items of Codex. The whole input is read into memory, because it may be a single JSON value.

mod gemini;

use crate::dialect::blocks;
use crate::dialect::codex;
use crate::dialect::translation::{Reply, ReplyPart, SourceLine, ToolResult, Translation};
use crate::dialect::{Choice, Dialect};
use crate::exit::{Exit, fail};
use crate::finding::rules;
use crate::id;
use crate::input::Input;
use crate::input::line::without_mark;
use crate::input::origin::{Remark, SourcePlace};
use crate::json::write::Members;
use crate::json::{self, Object, elements, offset_in};
use gemini::Gemini;
use std::borrow::Cow;

/// The messages of an input, each with its JSON text.
struct Messages<'a> {
    texts: Vec<&'a str>,
    /// True if they are items of the Responses API.
    are_items: bool,
    /// True if there is a system prompt beside them.
    has_system: bool,
}

/// Translates messages of `dialect`, which is OpenAI's or Gemini's.
///
/// # Errors
/// Fails if they cannot be read or the translation cannot be written, and with 65 if the input is not UTF-8, there are
/// no messages, or a leaf is chosen.
pub fn read(input: &Input, dialect: Dialect, choice: &Choice) -> anyhow::Result<Input> {
    let name = &input.name;
    if choice.leaf.is_some() {
        return fail(Exit::Data, format!("cannot choose a leaf in '{name}': it has no branches"));
    }
    let bytes = input.bytes()?;
    let Ok(text) = std::str::from_utf8(without_mark(&bytes)) else {
        return fail(Exit::Data, format!("cannot read '{name}': not UTF-8; give JSON"));
    };
    let mut out = Translation::new(&choice.directory);
    let Some(messages) = Messages::find(text) else {
        let help = "give a JSON array of messages, one message per line, or the body of a request";
        return fail(Exit::Data, format!("cannot read '{name}': no messages; {help}"));
    };
    let mut writer = Writer {
        out: &mut out,
        text,
        seen: (0, 1),
        mark: bytes.len() - text.len(),
        function: None,
        gemini: Gemini::default(),
    };
    if messages.has_system {
        writer.system(SourcePlace { line: 1, offset: 0, length: 0 });
    }
    for own in &messages.texts {
        let line = writer.line(own);
        let Ok(object) = Object::parse(own) else {
            writer.out.unknown("elements that are not messages", line.place);
            continue;
        };
        match dialect {
            _ if messages.are_items => {
                codex::item::write(&object, &line, 1, (None, None), writer.out)?
            }
            Dialect::Gemini => writer.gemini.message(&object, &line, writer.out)?,
            _ => writer.message(&object, &line)?,
        }
    }
    out.finish(name, &rules::UNKNOWN_TYPE)
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

/// A writer of translated messages.
struct Writer<'o, 't> {
    out: &'o mut Translation,
    text: &'t str,
    /// The offset up to which lines were counted, and the number of the line there.
    seen: (usize, u64),
    /// The length of a byte order mark before the text.
    mark: usize,
    /// The id given to the newest `function_call`, an older form of tool calls, which has no ids.
    function: Option<String>,
    gemini: Gemini,
}

impl Writer<'_, '_> {
    /// Returns the place of a message, and its id.
    fn line(&mut self, own: &str) -> SourceLine<'static> {
        let at = offset_in(self.text, own);
        let feeds = memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.seen.0..at]).count();
        self.seen = (at, self.seen.1 + feeds as u64);
        let offset = (at + self.mark) as u64;
        let place = SourcePlace { line: self.seen.1, offset, length: own.len() as u64 };
        SourceLine { place, id: Cow::Owned(id::address(offset)), ts: None }
    }

    /// Reports a system prompt, which is not part of messages.
    fn system(&mut self, place: SourcePlace) {
        let message = "a system prompt is not part of the messages; give it with --system";
        let (rule, message) = (&rules::SYSTEM_PROMPT, message.to_owned());
        self.out.remark(Remark { rule, place, id: None, message });
    }

    /// Writes a message of chat completions.
    fn message(&mut self, message: &Object<'_>, line: &SourceLine<'_>) -> anyhow::Result<()> {
        let content = message.get("content").filter(|raw| *raw != "null").unwrap_or("[]");
        match message.string("role").as_deref() {
            Some("system" | "developer") => {
                self.system(line.place);
                self.out.imported(line, message.text())
            }
            Some("user") => blocks::user(line, content, self.out),
            Some("assistant") => {
                let reply = self.reply(message, content, line);
                self.out.reply(line, &reply)
            }
            Some(role @ ("tool" | "function")) => {
                let own = message.get("tool_call_id").filter(|id| id.starts_with('"'));
                let function = self.function.take().filter(|_| role == "function");
                let call = own.map(str::to_owned).or(function).unwrap_or("\"\"".to_owned());
                let content = Cow::Borrowed(content);
                self.out.result(line, 1, &ToolResult { call: &call, content, is_error: false })
            }
            role => {
                let role = role.unwrap_or_default();
                self.out.unknown(format!("messages of the unknown role '{role}'"), line.place);
                self.out.imported(line, message.text())
            }
        }
    }

    fn reply<'a>(
        &mut self,
        message: &Object<'a>,
        content: &'a str,
        line: &SourceLine<'_>,
    ) -> Reply<'a> {
        let mut parts = blocks::parts(content);
        if let Some(refusal) = message.get("refusal").filter(|raw| raw.starts_with('"')) {
            parts.push(ReplyPart::text(refusal));
        }
        let calls = message.get("tool_calls").and_then(elements).unwrap_or_default();
        parts.extend(calls.into_iter().filter_map(|raw| call(&Object::parse(raw).ok()?)));
        if let Some(raw) = message.get("function_call")
            && let Ok(function) = Object::parse(raw)
        {
            let id = json::quote(&format!("call_{}", line.place.offset));
            self.function = Some(id.clone());
            parts.extend(call_of(Cow::Owned(id), &function));
        }
        let reasoning = message.string("reasoning_content").or_else(|| message.string("reasoning"));
        Reply {
            parts,
            model: message.get("model").filter(|raw| raw.starts_with('"')),
            reasoning: reasoning.filter(|it| !it.is_empty()).map(Cow::into_owned),
            ..Reply::default()
        }
    }
}

/// Returns a tool call of chat completions: a function, or a custom tool with plain text.
fn call<'a>(call: &Object<'a>) -> Option<ReplyPart<'a>> {
    let id = Cow::Borrowed(call.get("id").filter(|id| id.starts_with('"')).unwrap_or("\"\""));
    match call.get("function").or_else(|| call.get("custom")).map(Object::parse)? {
        Ok(function) => call_of(id, &function),
        Err(_) => None,
    }
}

fn call_of<'a>(id: Cow<'a, str>, function: &Object<'a>) -> Option<ReplyPart<'a>> {
    let name = function.get("name").filter(|name| name.starts_with('"'))?;
    let raw = function.get("arguments").or_else(|| function.get("input")).unwrap_or("{}");
    let text = json::string(raw).unwrap_or(Cow::Borrowed(raw));
    let input = match Object::parse(&text) {
        Ok(_) => json::on_one_line(&text),
        Err(_) if text.trim().is_empty() => "{}".to_owned(),
        Err(_) => Members::new().string("input", &text).into_json(),
    };
    Some(ReplyPart::Call(id, Cow::Borrowed(name), Cow::Owned(input)))
}

#[cfg(test)]
mod tests;
