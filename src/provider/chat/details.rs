//! `reasoning_details`: reasoning in parts, which OpenRouter sends and takes back unchanged and in order.
//!
//! A stream has pieces of parts: a piece with the type and index of the part before it continues that part
//! (openrouter.ai/docs/guides/best-practices/reasoning-tokens, read in November 2026).

use crate::json::write::list;
use crate::json::{Object, elements};
use crate::provider::collect::{RawString, bounded};

/// The members of a part whose pieces are joined.
const JOINED: [&str; 3] = ["text", "summary", "data"];

/// Parts that are still arriving.
#[derive(Debug, Default)]
pub(super) struct Details {
    parts: Vec<Part>,
}

/// A part: its members from its last piece, and the text of those that are joined.
#[derive(Debug)]
struct Part {
    members: String,
    joined: [RawString; JOINED.len()],
}

impl Details {
    /// Takes the parts or pieces of a message or a delta.
    ///
    /// # Errors
    /// Fails if there are too many, phrased to follow "the answer".
    pub(super) fn take(&mut self, raw: Option<&str>) -> Result<(), String> {
        let pieces = raw.and_then(elements).unwrap_or_default();
        for piece in pieces.into_iter().filter_map(|raw| Object::parse(raw).ok()) {
            match self.parts.last_mut().filter(|part| part.is_continued_by(&piece)) {
                Some(part) => part.add(&piece),
                None => {
                    let mut part =
                        Part { members: piece.text().to_owned(), joined: <_>::default() };
                    part.add(&piece);
                    self.parts.push(part);
                }
            }
            bounded(self.parts.len())?;
        }
        Ok(())
    }

    /// Returns the parts as a JSON list; `None` if there are none.
    pub(super) fn into_json(self) -> Option<String> {
        let parts: Vec<String> = self.parts.into_iter().map(Part::into_json).collect();
        (!parts.is_empty()).then(|| list(parts))
    }
}

impl Part {
    fn is_continued_by(&self, piece: &Object<'_>) -> bool {
        let Ok(own) = Object::parse(&self.members) else { return false };
        let is_same = |name: &str| own.get(name) == piece.get(name);
        piece.number("index").is_some() && is_same("index") && is_same("type")
    }

    /// Adds a piece: joins text, and takes other members that are not null.
    fn add(&mut self, piece: &Object<'_>) {
        for (name, joined) in JOINED.iter().zip(&mut self.joined) {
            joined.keep(piece.get(name));
        }
        for member in piece.members().filter(|member| member.value != "null") {
            let Ok(own) = Object::parse(&self.members) else { return };
            let name = member.name();
            if !JOINED.contains(&&*name) && own.get(&name) != Some(member.value) {
                self.members = own.with(&name, member.value);
            }
        }
    }

    fn into_json(self) -> String {
        let mut members = self.members;
        for (name, joined) in JOINED.iter().zip(self.joined) {
            let Ok(own) = Object::parse(&members) else { break };
            if own.get(name).is_some_and(|value| value.starts_with('"')) || !joined.is_empty() {
                members = own.with(name, &joined.quoted());
            }
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_part_are_joined_and_parts_keep_their_order() {
        let mut details = Details::default();
        for delta in [
            r#"[{"type":"reasoning.text","text":"h \ud83d","index":0,"format":"f","signature":null}]"#,
            r#"[{"type":"reasoning.text","text":"\ude00","index":0,"signature":"s"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"abc","id":"r","index":1},{"type":"reasoning.summary","summary":"a"}]"#,
            r#"[{"type":"reasoning.summary","summary":"b"}]"#,
            "null",
        ] {
            details.take(Some(delta)).unwrap();
        }
        assert_eq!(
            details.into_json().unwrap(),
            concat!(
                r#"[{"type":"reasoning.text","text":"h \ud83d\ude00","index":0,"format":"f","signature":"s"},"#,
                r#"{"type":"reasoning.encrypted","data":"abc","id":"r","index":1},"#,
                r#"{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.summary","summary":"b"}]"#
            )
        );
        assert_eq!(Details::default().into_json(), None);
    }
}
