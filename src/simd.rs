//! Vector instructions (SIMD) for JSON.
//!
//! Every supported processor has vectors of 16 bytes, which other modules use through the crate `wide`. Only this module
//! uses vectors of 32 bytes, which are detected at run time. Without them, claw-rebuild takes 1.10 (`--meta`) to 1.16
//! times as long on 256 MiB of input. Vectors of 64 bytes gained less than 5 %.

use std::sync::atomic::{AtomicU8, Ordering};
use wide::u8x32;

/// The size of a block, in bytes: all of it is marked at once.
pub(crate) const STEP: usize = 64;

/// For each kind of byte, a mask of its positions in a block; bit 0 is the first byte.
pub(crate) struct Marks {
    pub(crate) quote: u64,
    pub(crate) backslash: u64,
    /// Bytes less than a space.
    pub(crate) control: u64,
    /// Characters that may follow a backslash.
    pub(crate) letter: u64,
    pub(crate) u: u64,
}

/// A computation that uses vectors.
pub(crate) trait Walk {
    /// The result.
    type Output;

    /// Computes the result. `marks` returns the marks of a block; `equal` returns a mask of the positions at
    /// which a block has the given byte. An implementation must be `#[inline(always)]`, so that it is compiled
    /// for the vectors that these two use.
    fn walk(
        self,
        marks: impl Fn(&[u8; STEP]) -> Marks,
        equal: impl Fn(&[u8; STEP], u8) -> u64,
    ) -> Self::Output;
}

/// The width in bytes of the vectors to use, 16 or 32; 0 until it is detected.
static WIDTH: AtomicU8 = AtomicU8::new(0);

/// Detects the vectors of this processor, unless that was done before. In a virtual machine, detection takes
/// longer than scanning a short text, so callers skip it for a single short text.
pub(crate) fn detect() {
    if WIDTH.load(Ordering::Relaxed) == 0 {
        WIDTH.store(width(), Ordering::Relaxed);
    }
}

fn width() -> u8 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected;
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
            return 32;
        }
    }
    16
}

/// Runs `walk` with the best vectors detected so far.
#[inline]
pub(crate) fn with_known<W: Walk>(walk: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "the compiler cannot know what was detected at run time")]
    // SAFETY: only `width` sets 32, after it has found the features that these functions require.
    if WIDTH.load(Ordering::Relaxed) == 32 {
        return unsafe { avx2::walk(walk) };
    }
    with_any(walk)
}

/// Runs `walk` with the vectors that every processor has.
#[inline]
fn with_any<W: Walk>(walk: W) -> W::Output {
    walk.walk(portable, portable_equal)
}

/// Computes the marks with the vectors that every processor has: `wide` splits a `u8x32` into two vectors of
/// 16 bytes.
#[inline]
fn portable(part: &[u8; STEP]) -> Marks {
    let half = |half: &[u8]| {
        let half = half.first_chunk().map_or(u8x32::ZERO, |half| u8x32::from(*half));
        let is = |byte: u8| half.simd_eq(u8x32::splat(byte));
        // Two letters that differ in one bit take only one test.
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

/// Returns a mask of the positions of `byte` in the block, computed in the same way as by [`portable`].
#[inline]
fn portable_equal(part: &[u8; STEP], byte: u8) -> u64 {
    let half = |half: &[u8]| {
        let half = half.first_chunk().map_or(u8x32::ZERO, |half| u8x32::from(*half));
        u64::from(half.simd_eq(u8x32::splat(byte)).to_bitmask())
    };
    let (low, high) = part.split_at(STEP / 2);
    half(low) | half(high) << 32
}

impl Marks {
    /// Joins the marks of two halves, given in the order of the fields.
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
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };

    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn walk<W: Walk>(walk: W) -> W::Output {
        walk.walk(|part| marks(part), |part, byte| equal(part, byte))
    }

    /// Returns a mask of the positions of `byte` in the block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(part: &[u8; STEP], byte: u8) -> u64 {
        let (low, high) = part.split_at(STEP / 2);
        bits(is(load(low), byte)) | bits(is(load(high), byte)) << 32
    }

    /// Computes the marks with vectors of 32 bytes.
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

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8]) -> __m256i {
        let bytes: &[u8; STEP / 2] = bytes.first_chunk().unwrap_or(&[0; STEP / 2]);
        // SAFETY: the pointer is to 32 bytes, and the load has no alignment requirement.
        #[allow(unsafe_code, reason = "the library has no other way to load a vector")]
        unsafe {
            _mm256_loadu_si256(bytes.as_ptr().cast())
        }
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

        fn walk(
            self,
            marks: impl Fn(&[u8; STEP]) -> Marks,
            equal: impl Fn(&[u8; STEP], u8) -> u64,
        ) -> [u64; 5] {
            let marks = marks(self.0);
            assert_eq!(equal(self.0, b'u'), marks.u);
            assert_eq!(equal(self.0, b'"'), marks.quote);
            [marks.quote, marks.backslash, marks.control, marks.letter, marks.u]
        }
    }

    #[test]
    fn vectors_of_each_width_mark_every_byte_at_every_position() {
        let kinds: [fn(u8) -> bool; 5] = [
            |byte| byte == b'"',
            |byte| byte == b'\\',
            |byte| byte < b' ',
            |byte| br#""\/bfnrtu"#.contains(&byte),
            |byte| byte == b'u',
        ];
        for own in [16, 32].into_iter().filter(|own| *own <= width()) {
            WIDTH.store(own, Ordering::Relaxed);
            for byte in 0..=u8::MAX {
                for at in 0..STEP {
                    let mut part = [b'.'; STEP];
                    part[at] = byte;
                    let expected = kinds.map(|is| u64::from(is(byte)) << at);
                    assert_eq!(with_known(Marked(&part)), expected, "{byte} at {at}, {own}");
                }
            }
        }
    }
}
