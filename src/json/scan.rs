//! The fast path through JSON text: finds where a value ends, strictly by the grammar, without decoding.
//!
//! It accepts only what serde_json accepts. At anything else (white space other than spaces, nesting
//! deeper than 63 levels, any error), it gives up, and the caller uses serde_json. Most of a transcript is
//! inside long strings, which are skipped 64 bytes at a time. That makes it several times as fast as a parser
//! that examines each byte.

use crate::simd::{self, Marks, STEP, Walk};
use wide::u8x16;

/// JSON text that is being scanned.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    /// True after an escaped surrogate, paired or lone.
    has_surrogates: bool,
}

/// The deepest nesting; each level takes one bit of a `u64` in [`Scan::value`].
const MAX_DEPTH: u32 = 63;

impl<'a> Scan<'a> {
    /// Returns a scan of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Scan<'a> {
        if text.len() > LONG {
            simd::detect();
        }
        Scan { bytes: text.as_bytes(), has_surrogates: false }
    }

    /// Returns a scan of `text` for a caller that makes many scans. Checking for vector instructions then pays off even
    /// if each text is short.
    #[must_use]
    pub fn of_many(text: &'a str) -> Scan<'a> {
        simd::detect();
        Scan::new(text)
    }

    /// Returns true if the scanned part contains an escaped surrogate.
    #[must_use]
    pub fn has_surrogates(&self) -> bool {
        self.has_surrogates
    }

    fn at(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Skips spaces from `at` on.
    #[must_use]
    pub fn blanks(&self, mut at: usize) -> usize {
        while self.at(at) == Some(b' ') {
            at += 1;
        }
        at
    }

    /// Skips spaces and then `byte`.
    #[must_use]
    pub fn token(&self, at: usize, byte: u8) -> Option<usize> {
        let at = self.blanks(at);
        (self.at(at) == Some(byte)).then_some(at + 1)
    }

    /// Returns the end of the string whose opening quote is at `at`.
    pub fn string(&mut self, at: usize) -> Option<usize> {
        let start = self.at(at).filter(|byte| *byte == b'"').map(|_| at + 1)?;
        // Names and ids are usually short, without escapes.
        let special = u32::from(special(self.bytes, start));
        if special == 0 {
            return self.rest_of_string(start + SHORT);
        }
        let found = start + special.trailing_zeros() as usize;
        if self.at(found)? == b'"' { Some(found + 1) } else { self.rest_of_string(start) }
    }

    /// Returns the end of the string whose opening quote is at `at`, and true if it has escapes.
    #[inline]
    pub fn name(&mut self, at: usize) -> Option<(usize, bool)> {
        let start = self.at(at).filter(|byte| *byte == b'"').map(|_| at + 1)?;
        let special = u32::from(special(self.bytes, start));
        let found = start + special.trailing_zeros() as usize;
        if special != 0 && self.at(found)? == b'"' {
            return Some((found + 1, false));
        }
        let end = self.rest_of_string(start)?;
        Some((end, self.bytes[start..end].contains(&b'\\')))
    }

    /// Returns the end of the string that `at` is in.
    fn rest_of_string(&mut self, at: usize) -> Option<usize> {
        simd::with_known(RestOfString { scan: self, at })
    }

    /// Checks the four digits of an escaped code unit, and records whether it is a surrogate.
    fn unit(&mut self, at: usize) -> Option<()> {
        let digits = self.bytes.get(at..at + 4)?;
        self.has_surrogates |= digits[0] | 0x20 == b'd' && !matches!(digits[1], b'0'..=b'7');
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())
    }

    /// Returns the end of the value that begins exactly at `at`.
    pub fn value(&mut self, mut at: usize) -> Option<usize> {
        // One bit per level, the innermost level in the lowest bit: 1 for an object, 0 for an array.
        let (mut depth, mut kinds) = (0, 0_u64);
        loop {
            at = match self.at(at)? {
                b'"' => self.string(at)?,
                open @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return None;
                    }
                    let close = open + 2;
                    let inner = self.blanks(at + 1);
                    if self.at(inner) == Some(close) {
                        inner + 1
                    } else {
                        depth += 1;
                        kinds = kinds << 1 | u64::from(open == b'{');
                        at = if open == b'{' { self.key(inner)? } else { inner };
                        continue;
                    }
                }
                _ => self.scalar(at)?,
            };
            // After a value: continue in its parent, or close the parent.
            loop {
                if depth == 0 {
                    return Some(at);
                }
                at = self.blanks(at);
                let in_object = kinds & 1 == 1;
                match self.at(at)? {
                    b',' => {
                        let next = self.blanks(at + 1);
                        at = if in_object { self.key(next)? } else { next };
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return None,
                }
                at += 1;
                depth -= 1;
                kinds >>= 1;
            }
        }
    }

    /// Returns the end of the string, number or word that begins at `at`.
    pub fn scalar(&mut self, at: usize) -> Option<usize> {
        match self.at(at)? {
            b'"' => self.string(at),
            b'-' | b'0'..=b'9' => self.number(at),
            b't' => self.word(at, b"true"),
            b'f' => self.word(at, b"false"),
            b'n' => self.word(at, b"null"),
            _ => None,
        }
    }

    /// Skips a member's name, its colon and the spaces after it.
    fn key(&mut self, at: usize) -> Option<usize> {
        let end = self.string(at)?;
        Some(self.blanks(self.token(end, b':')?))
    }

    fn word(&self, at: usize, word: &[u8]) -> Option<usize> {
        self.bytes.get(at..)?.starts_with(word).then_some(at + word.len())
    }

    fn number(&self, at: usize) -> Option<usize> {
        let digits = |from: usize| {
            let count = self.bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            (count > 0).then_some(from + count)
        };
        let start = if self.at(at) == Some(b'-') { at + 1 } else { at };
        let mut end = if self.at(start) == Some(b'0') { start + 1 } else { digits(start)? };
        if self.at(end) == Some(b'.') {
            end = digits(end + 1)?;
        }
        if matches!(self.at(end), Some(b'e' | b'E')) {
            let signed = matches!(self.at(end + 1), Some(b'+' | b'-'));
            end = digits(end + 1 + usize::from(signed))?;
        }
        Some(end)
    }
}

/// The number of bytes at the beginning of a string that are checked in one step.
const SHORT: usize = 16;
/// The length in bytes above which checking for the processor's vector instructions pays off.
const LONG: usize = 8 * 1024;

/// The number of blocks without a backslash after which a string is likely to have no escapes, such as the base64 of an
/// image. It is then skipped in larger pieces. Without this, a rebuild of 100 screenshots takes 1.3 times as long.
const RUN: usize = 16;
/// The size of these pieces in bytes.
const PIECE: usize = 256;

/// A scan that is inside a string.
struct RestOfString<'s, 'a> {
    scan: &'s mut Scan<'a>,
    at: usize,
}

impl Walk for RestOfString<'_, '_> {
    type Output = Option<usize>;

    /// Only `\u` escapes, which are rare, are visited one by one. Branches that depend on the
    /// position of an escape are often mispredicted, and one misprediction costs as much as all other work on
    /// a block.
    #[inline(always)]
    fn walk(
        self,
        marks: impl Fn(&[u8; STEP]) -> Marks,
        _: impl Fn(&[u8; STEP], u8) -> u64,
    ) -> Option<usize> {
        let RestOfString { scan, mut at } = self;
        // The number of blocks since the last backslash.
        let (mut is_escaped, mut plain) = (0, 0);
        loop {
            let marks = marks(&part(scan.bytes, at));
            let escaped = escaped(marks.backslash, &mut is_escaped);
            let end = marks.quote & !escaped;
            // The bits before the first end; all bits if there is none.
            let inside = end.wrapping_sub(1) & !end;
            // The text is padded with zeros, which are control characters.
            if (marks.control | escaped & !marks.letter) & inside != 0 {
                return None;
            }
            let mut units = marks.u & escaped & inside;
            while units != 0 {
                scan.unit(at + units.trailing_zeros() as usize + 1)?;
                units &= units - 1;
            }
            if end != 0 {
                return Some(at + end.trailing_zeros() as usize + 1);
            }
            at += STEP;
            plain = if marks.backslash == 0 { plain + 1 } else { 0 };
            if plain == RUN {
                (at, plain) = (after_plain(scan.bytes, at), 0);
            }
        }
    }
}

/// Skips pieces of a string, from `at` on, that have neither a quote nor a backslash nor a control character.
#[inline(always)]
fn after_plain(bytes: &[u8], mut at: usize) -> usize {
    let is_plain = |byte: &u8| (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\');
    // The loop over a piece has no exit, so the compiler checks many bytes at once.
    let are_plain = |piece: &[u8; PIECE]| piece.iter().fold(true, |all, byte| all & is_plain(byte));
    while bytes.get(at..).and_then(|rest| rest.first_chunk()).is_some_and(are_plain) {
        at += PIECE;
    }
    at
}

/// Returns `SIZE` bytes from `at` on. If the text ends earlier, the rest is zeros.
#[inline]
fn part<const SIZE: usize>(bytes: &[u8], at: usize) -> [u8; SIZE] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut part = [0; SIZE];
        part[..rest.len()].copy_from_slice(rest);
        part
    })
}

/// Returns a mask of the first [`SHORT`] bytes from `at` on: 1 for a quote, a backslash, a control character
/// or the end of the text. Bit 0 is the first byte.
#[inline]
fn special(bytes: &[u8], at: usize) -> u16 {
    let part = u8x16::from(part::<SHORT>(bytes, at));
    let is_control = part.min(u8x16::splat(0x1F)).simd_eq(part);
    let is_special = part.simd_eq(u8x16::splat(b'"')) | part.simd_eq(u8x16::splat(b'\\'));
    (is_special | is_control).to_bitmask() as u16
}

/// Returns a mask of the positions that a backslash escapes; bit 0 is the first byte. `is_escaped` is 0 or 1
/// for the first byte, and is updated for the byte after this block.
#[inline]
fn escaped(backslash: u64, is_escaped: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    // In a run of backslashes, the first one and then every other one escapes. The subtraction carries a borrow
    // along each run, and the XOR removes the odd bits again. That leaves in `runs` the backslashes that escape
    // and, after a run of odd length, the byte that follows it.
    let begins = backslash & !*is_escaped;
    let runs = ((begins << 1) | ODD).wrapping_sub(begins) ^ ODD;
    let escapes = runs & backslash;
    let escaped = runs ^ (backslash | *is_escaped);
    *is_escaped = escapes >> 63;
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes `escaped` byte by byte, as a reference.
    fn escaped_slowly(backslash: u64, is_escaped: &mut u64) -> u64 {
        let mut all = 0;
        for bit in 0..64 {
            all |= *is_escaped << bit;
            *is_escaped = u64::from(*is_escaped == 0) & (backslash >> bit & 1);
        }
        all
    }

    #[test]
    fn escapes_are_every_other_backslash_of_a_run() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..20_000 {
            // Backslashes are sparse in some rounds and dense in others.
            let backslash = (0..round % 7).fold(random(), |bits, n| {
                if n % 2 == 0 { bits & random() } else { bits | random() }
            });
            for before in [0, 1] {
                let (mut fast, mut slow) = (before, before);
                assert_eq!(escaped(backslash, &mut fast), escaped_slowly(backslash, &mut slow));
                assert_eq!(fast, slow, "{backslash:b}");
            }
        }
    }

    #[test]
    fn the_end_of_a_string_is_found_at_every_alignment() {
        // Long strings are skipped in pieces.
        for lead in (0..70).chain((1000..1600).step_by(7)) {
            for inner in ["", "a", "\\\\", "\\\"", "\\\\\\n", "\\u00e9", "\\ud83d", "\u{65e5}"] {
                let text = format!("\"{}{inner}\" rest\"", "x".repeat(lead));
                let mut scan = Scan::new(&text);
                assert_eq!(scan.string(0), Some(text.len() - 6), "{text}");
                assert_eq!(scan.has_surrogates(), inner == "\\ud83d");
            }
            for wrong in ["\t", "\\x", "\\u12", "\\u12g4", "\0"] {
                let text = format!("\"{}{wrong}\"", "x".repeat(lead));
                assert_eq!(Scan::new(&text).string(0), None, "{text}");
                assert_eq!(Scan::new(&text[..lead + 1]).string(0), None, "torn");
            }
        }
    }
}
