//! Compares two sessions, or two forks of one, and shows them side by side from where they part.
//!
//! Both are read twice. The first time, the parts of each session (`unit`) become hashes, and the sessions are aligned
//! (`align`). The second time, the parts are shown pair by pair, so that the sessions are never in memory as a whole.

mod align;
mod html;
mod side;
mod text;
mod unit;

use super::totals::Totals;
use super::wording::{noun, phrase};
use super::{Format, ShowNotes, ShowOptions};
use crate::exit::{Exit, fail};
use crate::input::Input;
use align::{Alignment, Row, TurnPair, align};
use anyhow::Context;
use side::Side;
use std::hash::RandomState;
use std::io::{self, Write};
use unit::{Mark, Unit, UnitKind, Units};

/// A session to compare.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'o> {
    /// Its name, if it has no title.
    pub name: &'o str,
    /// What is read.
    pub inputs: &'o [Input],
}

/// Two compared sessions.
struct Comparison<'o> {
    sides: [Side<'o>; 2],
    alignment: Alignment,
    /// The common beginning.
    common: Common,
}

/// The common beginning of two sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Common {
    /// The number of complete turns.
    turns: u64,
    /// The number of the turn in which they part, if a part of it is common.
    within: Option<u64>,
    messages: u64,
    /// The tokens of the context at its end.
    tokens: u64,
    /// True if neither session has anything after it.
    is_all: bool,
}

/// The form in which a comparison is written, from top to bottom.
trait DiffWriter {
    /// Writes both sessions and their totals, and the size of their common beginning.
    fn header(&mut self, comparison: &Comparison<'_>) -> io::Result<()>;
    /// Writes a part of the common beginning.
    fn common(&mut self, unit: &Unit) -> io::Result<()>;
    /// Begins a turn of one or both sessions.
    fn turn(&mut self, turn: &TurnPair) -> io::Result<()>;
    /// Writes a part that both sessions have.
    fn same(&mut self, unit: &Unit, mark: &Mark) -> io::Result<()>;
    /// Writes the parts of one or both sessions beside each other.
    fn pair(&mut self, units: &[Option<Unit>; 2]) -> io::Result<()>;
    /// Ends a turn, with the totals of each session in it. Without totals, the sessions do not differ in it.
    fn end_turn(&mut self, totals: Option<[Option<Totals>; 2]>) -> io::Result<()>;
    /// Ends the output.
    fn end(&mut self) -> io::Result<()>;
}

/// Compares two sessions. `is_beside` is true if text is written in two columns.
///
/// # Errors
/// 2 if the format is Markdown; if an input cannot be read or `out` cannot be written to; 65 if an input is in a dialect
/// that cannot be read.
pub fn compare(
    operands: [Operand<'_>; 2],
    format: Format,
    is_beside: bool,
    options: &ShowOptions,
    out: &mut dyn Write,
) -> anyhow::Result<ShowNotes> {
    if format == Format::Markdown {
        return fail(Exit::Usage, "--diff writes text or html; choose one of them");
    }
    let (comparison, notes) = Comparison::of(operands, options)?;
    let mut writer: Box<dyn DiffWriter> = match format {
        Format::Html => Box::new(html::HtmlDiff::new(&comparison, options, out)),
        _ => Box::new(text::TextDiff::new(options, is_beside, out)),
    };
    comparison.write(operands, options, &mut *writer)?;
    Ok(notes)
}

impl<'o> Comparison<'o> {
    /// Reads both sessions, and aligns them.
    fn of(
        operands: [Operand<'o>; 2],
        options: &ShowOptions,
    ) -> anyhow::Result<(Comparison<'o>, ShowNotes)> {
        let state = RandomState::new();
        let [a, b] = operands;
        let (a, mut notes) = Side::read(a, options, &state)?;
        let (b, more) = Side::read(b, options, &state)?;
        notes.append(more);
        let mut sides = [a, b];
        let alignment = align([&sides[0].marks, &sides[1].marks]);
        sides.iter_mut().for_each(|side| side.part(alignment.common));
        let marks = &sides[0].marks[..alignment.common];
        let prompts =
            |marks: &[Mark]| marks.iter().filter(|it| it.kind == UnitKind::Prompt).count();
        let common = Common {
            turns: prompts(&sides[0].marks[..alignment.folded]) as u64,
            within: marks.get(alignment.folded).map(|mark| mark.turn),
            messages: marks.iter().map(|mark| mark.messages).sum(),
            tokens: alignment.common.checked_sub(1).map_or(0, |last| sides[0].sizes[last]),
            is_all: sides.iter().all(|side| side.marks.len() == alignment.common),
        };
        Ok((Comparison { sides, alignment, common }, notes))
    }

    /// Reads both sessions again, and writes them.
    fn write(
        &self,
        operands: [Operand<'_>; 2],
        options: &ShowOptions,
        writer: &mut dyn DiffWriter,
    ) -> anyhow::Result<()> {
        let cannot = "cannot write '<stdout>'";
        let [a, b] = operands;
        let mut units = [Units::open(a.inputs, options)?, Units::open(b.inputs, options)?];
        let mut take = |side: usize| units[side].next(&mut |_| {});
        writer.header(self).context(cannot)?;
        for _ in 0..self.alignment.folded {
            take(1)?;
            if let Some(unit) = take(0)? {
                writer.common(&unit).context(cannot)?;
            }
        }
        let mut at = [self.alignment.folded; 2];
        for turn in &self.alignment.turns {
            writer.turn(turn).context(cannot)?;
            let mut totals = [None::<Totals>; 2];
            for Row { has, is_same } in &turn.rows {
                let mut own = [None, None];
                for side in [0, 1] {
                    if has[side] {
                        own[side] = take(side)?;
                        let mark = &self.sides[side].marks[at[side]];
                        totals[side].get_or_insert_default().add(&mark.totals);
                        at[side] += 1;
                    }
                }
                match &own {
                    [Some(unit), _] if *is_same => {
                        let mark = &self.sides[0].marks[at[0] - 1];
                        writer.same(unit, mark).context(cannot)?;
                    }
                    own => writer.pair(own).context(cannot)?,
                }
            }
            let differs = turn.rows.iter().any(|row| !row.is_same);
            writer.end_turn(differs.then_some(totals)).context(cannot)?;
        }
        writer.end().context(cannot)
    }
}

impl Common {
    /// Returns the line about the common beginning.
    fn line(&self, options: &ShowOptions) -> String {
        let language = options.language;
        if self.messages == 0 {
            let nothing = if self.is_all { phrase::ALL_SAME } else { phrase::NOTHING_SAME };
            return language.say(nothing).to_owned();
        }
        let turns = (self.turns > 0).then(|| language.count(self.turns, noun::TURN));
        let mut sizes: Vec<String> = turns.into_iter().collect();
        sizes.extend(self.within.map(|turn| language.with(phrase::PART_OF_TURN, &[&turn])));
        sizes.push(language.count(self.messages, noun::MESSAGE));
        sizes.extend((self.tokens > 0).then(|| language.count(self.tokens, noun::TOKEN)));
        let sizes = sizes.join(" · ");
        let kind = if self.is_all { phrase::ALL_SAME_OF } else { phrase::SAME_BEGINNING };
        language.with(kind, &[&sizes])
    }
}

/// Returns the numbers of a pair of turns, each as `name` writes it: one if both are the same.
fn turn_name(turn: &TurnPair, name: impl Fn(u64) -> String) -> String {
    match turn.numbers {
        [Some(a), Some(b)] if a == b => name(a),
        numbers => {
            let sides = side::NAMES.into_iter().zip(numbers);
            let sides =
                sides.filter_map(|(side, number)| Some(format!("{side} {}", name(number?))));
            sides.collect::<Vec<_>>().join(" · ")
        }
    }
}
