//! JSON text that is looked into but not decoded.
//!
//! Everything that passes through a program keeps its own bytes: key order, the spelling of numbers,
//! escapes. So a value is handled as the text it was read from (a `&str` that holds exactly one JSON
//! value), and this module finds the members and elements in it. [`scan`] is the fast way; where that
//! declines, serde_json decides. Nothing here recurses, so depth is no danger.
//! [`write`](mod@write) is the writer of all JSON that the programs produce.

pub mod edit;
pub mod scan;
mod text;
pub mod write;

use scan::Scan;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
pub(crate) use text::is_plain;
pub use text::{
    escape, escape_line_breaks, is_blank, mend_surrogates, on_one_line, push_quoted, quote, string,
    unescaped,
};

/// An object: its members in file order, each value as its own text.
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
    /// The name's own text, quotes and all.
    pub raw_name: &'a str,
    /// The value's own text.
    pub value: &'a str,
}

impl<'a> Member<'a> {
    /// The name, decoded.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        string(self.raw_name).unwrap_or_default()
    }
}

/// Where a member stands in the text of its object. Unlike a member, it does not hold on to the text.
#[derive(Clone, Debug)]
pub struct Span {
    name: Range<usize>,
    value: Range<usize>,
    /// Whether the name is spelled with escapes.
    is_escaped: bool,
}

impl Span {
    fn new(text: &str, name: Range<usize>, value: Range<usize>) -> Span {
        let is_escaped = text.as_bytes()[name.clone()].contains(&b'\\');
        Span { name, value, is_escaped }
    }

    /// The member, in its object's text.
    fn of<'a>(&self, text: &'a str) -> Member<'a> {
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        Member { raw_name: part(&self.name), value: part(&self.value) }
    }

    /// Whether the name is `name`. Nearly always that is a constant, and then a comparison of words.
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
    /// Adds the members of the object that `text`, one of many, begins with to `spans`, if the scanner is sure
    /// of it. Says where it ends (bytes), and whether a surrogate is escaped in it.
    #[must_use]
    pub fn scan(text: &str, spans: &mut Vec<Span>) -> Option<(usize, bool)> {
        scan_members(text, Scan::of_many(text), spans)
    }

    /// The object of a text from which [`Object::scan`] had `spans`.
    #[must_use]
    pub fn scanned(text: &'a str, spans: &'a [Span], has_surrogates: bool) -> Object<'a> {
        Object { text, spans: Cow::Borrowed(spans), is_shallow: true, has_surrogates }
    }

    /// Reads `text`, which must be one JSON object with at most white space around it.
    ///
    /// # Errors
    /// When `text` is anything else; the error says where.
    pub fn parse(text: &'a str) -> Result<Object<'a>, serde_json::Error> {
        let mut spans = Vec::with_capacity(8);
        match scan_members(text, Scan::new(text), &mut spans) {
            Some((end, has_surrogates)) if text[end..].bytes().all(|byte| byte == b' ') => {
                Ok(Object { text, spans: Cow::Owned(spans), is_shallow: true, has_surrogates })
            }
            _ => Object::parse_slowly(text),
        }
    }

    /// The same by serde_json alone.
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
        // Whoever has to know of surrogates looks closer.
        Ok(Object { text, spans: Cow::Owned(spans), is_shallow: false, has_surrogates: true })
    }

    /// Whether there may be an escape of a surrogate in it, of a pair or alone; if not, there is none.
    #[must_use]
    pub fn may_have_surrogates(&self) -> bool {
        self.has_surrogates
    }

    /// Whether arrays and objects in it are nested deeper than `most`, which is at least 64.
    #[must_use]
    pub fn is_deeper(&self, most: usize) -> bool {
        // The scanner declines what is deeper than that.
        !self.is_shallow && is_deeper(self.text, most)
    }

    /// The text of member `name`; of the last one where a name comes twice, as most readers do.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        // A loop, so that the compiler knows the name in it.
        for span in self.spans.iter().rev() {
            if span.is(name, self.text) {
                return Some(span.of(self.text).value);
            }
        }
        None
    }

    /// Member `name` as a string; `None` when it is absent or something else.
    #[inline(always)]
    #[must_use]
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Member `name` as a whole number; `None` when it is absent or something else.
    #[inline(always)]
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|raw| raw.parse().ok())
    }

    /// Whether member `name` is `true`.
    #[inline(always)]
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// The object's own text.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The members in file order.
    pub fn members(&self) -> impl Iterator<Item = Member<'a>> {
        self.spans.iter().map(|span| span.of(self.text))
    }

    /// The object's text with the value of member `name` replaced by `value`, or with the member put
    /// last where there was none; all other bytes stay.
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

/// Where `part`, a slice of `whole`, begins in it (bytes).
pub(crate) fn offset_in(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Adds where the members of the object stand that `text` begins with, if the scanner is sure of it. Says where
/// it ends, and whether a surrogate is escaped in it.
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

/// The elements of an array, if the scanner is sure of it.
fn fast_elements(text: &str) -> Option<Vec<&str>> {
    let mut scan = Scan::new(text);
    let mut elements = Vec::new();
    let mut at = scan.token(0, b'[')?;
    if let Some(end) = scan.token(at, b']') {
        return (scan.blanks(end) == text.len()).then_some(elements);
    }
    loop {
        let start = scan.blanks(at);
        at = scan.value(start)?;
        elements.push(&text[start..at]);
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
        // Keys are taken raw too: a lone surrogate in one must not cost the line.
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            let value: &'de RawValue = map.next_value()?;
            // A name that cannot be decoded would be nobody's.
            string(key.get()).ok_or_else(|| de::Error::custom("a key is no string"))?;
            members.push(Member { raw_name: key.get(), value: value.get() });
        }
        Ok(members)
    }
}

/// The elements of a JSON array, each as its own text; `None` when `raw` is no array.
#[must_use]
pub fn elements(raw: &str) -> Option<Vec<&str>> {
    if let Some(elements) = fast_elements(raw) {
        return Some(elements);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Where the string that begins at the quote `open` ends, in the bytes of valid JSON: the index after
/// its closing quote.
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

/// Whether arrays and objects in `json`, which must be valid, are nested deeper than `most`.
#[must_use]
pub fn is_deeper(json: &str, most: usize) -> bool {
    let bytes = json.as_bytes();
    // Nearly every text has not even so many brackets, and that is quickly told.
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

/// Tells that an array or an object in `json` has more than `most` members, or that so many are nested in each
/// other. `json` need not be valid.
#[must_use]
pub fn is_wider(json: &str, most: usize) -> bool {
    let bytes = json.as_bytes();
    // The members that came in each array and object that is open.
    let (mut open, mut at) = (vec![0_usize], 0);
    // So many members have at least as many commas between them.
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

/// Whether `text` is one JSON value and nothing else.
#[must_use]
pub fn is_value(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_10_too_many_members_are_told_before_they_are_parsed() {
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
    fn a_replaced_member_leaves_the_other_bytes_alone() {
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
    fn depth_is_no_danger() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Object::parse(&deep).is_ok());
    }

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        let nested = |count: usize| format!("{}1{}", "[".repeat(count), "]".repeat(count));
        assert!(!is_deeper(&nested(3), 3));
        assert!(is_deeper(&nested(4), 3));
        assert!(is_deeper(r#"[[],{"a":[{}]}]"#, 3));
        assert!(!is_deeper(r#"[[],[],[],{"a":"[[[[","\"[[":"\\"},[]]"#, 2));
    }
}
