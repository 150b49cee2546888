//! Putting a reply together from the events of a stream: what all protocols share.

use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::provider::Reply;
use crate::provider::stream::MOST_EVENT;
use std::borrow::Cow;

/// The most blocks or calls of an answer that comes as a stream.
const MOST_PARTS: usize = 4096;

/// Holds the number of blocks or calls of a stream to [`MOST_PARTS`]: each takes more memory than it has bytes.
///
/// # Errors
/// Says that it is over, as a clause about the answer.
pub(super) fn bounded(parts: usize) -> Result<(), String> {
    match parts > MOST_PARTS {
        true => Err(format!("has more than {MOST_PARTS} blocks or calls")),
        false => Ok(()),
    }
}

/// The part of an answer that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Something that the answer needs.
    Needed,
    /// A part that it can do without: counts after the reason for the end, the rest of a refusal.
    Welcome,
    /// Nothing: it ended, or what follows cannot change it.
    Nothing,
}

/// An answer that does not make a reply.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The reason, as a clause about the answer.
    pub why: String,
    /// The part that was shown.
    pub shown: Reply,
}

impl Unfinished {
    /// A stream that ended before its end, of which this was shown.
    pub(super) fn cut(shown: Reply) -> Unfinished {
        Unfinished { why: "was cut off: its stream has no end".to_owned(), shown }
    }
}

/// Puts a reply together from the events of its stream.
pub trait Collect {
    /// Takes the data of the next event. Text that the model says is given to `show` as it comes.
    ///
    /// # Errors
    /// Says what is wrong with the event, as a clause about the answer.
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String>;

    /// Takes the marker that some streams end in, `[DONE]`.
    fn done(&mut self) {}

    /// Tells the part of the answer that is still to come.
    fn rest(&self) -> Rest;

    /// Returns the part that was shown so far: the texts, and the members of the reply around them.
    fn shown(self: Box<Self>) -> Reply;

    /// The reply, once the stream has ended.
    ///
    /// # Errors
    /// Says what the answer lacks, for example the end of its stream.
    fn finish(self: Box<Self>) -> Result<Reply, Unfinished>;
}

/// Text that comes as parts of a JSON string. The parts are put together as they are spelled: a character
/// beyond U+FFFF may come as two escapes in two parts.
#[derive(Clone, Debug, Default)]
pub(super) struct RawString {
    inner: String,
}

impl RawString {
    /// A text.
    pub(super) fn of(text: &str) -> RawString {
        let mut raw = RawString::default();
        raw.add(Some(&quote(text)));
        raw
    }

    /// Adds a JSON string; anything else adds nothing. Gives its text.
    pub(super) fn add<'r>(&mut self, raw: Option<&'r str>) -> Cow<'r, str> {
        self.keep(raw);
        raw.and_then(crate::json::string).unwrap_or_default()
    }

    /// Adds a JSON string; anything else adds nothing.
    pub(super) fn keep(&mut self, raw: Option<&str>) {
        let quoted = raw.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"'));
        self.inner.push_str(quoted.unwrap_or_default());
    }

    /// All of it, as it is spelled, between two texts. It may be long, and is not copied.
    pub(super) fn into_between(self, before: &str, after: &str) -> String {
        let mut text = self.inner;
        text.reserve_exact(before.len() + after.len());
        text.insert_str(0, before);
        text.push_str(after);
        text
    }

    /// Holds the input of the call of `name` to [`MOST_EVENT`]: it is decoded, and looked through.
    ///
    /// # Errors
    /// Says that it is over, as a clause about the answer.
    pub(super) fn bounded(&self, name: &str) -> Result<(), String> {
        match self.inner.len() > MOST_EVENT {
            true => {
                Err(format!("calls '{name}' with an input of more than {} MiB", MOST_EVENT >> 20))
            }
            false => Ok(()),
        }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// All of it as a JSON string.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.inner)
    }

    /// All of it as text.
    pub(super) fn text(&self) -> String {
        crate::json::string(&self.quoted()).unwrap_or_default().into_owned()
    }
}

/// A call as a block, from its id, its name and its input, a JSON text; an empty one is `{}`.
///
/// # Errors
/// Says so when the input is no object.
pub(super) fn call_block(id: &str, name: &str, input: &str) -> Result<String, String> {
    let input = if input.trim().is_empty() { "{}" } else { input.trim() };
    if Object::parse(input).is_err() {
        return Err(format!("calls '{name}' with an input that is no JSON object"));
    }
    // On one line, whatever white space it was sent with: a record is a line.
    let input = crate::json::on_one_line(input);
    let block = Members::of_type("tool_use").string("id", id).string("name", name);
    Ok(block.raw("input", &input).into_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_come_in_two_parts() {
        let mut text = RawString::default();
        text.add(Some(r#""a\ud83d""#));
        text.add(Some("null"));
        text.add(Some(r#""\ude00b""#));
        assert_eq!(
            (text.quoted().as_str(), text.text().as_str()),
            (r#""a\ud83d\ude00b""#, "a\u{1f600}b")
        );
    }

    #[test]
    fn v_an_input_that_is_none_is_never_taken_for_an_empty_one() {
        assert!(call_block("a", "f", r#"{"x":"#).is_err());
        assert!(call_block("a", "f", "[]").is_err());
        let spread = call_block("a", "f", "{\n \"x\": \"a\\nb  c\"}").unwrap();
        assert_eq!(spread, r#"{"type":"tool_use","id":"a","name":"f","input":{  "x": "a\nb  c"}}"#);
        assert!(call_block("a", "f", " ").unwrap().ends_with(r#""input":{}}"#));
    }
}
