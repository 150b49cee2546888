//! The tokens of a text, estimated: a weight for each kind of run, added up in one pass.
//!
//! [`weigh`] answers in units of 1/64 token ([`UNIT`]). It needs no vocabulary. It is linear in the
//! length, deterministic, never panics, and is zero only for the empty text and for single spaces.
//! Cutting a text in two changes the sum by less than twenty tokens, unless the cut goes through a
//! run of hundreds of characters without a space that is half words and half keys.
//!
//! The weights are fitted against the *largest* count of five public tokenizers (o200k, cl100k, the
//! older Claude, Qwen3, DeepSeek-V3), because a prompt that turns out too large costs a failed call
//! and one that turns out small costs nothing. On the texts in `tests/data/estimate` the estimate
//! is never more than 5 % under that count, nor more than 40 % over it; a short text can be further
//! off. The texts and their counts are the test at the end of this file: after a change of weights
//! it says which kind of text came out wrong.
//!
//! What the kinds are:
//!
//! - A **word** is cut into pieces as in `camelCase`. A piece is about one token; letters beyond
//!   the fifth, letter pairs that English seldom has, and a missing space before it make it dearer.
//!   The pairs are what tells Dutch or `strcspn`, which come apart into many tokens, from plain
//!   English.
//! - A word with an **accented** letter is weighed as a whole: cutting it at its accents would
//!   misjudge Polish, Turkish and Vietnamese.
//! - A **dense** run is base64, a hash, a key: no words in it, so it is weighed by the character.
//! - **Other scripts** are weighed by the character, each with its own weight (`SCRIPTS`).

mod pairs;

/// The unit of [`weigh`]: this many make one token.
pub const UNIT: u64 = 64;

/// Hundredths of a token in units of [`UNIT`], rounded up.
const fn tokens(hundredths: u64) -> u64 {
    (hundredths * UNIT).div_ceil(100)
}

// The weights of ASCII text.
//
// They began as an earlier fit of the same kind and differ from it in six ways. Unusual letter
// pairs are new: without them Dutch, Indonesian and Welsh were up to a third under, and with them a
// word could weigh more and its length less. Capitals, spaces and newlines are lower, which takes
// SQL from 50 % over to 23 % and pretty JSON from 29 % to 14 %. Cyrillic, Han and Hangul are
// higher, for plain prose instead of short messages. Long runs of newlines, tabs and rules grow
// with their length. Symbols, joiners and variation selectors have each their own size. An unknown
// script is weighed by its bytes instead of 2.5 a character: that is the most that a byte-level
// tokenizer charges for one, and what it does charge for Amharic and Khmer.

/// A piece of a word, such as `read` or `Line`.
const WORD: u64 = tokens(100);
/// Each letter of a piece beyond [`WORD_SHORT`].
const WORD_LETTER: u64 = tokens(27);
const WORD_SHORT: u64 = 5;
/// Each pair of different neighbours in a piece that is not usual, see [`pairs`].
const UNUSUAL: u64 = tokens(118);
/// A piece all in capitals, such as `HTTP`.
const CAPITALS: u64 = tokens(72);
/// Each letter of it beyond [`CAPITALS_SHORT`].
const CAPITALS_LETTER: u64 = tokens(40);
const CAPITALS_SHORT: u64 = 2;
/// A piece that does not follow a space, which tokenizers would have taken along for nothing.
const GLUED: u64 = tokens(50);

/// A word with an accented Latin letter; each of its letters; each byte that its accents add.
const ACCENTED: u64 = tokens(216);
const ACCENTED_LETTER: u64 = tokens(37);
const ACCENT: u64 = tokens(10);

/// A run of digits; each digit (some tokenizers never join two).
const DIGITS: u64 = tokens(33);
const DIGIT: u64 = tokens(120);

/// A run of punctuation; each character of it beyond the first.
const PUNCTUATION: u64 = tokens(31);
const PUNCTUATION_MORE: u64 = tokens(36);
/// Four or more of one character of [`RULES`]; each eight of them.
const RULE: u64 = tokens(100);
const RULE_EIGHT: u64 = tokens(20);
const RULES: &[u8] = b"-=*#_./~";

/// Two or more spaces; each sixteen. A single space belongs to the word after it.
const SPACES: u64 = tokens(35);
const SPACES_SIXTEEN: u64 = tokens(13);
/// A run of newlines; each sixteen.
const NEWLINES: u64 = tokens(165);
const NEWLINES_SIXTEEN: u64 = tokens(100);
/// A run of tabs; each eight.
const TABS: u64 = tokens(115);
const TABS_EIGHT: u64 = tokens(100);
/// Each control character, carriage returns among them.
const CONTROL: u64 = tokens(100);

/// In a dense run: each character that is not a digit, the same if the run is hexadecimal, each
/// digit.
const DENSE: u64 = tokens(84);
const DENSE_HEX: u64 = tokens(170);
const DENSE_DIGIT: u64 = tokens(40);
/// The shortest dense run, and the length of the blocks in which a long one is judged.
const DENSE_SHORTEST: usize = 16;
const DENSE_BLOCK: usize = 64;

/// Arrows, mathematics, box drawing: each one, unless four or more of the same stand together.
const SYMBOL: u64 = tokens(168);
const SYMBOL_RULE: u64 = tokens(100);
const SYMBOL_RULE_EACH: u64 = tokens(20);
const SYMBOL_RULE_SHORTEST: u64 = 4;

/// Each byte of a character in no table.
const OTHER_BYTE: u64 = tokens(108);

/// First and last code point, and the weight of each character between: in ascending order.
static SCRIPTS: [(char, char, u64); 27] = [
    ('\u{00A0}', '\u{00BF}', tokens(130)),   // Latin signs
    ('\u{0370}', '\u{03FF}', tokens(140)),   // Greek
    ('\u{0400}', '\u{040F}', tokens(100)),   // Cyrillic, capitals that Russian lacks
    ('\u{0410}', '\u{044F}', tokens(73)),    // Cyrillic, the Russian letters
    ('\u{0450}', '\u{045F}', tokens(100)),   // Cyrillic, for Ukrainian, Serbian and others
    ('\u{0460}', '\u{052F}', tokens(320)),   // Cyrillic, for Kazakh, Mongolian and others
    ('\u{0530}', '\u{058F}', tokens(217)),   // Armenian
    ('\u{0590}', '\u{05FF}', tokens(121)),   // Hebrew
    ('\u{0600}', '\u{0652}', tokens(120)),   // Arabic
    ('\u{0653}', '\u{06FF}', tokens(200)),   // Arabic, for Persian, Urdu and others
    ('\u{0900}', '\u{097F}', tokens(141)),   // Devanagari
    ('\u{0980}', '\u{09FF}', tokens(218)),   // Bengali
    ('\u{0A00}', '\u{0B7F}', tokens(326)),   // Gurmukhi, Gujarati, Odia
    ('\u{0B80}', '\u{0BFF}', tokens(220)),   // Tamil
    ('\u{0C00}', '\u{0D7F}', tokens(244)),   // Telugu, Kannada, Malayalam
    ('\u{0D80}', '\u{0DFF}', tokens(219)),   // Sinhala
    ('\u{0E00}', '\u{0E7F}', tokens(186)),   // Thai
    ('\u{1000}', '\u{109F}', tokens(213)),   // Burmese
    ('\u{10A0}', '\u{10FF}', tokens(222)),   // Georgian
    ('\u{2000}', '\u{206F}', tokens(207)),   // dashes, quotes, joiners
    ('\u{3000}', '\u{303F}', tokens(102)),   // CJK punctuation
    ('\u{3040}', '\u{30FF}', tokens(103)),   // kana
    ('\u{4E00}', '\u{9FFF}', tokens(143)),   // Han
    ('\u{AC00}', '\u{D7A3}', tokens(155)),   // Hangul
    ('\u{FE00}', '\u{FE0F}', tokens(200)),   // variation selectors
    ('\u{FF00}', '\u{FFEF}', tokens(102)),   // full width forms
    ('\u{1F000}', '\u{1FAFF}', tokens(295)), // emoji
];

/// The estimated cost of `text` in units of 1/64 token.
pub fn weigh(text: &str) -> u64 {
    let mut scan = Scan { text, bytes: text.as_bytes(), at: 0, sparse_until: 0 };
    std::iter::from_fn(|| scan.run()).sum()
}

/// The kind of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Punctuation,
    Space,
    Newline,
    Tab,
    Control,
    /// Part of a character outside ASCII.
    Wide,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Wide; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'!'..=b'~' => Class::Punctuation,
            b' ' => Class::Space,
            b'\n' => Class::Newline,
            b'\t' => Class::Tab,
            _ => Class::Control,
        };
        byte += 1;
    }
    table
};

/// The alphabet of dense runs.
static DENSE_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-');
        byte += 1;
    }
    table
};

fn class(byte: u8) -> Class {
    CLASS[usize::from(byte)]
}

/// A position in a text, always on a character boundary; what takes a run moves past it.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Up to here the text is known not to be dense.
    sparse_until: usize,
}

impl Scan<'_> {
    /// Takes the next run, whatever it is, and weighs it.
    fn run(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        if let Some(weight) = self.dense() {
            return Some(weight);
        }
        Some(match class(byte) {
            Class::Lower | Class::Upper => self.word(),
            Class::Digit => DIGITS + DIGIT * self.take(|b| b.is_ascii_digit()),
            Class::Punctuation => self.punctuation(byte),
            Class::Space => match self.take(|b| b == b' ') {
                1 => 0,
                n => SPACES + SPACES_SIXTEEN * (n / 16),
            },
            Class::Newline => NEWLINES + NEWLINES_SIXTEEN * (self.take(|b| b == b'\n') / 16),
            Class::Tab => TABS + TABS_EIGHT * (self.take(|b| b == b'\t') / 8),
            Class::Control => CONTROL * self.take(|b| class(b) == Class::Control),
            Class::Wide => self.wide(),
        })
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// How many bytes from here on are `wanted`.
    fn ahead(&self, wanted: impl Fn(u8) -> bool) -> usize {
        self.rest().iter().take_while(|&&byte| wanted(byte)).count()
    }

    /// Takes the ASCII bytes that are `wanted` and returns their number.
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> u64 {
        let n = self.ahead(wanted);
        self.at += n;
        n as u64
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Takes the characters that are `wanted` and returns their number.
    fn take_chars(&mut self, wanted: impl Fn(char) -> bool) -> u64 {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut n = 0;
        for c in rest.chars().take_while(|&c| wanted(c)) {
            self.at += c.len_utf8();
            n += 1;
        }
        n
    }

    /// Takes a dense run, or the next block of one, if there is one here.
    ///
    /// A run is judged in blocks, so that a key after a long path is found, and so that no byte is
    /// looked at more than twice.
    fn dense(&mut self) -> Option<u64> {
        if self.at < self.sparse_until {
            return None;
        }
        let most = DENSE_BLOCK + DENSE_SHORTEST;
        let rest = self.rest();
        let run = rest.iter().take(most).take_while(|&&b| DENSE_BYTE[usize::from(b)]).count();
        let length = if run < most { run } else { DENSE_BLOCK };
        let weight = rest.get(..length).filter(|block| is_dense(block)).map(weigh_dense);
        match weight {
            Some(_) => self.at += length,
            None => self.sparse_until = self.at + length,
        }
        weight
    }

    fn word(&mut self) -> u64 {
        let end = self.at + self.ahead(|b| b.is_ascii_alphabetic());
        let wide = self.bytes.get(end).is_some_and(|&b| class(b) == Class::Wide);
        if wide && self.char_at(end).is_some_and(is_accented) {
            return self.accented_word();
        }
        let before = self.at.checked_sub(1).and_then(|i| self.bytes.get(i));
        let mut weight = if before == Some(&b' ') { 0 } else { GLUED };
        weight += self.piece();
        while self.at < end {
            weight += GLUED + self.piece();
        }
        weight
    }

    /// Takes capitals and the small letters after them.
    fn piece(&mut self) -> u64 {
        let start = self.at;
        let upper = self.take(|b| b.is_ascii_uppercase());
        let last_capital = self.at.saturating_sub(1).max(start);
        let lower = self.take(|b| b.is_ascii_lowercase());
        if lower == 0 {
            return CAPITALS + CAPITALS_LETTER * upper.saturating_sub(CAPITALS_SHORT);
        }
        let tail = self.bytes.get(last_capital..self.at).unwrap_or_default();
        WORD + WORD_LETTER * (upper + lower).saturating_sub(WORD_SHORT)
            + UNUSUAL * pairs::unusual(tail)
    }

    fn accented_word(&mut self) -> u64 {
        let start = self.at;
        let letters = self.take_chars(|c| c.is_ascii_alphabetic() || is_accented(c));
        let bytes = (self.at - start) as u64;
        ACCENTED + ACCENTED_LETTER * letters + ACCENT * bytes.saturating_sub(letters)
    }

    fn punctuation(&mut self, first: u8) -> u64 {
        if self.at_rule() {
            return RULE + RULE_EIGHT * (self.take(|b| b == first) / 8);
        }
        let mut more = 0;
        self.at += 1;
        while self.at_punctuation() && !self.at_rule() {
            self.at += 1;
            more += 1;
        }
        PUNCTUATION + PUNCTUATION_MORE * more
    }

    fn at_punctuation(&self) -> bool {
        self.bytes.get(self.at).is_some_and(|&b| class(b) == Class::Punctuation)
    }

    fn at_rule(&self) -> bool {
        match self.rest() {
            [a, b, c, d, ..] => [b, c, d] == [a; 3] && RULES.contains(a),
            _ => false,
        }
    }

    fn wide(&mut self) -> u64 {
        let Some(c) = self.char_at(self.at) else {
            self.at += 1; // Cannot be: the position is on a boundary. Moving on is safe anyway.
            return OTHER_BYTE;
        };
        if is_accented(c) {
            return self.accented_word();
        }
        if matches!(c, '\u{20A0}'..='\u{2BFF}') {
            return match self.take_chars(|d| d == c) {
                n if n < SYMBOL_RULE_SHORTEST => SYMBOL * n,
                n => SYMBOL_RULE + SYMBOL_RULE_EACH * n,
            };
        }
        let row = SCRIPTS.partition_point(|&(_, last, _)| last < c);
        match SCRIPTS.get(row) {
            Some(&(first, last, weight)) if first <= c => {
                weight * self.take_chars(|d| (first..=last).contains(&d))
            }
            _ => {
                self.at += c.len_utf8();
                OTHER_BYTE * c.len_utf8() as u64
            }
        }
    }
}

/// A Latin letter beyond ASCII, or a mark that combines with one.
fn is_accented(c: char) -> bool {
    matches!(c, '\u{C0}'..='\u{24F}' | '\u{300}'..='\u{36F}' | '\u{1E00}'..='\u{1EFF}')
        && !matches!(c, '×' | '÷')
}

/// No words in it: a change between small letters, capitals and digits at every fifth byte or more.
fn is_dense(block: &[u8]) -> bool {
    block.len() >= DENSE_SHORTEST && changes(block) * 5 >= block.len()
}

/// The changes between small letters, capitals and digits, but for the usual one of `Word`.
fn changes(block: &[u8]) -> usize {
    use Class::{Digit, Lower, Upper};
    let classes = block.iter().map(|&b| class(b));
    classes
        .clone()
        .zip(classes.skip(1))
        .filter(|pair| {
            matches!(pair, (Lower, Upper | Digit) | (Upper, Digit) | (Digit, Lower | Upper))
        })
        .count()
}

fn weigh_dense(block: &[u8]) -> u64 {
    let digits = block.iter().filter(|b| b.is_ascii_digit()).count() as u64;
    let others = block.len() as u64 - digits;
    let hex = block.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    DENSE_DIGIT * digits + others * if hex { DENSE_HEX } else { DENSE }
}

#[cfg(test)]
mod tests {
    use super::{UNIT, weigh};
    use std::fs;

    /// The texts with known counts: name, text, the largest count of the tokenizers.
    fn samples() -> Vec<(String, String, u64)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/estimate");
        let table = fs::read_to_string(format!("{folder}/counts.tsv")).unwrap();
        let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| {
            let name = row.split('\t').next().unwrap();
            let max = row.rsplit('\t').next().unwrap().parse().unwrap();
            (name.to_owned(), fs::read_to_string(format!("{folder}/{name}.txt")).unwrap(), max)
        })
        .collect()
    }

    fn rounded(text: &str) -> u64 {
        weigh(text).div_ceil(UNIT)
    }

    #[test]
    fn every_kind_of_text_is_near_the_largest_count() {
        let mut wrong = Vec::new();
        for (name, text, max) in samples() {
            let estimate = rounded(&text);
            if estimate * 100 < max * 95 || estimate * 100 > max * 140 {
                wrong.push(format!("{name}: {estimate}, counted {max}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_cut_changes_the_sum_by_less_than_twenty_tokens() {
        let limit = 20 * UNIT;
        for (name, text, _) in samples() {
            let whole = weigh(&text);
            for (at, _) in text.char_indices().step_by(31) {
                let (head, tail) = text.split_at(at);
                let parts = weigh(head) + weigh(tail);
                assert!(parts.abs_diff(whole) < limit, "{name} cut at {at}: {whole} or {parts}");
            }
        }
    }

    #[test]
    fn only_nothing_and_a_single_space_are_free() {
        assert_eq!(weigh(""), 0);
        assert_eq!(weigh(" "), 0);
        for text in
            ["  ", "\n", "\t", "\r", "\0", "\u{7f}", "a", "A", "0", ".", "é", "\u{301}", "я"]
        {
            assert!(weigh(text) > 0, "{text:?}");
        }
        for c in (0..=0x10_FFFF).step_by(13).filter_map(char::from_u32).filter(|&c| c != ' ') {
            assert!(weigh(&c.to_string()) > 0, "{c:?}");
        }
    }

    #[test]
    fn length_alone_breaks_nothing() {
        for unit in
            ["a", "A", "7", "-", "}", " ", "\n", "\t", "\u{1b}", "é", "中", "─", "😀", "aB3", "ሀ"]
        {
            let (short, long) = (weigh(&unit.repeat(5_000)), weigh(&unit.repeat(10_000)));
            assert!(short <= long && long <= 2 * short + 8 * UNIT, "{unit:?}: {short}, {long}");
        }
    }

    #[test]
    fn a_word_after_a_space_is_cheaper_than_one_that_is_glued() {
        assert!(weigh("read the line") < weigh("read_the_line"));
        assert!(weigh("readTheLine") > weigh("read the line"));
    }

    #[test]
    fn a_foreign_word_is_dearer_than_an_english_one() {
        assert!(weigh(" vrijheid") > weigh(" notation"));
        assert!(weigh(" strcspn") > weigh(" strings"));
    }

    #[test]
    fn a_key_is_dense_and_a_long_name_is_not() {
        let key = "aK9Xw2LmQ7vTz4RbN8cYp3Hd";
        let name = "configuration_of_the_set";
        assert_eq!(key.len(), name.len());
        assert!(2 * weigh(key) > 3 * weigh(name));
    }

    #[test]
    fn a_key_after_a_long_path_is_still_dense() {
        let path = "/var/lib/containers/storage/overlay/images/layers/metadata/blobs".repeat(2);
        let key = "aK9Xw2LmQ7vTz4RbN8cYp3Hd".repeat(8);
        let apart = weigh(&path) + weigh(&key);
        assert!(weigh(&format!("{path}{key}")).abs_diff(apart) < 20 * UNIT);
    }

    #[test]
    fn an_accent_makes_the_whole_word_accented() {
        assert!(weigh("Leuchtturmwärter") > weigh("Leuchtturmwarter") - 4 * UNIT);
        assert_eq!(weigh("état"), weigh("taté"));
    }

    #[test]
    fn an_unknown_script_costs_more_than_its_bytes() {
        for text in ["ⴰ", "ሀ", "ក", "𐌰"] {
            assert!(weigh(text) >= UNIT * text.len() as u64, "{text}");
        }
    }
}
