//! The classes of characters.

use super::weights::{ASCII, RANGES, RARE, RARE_CLASS, RARE_FROM};

/// The number of code points in the Basic Multilingual Plane.
const PLANE: usize = 0x1_0000;
/// The number of code points in a block.
const BLOCK: usize = 16;

/// The classes of the characters in the Basic Multilingual Plane. Most blocks have the same classes as the block before
/// and share its entry, so this takes 8 KiB instead of 64.
struct Classes {
    /// The index of the classes of each block.
    indices: [u8; PLANE / BLOCK],
    blocks: [[u8; BLOCK]; 256],
}

static CLASS: Classes = {
    let mut classes = Classes { indices: [0; PLANE / BLOCK], blocks: [[0; BLOCK]; 256] };
    let (mut at, mut range, mut index) = (0, 0, 0);
    while at < PLANE {
        let (mut block, mut is_new) = ([0; BLOCK], at == 0);
        let mut column = 0;
        while column < BLOCK {
            let code = at + column;
            while range + 1 < RANGES.len() && RANGES[range + 1].0 as usize <= code {
                range += 1;
            }
            block[column] = if code < ASCII.len() { ASCII[code] } else { RANGES[range].1 };
            is_new |= block[column] != classes.blocks[index][column];
            column += 1;
        }
        if is_new {
            index += (at > 0) as usize;
            classes.blocks[index] = block;
        }
        classes.indices[at / BLOCK] = index as u8;
        at += BLOCK;
    }
    classes
};

/// Returns the class of a character.
pub(super) fn class(c: char) -> u8 {
    let code = c as u32;
    if is_rare(code) {
        return RARE_CLASS;
    }
    match CLASS.indices.get(code as usize / BLOCK) {
        Some(index) => CLASS.blocks[*index as usize][code as usize % BLOCK],
        None => RANGES[RANGES.partition_point(|(first, _)| *first <= code) - 1].1,
    }
}

/// Returns true for a rare Chinese character or Korean syllable.
fn is_rare(code: u32) -> bool {
    let at = code.wrapping_sub(RARE_FROM);
    RARE.get(at as usize / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_has_the_class_of_its_range() {
        for c in '\0'..=char::MAX {
            let range = RANGES.partition_point(|(first, _)| *first <= c as u32);
            let expected = if c.is_ascii() { ASCII[c as usize] } else { RANGES[range - 1].1 };
            let expected = if is_rare(c as u32) { RARE_CLASS } else { expected };
            assert_eq!(class(c), expected, "{c:?}");
        }
    }

    #[test]
    fn rare_characters_are_those_that_most_texts_do_not_have() {
        for common in "中国语語漢字日本한국어ア、Ꙁ".chars() {
            assert_ne!(class(common), RARE_CLASS, "{common:?}");
        }
        for rare in "龘엤㐀𠀀".chars() {
            assert_eq!(class(rare), RARE_CLASS, "{rare:?}");
        }
    }
}
