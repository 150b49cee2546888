//! The size of an image in pixels, from the header of its file: PNG, JPEG, GIF, WebP or BMP.
//!
//! The crate imagesize (0.15) cannot be used instead: it mistakes the scaling hint of a lossy WebP for part of its
//! size, and fails at fill bytes between the segments of a JPEG.

use super::kind::HEAD;
use super::{Encoded, Kind, encoded};

/// Returns the width and height in pixels of the image in `base64`. Returns `None` if the data does not begin
/// like a PNG, JPEG, GIF, WebP or BMP file, or if an edge is zero.
///
/// Both base64 alphabets are accepted, with or without line breaks and a `data:` prefix.
pub fn size(base64: &str) -> Option<(u32, u32)> {
    let cleaned;
    let image = match Encoded::new(base64) {
        Some(image) => image,
        None => {
            cleaned = encoded::clean(base64)?;
            Encoded::new(&cleaned)?
        }
    };
    of(image, Kind::of(&image.read(0, HEAD)))
}

/// Returns the width and height in pixels of an image of type `kind`.
pub(super) fn of(image: Encoded<'_>, kind: Kind) -> Option<(u32, u32)> {
    let header = image.read(0, HEADER);
    let pieces = (0..image.byte_count()).step_by(PIECE);
    let size = match kind {
        Kind::Png => png(&header),
        Kind::Jpeg => jpeg(pieces.flat_map(|at| image.read(at, PIECE))),
        Kind::Gif => gif(&header),
        Kind::Webp => webp(&header),
        Kind::Bmp => bmp(&header),
        _ => None,
    };
    size.filter(|&(width, height)| width > 0 && height > 0)
}

/// The number of bytes that hold the size in every format except JPEG.
const HEADER: usize = 30;
/// The number of bytes of a JPEG that are decoded at once.
const PIECE: usize = 4096;

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

/// Reads the information header, whose length is that of its version. A negative height means that the rows go downwards.
fn bmp(header: &[u8]) -> Option<(u32, u32)> {
    const FIRST_VERSION: u32 = 12;
    if little_endian(header.get(14..18)?) == FIRST_VERSION {
        return Some((little_endian(header.get(18..20)?), little_endian(header.get(20..22)?)));
    }
    let edge = |at: usize| Some(little_endian(header.get(at..at + 4)?).cast_signed());
    Some((u32::try_from(edge(18)?).ok()?, edge(22)?.unsigned_abs()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::encoded::encode;

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

    fn bmp(header: &[&[u8]]) -> Vec<u8> {
        [&b"BM\x40\0\0\0\0\0\0\0\x3E\0\0\0"[..], &header.concat(), &[0; 20]].concat()
    }

    #[test]
    fn the_size_of_a_bmp_is_that_of_its_version() {
        let of = |width: i32, height: i32| {
            size(&encode(&bmp(&[&[124, 0, 0, 0], &width.to_le_bytes(), &height.to_le_bytes()])))
        };
        assert_eq!(of(70_000, -9), Some((70_000, 9)));
        assert_eq!((of(-1, 9), of(0, 9), of(9, 0)), (None, None, None));
        assert_eq!(of(1, i32::MIN), Some((1, 1 << 31)));
        assert_eq!(size(&encode(&bmp(&[&[12, 0, 0, 0, 64, 1, 240, 0]]))), Some((320, 240)));
    }

    #[test]
    fn the_size_is_read_from_each_format() {
        let gif = b"GIF89a\x40\x01\xF0\x00\xF7\0\0".as_slice();
        let lossy = webp(b"VP8 ", b"\x30\x01\0\x9D\x01\x2A\x40\x41\xF0\x80");
        let lossless = webp(b"VP8L", &[&[0x2F][..], &(319_u32 | 239 << 14).to_le_bytes()].concat());
        let extended = webp(b"VP8X", b"\x10\0\0\0\x3F\x01\0\xEF\0\0");
        let [png, jpeg] = [png(320, 240), jpeg(320, 240, 0xC0)];
        let bmp = bmp(&[&[40, 0, 0, 0][..], &320_i32.to_le_bytes(), &240_i32.to_le_bytes()]);
        for file in [png.as_slice(), &jpeg, gif, &lossy, &lossless, &extended, &bmp] {
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
    fn a_header_of_another_form_has_no_size() {
        let lossy = webp(b"VP8 ", b"\x30\x01\0\x9D\x01\x2B\x40\x01\xF0\0");
        let lossless = webp(b"VP8L", b"\x2E\x3F\xC1\x3B\0\0\0\0\0\0");
        // What follows the end of the image, or begins its data, is no frame.
        let frame = b"\0\x02\xFF\xC0\0\x11\x08\0\x09\0\x09";
        let [ended, scanned] =
            [0xD9, 0xDA].map(|it| [&[0xFF, 0xD8, 0xFF, it], &frame[..]].concat());
        let flat = jpeg(0, 480, 0xC0);
        let narrow = jpeg(640, 0, 0xC0);
        for file in [lossy, lossless, ended, scanned, flat, narrow, png(0, 9), png(9, 0)] {
            assert_eq!(size(&encode(&file)), None, "{:?}", file.len());
        }
    }

    #[test]
    fn line_breaks_a_data_prefix_and_the_other_alphabet_are_read() {
        let plain = encode(&png(320, 240));
        let broken: Vec<&str> = (0..plain.len()).step_by(4).map(|i| &plain[i..i + 4]).collect();
        assert_eq!(size(&broken.join("\r\n")), Some((320, 240)));
        assert_eq!(size(&format!("data:image/png;base64,{plain}")), Some((320, 240)));
    }

    #[test]
    fn truncated_and_damaged_data_never_panics() {
        for file in [png(320, 240), jpeg(320, 240, 0xC0), webp(b"VP8X", &[0; 10])] {
            let whole = encode(&file);
            for end in 0..whole.len().min(80) {
                let broken = format!("{}é{}", &whole[..end], &whole[end..]);
                for source in [&whole[..end], &broken] {
                    let _ = size(source);
                }
            }
        }
    }
}
