//! Sealing: the checks of a record that is to be written, and its id, which is a hash over the line before it and its own.

use super::content::{Block, BlockKind};
use super::hash::Hash;
use super::{Body, parse};
use crate::json::write::{Members, opening};
use crate::json::{self, Object};
use std::borrow::Cow;

/// Returns the id of a record: the first 16 hex digits of the SHA-256 over the previous line, a line feed, and the
/// record without its id member. `rest` is that record after its opening brace.
///
/// Ids reveal damage (a changed, missing or inserted line). They are not signatures.
#[must_use]
pub fn id(previous: &[u8], rest: &str) -> String {
    LineHash::of(previous).id_of(rest)
}

/// The state of the hash after a line. Continuing the hash over the next record gives that record's id.
#[derive(Clone, Debug)]
pub struct LineHash(Hash);

impl Default for LineHash {
    fn default() -> LineHash {
        LineHash::of(b"")
    }
}

/// The bytes between a line and the rest of the next record.
const BETWEEN: &[u8] = b"\n{";

impl LineHash {
    /// Returns the state after `line`, the line before the record. For the first record of a file, `line` is empty.
    #[must_use]
    pub fn of(line: &[u8]) -> LineHash {
        let mut hash = Hash::new();
        hash.update(line);
        hash.update(BETWEEN);
        LineHash(hash)
    }

    /// Returns the id of the next line, whose text after the id is `rest`.
    #[must_use]
    pub fn id_of(&self, rest: &str) -> String {
        let mut hash = self.0.clone();
        hash.update(rest.as_bytes());
        hex(hash.finish())
    }

    /// Returns the id of the next line, as [`LineHash::id_of`] does, and the state after that line.
    #[must_use]
    pub fn next(mut self, line: &str, rest: &str) -> (String, LineHash) {
        let mut next = Hash::new();
        Hash::update_both([&mut self.0, &mut next], [rest.as_bytes(), line.as_bytes()]);
        next.update(BETWEEN);
        (hex(self.0.finish()), LineHash(next))
    }
}

/// Returns the first 16 hex digits of the SHA-256 of `text`.
#[must_use]
pub fn digest(text: &str) -> String {
    let mut hash = Hash::new();
    hash.update(text.as_bytes());
    hex(hash.finish())
}

/// Returns the 16 hex digits of the first eight bytes of a hash.
fn hex(first: u64) -> String {
    format!("{first:016x}")
}

/// Checks the calls and results in a record that is to be written. Reading accepts calls without a name, an id, or an object
/// as input, because other programs have written them.
///
/// # Errors
/// Returns what is missing.
pub fn check_calls(body: &Body<'_>) -> Result<(), String> {
    match body {
        Body::ToolUse { id, name, input } => check_call(id, Some(name), Some(input))
            .map_err(|lacks| format!("'tool_use' record: no {lacks}")),
        Body::ToolResult { id, .. } if id.is_empty() => {
            Err("'tool_result' record: no 'tool_use_id'".to_owned())
        }
        Body::Assistant { content, .. } | Body::Interrupted { content } => {
            let check = |block: &Block<'_>| match &block.kind {
                BlockKind::ToolUse { id, is_valid: false } => {
                    check_call(id, block.member("name"), block.member("input"))
                }
                BlockKind::ToolUse { id, .. } | BlockKind::ToolResult { id } if id.is_empty() => {
                    Err("id")
                }
                _ => Ok(()),
            };
            let wrong = |lacks| format!("'assistant' record: a block of a call has no {lacks}");
            content.blocks().iter().try_for_each(check).map_err(wrong)
        }
        _ => Ok(()),
    }
}

/// Returns what a call lacks.
fn check_call(id: &str, name: Option<&str>, input: Option<&str>) -> Result<(), &'static str> {
    match (name, input) {
        _ if id.is_empty() => Err("'tool_use_id'"),
        (None | Some("\"\""), _) => Err("'name'"),
        (_, Some(input)) if input.starts_with('{') => Ok(()),
        _ => Err("'input' object"),
    }
}

/// Builds the line of a record from an object: adds the id at the beginning and, if `ts` is missing, adds `ts` after
/// the type.
///
/// An id in the object is dropped, because an id depends on the line before the record. Only a `session` header keeps
/// its id, which names the session. All other members keep their bytes, except that U+2028, U+2029 and U+0085 are
/// escaped, and a line break between values becomes a space.
///
/// # Errors
/// Returns the reason if the object is not a record (see [`parse`]).
pub fn seal(text: &str, previous: &[u8], ts: &str) -> Result<String, String> {
    let text = json::escape_line_breaks(text.trim_ascii());
    let object = Object::parse(&text).map_err(|error| format!("not a JSON object: {error}"))?;
    check_calls(&parse(&object)?)?;
    let is_session = object.string("type").as_deref() == Some("session");
    let own_id = object.string("id").filter(|_| is_session).map(Cow::into_owned);
    let mut sealed = Members::with_capacity(text.len() + ts.len() + 8);
    let mut lacks_ts = object.get("ts").is_none();
    for member in object.members() {
        let name = member.name();
        if name == "id" {
            continue;
        }
        sealed = sealed.member(member);
        if name == "type" && lacks_ts {
            sealed = sealed.raw("ts", ts);
            lacks_ts = false;
        }
    }
    let sealed = sealed.into_json();
    let id = own_id.unwrap_or_else(|| id(previous, &sealed[1..]));
    Ok([opening!("id"), &json::quote(&id), ",", &sealed[1..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealing_adds_id_and_time_and_keeps_the_other_members() {
        let line = seal(r#"{"type":"user","content":"hi","n":1e2,"x":null}"#, b"", "5.5").unwrap();
        let body = r#"{"type":"user","ts":5.5,"content":"hi","n":1e2,"x":null}"#;
        assert_eq!(line, format!(r#"{{"id":"{}",{}"#, digest(&format!("\n{body}")), &body[1..]));
    }

    #[test]
    fn ids_depend_on_the_line_before() {
        let text = r#"{"type":"user","content":"hi"}"#;
        let (a, b) = (seal(text, b"x", "1").unwrap(), seal(text, b"y", "1").unwrap());
        assert_ne!(a, b);
        assert_eq!(a, seal(&a, b"x", "2").unwrap(), "sealing again changes nothing");
    }

    #[test]
    fn a_session_keeps_its_id() {
        let line =
            seal(r#"{"type":"session","id":"81efc48888b7","created":"x"}"#, b"", "1").unwrap();
        assert!(line.starts_with(r#"{"id":"81efc48888b7","type":"session","ts":1,"#), "{line}");
    }

    #[test]
    fn unicode_line_separators_are_escaped() {
        let line = seal("{\"type\":\"user\",\"content\":\"a\u{2028}b\"}", b"", "1").unwrap();
        assert!(line.contains(r"a\u2028b"), "{line}");
    }

    #[test]
    fn v20_incomplete_records_are_refused() {
        for (text, why) in [
            (r#"{"content":"x"}"#, "a record has no 'type'"),
            (r#"{"type":"user"}"#, "'user' record: no 'content'"),
            (
                r#"{"type":"user","content":5}"#,
                "'user' record: 'content' is neither a string nor a list",
            ),
            (
                r#"{"type":"tool_use","tool_use_id":"t","name":"x"}"#,
                "'tool_use' record: no 'input' object",
            ),
            (r#"{"type":"tool_result","content":"x"}"#, "'tool_result' record: no 'tool_use_id'"),
            (r#"{"type":"checkpoint"}"#, "'checkpoint' record: no 'summary'"),
            (r#"{"type":"retract"}"#, "'retract' record: no 'target'"),
            (
                r#"{"type":"retr\u0061ct","target":"t"}"#,
                "'retract' record: 'type' must not contain escapes",
            ),
        ] {
            assert_eq!(seal(text, b"", "1").unwrap_err(), why);
        }
    }
}
