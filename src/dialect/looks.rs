//! Detects what kind of content an input has: records, a transcript of another program, or something else. The error
//! for an input without records says what to do with it.
//!
//! Records that are truncated or damaged after a crash still count as records: the input can be read, with
//! findings, and appended to.

use super::{Dialect, foreign_tree};
use crate::exit::{Exit, fail};
use crate::input::Input;
use crate::input::line::{Line, LineObject};
use crate::input::lines::Lines;
use crate::json::Object;
use crate::record::{self, Body};
use std::ops::Range;

/// The number of bytes to read first. They nearly always contain a record.
const NEAR: u64 = 4 * 1024;
/// The number of bytes to examine at the end of an input, and at its beginning if no line is an object.
const EXAMINED: u64 = 64 * 1024;
/// The first bytes of a record, as clawutils or claw0 writes it.
const RECORD_BEGINNINGS: [&[u8]; 2] = [b"{\"id\":\"", b"{\"type\":\""];

/// The kind of an input's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Empty, blank, or only NUL bytes or the beginning of a record, as a crash can leave it.
    Empty,
    /// Records of clawutils or claw0, intact or damaged.
    Records,
    /// A record that spans several lines.
    Spread,
    /// Messages, one per line.
    Messages,
    /// The body of a request to a provider.
    Request,
    /// The body of a provider's response.
    Answer,
    /// A JSON array.
    Array,
    /// A transcript of another program that can be translated.
    Dialect(Dialect),
    /// Other JSON objects.
    Objects,
    /// Text.
    Text,
    /// Binary data, with a description of its kind.
    Binary(&'static str),
}

/// Returns an error for an input that is not empty and holds no records.
///
/// # Errors
/// Status 65 for such an input; the message says what it looks like and what to do. Status 74 if it cannot be read.
pub fn require_records(input: &Input) -> anyhow::Result<()> {
    of(input)?.require_records(input)
}

impl Looks {
    /// Returns an error unless `input`, which looks like this, is empty or holds records.
    ///
    /// # Errors
    /// As [`require_records`].
    pub fn require_records(self, input: &Input) -> anyhow::Result<()> {
        let Some(words) = self.problem() else { return Ok(()) };
        let text = format!("cannot read '{}': {words}; {}", input.name, self.advice());
        fail(Exit::Data, text)
    }

    /// Returns the reason why the input is not a transcript, or `None` if it is one or is empty.
    #[must_use]
    pub fn problem(self) -> Option<String> {
        let kind = match self {
            Looks::Empty | Looks::Records => return None,
            Looks::Spread => "a record that spans several lines",
            Looks::Messages => "messages, as claw-rebuild prints them",
            Looks::Request => "a request to a provider",
            Looks::Answer => "a provider's answer",
            Looks::Array => "a JSON array",
            Looks::Dialect(dialect) => &format!("a transcript of {dialect}"),
            Looks::Objects => "JSON objects without a record type",
            Looks::Text => "text",
            Looks::Binary(kind) => kind,
        };
        Some(format!("not a transcript (looks like {kind})"))
    }

    /// Returns what to do with an input that is not a transcript.
    fn advice(self) -> &'static str {
        match self {
            Looks::Spread => "write each record on one line, as 'jq -c .' does",
            Looks::Messages => "give the transcript that the messages come from",
            Looks::Answer => "claw-call writes answers as records",
            Looks::Dialect(_) => {
                "'claw-session import' converts it to records, see claw-dialects(7)"
            }
            Looks::Text => "'claw-append --user' turns text into a record",
            Looks::Binary(_) => "give a transcript",
            _ => "a transcript has one record on each line, see claw-record(5)",
        }
    }
}

/// Returns the advice for invalid input as the end of an error message; empty if there is none.
#[must_use]
pub fn advice(what_to_do: impl Fn(Looks) -> Option<&'static str>, bytes: &[u8]) -> String {
    let looks = of(&Input::memory("", bytes.to_vec())).unwrap_or(Looks::Empty);
    what_to_do(looks).map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Returns what to do with an input that should be messages.
#[must_use]
pub fn advice_for_messages(looks: Looks) -> Option<&'static str> {
    match looks {
        Looks::Messages | Looks::Empty => None,
        Looks::Records => Some("these are records, pipe them through claw-rebuild"),
        Looks::Request => Some("give its messages, one per line: jq -c '.messages[]'"),
        Looks::Array => Some("give one message per line: jq -c '.[]'"),
        Looks::Dialect(_) => Some("pipe it through claw-rebuild"),
        _ => Some("give messages as claw-rebuild prints them"),
    }
}

/// Returns what to do with an input that should be records to append.
#[must_use]
pub fn advice_for_records(looks: Looks) -> Option<&'static str> {
    match looks {
        Looks::Records | Looks::Empty => None,
        Looks::Messages => Some("these are messages; a record has a type, see claw-record(5)"),
        looks => Some(looks.advice()),
    }
}

/// Returns the kind of an input. Stops at the first conclusive line, and reads the middle only if the beginning and the
/// end are not conclusive.
///
/// # Errors
/// Fails if it cannot be read.
pub fn of(input: &Input) -> anyhow::Result<Looks> {
    if let Some(looks) = of_ends(input)? {
        return Ok(looks);
    }
    match Objects::of(input, 0..input.length)?.looks() {
        Some(looks) => Ok(looks),
        None => Ok(of_beginning(&input.part(0, input.length.min(EXAMINED))?)),
    }
}

/// Returns the kind of an input if its beginning or end is conclusive.
fn of_ends(input: &Input) -> anyhow::Result<Option<Looks>> {
    let length = input.length;
    let near = input.part(0, length.min(NEAR))?;
    // The first line is nearly always conclusive.
    let first = memchr::memchr(b'\n', &near).unwrap_or_default();
    let first = Objects::of(input, 0..first as u64)?;
    if first.decided.is_some() {
        return Ok(first.decided);
    }
    let feed = memchr::memrchr(b'\n', &near).unwrap_or_default();
    let near = Objects::of(input, 0..feed as u64)?;
    if near.decided.is_some() || length <= EXAMINED {
        return Ok(near.decided);
    }
    let from = length - EXAMINED;
    let end = input.part(from, length)?;
    let feed = memchr::memchr(b'\n', &end).unwrap_or(end.len());
    let end = Objects::of(input, from + feed as u64..length)?;
    let is_unknown = near.has_unknown || end.has_unknown;
    let is_foreign = near.foreign.or(end.foreign).is_some();
    Ok(end.decided.or((is_unknown && !is_foreign).then_some(Looks::Records)))
}

/// The kinds of the objects in an input, up to the first conclusive one.
#[derive(Default)]
struct Objects {
    /// The conclusive kind, after a record of a known type or of a dialect.
    decided: Option<Looks>,
    /// The kind of the first object that has a type but is neither a record nor of a dialect: a provider's answer.
    foreign: Option<Looks>,
    /// True after a record of an unknown type.
    has_unknown: bool,
    /// The kind of the first line, if it is an object without a type.
    first: Option<Looks>,
    /// The number of lines so far.
    count: usize,
}

impl Objects {
    /// Reads a range of complete lines.
    fn of(input: &Input, range: Range<u64>) -> anyhow::Result<Objects> {
        let mut objects = Objects::default();
        let mut lines = Lines::new(std::slice::from_ref(input), range);
        while let Some(mut batch) = lines.batch()? {
            while objects.decided.is_none()
                && let Some(line) = batch.next()
            {
                objects.take(line);
            }
            if objects.decided.is_some() {
                break;
            }
        }
        Ok(objects)
    }

    fn take(&mut self, line: Line<'_>) {
        self.count += 1;
        let Ok(LineObject { object, .. }) = line else { return };
        let body = record::parse(&object);
        let is_record = !matches!(body, Ok(Body::Session | Body::Other) | Err(_));
        if is_record {
            self.decided = Some(Looks::Records);
        } else if let Some(dialect) = foreign_tree(&object) {
            self.decided = Some(Looks::Dialect(dialect));
        } else if let Some(looks) = foreign(&object) {
            // One object of a dialect is conclusive; a provider's answer is not, because records may follow.
            match looks {
                Looks::Dialect(_) => self.decided = Some(looks),
                _ => drop(self.foreign.get_or_insert(looks)),
            }
        } else if object.string("type").is_none() {
            let looks = without_type(&object);
            if matches!(looks, Looks::Dialect(_)) {
                self.decided = Some(looks);
            }
            self.first = self.first.or((self.count == 1).then_some(looks));
        } else if matches!(body, Ok(Body::Other)) {
            self.has_unknown = true;
        } else {
            // A session header, or a damaged record: its type is known, but a member is missing.
            self.decided = Some(Looks::Records);
        }
    }

    fn looks(&self) -> Option<Looks> {
        let unknown = self.has_unknown.then_some(Looks::Records);
        self.decided.or(self.foreign).or(unknown).or(self.first)
    }
}

/// Returns the kind of an object that has a type and is in a known foreign format, or `None`.
fn foreign(object: &Object<'_>) -> Option<Looks> {
    let has = |name: &str| object.get(name).is_some();
    let kind = object.string("type")?;
    if ["parentUuid", "sessionId", "leafUuid"].into_iter().any(has) {
        Some(Looks::Dialect(Dialect::ClaudeCode))
    } else if has("payload") && has("timestamp") {
        Some(Looks::Dialect(Dialect::Codex))
    } else if has("data") && has("parentId") && has("timestamp") {
        Some(Looks::Dialect(Dialect::Copilot))
    } else if kind == "message" && has("role") {
        Some(Looks::Answer)
    } else {
        None
    }
}

/// Returns the dialect of a message whose form only one API uses. The messages that claw-rebuild prints never match,
/// because they have no system prompt, no role for tools, and no parts.
fn dialect_of_message(object: &Object<'_>) -> Option<Dialect> {
    let role = object.string("role")?;
    let is_chat = matches!(&*role, "system" | "developer" | "tool" | "function");
    if object.get("parts").is_some_and(|raw| raw.starts_with('[')) {
        Some(Dialect::Gemini)
    } else if is_chat || object.get("tool_calls").is_some() {
        Some(Dialect::Openai)
    } else {
        None
    }
}

/// Returns the kind of an object without a type.
fn without_type(object: &Object<'_>) -> Looks {
    let has = |name: &str| object.get(name).is_some();
    let is_list = |name: &str| object.get(name).is_some_and(|raw| raw.starts_with('['));
    if has("projectHash") && has("sessionId") {
        Looks::Dialect(Dialect::GeminiCli)
    } else if let Some(dialect) = dialect_of_message(object) {
        Looks::Dialect(dialect)
    } else if is_list("messages") || has("model") && is_list("input") {
        Looks::Dialect(Dialect::Openai)
    } else if is_list("contents") {
        Looks::Dialect(Dialect::Gemini)
    } else if has("messages") || has("contents") || has("model") && has("input") {
        Looks::Request
    } else if has("role") && (has("content") || has("parts") || has("tool_calls")) {
        Looks::Messages
    } else if has("choices") || has("candidates") || has("model") && has("message") {
        Looks::Answer
    } else {
        Looks::Objects
    }
}

/// Returns the kind of an input by its beginning, if no line is an object.
fn of_beginning(beginning: &[u8]) -> Looks {
    let bytes = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let Some(start) = bytes.iter().position(|byte| !is_blank(byte)) else { return Looks::Empty };
    let bytes = &bytes[start..];
    let is_torn = |begin: &&[u8]| bytes.starts_with(begin) || begin.starts_with(bytes);
    if RECORD_BEGINNINGS.iter().any(is_torn) {
        return Looks::Empty;
    }
    if let Some(kind) = binary(bytes) {
        return Looks::Binary(kind);
    }
    let next = bytes[1..].iter().find(|byte| !is_blank(byte)).copied();
    match (bytes[0], next) {
        (b'{', Some(b'"')) => on_several_lines(bytes),
        (b'[', Some(b'{')) => array(bytes),
        (b'[', Some(b'[' | b'"' | b']')) => Looks::Array,
        _ => Looks::Text,
    }
}

/// Returns the kind of an array of objects by its beginning.
fn array(bytes: &[u8]) -> Looks {
    let holds = |name: &str| memchr::memmem::find(bytes, name.as_bytes()).is_some();
    match (holds("\"role\""), holds("\"parts\"")) {
        (true, true) => Looks::Dialect(Dialect::Gemini),
        (true, false) => Looks::Dialect(Dialect::Openai),
        (false, _) => Looks::Array,
    }
}

/// Returns the kind of an object that spans several lines.
fn on_several_lines(bytes: &[u8]) -> Looks {
    let holds = |name: &str| memchr::memmem::find(bytes, name.as_bytes()).is_some();
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    match Object::parse(text) {
        Ok(object) if object.string("type").is_none() => without_type(&object),
        Ok(object) => foreign(&object).unwrap_or(Looks::Spread),
        // There are several objects, or the object is cut off.
        Err(_) if holds("\"projectHash\"") => Looks::Dialect(Dialect::GeminiCli),
        Err(_) if holds("\"messages\"") => Looks::Dialect(Dialect::Openai),
        Err(_) if holds("\"contents\"") => Looks::Dialect(Dialect::Gemini),
        Err(_) if holds("\"type\"") => Looks::Spread,
        Err(_) => Looks::Objects,
    }
}

/// Returns the kind of binary data, or `None` for text.
fn binary(bytes: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &'static str); 7] = [
        (b"%PDF-", "a PDF file"),
        (b"\x1F\x8B", "compressed data"),
        (b"\x28\xB5\x2F\xFD", "compressed data"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x89PNG", "an image"),
        (b"\xFF\xD8\xFF", "an image"),
        (b"SQLite format 3", "an SQLite database"),
    ];
    let known = kinds.into_iter().find(|(begin, _)| bytes.starts_with(begin));
    // The last character may be incomplete.
    let is_utf8 =
        std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    let is_text = is_utf8 && !bytes.contains(&0);
    known.map(|(_, kind)| kind).or_else(|| (!is_text).then_some("binary data"))
}

#[cfg(test)]
mod tests;
