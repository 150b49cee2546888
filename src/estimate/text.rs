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
    let mut rest = cost.add_ascii::<false>(text);
    while let Some(c) = rest.chars().next() {
        cost.add(c);
        rest = cost.add_ascii::<false>(&rest[c.len_utf8()..]);
    }
    cost.total()
}

/// Returns the cost of the text of a JSON string, as [`weigh`] does; `None` if `raw` is another value. The string is not
/// decoded first, because that takes as long as weighing it.
#[must_use]
pub fn weigh_json(raw: &str, family: Family) -> Option<u64> {
    let mut cost = Cost::new(family);
    let mut rest = cost.add_ascii::<true>(raw.strip_prefix('"')?.strip_suffix('"')?);
    while let Some(c) = rest.chars().next() {
        let (c, length) = match c {
            '\\' => json::escaped_char(rest.as_bytes(), 0)?,
            plain => (plain, plain.len_utf8()),
        };
        cost.add(c);
        rest = cost.add_ascii::<true>(&rest[length..]);
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

    /// Adds the ASCII characters at the beginning of `text` if they follow one. If `ESCAPED` is true, the text has the
    /// escapes of JSON, and only those of one letter are read. Returns the rest of the text.
    fn add_ascii<'t, const ESCAPED: bool>(&mut self, text: &'t str) -> &'t str {
        if !self.last.is_ascii() {
            return text;
        }
        let mut last = self.last as u8;
        let (count, weight) = self.pairs.weigh::<ESCAPED>(text.as_bytes(), &mut last);
        self.sum += weight;
        self.last = char::from(last);
        &text[count..]
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
        Family::Unknown => (8, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, UNIT, weigh, weigh_json};
    use crate::estimate::Family;
    use crate::json;
    use std::fs;

    const FAMILIES: [Family; 10] = [
        Family::O200k,
        Family::Cl100k,
        Family::Claude,
        Family::NewerClaude,
        Family::Llama,
        Family::Qwen,
        Family::DeepSeek,
        Family::Mistral,
        Family::Gemini,
        Family::Unknown,
    ];

    /// Returns the texts with known counts: name, text, and the counts by column.
    fn samples() -> Vec<(String, String, Vec<u64>)> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/estimate");
        let table = fs::read_to_string(format!("{directory}/counts.tsv")).unwrap();
        let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| {
            let mut columns = row.split('\t');
            let name = columns.next().unwrap();
            let counts = columns.map(|count| count.parse().unwrap()).collect();
            (
                name.to_owned(),
                fs::read_to_string(format!("{directory}/{name}.txt")).unwrap(),
                counts,
            )
        })
        .collect()
    }

    /// Returns the cost of a text, character by character.
    fn weigh_slowly(text: &str, family: Family) -> u64 {
        let mut cost = Cost::new(family);
        text.chars().for_each(|c| cost.add(c));
        cost.total()
    }

    #[test]
    fn pairs_give_the_same_cost_as_single_characters() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize % most
        };
        let known: Vec<char> = "a  \n-=19Z\"\\\0\u{7f}é\u{a0}中😀".chars().collect();
        for round in 0..20_000 {
            let mut text = String::new();
            // Some texts have few different characters, some are ASCII, and most have runs.
            let kinds = 1 + random(known.len());
            for _ in 0..random(40) {
                let any = char::from_u32(random(0x3000) as u32).unwrap_or('x');
                let c = if random(30) == 0 { any } else { known[random(kinds)] };
                let count = if random(4) == 0 { random(20) } else { 1 };
                text.extend((0..count).map(|_| c));
            }
            let family = FAMILIES[round % FAMILIES.len()];
            let cost = weigh_slowly(&text, family);
            assert_eq!(weigh(&text, family), cost, "{text:?} {family:?}");
            let quoted = serde_json::to_string(&text).unwrap();
            assert_eq!(weigh_json(&quoted, family), Some(cost), "{quoted} {family:?}");
        }
        for (name, text, _) in samples() {
            for family in FAMILIES {
                assert_eq!(weigh(&text, family), weigh_slowly(&text, family), "{name} {family:?}");
            }
        }
    }

    #[test]
    fn the_text_of_a_json_string_costs_as_much_as_the_decoded_text() {
        for raw in [
            r#""\u65e5\ud83d\ude00x\ud83d aaa\u0061\n\n\n\\\\\\""#,
            r#""""#,
            r#""\u12""#,
            "\"",
            "\"\\\"",
            "5",
        ] {
            let cost = json::string(raw).map(|text| weigh(&text, Family::O200k));
            assert_eq!(weigh_json(raw, Family::O200k), cost, "{raw}");
        }
    }

    /// The samples whose estimate is not between 93 and 131 % of the count, and what it is in percent. `docs/accuracy.md`
    /// has the errors of whole kinds of text; that of a single sample of a thousand characters can be larger.
    const FAR: [(&str, Family, u64); 19] = [
        ("chinese-traditional", Family::O200k, 90),
        ("chinese-traditional", Family::Cl100k, 91),
        ("chinese-traditional", Family::Claude, 90),
        ("chinese-traditional", Family::Qwen, 86),
        ("chinese-traditional", Family::DeepSeek, 91),
        ("ukrainian", Family::O200k, 92),
        ("amharic", Family::Qwen, 147),
        ("box", Family::O200k, 137),
        ("box", Family::Cl100k, 132),
        ("box", Family::Claude, 142),
        ("box", Family::DeepSeek, 137),
        ("burmese", Family::O200k, 188),
        ("burmese", Family::Claude, 150),
        ("burmese", Family::DeepSeek, 139),
        ("russian", Family::O200k, 140),
        ("russian", Family::Qwen, 143),
        ("russian", Family::DeepSeek, 138),
        ("turkish", Family::O200k, 136),
        ("vietnamese", Family::Qwen, 142),
    ];

    #[test]
    fn every_sample_is_near_the_count_of_its_tokenizer() {
        let families =
            [Family::O200k, Family::Cl100k, Family::Claude, Family::Qwen, Family::DeepSeek];
        let mut wrong = Vec::new();
        for (name, text, counts) in samples() {
            for (family, count) in families.into_iter().zip(&counts) {
                let count = if family == Family::Claude { count * 110 / 100 } else { *count };
                let percent = weigh(&text, family).div_ceil(UNIT) * 100 / count;
                let far = FAR.iter().find(|far| (far.0, far.1) == (name.as_str(), family));
                let is_expected = match far {
                    Some((_, _, expected)) => percent.abs_diff(*expected) <= 1,
                    None => (93..=131).contains(&percent),
                };
                if !is_expected {
                    wrong.push(format!("{name}: {percent} % of the count for {family:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn the_estimate_for_an_unknown_model_is_near_the_largest_count() {
        for (name, text, counts) in samples() {
            let largest = counts.into_iter().max().unwrap();
            let percent = weigh(&text, Family::Unknown).div_ceil(UNIT) * 100 / largest;
            let most = if name == "box" { 153 } else { 137 };
            assert!((94..=most).contains(&percent), "{name}: {percent} % of the largest count");
        }
    }

    #[test]
    fn only_the_empty_text_and_a_single_space_are_free() {
        for family in FAMILIES {
            assert_eq!(weigh("", family), 0);
            for c in (0..=0x10_FFFF).step_by(13).filter_map(char::from_u32).chain('\0'..='\u{7f}') {
                assert!(c == ' ' || weigh(&c.to_string(), family) > 0, "{c:?} {family:?}");
            }
        }
    }

    #[test]
    fn a_run_of_a_character_costs_more_the_longer_it_is() {
        let others = ['\u{a0}', '°', 'é', 'ß', 'я', 'و', '。', '★', '中', '😀'];
        for family in FAMILIES {
            for c in ('\t'..='\n').chain(' '..='~').chain(others) {
                let cost = |count| weigh(&c.to_string().repeat(count), family);
                let (short, long) = (cost(1000), cost(2000));
                let least = match c {
                    _ if c.is_ascii_alphanumeric() => 8000,
                    _ if c.is_ascii() => 1000,
                    _ => 16_000,
                };
                assert!(long >= short + least, "{c:?} {family:?}: {short}, {long}");
            }
        }
    }

    #[test]
    fn each_family_has_its_own_table() {
        let numbers = "1234567890".repeat(50);
        let cost = |family| weigh(&numbers, family);
        // These tokenizers split numbers into digits, that of Llama into groups of three.
        for family in [Family::Qwen, Family::Mistral, Family::Gemini] {
            assert!(cost(family) > 2 * cost(Family::Llama), "{family:?}");
        }
        for (name, text, _) in samples() {
            let (old, new) = (weigh(&text, Family::Claude), weigh(&text, Family::NewerClaude));
            assert_eq!(new, (old * 130).div_ceil(100), "{name}");
        }
    }

    #[test]
    fn two_parts_of_a_text_weigh_about_as_much_as_the_whole() {
        for (name, text, _) in samples() {
            for family in FAMILIES {
                let whole = weigh(&text, family);
                for (at, _) in text.char_indices().step_by(31) {
                    let (head, tail) = text.split_at(at);
                    let (head, tail) = (weigh(head, family), weigh(tail, family));
                    assert!(head <= whole, "{name} cut at {at}");
                    assert!((head + tail).abs_diff(whole) < 6 * UNIT, "{name} cut at {at}");
                }
            }
        }
    }

    #[test]
    fn a_hash_costs_more_than_a_word_of_its_length() {
        let key = "aK9Xw2LmQ7vTz4RbN8cYp3Hd";
        let name = "configuration of the set";
        for family in FAMILIES {
            assert!(2 * weigh(key, family) > 3 * weigh(name, family), "{family:?}");
            assert!(weigh(" xkqzvwj", family) > weigh(" strings", family), "{family:?}");
        }
    }
}
