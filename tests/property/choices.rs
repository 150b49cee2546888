//! Pseudorandom choices for the generators, determined by a seed.

/// A source of choices; the same seed always makes the same choices.
pub struct Choices(u64);

impl Choices {
    /// Returns the source of choices for a seed.
    pub fn seeded(seed: u64) -> Choices {
        Choices(seed)
    }

    /// Returns a number from 0 to `count - 1`.
    pub fn below(&mut self, count: usize) -> usize {
        (split_mix(&mut self.0) >> 33) as usize % count
    }

    /// Returns true once in `count` times on average.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// Returns one of these values.
    pub fn of_these<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len())]
    }
}

/// Returns the next number of SplitMix64, a small generator for which every seed works equally well.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
