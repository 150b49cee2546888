//! The tokens of an image, from its size in pixels.
//!
//! [`tokens`] follows the rules that the providers document, by the family of the model:
//!
//! - Anthropic scales an image down until its long edge is at most 1568 pixels and its cost at most about 1600
//!   tokens; it costs its area divided by 750, rounded up.
//! - OpenAI scales an image down until it fits a square of 2048 pixels and its short edge is at most 768. It costs 85
//!   tokens and 170 for each tile of 512 by 512 pixels.
//! - Google counts 258 tokens for a small image and for each tile of a larger one. The edge of a tile is the short edge
//!   divided by 1.5, between 256 and 768.
//! - For other models, the larger of the first two numbers applies.
//!
//! The size comes from the header of the file ([`size`]): PNG, JPEG, GIF or WebP. The picture itself is never
//! decoded, so the work does not grow with it. Damaged data is not an error: an image that is given as a URL,
//! or whose size cannot be read, costs [`UNKNOWN`].
//!
//! The crate imagesize (0.15) cannot be used instead: it mistakes the scaling hint of a lossy WebP for part of its
//! size, and fails at fill bytes between the segments of a JPEG.

use super::Family;

/// The tokens of an image of unknown size: about as many as Anthropic charges for the largest image.
pub const UNKNOWN: u64 = 1600;

/// The longest edge in pixels of an image that Anthropic does not scale down.
const LONG_EDGE: u64 = 1568;
/// Pixels per token of Anthropic's models.
const PIXELS_PER_TOKEN: u64 = 750;

/// Returns the number of tokens that the image in `base64` costs, at least 1; [`UNKNOWN`] if its size cannot be read.
pub fn tokens(base64: &str, family: Family) -> u64 {
    let Some((width, height)) = size(base64) else { return UNKNOWN };
    let (long, short) = (u64::from(width.max(height)), u64::from(width.min(height)));
    match family {
        Family::Claude | Family::NewerClaude => by_area(long, short),
        Family::O200k | Family::Cl100k => by_tiles_of_openai(long, short),
        Family::Gemini => by_tiles_of_google(long, short),
        _ => by_area(long, short).max(by_tiles_of_openai(long, short)),
    }
}

/// Returns the width and height in pixels of the image in `base64`. Returns `None` if the data does not begin
/// like a PNG, JPEG, GIF or WebP file, or if an edge is zero.
///
/// Both base64 alphabets are accepted, with or without line breaks and a `data:` prefix.
pub fn size(base64: &str) -> Option<(u32, u32)> {
    let header: Vec<u8> = Decoder::new(base64).take(HEADER).collect();
    let size = match header.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => png(&header),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => gif(&header),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(&header),
        [0xFF, 0xD8, 0xFF, ..] => jpeg(Decoder::new(base64)),
        _ => None,
    };
    size.filter(|&(width, height)| width > 0 && height > 0)
}

/// The number of bytes that hold the size in every format except JPEG.
const HEADER: usize = 30;

fn by_area(long: u64, short: u64) -> u64 {
    let area = match long {
        0..=LONG_EDGE => long * short,
        // Both edges shrink by LONG_EDGE / long.
        _ => (LONG_EDGE * LONG_EDGE * short).div_ceil(long),
    };
    area.div_ceil(PIXELS_PER_TOKEN).clamp(1, UNKNOWN)
}

fn by_tiles_of_openai(long: u64, short: u64) -> u64 {
    const SQUARE: u64 = 2048;
    const SHORT_EDGE: u64 = 768;
    const TILE: u64 = 512;
    let (long, short) = shrunk(long, short, long, SQUARE);
    let (long, short) = shrunk(long, short, short, SHORT_EDGE);
    85 + 170 * long.div_ceil(TILE) * short.div_ceil(TILE)
}

/// Scales both edges down so that `edge`, one of them, is at most `limit`.
fn shrunk(long: u64, short: u64, edge: u64, limit: u64) -> (u64, u64) {
    match edge > limit {
        true => ((long * limit).div_ceil(edge), (short * limit).div_ceil(edge)),
        false => (long, short),
    }
}

fn by_tiles_of_google(long: u64, short: u64) -> u64 {
    const TILE_TOKENS: u64 = 258;
    const SMALL: u64 = 384;
    // So many tiles fill any window. Without a limit, sizes in hostile headers would overflow the sum.
    const MAX_TILES: u64 = 64;
    if long <= SMALL {
        return TILE_TOKENS;
    }
    let tile = (short * 2 / 3).clamp(256, 768);
    let tiles = |edge: u64| edge.div_ceil(tile).min(MAX_TILES);
    TILE_TOKENS * tiles(long) * tiles(short)
}

/// Reads the first chunk, which is always IHDR: length, name, width, height.
fn png(header: &[u8]) -> Option<(u32, u32)> {
    if header.get(12..16)? != b"IHDR" {
        return None;
    }
    Some((big_endian(header.get(16..20)?), big_endian(header.get(20..24)?)))
}

fn gif(header: &[u8]) -> Option<(u32, u32)> {
    Some((little_endian(header.get(6..8)?), little_endian(header.get(8..10)?)))
}

/// Reads one of three formats: `VP8 ` (lossy), `VP8L` (lossless) or `VP8X` (extended, with animation or a
/// colour profile).
fn webp(header: &[u8]) -> Option<(u32, u32)> {
    match header.get(12..16)? {
        b"VP8 " if header.get(23..26)? == [0x9D, 0x01, 0x2A] => {
            // 14 bits each; the top two bits are a hint for scaling.
            let edge = |at: usize| Some(little_endian(header.get(at..at + 2)?) & 0x3FFF);
            Some((edge(26)?, edge(28)?))
        }
        b"VP8L" if header.get(20)? == &0x2F => {
            let bits = little_endian(header.get(21..25)?);
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8X" => {
            let edge = |at: usize| Some(little_endian(header.get(at..at + 3)?) + 1);
            Some((edge(24)?, edge(27)?))
        }
        _ => None,
    }
}

/// Reads the segments of a JPEG up to the one that starts a frame, which holds the size.
fn jpeg(mut bytes: impl Iterator<Item = u8>) -> Option<(u32, u32)> {
    const START_OF_IMAGE: u8 = 0xD8;
    const END_OF_IMAGE: u8 = 0xD9;
    const START_OF_SCAN: u8 = 0xDA;
    loop {
        if bytes.next()? != 0xFF {
            return None;
        }
        let marker = bytes.find(|&byte| byte != 0xFF)?;
        match marker {
            START_OF_IMAGE | 0x01 | 0xD0..=0xD7 => continue, // a marker without a segment
            END_OF_IMAGE | START_OF_SCAN => return None,
            _ => {}
        }
        let length = u16::from_be_bytes([bytes.next()?, bytes.next()?]);
        if is_frame(marker) {
            let _precision = bytes.next()?;
            let height = u16::from_be_bytes([bytes.next()?, bytes.next()?]);
            let width = u16::from_be_bytes([bytes.next()?, bytes.next()?]);
            return Some((width.into(), height.into()));
        }
        if let Some(last) = usize::from(length).checked_sub(3) {
            bytes.nth(last)?; // the length includes its own two bytes
        }
    }
}

/// Returns true if the marker starts a frame: C0 to CF, except for three that define tables.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}

/// Reads a big-endian number of at most four bytes.
fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// Reads a little-endian number of at most four bytes.
fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// An iterator over the bytes of a base64 text, up to the first invalid character.
struct Decoder<'a> {
    text: std::slice::Iter<'a, u8>,
    /// The bits that were read and not yet returned, in the lowest `pending` places.
    bits: u32,
    pending: u32,
}

impl<'a> Decoder<'a> {
    fn new(base64: &'a str) -> Self {
        let data = match base64.strip_prefix("data:") {
            Some(address) => address.split_once(',').map_or("", |(_, data)| data),
            None => base64,
        };
        Self { text: data.as_bytes().iter(), bits: 0, pending: 0 }
    }
}

impl Iterator for Decoder<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while self.pending < 8 {
            let digit = self.text.find(|byte| !byte.is_ascii_whitespace())?;
            self.bits = self.bits << 6 | digit_value(*digit)?;
            self.pending += 6;
        }
        self.pending -= 8;
        let byte = self.bits >> self.pending;
        Some((byte & 0xFF) as u8)
    }
}

fn digit_value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Family, UNKNOWN, size, tokens};

    fn encode(bytes: &[u8]) -> String {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let mut three = [0; 3];
            three[..group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for place in 0..4 {
                let digit = digits[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place <= group.len() { digit.into() } else { '=' });
            }
        }
        text
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec();
        file.extend(width.to_be_bytes());
        file.extend(height.to_be_bytes());
        file.extend(b"\x08\x06\0\0\0");
        file
    }

    fn jpeg(width: u16, height: u16, marker: u8) -> Vec<u8> {
        let mut file = b"\xFF\xD8\xFF\xE1".to_vec();
        file.extend(20_002_u16.to_be_bytes());
        file.extend([0xFF; 20_000]); // for example a thumbnail; these bytes are not markers
        file.extend(b"\xFF\xFF\xDB\0\x04\x01\x02\xFF\xD0"); // a fill byte, a table, a lone marker
        file.extend([0xFF, marker, 0, 17, 8]);
        file.extend(height.to_be_bytes());
        file.extend(width.to_be_bytes());
        file.extend([0; 10]);
        file
    }

    fn webp(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [b"RIFF\x24\0\0\0WEBP", kind.as_slice(), b"\x18\0\0\0", body].concat()
    }

    #[test]
    fn the_size_is_read_from_each_format() {
        let gif = b"GIF89a\x40\x01\xF0\x00\xF7\0\0".as_slice();
        let lossy = webp(b"VP8 ", b"\x30\x01\0\x9D\x01\x2A\x40\x41\xF0\x80");
        let lossless = webp(b"VP8L", &[&[0x2F][..], &(319_u32 | 239 << 14).to_le_bytes()].concat());
        let extended = webp(b"VP8X", b"\x10\0\0\0\x3F\x01\0\xEF\0\0");
        let [png, jpeg] = [png(320, 240), jpeg(320, 240, 0xC0)];
        for file in [png.as_slice(), &jpeg, gif, &lossy, &lossless, &extended] {
            assert_eq!(size(&encode(file)), Some((320, 240)), "{:?}", &file[..4]);
        }
    }

    #[test]
    fn a_progressive_jpeg_has_a_size_and_a_table_is_not_a_frame() {
        assert_eq!(size(&encode(&jpeg(640, 480, 0xC2))), Some((640, 480)));
        assert_eq!(size(&encode(&jpeg(640, 480, 0xC4))), None);
        assert_eq!(size(&encode(&jpeg(640, 480, 0xDA))), None);
    }

    #[test]
    fn line_breaks_a_data_prefix_and_the_other_alphabet_are_read() {
        let plain = encode(&png(320, 240));
        let broken: Vec<&str> = (0..plain.len()).step_by(4).map(|i| &plain[i..i + 4]).collect();
        assert_eq!(size(&broken.join("\r\n")), Some((320, 240)));
        assert_eq!(size(&format!("data:image/png;base64,{plain}")), Some((320, 240)));
        assert_eq!(
            Decoder::new("-_-_").collect::<Vec<_>>(),
            Decoder::new("+/+/").collect::<Vec<_>>()
        );
    }

    #[test]
    fn unreadable_data_costs_as_much_as_an_unknown_size() {
        let zero = encode(&png(0, 240));
        let text = encode(b"not an image, however long it may be");
        for source in
            ["", "=", "https://example.org/a.png", "data:image/png", "iVBORw0", &zero, &text]
        {
            assert_eq!(tokens(source, Family::Unknown), UNKNOWN, "{source}");
        }
    }

    #[test]
    fn truncated_and_damaged_data_never_panics() {
        for file in [png(320, 240), jpeg(320, 240, 0xC0), webp(b"VP8X", &[0; 10])] {
            let whole = encode(&file);
            for end in 0..whole.len().min(80) {
                tokens(&whole[..end], Family::Unknown);
                tokens(&format!("{}é{}", &whole[..end], &whole[end..]), Family::Unknown);
            }
        }
    }

    #[test]
    fn the_cost_is_the_documented_one() {
        let (claude, gpt, gemini) = (Family::Claude, Family::O200k, Family::Gemini);
        for (family, width, height, expected) in [
            (claude, 1, 1, 1),
            (claude, 200, 200, 54),
            (claude, 1000, 1000, 1334),
            (claude, 1092, 1092, 1590),
            (claude, 1568, 1568, UNKNOWN),
            (claude, 100_000, 1, 1),
            (claude, u32::MAX, u32::MAX, UNKNOWN),
            (gpt, 1, 1, 255),
            (gpt, 512, 512, 255),
            (gpt, 1024, 1024, 765),
            (gpt, 2048, 4096, 1105),
            (gpt, u32::MAX, u32::MAX, 765),
            (gemini, 384, 384, 258),
            (gemini, 960, 540, 6 * 258),
            (gemini, u32::MAX, u32::MAX, 64 * 64 * 258),
            (Family::Unknown, u32::MAX, u32::MAX, UNKNOWN),
            (Family::Unknown, 512, 512, 350),
            (Family::Unknown, 100, 100, 255),
        ] {
            let cost = tokens(&encode(&png(width, height)), family);
            assert_eq!(cost, expected, "{family:?} {width} x {height}");
        }
        let cost = |width, height| tokens(&encode(&png(width, height)), claude);
        assert_eq!(cost(3136, 1568), cost(1568, 784));
        assert_eq!(cost(784, 1568), cost(1568, 3136));
    }
}
