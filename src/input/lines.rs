//! Lines in: bytes to objects, one line at a time.
//!
//! Lines end at byte 0x0A and nowhere else. A line that is no JSON object is a value
//! ([`Line::Finding`]), not an error: the next line is read all the same. Tolerated without a word are
//! blank lines, a byte order mark before the first line, and a carriage return before the line feed.
//! Tolerated with a finding are runs of NUL bytes (a crash of the machine leaves them) and fused
//! lines: a torn prefix, or a whole object, followed by a whole object.

use super::block::{Batch, Batches};
use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Place};
use crate::input::Input;
use crate::json::{self, Object};
use memchr::memmem;
use std::io;

/// How deep arrays and objects may be nested in a record, itself included. Common readers of JSON stop
/// near 1000, and a provider that cannot read a request refuses it again on every later turn.
pub const MOST_DEPTH: usize = 1000;

/// A line of an input.
#[derive(Debug)]
pub enum Line<'a> {
    /// An object.
    Object {
        /// Its JSON text.
        text: &'a str,
        /// Its members.
        object: Object<'a>,
        /// Where it stands.
        place: Place,
    },
    /// Something that is wrong; what could be saved of the line follows as objects of its own.
    Finding(Finding),
}

/// The most times that a line is read to find where its last object begins. Readings differ only in what is
/// taken for the inside of a string, so two are nearly always enough.
const MOST_READINGS: usize = 4;

/// The lines of an input between two offsets, in order.
#[derive(Debug)]
pub struct Lines<'i> {
    input: &'i Input,
    batches: Batches,
    next: Next,
}

/// Which line is next.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// Its index in its batch.
    index: usize,
    offset: u64,
    /// Not known when reading begins in the middle.
    number: Option<u64>,
}

/// Lines that are in memory together: what is read from them lasts until the next are asked for.
#[derive(Debug)]
pub struct Held<'h> {
    input: &'h Input,
    batch: &'h Batch,
    next: &'h mut Next,
}

impl<'i> Lines<'i> {
    /// Reads from byte `from`, which must be the beginning of a line, to byte `to`.
    #[must_use]
    pub fn new(input: &'i Input, from: u64, to: u64) -> Lines<'i> {
        let number = (from == 0).then_some(1);
        let next = Next { index: 0, offset: from, number };
        Lines { input, batches: Batches::new(input, from..to), next }
    }

    /// Gives the bytes of the next line, without its line feed, to `each`; says whether there was one.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn next(&mut self, each: impl FnOnce(&[u8], Place)) -> io::Result<bool> {
        let Some(mut held) = self.held()? else { return Ok(false) };
        let Some((line, place)) = held.advance() else { return Ok(false) };
        each(held.batch.line(line).0, place);
        Ok(true)
    }

    /// Gives what is in the next line to `each`; says whether there was one.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn read(&mut self, each: &mut dyn FnMut(Line<'_>)) -> io::Result<bool> {
        Ok(self.held()?.is_some_and(|mut held| held.read(each)))
    }

    /// The next lines, as many as are in memory together; there is at least one, until there is none.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn held(&mut self) -> io::Result<Option<Held<'_>>> {
        if self.next.index >= self.batches.current().len() {
            if !self.batches.advance()? {
                return Ok(None);
            }
            self.next.index = 0;
        }
        Ok(Some(Held { input: self.input, batch: self.batches.current(), next: &mut self.next }))
    }
}

impl<'h> Held<'h> {
    /// Gives what is in the next line to `each`; says whether there was one.
    pub fn read(&mut self, each: &mut dyn FnMut(Line<'h>)) -> bool {
        let Some((line, place)) = self.advance() else { return false };
        match self.batch.object(line) {
            Some(object) => each(Line::Object { text: object.text(), object, place }),
            None => read_line(self.batch.line(line).0, place, each),
        }
        true
    }

    /// The offset of the next line, and its number if that is known.
    #[must_use]
    pub fn position(&self) -> (u64, Option<u64>) {
        (self.next.offset, self.next.number)
    }

    /// The index of the next line in its batch, and its place.
    fn advance(&mut self) -> Option<(usize, Place)> {
        let Next { index, offset, number } = *self.next;
        if index >= self.batch.len() {
            return None;
        }
        let (bytes, has_feed) = self.batch.line(index);
        let place = place(self.input, number, offset, bytes.len());
        *self.next = Next {
            index: index + 1,
            offset: offset + place.length + u64::from(has_feed),
            number: number.map(|number| number + 1),
        };
        Some((index, place))
    }
}

pub(super) fn place(input: &Input, line: Option<u64>, offset: u64, length: usize) -> Place {
    Place { input: input.name.clone(), line, offset, length: length as u64 }
}

/// Reads a line and gives what is in it to `each`.
pub fn read_line<'a>(bytes: &'a [u8], place: Place, each: &mut dyn FnMut(Line<'a>)) {
    let whole = if place.offset == 0 { without_mark(bytes) } else { bytes };
    let (line, nuls) = without_nuls(whole);
    let mut find_nuls = || {
        if nuls > 0 {
            each(finding(&rules::NUL_BYTES, &place, format!("{nuls} NUL bytes passed over")));
        }
    };
    let line = line.trim_ascii();
    // How far into its line what is left begins: recovered records are named by their own place.
    let lead = line.as_ptr() as usize - bytes.as_ptr() as usize;
    if line.is_empty() {
        find_nuls();
        return;
    }
    let text = match simdutf8::compat::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let why = format!("skipped: not UTF-8 from byte {} on", error.valid_up_to());
            // The good part of a torn character's line may still hold a whole object.
            recover(line, lead, place, (&rules::INVALID_UTF8, why), each);
            return;
        }
    };
    match Object::parse(text) {
        Ok(object) if object.is_deeper(MOST_DEPTH) => {
            let why = format!("skipped: nested more than {MOST_DEPTH} deep");
            each(finding(&rules::TOO_DEEP, &place, why));
        }
        Ok(object) => {
            find_nuls();
            each(Line::Object { text, object, place });
        }
        Err(error) => recover(line, lead, place, describe(text, &error), each),
    }
}

fn describe(text: &str, error: &serde_json::Error) -> (&'static Rule, String) {
    // serde_json counts lines and columns, and here is only one line.
    let whole = error.to_string();
    let what = whole.split(" at line ").next().unwrap_or_default();
    let at = error.column();
    if !text.starts_with('{') {
        (&rules::NOT_AN_OBJECT, "skipped: not a JSON object".to_owned())
    } else if error.is_eof() {
        (&rules::TORN_LINE, format!("torn after byte {at} of the line: {what}"))
    } else {
        (&rules::BAD_JSON, format!("not one JSON object, from byte {at} of the line on: {what}"))
    }
}

/// The bytes of an input without the byte order mark before its first line.
#[must_use]
pub fn without_mark(input: &[u8]) -> &[u8] {
    input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input)
}

/// Takes runs of NUL bytes off both ends, and says how many there were.
fn without_nuls(line: &[u8]) -> (&[u8], usize) {
    if line.first() != Some(&0) && line.last() != Some(&0) {
        return (line, 0);
    }
    let first = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
    let last = line.iter().rposition(|byte| *byte != 0).map_or(first, |last| last + 1);
    (&line[first..last], line.len() - (last - first))
}

/// Looks for whole objects in a line that is none: first object after object from the beginning, then,
/// past whatever was torn, the first place from which the rest of the line is a record. `why` is what is
/// wrong with the line; where nothing of it is lost, that is only that it holds several records.
fn recover<'a>(
    line: &'a [u8],
    lead: usize,
    place: Place,
    why: (&'static Rule, String),
    each: &mut dyn FnMut(Line<'a>),
) {
    let saved = records_in(line);
    let whole = nothing_lost(line, &saved);
    let is_whole = whole.is_some();
    let (rule, what) = whole.unwrap_or(why);
    each(finding(rule, &place, what));
    for (start, text, object) in saved {
        let (at, length) = (lead + start, text.len());
        if !is_whole {
            let what = format!("{length} bytes at byte {at} of the line are a whole record, kept");
            each(finding(&rules::FUSED_LINE, &place, what));
        }
        let offset = place.offset + at as u64;
        let own = Place { offset, length: length as u64, ..place.clone() };
        each(Line::Object { text, object, place: own });
    }
}

/// What there is to say of a line that is all whole records, with nothing but NUL bytes and white space
/// between them.
fn nothing_lost(
    line: &[u8],
    saved: &[(usize, &str, Object<'_>)],
) -> Option<(&'static Rule, String)> {
    let mut end = 0;
    let mut between = Vec::new();
    for (start, text, _) in saved {
        between.extend_from_slice(&line[end..*start]);
        end = start + text.len();
    }
    between.extend_from_slice(&line[end..]);
    let nuls = between.iter().filter(|byte| **byte == 0).count();
    let is_lost = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    if between.iter().any(is_lost) {
        None
    } else if nuls > 0 {
        Some((&rules::NUL_BYTES, format!("{nuls} NUL bytes passed over")))
    } else {
        let count = saved.len();
        Some((&rules::FUSED_LINE, format!("{count} whole records on one line, kept")))
    }
}

/// The whole records in a line that is none, each with its place in the line.
fn records_in(line: &[u8]) -> Vec<(usize, &str, Object<'_>)> {
    let valid = std::str::from_utf8(line).unwrap_or_else(|error| {
        std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
    });
    let mut spans = leading_objects(valid);
    let rest = spans.last().map_or(0, |(_, end)| *end);
    spans.extend(trailing_record(line, rest));
    let record = |(start, end): (usize, usize)| {
        let text = std::str::from_utf8(line.get(start..end)?).ok()?;
        let object = Object::parse(text).ok()?;
        let is_one = object.string("type").is_some() && !object.is_deeper(MOST_DEPTH);
        is_one.then_some((start, text, object))
    };
    spans.into_iter().filter_map(record).collect()
}

/// The spans of the objects that stand at the beginning of `text`, one after the other.
fn leading_objects(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while text[at..].starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<&serde_json::value::RawValue>();
        let Some(Ok(value)) = values.next() else { break };
        let end = at + value.get().len();
        spans.push((at, end));
        at = end;
    }
    spans
}

/// The span of the record that ends the line, begun as early as possible after `from`.
fn trailing_record(line: &[u8], from: usize) -> Option<(usize, usize)> {
    let last = line.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty())?;
    let text = last.valid();
    let skipped = line.len() - text.len();
    let from = from.saturating_sub(skipped).min(text.len());
    let is_record =
        |at: &usize| Object::parse_slowly(&text[*at..]).is_ok_and(|it| it.string("type").is_some());
    let starts = last_objects(text.as_bytes(), from);
    let start = starts.into_iter().filter(is_record).min()?;
    Some((skipped + start, line.len()))
}

/// Where the object that ends `text` may begin, after `from`. A brace belongs to one at most, and what is
/// inside a string depends on where reading began: each reading begins at the first brace with a name
/// after it that lay inside a string in all readings before.
fn last_objects(text: &[u8], from: usize) -> Vec<usize> {
    let mut candidates: Vec<usize> = match text.last() {
        Some(b'}') => memmem::find_iter(&text[from..], b"{\"").map(|at| from + at).collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for _ in 0..MOST_READINGS {
        let Some(first) = candidates.first() else { break };
        let mut outside = Vec::new();
        found.extend(last_object(text, *first, &mut outside));
        candidates.retain(|at| outside.binary_search(at).is_err());
    }
    found
}

/// Where the object begins that ends `text`, if reading from `start` on one does. Adds where other objects
/// begin to `outside`, in order.
fn last_object(text: &[u8], start: usize, outside: &mut Vec<usize>) -> Option<usize> {
    let (mut at, mut open, mut ended) = (start, Vec::new(), None);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = json::string_end(text, at);
                continue;
            }
            b'{' => outside.push(at),
            _ => {}
        }
        match byte {
            b'{' | b'[' => open.push((*byte, at)),
            b'}' | b']' => match open.pop() {
                Some((opening, place)) if opening + 2 == *byte => ended = Some((place, at)),
                // Nothing that began before can be whole.
                _ => open.clear(),
            },
            b'\\' => open.clear(),
            _ => {}
        }
        at += 1;
    }
    ended.filter(|(_, end)| end + 1 == text.len()).map(|(place, _)| place)
}

fn finding<'a>(rule: &'static Rule, place: &Place, message: String) -> Line<'a> {
    Line::Finding(Finding { rule, place: place.clone(), id: None, message })
}

#[cfg(test)]
mod tests {
    use super::super::backward::line_around;
    use super::super::block::BLOCK;
    use super::*;

    fn texts(bytes: &[u8]) -> (Vec<String>, Vec<&'static str>) {
        let (mut objects, mut rules) = (Vec::new(), Vec::new());
        let input = Input::memory("t", bytes.to_vec());
        let mut lines = Lines::new(&input, 0, input.length);
        let mut each = |line: Line<'_>| match line {
            Line::Object { text, .. } => objects.push(text.to_owned()),
            Line::Finding(finding) => rules.push(finding.rule.name),
        };
        while lines.next(|line, place| read_line(line, place, &mut each)).unwrap() {}
        (objects, rules)
    }

    #[test]
    fn v5_bom_crlf_and_blank_lines_load_the_same_records() {
        let (objects, rules) =
            texts(b"\xEF\xBB\xBF{\"type\":\"a\"}\r\n\r\n   \n{\"type\":\"b\"}\n");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
        assert!(rules.is_empty());
    }

    /// Offset and bytes of each line.
    fn split(input: &Input) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        let mut lines = Lines::new(input, 0, input.length);
        while lines.next(|line, place| out.push((place.offset, line.to_vec()))).unwrap() {}
        assert!(!lines.next(|_, _| {}).unwrap(), "the end stays the end");
        out
    }

    #[test]
    fn lines_are_the_same_wherever_blocks_end() {
        // The last is long enough to be read ahead.
        for length in [0, 1, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK] {
            for tail in ["", "\n", "\nlast", "\n\nlast\n"] {
                let text = format!("first\n{}{tail}", "x".repeat(length));
                let expected: Vec<Vec<u8>> = text
                    .strip_suffix('\n')
                    .unwrap_or(&text)
                    .split('\n')
                    .map(|line| line.as_bytes().to_vec())
                    .collect();
                let input = Input::memory("t", text.into_bytes());
                let lines = split(&input);
                let found: Vec<Vec<u8>> = lines.iter().map(|line| line.1.clone()).collect();
                // A text that ends in one line feed has no empty line after it.
                assert!(found == expected || length == 0 && tail.is_empty(), "{length} {tail:?}");
                for (offset, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
                    let around = line_around(&input, *offset, input.length).unwrap();
                    assert_eq!(around, (*offset, line.clone()));
                }
            }
        }
    }

    #[test]
    fn an_input_says_how_far_a_walk_is() {
        let input = Input::memory("t", b"{}\n".repeat(BLOCK));
        let mut lines = Lines::new(&input, 3, input.length);
        assert_eq!(input.position(), 0);
        assert!(lines.next(|_, _| {}).unwrap());
        assert_eq!(input.clone().position(), 3 + BLOCK as u64);
        while lines.next(|_, _| {}).unwrap() {}
        assert_eq!(input.position(), input.length);
    }

    #[test]
    fn v3_a_torn_line_costs_itself_only() {
        let (objects, rules) =
            texts(b"{\"type\":\"a\"}\n{\"type\":\"b\",\"x\":\"\xe6\x97\n{\"type\":\"c\"}");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"c"}"#]);
        assert_eq!(rules, ["invalid-utf8"]);
        assert_eq!(texts(b"{\"type\":\"b\",\"x\":\"torn").1, ["torn-line"]);
    }

    #[test]
    fn nul_runs_are_passed_over() {
        let (objects, rules) = texts(b"\0\0\0\n\0\0{\"type\":\"a\"}\0\n{\"type\":\"b\"}\n\0\0");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
        assert_eq!(rules, ["nul-bytes", "nul-bytes", "nul-bytes"]);
    }

    #[test]
    fn v4_fused_lines_give_back_what_is_whole() {
        let (objects, _) = texts(br#"{"type":"a","x":{"y":1}}{"type":"b"}"#);
        assert_eq!(objects, [r#"{"type":"a","x":{"y":1}}"#, r#"{"type":"b"}"#]);
        let (objects, rules) = texts(br#"{"type":"a","x":{"y":"to{"type":"b","z":{"w":2}}"#);
        assert_eq!(objects, [r#"{"type":"b","z":{"w":2}}"#]);
        assert_eq!(rules, ["bad-json", "fused-line"]);
        let (objects, _) = texts(b"{\"type\":\"a\",\"x\":\"\xe6{\"type\":\"b\"}");
        assert_eq!(objects, [r#"{"type":"b"}"#]);
    }

    #[test]
    fn v12_only_line_feeds_end_lines() {
        let (objects, rules) = texts("{\"type\":\"a\u{2028}\u{85}\"}\n".as_bytes());
        assert_eq!((objects.len(), rules.len()), (1, 0));
    }

    #[test]
    fn other_values_are_no_records() {
        let (objects, rules) = texts(b"[1]\n5\n\"x\"\nnull\n{\"type\":\"a\"}\n");
        assert_eq!(objects.len(), 1);
        assert_eq!(rules, ["not-an-object"; 4]);
    }
}
