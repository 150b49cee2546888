//! Collecting a reply from the events of a stream: the code that all protocols share.

use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::provider::Reply;
use crate::provider::stream::MAX_EVENT;
use std::borrow::Cow;
use std::collections::HashSet;

/// The maximum number of blocks or tool calls in a streaming answer.
const MAX_PARTS: usize = 4096;

/// Checks the number of blocks or tool calls against [`MAX_PARTS`], because each takes more memory than its JSON
/// text.
///
/// # Errors
/// Returns a message phrased to follow "the answer".
pub(super) fn bounded(parts: usize) -> Result<(), String> {
    match parts > MAX_PARTS {
        true => Err(format!("has more than {MAX_PARTS} blocks or calls")),
        false => Ok(()),
    }
}

/// The part of an answer that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// The answer is incomplete.
    Required,
    /// Only optional parts are missing: the usage after the stop reason, or the rest of a refusal.
    Optional,
    /// The answer has ended, or later bytes cannot change it.
    None,
}

/// An answer from which no complete reply could be collected.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The reason, phrased to follow "the answer".
    pub why: String,
    /// The part that was shown.
    pub shown: Reply,
}

impl Unfinished {
    /// Returns the error for a stream that ended early, after `shown`.
    pub(super) fn cut(shown: Reply) -> Unfinished {
        Unfinished { why: "was cut off: the stream ended early".to_owned(), shown }
    }
}

/// A collector of the events of a stream.
pub trait Collect {
    /// Takes the data of the next event. The model's text is passed to `show` as it arrives.
    ///
    /// # Errors
    /// Returns what is wrong with the event, phrased to follow "the answer".
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String>;

    /// Takes the end marker of some streams, `[DONE]`.
    fn done(&mut self) {}

    /// Returns how much of the answer is still to come.
    fn remaining(&self) -> Remaining;

    /// Returns the part of the reply that was shown so far: its text blocks and metadata.
    fn shown(self: Box<Self>) -> Reply;

    /// Returns the reply, once the stream has ended.
    ///
    /// # Errors
    /// Returns what is missing, for example the end of the stream.
    fn finish(self: Box<Self>) -> Result<Reply, Unfinished>;
}

/// Text that arrives as parts of a JSON string. The parts are joined undecoded, because a character beyond U+FFFF may
/// arrive as two escapes in two parts.
#[derive(Clone, Debug, Default)]
pub(super) struct RawString {
    inner: String,
}

impl RawString {
    /// Returns `text` as a raw string.
    pub(super) fn of(text: &str) -> RawString {
        let mut raw = RawString::default();
        raw.add(Some(&quote(text)));
        raw
    }

    /// Appends a JSON string and returns its decoded text. Anything else is ignored.
    pub(super) fn add<'r>(&mut self, raw: Option<&'r str>) -> Cow<'r, str> {
        self.keep(raw);
        raw.and_then(crate::json::string).unwrap_or_default()
    }

    /// Appends a JSON string. Anything else is ignored.
    pub(super) fn keep(&mut self, raw: Option<&str>) {
        let quoted = raw.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"'));
        self.inner.push_str(quoted.unwrap_or_default());
    }

    /// Returns the undecoded text with `before` and `after` around it. The text may be long, so its buffer is reused.
    pub(super) fn into_between(self, before: &str, after: &str) -> String {
        let mut text = self.inner;
        text.reserve_exact(before.len() + after.len());
        text.insert_str(0, before);
        text.push_str(after);
        text
    }

    /// Checks the size of the input of a call to the tool `name` against [`MAX_EVENT`], because the input will be
    /// decoded and parsed.
    ///
    /// # Errors
    /// Returns a message phrased to follow "the answer".
    pub(super) fn bounded(&self, name: &str) -> Result<(), String> {
        match self.inner.len() > MAX_EVENT {
            true => {
                Err(format!("calls '{name}' with an input of more than {} MiB", MAX_EVENT >> 20))
            }
            false => Ok(()),
        }
    }

    /// Returns the length of the undecoded text in bytes.
    pub(super) fn len(&self) -> usize {
        self.inner.len()
    }

    /// Splits the undecoded text at an offset where a part began.
    pub(super) fn split_at(&self, at: usize) -> (&str, &str) {
        self.inner.split_at_checked(at).unwrap_or((&self.inner, ""))
    }

    /// Returns true if the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Returns the text as a JSON string.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.inner)
    }

    /// Returns the decoded text.
    pub(super) fn text(&self) -> String {
        crate::json::string(&self.quoted()).unwrap_or_default().into_owned()
    }
}

/// The ids of the calls of an answer.
#[derive(Debug, Default)]
pub(super) struct CallIds(HashSet<String>);

impl CallIds {
    /// Returns the id of the next call: its own if it has one that no call before it has, otherwise a free one.
    pub(super) fn next(&mut self, own: &str) -> String {
        let own = Some(own.to_owned()).filter(|own| !own.is_empty());
        let made_up = (self.0.len() + 1..).map(|number| format!("call_{number}"));
        let id = own.into_iter().chain(made_up).find(|id| !self.0.contains(id));
        let id = id.unwrap_or_default();
        self.0.insert(id.clone());
        id
    }
}

/// Returns a `tool_use` block. `input` is JSON; if it is empty, the input is `{}`.
///
/// # Errors
/// Fails if the input is not a JSON object.
pub(super) fn call_block(id: &str, name: &str, input: &str) -> Result<String, String> {
    let input = if input.trim().is_empty() { "{}" } else { input.trim() };
    if Object::parse(input).is_err() {
        return Err(format!("calls '{name}' with an input that is not a JSON object"));
    }
    // A record is one line, so line breaks become spaces.
    let input = crate::json::on_one_line(input);
    let block = Members::of_type("tool_use").string("id", id).string("name", name);
    Ok(block.raw("input", &input).into_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_arrive_in_two_parts() {
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
    fn each_call_gets_an_id_of_its_own() {
        let mut ids = CallIds::default();
        let ids = ["a", "", "call_2", "a", "call_5"].map(|own| ids.next(own));
        assert_eq!(ids, ["a", "call_2", "call_3", "call_4", "call_5"]);
    }

    #[test]
    fn an_invalid_input_is_never_treated_as_empty() {
        assert!(call_block("a", "f", r#"{"x":"#).is_err());
        assert!(call_block("a", "f", "[]").is_err());
        let spread = call_block("a", "f", "{\n \"x\": \"a\\nb  c\"}").unwrap();
        assert_eq!(spread, r#"{"type":"tool_use","id":"a","name":"f","input":{  "x": "a\nb  c"}}"#);
        assert!(call_block("a", "f", " ").unwrap().ends_with(r#""input":{}}"#));
    }
}
