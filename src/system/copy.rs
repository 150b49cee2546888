//! `memcpy` and `memmove` for programs that are linked against musl on x86-64.
//!
//! musl's own functions use the processor's string instruction for every length. It takes longer to start than copying a
//! short text does otherwise, and most texts that are copied here are short: names, ids, and the text between values.

use std::arch::asm;
use std::arch::x86_64::__m128i;

/// Copies `length` bytes. The memory may not overlap.
///
/// # Safety
/// As `memcpy` in C.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    unsafe { if length <= SHORT { short(to, from, length) } else { forwards(to, from, length) } }
    to
}

/// Copies `length` bytes. The memory may overlap.
///
/// # Safety
/// As `memmove` in C.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    let ahead = (to as usize).wrapping_sub(from as usize);
    unsafe {
        if length <= SHORT {
            short(to, from, length);
        } else if ahead >= length {
            forwards(to, from, length);
        } else {
            backwards(to, from, length);
        }
    }
    to
}

/// The length in bytes up to which the string instruction is slower.
const SHORT: usize = 128;

/// Copies up to [`SHORT`] bytes. All are loaded before the first is stored, so the memory may overlap. There are no
/// loops, because the compiler could make a call of `memcpy` of one.
#[inline(always)]
unsafe fn short(to: *mut u8, from: *const u8, length: usize) {
    unsafe {
        match length {
            0 => {}
            1 => *to = *from,
            2..4 => ends::<u16, 1>(to, from, length),
            4..8 => ends::<u32, 1>(to, from, length),
            8..16 => ends::<u64, 1>(to, from, length),
            16..=32 => ends::<__m128i, 1>(to, from, length),
            33..=64 => ends::<__m128i, 2>(to, from, length),
            _ => ends::<__m128i, 4>(to, from, length),
        }
    }
}

/// Copies the first and the last `N` values, which may overlap.
#[inline(always)]
unsafe fn ends<T: Copy, const N: usize>(to: *mut u8, from: *const u8, length: usize) {
    let last = length - size_of::<[T; N]>();
    unsafe {
        let first = from.cast::<[T; N]>().read_unaligned();
        let rest = from.add(last).cast::<[T; N]>().read_unaligned();
        to.cast::<[T; N]>().write_unaligned(first);
        to.add(last).cast::<[T; N]>().write_unaligned(rest);
    }
}

/// Copies more than 8 bytes, the first one first.
#[inline(always)]
unsafe fn forwards(to: *mut u8, from: *const u8, length: usize) {
    unsafe {
        let last = from.add(length - 8).cast::<u64>().read_unaligned();
        asm!("rep movsq", inout("rcx") length / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
        to.add(length - 8).cast::<u64>().write_unaligned(last);
    }
}

/// Copies more than 8 bytes, the last one first.
#[inline(always)]
unsafe fn backwards(to: *mut u8, from: *const u8, length: usize) {
    unsafe {
        let first = from.cast::<u64>().read_unaligned();
        asm!("std", "rep movsq", "cld", inout("rcx") length / 8 => _, inout("rdi") to.add(length - 8) => _,
            inout("rsi") from.add(length - 8) => _, options(nostack));
        to.cast::<u64>().write_unaligned(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_are_copied_at_all_distances() {
        let source: Vec<u8> = (0..1000_u32).map(|n| (n * 7 % 251) as u8).collect();
        for length in 0..300 {
            for (from, to) in
                [(0, 500), (501, 3), (100, 101), (101, 100), (100, 108), (200, 71), (60, 190)]
            {
                let (mut own, mut expected) = (source.clone(), source.clone());
                expected.copy_within(from..from + length, to);
                let start = own.as_mut_ptr();
                let end = unsafe { memmove(start.add(to), start.add(from), length) };
                assert_eq!(end, unsafe { start.add(to) });
                assert!(own == expected, "memmove {length} from {from} to {to}");
                if from.abs_diff(to) >= length {
                    let mut own = source.clone();
                    let start = own.as_mut_ptr();
                    unsafe { memcpy(start.add(to), start.add(from), length) };
                    assert!(own == expected, "memcpy {length} from {from} to {to}");
                }
            }
        }
    }
}
