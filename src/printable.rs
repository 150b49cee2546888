//! Makes text from outside safe for a terminal by escaping control characters.

use crate::json;
use std::borrow::Cow;

/// Returns true for a character that a terminal does not print but acts on: a control character, or one of
/// Unicode's line and direction controls.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `text` with control characters escaped, safe for a terminal and on one line.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Returns `text` with control characters escaped, except for line feeds and tabs.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Returns true if all of `text` is printable ASCII, as most text is. This test is much faster than
/// [`is_hidden`] on each character.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~'))
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns a line of JSON with control characters written as JSON escapes: the same value, safe for a
/// terminal.
#[must_use]
pub fn printable_json(line: &str) -> Cow<'_, str> {
    if is_plain(line) { Cow::Borrowed(line) } else { json::escape(line, is_hidden) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\nc\\u{202e}");
        assert_eq!(printable_lines("a\tb\r\n\u{9b}c"), "a\tb\\r\n\\u{9b}c");
        let line = "{\"a\":\"\u{7f}\u{9b}\u{202e}é\"}";
        assert_eq!(printable_json(line), r#"{"a":"\u007f\u009b\u202eé"}"#);
    }
}
