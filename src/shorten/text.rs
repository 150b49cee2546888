//! The text of a tool result, whole or as two ends with a marker between them.

use crate::record::digest;
use crate::record::truncation::KeptSpan;

/// The text of a tool result: whole, or its two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultText {
    /// The text before the marker, or all of it if nothing was left out.
    pub(super) head: String,
    /// The text after the marker.
    pub(super) tail: String,
    /// The number of line feeds in the part that was left out. The marker states it as the number of lines.
    pub(super) lines: usize,
    /// The length of the whole text in bytes.
    pub(super) bytes: usize,
    /// The first 16 hex digits of the whole text's SHA-256.
    pub(super) sha256: String,
}

impl ResultText {
    /// Creates a complete text.
    #[must_use]
    pub fn whole(text: &str) -> ResultText {
        ResultText {
            head: text.to_owned(),
            tail: String::new(),
            lines: 0,
            bytes: text.len(),
            sha256: digest(text),
        }
    }

    /// Parses text that was shortened to the two ends in `shown`. `record` is the id of the record that the marker
    /// names, if it names one. The lengths in `shown`, not the marker, determine where the two ends are. Returns `None`
    /// if the text between them is not the marker of this truncation, because the text has changed since.
    #[must_use]
    pub fn shortened(text: &str, shown: &KeptSpan, record: Option<&str>) -> Option<ResultText> {
        let (head, tail) = (usize::try_from(shown.head).ok()?, usize::try_from(shown.tail).ok()?);
        let end = text.len().checked_sub(tail)?;
        let middle = text.get(head..end)?;
        let cut = ResultText {
            head: text[..head].to_owned(),
            tail: text[end..].to_owned(),
            lines: lines_in(middle).unwrap_or(0),
            bytes: usize::try_from(shown.bytes).ok()?,
            sha256: shown.sha256.clone(),
        };
        (cut.head.len() + cut.tail.len() <= cut.bytes && cut.middle(record) == middle)
            .then_some(cut)
    }

    /// Parses text for which no record says whether it was shortened. A marker is recognised if its numbers match the
    /// text around it. Do not make a truncation record from the returned value, because the marker may be part of the
    /// original text.
    #[must_use]
    pub fn guess(text: &str) -> ResultText {
        find_marker(text).unwrap_or_else(|| ResultText::whole(text))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.head.len() == self.bytes
    }

    /// Returns the text, with the marker if it is shortened.
    pub(super) fn render(&self, record: Option<&str>) -> String {
        [&self.head, &*self.middle(record), &self.tail].concat()
    }

    /// Returns the text between the two ends: the marker on its own line, or nothing.
    pub(super) fn middle(&self, record: Option<&str>) -> String {
        if self.is_whole() {
            return String::new();
        }
        let before = if self.head.is_empty() { "" } else { "\n" };
        let after = if self.tail.is_empty() { "" } else { "\n" };
        [before, &self.marker(record), after].concat()
    }

    pub(super) fn marker(&self, record: Option<&str>) -> String {
        let left_out = self.bytes - self.head.len() - self.tail.len();
        let (bytes, lines, sha256) = (self.bytes, self.lines, &self.sha256);
        let how = record.map(|id| format!("; all of it: claw-rebuild --record {id}"));
        let how = how.unwrap_or_default();
        format!(
            "{OPEN}{left_out} of {bytes} bytes ({lines} lines) left out, sha256 {sha256}{how}{CLOSE}"
        )
    }

    /// Returns the text with only `head` and `tail` bytes of its ends. Both must be on character boundaries within
    /// the known text.
    pub(super) fn keep(&self, head: usize, tail: usize) -> ResultText {
        let whole = self.is_whole();
        let end = if whole { &self.head } else { &self.tail };
        let kept_tail = end[end.len() - tail..].to_owned();
        let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let lines = if whole {
            newlines(&self.head[head..self.head.len() - tail])
        } else {
            let cut = &self.tail[..self.tail.len() - tail];
            self.lines + newlines(&self.head[head..]) + newlines(cut)
        };
        ResultText {
            head: self.head[..head].to_owned(),
            tail: kept_tail,
            lines,
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }

    /// Returns the spans that are kept, without images and documents.
    #[must_use]
    pub fn shown(&self) -> KeptSpan {
        KeptSpan {
            head: self.head.len() as u64,
            tail: self.tail.len() as u64,
            bytes: self.bytes as u64,
            sha256: self.sha256.clone(),
            media: Vec::new(),
        }
    }
}

pub(super) const OPEN: &str = "[... ";
pub(super) const CLOSE: &str = " ...]";

/// Returns the number of lines that a marker states.
fn lines_in(marker: &str) -> Option<usize> {
    let (_, rest) = marker.split_once(" bytes (")?;
    rest.split_once(" lines) left out")?.0.parse().ok()
}

/// Finds a marker whose numbers match the text around it.
fn find_marker(text: &str) -> Option<ResultText> {
    let mut from = 0;
    while let Some(found) = text[from..].find(OPEN) {
        let at = from + found;
        from = at + OPEN.len();
        let before = if at == 0 { Some("") } else { text[..at].strip_suffix('\n') };
        if let Some(cut) = before.and_then(|before| read_marker(before, &text[from..])) {
            return Some(cut);
        }
    }
    None
}

fn read_marker(head: &str, rest: &str) -> Option<ResultText> {
    let (inner, after) = rest.split_once(CLOSE)?;
    let tail = if after.is_empty() { after } else { after.strip_prefix('\n')? };
    let (left_out, inner) = inner.split_once(" of ")?;
    let (bytes, inner) = inner.split_once(" bytes (")?;
    let (lines, inner) = inner.split_once(" lines) left out, sha256 ")?;
    let sha256 = inner.split(';').next()?.to_owned();
    let (left_out, bytes): (usize, usize) = (left_out.parse().ok()?, bytes.parse().ok()?);
    let agrees = head.len() + left_out + tail.len() == bytes && sha256.len() == 16;
    agrees.then(|| ResultText {
        head: head.to_owned(),
        tail: tail.to_owned(),
        lines: lines.parse().unwrap_or(0),
        bytes,
        sha256,
    })
}
