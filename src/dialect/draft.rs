//! Builds the text of a translation from parts of the source and the new text between them.

use crate::input::Input;
use crate::input::rope::Rope;
use crate::input::spool::Spool;
use std::ops::Range;
use std::path::Path;

/// The index of the input that holds the new text.
const WRITTEN: u32 = 0;
/// The index of the source.
const SOURCE: u32 = 1;

/// A part of the text. There are several for each record, so they are small.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    length: u32,
    /// The index of its input: [`WRITTEN`] or [`SOURCE`].
    input: u32,
}

/// The text of the records made from one line, as a range of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    begin: u32,
    end: u32,
}

impl Chunk {
    /// Returns true if no records were made from the line.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }
}

/// The text of a translation that is being written.
#[derive(Debug)]
pub struct Draft {
    written: Spool,
    /// The offset in `written` up to which the text belongs to `parts`.
    closed: u64,
    parts: Vec<Part>,
}

impl Draft {
    /// Creates an empty text. If the new text becomes long, it goes to a temporary file in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> Draft {
        Draft { written: Spool::new(directory.to_owned()), closed: 0, parts: Vec::new() }
    }

    /// Returns the end of the new text, to append to it.
    pub fn written(&mut self) -> &mut String {
        self.written.end()
    }

    /// Appends a part of the source.
    pub fn cite(&mut self, part: Range<u64>) {
        self.close_part();
        self.push(SOURCE, part);
    }

    /// Appends a part of an input, as several parts if it is longer than 4 GiB.
    fn push(&mut self, input: u32, part: Range<u64>) {
        let mut from = part.start;
        while from < part.end {
            let length = u32::try_from(part.end - from).unwrap_or(u32::MAX);
            self.parts.push(Part { from, length, input });
            from += u64::from(length);
        }
    }

    /// Adds a part that consists of the text written since the last part.
    fn close_part(&mut self) {
        let (from, end) = (self.closed, self.written.length());
        self.closed = end;
        self.push(WRITTEN, from..end);
    }

    /// Begins a chunk, and returns the index of its first part.
    pub fn begin_chunk(&mut self) -> u32 {
        self.close_part();
        self.parts.len() as u32
    }

    /// Ends the chunk for which [`Draft::begin_chunk`] returned `begin`.
    pub fn end_chunk(&mut self, begin: u32) -> Chunk {
        let end = self.begin_chunk();
        self.written.settle();
        Chunk { begin, end }
    }

    /// Returns the text of `chunks` as an input with the name of the source. Calls `each` with the offset of each
    /// chunk.
    ///
    /// # Errors
    /// Fails if the temporary file could not be written.
    pub fn finish(
        self,
        source: &Input,
        chunks: impl Iterator<Item = Chunk>,
        mut each: impl FnMut(u64),
    ) -> anyhow::Result<Input> {
        let mut rope = Rope::new(vec![self.written.finish(&source.name)?, source.clone()]);
        for Chunk { begin, end } in chunks {
            each(rope.length());
            for part in &self.parts[begin as usize..end as usize] {
                rope.push(part.input as usize, part.from, part.length.into());
            }
        }
        Ok(Input::rope(&source.name, rope))
    }
}
