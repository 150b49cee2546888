//! Reads lines of a source at known places, a large window at a time, so that reading in file order is fast.

use crate::finding::Place;
use crate::input::Input;
use crate::input::line::{LineObject, read_line};
use crate::input::origin::SourcePlace;
use anyhow::Context;

/// The number of bytes to read at once.
const WINDOW: u64 = 256 * 1024;

/// A reader of lines at known places.
#[derive(Debug)]
pub struct SourceReader<'i> {
    input: &'i Input,
    begin: u64,
    /// The bytes from `begin` on, followed by bytes of an earlier window. The memory is reused, because allocating it
    /// again would take as long as reading.
    window: Vec<u8>,
    held: usize,
}

impl<'i> SourceReader<'i> {
    /// Creates a reader of `input`.
    #[must_use]
    pub fn new(input: &'i Input) -> SourceReader<'i> {
        SourceReader { input, begin: 0, window: Vec::new(), held: 0 }
    }

    /// Returns the object of the line at `place`.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn object(&mut self, place: SourcePlace) -> anyhow::Result<Option<LineObject<'_>>> {
        let (from, to) = (place.offset, place.offset + place.length);
        if from < self.begin || to > self.begin + self.held as u64 {
            self.move_to(from, (to - from).max(WINDOW))?;
        }
        let at = |offset: u64| usize::try_from(offset - self.begin).unwrap_or(usize::MAX);
        let held = &self.window[..self.held];
        let bytes = held.get(at(from)..at(to)).unwrap_or_default();
        let SourcePlace { line, offset, length } = place;
        let place = Place { input: self.input.name.clone(), line: Some(line), offset, length };
        Ok(read_line(bytes, place, 0).into_iter().find_map(Result::ok))
    }

    /// Reads the next `length` bytes from offset `from`; fewer at the end of the input.
    fn move_to(&mut self, from: u64, length: u64) -> anyhow::Result<()> {
        let length = usize::try_from(length)?;
        if self.window.len() < length {
            self.window.resize(length, 0);
        }
        let read = self.input.read_at(from, &mut self.window[..length]);
        self.held = read.with_context(|| format!("cannot read '{}'", self.input.name))?;
        self.begin = from;
        Ok(())
    }
}
