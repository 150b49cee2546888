//! What stands where in 64 bytes: the one place where the processor's vectors show.
//!
//! Vectors of 16 bytes are had everywhere, and are what [`portable`] is made of. Those of 32 bytes have to
//! be asked for when the program runs; on them a string is passed over in half the time.

use wide::u8x32;

/// How many bytes are marked at once.
pub(super) const STEP: usize = 64;

/// The bytes of a kind, lowest bit first.
pub(super) struct Marks {
    pub(super) quote: u64,
    pub(super) backslash: u64,
    /// Less than a blank.
    pub(super) control: u64,
    /// What may stand behind a backslash.
    pub(super) letter: u64,
    pub(super) u: u64,
}

/// Something that is done with marks.
pub(super) trait Walk {
    type Output;

    /// Does it. `marks` is compiled into it.
    fn walk(self, marks: impl Fn(&[u8; STEP]) -> Marks) -> Self::Output;
}

/// Does `walk` with the marks that this processor is quickest with.
#[inline]
pub(super) fn with_best<W: Walk>(walk: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function asks for.
        #[allow(unsafe_code, reason = "the compiler cannot know what was found out at run time")]
        return unsafe { avx2::walk(walk) };
    }
    with_any(walk)
}

/// Does `walk` with marks that every processor can make.
#[inline]
pub(super) fn with_any<W: Walk>(walk: W) -> W::Output {
    walk.walk(portable)
}

/// Marks by vectors of 16 bytes.
#[inline]
fn portable(part: &[u8; STEP]) -> Marks {
    let half = |half: &[u8]| {
        let half = half.first_chunk().map_or(u8x32::ZERO, |half| u8x32::from(*half));
        let is = |byte: u8| half.simd_eq(u8x32::splat(byte));
        // Two letters that differ in one bit are one test.
        let b_or_f = (half | u8x32::splat(4)).simd_eq(u8x32::splat(b'f'));
        let t_or_u = (half | u8x32::splat(1)).simd_eq(u8x32::splat(b'u'));
        let (quote, backslash) = (is(b'"'), is(b'\\'));
        let letter = b_or_f | t_or_u | is(b'n') | is(b'r') | is(b'/') | quote | backslash;
        let control = half.min(u8x32::splat(0x1F)).simd_eq(half);
        let bits = |marks: u8x32| u64::from(marks.to_bitmask());
        [bits(quote), bits(backslash), bits(control), bits(letter), bits(is(b'u'))]
    };
    let (low, high) = part.split_at(STEP / 2);
    Marks::join(half(low), half(high))
}

impl Marks {
    /// Those of two halves, in the order of the members.
    #[inline(always)]
    fn join(low: [u64; 5], high: [u64; 5]) -> Marks {
        Marks {
            quote: low[0] | high[0] << 32,
            backslash: low[1] | high[1] << 32,
            control: low[2] | high[2] << 32,
            letter: low[3] | high[3] << 32,
            u: low[4] | high[4] << 32,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Marks, STEP, Walk};
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set_epi64x, _mm256_set1_epi8,
    };

    #[target_feature(enable = "avx2")]
    pub(super) fn walk<W: Walk>(walk: W) -> W::Output {
        walk.walk(|part| marks(part))
    }

    /// Marks by vectors of 32 bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn marks(part: &[u8; STEP]) -> Marks {
        let (low, high) = part.split_at(STEP / 2);
        Marks::join(half(low), half(high))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn half(half: &[u8]) -> [u64; 5] {
        let half = load(half);
        let quote = is(half, b'"');
        let backslash = is(half, b'\\');
        let b_or_f = is(_mm256_or_si256(half, _mm256_set1_epi8(4)), b'f');
        let t_or_u = is(_mm256_or_si256(half, _mm256_set1_epi8(1)), b'u');
        let n_or_r = _mm256_or_si256(is(half, b'n'), is(half, b'r'));
        let letter = _mm256_or_si256(_mm256_or_si256(b_or_f, t_or_u), n_or_r);
        let sign = _mm256_or_si256(_mm256_or_si256(quote, backslash), is(half, b'/'));
        let control = _mm256_cmpeq_epi8(_mm256_min_epu8(half, _mm256_set1_epi8(0x1F)), half);
        [
            bits(quote),
            bits(backslash),
            bits(control),
            bits(_mm256_or_si256(letter, sign)),
            bits(is(half, b'u')),
        ]
    }

    /// 32 bytes as a vector; the compiler makes one load of it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8]) -> __m256i {
        let word = |number: usize| {
            let word = bytes[number * 8..].first_chunk();
            word.map_or(0, |word| i64::from_le_bytes(*word))
        };
        _mm256_set_epi64x(word(3), word(2), word(1), word(0))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn is(bytes: __m256i, byte: u8) -> __m256i {
        _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits(marks: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(marks).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Marked<'p>(&'p [u8; STEP]);

    impl Walk for Marked<'_> {
        type Output = [u64; 5];

        fn walk(self, marks: impl Fn(&[u8; STEP]) -> Marks) -> [u64; 5] {
            let marks = marks(self.0);
            [marks.quote, marks.backslash, marks.control, marks.letter, marks.u]
        }
    }

    #[test]
    fn every_byte_is_marked_in_every_place_by_all_vectors() {
        let kinds: [fn(u8) -> bool; 5] = [
            |byte| byte == b'"',
            |byte| byte == b'\\',
            |byte| byte < b' ',
            |byte| br#""\/bfnrtu"#.contains(&byte),
            |byte| byte == b'u',
        ];
        for byte in 0..=u8::MAX {
            for at in 0..STEP {
                let mut part = [b'.'; STEP];
                part[at] = byte;
                let expected = kinds.map(|is| u64::from(is(byte)) << at);
                assert_eq!(with_any(Marked(&part)), expected, "{byte} at {at}");
                assert_eq!(with_best(Marked(&part)), expected, "{byte} at {at}");
            }
        }
    }
}
