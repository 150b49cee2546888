//! The weights of pairs of ASCII characters.
//!
//! Most characters of a transcript are ASCII and follow an ASCII character. With a table for such pairs, the weight of a
//! character takes one look-up instead of two that depend on each other, and 16 characters are read at once. The escapes
//! of JSON are read on the way, most of them without a branch, because a branch for each would often be mispredicted.
//! With vectors of 16 bytes, an estimate takes two thirds of the time that it takes with 8 bytes in an integer.

use super::weights::{ASCII, GROUP};
use super::{Table, least_for_repeated};
use wide::u8x16;

/// The number of pairs of bytes.
const COUNT: usize = 1 << 16;
/// The number of bytes that are read at once.
const STEP: usize = 16;
/// The number of bytes before these that decide whether they belong to escapes.
const BEFORE: usize = 2;
/// These bytes, and the one after them, which can be the letter of an escape.
type Window = [u8; BEFORE + STEP + 1];

/// The letters of the escapes that are read here, and their characters.
const ESCAPES: [(u8, u8); 8] = [
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b'/', b'/'),
    (b'b', 0x08),
    (b'f', 0x0C),
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
];

/// The weights of a family.
///
/// The index of a weight is a pair of bytes as a little-endian number. A byte with the highest bit set is not a character,
/// or it stands for an escape; see [`codes`].
pub(super) struct Pairs(Box<[u8; COUNT]>);

impl Pairs {
    pub(super) fn new(table: &Table) -> Pairs {
        let mut weights = Box::new([0; COUNT]);
        let plain = || (0..1 << 7).map(|byte| (byte, byte));
        let escaped = |code: fn(u8) -> u8| ESCAPES.map(|(letter, byte)| (code(letter), byte));
        for (before_code, before) in plain().chain(escaped(of_letter)) {
            let row = &table[usize::from(GROUP[usize::from(ASCII[usize::from(before)])])];
            for (code, byte) in plain().chain(escaped(of_backslash)) {
                let least = if byte == before { least_for_repeated(char::from(byte)) } else { 0 };
                let weight = row[usize::from(ASCII[usize::from(byte)])].max(least);
                weights[usize::from(code) << 8 | usize::from(before_code)] = weight;
            }
        }
        Pairs(weights)
    }

    /// Weighs the ASCII characters of `text` from the offset `at` on, which follow the character `before`. If `ESCAPED` is
    /// true, the text has the escapes of JSON, and only those of one letter are read. Returns the offset after what was
    /// read, and its weight, and updates `before`.
    pub(super) fn weigh<const ESCAPED: bool>(
        &self,
        text: &[u8],
        mut at: usize,
        before: &mut u8,
    ) -> (usize, u64) {
        let (mut sum, mut last) = (0, *before);
        loop {
            let padded;
            let window = match at.checked_sub(BEFORE).and_then(|from| text[from..].first_chunk()) {
                Some(window) => window,
                None => {
                    padded = padded_window(text, at);
                    &padded
                }
            };
            let (codes, stops) = codes::<ESCAPED>(window);
            if stops == 0 {
                sum += self.weigh_codes(codes, &mut last);
                at += STEP;
                continue;
            }
            let count = stops.trailing_zeros() as usize;
            for code in &codes[..count] {
                sum += self.pair(u64::from(*code) << 8 | u64::from(last));
                last = *code;
            }
            at += count;
            let Some(c) = escape::<ESCAPED>(&text[at..]) else { break };
            sum += self.pair(u64::from(c) << 8 | u64::from(last));
            last = c;
            at += 2;
        }
        *before = character(last);
        (at, sum)
    }

    /// Returns the weight of `codes` after the code `last`, and updates that.
    #[inline(always)]
    fn weigh_codes(&self, codes: [u8; STEP], last: &mut u8) -> u64 {
        let mut sum = 0;
        for eight in codes.as_chunks::<8>().0 {
            let own = u64::from_le_bytes(*eight);
            let pairs = own << 8 | u64::from(*last);
            // The last of the eight pairs is not in `pairs`.
            sum += (0..7).map(|at| self.pair(pairs >> (8 * at))).sum::<u64>();
            sum += self.pair(own >> 48);
            *last = (own >> 56) as u8;
        }
        sum
    }

    /// Returns the weight of the pair in the two lowest bytes of `pairs`.
    #[inline(always)]
    fn pair(&self, pairs: u64) -> u64 {
        u64::from(self.0[pairs as usize % COUNT])
    }
}

/// Returns the byte that stands for the backslash of an escape. It is weighed as the character of the escape.
const fn of_backslash(letter: u8) -> u8 {
    letter | 0x80
}

/// Returns the byte that stands for the letter of an escape. It has no weight, and the byte after it is weighed as after
/// the character of the escape.
const fn of_letter(letter: u8) -> u8 {
    letter ^ 0x60 | 0x80
}

/// Returns the character for which `byte` stands: itself, or that of an escape whose letter it stands for.
fn character(byte: u8) -> u8 {
    let escape = ESCAPES.iter().find(|(letter, _)| of_letter(*letter) == byte);
    escape.map_or(byte, |(_, character)| *character)
}

/// Returns the codes of the bytes in the middle of a window. A byte that is not part of an escape is its own code; those
/// of an escape have the codes of its backslash and its letter. For `a\nb`, the codes are `a`, [`of_backslash`] of `n`,
/// which has the weight of a line feed after `a`, [`of_letter`] of `n`, which has none, and `b`, which is weighed as after
/// a line feed.
///
/// Also returns a mask of the bytes that are not read here, with the first byte in the lowest bit: those that are not
/// ASCII, the backslash of an escape of several letters, and the third of several backslashes in a row, because whether
/// it begins an escape depends on how many there are. Codes after one of these may be wrong.
#[inline(always)]
fn codes<const ESCAPED: bool>(window: &Window) -> ([u8; STEP], u32) {
    let bytes =
        |from: usize| window[from..].first_chunk().map_or(u8x16::ZERO, |it| u8x16::from(*it));
    let own = bytes(BEFORE);
    if !ESCAPED {
        return (own.to_array(), own.to_bitmask());
    }
    let next = bytes(BEFORE + 1);
    let is = |bytes: u8x16, byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let [two_before, before, this] = [0, 1, BEFORE].map(|from| is(bytes(from), b'\\'));
    let (begins, letters) = (this & !before, before & !two_before);
    let unread = own | begins & (is(next, b'u') | next) | this & before & two_before;
    let moved = begins.bitselect(next, own) ^ letters & u8x16::splat(0x60);
    let codes = moved | (begins | letters) & u8x16::splat(0x80);
    (codes.to_array(), unread.to_bitmask())
}

/// Returns the window of the bytes from `at` on, with other bytes before the beginning and after the end of the text.
/// Those at the end are not ASCII.
#[cold]
fn padded_window(text: &[u8], at: usize) -> Window {
    let mut window = [0x80; _];
    let begin = BEFORE - at.min(BEFORE);
    let own = &text[at + begin - BEFORE..];
    let count = own.len().min(window.len() - begin);
    window[begin..begin + count].copy_from_slice(&own[..count]);
    window
}

/// Returns the character of the escape of one letter at the beginning of a text.
fn escape<const ESCAPED: bool>(text: &[u8]) -> Option<u8> {
    let [b'\\', letter, ..] = text else { return None };
    let (_, own) = ESCAPES.iter().find(|(known, _)| ESCAPED && known == letter)?;
    Some(*own)
}
