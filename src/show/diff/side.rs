//! One of the two sessions of a comparison: its parts without their content, and its totals.

use super::Operand;
use super::unit::{Mark, Units};
use crate::show::chart::Chart;
use crate::show::totals::Totals;
use crate::show::wording::{noun, phrase};
use crate::show::{ShowNotes, ShowOptions, words};
use std::hash::RandomState;

/// The names of the sides.
pub const NAMES: [&str; 2] = ["A", "B"];

/// One of the sessions.
pub struct Side<'o> {
    name: &'o str,
    pub chart: Chart,
    pub marks: Vec<Mark>,
    /// The tokens of the context after each part.
    pub sizes: Vec<u64>,
    /// The totals after the sessions part.
    after: Totals,
    /// The number of turns that begin after the sessions part.
    turns_after: u64,
}

impl<'o> Side<'o> {
    /// Reads a session.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(
        operand: Operand<'o>,
        options: &ShowOptions,
        state: &RandomState,
    ) -> anyhow::Result<(Side<'o>, ShowNotes)> {
        let mut units = Units::open(operand.inputs, options)?;
        let (mut chart, mut marks, mut sizes) = (Chart::default(), Vec::new(), Vec::new());
        while let Some(unit) = units.next(&mut |entry| chart.take(entry))? {
            marks.push(unit.mark(state));
            sizes.push(chart.size());
        }
        let side = Side {
            name: operand.name,
            chart,
            marks,
            sizes,
            after: Totals::default(),
            turns_after: 0,
        };
        Ok((side, units.notes()))
    }

    /// Adds up what comes after the common beginning, which has `common` parts.
    pub fn part(&mut self, common: usize) {
        let last = common.checked_sub(1).and_then(|last| self.marks.get(last));
        let turn = last.map_or(0, |mark| mark.turn);
        self.turns_after = self.chart.turn.saturating_sub(turn);
        self.marks[common..].iter().for_each(|mark| self.after.add(&mark.totals));
    }

    /// Returns the title of the session.
    pub fn title(&self) -> &str {
        self.chart.title().unwrap_or(self.name)
    }

    /// Returns the name of the file, and the facts about the session.
    pub fn facts(&self, options: &ShowOptions) -> String {
        let session = self.chart.session.as_ref().map(|it| words::session(it, options));
        let mut facts = vec![self.name.to_owned()];
        let title = self.title();
        facts.extend(session.unwrap_or_default().into_iter().filter(|fact| fact != title));
        facts.join(" · ")
    }

    /// Returns the totals of the session, and those after the sessions part.
    pub fn totals(&self, options: &ShowOptions) -> [String; 2] {
        let language = options.language;
        let line = |turns: u64, totals: &Totals| {
            let turns = language.count(turns, noun::TURN);
            [vec![turns], totals.facts(options)].concat().join(" · ")
        };
        let after = line(self.turns_after, &self.after);
        [
            line(self.chart.prompts.len() as u64, &self.chart.totals()),
            language.with(phrase::AFTER_PARTING, &[&after]),
        ]
    }
}
