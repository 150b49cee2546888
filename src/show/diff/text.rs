//! Writes a comparison as text: in two columns, or one side above the other with its name before each line.

use super::side::NAMES;
use super::unit::{Mark, Unit, UnitKind};
use super::{Comparison, DiffWriter, TurnPair};
use crate::estimate::report::grouped;
use crate::printable::printable;
use crate::show::text::{TextWriter, style};
use crate::show::totals::Totals;
use crate::show::wording::{noun, phrase};
use crate::show::wrap::{chop_styled, width, wrap};
use crate::show::{Item, ShowOptions};
use std::io::{self, Write};
use std::mem;

/// Text between the columns, or between the name of a side and its line.
const BORDER: &str = "│";
/// The styles of the sides.
const STYLES: [&str; 2] = [style::USER, style::VIEW];

/// Text output.
pub struct TextDiff<'o, W> {
    options: &'o ShowOptions,
    /// The options of a side, which is narrower.
    of_side: ShowOptions,
    is_beside: bool,
    out: W,
    /// The lines of each side that are not written yet.
    lines: [Vec<String>; 2],
    /// The number of messages that are the same and not shown.
    same: u64,
}

impl<'o, W: Write> TextDiff<'o, W> {
    pub fn new(options: &'o ShowOptions, is_beside: bool, out: W) -> TextDiff<'o, W> {
        // The border has a space on each side; the name takes a column.
        let width = match is_beside {
            true => options.width.saturating_sub(3) / 2,
            false => options.width.saturating_sub(3),
        };
        let of_side = ShowOptions { width, ..options.clone() };
        TextDiff { options, of_side, is_beside, out, lines: Default::default(), same: 0 }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        match self.options.color && !text.is_empty() {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// Writes text, wrapped.
    fn rows(&mut self, style: &str, indent: &str, text: &str) -> io::Result<()> {
        let room = self.options.width.saturating_sub(indent.len()).max(1);
        for row in wrap(&printable(text), room) {
            let row = self.paint(style, &row);
            writeln!(self.out, "{indent}{row}")?;
        }
        Ok(())
    }

    /// Writes a part that both sides have.
    fn whole(&mut self, unit: &Unit, has_turn: bool) -> io::Result<()> {
        for line in lines(unit, self.options, has_turn)? {
            writeln!(self.out, "{line}")?;
        }
        writeln!(self.out)
    }

    /// Writes what is not written yet.
    fn flush(&mut self) -> io::Result<()> {
        let same = mem::take(&mut self.same);
        if same > 0 {
            let language = self.options.language;
            let text = language.with(phrase::SAME, &[&language.count(same, noun::MESSAGE)]);
            self.rows(style::DIM, "  ", &format!("({text})"))?;
            writeln!(self.out)?;
        }
        let lines = mem::take(&mut self.lines);
        if self.is_beside { self.beside(lines) } else { self.above(&lines) }
    }

    /// Writes the lines of the sides in two columns.
    fn beside(&mut self, lines: [Vec<String>; 2]) -> io::Result<()> {
        let room = self.of_side.width;
        let [left, right] = lines
            .map(|lines| lines.iter().flat_map(|line| chop_styled(line, room)).collect::<Vec<_>>());
        let border = self.paint(style::DIM, BORDER);
        for at in 0..left.len().max(right.len()) {
            let (one, wide) = left.get(at).map_or(("", 0), |(row, wide)| (row.as_str(), *wide));
            let other = right.get(at).map_or("", |(row, _)| row.as_str());
            let gap = " ".repeat(room.saturating_sub(wide));
            let space = if other.is_empty() { "" } else { " " };
            writeln!(self.out, "{one}{gap} {border}{space}{other}")?;
        }
        Ok(())
    }

    /// Writes the lines of the sides one above the other.
    fn above(&mut self, lines: &[Vec<String>; 2]) -> io::Result<()> {
        for (side, lines) in lines.iter().enumerate() {
            let mark = self.paint(STYLES[side], &format!("{}{BORDER}", NAMES[side]));
            for line in lines {
                let space = if line.is_empty() { "" } else { " " };
                writeln!(self.out, "{mark}{space}{line}")?;
            }
        }
        if lines.iter().any(|lines| !lines.is_empty()) { writeln!(self.out) } else { Ok(()) }
    }

    /// Adds lines to a side, after a blank line if it has lines that are not written yet.
    fn add(&mut self, side: usize, more: Vec<String>) {
        let own = &mut self.lines[side];
        if !own.is_empty() && !more.is_empty() {
            own.push(String::new());
        }
        own.extend(more);
    }
}

impl<W: Write> DiffWriter for TextDiff<'_, W> {
    fn header(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        for ((side, name), style) in comparison.sides.iter().zip(NAMES).zip(STYLES) {
            self.rows(style, "", &format!("{name} · {}", side.title()))?;
            let facts = side.facts(self.options);
            self.rows(style::DIM, "  ", &facts)?;
            let [all, after] = side.totals(self.options);
            self.rows("", "  ", &all)?;
            if !comparison.common.is_all {
                self.rows("", "  ", &after)?;
            }
        }
        writeln!(self.out)?;
        let line = comparison.common.line(self.options);
        self.rows(style::DIM, "", &line)?;
        writeln!(self.out)
    }

    fn common(&mut self, unit: &Unit) -> io::Result<()> {
        if self.options.full { self.whole(unit, true) } else { Ok(()) }
    }

    fn turn(&mut self, turn: &TurnPair) -> io::Result<()> {
        let language = self.options.language;
        let name = |number| language.with(phrase::TURN, &[&grouped(number)]).to_lowercase();
        let name = format!("── {} ", super::turn_name(turn, name));
        let line = "─".repeat(self.options.width.saturating_sub(width(&name)));
        self.rows(style::DIM, "", &format!("{name}{line}"))?;
        writeln!(self.out)
    }

    fn same(&mut self, unit: &Unit, mark: &Mark) -> io::Result<()> {
        if unit.kind == UnitKind::Prompt || self.options.full {
            self.flush()?;
            return self.whole(unit, false);
        }
        if self.same == 0 {
            self.flush()?;
        }
        self.same += mark.messages;
        Ok(())
    }

    fn pair(&mut self, units: &[Option<Unit>; 2]) -> io::Result<()> {
        if self.same > 0 {
            self.flush()?;
        }
        for (side, unit) in units.iter().enumerate() {
            if let Some(unit) = unit {
                let lines = lines(unit, &self.of_side, false)?;
                self.add(side, lines);
            }
        }
        if self.is_beside {
            self.flush()?;
            self.beside([vec![String::new()], Vec::new()])?;
        }
        Ok(())
    }

    fn end_turn(&mut self, totals: Option<[Option<Totals>; 2]>) -> io::Result<()> {
        if self.same > 0 {
            self.flush()?;
        }
        for (side, totals) in totals.into_iter().flatten().enumerate() {
            let facts = totals.map(|own| own.facts(self.options)).unwrap_or_default();
            if !facts.is_empty() {
                let text = printable(&format!("── {}", facts.join(" · "))).into_owned();
                let rows = wrap(&text, self.of_side.width);
                let rows = rows.iter().map(|row| self.paint(style::DIM, row)).collect();
                self.add(side, rows);
            }
        }
        let has_lines = self.lines.iter().any(|lines| !lines.is_empty());
        self.flush()?;
        if has_lines && self.is_beside { writeln!(self.out) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()
    }
}

/// Returns the lines of a part, with the heading of its turn if that is wanted.
fn lines(unit: &Unit, options: &ShowOptions, has_turn: bool) -> io::Result<Vec<String>> {
    let mut text = Vec::new();
    // A `dyn Write`, so that the code that writes text is compiled only once.
    let mut writer = TextWriter::new(options, &mut text as &mut dyn Write);
    for entry in unit.entries.iter().filter(|it| has_turn || !matches!(it.item, Item::Turn(_))) {
        writer.show(entry)?;
    }
    writer.flush()?;
    drop(writer);
    Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}
