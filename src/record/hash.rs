//! SHA-256 of two texts at once.
//!
//! An id covers its own line and the line before it, so each line is hashed twice. A processor with instructions for
//! SHA-256 waits for their results most of the time. If the blocks of two texts are hashed in turn, it works on both, and
//! two hashes take two thirds of the time.

use sha2::block_api::compress256;
use std::slice;

/// The length of a block in bytes.
const BLOCK: usize = 64;
/// The state before the first block: the fractional parts of the square roots of the first eight primes.
const FIRST: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The hash of a text that grows.
#[derive(Clone, Debug)]
pub(super) struct Hash {
    state: [u32; 8],
    /// The beginning of the next block.
    part: [u8; BLOCK],
    /// The length of the text in bytes.
    length: u64,
}

impl Hash {
    /// Returns the hash of the empty text.
    pub(super) fn new() -> Hash {
        Hash { state: FIRST, part: [0; BLOCK], length: 0 }
    }

    /// Appends bytes to the text.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let (blocks, rest) = self.fill(bytes).as_chunks();
        compress256(&mut self.state, blocks);
        self.keep(blocks.len(), rest);
    }

    /// Appends bytes to the texts of two hashes.
    pub(super) fn update_both([one, other]: [&mut Hash; 2], [first, second]: [&[u8]; 2]) {
        let (first, first_rest) = one.fill(first).as_chunks();
        let (second, second_rest) = other.fill(second).as_chunks();
        for (first, second) in first.iter().zip(second) {
            compress256(&mut one.state, slice::from_ref(first));
            compress256(&mut other.state, slice::from_ref(second));
        }
        let both = first.len().min(second.len());
        compress256(&mut one.state, &first[both..]);
        compress256(&mut other.state, &second[both..]);
        one.keep(first.len(), first_rest);
        other.keep(second.len(), second_rest);
    }

    /// Completes the block that was begun, if there are enough bytes. Returns the bytes that are left; they begin a block.
    fn fill<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let begun = self.begun();
        if begun == 0 {
            return bytes;
        }
        let (own, rest) = bytes.split_at(bytes.len().min(BLOCK - begun));
        self.part[begun..begun + own.len()].copy_from_slice(own);
        self.length += own.len() as u64;
        if self.begun() == 0 {
            compress256(&mut self.state, slice::from_ref(&self.part));
        }
        rest
    }

    /// Notes that blocks were hashed, and stores the bytes after them.
    fn keep(&mut self, blocks: usize, rest: &[u8]) {
        self.length += (blocks * BLOCK + rest.len()) as u64;
        self.part[..rest.len()].copy_from_slice(rest);
    }

    /// Returns the length of the block that was begun.
    fn begun(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }

    /// Returns the first eight bytes of the hash as a number.
    pub(super) fn finish(mut self) -> u64 {
        let bits = self.length * 8;
        // A byte 0x80, zeros up to the last eight bytes of a block, and the length.
        let zeros = (2 * BLOCK - 9 - self.begun()) % BLOCK;
        let mut end = [0; 2 * BLOCK];
        end[0] = 0x80;
        end[1 + zeros..][..8].copy_from_slice(&bits.to_be_bytes());
        self.update(&end[..1 + zeros + 8]);
        u64::from(self.state[0]) << 32 | u64::from(self.state[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn expected(text: &[u8]) -> u64 {
        let hash = Sha256::digest(text);
        u64::from_be_bytes(*hash.first_chunk().unwrap())
    }

    #[test]
    fn hashes_do_not_depend_on_how_they_are_made() {
        let text: Vec<u8> = (0..400_u32).map(|n| ((n * 7919) >> 3) as u8).collect();
        for length in 0..300 {
            for begin in [0, 1, 55, 56, 63, 64, 65, 100] {
                let (first, second) = (&text[..length], &text[length / 2..length + 90]);
                let (mut one, mut other) = (Hash::new(), Hash::new());
                one.update(&text[..begin]);
                Hash::update_both([&mut one, &mut other], [first, second]);
                assert_eq!(one.finish(), expected(&[&text[..begin], first].concat()));
                assert_eq!(other.finish(), expected(second));
            }
        }
    }
}
