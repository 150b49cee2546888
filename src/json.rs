//! Access to JSON text without decoding it.
//!
//! Everything that passes through a program keeps its bytes: key order, the spelling of numbers, escapes. So a
//! value is a `&str` that holds exactly one JSON value, and this module finds the members and elements in it.
//! [`scan`] is the fast path; if it declines, serde_json decides. No function recurses into nested values, so
//! deep nesting cannot overflow the stack. [`write`](mod@write) writes all JSON that the programs produce.

pub mod edit;
pub mod outline;
pub mod scan;
mod text;
pub mod write;

use scan::Scan;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
pub use text::{
    escape, escape_line_breaks, is_blank, on_one_line, push_quoted, quote, replace_lone_surrogates,
    string, unescaped,
};
pub(crate) use text::{escaped_char, is_plain};

/// An object, as its members in file order. Each value is a slice of the object's text.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    text: &'a str,
    spans: Cow<'a, [Span]>,
    is_shallow: bool,
    has_surrogates: bool,
}

/// A member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The text of the name, with its quotes.
    pub raw_name: &'a str,
    /// The text of the value.
    pub value: &'a str,
}

impl<'a> Member<'a> {
    /// Returns the decoded name.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        string(self.raw_name).unwrap_or_default()
    }
}

/// The place of a member in the text of its object. Unlike a member, it does not borrow the text.
#[derive(Clone, Debug)]
pub struct Span {
    name: Range<usize>,
    value: Range<usize>,
    /// True if the name contains escapes.
    is_escaped: bool,
}

impl Span {
    fn new(text: &str, name: Range<usize>, value: Range<usize>) -> Span {
        let is_escaped = text.as_bytes()[name.clone()].contains(&b'\\');
        Span { name, value, is_escaped }
    }

    /// Returns the member in the text of its object.
    fn of<'a>(&self, text: &'a str) -> Member<'a> {
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        Member { raw_name: part(&self.name), value: part(&self.value) }
    }

    /// Returns true if the name is `name`. Callers usually pass a constant, so the comparison compiles to a few
    /// instructions.
    #[inline(always)]
    fn is(&self, name: &str, text: &str) -> bool {
        if self.is_escaped {
            return self.of(text).name() == name;
        }
        let inner = self.name.start + 1..self.name.end - 1;
        inner.len() == name.len() && text.as_bytes()[inner] == *name.as_bytes()
    }
}

impl<'a> Object<'a> {
    /// Adds the members of the object at the start of `text` to `spans`, if the fast path can read it. Returns the byte
    /// offset of the object's end, and true if it contains an escaped surrogate. Callers make many scans, so checking
    /// for the processor's vector instructions always pays off.
    #[must_use]
    pub fn scan(text: &str, spans: &mut Vec<Span>) -> Option<(usize, bool)> {
        scan_members(text, Scan::of_many(text), spans)
    }

    /// Returns the object for `spans` that [`Object::scan`] found in `text`.
    #[must_use]
    pub fn scanned(text: &'a str, spans: &'a [Span], has_surrogates: bool) -> Object<'a> {
        Object { text, spans: Cow::Borrowed(spans), is_shallow: true, has_surrogates }
    }

    /// Parses `text`, which must be a JSON object with at most white space around it.
    ///
    /// # Errors
    /// If `text` is anything else; the error has the position.
    pub fn parse(text: &'a str) -> Result<Object<'a>, serde_json::Error> {
        let mut spans = Vec::with_capacity(8);
        match scan_members(text, Scan::new(text), &mut spans) {
            Some((end, has_surrogates)) if text[end..].bytes().all(|byte| byte == b' ') => {
                Ok(Object { text, spans: Cow::Owned(spans), is_shallow: true, has_surrogates })
            }
            _ => Object::parse_slowly(text),
        }
    }

    /// Returns the object at the start of `text` and its length, if the fast path can read it.
    pub(crate) fn first(text: &'a str) -> Option<(Object<'a>, usize)> {
        let mut spans = Vec::with_capacity(8);
        let (length, has_surrogates) = scan_members(text, Scan::new(text), &mut spans)?;
        let (text, spans) = (&text[..length], Cow::Owned(spans));
        Some((Object { text, spans, is_shallow: true, has_surrogates }, length))
    }

    /// Parses with serde_json alone.
    ///
    /// # Errors
    /// As [`Object::parse`].
    pub fn parse_slowly(text: &'a str) -> Result<Object<'a>, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let members: Vec<Member<'_>> = reader.deserialize_map(MembersVisitor)?;
        reader.end()?;
        let place = |part: &str| offset_in(text, part)..offset_in(text, part) + part.len();
        let span =
            |member: &Member<'_>| Span::new(text, place(member.raw_name), place(member.value));
        let spans = members.iter().map(span).collect();
        // serde_json does not report escaped surrogates, so assume that there may be some.
        Ok(Object { text, spans: Cow::Owned(spans), is_shallow: false, has_surrogates: true })
    }

    /// Returns true if the text may contain an escaped surrogate, paired or lone; if false, there is none.
    #[must_use]
    pub fn may_have_surrogates(&self) -> bool {
        self.has_surrogates
    }

    /// Returns true if arrays and objects are nested deeper than `most` levels, which must be at least 64.
    #[must_use]
    pub fn is_deeper(&self, most: usize) -> bool {
        // The scanner declines objects that are nested deeper than 64 levels.
        !self.is_shallow && is_deeper(self.text, most)
    }

    /// Returns the text of member `name`. If the name occurs twice, the last member wins, as in most readers.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        // This is a loop so that the compiler can specialise it for a constant name.
        for span in self.spans.iter().rev() {
            if span.is(name, self.text) {
                return Some(span.of(self.text).value);
            }
        }
        None
    }

    /// Returns member `name` as a string; `None` if it is absent or of another type.
    #[inline(always)]
    #[must_use]
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Returns member `name` if it is an object.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<Object<'a>> {
        self.get(name).and_then(|raw| Object::parse(raw).ok())
    }

    /// Returns member `name` as a number; `None` if it is absent or not an integer from 0 to `u64::MAX`.
    #[inline(always)]
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|raw| raw.parse().ok())
    }

    /// Returns true if member `name` is `true`.
    #[inline(always)]
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns the text of the object.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the byte offset of the object in `bytes`, which contain its text.
    #[must_use]
    pub fn offset_in(&self, bytes: &[u8]) -> u64 {
        (self.text.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize) as u64
    }

    /// Returns the members in file order.
    pub fn members(&self) -> impl Iterator<Item = Member<'a>> {
        self.spans.iter().map(|span| span.of(self.text))
    }

    /// Returns false if a quick check shows that no name occurs twice.
    #[must_use]
    pub fn may_repeat_a_name(&self) -> bool {
        let name = |span: &Span| &self.text.as_bytes()[span.name.clone()];
        let is_repeated = |(index, span): (usize, &Span)| {
            span.is_escaped || self.spans[..index].iter().any(|other| name(other) == name(span))
        };
        // For many names, comparing all pairs is slow.
        self.spans.len() > 16 || self.spans.iter().enumerate().any(is_repeated)
    }

    /// Returns the object's text with the value of member `name` replaced, or with the member added at the
    /// end if it is missing. All other bytes stay the same.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> String {
        match self.get(name) {
            Some(old) => {
                let at = offset_in(self.text, old);
                [&self.text[..at], value, &self.text[at + old.len()..]].concat()
            }
            None => {
                let end = self.text.rfind('}').unwrap_or(self.text.len());
                let comma = if self.spans.is_empty() { "" } else { "," };
                let member = format!("{comma}{}:{value}", quote(name));
                [&self.text[..end], &member, &self.text[end..]].concat()
            }
        }
    }
}

/// Returns the byte offset of `part`, a slice of `whole`.
pub(crate) fn offset_in(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Adds the places of the members of the object at the start of `text` to `spans`, if the fast path can read it.
/// Returns the byte offset of the object's end, and true if it contains an escaped surrogate.
fn scan_members(text: &str, mut scan: Scan<'_>, spans: &mut Vec<Span>) -> Option<(usize, bool)> {
    let mut at = scan.token(0, b'{')?;
    if let Some(end) = scan.token(at, b'}') {
        return Some((end, scan.has_surrogates()));
    }
    loop {
        let start = scan.blanks(at);
        let end = scan.string(start)?;
        let value = scan.blanks(scan.token(end, b':')?);
        at = scan.value(value)?;
        spans.push(Span::new(text, start..end, value..at));
        match scan.token(at, b',') {
            Some(next) => at = next,
            None => break,
        }
    }
    Some((scan.token(at, b'}')?, scan.has_surrogates()))
}

/// Returns the elements of an array, each as its text, if the fast path can read it.
fn fast_elements(text: &str) -> Option<Vec<&str>> {
    fast_list(text, |rest| {
        let length = Scan::new(rest).value(0)?;
        Some((&rest[..length], length))
    })
}

/// Returns the elements of an array if the fast path can read it. `first` reads the element at the start of a text, and
/// returns it and its length.
pub(crate) fn fast_list<'a, T>(
    text: &'a str,
    first: impl Fn(&'a str) -> Option<(T, usize)>,
) -> Option<Vec<T>> {
    let (scan, mut elements) = (Scan::new(text), Vec::new());
    let mut at = scan.token(0, b'[')?;
    if let Some(end) = scan.token(at, b']') {
        return (scan.blanks(end) == text.len()).then_some(elements);
    }
    loop {
        let start = scan.blanks(at);
        let (element, length) = first(&text[start..])?;
        elements.push(element);
        at = start + length;
        match scan.token(at, b',') {
            Some(next) => at = next,
            None => break,
        }
    }
    let end = scan.token(at, b']')?;
    (scan.blanks(end) == text.len()).then_some(elements)
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        // Keys are also read raw, so that a lone surrogate in one does not make the line unusable.
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            let value: &'de RawValue = map.next_value()?;
            // Reject a name that cannot be decoded.
            string(key.get()).ok_or_else(|| de::Error::custom("a key is not a string"))?;
            members.push(Member { raw_name: key.get(), value: value.get() });
        }
        Ok(members)
    }
}

/// Returns the elements of a JSON array, each as its text; `None` if `raw` is not an array.
#[must_use]
pub fn elements(raw: &str) -> Option<Vec<&str>> {
    if let Some(elements) = fast_elements(raw) {
        return Some(elements);
    }
    // If `raw` is a long string, serde_json would copy it into its error.
    if !raw.trim_ascii_start().starts_with('[') {
        return None;
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Returns the index after the closing quote of the string that begins at the quote `open`; the length of
/// `json` if there is no closing quote.
pub(crate) fn string_end(json: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

/// Returns true if arrays and objects in `json`, which must be valid, are nested deeper than `most` levels.
#[must_use]
pub fn is_deeper(json: &str, most: usize) -> bool {
    let bytes = json.as_bytes();
    // Most values do not have that many brackets, which is quick to check.
    if memchr::memchr2_iter(b'[', b'{', bytes).nth(most).is_none() {
        return false;
    }
    let (mut depth, mut at) = (0_usize, 0);
    while depth <= most && at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    depth > most
}

/// Returns true if an array or object in `json` has more than `most` members, or if the nesting reaches
/// `most` levels. `json` need not be valid.
#[must_use]
pub fn is_wider(json: &str, most: usize) -> bool {
    let bytes = json.as_bytes();
    // The number of members so far in each open array and object.
    let (mut open, mut at) = (vec![0_usize], 0);
    // More than `most` members take more than `most` bytes.
    while bytes.len() > most && at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'[' | b'{' => open.push(1),
            b']' | b'}' => drop(open.pop()),
            b',' => open.iter_mut().next_back().into_iter().for_each(|count| *count += 1),
            _ => {}
        }
        if open.len() > most || open.last().is_some_and(|count| *count > most) {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns true if `text` is one JSON value and nothing else.
#[must_use]
pub fn is_value(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_10_too_many_members_are_detected_before_parsing() {
        for (json, is_wide) in [
            ("[1,2,3,4]", false),
            ("[1,2,3,4,5]", true),
            (r#"{"a":[1,2,3],"b":[1,2,3],"c":1,"d":2}"#, false),
            (r#"{"a":[1,2,3],"b":[1,2,3,4,5]}"#, true),
            (r#"["[,,,,,,","\"],,,,,,"]"#, false),
            ("[[[[[", true),
            ("]]]],,,,,,", false),
        ] {
            assert_eq!(is_wider(json, 4), is_wide, "{json}");
        }
    }

    #[test]
    fn members_keep_their_bytes() {
        let object = Object::parse(r#"{"z":1e2,"a":12345678901234567890123,"a":-0.0}"#).unwrap();
        assert_eq!(object.get("z"), Some("1e2"));
        assert_eq!(object.get("a"), Some("-0.0"), "the last of two wins");
    }

    #[test]
    fn replacing_a_member_keeps_all_other_bytes() {
        let object = Object::parse(r#"{ "a" : "x" , "id":  1 }"#).unwrap();
        assert_eq!(object.with("a", "\"y\""), r#"{ "a" : "y" , "id":  1 }"#);
        assert_eq!(object.with("b", "2"), r#"{ "a" : "x" , "id":  1 ,"b":2}"#);
        assert_eq!(Object::parse("{}").unwrap().with("b", "2"), r#"{"b":2}"#);
    }

    #[test]
    fn lone_surrogates_are_read() {
        let object = Object::parse(r#"{"\ud800":"a\udc00b\ud83d\ude00\ude00\ud83d"}"#).unwrap();
        assert_eq!(object.string("\u{fffd}").unwrap(), "a\u{fffd}b😀\u{fffd}\u{fffd}");
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Object::parse(&deep).is_ok());
    }

    #[test]
    fn brackets_in_strings_do_not_count_as_depth() {
        let nested = |count: usize| format!("{}1{}", "[".repeat(count), "]".repeat(count));
        assert!(!is_deeper(&nested(3), 3));
        assert!(is_deeper(&nested(4), 3));
        assert!(is_deeper(r#"[[],{"a":[{}]}]"#, 3));
        assert!(!is_deeper(r#"[[],[],[],{"a":"[[[[","\"[[":"\\"},[]]"#, 2));
    }
}
