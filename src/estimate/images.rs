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
//! The size comes from the header of the file ([`size`]). The picture itself is never decoded, so the work does not grow
//! with it. Damaged data is not an error: an image whose size cannot be read costs [`ImageRule::largest`], and an image
//! that is given as a URL costs [`UNKNOWN`].

use crate::media::size::size;

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

#[cfg(test)]
mod tests {
    use super::{ImageRule, MOST};
    use crate::estimate::Model;
    use crate::media::encoded::encode;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec();
        file.extend(width.to_be_bytes());
        file.extend(height.to_be_bytes());
        file.extend(b"\x08\x06\0\0\0");
        file
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
