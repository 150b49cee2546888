//! The JSON text of a block.

use crate::id::Id;
use crate::json::write::{member, opening};
use crate::json::{is_plain, push_quoted, quote};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Deref;

/// The JSON text of a block. It dereferences to the text.
///
/// The text of a tool result, which can be long, is joined from the parts of its record on first use. Code that passes the
/// text on, or needs only the content, uses `pieces` or [`BlockText::value`] and avoids this copy.
#[derive(Clone, Debug)]
pub struct BlockText<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// Any block.
    Any(Cow<'a, str>),
    /// A text block with the members `type` and `text`, in this order and without white space.
    Text(Cow<'a, str>),
    /// A tool result.
    Result(ResultParts<'a>),
}

/// The parts of a tool result.
#[derive(Clone, Debug)]
struct ResultParts<'a> {
    /// The id of its call, which needs no escapes.
    id: Id,
    /// Its content as JSON.
    content: Cow<'a, str>,
    is_error: bool,
    /// The text, once it was asked for.
    whole: OnceCell<Box<str>>,
}

impl<'a> BlockText<'a> {
    /// The text of a text block before its value.
    pub(super) const TEXT_OPENING: &'static str = opening!("type": "text", "text");

    /// Returns the text of a text block that begins with [`BlockText::TEXT_OPENING`] and ends after its value.
    pub(super) fn of_text(raw: impl Into<Cow<'a, str>>) -> BlockText<'a> {
        BlockText(Form::Text(raw.into()))
    }

    /// Returns the text of call `id`; `name` and `input` are JSON.
    #[must_use]
    pub fn of_call(id: &str, name: &str, input: &str) -> BlockText<'a> {
        let mut raw = String::with_capacity(64 + id.len() + name.len() + input.len());
        raw.push_str(opening!("type": "tool_use", "id"));
        push_quoted(&mut raw, id);
        raw.push_str(member!("name"));
        raw.push_str(name);
        raw.push_str(member!("input"));
        raw.push_str(input);
        raw.push('}');
        BlockText::from(raw)
    }

    /// Returns the text of a result of call `id`; `content` is JSON.
    #[must_use]
    pub fn of_result(id: &Id, content: Cow<'a, str>, is_error: bool) -> BlockText<'a> {
        if is_plain(id) {
            let (id, whole) = (id.clone(), OnceCell::new());
            return BlockText(Form::Result(ResultParts { id, content, is_error, whole }));
        }
        let before = opening!("type": "tool_result", "tool_use_id");
        let end = result_end(is_error);
        BlockText::from([before, &quote(id), member!("content"), &content, end].concat())
    }

    /// Returns the value of the text block's `text`, or of the result's `content`, as JSON, if it is known without parsing
    /// the block.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match &self.0 {
            Form::Any(_) => None,
            Form::Text(raw) => Some(&raw[Self::TEXT_OPENING.len()..raw.len() - 1]),
            Form::Result(result) => Some(&result.content),
        }
    }

    /// Calls `each` with the consecutive pieces of the text.
    pub(crate) fn pieces<'s>(&'s self, each: &mut impl FnMut(&'s str)) {
        match &self.0 {
            Form::Any(raw) | Form::Text(raw) => each(raw),
            Form::Result(result) => result.pieces().into_iter().for_each(each),
        }
    }

    /// Returns the text with the lifetime of the input, if the input contains it as one piece.
    #[must_use]
    pub fn borrowed(&self) -> Option<&'a str> {
        match &self.0 {
            Form::Any(Cow::Borrowed(raw)) | Form::Text(Cow::Borrowed(raw)) => Some(raw),
            _ => None,
        }
    }

    /// Returns the text with owned data.
    #[must_use]
    pub fn into_owned(self) -> BlockText<'static> {
        BlockText(match self.0 {
            Form::Any(raw) => Form::Any(Cow::Owned(raw.into_owned())),
            Form::Text(raw) => Form::Text(Cow::Owned(raw.into_owned())),
            // The content must be copied anyway.
            Form::Result(result) => Form::Any(Cow::Owned(result.pieces().concat())),
        })
    }
}

impl ResultParts<'_> {
    fn pieces(&self) -> [&str; 5] {
        let before = concat!(opening!("type": "tool_result", "tool_use_id"), "\"");
        let end = result_end(self.is_error);
        [before, &self.id, concat!("\"", member!("content")), &self.content, end]
    }
}

/// Returns the end of a result after its content.
fn result_end(is_error: bool) -> &'static str {
    if is_error { concat!(member!("is_error": true), "}") } else { "}" }
}

impl Deref for BlockText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Form::Any(raw) | Form::Text(raw) => raw,
            Form::Result(result) => result.whole.get_or_init(|| result.pieces().concat().into()),
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for BlockText<'a> {
    fn from(raw: T) -> BlockText<'a> {
        BlockText(Form::Any(raw.into()))
    }
}

impl PartialEq for BlockText<'_> {
    fn eq(&self, other: &BlockText<'_>) -> bool {
        **self == **other
    }
}

impl Eq for BlockText<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    #[test]
    fn the_value_of_a_text_block_is_what_was_written() {
        let text = BlockText::of_text(r#"{"type":"text","text":"x \" y"}"#);
        assert_eq!(text.value(), Some(r#""x \" y""#));
        assert_eq!(text.borrowed(), Some(&*text));
    }

    #[test]
    fn a_call_has_its_id_name_and_input() {
        for id in ["toolu_1", "a\"b", "c\n", ""] {
            let text = BlockText::of_call(id, r#""read""#, r#"{"path":"a"}"#);
            let object = Object::parse(&text).unwrap();
            assert_eq!(object.string("type").as_deref(), Some("tool_use"));
            assert_eq!(object.string("id").as_deref(), Some(id));
            assert_eq!(object.get("name"), Some(r#""read""#));
            assert_eq!(object.get("input"), Some(r#"{"path":"a"}"#));
        }
    }

    #[test]
    fn the_pieces_of_a_result_are_its_text() {
        for id in ["toolu_1", "a\"b", "c\n", ""] {
            for (is_error, content) in [(false, r#""x \" y""#), (true, "[1]")] {
                let text = BlockText::of_result(&Id::from(id), content.into(), is_error);
                let mut pieces = Vec::new();
                text.pieces(&mut |piece| pieces.push(piece));
                assert_eq!(pieces.concat(), *text);
                let object = Object::parse(&text).unwrap();
                assert_eq!(object.string("tool_use_id").as_deref(), Some(id));
                assert_eq!(object.get("content"), Some(content));
                assert_eq!(object.is_true("is_error"), is_error);
                let is_in_parts = !["a\"b", "c\n"].contains(&id);
                assert_eq!(text.value(), is_in_parts.then_some(content));
                assert_eq!(text.clone().into_owned(), text);
            }
        }
    }
}
