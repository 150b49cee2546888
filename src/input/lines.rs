//! The lines of one or several inputs, in order. Only byte 0x0A ends a line.

use super::block::{Batches, Parts, WholeLines};
use super::line::{Line, LineObject, read_line};
use crate::finding::Place;
use crate::input::Input;
use crate::input::origin::SourcePlace;
use crate::json::outline::Value;
use std::ops::Range;
use std::slice;
use std::vec;

/// The lines of several inputs, read in order as if the inputs were one text.
///
/// ```
/// # use clawutils::input::{Input, lines::Lines};
/// let inputs = [Input::memory("example", b"{\"type\":\"user\"}\nnoise\n".to_vec())];
/// let (mut objects, mut findings) = (0, 0);
/// let mut lines = Lines::new(&inputs, 0..u64::MAX);
/// while let Some(batch) = lines.batch()? {
///     for line in batch {
///         if line.is_ok() { objects += 1 } else { findings += 1 }
///     }
/// }
/// assert_eq!((objects, findings), (1, 1));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<'i> {
    inputs: slice::Iter<'i, Input>,
    /// The bytes to read, counted over all inputs.
    range: Range<u64>,
    /// The offset at which the next input begins, counted over all inputs.
    base: u64,
    /// The parts of objects that are scanned for.
    parts: Parts,
    open: Option<OpenInput<'i>>,
}

/// The input that is being read.
#[derive(Debug)]
struct OpenInput<'i> {
    input: &'i Input,
    base: u64,
    batches: Batches,
    next: Next,
}

/// The position of the next line.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// Its index in its batch.
    index: usize,
    /// Its byte offset in its input.
    offset: u64,
    /// Its number, from 1. `None` if reading began in the middle of the input.
    number: Option<u64>,
}

/// The lines of one batch in memory. Its objects are valid until the next batch is read.
#[derive(Debug)]
pub struct LineBatch<'h> {
    input: &'h Input,
    base: u64,
    batch: &'h WholeLines,
    next: &'h mut Next,
    /// The remaining findings and objects of a damaged line.
    recovered: vec::IntoIter<Line<'h>>,
}

/// A line that was scanned for the values in its object.
#[derive(Debug)]
pub enum ValueLine<'h> {
    /// The object, and its offset in the line.
    Object(Value<'h>, usize),
    /// The bytes of a line that is not just one object; [`read_line`] reads them.
    Other(&'h [u8]),
}

impl<'i> Lines<'i> {
    /// Creates a reader of the lines in `range`, counted in bytes over all inputs. It must start at the beginning of a
    /// line; it may end after the end of the inputs.
    #[must_use]
    pub fn new(inputs: &'i [Input], range: Range<u64>) -> Lines<'i> {
        Lines { inputs: inputs.iter(), range, base: 0, parts: Parts::Members, open: None }
    }

    /// Creates a reader of all lines of one input for [`LineBatch::next_value`].
    #[must_use]
    pub fn with_values(input: &'i Input) -> Lines<'i> {
        Lines { parts: Parts::Values, ..Lines::of(input) }
    }

    /// Creates a reader of all lines of one input.
    #[must_use]
    pub fn of(input: &'i Input) -> Lines<'i> {
        Lines::new(slice::from_ref(input), 0..input.length)
    }

    /// Reads the next batch of lines. Returns `None` at the end.
    ///
    /// # Errors
    /// Fails if an input cannot be read.
    pub fn batch(&mut self) -> anyhow::Result<Option<LineBatch<'_>>> {
        while !self.advance()? {
            if !self.open_next() {
                return Ok(None);
            }
        }
        Ok(self.open.as_mut().map(|OpenInput { input, base, batches, next }| {
            let (batch, recovered) = (batches.current(), vec::IntoIter::default());
            LineBatch { input, base: *base, batch, next, recovered }
        }))
    }

    /// Moves to the next batch of the open input, unless the current one has lines left. Returns false at the end of
    /// the input.
    fn advance(&mut self) -> anyhow::Result<bool> {
        let Some(OpenInput { input, batches, next, .. }) = &mut self.open else { return Ok(false) };
        if next.index < batches.current().len() {
            return Ok(true);
        }
        next.index = 0;
        input.named(batches.advance())
    }

    /// Opens the next input. Returns false if there is none.
    fn open_next(&mut self) -> bool {
        let Some(input) = self.inputs.next() else { return false };
        let base = self.base;
        self.base += input.length;
        let own = |offset: u64| offset.saturating_sub(base).min(input.length);
        let (from, to) = (own(self.range.start), own(self.range.end));
        let next = Next { index: 0, offset: from, number: (from == 0).then_some(1) };
        let batches = Batches::new(input, from..to, self.parts);
        self.open = Some(OpenInput { input, base, batches, next });
        true
    }
}

impl<'h> Iterator for LineBatch<'h> {
    type Item = Line<'h>;

    fn next(&mut self) -> Option<Line<'h>> {
        loop {
            if let Some(line) = self.recovered.next() {
                return Some(line);
            }
            let (index, place) = self.advance()?;
            let place = place.in_input(&self.input.name);
            match self.batch.object(index) {
                Some(object) => return Some(Ok(LineObject::new(object, place, self.base))),
                None => {
                    let (bytes, _) = self.batch.line(index);
                    self.recovered = read_line(bytes, place, self.base).into_iter();
                }
            }
        }
    }
}

impl<'h> LineBatch<'h> {
    /// Returns the next line and its place.
    pub fn next_value(&mut self) -> Option<(SourcePlace, ValueLine<'h>)> {
        let (index, place) = self.advance()?;
        let line = match self.batch.value(index) {
            Some((value, lead)) => ValueLine::Object(value, lead),
            None => ValueLine::Other(self.batch.line(index).0),
        };
        Some((place, line))
    }

    /// Moves past the next line. Returns its index in the batch, and its place.
    fn advance(&mut self) -> Option<(usize, SourcePlace)> {
        let Next { index, offset, number } = *self.next;
        if index >= self.batch.len() {
            return None;
        }
        let (bytes, has_feed) = self.batch.line(index);
        let length = bytes.len() as u64;
        *self.next = Next {
            index: index + 1,
            offset: offset + length + u64::from(has_feed),
            number: number.map(|number| number + 1),
        };
        Some((index, SourcePlace { line: number.unwrap_or(0), offset, length }))
    }
}

pub(super) fn place(input: &Input, line: Option<u64>, offset: u64, length: usize) -> Place {
    Place { input: input.name.clone(), line, offset, length: length as u64 }
}

#[cfg(test)]
mod tests {
    use super::super::backward::line_at;
    use super::super::block::BLOCK;
    use super::*;
    use std::io::Write;

    fn texts(bytes: &[u8]) -> (Vec<String>, Vec<&'static str>) {
        let (mut objects, mut rules) = (Vec::new(), Vec::new());
        let input = Input::memory("t", bytes.to_vec());
        let mut lines = Lines::of(&input);
        while let Some(batch) = lines.batch().unwrap() {
            for line in batch {
                match line {
                    Ok(found) => objects.push(found.object.text().to_owned()),
                    Err(finding) => rules.push(finding.rule.name),
                }
            }
        }
        assert!(lines.batch().unwrap().is_none(), "a batch after the end");
        (objects, rules)
    }

    #[test]
    fn v5_bom_crlf_and_blank_lines_load_the_same_records() {
        let (objects, rules) =
            texts(b"\xEF\xBB\xBF{\"type\":\"a\"}\r\n\r\n   \n{\"type\":\"b\"}\n");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
        assert!(rules.is_empty());
    }

    /// Returns the offset and the bytes of each line.
    fn split(input: &Input) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        let mut lines = Lines::of(input);
        while let Some(mut batch) = lines.batch().unwrap() {
            while let Some((index, place)) = batch.advance() {
                out.push((place.offset, batch.batch.line(index).0.to_vec()));
            }
        }
        out
    }

    #[test]
    fn lines_do_not_depend_on_block_boundaries() {
        // The last length is long enough that a thread reads ahead.
        for length in [0, 1, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK] {
            for tail in ["", "\n", "\nlast", "\n\nlast\n"] {
                let text = format!("first\n{}{tail}", "x".repeat(length));
                let expected: Vec<Vec<u8>> = text
                    .strip_suffix('\n')
                    .unwrap_or(&text)
                    .split('\n')
                    .map(|line| line.as_bytes().to_vec())
                    .collect();
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(text.as_bytes()).unwrap();
                let inputs =
                    [Input::memory("t", text.into_bytes()), Input::file("t", file).unwrap()];
                for input in inputs {
                    let lines = split(&input);
                    let found: Vec<Vec<u8>> = lines.iter().map(|line| line.1.clone()).collect();
                    // Input that ends in one line feed has no empty line after it.
                    let is_split = found == expected || length == 0 && tail.is_empty();
                    assert!(is_split, "{length} {tail:?}");
                    for (offset, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
                        let around =
                            line_at(std::slice::from_ref(&input), *offset).unwrap().unwrap();
                        assert_eq!((around.place.offset, &around.bytes), (*offset, line));
                    }
                }
            }
        }
    }

    #[test]
    fn an_input_tracks_the_reading_position() {
        let input = Input::memory("t", b"{}\n".repeat(BLOCK));
        let mut lines = Lines::new(std::slice::from_ref(&input), 3..input.length);
        assert_eq!(input.position(), 0);
        assert!(lines.batch().unwrap().is_some());
        // The last line that begins in the block is not complete.
        assert_eq!(input.clone().position(), 3 + (BLOCK / 3 * 3) as u64);
        while let Some(batch) = lines.batch().unwrap() {
            batch.for_each(drop);
        }
        assert_eq!(input.position(), input.length);
    }

    #[test]
    fn v3_a_torn_line_loses_only_itself() {
        let (objects, rules) =
            texts(b"{\"type\":\"a\"}\n{\"type\":\"b\",\"x\":\"\xe6\x97\n{\"type\":\"c\"}");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"c"}"#]);
        assert_eq!(rules, ["invalid-utf8"]);
        assert_eq!(texts(b"{\"type\":\"b\",\"x\":\"torn").1, ["torn-line"]);
    }

    #[test]
    fn nul_runs_are_ignored() {
        let (objects, rules) = texts(b"\0\0\0\n\0\0{\"type\":\"a\"}\0\n{\"type\":\"b\"}\n\0\0");
        assert_eq!(objects, [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
        assert_eq!(rules, ["nul-bytes", "nul-bytes", "nul-bytes"]);
    }

    #[test]
    fn v4_complete_records_of_fused_lines_are_kept() {
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
    fn other_values_are_not_records() {
        let (objects, rules) = texts(b"[1]\n5\n\"x\"\nnull\n{\"type\":\"a\"}\n");
        assert_eq!(objects.len(), 1);
        assert_eq!(rules, ["not-an-object"; 4]);
    }
}
