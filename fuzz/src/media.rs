//! Tests that any bytes can be examined as an image or a PDF file, and that an image that is made smaller fits and is whole.

use clawutils::media::encoded::{Encoded, clean, encode};
use clawutils::media::kind::{HEAD, Kind};
use clawutils::media::scale::{self, Room};
use clawutils::media::{check, pdf, size};

/// The largest picture, in pixels, that is decoded: a larger one takes too long.
const MOST_PIXELS: u64 = 1 << 16;

/// Checks the laws. The first byte selects how much room an image has.
///
/// # Panics
/// If a law is broken.
pub fn run(bytes: &[u8]) {
    let [room, file @ ..] = bytes else { return };
    let text = encode(file);
    let encoded = Encoded::new(&text).expect("what was encoded can be read");
    assert_eq!((encoded.byte_count(), encoded.decode()), (file.len(), file.to_vec()));
    let spaced = format!(" {text}\n");
    assert!(clean(&spaced).is_none_or(|it| it == text), "{spaced:?}");
    let pages = pdf::check(file);
    assert!(pages.is_err() || file.windows(5).any(|it| it == b"%PDF-"), "a PDF file has a header");
    let kind = Kind::of(&file[..file.len().min(HEAD)]);
    let whole = check(encoded);
    let Some((width, height)) = size::size(&text) else {
        assert!(whole.is_err(), "{whole:?} without a size");
        return;
    };
    if let Ok(picture) = whole {
        assert_eq!((picture.width, picture.height), (width, height));
    }
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return;
    }
    let header = (width.min(height), width.max(height));
    let room = Room { edge: 64 + u32::from(*room), bytes: 1 << (10 + room % 8) };
    let Ok(scaled) = scale::fit(file, kind, room) else { return };
    let (width, height) = scaled.before;
    assert_eq!(
        header,
        (width.min(height), width.max(height)),
        "the header has the size that is decoded"
    );
    let (width, height) = scaled.now;
    assert!(width.max(height) <= room.edge && scaled.file.len() <= room.bytes, "{:?}", scaled.now);
    assert!(width <= scaled.before.0 && height <= scaled.before.1, "it did not grow");
    let again = encode(&scaled.file);
    let picture = check(Encoded::new(&again).expect("encoded")).expect("a whole image");
    assert_eq!((picture.kind, picture.width, picture.height), (scaled.kind, width, height));
    assert_eq!(scale::fit(file, kind, room), Ok(scaled), "the same file gives the same bytes");
}
