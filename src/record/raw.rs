//! The JSON text of a block, which is not put together as long as nobody looks at it in one piece.

use crate::id::Id;
use crate::json;
use crate::json::write::{member, opening};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;

/// A block's JSON text. It can be used as a `&str`, and is put together when that is done for the first time.
#[derive(Clone)]
pub struct Raw<'a>(Text<'a>);

#[derive(Clone)]
enum Text<'a> {
    Whole(Cow<'a, str>),
    /// A result, most of which still lies where its record was read.
    Result {
        /// Needs no escapes.
        id: Id,
        content: &'a str,
        is_error: bool,
        whole: OnceCell<String>,
    },
}

/// How a result ends, and one that says that the tool failed.
const END: [&str; 2] = ["}", concat!(member!("is_error": true), "}")];

impl<'a> Raw<'a> {
    /// The text of a result of call `id`; `content` is JSON.
    #[must_use]
    pub fn result(id: &Id, content: Cow<'a, str>, is_error: bool) -> Raw<'a> {
        match content {
            Cow::Borrowed(content) if json::is_plain(id) => {
                let (id, whole) = (id.clone(), OnceCell::new());
                Raw(Text::Result { id, content, is_error, whole })
            }
            content => {
                let (id, end) = (json::quote(id), END[usize::from(is_error)]);
                let begin = opening!("type": "tool_result", "tool_use_id");
                Raw::from([begin, &id, member!("content"), &content, end].concat())
            }
        }
    }

    /// The text with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Raw<'static> {
        Raw::from(match self.0 {
            Text::Whole(text) => text.into_owned(),
            Text::Result { .. } => self.put_together(),
        })
    }

    fn put_together(&self) -> String {
        let mut length = 0;
        self.pieces(&mut |piece| length += piece.len());
        let mut all = String::with_capacity(length);
        self.pieces(&mut |piece| all.push_str(piece));
        all
    }

    /// Where it lies in what was read, if it does.
    #[must_use]
    pub fn as_read(&self) -> Option<&'a str> {
        match &self.0 {
            Text::Whole(Cow::Borrowed(text)) => Some(text),
            _ => None,
        }
    }

    /// Gives its pieces to `each`, in order.
    pub fn pieces<'s>(&'s self, each: &mut impl FnMut(&'s str)) {
        match &self.0 {
            Text::Whole(text) => each(text),
            Text::Result { id, content, is_error, .. } => {
                each(concat!(opening!("type": "tool_result", "tool_use_id"), "\""));
                each(id);
                each(concat!("\"", member!("content")));
                each(content);
                each(END[usize::from(*is_error)]);
            }
        }
    }
}

impl Deref for Raw<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Whole(text) => text,
            Text::Result { whole, .. } => whole.get_or_init(|| self.put_together()),
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Raw<'a> {
    fn from(text: T) -> Raw<'a> {
        Raw(Text::Whole(text.into()))
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Raw<'_> {}

impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_the_same_in_pieces_in_one_and_with_bytes_of_its_own() {
        for (id, quoted) in [("c1", r#""c1""#), ("a\"b", r#""a\"b""#), ("\u{85}", r#""\u0085""#)] {
            for (is_error, end) in [(false, "}"), (true, r#","is_error":true}"#)] {
                for content in [Cow::Borrowed(r#""said""#), Cow::Owned(r#""said""#.to_owned())] {
                    let expected = format!(
                        r#"{{"type":"tool_result","tool_use_id":{quoted},"content":"said"{end}"#
                    );
                    let raw = Raw::result(&Id::from(id), content, is_error);
                    let mut pieces = String::new();
                    raw.pieces(&mut |piece| pieces.push_str(piece));
                    assert_eq!(pieces, expected);
                    assert_eq!(*raw, *expected);
                    assert_eq!(*raw.clone().into_owned(), *expected);
                    assert_eq!(raw, Raw::from(expected));
                }
            }
        }
    }
}
