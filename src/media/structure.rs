//! The structure of an image: whether the file is whole, as far as the lengths of its parts show.

use super::kind::HEAD;
use super::{Encoded, Kind, size};

/// The size of an image in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The type of the file.
    pub kind: Kind,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

/// The reason why a torn file is refused.
pub const TORN: &str = "ends too early";
/// The number of last bytes in which the end of a JPEG is looked for first. Cameras append more than that, and then all of
/// the file is searched.
const TAIL: usize = 4096;
/// The length of a PNG's signature.
const SIGNATURE: usize = 8;

/// Returns the size of a whole image, or the reason why it is none, phrased to follow "it": `ends too early`.
///
/// # Errors
/// If the file is no PNG, JPEG, GIF or WebP image, has no size, or ends too early. The picture is not decoded.
pub fn check(image: Encoded<'_>) -> Result<Picture, String> {
    let kind = Kind::of(&image.read(0, HEAD));
    let is_whole = match kind {
        Kind::Png => png_is_whole(image),
        Kind::Jpeg => jpeg_is_whole(image),
        Kind::Gif => gif_is_whole(image),
        Kind::Webp => webp_is_whole(image),
        Kind::Empty => return Err("is empty".to_owned()),
        Kind::Unknown => return Err("is no image".to_owned()),
        other => return Err(["is ", other.name(), ", which is not accepted"].concat()),
    };
    match size::of(image, kind) {
        Some((width, height)) if is_whole => Ok(Picture { kind, width, height }),
        Some(_) => Err(TORN.to_owned()),
        None => Err("has no size".to_owned()),
    }
}

/// Follows the chunks of a PNG up to its end. Each has a length, a name, data, and a checksum.
fn png_is_whole(image: Encoded<'_>) -> bool {
    const AROUND: usize = 12;
    let (mut at, mut has_data) = (SIGNATURE, false);
    loop {
        let head = image.read(at, 8);
        let Some((length, name)) = head.split_first_chunk::<4>() else { return false };
        let length = u32::from_be_bytes(*length) as usize;
        at = at.saturating_add(AROUND).saturating_add(length);
        if at > image.byte_count() {
            return false;
        }
        match name {
            b"IEND" => return has_data,
            b"IDAT" => has_data = true,
            _ => {}
        }
    }
}

/// Looks for the marker at the end of a JPEG.
fn jpeg_is_whole(image: Encoded<'_>) -> bool {
    let has_end =
        |from: usize| memchr::memmem::rfind(&image.read(from, usize::MAX), b"\xFF\xD9").is_some();
    let tail = image.byte_count().saturating_sub(TAIL);
    has_end(tail) || has_end(0)
}

/// Looks for the byte at the end of a GIF; some programs append zeros.
fn gif_is_whole(image: Encoded<'_>) -> bool {
    const TRAILER: u8 = 0x3B;
    let tail = image.read(image.byte_count().saturating_sub(TAIL), TAIL);
    tail.iter().rfind(|byte| **byte != 0) == Some(&TRAILER)
}

/// Compares the length in the header of a WebP with the file's.
fn webp_is_whole(image: Encoded<'_>) -> bool {
    const BEFORE: usize = 8;
    let length = image.read(4, 4);
    let length = length.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
    length.is_some_and(|length| length.saturating_add(BEFORE) <= image.byte_count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::encoded::encode;
    use crate::media::scale::tests::picture;

    #[test]
    fn a_whole_image_has_its_size_and_a_torn_one_is_found() {
        for kind in [Kind::Png, Kind::Jpeg, Kind::Gif, Kind::Webp] {
            let file = picture(kind, 40, 30);
            let text = encode(&file);
            let whole = check(Encoded::new(&text).unwrap());
            assert_eq!(whole, Ok(Picture { kind, width: 40, height: 30 }));
            for length in [file.len() / 2, file.len() - 3] {
                let torn = encode(&file[..length]);
                let torn = check(Encoded::new(&torn).unwrap());
                assert_eq!(torn, Err("ends too early".to_owned()), "{kind:?} {length}");
            }
            let longer = encode(&[&file[..], &[0; 9]].concat());
            assert!(check(Encoded::new(&longer).unwrap()).is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_no_image_has_a_reason() {
        for (bytes, why) in [
            (&b""[..], "is empty"),
            (b"\0\x01\x02", "is no image"),
            (b"hello", "is text, which is not accepted"),
            (b"<svg/>", "is SVG, which is not accepted"),
            (b"%PDF-1.4", "is PDF, which is not accepted"),
            (b"\x89PNG\r\n\x1a\n", "has no size"),
        ] {
            let text = encode(bytes);
            assert_eq!(check(Encoded::new(&text).unwrap()), Err(why.to_owned()));
        }
    }

    #[test]
    fn hostile_lengths_end_the_search() {
        let mut file = picture(Kind::Png, 4, 4);
        file[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        let text = encode(&file);
        assert!(check(Encoded::new(&text).unwrap()).is_err());
    }
}
