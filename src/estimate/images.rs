//! The tokens of an image, from its size in pixels.
//!
//! [`ImageRule::tokens`] follows the rules that the providers document; the table of models says which one applies:
//!
//! - Anthropic scales an image down until its long edge and its tokens are within limits, which are higher for newer
//!   models. A token covers a square of 28 pixels.
//! - OpenAI's older models scale an image down until it fits a square of 2048 pixels and its short edge is at most 768. It
//!   costs a fixed number of tokens, and more for each tile of 512 by 512 pixels.
//! - OpenAI's newer models scale an image down to a maximum number of squares of 32 pixels. A square costs a fixed
//!   number of tokens, which need not be whole.
//! - Google counts 258 tokens for a small image and for each tile of a larger one. The edge of a tile is the short edge
//!   divided by 1.5, between 256 and 768.
//! - For other models, the largest of these numbers applies, up to the maximum of Anthropic's newer models.
//!
//! The size comes from the header of the file ([`size`]): PNG, JPEG, GIF or WebP. The picture itself is never
//! decoded, so the work does not grow with it. Damaged data is not an error: an image whose size cannot be read costs
//! [`ImageRule::largest`], and an image that is given as a URL costs [`UNKNOWN`].
//!
//! The crate imagesize (0.15) cannot be used instead: it mistakes the scaling hint of a lossy WebP for part of its
//! size, and fails at fill bytes between the segments of a JPEG.

/// The tokens of an image or a document whose data is not in the request. A document whose data is in the request costs
/// at least this much.
pub const UNKNOWN: u64 = 1600;

/// The largest number of tokens that Anthropic counts for an image.
const MOST: u64 = 4784;

/// A provider's rule for the tokens of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageRule {
    /// Anthropic's.
    Claude {
        /// The longest edge in pixels that is not scaled down.
        edge: u64,
        /// The largest number of tokens.
        most: u64,
    },
    /// OpenAI's, by tiles.
    Tiles {
        /// The tokens of any image.
        base: u64,
        /// The tokens of a tile.
        tile: u64,
    },
    /// OpenAI's, by patches.
    Patches {
        /// The largest number of patches.
        most: u64,
        /// The hundredths of a token that a patch costs.
        hundredths: u64,
    },
    /// Google's.
    Google,
    /// The largest of the other rules.
    #[default]
    Unknown,
}

impl ImageRule {
    /// Parses a rule in the notation of the table of models.
    #[must_use]
    pub fn parse(text: &str) -> Option<ImageRule> {
        let number = |text: &str| text.parse().ok().filter(|number| (1..=100_000).contains(number));
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["claude", edge, most] => {
                Some(ImageRule::Claude { edge: number(edge)?, most: number(most)? })
            }
            ["tiles", base, tile] => {
                Some(ImageRule::Tiles { base: number(base)?, tile: number(tile)? })
            }
            ["patches", most, each] => {
                let each: f64 = each.parse().ok().filter(|each| (0.1..=100.0).contains(each))?;
                let hundredths = (each * 100.0).round() as u64;
                Some(ImageRule::Patches { most: number(most)?, hundredths })
            }
            ["google"] => Some(ImageRule::Google),
            _ => None,
        }
    }

    /// Returns the number of tokens that the image in `base64` costs, at least 1.
    #[must_use]
    pub fn tokens(self, base64: &str) -> u64 {
        let Some((width, height)) = size(base64) else { return self.largest() };
        self.of_size(u64::from(width.max(height)), u64::from(width.min(height)))
    }

    /// Returns the tokens of an image of unknown size: those of the largest one that Anthropic does not scale down.
    #[must_use]
    pub fn largest(self) -> u64 {
        self.of_size(2576, 1456)
    }

    fn of_size(self, long: u64, short: u64) -> u64 {
        match self {
            ImageRule::Claude { edge, most } => by_squares(long, short, edge, most),
            ImageRule::Tiles { base, tile } => base + tile * tiles_of_openai(long, short),
            ImageRule::Patches { most, hundredths } => {
                let patches = long.div_ceil(32).saturating_mul(short.div_ceil(32)).min(most);
                (patches * hundredths).div_ceil(100)
            }
            ImageRule::Google => by_tiles_of_google(long, short),
            ImageRule::Unknown => {
                let others = [
                    ImageRule::Claude { edge: 2576, most: MOST },
                    ImageRule::Tiles { base: 85, tile: 170 },
                    ImageRule::Patches { most: 10_000, hundredths: 120 },
                    ImageRule::Google,
                ];
                let largest = others.into_iter().map(|rule| rule.of_size(long, short)).max();
                largest.unwrap_or(MOST).min(MOST)
            }
        }
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

fn by_squares(long: u64, short: u64, edge: u64, most: u64) -> u64 {
    let (long, short) = shrunk(long, short, long, edge);
    (long.div_ceil(28) * short.div_ceil(28)).min(most)
}

fn tiles_of_openai(long: u64, short: u64) -> u64 {
    const SQUARE: u64 = 2048;
    const SHORT_EDGE: u64 = 768;
    const TILE: u64 = 512;
    let (long, short) = shrunk(long, short, long, SQUARE);
    let (long, short) = shrunk(long, short, short, SHORT_EDGE);
    long.div_ceil(TILE) * short.div_ceil(TILE)
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
    // The limit for each edge. So many tiles exceed any window, and without a limit, sizes in hostile headers would
    // overflow the product.
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

/// Returns true if the marker starts a frame: C0 to CF, except for C4 and CC, which define tables, and C8, which is
/// reserved.
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
    use super::{Decoder, ImageRule, MOST, size};
    use crate::estimate::Model;

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
    fn unreadable_data_costs_as_much_as_the_largest_image() {
        let zero = encode(&png(0, 240));
        let text = encode(b"not an image, however long it may be");
        for source in
            ["", "=", "https://example.org/a.png", "data:image/png", "iVBORw0", &zero, &text]
        {
            assert_eq!(ImageRule::Unknown.tokens(source), MOST, "{source}");
            let claude = ImageRule::Claude { edge: 1568, most: 1568 };
            assert_eq!(claude.tokens(source), 1568, "{source}");
        }
    }

    #[test]
    fn truncated_and_damaged_data_never_panics() {
        for file in [png(320, 240), jpeg(320, 240, 0xC0), webp(b"VP8X", &[0; 10])] {
            let whole = encode(&file);
            for end in 0..whole.len().min(80) {
                let broken = format!("{}é{}", &whole[..end], &whole[end..]);
                for source in [&whole[..end], &broken] {
                    assert!(ImageRule::Unknown.tokens(source) > 0, "{source}");
                }
            }
        }
    }

    #[test]
    fn the_cost_is_the_documented_one() {
        for (model, width, height, expected) in [
            ("claude-opus-4-5", 1, 1, 1),
            ("claude-opus-4-5", 200, 200, 64),
            ("claude-opus-4-5", 1000, 1000, 1296),
            ("claude-opus-4-5", 1568, 1568, 1568),
            ("claude-opus-4-5", 100_000, 1, 56),
            ("claude-opus-4-5", u32::MAX, u32::MAX, 1568),
            ("claude-opus-4-8", 1000, 1000, 1296),
            ("claude-opus-4-8", 1920, 1080, 2691),
            ("claude-opus-4-8", u32::MAX, u32::MAX, MOST),
            ("gpt-4o", 1, 1, 255),
            ("gpt-4o", 512, 512, 255),
            ("gpt-4o", 1024, 1024, 765),
            ("gpt-4o", 2048, 4096, 1105),
            ("gpt-4o", u32::MAX, u32::MAX, 765),
            ("gpt-4o-mini", 1024, 1024, 25_501),
            ("gpt-5", 1024, 1024, 630),
            ("gpt-5-mini", 1024, 1024, 1659),
            ("gpt-4.1-mini", 4000, 1474, 2489),
            ("gpt-5.5", 1920, 1080, 2448),
            ("gemini-3-pro", 384, 384, 258),
            ("gemini-3-pro", 960, 540, 6 * 258),
            ("gemini-3-pro", u32::MAX, u32::MAX, 64 * 64 * 258),
            ("m", u32::MAX, u32::MAX, MOST),
            ("m", 512, 512, 1032),
            ("m", 100, 100, 258),
        ] {
            let cost = Model::named(model).images.tokens(&encode(&png(width, height)));
            assert_eq!(cost, expected, "{model} {width} x {height}");
            let turned = Model::named(model).images.tokens(&encode(&png(height, width)));
            assert_eq!(turned, cost, "{model}");
        }
    }

    #[test]
    fn rules_are_parsed_in_the_notation_of_the_table() {
        for (text, rule) in [
            ("claude:1568:1600", Some(ImageRule::Claude { edge: 1568, most: 1600 })),
            ("tiles:85:170", Some(ImageRule::Tiles { base: 85, tile: 170 })),
            ("patches:1536:1.62", Some(ImageRule::Patches { most: 1536, hundredths: 162 })),
            ("google", Some(ImageRule::Google)),
            ("google:1", None),
            ("tiles:85", None),
            ("tiles:0:170", None),
            ("patches:1536:nan", None),
            ("claude:100001:1", None),
            ("", None),
        ] {
            assert_eq!(ImageRule::parse(text), rule, "{text}");
        }
    }
}
