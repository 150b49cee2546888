//! Pairs of letters that are common in English. Tokenizers split words with uncommon pairs into more tokens.

/// The letters that usually come at the start of a piece (first row) and after each letter from `a` to `z`; a
/// dot is the end of the piece. These are the 280 most frequent pairs in English text and code, without the
/// endings `a.` and `i.`, which set Italian and Indonesian words apart.
static USUAL: [u32; 27] = masks([
    "abcdefghijklmnoprstuvwxy", // start
    "bcdgiklmnprstuvy",         // a
    "aeiloruy.",                // b
    "acehiklortu.",             // c
    "adeiosu.",                 // d
    "abcdefglmnpqrstvwxy.",     // e
    "aefilortu.",               // f
    "ehiru.",                   // g
    "aeiortu.",                 // h
    "abcdefglmnoprstvz",        // i
    "e",                        // j
    "e.",                       // k
    "adefilostuy.",             // l
    "abeilmopsu.",              // m
    "acdefgilnostuvy.",         // n
    "bcdfklmnoprstuvw.",        // o
    "aeiloprstuy.",             // p
    "u",                        // q
    "acdegiklmnorstuy.",        // r
    "acehimopstuy.",            // s
    "acdehiloprstuy.",          // t
    "bcdegilmnprst.",           // u
    "aei.",                     // v
    "aehio.",                   // w
    "pt.",                      // x
    "op.",                      // y
    "e",                        // z
]);

/// The bit for the end of a piece in a row of [`USUAL`]; letters have the bits 0 to 25.
const END: u32 = 26;

const fn masks(rows: [&str; 27]) -> [u32; 27] {
    let mut masks = [0; 27];
    let mut row = 0;
    while row < rows.len() {
        let mut next = rows[row].as_bytes();
        while let [letter, rest @ ..] = next {
            masks[row] |= 1 << if *letter == b'.' { END } else { (*letter - b'a') as u32 };
            next = rest;
        }
        row += 1;
    }
    masks
}

/// Counts the unusual pairs of adjacent letters in `piece`, including its start and end.
///
/// A single letter has none, and a repeated letter counts as usual: tokenizers know `aaaa` and `zzz`.
pub(super) fn unusual(piece: &[u8]) -> u64 {
    if piece.len() < 2 {
        return 0;
    }
    let mut row = USUAL[0];
    let mut last = 0;
    let mut unusual = 0;
    for &byte in piece {
        let letter = (byte | 0x20).wrapping_sub(b'a');
        unusual += u64::from(row >> letter & 1 == 0 && byte != last);
        last = byte;
        row = USUAL[usize::from(letter) + 1];
    }
    unusual + u64::from(row >> END & 1 == 0)
}
