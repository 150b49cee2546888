//! A result's text, whole or as its two ends, and the marker between them.

use crate::messages::meta::Shown;
use crate::record::digest;

/// A result's text as it is known: whole, or the two ends of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text that is there before the marker; all of it when nothing was left out.
    pub(super) head: String,
    /// The text after the marker.
    pub(super) tail: String,
    /// Line feeds in what was left out.
    pub(super) lines: usize,
    /// Length of the whole text in bytes.
    pub(super) bytes: usize,
    /// The first 16 hex digits of the whole text's SHA-256.
    pub(super) sha256: String,
}

impl Text {
    /// Reads the text of a result. `shown` is what `_meta` says of it: `Some(None)` that it is whole,
    /// `None` that there is no `_meta`, and a marker in the text is believed if its numbers agree.
    #[must_use]
    pub fn read(text: &str, shown: Option<Option<&Shown>>) -> Text {
        let cut = match shown {
            Some(None) => None,
            Some(Some(shown)) => find_marker(text, Some(shown.head as usize)),
            None => find_marker(text, None),
        };
        cut.unwrap_or_else(|| Text {
            head: text.to_owned(),
            tail: String::new(),
            lines: 0,
            bytes: text.len(),
            sha256: digest(text),
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.head.len() == self.bytes
    }

    /// The text as a reader sees it now.
    pub(super) fn render(&self, record: Option<&str>) -> String {
        if self.is_whole() {
            return self.head.clone();
        }
        let marker = self.marker(record);
        let before = if self.head.is_empty() { "" } else { "\n" };
        let after = if self.tail.is_empty() { "" } else { "\n" };
        [&self.head, before, &marker, after, &self.tail].concat()
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

    /// The same text with at most `head` and `tail` bytes of its ends; both must lie on character
    /// boundaries within what is known.
    pub(super) fn keep(&self, head: usize, tail: usize) -> Text {
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
        Text {
            head: self.head[..head].to_owned(),
            tail: kept_tail,
            lines,
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }

    /// How much of it is shown now; of images and documents it knows nothing.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown {
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

/// Finds a marker whose numbers agree with the text around it; with `head`, only one at that byte.
fn find_marker(text: &str, head: Option<usize>) -> Option<Text> {
    let mut from = 0;
    while let Some(found) = text[from..].find(OPEN) {
        let at = from + found;
        from = at + OPEN.len();
        let before = if at == 0 { Some("") } else { text[..at].strip_suffix('\n') };
        let Some(before) = before else { continue };
        if head.is_some_and(|head| head != before.len()) {
            continue;
        }
        if let Some(cut) = read_marker(before, &text[from..]) {
            return Some(cut);
        }
    }
    None
}

fn read_marker(head: &str, rest: &str) -> Option<Text> {
    let (inner, after) = rest.split_once(CLOSE)?;
    let tail = if after.is_empty() { after } else { after.strip_prefix('\n')? };
    let (left_out, inner) = inner.split_once(" of ")?;
    let (bytes, inner) = inner.split_once(" bytes (")?;
    let (lines, inner) = inner.split_once(" lines) left out, sha256 ")?;
    let sha256 = inner.split(';').next()?.to_owned();
    let (left_out, bytes): (usize, usize) = (left_out.parse().ok()?, bytes.parse().ok()?);
    let agrees = head.len() + left_out + tail.len() == bytes && sha256.len() == 16;
    agrees.then(|| Text {
        head: head.to_owned(),
        tail: tail.to_owned(),
        lines: lines.parse().unwrap_or(0),
        bytes,
        sha256,
    })
}
