//! The weights of pairs of ASCII characters.
//!
//! Most characters of a transcript are ASCII and follow an ASCII character. With a table for such pairs, the weight of a
//! character takes one look-up instead of two that depend on each other, and eight characters are read at once. The
//! escapes of JSON are read on the way, most of them without a branch, because a branch for each would often be
//! mispredicted. Reading the escapes without branches takes three quarters of the time of doing it with them.

use super::weights::{ASCII, GROUP};
use super::{Table, least_for_repeated};

/// The number of pairs of bytes.
const COUNT: usize = 1 << 16;
/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;
/// The highest bit of the last byte.
const HIGH_OF_LAST: u64 = 1 << 63;

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
/// or it stands for an escape; see [`with_escapes`].
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

    /// Weighs the ASCII characters at the beginning of a text that follows the character `before`. If `ESCAPED` is true,
    /// the text has the escapes of JSON, and only those of one letter are read. Returns the length and the weight of what
    /// was read, and updates `before`.
    pub(super) fn weigh<const ESCAPED: bool>(&self, text: &[u8], before: &mut u8) -> (usize, u64) {
        let (mut sum, mut rest, mut last) = (0, text, *before);
        loop {
            let mut own = word(rest);
            let mut stops = own & HIGH;
            if ESCAPED {
                let unread;
                (own, unread) = with_escapes(own);
                stops |= unread;
            }
            // All bits before the first byte that is not read here.
            let stop = stops & stops.wrapping_neg();
            let read = (stop >> 7).wrapping_sub(1);
            let own = own & read | HIGH & !read;
            let before = own << 8 | u64::from(last);
            // The last of the eight pairs is not in `before`.
            sum +=
                (0..7).map(|at| self.pair(before >> (8 * at))).sum::<u64>() + self.pair(own >> 48);
            if stop == 0 {
                last = (own >> 56) as u8;
                rest = &rest[8..];
                continue;
            }
            let bits = stop.trailing_zeros() / 8 * 8;
            last = (before >> bits) as u8;
            rest = &rest[bits as usize / 8..];
            let Some((own, next)) = escape::<ESCAPED>(rest) else { break };
            sum += self.pair(u64::from(own) << 8 | u64::from(last));
            (last, rest) = (own, next);
        }
        *before = character(last);
        (text.len() - rest.len(), sum)
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

/// Replaces the bytes of escapes with those that stand for their backslashes and letters. Also returns the highest bit of
/// the backslash of each escape that is not read: one of several letters, the second of two backslashes in a row that both
/// begin escapes, and one in the last byte, whose letter is not known. Bytes after one that is not ASCII may be wrong.
#[inline(always)]
fn with_escapes(bytes: u64) -> (u64, u64) {
    let all = equal(bytes, b'\\');
    let begins = all & !(all << 8);
    let letters = begins << 8;
    let third = all & all << 8 & all << 16;
    let unread = (letters & (equal(bytes, b'u') | bytes)) >> 8 | third | begins & HIGH_OF_LAST;
    let whole = (begins << 1).wrapping_sub(begins >> 7);
    let moved = bytes & !whole | bytes >> 8 & whole;
    (moved ^ (letters >> 1 | letters >> 2) | begins | letters, unread)
}

/// Returns the first eight bytes of a text, the first in the lowest byte. After the end of the text, they are not ASCII.
#[inline(always)]
fn word(text: &[u8]) -> u64 {
    let bytes = text.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0x80; 8];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    });
    u64::from_le_bytes(bytes)
}

/// Returns the highest bit of each byte that is equal to `byte`. It may be wrong for bytes that are not
/// ASCII, and for those after them.
#[inline(always)]
fn equal(bytes: u64, byte: u8) -> u64 {
    let others = bytes ^ ((HIGH >> 7) * u64::from(byte));
    // Adding 0x7F carries into the highest bit of every byte that is not zero.
    !others.wrapping_add(!HIGH) & HIGH
}

/// Returns the character of the escape of one letter at the beginning of a text, and the text after it.
fn escape<const ESCAPED: bool>(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'\\', letter, rest @ ..] = text else { return None };
    let (_, own) = ESCAPES.iter().find(|(known, _)| ESCAPED && known == letter)?;
    Some((*own, rest))
}
