//! The lines of a file while they are repaired. A line that is right is never copied or written again.

use crate::json::Object;
use std::borrow::Cow;
use std::io::{self, Write};

/// A change of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The number of the line, from 1.
    pub line: u64,
    /// The change.
    pub change: Change,
    /// The reasons, as clauses for a diagnostic.
    pub why: String,
}

/// The kind of a change, with the new text without a line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The line is left out.
    Drop,
    /// The line gets this text.
    Replace(String),
    /// A line with this text follows it.
    InsertAfter(String),
}

impl Change {
    /// Returns the verb for a diagnostic.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Change::Drop => "drop",
            Change::Replace(_) => "change",
            Change::InsertAfter(_) => "insert",
        }
    }
}

/// A line: as it is in the file, and as it is to be.
#[derive(Clone, Debug)]
struct Row<'a> {
    /// The number of the line or, for an inserted one, of the line that it follows.
    line: u64,
    /// The bytes in the file, without the line feed; `None` for an inserted line.
    original: Option<&'a [u8]>,
    /// The text that is written; `None` if the line is left out.
    text: Option<Cow<'a, str>>,
    /// True if the line is written, although its text is that of the file, because it had no line feed.
    gets_feed: bool,
    why: Vec<String>,
}

/// The lines of a file.
#[derive(Clone, Debug)]
pub(super) struct Sheet<'a> {
    rows: Vec<Row<'a>>,
    /// True if the last line of the file ends in a line feed.
    is_terminated: bool,
    /// The number of changes so far.
    changes: usize,
}

impl<'a> Sheet<'a> {
    /// Splits a file. `read` returns the texts that a line is replaced by, and the reason, or `None` if it is right.
    pub(super) fn new(
        bytes: &'a [u8],
        read: impl Fn(u64, &'a [u8]) -> Option<(Vec<String>, String)>,
    ) -> Sheet<'a> {
        let is_terminated = bytes.last().is_none_or(|last| *last == b'\n');
        let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut sheet = Sheet { rows: Vec::new(), is_terminated, changes: 0 };
        if bytes.is_empty() {
            return sheet;
        }
        for (line, original) in (1..).zip(whole.split(|byte| *byte == b'\n')) {
            let row = Row {
                line,
                original: Some(original),
                text: None,
                gets_feed: false,
                why: Vec::new(),
            };
            let text = std::str::from_utf8(original);
            match (read(line, original), text) {
                (None, Ok(text)) => sheet.rows.push(Row { text: Some(Cow::Borrowed(text)), ..row }),
                // A line that is not UTF-8 is never right.
                (None, Err(_)) => sheet.rows.push(row),
                (Some((texts, why)), _) => {
                    sheet.changes += 1;
                    let mut texts = texts.into_iter().map(Cow::Owned);
                    let why = vec![why];
                    sheet.rows.push(Row { text: texts.next(), why: why.clone(), ..row });
                    let more = |text| Row {
                        line,
                        original: None,
                        text: Some(text),
                        gets_feed: false,
                        why: why.clone(),
                    };
                    sheet.rows.extend(texts.map(more));
                }
            }
        }
        sheet
    }

    /// Adds a line feed to a last line that has none.
    pub(super) fn terminate(&mut self) {
        if self.is_terminated {
            return;
        }
        self.is_terminated = true;
        let last = self.rows.iter_mut().rev().find(|row| row.original.is_some());
        if let Some(last) = last.filter(|last| last.text.is_some()) {
            last.gets_feed = true;
            last.why.push(
                "it has no line feed, so the next record would be written onto it".to_owned(),
            );
            self.changes += 1;
        }
    }

    /// Returns the number of lines, those that are left out included.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of changes so far.
    pub(super) fn changes(&self) -> usize {
        self.changes
    }

    /// Returns the text of a line; empty if it is left out.
    pub(super) fn text(&self, row: usize) -> &str {
        self.rows[row].text.as_deref().unwrap_or_default()
    }

    /// Returns the bytes of a line in the file; empty if it was inserted.
    pub(super) fn original(&self, row: usize) -> &[u8] {
        self.rows[row].original.unwrap_or_default()
    }

    /// Returns the record in a line.
    pub(super) fn record(&self, row: usize) -> Option<Object<'_>> {
        Object::parse(self.text(row)).ok()
    }

    /// Returns the lines that hold a record.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = (usize, Object<'_>)> {
        (0..self.len()).filter_map(|row| Some((row, self.record(row)?)))
    }

    /// Replaces a line.
    pub(super) fn set(&mut self, row: usize, text: String, why: impl Into<String>) {
        self.rows[row].text = Some(Cow::Owned(text));
        self.note(row, why.into());
    }

    /// Leaves out a line.
    pub(super) fn remove(&mut self, row: usize, why: impl Into<String>) {
        self.rows[row].text = None;
        self.note(row, why.into());
    }

    /// Replaces a line, or leaves it out.
    pub(super) fn put(&mut self, row: usize, text: Option<String>, why: String) {
        match text {
            Some(text) => self.set(row, text, why),
            None => self.remove(row, why),
        }
    }

    fn note(&mut self, row: usize, why: String) {
        let reasons = &mut self.rows[row].why;
        if !reasons.contains(&why) {
            reasons.push(why);
        }
        self.changes += 1;
    }

    /// Inserts a line before another one, or at the end.
    pub(super) fn insert(&mut self, before: usize, text: String, why: impl Into<String>) {
        let line = before.checked_sub(1).map_or(0, |row| self.rows[row].line);
        let (text, why) = (Some(Cow::Owned(text)), vec![why.into()]);
        self.rows.insert(before, Row { line, original: None, text, gets_feed: false, why });
        self.changes += 1;
    }

    /// Returns the edits, in the order of the lines.
    pub(super) fn edits(&self) -> Vec<Edit> {
        self.rows.iter().filter_map(Row::edit).collect()
    }

    /// Writes the repaired file.
    ///
    /// # Errors
    /// Fails if `out` does.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let last = self.rows.iter().rposition(|row| row.text.is_some());
        for (index, row) in self.rows.iter().enumerate() {
            let Some(text) = &row.text else { continue };
            out.write_all(text.as_bytes())?;
            if self.is_terminated || Some(index) != last || !row.why.is_empty() {
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}

impl Row<'_> {
    fn edit(&self) -> Option<Edit> {
        let change = match (self.original, &self.text) {
            (Some(_), None) => Change::Drop,
            (Some(original), Some(text)) if original != text.as_bytes() || self.gets_feed => {
                Change::Replace(text.clone().into_owned())
            }
            (None, Some(text)) => Change::InsertAfter(text.clone().into_owned()),
            _ => return None,
        };
        Some(Edit { line: self.line, change, why: self.why.join("; ") })
    }
}
