//! Estimates how many tokens the tokenizers of a family make of a text.
//!
//! Each character has a class: a letter, a sign, a part of a script. The weight of a character depends on its class and
//! on the class of the character before it, and the weight of a text is the sum. A weight is the average number of
//! tokens that start at the character: low for `h` after `t`, high for a digit after a letter, and three for a letter
//! that tokenizers split into three bytes. So one table covers words, names, hashes and scripts alike, without a rule
//! for any of them.
//!
//! The tables are in `weights.rs`. `scripts/dev/accuracy` fits them to the counts of real tokenizers and measures the
//! error on other samples; `docs/accuracy.md` has the results.

mod classes;
mod pairs;
#[rustfmt::skip]
mod weights;

use super::Family;
use crate::json;
use classes::class;
use pairs::Pairs;
use std::sync::OnceLock;
use weights::{CLASSES, GROUP, GROUPS, LEVELS, Text};

/// The units of [`weigh`] per token.
pub const UNIT: u64 = 64;

/// The weights of a family, by the group of the character before and the class of a character.
type Table = [[u8; CLASSES]; GROUPS];

/// The character before a text.
const START: char = '\n';

/// The tokens that Claude's newer tokenizers are reported to give, as a percentage of those of the older ones.
const NEWER_CLAUDE: u64 = 130;

/// The percentage for an unknown model. No weight in its table is below that of Claude, so no text costs less than for
/// newer Claude. The other weights are fitted so that hardly any text costs more for another family; the last 2 %
/// cover the rest.
const UNKNOWN: u64 = NEWER_CLAUDE + 2;

/// The tables of the families, in the order of [`table`].
static TABLES: [Table; 9] = [
    decoded(weights::O200K),
    decoded(weights::CL100K),
    decoded(weights::CLAUDE),
    decoded(weights::LLAMA),
    decoded(weights::QWEN),
    decoded(weights::DEEPSEEK),
    decoded(weights::MISTRAL),
    decoded(weights::GEMINI),
    decoded(weights::UNKNOWN),
];

/// The weights of ASCII pairs by each table, made when a family is used first.
static PAIRS: [OnceLock<Pairs>; TABLES.len()] = [const { OnceLock::new() }; TABLES.len()];

/// Decodes a table. Each character stands for a level: `#` for the first, `$` for the second and so on in the order of
/// ASCII, without the backslash.
const fn decoded(text: Text) -> Table {
    let mut table = [[0; CLASSES]; GROUPS];
    let mut row = 0;
    while row < GROUPS {
        let mut column = 0;
        while column < CLASSES {
            let letter = text[row].as_bytes()[column];
            let level = letter - b'#' - (letter > b'\\') as u8;
            table[row][column] = LEVELS[level as usize];
            column += 1;
        }
        row += 1;
    }
    table
}

/// Returns the estimated cost of `text` in units of 1/64 token.
///
/// No prefix of a text costs more than the whole. If a text is cut in two, the costs of the parts add up to that of the
/// whole, except for the first character of the second part, whose cost may differ.
#[must_use]
pub fn weigh(text: &str, family: Family) -> u64 {
    let mut cost = Cost::new(family);
    let mut at = 0;
    while let Some((c, begin)) = cost.next_other::<false>(text, at) {
        cost.add(c);
        at = begin + c.len_utf8();
    }
    cost.total()
}

/// Returns the cost of the text of a JSON string, as [`weigh`] does; `None` if `raw` is another value. The string is not
/// decoded first, because that takes as long as weighing it.
#[must_use]
pub fn weigh_json(raw: &str, family: Family) -> Option<u64> {
    let text = raw.strip_prefix('"')?.strip_suffix('"')?;
    let mut cost = Cost::new(family);
    let mut at = 0;
    while let Some((c, begin)) = cost.next_other::<true>(text, at) {
        let (c, length) = match c {
            '\\' => json::escaped_char(text.as_bytes(), begin)?,
            plain => (plain, plain.len_utf8()),
        };
        cost.add(c);
        at = begin + length;
    }
    Some(cost.total())
}

/// The cost of the characters so far.
struct Cost {
    table: &'static Table,
    percent: u64,
    pairs: &'static Pairs,
    sum: u64,
    last: char,
}

impl Cost {
    fn new(family: Family) -> Cost {
        let (number, percent) = table(family);
        let table = &TABLES[number];
        let pairs = PAIRS[number].get_or_init(|| Pairs::new(table));
        Cost { table, percent, pairs, sum: 0, last: START }
    }

    /// Adds the ASCII characters of `text` from the offset `at` on if they follow one. If `ESCAPED` is true, the text has
    /// the escapes of JSON, and only those of one letter are read. Returns the character after them, which was not added,
    /// and its offset; `None` at the end of the text.
    #[inline]
    fn next_other<const ESCAPED: bool>(
        &mut self,
        text: &str,
        mut at: usize,
    ) -> Option<(char, usize)> {
        if self.last.is_ascii() {
            let mut last = self.last as u8;
            let (end, weight) = self.pairs.weigh::<ESCAPED>(text.as_bytes(), at, &mut last);
            self.sum += weight;
            at = end;
            self.last = char::from(last);
        }
        text[at..].chars().next().map(|c| (c, at))
    }

    fn add(&mut self, c: char) {
        let before = GROUP[usize::from(class(self.last))];
        let weight = self.table[usize::from(before)][usize::from(class(c))];
        let least = if c == self.last { least_for_repeated(c) } else { 0 };
        self.sum += u64::from(weight.max(least));
        self.last = c;
    }

    fn total(self) -> u64 {
        (self.sum * self.percent).div_ceil(100)
    }
}

/// Returns the minimum weight of a character that follows an equal one. The tables say little about runs: tokens hold up
/// to 8 equal letters, 64 or more equal signs or spaces, and 4 equal characters of other scripts.
fn least_for_repeated(c: char) -> u8 {
    match c {
        _ if c.is_ascii_alphanumeric() => 8,
        _ if c.is_ascii() => 1,
        _ => 16,
    }
}

/// Returns the number of the table of a family, and the percentage to which its weights are scaled.
fn table(family: Family) -> (usize, u64) {
    match family {
        Family::O200k => (0, 100),
        Family::Cl100k => (1, 100),
        Family::Claude => (2, 100),
        Family::NewerClaude => (2, NEWER_CLAUDE),
        Family::Llama => (3, 100),
        Family::Qwen => (4, 100),
        Family::DeepSeek => (5, 100),
        Family::Mistral => (6, 100),
        Family::Gemini => (7, 100),
        Family::Unknown => (8, UNKNOWN),
    }
}

#[cfg(test)]
mod tests;
