//! The allocator of programs that are linked against musl: dlmalloc, with lists of free small blocks for each thread.
//!
//! dlmalloc takes a lock for each call. Rebuilding a transcript allocates and frees several short texts and lists for
//! each record, and the lock took a sixth of the time of the thread that does so. Most of these calls now take a block
//! from a list of their thread, or put it back.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::{self, null_mut};

/// The sizes of small blocks are multiples of this, which is also their alignment.
const UNIT: usize = 16;
/// The number of sizes.
const SIZES: usize = 32;
/// The maximum number of blocks in a list. The blocks of a thread that ends are never used again, at most 264 KiB.
const MOST: usize = 32;

/// An allocator that keeps small blocks for reuse instead of returning them to `A`. A program can have only one, because
/// all would share the lists.
#[derive(Debug)]
pub(crate) struct Reusing<A>(pub(crate) A);

/// Free blocks of one size. Each begins with the address of the next one.
struct FreeBlocks {
    first: Cell<*mut u8>,
    count: Cell<usize>,
}

thread_local! {
    /// The lists for all sizes. They need no destructor, so they can be used as long as the thread runs.
    static FREE: [FreeBlocks; SIZES] = const { [const { FreeBlocks::new() }; SIZES] };
}

impl FreeBlocks {
    const fn new() -> FreeBlocks {
        FreeBlocks { first: Cell::new(null_mut()), count: Cell::new(0) }
    }
}

/// Returns the index of the size of a block for `layout`, or `None` if the block is not small.
#[inline(always)]
fn size_index(layout: Layout) -> Option<usize> {
    let index = layout.size().wrapping_sub(1) / UNIT;
    (index < SIZES && layout.align() <= UNIT).then_some(index)
}

/// Returns the layout of small blocks of a size.
#[inline(always)]
fn block(size: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is at most `SIZES * UNIT`.
    unsafe { Layout::from_size_align_unchecked((size + 1) * UNIT, UNIT) }
}

// SAFETY: a block is in at most one list, that of the thread that freed it, and leaves it before it is used again. All
// small blocks are allocated and freed with the layout of their size, which is at least what the caller asked for.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Reusing<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(size) = size_index(layout) else { return unsafe { self.0.alloc(layout) } };
        FREE.with(|free| {
            let FreeBlocks { first, count } = &free[size];
            let taken = first.get();
            if taken.is_null() {
                return unsafe { self.0.alloc(block(size)) };
            }
            first.set(unsafe { taken.cast::<*mut u8>().read() });
            count.set(count.get() - 1);
            taken
        })
    }

    #[inline]
    unsafe fn dealloc(&self, freed: *mut u8, layout: Layout) {
        let Some(size) = size_index(layout) else {
            return unsafe { self.0.dealloc(freed, layout) };
        };
        FREE.with(|free| {
            let FreeBlocks { first, count } = &free[size];
            if count.get() == MOST {
                return unsafe { self.0.dealloc(freed, block(size)) };
            }
            unsafe { freed.cast::<*mut u8>().write(first.get()) };
            first.set(freed);
            count.set(count.get() + 1);
        });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(size) = size_index(layout) else { return unsafe { self.0.alloc_zeroed(layout) } };
        unsafe { self.0.alloc_zeroed(block(size)) }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, length: usize) -> *mut u8 {
        let larger = unsafe { Layout::from_size_align_unchecked(length, layout.align()) };
        match (size_index(layout), size_index(larger)) {
            (None, None) => unsafe { self.0.realloc(old, layout, length) },
            (Some(own), Some(other)) if own == other => old,
            _ => {
                let new = unsafe { self.alloc(larger) };
                if !new.is_null() {
                    let kept = layout.size().min(length);
                    unsafe {
                        ptr::copy_nonoverlapping(old, new, kept);
                        self.dealloc(old, layout);
                    }
                }
                new
            }
        }
    }
}

// With musl, the program that runs the tests already has this allocator.
#[cfg(all(test, not(target_env = "musl")))]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    fn blocks_keep_their_content_and_never_overlap() {
        let (heap, mut state) = (Reusing(System), 1_u64);
        let mut random = move |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let is_filled = |(at, layout, byte): &(*mut u8, Layout, u8)| {
            let bytes = unsafe { std::slice::from_raw_parts(*at, layout.size()) };
            at.align_offset(layout.align()) == 0 && bytes.iter().all(|own| own == byte)
        };
        for round in 0..100_000_u64 {
            let size = 1 + random(if round % 8 == 0 { 5000 } else { 600 }) as usize;
            let layout = Layout::from_size_align(size, 1 << random(7)).unwrap();
            let byte = round as u8;
            match random(4) {
                0 | 1 if held.len() < 500 => {
                    held.push((unsafe { heap.alloc(layout) }, layout, byte))
                }
                2 if !held.is_empty() => {
                    let (old, own, byte) = held.swap_remove(random(held.len() as u64) as usize);
                    let new = unsafe { heap.realloc(old, own, size) };
                    let kept = own.size().min(size);
                    let own = Layout::from_size_align(size, own.align()).unwrap();
                    let same = Layout::from_size_align(kept, own.align()).unwrap();
                    assert!(is_filled(&(new, same, byte)), "{round}: realloc to {own:?}");
                    unsafe { new.write_bytes(byte, size) };
                    held.push((new, own, byte));
                    continue;
                }
                _ if !held.is_empty() => {
                    let last = held.swap_remove(random(held.len() as u64) as usize);
                    assert!(is_filled(&last), "{round}: {last:?}");
                    unsafe { heap.dealloc(last.0, last.1) };
                    continue;
                }
                _ => {
                    let zeroed = unsafe { heap.alloc_zeroed(layout) };
                    assert!(is_filled(&(zeroed, layout, 0)), "{round}: {layout:?}");
                    held.push((zeroed, layout, byte));
                }
            }
            if let Some((at, layout, byte)) = held.last() {
                unsafe { at.write_bytes(*byte, layout.size()) };
            }
        }
        held.iter().for_each(|block| assert!(is_filled(block), "{block:?}"));
        held.iter().for_each(|(at, layout, _)| unsafe { heap.dealloc(*at, *layout) });
    }
}
