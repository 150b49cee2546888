//! Reads the data that a session listing shows about a transcript: header, labels, times and number of lines.
//!
//! If a transcript has only grown since the last time, only the new part is read.

use super::time;
use crate::injected;
use crate::input::line::without_mark;
use crate::json::Object;
use crate::json::write::Members;
use crate::record::{self, Body};
use anyhow::Context;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The state of a file. As long as all three members are the same, the content is assumed to be unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The length in bytes.
    pub size: u64,
    /// The time of the last change, in nanoseconds since 1970.
    pub modified: u64,
    /// The inode number.
    pub inode: u64,
}

impl Stamp {
    /// Returns the stamp of a file.
    #[must_use]
    pub fn of(meta: &Metadata) -> Stamp {
        let seconds = u64::try_from(meta.mtime()).unwrap_or(0);
        let nanos = u64::try_from(meta.mtime_nsec()).unwrap_or(0);
        let modified = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Stamp { size: meta.len(), modified, inode: meta.ino() }
    }

    /// Returns the stamp of the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_file(path: &Path) -> anyhow::Result<Stamp> {
        let meta = path.metadata().with_context(|| format!("cannot read '{}'", path.display()))?;
        Ok(Stamp::of(&meta))
    }

    /// Returns the stamp in an object to which [`Stamp::add_to`] has added one.
    #[must_use]
    pub fn read(object: &Object<'_>) -> Option<Stamp> {
        let [size, modified, inode] = ["size", "modified", "inode"].map(|name| object.number(name));
        Some(Stamp { size: size?, modified: modified?, inode: inode? })
    }

    /// Adds its members to an object.
    #[must_use]
    pub fn add_to(self, row: Members) -> Members {
        let Stamp { size, modified, inode } = self;
        row.number("size", size).number("modified", modified).number("inode", inode)
    }
}

/// The data that a listing shows about one transcript. Data that the transcript does not contain is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The key in its header.
    pub key: Option<String>,
    /// The newest label.
    pub label: Option<String>,
    /// The beginning of the first line that a person typed.
    pub prompt: Option<String>,
    /// The time of creation in its header.
    pub created: Option<i64>,
    /// The time of the first record.
    pub first: Option<i64>,
    /// The time of the last record. If that record has no time, this is the time from the earlier read, or else the
    /// time in the first line.
    pub active: Option<i64>,
    /// The number of lines, without the header and blank lines.
    pub records: u64,
}

/// The length limit of a prompt, in characters.
const PROMPT: usize = 72;
/// The number of bytes read at once. Most transcripts are shorter, so one read is enough.
const BLOCK: usize = 64 * 1024;

/// Reads the first `end` bytes of a transcript. `before` is the result of an earlier read and the length of the
/// file at that time. If the file ended with a complete line then, only the bytes after it are read.
///
/// # Errors
/// If it cannot be read.
pub fn look(mut file: File, end: u64, before: Option<(Facts, u64)>) -> io::Result<Facts> {
    let (mut facts, from) = before.unwrap_or_default();
    let from = if from > 0 && is_line_end(&mut file, from)? { from } else { 0 };
    if from == 0 {
        facts = Facts::default();
    }
    file.seek(SeekFrom::Start(from))?;
    let label = Finder::new(br#""type":"label""#);
    let user = Finder::new(br#""user""#);
    let mut reader = BufReader::with_capacity(BLOCK, file.take(end.saturating_sub(from)));
    let (mut line, mut last) = (Vec::new(), Vec::new());
    let mut is_first = from == 0;
    while reader.read_until(b'\n', &mut line)? > 0 {
        if !line.trim_ascii().is_empty() {
            facts.records += 1;
            if is_first {
                facts.read_first(&line);
            } else if label.find(&line).is_some() {
                facts.read_label(&line);
            }
            // A command says less than the first words to the model.
            let is_wanted = facts.prompt.as_deref().is_none_or(injected::is_command);
            if is_wanted && user.find(&line).is_some() {
                facts.read_prompt(&line);
            }
            is_first = false;
            std::mem::swap(&mut line, &mut last);
        }
        line.clear();
    }
    facts.active = ts(&last).or(facts.active);
    Ok(facts)
}

/// Returns true if the byte before `at` ends a line.
fn is_line_end(file: &mut File, at: u64) -> io::Result<bool> {
    let mut byte = [0];
    file.seek(SeekFrom::Start(at - 1))?;
    Ok(file.read(&mut byte)? == 1 && byte[0] == b'\n')
}

fn object(line: &[u8]) -> Option<Object<'_>> {
    Object::parse(std::str::from_utf8(without_mark(line)).ok()?.trim()).ok()
}

fn ts(line: &[u8]) -> Option<i64> {
    object(line)?.get("ts").and_then(time::of_ts)
}

impl Facts {
    /// Reads the first line: a header, or a record if there is no header.
    fn read_first(&mut self, line: &[u8]) {
        let Some(object) = object(line) else { return };
        self.first = object.get("ts").and_then(time::of_ts);
        self.active = self.first;
        if object.string("type").as_deref() != Some("session") {
            return;
        }
        let text = |name| object.string(name).map(|text| text.into_owned());
        self.records = 0;
        self.key = text("key");
        self.label = text("label");
        let created = text("created").or_else(|| text("timestamp"));
        self.created = created.as_deref().and_then(time::of_text).or(self.first);
        self.active = self.active.or(self.created);
    }

    /// Reads the prompt in a record of the user.
    fn read_prompt(&mut self, line: &[u8]) {
        let Some(object) = object(line) else { return };
        let Ok(body @ Body::User { .. }) = record::parse(&object) else { return };
        if let Body::User { content, .. } = &body
            && body.is_typed()
        {
            let text = object.string("typed").map_or_else(|| content.text(), Cow::into_owned);
            let line = injected::first_line(&text).map(|it| it.chars().take(PROMPT).collect());
            let is_command = line.as_deref().is_none_or(injected::is_command);
            self.prompt = if is_command { self.prompt.take().or(line) } else { line };
        }
    }

    fn read_label(&mut self, line: &[u8]) {
        let Some(object) = object(line) else { return };
        if object.string("type").as_deref() == Some("label") {
            self.label = object.string("label").map(|text| text.into_owned()).or(self.label.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const HEADER: &str = "{\"id\":\"0123456789ab\",\"type\":\"session\",\"ts\":5,\"key\":\"a:b:c\",\"label\":\"one\",\"created\":\"1970-01-01T00:00:05Z\"}\n";

    fn looked(text: &str) -> Facts {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        look(file, text.len() as u64, None).unwrap()
    }

    #[test]
    fn a_header_is_not_counted_and_the_newest_label_applies() {
        let facts = looked(&format!(
            "{HEADER}{{\"type\":\"user\",\"ts\":6,\"content\":\"\\\"type\\\":\\\"label\\\"\"}}\n\n\
             {{\"type\":\"label\",\"ts\":7,\"label\":\"two\"}}\n\
             {{\"type\":\"tool_use\",\"input\":{{\"type\":\"label\",\"label\":\"x\"}},\"ts\":8}}\n{{\"to"
        ));
        assert_eq!(facts.key.as_deref(), Some("a:b:c"));
        assert_eq!(facts.label.as_deref(), Some("two"));
        assert_eq!((facts.created, facts.records), (Some(5_000_000), 4));
        assert_eq!(looked("{\"type\":\"user\",\"ts\":\"1970-01-01T00:00:06Z\"}").records, 1);
        assert_eq!(looked(""), Facts::default());
    }

    #[test]
    fn lines_already_counted_are_not_read_again() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let first = format!("{HEADER}{{\"type\":\"user\",\"ts\":6}}\n");
        file.write_all(first.as_bytes()).unwrap();
        let before = look(file.reopen().unwrap(), u64::MAX, None).unwrap();
        file.write_all(b"{\"type\":\"user\",\"ts\":9}\n").unwrap();
        let bounded = look(file.reopen().unwrap(), first.len() as u64, None).unwrap();
        assert_eq!(bounded, before, "lines appended in the meantime are not counted");
        let whole = look(file.reopen().unwrap(), u64::MAX, None).unwrap();
        let grown =
            look(file.reopen().unwrap(), u64::MAX, Some((before.clone(), first.len() as u64)));
        assert_eq!((&whole, whole.active), (&grown.unwrap(), Some(9_000_000)));
        // The earlier read ended inside a line, so everything is read again.
        let torn = look(file.reopen().unwrap(), u64::MAX, Some((before, first.len() as u64 - 3)));
        assert_eq!(whole, torn.unwrap());
    }
}
