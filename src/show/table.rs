//! Tables for a terminal. Columns are as wide as their cells if there is room; otherwise cells are wrapped.

use super::inline::{Inline, Style};
use super::wrap::width;
use pulldown_cmark::Alignment;

/// The width of the separator between two cells, in columns of the terminal.
const SEPARATOR: usize = 3;
/// The minimum width to which a column of a table is reduced, in columns of the terminal.
const MIN_COLUMN: usize = 4;

/// A table that is being parsed.
pub struct Table {
    /// The alignments of the columns.
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Inline>>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new() }
    }

    pub fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Inline::default());
        }
    }

    /// Returns the cell that is being parsed.
    pub fn cell(&mut self) -> Option<&mut Inline> {
        self.rows.last_mut()?.last_mut()
    }

    /// Returns the rows of text. The first row of cells is the header.
    pub fn rows(&self, room: usize, color: bool) -> Vec<String> {
        let widths = self.widths(room);
        let mut out = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            out.extend(self.row(row, &widths, color));
            if index == 0 {
                let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push(paint(&lines.join("─┼─"), color));
            }
        }
        out
    }

    fn row(&self, cells: &[Inline], widths: &[usize], color: bool) -> Vec<String> {
        let rows: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| cell.rows(*width)).collect();
        let height = rows.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let cells = cells.iter().enumerate().map(|(column, cell)| {
                let row = rows[column].get(index).cloned().unwrap_or(0..0);
                let blank = widths[column].saturating_sub(width(&cell.text[row.clone()]));
                let (left, right) = match self.alignments.get(column) {
                    Some(Alignment::Right) => (blank, 0),
                    Some(Alignment::Center) => (blank / 2, blank - blank / 2),
                    _ => (0, blank),
                };
                [" ".repeat(left), cell.paint(row, color), " ".repeat(right)].concat()
            });
            cells.collect::<Vec<_>>().join(&paint(" │ ", color))
        };
        (0..height).map(line).collect()
    }

    /// Returns the width of each column. The widest columns are reduced until the table fits, or none is
    /// wider than [`MIN_COLUMN`].
    fn widths(&self, room: usize) -> Vec<usize> {
        let count = self.alignments.len();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(&cell.text)).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(widest).collect();
        let room = room.saturating_sub(SEPARATOR * count.saturating_sub(1));
        let mut most = widths.iter().copied().max().unwrap_or(0);
        while widths.iter().sum::<usize>() > room && most > MIN_COLUMN {
            most -= 1;
            // Reduce one column at a time, so that none is narrower than necessary.
            let mut over = (widths.iter().sum::<usize>()).saturating_sub(room);
            for width in widths.iter_mut().rev().filter(|width| **width > most) {
                if over > 0 {
                    over -= *width - most;
                    *width = most;
                }
            }
        }
        widths
    }
}

fn paint(text: &str, color: bool) -> String {
    if color { Style::DIM.paint(text) } else { text.to_owned() }
}
