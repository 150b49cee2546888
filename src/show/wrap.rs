//! Lines for a terminal: how wide a text is there, and where it may be broken.
//!
//! What a reader takes for one character is never split, however many code points it has, and wide ones
//! (Chinese, Japanese, Korean, emoji) count as two columns. The lines hold no control characters.

use std::borrow::Cow;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What may not begin a line: closing marks of texts that have no spaces.
const CLOSING: &str = "、。，．！？：；）」』】〉》〕ー々…";
/// What may not end one.
const OPENING: &str = "（「『【〈《〔";
/// Columns between two stops of tabs.
const TAB: usize = 8;

/// The columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The columns of what reads as one character.
fn columns(piece: &str) -> usize {
    if piece.len() == 1 { 1 } else { piece.width() }
}

/// Spaces in the place of tabs.
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

/// Whether a line fits for certain: no character takes more columns than it has bytes.
fn is_short(line: &str, room: usize) -> bool {
    line.len() <= room
}

/// The beginning of a line that fits `room` columns; an ellipsis ends what does not fit.
pub fn cut(line: &str, room: usize) -> String {
    let (mut column, mut end) = (0, 0);
    for (at, piece) in line.grapheme_indices(true) {
        column += columns(piece);
        if column > room {
            return [&line[..end], "…"].concat();
        }
        // Here there is still room for the ellipsis.
        if column < room {
            end = at + piece.len();
        }
    }
    line.to_owned()
}

/// A line in rows of at most `room` columns, broken anywhere between characters.
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

/// A line in rows of at most `room` columns, broken at spaces and between wide characters where that can be. Rows
/// after the first are indented by as much as the marker of a list takes.
pub fn wrap(line: &str, room: usize) -> Vec<String> {
    if is_short(line, room) {
        return vec![line.to_owned()];
    }
    let hang = " ".repeat(hang(line).min(room / 2));
    let mut rows = rows(line, room, room - hang.len()).into_iter();
    let first = rows.next().map(|row| line[row].to_owned());
    first.into_iter().chain(rows.map(|row| [&hang, &line[row]].concat())).collect()
}

/// The rows of a line: `first` columns for the first one and `room` for each that follows. Spaces where a row ends
/// belong to no row. The rows of a longer line begin with the same ones, but for the last.
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
    /// Where it begins, in bytes of the line.
    start: usize,
    columns: usize,
    /// The columns that it may take.
    room: usize,
    has_words: bool,
    is_continued: bool,
    /// The piece that was added last.
    last: &'l str,
    /// Where it may be broken, in bytes of the line.
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

/// By how many columns the rows of a line are indented after its first one: blanks, and the marker of a list.
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
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a abcdefghij", 4), ["a", "abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("   ", 2), ["   "]);
    }

    #[test]
    fn lists_hang() {
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
    fn what_reads_as_one_character_is_not_split() {
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
