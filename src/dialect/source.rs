//! Reads lines of another program's transcript that hold a JSON object.

use crate::input::Input;
use crate::input::line::{MAX_DEPTH, read_line};
use crate::input::origin::SourcePlace;
use crate::input::rope::Window;
use crate::json::outline::{Outline, Value};
use anyhow::Context;
use std::ops::Range;

/// The object of a line.
#[derive(Clone, Copy, Debug)]
pub struct SourceLine<'a> {
    /// The object.
    pub value: Value<'a>,
    /// The place of the line, or of the object if the line is damaged.
    pub place: SourcePlace,
    /// The offset of the object's text in the source.
    pub at: u64,
}

impl<'a> SourceLine<'a> {
    /// Returns the line with the text `text`, which begins at byte `at` of the source, or `None` if it is not an
    /// object.
    #[must_use]
    pub fn of(
        text: &'a str,
        at: u64,
        place: SourcePlace,
        outline: &'a mut Outline,
    ) -> Option<SourceLine<'a>> {
        let value = outline.read(text, MAX_DEPTH).filter(|value| value.is_object())?;
        let lead = value.text().as_ptr() as usize - text.as_ptr() as usize;
        Some(SourceLine { value, place, at: at + lead as u64 })
    }

    /// Returns the line with a value inside its object, which is read in its place.
    #[must_use]
    pub fn with_value(&self, value: Value<'a>) -> SourceLine<'a> {
        let at = self.range(value.text()).map_or(self.at, |range| range.start);
        SourceLine { value, place: self.place, at }
    }

    /// Returns the place in the source of `part`, if it is a slice of the object's text.
    #[must_use]
    pub fn range(&self, part: &str) -> Option<Range<u64>> {
        let text = self.value.text();
        let from = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let is_inside = from + part.len() <= text.len();
        let from = self.at + from as u64;
        is_inside.then(|| from..from + part.len() as u64)
    }
}

/// A reader of lines at known places. Reading them in file order is fast.
#[derive(Debug)]
pub struct SourceReader<'i> {
    input: &'i Input,
    window: Window,
    outline: Outline,
}

impl<'i> SourceReader<'i> {
    /// Creates a reader of `input`.
    #[must_use]
    pub fn new(input: &'i Input) -> SourceReader<'i> {
        SourceReader { input, window: Window::default(), outline: Outline::default() }
    }

    /// Returns the line at `place`, or `None` if it does not hold an object.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn line(&mut self, place: SourcePlace) -> anyhow::Result<Option<SourceLine<'_>>> {
        let SourcePlace { offset, length, .. } = place;
        let input = self.input;
        let bytes = self.window.bytes(input, offset, usize::try_from(length)?);
        let bytes = bytes.with_context(|| format!("cannot read '{}'", input.name))?;
        self.outline.clear();
        if let Ok(text) = simdutf8::basic::from_utf8(bytes)
            && text.starts_with('{')
            && let Some((end, nodes)) = self.outline.add(text, MAX_DEPTH)
            && end == text.len()
        {
            let value = self.outline.value(text, nodes);
            return Ok(Some(SourceLine { value, place, at: offset }));
        }
        let own = place.in_input(&input.name);
        let object = read_line(bytes, own, 0).into_iter().find_map(Result::ok);
        let Some(line) = object else { return Ok(None) };
        let (text, at) = (line.object.text(), offset + line.object.offset_in(bytes));
        Ok(SourceLine::of(text, at, place, &mut self.outline))
    }
}
