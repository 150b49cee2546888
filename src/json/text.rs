//! Strings in JSON text: decoding and quoting.
//!
//! JSON can contain lone surrogates, but Rust strings cannot, and no provider accepts them.

use std::borrow::Cow;

/// Returns true if `raw` is not a string, or is a string of only white space.
#[must_use]
pub fn is_blank(raw: &str) -> bool {
    let Some(mut rest) = raw.strip_prefix('"') else { return true };
    // Most strings begin with a character that is not white space, so the loop usually ends at once.
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

/// Returns true if a code unit is white space; half of a surrogate pair never is.
fn is_blank_unit(unit: u16) -> bool {
    char::from_u32(u32::from(unit)).is_some_and(char::is_whitespace)
}

/// The length in bytes up to which [`string`] searches without a call.
const SHORT: usize = 32;

/// Decodes the string `raw`, a JSON value; a lone surrogate becomes U+FFFD. Returns `None` if `raw` is not a string.
#[must_use]
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    // Most strings that are decoded are names and ids, so short that a call takes longer than this loop.
    let is_plain = |text: &str| text.bytes().fold(true, |all, byte| all & (byte != b'\\'));
    if inner.len() <= SHORT && is_plain(inner) {
        return Some(Cow::Borrowed(inner));
    }
    let mut next = memchr::memchr(b'\\', inner.as_bytes());
    if next.is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let (mut text, mut rest) = (String::with_capacity(inner.len()), inner);
    while let Some(at) = next {
        let (escaped, length) = escaped_char(rest.as_bytes(), at)?;
        text.push_str(&rest[..at]);
        text.push(escaped);
        rest = &rest[at + length..];
        next = memchr::memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Returns the character of the escape that begins at `at`, and the length of the escape. A lone surrogate becomes
/// U+FFFD.
pub(crate) fn escaped_char(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let plain = match bytes.get(at + 1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return escaped_units(bytes, at),
        same @ (b'"' | b'\\' | b'/') => char::from(*same),
        _ => return None,
    };
    Some((plain, 2))
}

/// Returns the character of the `\uXXXX` escape, or of the pair of escapes, that begins at `at`, and its length.
fn escaped_units(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = escaped_unit(bytes, at)?;
    let pair = [unit, escaped_unit(bytes, at + 6).unwrap_or_default()];
    let decoded = char::decode_utf16(pair).next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((decoded, 6 * decoded.len_utf16()))
}

/// Returns `text` as a JSON string. U+2028, U+2029 and U+0085 are escaped, because many readers split lines
/// at them.
#[must_use]
pub fn quote(text: &str) -> String {
    if is_plain(text) {
        return ["\"", text, "\""].concat();
    }
    // Serialising a string cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    match escape_line_breaks(&quoted) {
        Cow::Borrowed(_) => quoted,
        Cow::Owned(escaped) => escaped,
    }
}

/// Appends `text` to `json` as a JSON string, like [`quote`].
pub fn push_quoted(json: &mut String, text: &str) {
    if is_plain(text) {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&quote(text));
    }
}

/// Returns true if a JSON string can contain `text` without escapes. The loop examines every byte so that the
/// compiler can vectorise it.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |byte| matches!(byte, 0x20..=0x7E) & (byte != b'"') & (byte != b'\\');
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// Returns JSON text that every reader sees as one line. U+2028, U+2029 and U+0085, which occur only in strings,
/// become escapes; line feeds and carriage returns, which occur only between values, become spaces.
#[must_use]
pub fn escape_line_breaks(json: &str) -> Cow<'_, str> {
    let escaped = escape(json, |c| matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}'));
    match memchr::memchr2(b'\n', b'\r', escaped.as_bytes()) {
        None => escaped,
        Some(_) => Cow::Owned(on_one_line(&escaped)),
    }
}

/// Returns JSON text with the `hidden` characters escaped. They must be characters that occur only in
/// strings.
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

/// Replaces line breaks, which occur only between values, with spaces.
#[must_use]
pub fn on_one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// Decodes the escapes in the strings of valid JSON text. The result is meant for reading and need not be valid JSON.
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

/// Replaces each escaped lone surrogate in JSON text with the escape of U+FFFD, which has the same length, and
/// counts them. All other bytes stay the same. No provider accepts a lone surrogate.
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> (Cow<'_, str>, usize) {
    if memchr::memmem::find(json.as_bytes(), b"\\u").is_none() {
        return (Cow::Borrowed(json), 0);
    }
    let bytes = json.as_bytes();
    let mut replaced: Option<Vec<u8>> = None;
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
                let out = replaced.get_or_insert_with(|| bytes.to_vec());
                out[at..at + 6].copy_from_slice(b"\\ufffd");
                count += 1;
                at += 6;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    match replaced.map(String::from_utf8) {
        Some(Ok(text)) => (Cow::Owned(text), count),
        _ => (Cow::Borrowed(json), 0),
    }
}

/// Returns the code unit of the `\uXXXX` escape that begins at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let raw = r#""\ud83d\ude00 \\ud83d \ud83d \uD83Dx \udc00\ud83d\n""#;
        let (replaced, count) = replace_lone_surrogates(raw);
        assert_eq!(replaced, r#""\ud83d\ude00 \\ud83d \ufffd \ufffdx \ufffd\ufffd\n""#);
        assert_eq!(count, 4);
        assert!(matches!(replace_lone_surrogates(r#""plain \u00e9""#), (Cow::Borrowed(_), 0)));
    }

    #[test]
    fn a_string_is_decoded_as_by_serde_json_except_for_lone_surrogates() {
        for raw in [
            r#""plain""#,
            r#""""#,
            r#""\n\t\r\b\f\/\\\"""#,
            r#""\u00e9 \u65E5 \ud83d\ude00é日😀\n""#,
            r#""\u0000\u001b end""#,
            r#""\\n \\u0041 \\\\""#,
        ] {
            let expected: String = serde_json::from_str(raw).unwrap();
            assert_eq!(string(raw).unwrap(), expected, "{raw}");
        }
        let lone = r#""\ud83d \ud83dx \ude00\ud83d\ud83d\ude00 \ud83d\u0041""#;
        let text = "\u{fffd} \u{fffd}x \u{fffd}\u{fffd}😀 \u{fffd}A";
        assert_eq!(string(lone).unwrap(), text);
        for other in ["", "5", "\"", "null", r#""\x""#, r#""\""#, r#""\u12""#, r#""\é""#] {
            assert_eq!(string(other), None, "{other}");
        }
    }

    #[test]
    fn escapes_in_strings_are_decoded() {
        for (json, text) in [
            (r#"{"a\t":["\u65e5 \"b\"",1]}"#, "{\"a\t\":[\"日 \"b\"\",1]}"),
            (r#"{"a":"\ud83d\ude00\ud83d"}"#, "{\"a\":\"😀\u{fffd}\"}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(unescaped(json), text);
        }
    }

    #[test]
    fn unicode_line_breaks_are_escaped() {
        assert_eq!(quote("a\u{2028}b\u{85}\n"), "\"a\\u2028b\\u0085\\n\"");
        assert_eq!(string(&quote("a\u{2028}b")).unwrap(), "a\u{2028}b");
        assert_eq!(escape_line_breaks("[1,\r\"\u{85}\"]"), "[1, \"\\u0085\"]");
    }

    #[test]
    fn a_string_is_blank_if_it_decodes_to_white_space() {
        for blank in
            [r#""""#, r#"" ""#, r#""\n\t\r\f \u0020\u00a0\u2003""#, "\"\u{3000}\u{85}\"", "5", ""]
        {
            assert!(is_blank(blank), "{blank}");
        }
        for text in [
            r#""a""#,
            r#"" \n.""#,
            r#""\"""#,
            r#""\\""#,
            r#""\b""#,
            r#""\u001b[0m""#,
            r#""\ud83d""#,
            r#""\/""#,
        ] {
            assert!(!is_blank(text), "{text}");
            assert!(!string(text).unwrap().trim().is_empty(), "{text}");
        }
    }
}
