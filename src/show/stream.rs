//! Lays out Markdown as it arrives.
//!
//! The output does not depend on how the input is split into pieces: a row is written when no further text
//! can change it. A block longer than 32 KiB is split, so memory is bounded.

use super::render::{MarkdownLayout, Rendered, render_part};
use super::words::clean;
use std::io::{self, Write};

/// The length in bytes above which a block is split.
const MAX_BLOCK: usize = 32 * 1024;
/// The number of new bytes after which an incomplete line is laid out.
const STEP: usize = 24;
/// The number of bytes needed to tell which kind of block a line begins. A shorter incomplete line is not laid out
/// yet.
const MIN_PARTIAL_LINE: usize = 32;

/// Markdown that is laid out on `out` as it arrives.
pub struct Stream<W> {
    layout: MarkdownLayout,
    out: W,
    /// The bytes of an incomplete character, or a carriage return.
    rest: Vec<u8>,
    /// The text from the start of the oldest block that can still change.
    text: String,
    /// The number of rows of `text` that were written.
    written: usize,
    /// True if a blank line precedes `text`.
    has_gap: bool,
    /// The opening fence of a code block that was split. `text` begins with a copy of it, which is not shown again.
    fence: String,
    /// The length of `text` when it was last laid out.
    seen: usize,
}

impl<W: Write> Stream<W> {
    /// Returns a stream for `out`.
    pub fn new(layout: MarkdownLayout, out: W) -> Stream<W> {
        let (rest, text, fence) = Default::default();
        Stream { layout, out, rest, text, written: 0, has_gap: false, fence, seen: 0 }
    }

    /// Adds text, and writes the rows that no further text can change.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(MAX_BLOCK) {
            self.rest.extend_from_slice(part);
            let text = self.whole_characters();
            let has_line = text.contains('\n');
            self.text.push_str(&clean(&text));
            if has_line || self.text.len() >= self.seen + STEP {
                self.lay_out(false)?;
            }
        }
        self.out.flush()
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.rest);
        self.text.push_str(&clean(&String::from_utf8_lossy(&rest)));
        self.lay_out(true)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Takes the complete characters of the bytes so far. A carriage return is kept back, because it may be
    /// half of a line end.
    fn whole_characters(&mut self) -> String {
        let newest = self.rest.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
        let is_begun = str::from_utf8(newest).is_err_and(|error| error.error_len().is_none());
        let kept = if is_begun { newest.len() } else { usize::from(self.rest.ends_with(b"\r")) };
        let rest = self.rest.split_off(self.rest.len() - kept);
        let text = String::from_utf8_lossy(&self.rest).into_owned();
        self.rest = rest;
        text
    }

    fn lay_out(&mut self, is_end: bool) -> io::Result<()> {
        loop {
            let end = if is_end { self.text.len() } else { self.certain() };
            let rendered = render_part(&self.text[..end], self.layout, self.has_gap);
            let long = self.long_block(&rendered.tops, end);
            if let Some((top, at)) = long {
                self.cut(&rendered, top, at)?;
                continue;
            }
            let rows = if is_end { rendered.rows.len() } else { rendered.settled };
            self.write(&rendered, rows)?;
            match rendered.tops.as_slice() {
                // Only blank lines.
                [] => drop(self.text.drain(..self.text.rfind('\n').map_or(0, |feed| feed + 1))),
                [_] => {}
                _ => self.forget(&rendered),
            }
            self.seen = self.text.len();
            return Ok(());
        }
    }

    /// Returns the offset up to which the text can be parsed reliably: complete lines, and a long incomplete line
    /// up to its last character that is not punctuation, because punctuation may be half of a delimiter.
    fn certain(&self) -> usize {
        let line = self.text.rfind('\n').map_or(0, |feed| feed + 1);
        let newest = &self.text[line..];
        let end = newest.trim_end_matches(|c: char| c.is_ascii_punctuation()).len();
        // Only the rest of the line shows whether this is a fence.
        let is_container = |c: char| " >-+*.)".contains(c) || c.is_ascii_digit();
        let is_fence = newest.trim_start_matches(is_container).starts_with("```");
        if end < MIN_PARTIAL_LINE || is_fence { line } else { line + end }
    }

    /// Returns the first top-level block that is too long, and the offset at which to split it.
    fn long_block(&self, tops: &[(usize, bool)], end: usize) -> Option<(usize, usize)> {
        let starts = || tops.iter().map(|(at, _)| *at);
        let mut blocks = starts().zip(starts().skip(1).chain([end])).enumerate();
        let most = MAX_BLOCK + self.fence.len();
        let (top, (start, _)) = blocks.find(|(_, (start, end))| end - start > most)?;
        let most = (0..=start + most).rev().find(|at| self.text.is_char_boundary(*at))?;
        let part = &self.text[start..most];
        let at = part.rfind('\n').or_else(|| part.rfind(' ')).map(|at| at + 1);
        Some((top, start + at.filter(|at| *at > self.fence.len()).unwrap_or(part.len())))
    }

    /// Splits the block `top` at offset `at`: writes everything before that offset, and continues from there.
    fn cut(&mut self, whole: &Rendered, top: usize, at: usize) -> io::Result<()> {
        let fence = open_fence(&self.text[whole.tops[top].0..at]);
        let part = render_part(&self.text[..at], self.layout, self.has_gap);
        self.write(&part, part.rows.len())?;
        let (before, after) = self.text.split_at(at);
        self.has_gap = fence.is_empty() && (before.ends_with("\n\n") || after.starts_with('\n'));
        self.text = [&fence, after].concat();
        // The first line of the code was already shown.
        self.written = render_part(&fence, self.layout, false).rows.len();
        self.fence = fence;
        Ok(())
    }

    fn write(&mut self, rendered: &Rendered, rows: usize) -> io::Result<()> {
        for (_, row) in rendered.rows.iter().take(rows).skip(self.written) {
            writeln!(self.out, "{row}")?;
        }
        self.written = self.written.max(rows);
        Ok(())
    }

    /// Removes all blocks but the last from the text.
    fn forget(&mut self, rendered: &Rendered) {
        let Some((at, has_gap)) = rendered.tops.last().copied() else { return };
        let last = rendered.tops.len() - 1;
        let before = rendered.rows.iter().take_while(|(top, _)| *top < last).count();
        self.written = self.written.saturating_sub(before);
        self.has_gap = has_gap;
        self.text.drain(..at);
        self.fence.clear();
    }
}

/// Returns the opening line of a fenced code block; an empty string if it is very long, and for other blocks.
fn open_fence(block: &str) -> String {
    let line = block.split_inclusive('\n').next().unwrap_or_default();
    let is_fence = line.starts_with("```") || line.starts_with("~~~");
    if is_fence && line.len() < STEP * 4 { line.to_owned() } else { String::new() }
}
