//! Parses one line of an input into its JSON object, or a finding about it.
//!
//! A line that is not a JSON object is reported as a finding, not an error, and reading continues with the next line.
//! Three things are accepted without a finding: blank lines, a byte order mark before the first line, and a carriage
//! return before the line feed. Two are repaired with a finding: runs of NUL bytes (a system crash can leave them), and
//! fused lines (a torn or complete object, followed by a complete object).

use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Place};
use crate::id;
use crate::json::{self, Object};
use memchr::memmem;
use std::borrow::Cow;

/// The maximum number of levels of nested arrays and objects in a record, including the record. Common JSON parsers
/// accept about 1000, and a provider that cannot parse a request would refuse it on every later turn.
pub const MAX_DEPTH: usize = 1000;

/// The object of a line, or a finding. For a damaged line, [`read_line`] returns a finding, followed by the objects
/// that could be recovered.
pub type Line<'a> = Result<LineObject<'a>, Finding>;

/// The JSON object of a line.
#[derive(Debug)]
pub struct LineObject<'a> {
    /// Its text and members.
    pub object: Object<'a>,
    /// Its place in the input that contains it.
    pub place: Place,
    /// The byte offset at which it begins, counted from the start of the first input.
    pub offset: u64,
}

impl<'a> LineObject<'a> {
    pub(super) fn new(object: Object<'a>, place: Place, base: u64) -> LineObject<'a> {
        let offset = base + place.offset;
        LineObject { object, place, offset }
    }

    /// Returns the id of the record: its own, or else its address.
    #[must_use]
    pub fn id(&self) -> Cow<'a, str> {
        self.object.string("id").unwrap_or_else(|| Cow::Owned(id::address(self.offset)))
    }
}

/// The maximum number of passes over a line in search of the beginning of its last object. Passes differ only in which
/// bytes they consider to be inside a string, so two are nearly always enough.
const MAX_PASSES: usize = 4;

/// Parses a line. `base` is the total length in bytes of the inputs before this one.
#[must_use]
pub fn read_line(bytes: &[u8], place: Place, base: u64) -> Vec<Line<'_>> {
    let whole = if place.offset == 0 { without_mark(bytes) } else { bytes };
    let (line, nuls) = without_nuls(whole);
    let found_nuls = |place: &Place| {
        let message = format!("ignored {nuls} NUL bytes");
        (nuls > 0).then(|| finding(&rules::NUL_BYTES, place, message))
    };
    let line = line.trim_ascii();
    // Recovered records are located by their own offset, so keep the distance from the beginning of the line.
    let lead = line.as_ptr() as usize - bytes.as_ptr() as usize;
    if line.is_empty() {
        return found_nuls(&place).into_iter().collect();
    }
    let text = match simdutf8::compat::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let why =
                format!("skipped: invalid UTF-8 after byte {} of the line", error.valid_up_to());
            // The part before the invalid bytes may still contain a complete object.
            return recover(line, lead, place, base, (&rules::INVALID_UTF8, why));
        }
    };
    match Object::parse(text) {
        Ok(object) if object.is_deeper(MAX_DEPTH) => {
            let why = format!("skipped: nested more than {MAX_DEPTH} levels deep");
            vec![finding(&rules::TOO_DEEP, &place, why)]
        }
        Ok(object) => {
            let found = found_nuls(&place);
            found.into_iter().chain([Ok(LineObject::new(object, place, base))]).collect()
        }
        Err(error) => recover(line, lead, place, base, describe(text, &error)),
    }
}

fn describe(text: &str, error: &serde_json::Error) -> (&'static Rule, String) {
    // serde_json reports a line and a column, but the text is always one line.
    let whole = error.to_string();
    let what = whole.split(" at line ").next().unwrap_or_default();
    let at = error.column();
    if !text.starts_with('{') {
        (&rules::NOT_AN_OBJECT, "skipped: not a JSON object".to_owned())
    } else if error.is_eof() {
        (&rules::TORN_LINE, format!("torn after byte {at} of the line: {what}"))
    } else {
        (&rules::BAD_JSON, format!("invalid JSON at byte {at} of the line: {what}"))
    }
}

/// Returns the bytes of an input without a byte order mark at the beginning.
#[must_use]
pub fn without_mark(input: &[u8]) -> &[u8] {
    input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input)
}

/// Strips NUL bytes from both ends, and returns their number.
fn without_nuls(line: &[u8]) -> (&[u8], usize) {
    if line.first() != Some(&0) && line.last() != Some(&0) {
        return (line, 0);
    }
    let first = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
    let last = line.iter().rposition(|byte| *byte != 0).map_or(first, |last| last + 1);
    (&line[first..last], line.len() - (last - first))
}

/// Recovers the complete objects of a damaged line: consecutive objects at its beginning, and the longest record at
/// its end. `lead` is the distance in bytes from the beginning of the line to `line`. `why` describes the damage; if
/// nothing is lost, the finding only reports NUL bytes or that the line has several records.
fn recover<'a>(
    line: &'a [u8],
    lead: usize,
    place: Place,
    base: u64,
    why: (&'static Rule, String),
) -> Vec<Line<'a>> {
    let saved = records_in(line);
    let whole = nothing_lost(line, &saved);
    let is_whole = whole.is_some();
    let (rule, what) = whole.unwrap_or(why);
    let mut lines = vec![finding(rule, &place, what)];
    for (start, object) in saved {
        let (at, length) = (lead + start, object.text().len());
        if !is_whole {
            let what = format!("kept a complete record of {length} bytes at byte {at} of the line");
            lines.push(finding(&rules::FUSED_LINE, &place, what));
        }
        let offset = place.offset + at as u64;
        let own = Place { offset, length: length as u64, ..place.clone() };
        lines.push(Ok(LineObject::new(object, own, base)));
    }
    lines
}

/// Describes a line that consists only of complete records, NUL bytes and white space. Returns `None` for other lines.
fn nothing_lost(line: &[u8], saved: &[(usize, Object<'_>)]) -> Option<(&'static Rule, String)> {
    let mut end = 0;
    let mut between = Vec::new();
    for (start, object) in saved {
        between.extend_from_slice(&line[end..*start]);
        end = start + object.text().len();
    }
    between.extend_from_slice(&line[end..]);
    let nuls = between.iter().filter(|byte| **byte == 0).count();
    let is_lost = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    if between.iter().any(is_lost) {
        None
    } else if nuls > 0 {
        Some((&rules::NUL_BYTES, format!("ignored {nuls} NUL bytes")))
    } else {
        let count = saved.len();
        Some((&rules::FUSED_LINE, format!("kept {count} complete records on one line")))
    }
}

/// Finds the complete records in a damaged line, each with its byte offset in the line.
fn records_in(line: &[u8]) -> Vec<(usize, Object<'_>)> {
    let valid = std::str::from_utf8(line).unwrap_or_else(|error| {
        std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
    });
    let mut spans = leading_objects(valid);
    let rest = spans.last().map_or(0, |(_, end)| *end);
    spans.extend(trailing_record(line, rest));
    let record = |(start, end): (usize, usize)| {
        let text = std::str::from_utf8(line.get(start..end)?).ok()?;
        let object = Object::parse(text).ok()?;
        let is_one = object.string("type").is_some() && !object.is_deeper(MAX_DEPTH);
        is_one.then_some((start, object))
    };
    spans.into_iter().filter_map(record).collect()
}

/// Returns the spans of the consecutive objects at the beginning of `text`.
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

/// Returns the span of the record at the end of the line: the longest one that begins at or after `from`.
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

/// Returns offsets at which the object at the end of `text` may begin; none is less than `from`. A scan must begin
/// outside a string, but after damage it is unknown which bytes are inside one. Each pass therefore begins at the first
/// `{"` that all earlier passes considered to be inside a string.
fn last_objects(text: &[u8], from: usize) -> Vec<usize> {
    let mut candidates: Vec<usize> = match text.last() {
        Some(b'}') => memmem::find_iter(&text[from..], b"{\"").map(|at| from + at).collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for _ in 0..MAX_PASSES {
        let Some(first) = candidates.first() else { break };
        let mut outside = Vec::new();
        found.extend(last_object(text, *first, &mut outside));
        candidates.retain(|at| outside.binary_search(at).is_err());
    }
    found
}

/// Scans from `start` and returns the beginning of the object at the end of `text`, if there is one. Adds the offset of
/// each opening brace outside strings to `outside`, in order.
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
                // No object that began earlier can be complete.
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
    Err(Finding { rule, place: place.clone(), id: None, message })
}
