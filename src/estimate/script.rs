//! Estimates the tokens of a text. One pass divides it into runs, such as words and numbers, and adds up their weights.
//!
//! [`weigh`] returns units of 1/64 token ([`UNIT`]). It needs no vocabulary, takes linear time, is
//! deterministic and never panics. Only the empty text and single spaces weigh zero. Cutting a text in two
//! changes the sum by less than twenty tokens, unless the cut is in a run of hundreds of characters without a
//! space that mixes words and keys.
//!
//! The weights are fitted to the *largest* count of five public tokenizers (o200k, cl100k, the older Claude,
//! Qwen3, DeepSeek-V3): a prompt that is larger than estimated costs a failed call, one that is smaller costs
//! nothing. On the texts in `tests/data/estimate` the estimate is at most 5 % below that count and at most 40 % above
//! it; a short text can be further off. A test at the end of this file checks this: after a change of weights it names
//! the texts that are off.
//!
//! The kinds of runs:
//!
//! - A **word** is split into pieces as in `camelCase`. A piece costs about one token; letters after the
//!   fifth, letter pairs that are rare in English, and a missing space before the piece cost extra. The pairs
//!   distinguish plain English from Dutch or `strcspn`, which tokenizers split into many tokens.
//! - A word with an **accented** letter is weighed as a whole: splitting it at its accents would give wrong
//!   weights for Polish, Turkish and Vietnamese.
//! - A **dense** run is base64, a hash or a key. It has no words, so it is weighed per character.
//! - **Other scripts** are weighed per character, each script with its own weight (`SCRIPTS`).

mod pairs;

use std::cell::Cell;
use wide::u8x16;

/// The number of units in which [`weigh`] counts a token.
pub const UNIT: u64 = 64;

/// Converts hundredths of a token to units of [`UNIT`], rounded up.
const fn tokens(hundredths: u64) -> u64 {
    (hundredths * UNIT).div_ceil(100)
}

// The weights. A comment above several constants describes them in turn, separated by semicolons.
//
// Unusual letter pairs have a weight because without one the estimates for Dutch, Indonesian and Welsh were up
// to a third too low. Capitals, spaces and newlines weigh so little because higher weights overestimated SQL by
// 50 % instead of 23 %, and pretty-printed JSON by 29 % instead of 14 %. The weights of Cyrillic, Han and Hangul
// were fitted to plain prose; short messages gave lower ones. Characters of unknown scripts are weighed by their
// bytes: a byte-level tokenizer makes at most one token of each byte, and it does so for Amharic and Khmer.

/// A piece of a word, such as `read` or `Line`.
const WORD: u64 = tokens(100);
/// Each letter of a piece after the first [`WORD_SHORT`].
const WORD_LETTER: u64 = tokens(27);
const WORD_SHORT: u64 = 5;
/// Each unusual pair of different neighbours in a piece, see [`pairs`].
const UNUSUAL: u64 = tokens(118);
/// A piece all in capitals, such as `HTTP`.
const CAPITALS: u64 = tokens(72);
/// Each letter of such a piece after the first [`CAPITALS_SHORT`].
const CAPITALS_LETTER: u64 = tokens(40);
const CAPITALS_SHORT: u64 = 2;
/// A piece without a space before it. Tokenizers include a space in the token of the piece after it.
const GLUED: u64 = tokens(50);

/// A word with an accented Latin letter; each of its letters; each extra byte of its accented letters.
const ACCENTED: u64 = tokens(216);
const ACCENTED_LETTER: u64 = tokens(37);
const ACCENT: u64 = tokens(10);

/// A run of digits; each digit (some tokenizers give each digit a token).
const DIGITS: u64 = tokens(33);
const DIGIT: u64 = tokens(120);

/// A run of punctuation; each character of it after the first.
const PUNCTUATION: u64 = tokens(31);
const PUNCTUATION_MORE: u64 = tokens(36);
/// Four or more of the same character from [`RULES`]; each eight of them.
const RULE: u64 = tokens(100);
const RULE_EIGHT: u64 = tokens(20);
const RULES: &[u8] = b"-=*#_./~";

/// Two or more spaces; each sixteen of them. A single space belongs to the word after it.
const SPACES: u64 = tokens(35);
const SPACES_SIXTEEN: u64 = tokens(13);
/// A run of newlines; each sixteen of them.
const NEWLINES: u64 = tokens(165);
const NEWLINES_SIXTEEN: u64 = tokens(100);
/// A run of tabs; each eight of them.
const TABS: u64 = tokens(115);
const TABS_EIGHT: u64 = tokens(100);
/// Each control character, including carriage returns.
const CONTROL: u64 = tokens(100);

/// The characters of a dense run: each one that is not a digit; each one that is not a digit in a hexadecimal
/// run; each digit.
const DENSE: u64 = tokens(84);
const DENSE_HEX: u64 = tokens(170);
const DENSE_DIGIT: u64 = tokens(40);
/// The minimum length of a dense run, and the length of the blocks in which a long one is judged, both in
/// bytes.
const DENSE_SHORTEST: usize = 16;
const DENSE_BLOCK: usize = 64;

/// Arrows, mathematics and box drawing: each character; a run of four or more of the same one; each character
/// of such a run.
const SYMBOL: u64 = tokens(168);
const SYMBOL_RULE: u64 = tokens(100);
const SYMBOL_RULE_EACH: u64 = tokens(20);
const SYMBOL_RULE_SHORTEST: u64 = 4;

/// Each byte of a character that is in no table.
const OTHER_BYTE: u64 = tokens(108);

/// The first and last code point of a range, and the weight of each of its characters; in ascending order.
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

/// Returns the estimated cost of `text` in units of 1/64 token.
pub fn weigh(text: &str) -> u64 {
    let mut scan = TextScan { text, bytes: text.as_bytes(), at: 0, sparse_until: 0 };
    std::iter::from_fn(|| scan.run()).sum()
}

/// The kind of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
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

static CLASS: [ByteClass; 256] = {
    let mut table = [ByteClass::Wide; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' => ByteClass::Lower,
            b'A'..=b'Z' => ByteClass::Upper,
            b'0'..=b'9' => ByteClass::Digit,
            b'!'..=b'~' => ByteClass::Punctuation,
            b' ' => ByteClass::Space,
            b'\n' => ByteClass::Newline,
            b'\t' => ByteClass::Tab,
            _ => ByteClass::Control,
        };
        byte += 1;
    }
    table
};

/// The bytes that a dense run can contain.
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

fn class(byte: u8) -> ByteClass {
    CLASS[usize::from(byte)]
}

/// The base-2 logarithm of the number of words in [`KNOWN`].
const KNOWN_BITS: u32 = 11;

thread_local! {
    /// A cache of words of one to eight letters, stored as numbers, with the weights of their pieces. Most words of a
    /// text occur more than once, so the cache saves a fifth of the weighing time.
    static KNOWN: [Cell<(u64, u64)>; 1 << KNOWN_BITS] =
        const { [const { Cell::new((0, 0)) }; 1 << KNOWN_BITS] };
}

/// The kinds of the next bytes of a text. Each number has one bit for each byte, the first byte in the lowest bit.
/// Finding the end of a word in these bits takes half as long as examining the bytes one by one.
#[derive(Clone, Copy, Default)]
struct NextKinds {
    lower: u32,
    upper: u32,
    /// The bytes that a dense run can contain.
    dense: u32,
}

impl NextKinds {
    /// The number of bytes.
    const BYTES: usize = 16;

    #[inline]
    fn of(rest: &[u8]) -> NextKinds {
        let bytes = u8x16::new(rest.first_chunk().copied().unwrap_or_else(|| {
            let mut chunk = [0; NextKinds::BYTES];
            chunk[..rest.len()].copy_from_slice(rest);
            chunk
        }));
        let between = |first: u8, last: u8| {
            let from_first = bytes - u8x16::splat(first);
            from_first.min(u8x16::splat(last - first)).simd_eq(from_first)
        };
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        let (lower, upper) = (between(b'a', b'z'), between(b'A', b'Z'));
        let signs = is(b'+') | is(b'/') | is(b'=') | is(b'_') | is(b'-');
        let dense = lower | upper | between(b'0', b'9') | signs;
        NextKinds {
            lower: lower.to_bitmask(),
            upper: upper.to_bitmask(),
            dense: dense.to_bitmask(),
        }
    }

    /// Returns the kinds without the first `count` bytes.
    fn after(self, count: u32) -> NextKinds {
        NextKinds {
            lower: self.lower >> count,
            upper: self.upper >> count,
            dense: self.dense >> count,
        }
    }
}

/// A position in a text, always on a character boundary; taking a run moves it past the run.
struct TextScan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The text before this position is known not to be dense.
    sparse_until: usize,
}

impl TextScan<'_> {
    /// Takes the next run and returns its weight.
    fn run(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        let kinds = DENSE_BYTE[usize::from(byte)].then(|| NextKinds::of(self.rest()));
        if let Some(weight) = kinds.and_then(|kinds| self.dense(kinds)) {
            return Some(weight);
        }
        Some(match class(byte) {
            ByteClass::Lower | ByteClass::Upper => self.word(kinds.unwrap_or_default()),
            ByteClass::Digit => DIGITS + DIGIT * self.take(|b| b.is_ascii_digit()),
            ByteClass::Punctuation => self.punctuation(byte),
            ByteClass::Space => match self.take(|b| b == b' ') {
                1 => 0,
                n => SPACES + SPACES_SIXTEEN * (n / 16),
            },
            ByteClass::Newline => NEWLINES + NEWLINES_SIXTEEN * (self.take(|b| b == b'\n') / 16),
            ByteClass::Tab => TABS + TABS_EIGHT * (self.take(|b| b == b'\t') / 8),
            ByteClass::Control => CONTROL * self.take(|b| class(b) == ByteClass::Control),
            ByteClass::Wide => self.wide(),
        })
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Counts the `wanted` bytes from the current position on.
    fn ahead(&self, wanted: impl Fn(u8) -> bool) -> usize {
        self.rest().iter().take_while(|&&byte| wanted(byte)).count()
    }

    /// Takes the `wanted` ASCII bytes and returns their number.
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> u64 {
        let n = self.ahead(wanted);
        self.at += n;
        n as u64
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Takes the `wanted` characters and returns their number.
    fn take_chars(&mut self, wanted: impl Fn(char) -> bool) -> u64 {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut n = 0;
        for c in rest.chars().take_while(|&c| wanted(c)) {
            self.at += c.len_utf8();
            n += 1;
        }
        n
    }

    /// Takes a dense run, or the next block of one, if the text continues with one.
    ///
    /// A run is judged in blocks, so that a key after a long path is recognised and no byte is examined more
    /// than twice.
    fn dense(&mut self, next: NextKinds) -> Option<u64> {
        if self.at < self.sparse_until {
            return None;
        }
        let run = next.dense.trailing_ones() as usize;
        if run < DENSE_SHORTEST {
            self.sparse_until = self.at + run;
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

    fn word(&mut self, next: NextKinds) -> u64 {
        let letters = match (next.lower | next.upper).trailing_ones() as usize {
            NextKinds::BYTES => self.ahead(|b| b.is_ascii_alphabetic()),
            fewer => fewer,
        };
        let end = self.at + letters;
        let wide = self.bytes.get(end).is_some_and(|&b| class(b) == ByteClass::Wide);
        if wide && self.char_at(end).is_some_and(is_accented) {
            return self.accented_word();
        }
        let before = self.at.checked_sub(1).and_then(|i| self.bytes.get(i));
        let mut weight = if before == Some(&b' ') { 0 } else { GLUED };
        if letters < NextKinds::BYTES {
            return weight + self.known_pieces(next, end);
        }
        weight += self.piece();
        while self.at < end {
            weight += GLUED + self.piece();
        }
        weight
    }

    /// Takes the pieces of a word as [`TextScan::pieces`] does, and remembers the weight if the word is short.
    fn known_pieces(&mut self, next: NextKinds, end: usize) -> u64 {
        let length = end - self.at;
        let first = self.rest().first_chunk().filter(|_| length <= size_of::<u64>());
        let Some(first) = first else { return self.pieces(next, end) };
        let word = u64::from_le_bytes(*first) & (u64::MAX >> (64 - 8 * length));
        // The upper bits of the product depend on all letters.
        let place = (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - KNOWN_BITS)) as usize;
        KNOWN.with(|known| {
            let (known_word, weight) = known[place].get();
            if known_word == word {
                self.at = end;
                return weight;
            }
            let weight = self.pieces(next, end);
            known[place].set((word, weight));
            weight
        })
    }

    /// Takes the pieces of a word that ends at `end`, and returns their weight. `next` has the kinds of its bytes.
    fn pieces(&mut self, mut next: NextKinds, end: usize) -> u64 {
        let mut weight = 0;
        loop {
            let upper = next.upper.trailing_ones();
            let lower = (next.lower >> upper).trailing_ones();
            weight += self.piece_of(u64::from(upper), u64::from(lower));
            if self.at >= end {
                return weight;
            }
            next = next.after(upper + lower);
            weight += GLUED;
        }
    }

    /// Takes capitals and the lower-case letters after them.
    fn piece(&mut self) -> u64 {
        let upper = self.ahead(|b| b.is_ascii_uppercase());
        let after = self.rest().get(upper..).unwrap_or_default();
        let lower = after.iter().take_while(|b| b.is_ascii_lowercase()).count();
        self.piece_of(upper as u64, lower as u64)
    }

    /// Takes a piece of `upper` capitals and `lower` lower-case letters after them, and returns its weight.
    fn piece_of(&mut self, upper: u64, lower: u64) -> u64 {
        let last_capital = self.at + upper.saturating_sub(1) as usize;
        self.at += (upper + lower) as usize;
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
        self.bytes.get(self.at).is_some_and(|&b| class(b) == ByteClass::Punctuation)
    }

    fn at_rule(&self) -> bool {
        match self.rest() {
            [a, b, c, d, ..] => [b, c, d] == [a; 3] && RULES.contains(a),
            _ => false,
        }
    }

    fn wide(&mut self) -> u64 {
        let Some(c) = self.char_at(self.at) else {
            self.at += 1; // Unreachable, because the position is on a boundary; skipping a byte is safe.
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

/// Returns true for a Latin letter outside ASCII, or a mark that combines with a letter.
fn is_accented(c: char) -> bool {
    matches!(c, '\u{C0}'..='\u{24F}' | '\u{300}'..='\u{36F}' | '\u{1E00}'..='\u{1EFF}')
        && !matches!(c, '×' | '÷')
}

/// Returns true if a block has no words: on average, at least one in five bytes is followed by a change between
/// lower case, upper case and digits.
fn is_dense(block: &[u8]) -> bool {
    block.len() >= DENSE_SHORTEST && changes(block) * 5 >= block.len()
}

/// Counts the changes between lower case, upper case and digits, except from upper to lower case, as in `Word`.
fn changes(block: &[u8]) -> usize {
    use ByteClass::{Digit, Lower, Upper};
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

    /// Returns the texts with known counts: name, text, and the largest count of the tokenizers.
    fn samples() -> Vec<(String, String, u64)> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/estimate");
        let table = fs::read_to_string(format!("{directory}/counts.tsv")).unwrap();
        let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| {
            let name = row.split('\t').next().unwrap();
            let max = row.rsplit('\t').next().unwrap().parse().unwrap();
            (name.to_owned(), fs::read_to_string(format!("{directory}/{name}.txt")).unwrap(), max)
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
    fn only_the_empty_text_and_a_single_space_are_free() {
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
    fn weight_grows_with_length_and_at_most_linearly() {
        for unit in
            ["a", "A", "7", "-", "}", " ", "\n", "\t", "\u{1b}", "é", "中", "─", "😀", "aB3", "ሀ"]
        {
            let (short, long) = (weigh(&unit.repeat(5_000)), weigh(&unit.repeat(10_000)));
            assert!(short <= long && long <= 2 * short + 8 * UNIT, "{unit:?}: {short}, {long}");
        }
    }

    /// A word has the same weight each time, also after other words that take its place in the cache.
    #[test]
    fn the_weight_of_a_word_does_not_depend_on_the_words_before_it() {
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".as_bytes();
        let letter = |n: usize| char::from(letters[n % letters.len()]);
        let word = |n: usize| (0..=n % 9).map(|i| letter(n * 7 + i * i * 31 + n / 50)).collect();
        let words: Vec<String> = (0..20_000).map(word).collect();
        // At the end of the text, a word of fewer than eight letters is not looked up.
        let alone: Vec<u64> = words.iter().map(|word| weigh(word)).collect();
        for _ in 0..2 {
            let within = |word: &String| weigh(&format!("{word}          ")) - weigh("          ");
            let again: Vec<u64> = words.iter().map(within).collect();
            assert!(again == alone);
        }
    }

    #[test]
    fn a_word_after_a_space_is_cheaper_than_one_without() {
        assert!(weigh("read the line") < weigh("read_the_line"));
        assert!(weigh("readTheLine") > weigh("read the line"));
    }

    #[test]
    fn a_foreign_word_costs_more_than_an_english_one() {
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
    fn an_accent_applies_to_the_whole_word() {
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
