//! The `omission` record: a block that is left out of requests.

use crate::json::Object;
use crate::json::write::Members;

/// The most characters of a reason.
const REASON: usize = 160;

/// A block that is left out of requests, or a part of a tool result. A line of text says so in its place; thinking
/// leaves no line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Omission {
    /// The id of the record that contains the block.
    pub record_id: String,
    /// For a tool result: the id of the call, as written in the transcript.
    pub tool_use_id: Option<String>,
    /// For any other block: its index in the content of the record. A string and a `tool_use` record count as one
    /// block.
    pub block: Option<u64>,
    /// For an item of a result's content: its index there.
    pub part: Option<u64>,
    /// The type of the block or item, such as `image`.
    pub kind: String,
    /// The reason, as one line for the model and the user.
    pub reason: String,
}

impl Omission {
    /// Parses the record.
    ///
    /// # Errors
    /// Returns the reason if a required member is missing.
    pub fn parse(object: &Object<'_>) -> Result<Omission, String> {
        let required = |name: &str| {
            let text = object.string(name).filter(|text| !text.is_empty());
            text.map(|text| text.into_owned()).ok_or_else(|| format!("no '{name}'"))
        };
        let tool_use_id = object.string("tool_use_id").map(|id| id.into_owned());
        let block = object.number("block");
        if tool_use_id.is_none() && block.is_none() {
            return Err("neither 'block' nor 'tool_use_id'".to_owned());
        }
        Ok(Omission {
            record_id: required("record_id")?,
            tool_use_id,
            block,
            part: object.number("part"),
            kind: required("kind")?,
            reason: one_line(&object.string("reason").unwrap_or_default()),
        })
    }

    /// Adds the members of the record.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .string("record_id", &self.record_id)
            .optional(Members::string, "tool_use_id", self.tool_use_id.as_deref())
            .optional(Members::number, "block", self.block)
            .optional(Members::number, "part", self.part)
            .string("kind", &self.kind)
            .string("reason", &self.reason)
    }

    /// Returns true for the whole result of the call `id`.
    #[must_use]
    pub fn is_result(&self, id: &str) -> bool {
        self.part.is_none() && self.tool_use_id.as_deref() == Some(id)
    }

    /// Returns true for the item with this index in the result of the call `id`.
    #[must_use]
    pub fn is_part(&self, id: &str, index: usize) -> bool {
        self.part == Some(index as u64) && self.tool_use_id.as_deref() == Some(id)
    }

    /// Returns true for the block with this index in the content of its record.
    #[must_use]
    pub fn is_block(&self, index: usize) -> bool {
        self.block == Some(index as u64) && self.tool_use_id.is_none()
    }
}

/// Returns `text` as a single line of at most 160 characters, without control characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(REASON) {
        None => line,
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omission_survives_writing_and_parsing() {
        let whole = Omission {
            record_id: "r".to_owned(),
            tool_use_id: Some("c".to_owned()),
            part: Some(2),
            kind: "image".to_owned(),
            reason: "too large".to_owned(),
            ..Omission::default()
        };
        let block = Omission { tool_use_id: None, part: None, block: Some(0), ..whole.clone() };
        for omission in [whole, block] {
            let json = omission.add_to(Members::of_type("omission")).into_json();
            assert_eq!(Omission::parse(&Object::parse(&json).unwrap()), Ok(omission));
        }
    }

    #[test]
    fn an_omission_needs_a_record_and_a_place_in_it() {
        for (text, why) in [
            (r#"{"block":0,"kind":"text"}"#, "no 'record_id'"),
            (r#"{"record_id":"r","kind":"text"}"#, "neither 'block' nor 'tool_use_id'"),
            (r#"{"record_id":"r","block":0}"#, "no 'kind'"),
        ] {
            assert_eq!(Omission::parse(&Object::parse(text).unwrap()).unwrap_err(), why);
        }
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(one_line(" two\nlines\t\u{1b}[1m "), "two lines [1m");
        assert_eq!(one_line(&"x".repeat(500)).chars().count(), REASON + 1);
    }
}
