//! The weights of pairs of ASCII characters.
//!
//! Most characters of a transcript are ASCII and follow an ASCII character. With a table for such pairs, the weight of a
//! character takes one look-up instead of two that depend on each other, and eight characters are read at once. Together
//! with escapes that are read here instead of being decoded first, that halves the time of the estimate.

use super::weights::{ASCII, GROUP};
use super::{Table, least_in_run};

/// The number of pairs of bytes.
const COUNT: usize = 1 << 16;
/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;
/// Eight backslashes.
const BACKSLASHES: u64 = (HIGH >> 7) * b'\\' as u64;

/// The weights of a family.
pub(super) struct Pairs {
    /// The weight of each pair of bytes. The index is the pair as a little-endian number. A pair with a byte that is not
    /// ASCII has no weight.
    weights: Box<[u8; COUNT]>,
    /// The weight to add for each character that is in a run.
    in_run: [u8; ASCII.len()],
}

/// The two ASCII characters before a text; the newer one is the second.
pub(super) type Before = [u8; 2];

impl Pairs {
    pub(super) fn new(table: &Table) -> Pairs {
        let mut weights = Box::new([0; COUNT]);
        for (row, second) in weights.chunks_exact_mut(1 << 8).zip(ASCII) {
            for (weight, first) in row.iter_mut().zip(ASCII) {
                *weight = table[usize::from(GROUP[usize::from(first)])][usize::from(second)];
            }
        }
        let extra = |at: usize| {
            let least = least_in_run(char::from(at as u8));
            least.saturating_sub(weights[at << 8 | at])
        };
        Pairs { in_run: std::array::from_fn(extra), weights }
    }

    /// Weighs the ASCII characters at the beginning of a text that follows `before`. If `ESCAPED` is true, the text has
    /// the escapes of JSON, and only those of one letter are read. Returns the length and the weight of what was read, and
    /// updates `before`.
    pub(super) fn weigh<const ESCAPED: bool>(
        &self,
        text: &[u8],
        before: &mut Before,
    ) -> (usize, u64) {
        let (mut sum, mut rest, [mut two_before, mut before_it]) = (0, text, *before);
        loop {
            let own = word(rest);
            let mut stops = own & HIGH;
            if ESCAPED {
                stops |= zeros(own ^ BACKSLASHES);
            }
            // All bits before the first byte that is not read here. A branch for each length would often be mispredicted.
            let stop = stops & stops.wrapping_neg();
            let read = (stop >> 7).wrapping_sub(1);
            let own = own & read | HIGH & !read;
            let before = own << 8 | u64::from(before_it);
            let twice_before = before << 8 | u64::from(two_before);
            // The last of the eight pairs is not in `before`.
            sum +=
                (0..7).map(|at| self.pair(before >> (8 * at))).sum::<u64>() + self.pair(own >> 48);
            let mut runs = zeros((own ^ before) | (own ^ twice_before)) & read;
            while runs != 0 {
                sum += self.extra((own >> (runs.trailing_zeros() / 8 * 8)) as u8);
                runs &= runs - 1;
            }
            if stop == 0 {
                [two_before, before_it] = [(own >> 48) as u8, (own >> 56) as u8];
                rest = &rest[8..];
                continue;
            }
            let bits = stop.trailing_zeros() / 8 * 8;
            [two_before, before_it] = [(twice_before >> bits) as u8, (before >> bits) as u8];
            rest = &rest[bits as usize / 8..];
            let Some((own, next)) = escape::<ESCAPED>(rest) else { break };
            sum += self.pair(u64::from(own) << 8 | u64::from(before_it));
            if [two_before, before_it] == [own; 2] {
                sum += self.extra(own);
            }
            ([two_before, before_it], rest) = ([before_it, own], next);
        }
        *before = [two_before, before_it];
        (text.len() - rest.len(), sum)
    }

    /// Returns the weight of the pair in the two lowest bytes of `pairs`.
    #[inline(always)]
    fn pair(&self, pairs: u64) -> u64 {
        u64::from(self.weights[pairs as usize % COUNT])
    }

    fn extra(&self, own: u8) -> u64 {
        u64::from(self.in_run[usize::from(own) % ASCII.len()])
    }
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

/// Returns the highest bit of each byte that is zero. It is wrong only for bytes after one that is not ASCII.
#[inline(always)]
fn zeros(bytes: u64) -> u64 {
    // Adding 0x7F carries into the highest bit of every other byte.
    !bytes.wrapping_add(!HIGH) & HIGH
}

/// Returns the character of the escape of one letter at the beginning of a text, and the text after it.
fn escape<const ESCAPED: bool>(text: &[u8]) -> Option<(u8, &[u8])> {
    let [b'\\', letter, rest @ ..] = text else { return None };
    let own = match letter {
        _ if !ESCAPED => return None,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'"' | b'\\' | b'/' => *letter,
        _ => return None,
    };
    Some((own, rest))
}
