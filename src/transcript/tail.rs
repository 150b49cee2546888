//! The end of a transcript: its last line, which is read backwards, so that the cost does not depend on the size of the file.

use crate::id;
use crate::input::line::without_mark;
use crate::json::Object;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The number of bytes that are read first at the end of a file. The last line is nearly always shorter.
const NEAR: u64 = 4 * 1024;

/// The end of a file.
pub(super) struct Tail {
    pub(super) size: u64,
    /// The last line, without its line feed.
    pub(super) line: Vec<u8>,
    /// The offset at which that line begins.
    pub(super) start: u64,
    /// True if the last line ends with a line feed, or there is no line.
    pub(super) is_ended: bool,
}

impl Tail {
    /// Reads backwards from the end to the line feed before the last line.
    pub(super) fn read(file: &File, size: u64) -> std::io::Result<Tail> {
        let mut length = NEAR.min(size);
        loop {
            // Each try reads up to the end of the file, so that the line is in one buffer. If the line is longer, the
            // next try reads twice as much.
            let from = size - length;
            let mut line = part(file, from, size)?;
            let is_ended = size == 0 || line.last() == Some(&b'\n');
            if size > 0 && is_ended {
                line.pop();
            }
            let feed = line.iter().rposition(|byte| *byte == b'\n');
            if feed.is_some() || from == 0 {
                let begin = feed.map_or(0, |feed| feed + 1);
                line.drain(..begin);
                return Ok(Tail { size, line, start: from + begin as u64, is_ended });
            }
            length = (length * 2).min(size);
        }
    }

    /// Returns the id of the last record: its own, or `@` and its byte offset; empty for an empty file.
    pub(super) fn id(&self) -> String {
        if self.size == 0 {
            return String::new();
        }
        let line = if self.start == 0 { without_mark(&self.line) } else { &self.line };
        let own = std::str::from_utf8(line).ok().and_then(|text| {
            Object::parse(text)
                .ok()
                .and_then(|object| object.string("id").map(|id| id.into_owned()))
        });
        own.unwrap_or_else(|| id::address(self.start))
    }
}

/// Reads the bytes of a file from offset `from` to `to`.
fn part(file: &File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(std::io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_found_at_any_length() {
        let directory = tempfile::tempdir().unwrap();
        let around_buffer_sizes = (4090..4098).chain(8186..8194);
        for length in [0, 1].into_iter().chain(around_buffer_sizes).chain([200_000]) {
            for end in ["", "\n"] {
                let path = directory.path().join("f");
                let text = format!("first\n{}{end}", "x".repeat(length));
                std::fs::write(&path, &text).unwrap();
                let tail = Tail::read(&File::open(&path).unwrap(), text.len() as u64).unwrap();
                if length == 0 && end.is_empty() {
                    assert_eq!(tail.line, b"first");
                } else {
                    assert_eq!((tail.line.len(), tail.start), (length, 6), "{length} {end:?}");
                    assert_eq!(tail.is_ended, end == "\n");
                }
            }
        }
    }
}
