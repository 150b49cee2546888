//! Makes an image smaller, or writes it again in a type that providers accept.

use super::Kind;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as RowFilter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgba, RgbaImage};
use std::io::Cursor;

/// The most pixels of an image that is decoded. A larger one would take more than 400 MB of memory.
pub const MOST_PIXELS: u64 = 100_000_000;
/// The most memory for decoding, in bytes.
const MOST_MEMORY: u64 = 512 << 20;
/// The number of pixels above which an image is first scaled down quickly.
const LARGE: u64 = 16_000_000;
/// The qualities of JPEG that are tried.
const QUALITIES: [u8; 2] = [85, 60];
/// The share by which the edges of an image shrink if it still has too many bytes, in percent.
const STEP: u32 = 70;
/// The edge in pixels below which an image is not made smaller.
const SMALLEST: u32 = 64;

/// The size that an image may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The longest edge, in pixels.
    pub edge: u32,
    /// The largest file, in bytes.
    pub bytes: usize,
}

/// An image that was made to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// The type of the file.
    pub kind: Kind,
    /// The file.
    pub file: Vec<u8>,
    /// The width and height in pixels before, as the image is shown: a photograph may be stored turned.
    pub before: (u32, u32),
    /// The width and height in pixels now.
    pub now: (u32, u32),
}

/// Decodes an image and writes it so that it fits. Of an animation only the first picture is left. The same file always gives the
/// same bytes.
///
/// # Errors
/// Returns the reason, phrased to follow "it", if the image cannot be decoded, or has more than 100 million pixels.
pub fn fit(file: &[u8], kind: Kind, room: Room) -> Result<Scaled, String> {
    let (picture, before) = decode(file, kind)?;
    let mut picture = shrunk(picture, room.edge);
    loop {
        let now = (picture.width(), picture.height());
        if let Some((kind, file)) = written(&picture, kind, room.bytes)? {
            return Ok(Scaled { kind, file, before, now });
        }
        let edge = now.0.max(now.1) * STEP / 100;
        if edge < SMALLEST {
            return Err("cannot be made small enough".to_owned());
        }
        picture = shrunk(picture, edge);
    }
}

fn decode(file: &[u8], kind: Kind) -> Result<(DynamicImage, (u32, u32)), String> {
    let broken = |_| "cannot be decoded".to_owned();
    let format = match kind {
        Kind::Png => ImageFormat::Png,
        Kind::Jpeg => ImageFormat::Jpeg,
        Kind::Gif => ImageFormat::Gif,
        Kind::Webp => ImageFormat::WebP,
        Kind::Bmp => ImageFormat::Bmp,
        _ => return Err("cannot be decoded".to_owned()),
    };
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MOST_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!("has {width} x {height} pixels, which is too many to scale it down"));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(broken)?;
    picture.apply_orientation(orientation);
    let shown = (picture.width(), picture.height());
    Ok((picture, shown))
}

/// Returns the image with edges of at most `edge` pixels.
fn shrunk(picture: DynamicImage, edge: u32) -> DynamicImage {
    let (width, height) = (picture.width(), picture.height());
    if width.max(height) <= edge {
        return picture;
    }
    let picture = match u64::from(width) * u64::from(height) > LARGE {
        true => picture.thumbnail(edge.saturating_mul(2), edge.saturating_mul(2)),
        false => picture,
    };
    picture.resize(edge, edge, FilterType::Triangle)
}

/// Returns the file of an image, as JPEG if it was one or is too large as PNG; `None` if both are.
fn written(
    picture: &DynamicImage,
    kind: Kind,
    most: usize,
) -> Result<Option<(Kind, Vec<u8>)>, String> {
    let failed = |_| "cannot be written again".to_owned();
    if kind != Kind::Jpeg {
        let mut file = Vec::new();
        let encoder =
            PngEncoder::new_with_quality(&mut file, CompressionType::Default, RowFilter::Adaptive);
        DynamicImage::from(picture.to_rgba8()).write_with_encoder(encoder).map_err(failed)?;
        if file.len() <= most {
            return Ok(Some((Kind::Png, file)));
        }
    }
    let opaque = DynamicImage::from(on_white(picture.to_rgba8())).to_rgb8();
    for quality in QUALITIES {
        let mut file = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut file, quality);
        opaque.write_with_encoder(encoder).map_err(failed)?;
        if file.len() <= most {
            return Ok(Some((Kind::Jpeg, file)));
        }
    }
    Ok(None)
}

/// Returns the image on a white background, because JPEG has no transparency.
fn on_white(mut picture: RgbaImage) -> RgbaImage {
    for Rgba([colours @ .., alpha]) in picture.pixels_mut() {
        let opacity = u16::from(*alpha);
        for colour in colours {
            let mixed = (u16::from(*colour) * opacity + 255 * (255 - opacity)) / 255;
            *colour = u8::try_from(mixed).unwrap_or(u8::MAX);
        }
        *alpha = u8::MAX;
    }
    picture
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a picture of this type.
    pub(crate) fn picture(kind: Kind, width: u32, height: u32) -> Vec<u8> {
        let format = match kind {
            Kind::Jpeg => ImageFormat::Jpeg,
            Kind::Gif => ImageFormat::Gif,
            Kind::Webp => ImageFormat::WebP,
            Kind::Bmp => ImageFormat::Bmp,
            _ => ImageFormat::Png,
        };
        let noise = |x: u32, y: u32| (x * 7919 + y * 104_729 + x * y % 251) as u8;
        let pixel = |x, y| Rgba([noise(x, y), noise(y, x), noise(x + y, x), 200]);
        let picture = DynamicImage::from(RgbaImage::from_fn(width, height, pixel));
        let picture = match kind {
            Kind::Jpeg | Kind::Bmp => DynamicImage::from(picture.to_rgb8()),
            _ => picture,
        };
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    const WIDE: Room = Room { edge: 2000, bytes: 1 << 20 };

    #[test]
    fn an_image_that_is_stored_turned_is_turned() {
        let plain = picture(Kind::Jpeg, 30, 4);
        let exif = b"\xFF\xE1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let turned = [&plain[..2], exif, &plain[2..]].concat();
        for (file, shown) in [(plain, (30, 4)), (turned, (4, 30))] {
            let scaled = fit(&file, Kind::Jpeg, WIDE).unwrap();
            assert_eq!((scaled.before, scaled.now), (shown, shown));
        }
    }

    #[test]
    fn a_large_image_of_each_type_is_scaled_and_keeps_its_form() {
        for (kind, becomes) in [
            (Kind::Png, Kind::Png),
            (Kind::Jpeg, Kind::Jpeg),
            (Kind::Gif, Kind::Png),
            (Kind::Webp, Kind::Png),
            (Kind::Bmp, Kind::Png),
        ] {
            let file = picture(kind, 300, 40);
            let room = Room { edge: 150, ..WIDE };
            let scaled = fit(&file, kind, room).unwrap();
            assert_eq!(scaled.before, (300, 40));
            assert_eq!((scaled.now, scaled.kind), ((150, 20), becomes), "{kind:?}");
            assert_eq!(Kind::of(&scaled.file), becomes);
            assert_eq!(fit(&file, kind, room).unwrap(), scaled, "the same bytes each time");
        }
    }

    #[test]
    fn an_image_with_too_many_bytes_becomes_a_jpeg_and_then_smaller() {
        let file = picture(Kind::Png, 400, 400);
        for bytes in [file.len() / 2, 20_000, 4000] {
            let scaled = fit(&file, Kind::Png, Room { bytes, ..WIDE }).unwrap();
            assert!(scaled.file.len() <= bytes, "{bytes}: {:?}", scaled.now);
            assert_eq!(scaled.kind, Kind::Jpeg);
        }
        assert!(fit(&file, Kind::Png, Room { bytes: 10, ..WIDE }).is_err());
    }

    #[test]
    fn damaged_files_and_bombs_have_a_reason() {
        let mut file = picture(Kind::Png, 40, 40);
        file.truncate(60);
        assert_eq!(fit(&file, Kind::Png, WIDE), Err("cannot be decoded".to_owned()));
        // The header of a PNG of 60,000 by 60,000 pixels, with the checksum of that header.
        let bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0";
        let mut bomb = bomb.to_vec();
        let checksum = {
            let mut crc = flate2::Crc::new();
            crc.update(&bomb[12..]);
            crc.sum()
        };
        bomb.extend(checksum.to_be_bytes());
        bomb.extend(b"\0\0\0\x04IDAT\0\0\0\0\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82");
        let why = fit(&bomb, Kind::Png, WIDE).unwrap_err();
        assert!(why.contains("60000 x 60000") || why == "cannot be decoded", "{why}");
    }
}
