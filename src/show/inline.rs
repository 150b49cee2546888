//! Styled text in lines that can be wrapped.

use super::wrap::rows;
use std::ops::Range;

/// The style of a piece of text, a combination of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style(u16);

impl Style {
    pub const PLAIN: Style = Style(0);
    pub const BOLD: Style = Style(1);
    pub const ITALIC: Style = Style(2);
    pub const STRUCK: Style = Style(4);
    pub const LINK: Style = Style(8);
    pub const DIM: Style = Style(16);
    pub const CODE: Style = Style(32);
    pub const KEYWORD: Style = Style(64);
    pub const GREEN: Style = Style(128);
    pub const VALUE: Style = Style(256);
    pub const RED: Style = Style(512);

    /// The terminal codes of the properties.
    const NUMBERS: [&'static str; 10] = ["1", "3", "9", "4", "2", "36", "35", "32", "33", "31"];

    /// Returns the style of a heading.
    pub fn heading(level: usize) -> Style {
        if level == 1 { Style::BOLD.with(Style::LINK) } else { Style::BOLD }
    }

    /// Combines two styles.
    pub fn with(self, other: Style) -> Style {
        Style(self.0 | other.0)
    }

    /// Returns `text` in this style, for a terminal.
    pub fn paint(self, text: &str) -> String {
        if self == Style::PLAIN || text.is_empty() {
            return text.to_owned();
        }
        let numbers = (0..).zip(Style::NUMBERS).filter(|(bit, _)| self.0 >> bit & 1 == 1);
        let numbers: Vec<&str> = numbers.map(|(_, number)| number).collect();
        format!("\x1b[{}m{text}\x1b[0m", numbers.join(";"))
    }
}

/// Styled text. A line feed ends a line.
#[derive(Clone, Debug, Default)]
pub struct Inline {
    pub text: String,
    /// For each piece: its end in the text, its style, and its offset in the source.
    pieces: Vec<(usize, Style, usize)>,
}

impl Inline {
    /// Adds a piece whose offset in the source is `source`.
    pub fn push(&mut self, text: &str, style: Style, source: usize) {
        self.text.push_str(text);
        self.pieces.push((self.text.len(), style, source));
    }

    /// Wraps each line to `room` columns, and returns the range of each row in the text.
    pub fn rows(&self, room: usize) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            let end = start + line.trim_end().len();
            let own = rows(&self.text[start..end], room, room);
            all.extend(own.into_iter().map(|row| start + row.start..start + row.end));
            start += line.len() + 1;
        }
        all
    }

    /// Returns the offset in the source at which the text before `at` ends.
    pub fn source_at(&self, at: usize) -> usize {
        let index = self.pieces.iter().position(|(end, ..)| *end >= at).unwrap_or(0);
        let start = index.checked_sub(1).map_or(0, |index| self.pieces[index].0);
        self.pieces.get(index).map_or(0, |(_, _, source)| source + (at - start))
    }

    /// Returns a part of the text for a terminal.
    pub fn paint(&self, range: Range<usize>, color: bool) -> String {
        let text = self.text.get(range.clone()).unwrap_or_default();
        if !color {
            return text.to_owned();
        }
        let (mut out, mut from) = (String::new(), range.start);
        let mut pieces = self.pieces.iter().skip_while(|(end, ..)| *end <= range.start).peekable();
        while let Some((end, style, _)) = pieces.next() {
            // Adjacent pieces with the same style are written together.
            if pieces.peek().is_some_and(|(_, next, _)| next == style && *end < range.end) {
                continue;
            }
            let to = (*end).min(range.end);
            out.push_str(&style.paint(&self.text[from..to]));
            from = to;
            if from == range.end {
                break;
            }
        }
        out
    }
}
