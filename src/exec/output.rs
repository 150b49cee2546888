//! Captures a tool's output: its beginning and end in memory, and all of it in a file if it is long.

use crate::shorten::HEAD_RATIO;
use crate::transcript::make_directory;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The maximum amount of output that is read, in bytes, so that a tool that never stops writing does not fill the
/// disk.
pub const MAX_OUTPUT: u64 = 64 * 1024 * 1024;

/// The output of a tool, captured as it arrives.
#[derive(Debug)]
pub struct ToolOutput {
    /// All of the output, or only its beginning once it exceeds `head_size + tail_size`.
    head: Vec<u8>,
    /// The end of an output that exceeds `head_size + tail_size`.
    tail: Vec<u8>,
    head_size: usize,
    tail_size: usize,
    total: u64,
    /// The path of the file that receives all of an output that exceeds `head_size + tail_size`.
    path: Option<PathBuf>,
    file: Option<io::Result<File>>,
}

impl ToolOutput {
    /// Keeps `most` bytes, taken from both ends. If there is more output, writes all of it to the file `path`.
    #[must_use]
    pub fn new(most: usize, path: Option<PathBuf>) -> ToolOutput {
        let head_size = (most as f64 * HEAD_RATIO).round() as usize;
        ToolOutput { head_size, tail_size: most - head_size, path, ..ToolOutput::end(0) }
    }

    /// Keeps the last `most` bytes.
    #[must_use]
    pub fn end(most: usize) -> ToolOutput {
        let (head, tail) = (Vec::new(), Vec::new());
        ToolOutput { head, tail, head_size: 0, tail_size: most, total: 0, path: None, file: None }
    }

    /// Takes the next bytes. Returns false once [`MAX_OUTPUT`] is exceeded.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let was_cut = self.is_cut();
        self.total += bytes.len() as u64;
        match (was_cut, self.is_cut()) {
            (false, false) => self.head.extend_from_slice(bytes),
            (false, true) => {
                self.head.extend_from_slice(bytes);
                self.file = self.path.as_deref().map(create);
                self.tail = self.head.split_off(self.head_size);
                let (head, tail) = (self.head.clone(), self.tail.clone());
                self.keep(&head);
                self.keep(&tail);
            }
            (true, _) => {
                self.keep(bytes);
                self.tail.extend_from_slice(bytes);
            }
        }
        if self.tail.len() > 2 * self.tail_size + bytes.len() {
            self.tail.drain(..self.tail.len() - self.tail_size);
        }
        self.total <= MAX_OUTPUT
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(Ok(file)) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.file = Some(Err(error));
        }
    }

    fn is_cut(&self) -> bool {
        self.total > (self.head_size + self.tail_size) as u64
    }

    /// Returns true if there was more output than [`MAX_OUTPUT`].
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.total > MAX_OUTPUT
    }

    /// Returns the output as text. Invalid UTF-8 is replaced. If the output is too long, a marker replaces the middle.
    #[must_use]
    pub fn text(&self) -> String {
        if !self.is_cut() {
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let head = &self.head[..whole_end(&self.head)];
        let tail = &self.tail[self.tail.len().saturating_sub(self.tail_size)..];
        let tail = &tail[whole_begin(tail)..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{end}[... {left_out} bytes left out{} ...]\n{tail}", self.location())
    }

    /// Returns the part of the marker that names the file with all of the output.
    fn location(&self) -> String {
        match (&self.path, &self.file) {
            (Some(path), Some(Ok(_))) if self.is_endless() => {
                format!("; the beginning is in '{}'", path.display())
            }
            (Some(path), Some(Ok(_))) => format!("; all of it is in '{}'", path.display()),
            (Some(path), Some(Err(error))) => {
                format!("; cannot save all of it in '{}': {error}", path.display())
            }
            _ => String::new(),
        }
    }
}

/// Creates a file that only its owner can read.
fn create(path: &std::path::Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// Returns the offset at which the last complete character of `bytes` ends.
fn whole_end(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let needed = match byte {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            0x80.. => continue,
            _ => 1,
        };
        return if needed > back + 1 { bytes.len() - back - 1 } else { bytes.len() };
    }
    bytes.len()
}

/// Returns the offset at which the first complete character of `bytes` begins.
fn whole_begin(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(most: usize, text: &str, piece: usize) -> String {
        let mut output = ToolOutput::new(most, None);
        for bytes in text.as_bytes().chunks(piece) {
            assert!(output.take(bytes));
        }
        output.text()
    }

    #[test]
    fn short_output_is_kept_completely() {
        assert_eq!(cut(10, "0123456789", 3), "0123456789");
        assert_eq!(cut(10, "", 3), "");
    }

    #[test]
    fn both_ends_of_long_output_are_kept_for_any_piece_size() {
        for piece in 1..50 {
            let text = format!("0123456{}xyz", "-".repeat(40));
            assert_eq!(cut(10, &text, piece), "0123456\n[... 40 bytes left out ...]\nxyz");
            // Characters are not split.
            assert_eq!(cut(10, &"é".repeat(20), piece), "ééé\n[... 32 bytes left out ...]\né");
        }
    }

    #[test]
    fn endless_output_is_read_up_to_the_limit() {
        let (mut output, piece) = (ToolOutput::end(5), vec![b'x'; 1 << 20]);
        assert_eq!((0..1000).take_while(|_| output.take(&piece)).count(), 64);
        assert!(
            output.is_endless()
                && output.text().ends_with("\nxxxxx")
                && output.tail.len() < 4 << 20
        );
    }
}
