//! The outline of a JSON text: the places of its values, found in one scan.
//!
//! An [`Object`](super::Object) knows only its own members, so a reader that looks into nested objects would scan their
//! text again at each level. An outline has the values of the first [`LEVELS`] levels. Nothing here is recursive.

use super::scan::Scan;
use super::{string, string_end};
use std::borrow::Cow;
use std::ops::Range;

/// The number of levels of arrays and objects whose values are in the outline. Deeper values are only part of the text
/// of the values around them.
pub const LEVELS: usize = 8;

/// The places of the values in one or several JSON texts. The memory is reused for the next ones.
#[derive(Debug, Default)]
pub struct Outline {
    nodes: Vec<Node>,
    open: Vec<OpenValue>,
}

/// A value. Its places are offsets in its text.
#[derive(Clone, Debug)]
struct Node {
    name: Name,
    value: Range<usize>,
    /// The index of the node after the nodes inside this one, counted from the first node of the text.
    next: usize,
}

/// The name of a member.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// The tag of the name; [`NO_NAME`] for the element of an array, and [`ESCAPED`] if the name has escapes.
    tag: u32,
    /// The offset after its opening quote.
    at: usize,
}

/// The tag of a value without a name.
const NO_NAME: u32 = 0;
/// The length in bytes from which names have the same tag if their ends are the same.
const MAX_LENGTH: usize = 0x7FFF;
/// The tag of all names with escapes.
const ESCAPED: u32 = u32::MAX;

/// Returns a number that is the same for equal names and usually differs for others: the length, the first and the
/// last byte.
#[inline(always)]
fn tag(name: &[u8]) -> u32 {
    let ends = match name {
        [first, .., last] => u32::from(*first) << 8 | u32::from(*last),
        [only] => u32::from(*only),
        [] => 0,
    };
    (name.len().min(MAX_LENGTH) as u32 + 1) << 16 | ends
}

/// Returns true if two texts of the same length are equal. For names, this is faster than a call of memcmp.
#[inline(always)]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let (blocks, rest) = one.as_chunks::<8>();
    let (other_blocks, other_rest) = other.as_chunks::<8>();
    let is_same =
        |(one, other): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other);
    blocks.iter().zip(other_blocks).all(is_same) && rest.iter().zip(other_rest).all(|(a, b)| a == b)
}

impl Name {
    const NONE: Name = Name { tag: NO_NAME, at: 0 };

    /// Returns true if the name is `name`. The tags must be the same, unless this name has escapes.
    #[inline(always)]
    fn is(self, name: &str, text: &str) -> bool {
        if self.tag == ESCAPED {
            return self.decodes_to(name, text);
        }
        let end = self.at + name.len();
        let own = text.as_bytes().get(self.at..end);
        own.is_some_and(|own| are_equal(own, name.as_bytes()))
            && text.as_bytes().get(end) == Some(&b'"')
    }

    #[cold]
    fn decodes_to(self, name: &str, text: &str) -> bool {
        self.decoded(text) == name
    }

    #[cold]
    fn decoded(self, text: &str) -> Cow<'_, str> {
        let quoted = self.at.checked_sub(1).map(|at| &text[at..string_end(text.as_bytes(), at)]);
        quoted.and_then(string).unwrap_or_default()
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
        self.clear();
        let (end, nodes) = self.scan(text, most, true)?;
        let is_all = text.as_bytes()[end..].trim_ascii().is_empty();
        is_all.then_some(self.value(text, nodes))
    }

    /// Adds the value at the beginning of `text`, which may be followed by anything and must be on one line. Returns
    /// its length and its nodes, with which [`Outline::value`] returns the value; `None` if there is no such value, or
    /// if it is nested more than `most` levels deep.
    pub fn add(&mut self, text: &str, most: usize) -> Option<(usize, Range<usize>)> {
        let first = self.nodes.len();
        let added = self.scan(text, most, false);
        if added.is_none() {
            self.nodes.truncate(first);
        }
        added
    }

    /// Returns the value that [`Outline::add`] has added from `text`.
    #[must_use]
    pub fn value<'a>(&'a self, text: &'a str, nodes: Range<usize>) -> Value<'a> {
        Value { text, nodes: &self.nodes[nodes], index: 0 }
    }

    /// Replaces all values by a copy of `value`, and `text` by its text. Returns the nodes with which
    /// [`Outline::value`] returns the copy.
    pub fn copy(&mut self, value: Value<'_>, text: &mut String) -> Range<usize> {
        text.clear();
        text.push_str(value.text);
        self.nodes.clear();
        self.nodes.extend_from_slice(value.nodes);
        0..self.nodes.len()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.nodes.clear();
    }

    /// Returns the end of the value in `text`, and its nodes.
    fn scan(&mut self, text: &str, most: usize, has_lines: bool) -> Option<(usize, Range<usize>)> {
        let (bytes, first_node) = (text.as_bytes(), self.nodes.len());
        let white = |at: usize| white(bytes, at, has_lines);
        let mut scan = Scan::of_many(text);
        self.open.clear();
        let (mut name, mut at) = (Name::NONE, white(0));
        loop {
            let first = *bytes.get(at)?;
            let node = self.begin(name, at, first);
            name = Name::NONE;
            if matches!(first, b'{' | b'[') {
                if self.open.len() == most {
                    return None;
                }
                let is_object = first == b'{';
                at = white(at + 1);
                self.open.push(OpenValue { is_object, node });
                // The loop below reads the end of an empty array or object.
                if *bytes.get(at)? != first + 2 {
                    if is_object {
                        (name, at) = key(&mut scan, bytes, at, white)?;
                    }
                    continue;
                }
            } else {
                at = scan.scalar(at)?;
                self.end(node, at, first_node);
            }
            loop {
                let Some(OpenValue { is_object, node }) = self.open.last().copied() else {
                    return Some((at, first_node..self.nodes.len()));
                };
                at = white(at);
                match *bytes.get(at)? {
                    b',' => {
                        at = white(at + 1);
                        if is_object {
                            (name, at) = key(&mut scan, bytes, at, white)?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                at += 1;
                self.open.pop();
                self.end(node, at, first_node);
            }
        }
    }

    /// Adds the value that begins at `at` with the byte `first`. Returns its index, or `None` if it is not in the
    /// outline: it is too deep, or it is a number, `true`, `false` or `null` in an array, which can have many of these.
    #[inline]
    fn begin(&mut self, name: Name, at: usize, first: u8) -> Option<usize> {
        let is_value = name.tag != NO_NAME || matches!(first, b'{' | b'[' | b'"');
        let is_root = self.open.is_empty();
        if !is_root && (self.open.len() > LEVELS || !is_value) {
            return None;
        }
        self.nodes.push(Node { name, value: at..at, next: 0 });
        Some(self.nodes.len() - 1)
    }

    #[inline]
    fn end(&mut self, node: Option<usize>, at: usize, first_node: usize) {
        let next = self.nodes.len() - first_node;
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
            node.value.end = at;
            node.next = next;
        }
    }
}

/// Skips white space from `at` on; line feeds only if the text `has_lines`.
#[inline(always)]
fn white(bytes: &[u8], at: usize, has_lines: bool) -> usize {
    let is_end = bytes.get(at).is_none_or(|byte| *byte > b' ');
    if is_end { at } else { after_white(bytes, at, has_lines) }
}

#[cold]
fn after_white(bytes: &[u8], mut at: usize, has_lines: bool) -> usize {
    while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = bytes.get(at) {
        if *byte == b'\n' && !has_lines {
            break;
        }
        at += 1;
    }
    at
}

/// Returns the name at `at`, and the beginning of its value. `white` skips white space.
#[inline]
fn key(
    scan: &mut Scan<'_>,
    bytes: &[u8],
    at: usize,
    white: impl Fn(usize) -> usize,
) -> Option<(Name, usize)> {
    let (end, is_escaped) = scan.name(at)?;
    let tag = if is_escaped { ESCAPED } else { tag(&bytes[at + 1..end - 1]) };
    let colon = white(end);
    (bytes.get(colon) == Some(&b':')).then(|| (Name { tag, at: at + 1 }, white(colon + 1)))
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
    pub fn member_count(self) -> usize {
        self.inner().count()
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

    /// Returns the members `names` of an object. If a name occurs twice, the last member wins. For a reader that needs
    /// several members, this is faster than [`Value::member`], which examines all members each time.
    #[inline]
    #[must_use]
    pub fn pick<const N: usize>(self, names: [&str; N]) -> [Option<Value<'a>>; N] {
        let tags = names.map(|name| tag(name.as_bytes()));
        let (mut at, end, mut found) = (self.index + 1, self.node().next, [None; N]);
        while at < end {
            let node = &self.nodes[at];
            for (index, name) in names.into_iter().enumerate() {
                let may_be = node.name.tag == tags[index] || node.name.tag == ESCAPED;
                if may_be && node.name.is(name, self.text) {
                    found[index] = Some(Value { index: at, ..self });
                }
            }
            at = node.next;
        }
        found
    }

    /// Returns the texts of the members `names`; see [`Value::pick`].
    #[inline]
    #[must_use]
    pub fn texts<const N: usize>(self, names: [&str; N]) -> [Option<&'a str>; N] {
        self.pick(names).map(|member| member.map(Value::text))
    }

    /// Returns member `name` of an object. If the name occurs twice, the last member wins.
    #[inline]
    #[must_use]
    pub fn member(self, name: &str) -> Option<Value<'a>> {
        let [member] = self.pick([name]);
        member
    }

    /// Returns member `name` if it is an object.
    #[inline]
    #[must_use]
    pub fn object(self, name: &str) -> Option<Value<'a>> {
        self.member(name).filter(|value| value.is_object())
    }

    /// Returns the text of member `name`.
    #[inline]
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.member(name).map(Value::text)
    }

    /// Returns the text of member `name` if it is a string.
    #[inline]
    #[must_use]
    pub fn quoted(self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|raw| raw.starts_with('"'))
    }

    /// Returns member `name` as a string; `None` if it is absent or of another type.
    #[inline]
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
    #[inline]
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
mod tests;
