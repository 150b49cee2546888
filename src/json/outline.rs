//! The outline of a JSON text: the places of its values, found in one scan.
//!
//! An [`Object`](super::Object) knows only its own members, so a reader that looks into nested objects would scan their
//! text again at each level. An outline has the values of the first [`LEVELS`] levels. Nothing here is recursive.

use super::scan::Scan;
use super::string;
use std::borrow::Cow;
use std::ops::Range;

/// The number of levels of arrays and objects whose values are in the outline. Deeper values are only part of the text
/// of the values around them.
pub const LEVELS: usize = 8;

/// The places of the values in a JSON text. The memory is reused for the next one.
#[derive(Debug, Default)]
pub struct Outline {
    nodes: Vec<Node>,
    open: Vec<OpenValue>,
}

/// A value.
#[derive(Clone, Debug)]
struct Node {
    name: Name,
    value: Range<usize>,
    /// The index of the node after the nodes inside this one.
    next: usize,
}

/// The place of a name in the text, without its quotes. It is 0..0 for the element of an array.
#[derive(Clone, Debug, Default)]
struct Name {
    place: Range<usize>,
    is_escaped: bool,
}

impl Name {
    /// Returns true if the name is `name`. The lengths are compared first, because they usually differ.
    fn is(&self, name: &str, text: &str) -> bool {
        let Range { start, end } = self.place;
        if end - start == name.len() && start > 0 && text.as_bytes()[start..end] == *name.as_bytes()
        {
            return true;
        }
        self.is_escaped && string(&text[start - 1..end + 1]).as_deref() == Some(name)
    }
}

/// An array or object whose end has not been read yet.
#[derive(Clone, Copy, Debug)]
struct OpenValue {
    is_object: bool,
    /// The index of its node, if it has one.
    node: Option<usize>,
}

/// A value in an outline.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    text: &'a str,
    nodes: &'a [Node],
    index: usize,
}

impl Outline {
    /// Returns the value in `text`. Returns `None` if `text` is not a single JSON value, which may have white space
    /// around it, or if it is nested more than `most` levels deep.
    #[must_use]
    pub fn read<'a>(&'a mut self, text: &'a str, most: usize) -> Option<Value<'a>> {
        self.nodes.clear();
        self.open.clear();
        let end = self.scan(text, most)?;
        let is_all = text.as_bytes()[end..].trim_ascii().is_empty();
        is_all.then_some(Value { text, nodes: &self.nodes, index: 0 })
    }

    /// Returns the end of the value in `text`.
    fn scan(&mut self, text: &str, most: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut scan = Scan::of_many(text);
        let (mut name, mut at) = (Name::default(), white(bytes, 0));
        loop {
            let first = *bytes.get(at)?;
            let node = self.begin(std::mem::take(&mut name), at, first);
            if matches!(first, b'{' | b'[') {
                if self.open.len() == most {
                    return None;
                }
                let is_object = first == b'{';
                at = white(bytes, at + 1);
                self.open.push(OpenValue { is_object, node });
                // The loop below reads the end of an empty array or object.
                if *bytes.get(at)? != first + 2 {
                    if is_object {
                        (name, at) = key(&mut scan, bytes, at)?;
                    }
                    continue;
                }
            } else {
                at = scan.scalar(at)?;
                self.end(node, at);
            }
            loop {
                let Some(OpenValue { is_object, node }) = self.open.last().copied() else {
                    return Some(at);
                };
                at = white(bytes, at);
                match *bytes.get(at)? {
                    b',' => {
                        at = white(bytes, at + 1);
                        if is_object {
                            (name, at) = key(&mut scan, bytes, at)?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                at += 1;
                self.open.pop();
                self.end(node, at);
            }
        }
    }

    /// Adds the value that begins at `at` with the byte `first`. Returns its index, or `None` if it is not in the
    /// outline: it is too deep, or it is a number, `true`, `false` or `null` in an array, which can have many of these.
    fn begin(&mut self, name: Name, at: usize, first: u8) -> Option<usize> {
        let is_value = name.place.start > 0 || matches!(first, b'{' | b'[' | b'"');
        let is_root = self.open.is_empty();
        if !is_root && (self.open.len() > LEVELS || !is_value) {
            return None;
        }
        self.nodes.push(Node { name, value: at..at, next: 0 });
        Some(self.nodes.len() - 1)
    }

    fn end(&mut self, node: Option<usize>, at: usize) {
        let next = self.nodes.len();
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
            node.value.end = at;
            node.next = next;
        }
    }
}

/// Skips white space from `at` on.
fn white(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the name at `at`, and the beginning of its value.
fn key(scan: &mut Scan<'_>, bytes: &[u8], at: usize) -> Option<(Name, usize)> {
    let end = scan.string(at)?;
    let colon = white(bytes, end);
    let place = at + 1..end - 1;
    // Names are so short that a search with vectors takes longer.
    let is_escaped = bytes[place.clone()].iter().fold(false, |all, byte| all | (*byte == b'\\'));
    (bytes.get(colon) == Some(&b':')).then(|| (Name { place, is_escaped }, white(bytes, colon + 1)))
}

impl<'a> Value<'a> {
    fn node(self) -> &'a Node {
        &self.nodes[self.index]
    }

    /// Returns the text of the value.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text.get(self.node().value.clone()).unwrap_or_default()
    }

    /// Returns the values directly inside this one.
    fn inner(self) -> impl Iterator<Item = Value<'a>> {
        let end = self.node().next;
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            let value = (index < end).then_some(Value { index, ..self })?;
            index = value.node().next;
            Some(value)
        })
    }

    /// Returns the number of members of an object.
    #[must_use]
    pub fn len(self) -> usize {
        self.inner().count()
    }

    /// Returns true for an object without members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the elements of an array; `None` for any other value. Numbers, `true`, `false` and `null` are left out.
    #[must_use]
    pub fn elements(self) -> Option<impl Iterator<Item = Value<'a>>> {
        self.text().starts_with('[').then(|| self.inner())
    }

    /// Returns the elements of the member `name` if it is an array, and nothing otherwise.
    pub fn list(self, name: &str) -> impl Iterator<Item = Value<'a>> {
        self.member(name).and_then(Value::elements).into_iter().flatten()
    }

    /// Returns member `name` of an object. If the name occurs twice, the last member wins.
    #[must_use]
    pub fn member(self, name: &str) -> Option<Value<'a>> {
        let (mut at, mut found) = (self.index + 1, None);
        while at < self.node().next {
            let node = &self.nodes[at];
            if node.name.is(name, self.text) {
                found = Some(at);
            }
            at = node.next;
        }
        found.map(|index| Value { index, ..self })
    }

    /// Returns member `name` if it is an object.
    #[must_use]
    pub fn object(self, name: &str) -> Option<Value<'a>> {
        self.member(name).filter(|value| value.is_object())
    }

    /// Returns the text of member `name`.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.member(name).map(Value::text)
    }

    /// Returns the text of member `name` if it is a string.
    #[must_use]
    pub fn quoted(self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|raw| raw.starts_with('"'))
    }

    /// Returns member `name` as a string; `None` if it is absent or of another type.
    #[must_use]
    pub fn string(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Returns member `name` as a number; `None` if it is absent or not an integer from 0 to `u64::MAX`.
    #[must_use]
    pub fn number(self, name: &str) -> Option<u64> {
        self.get(name).and_then(|raw| raw.parse().ok())
    }

    /// Returns true if member `name` is `true`.
    #[must_use]
    pub fn is_true(self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns true for an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.text().starts_with('{')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Object, elements};

    fn deep(levels: usize) -> String {
        ["[".repeat(levels), "]".repeat(levels)].concat()
    }

    #[test]
    fn an_outline_accepts_what_serde_json_accepts() {
        let texts = [
            r#"{}"#,
            r#" { } "#,
            r#"{"a":1}"#,
            "{\"a\" :\t1 ,\r\"b\":[ ]}",
            r#"{"a":1,}"#,
            r#"{,}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":[1}"#,
            r#"{"a":{]}"#,
            r#"{"a":01}"#,
            r#"{"a":-1.5e+3}"#,
            r#"{"a":"\q"}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":tru}"#,
            r#"{"a":null} x"#,
            r#"{a:1}"#,
            r#"{"a":[[],{},"x",null,true]}"#,
            "",
            "{",
            r#"{"a":"#,
            "[",
            "1",
            "\"x\"",
        ];
        let deep = format!(r#"{{"a":{}}}"#, deep(900));
        let mut outline = Outline::default();
        for text in texts.into_iter().chain([deep.as_str()]) {
            let expected = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
            let found = outline.read(text, 1000).map(|value| value.text());
            assert_eq!(found, expected.then(|| text.trim()), "{text}");
        }
        assert!(outline.read(&deep, 900).is_none(), "too deep");
    }

    #[test]
    fn values_are_the_same_as_those_of_objects() {
        let text = r#"{"z":1e2,"b":[{"c":"x"},7,["y"],"s"],"z":-0.0,"\u0061":{"d":true,"e":{}}, "f" : "t" }"#;
        let (mut outline, object) = (Outline::default(), Object::parse(text).unwrap());
        let value = outline.read(text, 64).unwrap();
        for name in ["z", "b", "a", "f", "missing", ""] {
            assert_eq!(value.get(name), object.get(name), "{name}");
        }
        let texts: Vec<&str> = value.list("b").map(Value::text).collect();
        let strings_and_lists = |raw: &&str| *raw != "7";
        let all = elements(object.get("b").unwrap()).unwrap();
        assert_eq!(texts, all.into_iter().filter(strings_and_lists).collect::<Vec<_>>());
        assert_eq!(value.list("b").next().unwrap().string("c").as_deref(), Some("x"));
        assert!(value.object("a").is_some_and(|inner| inner.is_true("d")));
        assert!(value.object("b").is_none() && value.list("z").next().is_none());
        assert_eq!(value.quoted("f"), Some("\"t\""));
    }

    #[test]
    fn values_below_the_last_level_are_only_text() {
        let text = format!(r#"{{"a":{}{}{}}}"#, "[".repeat(20), r#"{"b":1}"#, "]".repeat(20));
        let mut outline = Outline::default();
        let value = outline.read(&text, 64).unwrap();
        assert_eq!(value.get("a"), Object::parse(&text).unwrap().get("a"));
        assert_eq!(outline.nodes.len(), LEVELS + 1);
    }
}
