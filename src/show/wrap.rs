//! The width of text on a terminal, and line breaking.
//!
//! Grapheme clusters are never split, and wide characters (Chinese, Japanese, Korean, emoji) count as two
//! columns. Lines must not contain control characters; [`expand_tabs`] replaces tabs.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Characters that may not begin a line, such as closing marks, in languages without spaces.
const CLOSING: &str = "、。，．！？：；）」』】〉》〕ー々…";
/// Characters that may not end a line: opening marks.
const OPENING: &str = "（「『【〈《〔";
/// The distance between tab stops in columns.
const TAB: usize = 8;

/// Returns the width of `text` in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the width of a grapheme cluster in columns.
fn columns(piece: &str) -> usize {
    if piece.len() == 1 { 1 } else { piece.width() }
}

/// Replaces tabs with spaces.
pub fn expand_tabs(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    for (index, part) in line.split('\t').enumerate() {
        if index > 0 {
            let column = width(&out);
            out.push_str(&" ".repeat(TAB - column % TAB));
        }
        out.push_str(part);
    }
    Cow::Owned(out)
}

/// Returns true if a line certainly fits: no character has more columns than bytes.
fn is_short(line: &str, room: usize) -> bool {
    line.len() <= room
}

/// Shortens a line to `room` columns, with an ellipsis if it does not fit.
pub fn cut(line: &str, room: usize) -> String {
    let (mut column, mut end) = (0, 0);
    for (at, piece) in line.grapheme_indices(true) {
        column += columns(piece);
        if column > room {
            return [&line[..end], "…"].concat();
        }
        // The ellipsis still fits here.
        if column < room {
            end = at + piece.len();
        }
    }
    line.to_owned()
}

/// Splits a line into rows of at most `room` columns, between any two grapheme clusters.
pub fn chop(line: &str, room: usize) -> Vec<&str> {
    if is_short(line, room) {
        return vec![line];
    }
    let (mut rows, mut start, mut column) = (Vec::new(), 0, 0);
    for (at, piece) in line.grapheme_indices(true) {
        let wide = columns(piece);
        if column + wide > room && at > start {
            rows.push(&line[start..at]);
            (start, column) = (at, 0);
        }
        column += wide;
    }
    rows.push(&line[start..]);
    rows
}

/// Splits a line with styles, as terminal codes, into rows of at most `room` columns, and returns the width of each. A
/// style that is in force at the end of a row ends there, and begins again in the next one.
pub fn chop_styled(line: &str, room: usize) -> Vec<(String, usize)> {
    const END: &str = "\u{1b}[0m";
    let (mut rows, mut row, mut wide, mut open) = (Vec::new(), String::new(), 0, String::new());
    // The first part has no style; each other one begins with its code.
    for (index, part) in line.split('\u{1b}').enumerate() {
        let (code, text) = match index {
            0 => ("", part),
            _ => part.split_at(part.find('m').map_or(0, |end| end + 1)),
        };
        if !code.is_empty() {
            let code = format!("\u{1b}{code}");
            row.push_str(&code);
            if code == END { open.clear() } else { open.push_str(&code) }
        }
        for piece in text.graphemes(true) {
            if wide + columns(piece) > room && wide > 0 {
                row.push_str(if open.is_empty() { "" } else { END });
                rows.push((mem::replace(&mut row, open.clone()), wide));
                wide = 0;
            }
            row.push_str(piece);
            wide += columns(piece);
        }
    }
    rows.push((row, wide));
    rows
}

/// Wraps a line into rows of at most `room` columns, at spaces and between wide characters if possible. The
/// rows after the first are indented to align with the text of the first, after its spaces and list marker.
pub fn wrap(line: &str, room: usize) -> Vec<String> {
    if is_short(line, room) {
        return vec![line.to_owned()];
    }
    let hang = " ".repeat(hang(line).min(room / 2));
    let mut rows = rows(line, room, room - hang.len()).into_iter();
    let first = rows.next().map(|row| line[row].to_owned());
    first.into_iter().chain(rows.map(|row| [&hang, &line[row]].concat())).collect()
}

/// Returns the byte ranges of a line's rows: the first row has at most `first` columns, the others `room`. Spaces
/// at a line break are left out of both rows. If the line grows, all rows but the last stay the same.
pub fn rows(line: &str, first: usize, room: usize) -> Vec<Range<usize>> {
    if is_short(line, first) {
        return std::iter::once(0..line.len()).collect();
    }
    let mut rows = Vec::new();
    let mut row = Row { room: first, ..Row::default() };
    for (at, piece) in line.grapheme_indices(true) {
        row.may_break_before(at, piece);
        let wide = columns(piece);
        while row.columns + wide > row.room && row.has_words {
            let end = row.at.take().unwrap_or(at);
            rows.push(row.start..row.start + line[row.start..end].trim_end().len());
            let rest = line[end..at].trim_start();
            let (start, columns) = (at - rest.len(), width(rest));
            let (has_words, last) = (!rest.is_empty(), row.last);
            row = Row { start, columns, room, has_words, last, is_continued: true, at: None };
        }
        row.push(at, piece, wide);
    }
    if row.has_words || rows.is_empty() {
        rows.push(row.start..line.len());
    }
    rows
}

/// A row that is being filled.
#[derive(Default)]
struct Row<'l> {
    /// The byte offset of its start in the line.
    start: usize,
    columns: usize,
    /// Its width limit in columns.
    room: usize,
    has_words: bool,
    is_continued: bool,
    /// The piece that was added last.
    last: &'l str,
    /// The last byte offset in the line at which it may be broken.
    at: Option<usize>,
}

impl<'l> Row<'l> {
    fn may_break_before(&mut self, at: usize, piece: &str) {
        let last = self.last;
        let between = columns(last) == 2 || columns(piece) == 2;
        let is_legal = !CLOSING.contains(piece) && !OPENING.contains(last);
        if self.has_words && ((last == " ") != (piece == " ") || between && is_legal) {
            self.at = Some(at);
        }
    }

    fn push(&mut self, at: usize, piece: &'l str, wide: usize) {
        if self.is_continued && !self.has_words && piece == " " {
            self.start = at + piece.len();
            return;
        }
        self.last = piece;
        self.columns += wide;
        self.has_words |= piece != " ";
    }
}

/// Returns the indentation for the rows after the first: the line's leading spaces, and the width of a list
/// marker.
fn hang(line: &str) -> usize {
    let text = line.trim_start_matches(' ');
    let blanks = line.len() - text.len();
    let marker = text.split(' ').next().unwrap_or_default();
    let number = marker.trim_end_matches(['.', ')']);
    let is_number = number.len() + 1 == marker.len()
        && !number.is_empty()
        && number.len() < 4
        && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_marker = matches!(marker, "-" | "*" | "+" | "•") || is_number;
    blanks + if is_marker { width(marker) + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_fit_are_not_split() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a abcdefghij", 4), ["a", "abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("   ", 2), ["   "]);
    }

    #[test]
    fn wrapped_list_items_are_indented() {
        assert_eq!(wrap("- one two three", 9), ["- one two", "  three"]);
        assert_eq!(wrap("  12. one two", 9), ["  12. one", "    two"]);
        assert_eq!(wrap("1999. was", 5), ["1999.", "was"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(wrap("日本語テキスト", 6), ["日本語", "テキス", "ト"]);
        assert_eq!(wrap("日本語。テ", 6), ["日本", "語。テ"], "no line begins with a full stop");
        assert_eq!(wrap("ab日本", 5), ["ab日", "本"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(expand_tabs("日\tx\ty"), "日      x       y");
    }

    #[test]
    fn a_style_ends_with_its_row_and_begins_again() {
        for (line, rows) in [
            ("abc", &[("ab", 2), ("c", 1)][..]),
            ("", &[("", 0)]),
            ("日本", &[("日", 2), ("本", 2)]),
            ("\u{1b}[1mabc\u{1b}[0md", &[("\u{1b}[1mab\u{1b}[0m", 2), ("\u{1b}[1mc\u{1b}[0md", 2)]),
            ("\u{1b}[1mab\u{1b}[0m", &[("\u{1b}[1mab\u{1b}[0m", 2)]),
        ] {
            let rows: Vec<_> = rows.iter().map(|(row, wide)| ((*row).to_owned(), *wide)).collect();
            assert_eq!(chop_styled(line, 2), rows, "{line:?}");
        }
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        let family = "👩\u{200d}👩\u{200d}👧";
        let accent = "e\u{301}";
        for unit in [family, accent] {
            let line = unit.repeat(9);
            let chopped = chop(&line, 4).into_iter().map(str::to_owned).collect();
            for rows in [wrap(&line, 4), chopped] {
                assert!(rows.iter().all(|row| row.replace(unit, "").is_empty()), "{rows:?}");
                assert!(rows.iter().all(|row| width(row) <= 4), "{rows:?}");
            }
        }
        assert_eq!(width(family), 2);
        assert_eq!(wrap(&accent.repeat(5), 4), [accent.repeat(4), accent.to_owned()]);
    }
}
