//! Aligns two sessions: their common beginning, and then turn by turn, and in a turn part by part.

use super::unit::{Mark, UnitKind};
use imara_diff::{Algorithm, Diff, InternedInput};

/// Two aligned sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    /// The number of parts at the beginning that are the same.
    pub common: usize,
    /// The number of parts at the beginning that are in turns without a difference.
    pub folded: usize,
    /// The turns after these.
    pub turns: Vec<TurnPair>,
}

/// A turn of one session and the turn of the other one beside it, or one of them alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPair {
    /// The numbers of the turns.
    pub numbers: [Option<u64>; 2],
    pub rows: Vec<Row>,
}

/// A part of one session and the part of the other one beside it, or one of them alone. Each part is in one row, and the
/// rows have the order of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// True for each side that has a part.
    pub has: [bool; 2],
    /// True if both parts are the same.
    pub is_same: bool,
}

/// Aligns the parts of two sessions.
pub fn align(marks: [&[Mark]; 2]) -> Alignment {
    let [a, b] = marks;
    let common = a.iter().zip(b).take_while(|(a, b)| a.hash == b.hash && a.kind == b.kind).count();
    // The turn in which they part is shown as a whole.
    let begin = |marks: &[Mark]| {
        let turn = marks.get(common)?.turn;
        marks.iter().position(|mark| mark.turn == turn)
    };
    let folded = marks.iter().filter_map(|marks| begin(marks)).fold(common, usize::min);
    let turns =
        marks.map(|marks| marks[folded..].chunk_by(|a, b| a.turn == b.turn).collect::<Vec<_>>());
    let keys =
        turns.each_ref().map(|turns| turns.iter().map(|turn| prompt(turn)).collect::<Vec<_>>());
    let pairs = pairs(&keys[0], &keys[1]);
    let turns = pairs.into_iter().map(|pair| {
        let of = |side: usize| pair[side].map_or(&[][..], |index| turns[side][index]);
        let sides = [of(0), of(1)];
        let numbers = sides.map(|turn| turn.first().map(|mark| mark.turn));
        TurnPair { numbers, rows: rows(sides) }
    });
    Alignment { common, folded, turns: turns.collect() }
}

/// Returns what identifies a turn: the hash of its prompt, or 0 if it has none.
fn prompt(turn: &[Mark]) -> u64 {
    turn.first().filter(|mark| mark.kind == UnitKind::Prompt).map_or(0, |mark| mark.hash)
}

fn rows(turns: [&[Mark]; 2]) -> Vec<Row> {
    let [a, b] = turns.map(|turn| turn.iter().map(|mark| mark.hash).collect::<Vec<_>>());
    let row = |[left, right]: [Option<usize>; 2]| Row {
        has: [left.is_some(), right.is_some()],
        is_same: left.zip(right).is_some_and(|(left, right)| a[left] == b[right]),
    };
    pairs(&a, &b).into_iter().map(row).collect()
}

/// Pairs the elements of two lists, by index: equal ones with each other, as in a diff, and those that differ between two
/// equal ones in their order.
fn pairs(a: &[u64], b: &[u64]) -> Vec<[Option<usize>; 2]> {
    let mut input = InternedInput::default();
    input.update_before(a.iter().copied());
    input.update_after(b.iter().copied());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let (mut pairs, mut at) = (Vec::with_capacity(a.len().max(b.len())), [0, 0]);
    let mut put = |from: [usize; 2], to: [usize; 2]| {
        let length = (to[0] - from[0]).max(to[1] - from[1]);
        let index =
            |side: usize, offset: usize| Some(from[side] + offset).filter(|it| *it < to[side]);
        pairs.extend((0..length).map(|offset| [index(0, offset), index(1, offset)]));
    };
    for hunk in diff.hunks() {
        let starts = [hunk.before.start as usize, hunk.after.start as usize];
        let ends = [hunk.before.end as usize, hunk.after.end as usize];
        put(at, starts);
        put(starts, ends);
        at = ends;
    }
    put(at, [a.len(), b.len()]);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::totals::Totals;

    /// Reads marks from letters: a capital letter begins a turn.
    fn marks(text: &str) -> Vec<Mark> {
        let mut turn = 0;
        let mark = |letter: char| {
            turn += u64::from(letter.is_uppercase());
            let kind = if letter.is_uppercase() { UnitKind::Prompt } else { UnitKind::Reply };
            let (hash, totals) = (u64::from(letter), Totals::default());
            Mark { turn, kind, hash, totals, messages: 1 }
        };
        text.chars().map(mark).collect()
    }

    /// Returns the number of common parts, and the turns as letters, side by side.
    fn aligned(a: &str, b: &str) -> String {
        let (one, two) = (marks(a), marks(b));
        let alignment = align([&one, &two]);
        let mut left = [a, b].map(|text| text[alignment.folded..].chars());
        let mut text = alignment.common.to_string();
        for turn in &alignment.turns {
            text.push_str(" |");
            for row in &turn.rows {
                let [a, b] = [0, 1].map(|side| row.has[side].then(|| left[side].next()).flatten());
                let sign = if row.is_same { '=' } else { '/' };
                text.push_str(&format!(" {}{sign}{}", a.unwrap_or('-'), b.unwrap_or('-')));
            }
        }
        assert!(left.iter_mut().all(|rest| rest.next().is_none()), "every part is in a row");
        text
    }

    #[test]
    fn audit_42_sessions_are_aligned_by_prompts_and_then_by_parts() {
        for (a, b, expected) in [
            ("AxBy", "AxBy", "4"),
            ("", "", "0"),
            ("AxBy", "AxCz", "2 | B/C y/z"),
            ("AxByz", "AxBw", "3 | B=B y/w z/-"),
            ("Axyz", "Axz", "2 | A=A x=x y/- z=z"),
            ("AxBy", "Ax", "2 | B/- y/-"),
            ("AxCz", "AxByCz", "2 | -/B -/y | C=C z=z"),
            ("Axy", "AxBz", "2 | A=A x=x y/- | -/B -/z"),
            ("Ax", "By", "0 | A/B x/y"),
            ("x", "Ax", "0 | -/A x=x"),
        ] {
            assert_eq!(aligned(a, b), expected, "{a} {b}");
        }
    }
}
