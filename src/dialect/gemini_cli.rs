//! Chats of Gemini CLI: lines that say what happened to a list of messages.
//!
//! They are read as version 0.61.0 reads them. It was observed while it made and resumed sessions; its source is public
//! (google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts and utils/sessionUtils.ts).
//!
//! - The first line, which has `sessionId` and `projectHash`, describes the session, and so does `$set`.
//! - A line with an `id` is a message. It takes the place of an earlier one with this id.
//! - `$set` with `messages` replaces all messages. A resume and a compression write it.
//! - `$rewindTo` removes the message with this id and all that follow; all messages if there is none with it.
//! - Results are members of their calls. Since 0.61, they also follow as a message of the user, which is a copy.
//! - Versions before 0.40 wrote one JSON object with the list `messages`.

use crate::dialect::chat::Places;
use crate::dialect::chat::gemini::{Gemini, inner, response};
use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{Chunk, RecordSource, Translation};
use crate::dialect::writer::{Block, Content, Reply, ReplyPart, Usage};
use crate::dialect::{Choice, text_beside};
use crate::finding::rules;
use crate::input::Input;
use crate::input::line::without_mark;
use crate::input::origin::SourcePlace;
use crate::json::outline::{Outline, Value};
use crate::json::{self, Object, elements};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The number of bytes in which the first line is searched for.
const FIRST_LINE: u64 = 64 * 1024;
/// The most bytes of the file that has the working directory.
const MOST_PATH: u64 = 4096;

/// The place and the translation of a message.
type Entry = (SourcePlace, Chunk);

/// The messages so far.
#[derive(Default)]
struct Chat {
    entries: Vec<Entry>,
    /// The indices of the messages in `entries`, by their ids.
    ids: HashMap<String, usize>,
    has_header: bool,
    title: Option<Entry>,
    /// The ids of calls that have their results, as JSON.
    answered: HashSet<String>,
    /// The state of the calls that are in contents.
    gemini: Gemini,
}

/// Translates a chat.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if a leaf is chosen, because a file
/// has only one branch.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    choice.require_no_leaf(input)?;
    let mut out = Translation::new(input, choice);
    let (mut chat, directory) = (Chat::default(), directory(input));
    if is_one_object(input)? {
        let bytes = input.bytes()?;
        let text = String::from_utf8_lossy(without_mark(&bytes));
        chat.take_object(&text, bytes.len() - text.len().min(bytes.len()), &mut out);
    } else {
        out.each_line(&mut |line, out| chat.take(line, directory.as_deref(), out))?;
    }
    for (place, chunk) in chat.entries.into_iter().chain(chat.title) {
        out.add(place, chunk);
    }
    out.finish(&rules::UNKNOWN_TYPE)
}

/// Returns true if the input is an object on several lines.
fn is_one_object(input: &Input) -> anyhow::Result<bool> {
    let begin = input.part(0, input.length.min(FIRST_LINE))?;
    let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(first.trim_ascii() == b"{")
}

/// Returns the working directory, which Gemini CLI keeps in a file beside the directory of the chats.
fn directory(input: &Input) -> Option<String> {
    let project = Path::new(&*input.name).parent()?.parent()?;
    let path = text_beside(&project.join(".project_root"), MOST_PATH)?;
    Some(path.trim_end().to_owned())
}

/// The beginning of the message that a prompt was not answered.
const FAILED: &str = "[API Error";

impl Chat {
    fn take(&mut self, line: SourceLine<'_>, directory: Option<&str>, out: &mut Translation<'_>) {
        let value = line.value;
        out.keep(&RecordSource { line, id: None, ts: None });
        if let Some(id) = value.string("$rewindTo") {
            let keep = self.ids.get(&*id).copied().unwrap_or(0);
            self.entries.truncate(keep);
            self.ids.retain(|_, index| *index < keep);
        } else if value.string("id").is_some() {
            self.message(line, out);
        } else if let Some(set) = value.object("$set") {
            if set.member("messages").is_some_and(|list| list.elements().is_some()) {
                self.entries.clear();
                self.ids.clear();
                self.answered.clear();
            }
            self.messages(line, set, out);
            self.set_title(line, set, out);
        } else if value.get("sessionId").is_some() {
            if !std::mem::replace(&mut self.has_header, true) {
                out.header(line.place, |out| header(line, directory, out));
            }
            self.messages(line, value, out);
            self.set_title(line, value, out);
        } else {
            out.unknown("lines of an unknown kind", line.place);
        }
    }

    /// Takes a session that is one object.
    fn take_object(&mut self, text: &str, mark: usize, out: &mut Translation<'_>) {
        let Ok(object) = Object::parse(text.trim()) else { return };
        let mut places = Places::new(text, mark);
        let mut outline = Outline::default();
        let place = SourcePlace { line: 1, offset: 0, length: 0 };
        if let Some(line) = SourceLine::of(text.trim(), mark as u64, place, &mut outline) {
            out.header(place, |out| header(line, None, out));
            self.set_title(line, line.value, out);
        }
        for own in object.get("messages").and_then(elements).unwrap_or_default() {
            let place = places.of(own);
            let mut outline = Outline::default();
            if let Some(line) = SourceLine::of(own, place.offset, place, &mut outline) {
                self.message(line, out);
            }
        }
    }

    /// Takes the list of messages in an object of a line.
    fn messages(&mut self, line: SourceLine<'_>, object: Value<'_>, out: &mut Translation<'_>) {
        for value in object.list("messages").filter(|message| message.is_object()) {
            self.message(line.with_value(value), out);
        }
    }

    fn set_title(&mut self, line: SourceLine<'_>, object: Value<'_>, out: &mut Translation<'_>) {
        let Some(title) = object.string("summary").filter(|title| !title.trim().is_empty()) else {
            return;
        };
        let source = RecordSource { line, id: None, ts: None };
        let chunk = out.chunk(|out| {
            out.record(&source, 1, "label").string("label", title.trim());
        });
        self.title = Some((line.place, chunk));
    }

    /// Takes a message, which may be a part of a line.
    fn message(&mut self, line: SourceLine<'_>, out: &mut Translation<'_>) {
        let message = line.value;
        let Some(id) = message.string("id") else { return };
        let ts = message.get("timestamp").map(Time::Text);
        let source = RecordSource { line, id: Some(id.clone()), ts };
        let chunk = out.chunk(|out| match message.string("type").as_deref() {
            Some("user") => self.user(&source, out),
            Some("gemini") => self.reply(&source, out),
            Some("error") => {
                let text = message.string("content").filter(|it| it.starts_with(FAILED));
                if let Some(text) = text {
                    out.failure(&source, "failed", None, &text);
                }
            }
            Some("info" | "warning") => {}
            kind => {
                let kind = kind.unwrap_or_default();
                out.unknown(format!("messages of the unknown type '{kind}'"), line.place);
            }
        });
        let entry = (line.place, chunk);
        match self.ids.get(&*id) {
            Some(index) => self.entries[*index] = entry,
            None => {
                self.ids.insert(id.into_owned(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    fn user(&mut self, source: &RecordSource<'_>, out: &mut Translation<'_>) {
        let Some(content) = source.line.value.member("content") else { return };
        let Some(parts) = content.elements() else {
            if json::string(content.text()).is_some_and(|text| !is_ignored(&text)) {
                let content = Content::Json(content.text().into());
                out.record(source, 1, "user").content("content", &content);
            }
            return;
        };
        let parts: Vec<Value<'_>> = parts.filter(|part| part.is_object()).collect();
        let texts = parts.iter().filter_map(|part| part.string("text"));
        let is_text = |part: &Value<'_>| part.get("text").is_some();
        if parts.iter().all(is_text) && is_ignored(&texts.collect::<String>()) {
            return;
        }
        let answers = parts.iter().filter_map(|part| answer(*part)?.get("id"));
        let answers: Vec<&str> = answers.collect();
        let new = answers.iter().filter(|id| !self.answered.contains(**id));
        let new: Vec<&str> = new.copied().collect();
        if new.is_empty() && answers.is_empty() {
            return self.gemini.user(parts.into_iter(), source, out);
        }
        let before = out.records();
        for id in new {
            if let Some(content) = result_in(id, &parts) {
                self.answered.insert(id.to_owned());
                out.record(source, out.records() - before + 1, "tool_result")
                    .raw("tool_use_id", id)
                    .content("content", &content)
                    .flag("is_error", has_failed(id, &parts));
            }
        }
        // A prompt can follow the results. Its images come after its text.
        let rest = parts.iter().skip_while(|part| !is_text(part)).filter_map(|part| block(*part));
        let rest: Vec<Block<'_>> = rest.collect();
        if !rest.is_empty() {
            let number = out.records() - before + 1;
            out.record(source, number, "user").content("content", &Content::Blocks(rest));
        }
    }

    fn reply(&mut self, source: &RecordSource<'_>, out: &mut Translation<'_>) {
        let message = source.line.value;
        let content = message.member("content");
        let parts = content.and_then(Value::elements);
        let mut reply = match parts {
            Some(parts) => self.gemini.reply(parts.filter(|part| part.is_object())),
            None => {
                let text = content.map(Value::text).filter(|text| !json::is_blank(text));
                let parts = text.filter(|text| text.starts_with('"')).map(ReplyPart::text);
                Reply { parts: parts.into_iter().collect(), ..Reply::default() }
            }
        };
        let is_call = |part: &ReplyPart<'_>| matches!(part, ReplyPart::Call { .. });
        let has_calls = reply.parts.iter().any(is_call);
        let calls: Vec<Value<'_>> = message.list("toolCalls").filter(|it| it.is_object()).collect();
        if !has_calls {
            reply.parts.extend(calls.iter().map(|call| ReplyPart::Call {
                id: Cow::Borrowed(call.quoted("id").unwrap_or("\"\"")),
                name: call.quoted("name").unwrap_or("\"\""),
                input: call.object("args").map_or("{}", Value::text).into(),
            }));
        }
        reply.model = message.quoted("model");
        reply.provider = Some("\"google\"");
        reply.call = message.string("id");
        reply.usage = message.object("tokens").map(|tokens| Usage::Whole(counts(tokens)));
        reply.reasoning = reply.reasoning.or_else(|| thoughts(message));
        if reply.parts.is_empty() && reply.reasoning.is_none() {
            return;
        }
        let before = out.records();
        out.reply(source, 1, &reply);
        for call in calls {
            let (Some(id), Some(given)) = (call.quoted("id"), call.member("result")) else {
                continue;
            };
            let Some(content) = result_of(id, given) else { continue };
            self.answered.insert(id.to_owned());
            let number = out.records() - before + 1;
            out.record(source, number, "tool_result")
                .raw("tool_use_id", id)
                .content("content", &content)
                .flag("is_error", call.get("status") == Some("\"error\""));
        }
    }
}

/// Returns true for a prompt that Gemini CLI does not send again: a command, or the context that it makes anew.
fn is_ignored(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || ["/", "?", "<session_context>", "<hook_context>"].iter().any(|it| text.starts_with(it))
}

fn answer(part: Value<'_>) -> Option<Value<'_>> {
    inner(part, "functionResponse", "function_response")
}

/// Returns the content of a call's result: a text, or the response with the call's id in a list of parts and the files
/// that follow it. Gemini CLI can give each call of a reply the parts of all.
fn result_of<'a>(id: &str, result: Value<'a>) -> Option<Content<'a>> {
    let Some(parts) = result.elements() else {
        let text = Some(result.text()).filter(|text| text.starts_with('"'));
        let object = || answer(result).map(|answer| response(answer.member("response")));
        return Some(Content::Json(
            text.map_or_else(|| object().unwrap_or("\"\"".into()), Cow::Borrowed),
        ));
    };
    result_in(id, &parts.filter(|part| part.is_object()).collect::<Vec<_>>())
}

/// Returns a text or a file as a block.
fn block(part: Value<'_>) -> Option<Block<'_>> {
    if let Some(text) = part.quoted("text") {
        return Some(Block::Text(text.into()));
    }
    let data = inner(part, "inlineData", "inline_data")?;
    Some(Block::Image(data.quoted("mimeType")?.into(), data.quoted("data")?.into()))
}

/// Returns true if the response to a call in these parts is an error.
fn has_failed(id: &str, parts: &[Value<'_>]) -> bool {
    let mut own = parts.iter().filter_map(|part| answer(*part));
    let own = own.find(|answer| answer.get("id") == Some(id));
    own.and_then(|answer| answer.object("response")).is_some_and(|it| it.get("error").is_some())
}

/// Returns the content of the result of a call in these parts.
fn result_in<'a>(id: &str, parts: &[Value<'a>]) -> Option<Content<'a>> {
    let is_own = |part: &Value<'a>| {
        answer(*part).is_some_and(|answer| answer.get("id").is_none_or(|own| own == id))
    };
    let at = parts.iter().position(is_own)?;
    let text = response(answer(parts[at])?.member("response"));
    let is_file = |part: &&Value<'a>| answer(**part).is_none() && part.get("text").is_none();
    let files = parts[at + 1..].iter().take_while(is_file);
    let images: Vec<Block<'a>> = files.filter_map(|part| block(*part)).collect();
    Some(match images.is_empty() {
        true => Content::Json(text),
        false => Content::Blocks(std::iter::once(Block::Text(text)).chain(images).collect()),
    })
}

/// Returns the tokens of a reply: those of the prompt, the part of them that was in the cache, and the output.
#[must_use]
pub fn counts(tokens: Value<'_>) -> [u64; 3] {
    let number = |name| tokens.number(name).unwrap_or(0);
    [number("input"), number("cached"), number("output").saturating_add(number("thoughts"))]
}

/// Returns the thoughts of a message, which are summaries of the model's thinking.
fn thoughts(message: Value<'_>) -> Option<String> {
    let thought = |thought: Value<'_>| {
        let text = |name| thought.string(name).filter(|text| !text.is_empty());
        match (text("subject"), text("description")) {
            (Some(subject), Some(text)) => Some(format!("**{subject}** {text}")),
            (subject, text) => text.or(subject).map(Cow::into_owned),
        }
    };
    let thoughts: Vec<String> = message.list("thoughts").filter_map(thought).collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n\n"))
}

/// Writes the header of the session.
fn header(line: SourceLine<'_>, directory: Option<&str>, out: &mut Translation<'_>) {
    let own = line.value;
    let ts = own.get("startTime").map(Time::Text);
    let source = RecordSource { line, id: own.string("sessionId"), ts };
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("created", own.get("startTime"))
        .object("source", |it| {
            it.string("dialect", "gemini-cli");
            if let Some(directory) = directory {
                it.string("cwd", directory);
            }
        });
}

#[cfg(test)]
mod tests;
