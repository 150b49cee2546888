//! Strings in JSON text: what they say, and how a text is spelled as one.
//!
//! Lone surrogates can stand in JSON, but in no Rust string, and no provider takes them.

use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Whether `raw` is a string of nothing but white space (or none at all).
#[must_use]
pub fn is_blank(raw: &str) -> bool {
    let Some(mut rest) = raw.strip_prefix('"') else { return true };
    // Most strings say something at once, so none is decoded for this.
    while let Some(first) = rest.chars().next().filter(|first| *first != '"') {
        let (is_blank, length) = match first {
            '\\' => match rest.as_bytes().get(1) {
                Some(b'n' | b'r' | b't' | b'f') => (true, 2),
                Some(b'u') => (escaped_unit(rest.as_bytes(), 0).is_some_and(is_blank_unit), 6),
                _ => (false, 2),
            },
            plain => (plain.is_whitespace(), plain.len_utf8()),
        };
        if !is_blank {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

/// Whether a code unit is white space; no half of a surrogate pair is.
fn is_blank_unit(unit: u16) -> bool {
    char::from_u32(u32::from(unit)).is_some_and(char::is_whitespace)
}

/// The string that `raw` spells; a lone surrogate in it becomes U+FFFD. `None` when `raw` is no string.
#[must_use]
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut reader = serde_json::Deserializer::from_str(raw);
    let bytes = reader.deserialize_bytes(Bytes).ok()?;
    Some(Cow::Owned(from_wtf8(bytes)))
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON string")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

/// serde_json hands a lone surrogate over as the three bytes that UTF-8 forbids (ED A0..BF xx).
fn from_wtf8(mut bytes: Vec<u8>) -> String {
    let mut at = 0;
    while at + 2 < bytes.len() {
        if bytes[at] == 0xED && bytes[at + 1] >= 0xA0 {
            bytes[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `text` as a JSON string. U+2028, U+2029 and U+0085 are escaped, so that readers which split lines
/// on them (many do) still see one line.
#[must_use]
pub fn quote(text: &str) -> String {
    if is_plain(text) {
        return ["\"", text, "\""].concat();
    }
    // Writing a string into a String cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    match escape_line_breaks(&quoted) {
        Cow::Borrowed(_) => quoted,
        Cow::Owned(escaped) => escaped,
    }
}

/// Adds `text` as a JSON string, as [`quote`] spells it, to `json`.
pub fn push_quoted(json: &mut String, text: &str) {
    if is_plain(text) {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&quote(text));
    }
}

/// Returns whether a JSON string spells `text` without escapes. It looks at every byte, so that the compiler can
/// vectorise it.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |byte| matches!(byte, 0x20..=0x7E) & (byte != b'"') & (byte != b'\\');
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// JSON text as one line for every reader: raw U+2028, U+2029 and U+0085 (they can stand only in strings) as
/// escapes, line feeds and carriage returns (they can stand only between values) as spaces.
#[must_use]
pub fn escape_line_breaks(json: &str) -> Cow<'_, str> {
    let escaped = escape(json, |c| matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}'));
    match memchr::memchr2(b'\n', b'\r', escaped.as_bytes()) {
        None => escaped,
        Some(_) => Cow::Owned(on_one_line(&escaped)),
    }
}

/// JSON text with the characters that are `hidden` written as escapes; they must be such as can stand
/// only in strings.
pub fn escape(json: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !json.contains(&hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hidden(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|u| out.push_str(&format!("\\u{u:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// JSON text with its line breaks, which can stand only between values, as spaces.
#[must_use]
pub fn on_one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// Valid JSON text with the escapes in its strings decoded: it is to be read, and is not JSON any more.
#[must_use]
pub fn unescaped(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let (mut out, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(open) = memchr::memchr(b'"', &json.as_bytes()[at..]).map(|quote| at + quote) {
        let end = super::string_end(json.as_bytes(), open);
        out.push_str(&json[at..=open]);
        out.push_str(&string(&json[open..end]).unwrap_or_default());
        out.push('"');
        at = end;
    }
    out.push_str(&json[at..]);
    Cow::Owned(out)
}

/// JSON text with every escape of a lone surrogate replaced by that of U+FFFD, which is as long, and how
/// many there were. Everything else keeps its bytes. No provider accepts a lone surrogate.
#[must_use]
pub fn mend_surrogates(json: &str) -> (Cow<'_, str>, usize) {
    if memchr::memmem::find(json.as_bytes(), b"\\u").is_none() {
        return (Cow::Borrowed(json), 0);
    }
    let bytes = json.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match escaped_unit(bytes, at) {
            Some(0xD800..=0xDBFF)
                if matches!(escaped_unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) =>
            {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                let out = mended.get_or_insert_with(|| bytes.to_vec());
                out[at..at + 6].copy_from_slice(b"\\ufffd");
                count += 1;
                at += 6;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    match mended.map(String::from_utf8) {
        Some(Ok(text)) => (Cow::Owned(text), count),
        _ => (Cow::Borrowed(json), 0),
    }
}

/// The code unit of a `\uXXXX` escape that begins at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced_on_the_way_out() {
        let raw = r#""\ud83d\ude00 \\ud83d \ud83d \uD83Dx \udc00\ud83d\n""#;
        let (mended, count) = mend_surrogates(raw);
        assert_eq!(mended, r#""\ud83d\ude00 \\ud83d \ufffd \ufffdx \ufffd\ufffd\n""#);
        assert_eq!(count, 4);
        assert!(matches!(mend_surrogates(r#""plain \u00e9""#), (Cow::Borrowed(_), 0)));
    }

    #[test]
    fn escapes_are_decoded_where_they_stand() {
        for (json, text) in [
            (r#"{"a\t":["\u65e5 \"b\"",1]}"#, "{\"a\t\":[\"日 \"b\"\",1]}"),
            (r#"{"a":"\ud83d\ude00\ud83d"}"#, "{\"a\":\"😀\u{fffd}\"}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(unescaped(json), text);
        }
    }

    #[test]
    fn line_breaks_of_other_readers_are_escaped() {
        assert_eq!(quote("a\u{2028}b\u{85}\n"), "\"a\\u2028b\\u0085\\n\"");
        assert_eq!(string(&quote("a\u{2028}b")).unwrap(), "a\u{2028}b");
        assert_eq!(escape_line_breaks("[1,\r\"\u{85}\"]"), "[1, \"\\u0085\"]");
    }

    #[test]
    fn blank_is_what_decodes_to_white_space() {
        for blank in
            [r#""""#, r#"" ""#, r#""\n\t\r\f \u0020\u00a0\u2003""#, "\"\u{3000}\u{85}\"", "5", ""]
        {
            assert!(is_blank(blank), "{blank}");
        }
        for said in [
            r#""a""#,
            r#"" \n.""#,
            r#""\"""#,
            r#""\\""#,
            r#""\b""#,
            r#""\u001b[0m""#,
            r#""\ud83d""#,
            r#""\/""#,
        ] {
            assert!(!is_blank(said), "{said}");
            assert!(!string(said).unwrap().trim().is_empty(), "{said}");
        }
    }
}
