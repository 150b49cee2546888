//! The totals of a turn: how long it took, and the tokens and calls in it.

use super::wording::{Language, noun, phrase};
use super::{Item, ShowOptions, ShownEntry};
use crate::estimate::report::grouped;
use crate::usage::Counts;

/// The totals of the entries of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// The time of the first entry, in microseconds since 1970.
    pub start: Option<i64>,
    /// The time of the last entry.
    pub end: Option<i64>,
    /// The tokens that the provider counted, added up over the requests, those for summaries included.
    pub counts: Counts,
    /// What the requests cost whose price is known.
    pub cost: f64,
    /// The number of calls with tokens whose price is not known.
    pub unpriced: u64,
    /// The number of replies.
    pub replies: u64,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of failed calls and of refused requests.
    pub failures: u64,
}

impl Totals {
    /// Adds an entry.
    pub fn take(&mut self, entry: &ShownEntry) {
        self.start = self.start.or(entry.time);
        self.end = self.end.max(entry.time);
        if let Some(spent) = entry.spent {
            self.counts = self.counts + spent.counts;
            self.cost += spent.cost.unwrap_or_default();
            self.unpriced += u64::from(spent.cost.is_none());
        }
        match &entry.item {
            Item::Reply(_) => self.replies += 1,
            Item::Call { .. } => self.calls += 1,
            Item::Result(result) => self.failures += u64::from(result.is_error),
            Item::Error(_) => self.failures += 1,
            _ => {}
        }
    }

    /// Adds the totals of another turn.
    pub fn add(&mut self, other: &Totals) {
        self.start = [self.start, other.start].into_iter().flatten().min();
        self.end = self.end.max(other.end);
        self.counts = self.counts + other.counts;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.replies += other.replies;
        self.calls += other.calls;
        self.failures += other.failures;
    }

    /// Returns the time from the first to the last entry in microseconds.
    #[must_use]
    pub fn duration(&self) -> Option<i64> {
        Some(self.end? - self.start?)
    }

    /// Returns the cost as text; `None` if nothing has a price. With a plus sign it is only a part.
    #[must_use]
    pub fn amount(&self, options: &ShowOptions) -> Option<String> {
        let amount = options.prices.amount(self.cost);
        let rest = if self.unpriced > 0 { "+" } else { "" };
        (self.cost > 0.0).then(|| amount + rest)
    }

    /// Returns the facts in order of display.
    #[must_use]
    pub fn facts(&self, options: &ShowOptions) -> Vec<String> {
        let language = options.language;
        let duration = self.duration().filter(|micros| *micros >= 1_000_000);
        let mut facts: Vec<String> =
            duration.into_iter().map(|micros| self::duration(micros, language)).collect();
        if self.counts.prompt() > 0 {
            facts.push(language.with(phrase::IN, &[&grouped(self.counts.prompt())]));
            facts.push(language.with(phrase::OUT, &[&grouped(self.counts.output)]));
            facts.extend(self.amount(options));
        }
        facts.extend((self.calls > 0).then(|| language.count(self.calls, noun::CALL)));
        facts
    }
}

/// Formats a duration in microseconds with its two largest units.
#[must_use]
pub fn duration(micros: i64, language: Language) -> String {
    let seconds = micros.max(0) / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => language.with(phrase::SECONDS, &[&seconds]),
        (0, 0, _) => language.with(phrase::MINUTES, &[&minutes, &(seconds % 60)]),
        (0, _, _) => language.with(phrase::HOURS, &[&hours, &(minutes % 60)]),
        _ => language.with(phrase::DAYS, &[&days, &(hours % 24)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3600, "1 h 0 min"),
            (90_000, "1 d 1 h"),
            (-5, "0 s"),
        ] {
            assert_eq!(duration(seconds * 1_000_000, Language::En), text);
        }
    }
}
