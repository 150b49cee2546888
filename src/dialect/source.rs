//! Random access to the lines of a source, in windows that fit sequential reading.

use crate::finding::Place;
use crate::input::Input;
use crate::input::line::{LineObject, read_line};
use crate::input::origin::SourcePlace;

/// The number of bytes to read at once.
const WINDOW: u64 = 256 * 1024;

/// A reader of lines at known places.
#[derive(Debug)]
pub struct SourceReader<'i> {
    input: &'i Input,
    begin: u64,
    window: Vec<u8>,
}

impl<'i> SourceReader<'i> {
    /// Creates a reader of `input`.
    #[must_use]
    pub fn new(input: &'i Input) -> SourceReader<'i> {
        SourceReader { input, begin: 0, window: Vec::new() }
    }

    /// Returns the object of the line at `place`.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn object(&mut self, place: SourcePlace) -> anyhow::Result<Option<LineObject<'_>>> {
        let (from, to) = (place.offset, place.offset + place.length);
        if from < self.begin || to > self.begin + self.window.len() as u64 {
            let end = to.max(from + WINDOW).min(self.input.length.max(to));
            self.window = self.input.part(from, end)?;
            self.begin = from;
        }
        let at = |offset: u64| usize::try_from(offset - self.begin).unwrap_or(usize::MAX);
        let bytes = self.window.get(at(from)..at(to)).unwrap_or_default();
        let SourcePlace { line, offset, length } = place;
        let place = Place { input: self.input.name.clone(), line: Some(line), offset, length };
        Ok(read_line(bytes, place, 0).into_iter().find_map(Result::ok))
    }
}
