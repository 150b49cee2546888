//! The type of a file, from its first bytes.

/// The number of first bytes that decide the type. A PDF may begin with other bytes.
pub const HEAD: usize = 1024;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// A BMP image, which no provider accepts.
    Bmp,
    /// A PDF document.
    Pdf,
    /// An SVG image, which is text.
    Svg,
    /// An image in a format that cannot be read here, such as TIFF, HEIC or AVIF.
    OtherImage(&'static str),
    /// Any other text.
    Text,
    /// Nothing.
    Empty,
    /// Anything else.
    Unknown,
}

impl Kind {
    /// Returns the type of the file with these first bytes; up to [`HEAD`] of them are needed.
    #[must_use]
    pub fn of(head: &[u8]) -> Kind {
        match head {
            [] => Kind::Empty,
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Kind::Png,
            [0xFF, 0xD8, 0xFF, ..] => Kind::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Kind::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Kind::Webp,
            [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Kind::OtherImage("TIFF"),
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Kind::Bmp,
            [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => base_media(brand),
            _ if memchr::memmem::find(head, b"%PDF-").is_some() => Kind::Pdf,
            _ => text(head),
        }
    }

    /// Returns the media type of a file that a provider may accept.
    #[must_use]
    pub fn media_type(self) -> Option<&'static str> {
        match self {
            Kind::Png => Some("image/png"),
            Kind::Jpeg => Some("image/jpeg"),
            Kind::Gif => Some("image/gif"),
            Kind::Webp => Some("image/webp"),
            Kind::Pdf => Some("application/pdf"),
            _ => None,
        }
    }

    /// Returns the type of block for the file in a message.
    #[must_use]
    pub fn block(self) -> &'static str {
        if self == Kind::Pdf || self == Kind::Text { "document" } else { "image" }
    }

    /// Names the type, for a diagnostic.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Png => "PNG",
            Kind::Jpeg => "JPEG",
            Kind::Gif => "GIF",
            Kind::Webp => "WebP",
            Kind::Bmp => "BMP",
            Kind::Pdf => "PDF",
            Kind::Svg => "SVG",
            Kind::OtherImage(name) => name,
            Kind::Text => "text",
            Kind::Empty => "nothing",
            Kind::Unknown => "unknown data",
        }
    }
}

/// Returns the type of a file in the ISO base media format, from its brand.
fn base_media(brand: &[u8]) -> Kind {
    match brand {
        [b'a', b'v', b'i', b'f' | b's', ..] => Kind::OtherImage("AVIF"),
        [b'h', b'e', b'i' | b'v', ..] | [b'm', b'i', b'f', b'1', ..] => Kind::OtherImage("HEIC"),
        _ => Kind::Unknown,
    }
}

/// Tells SVG from other text. The last character may be cut off.
fn text(head: &[u8]) -> Kind {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Kind::Unknown,
    };
    let is_control = |c: char| c.is_control() && !c.is_whitespace();
    match text.trim_start_matches('\u{feff}').trim_start() {
        _ if text.chars().any(is_control) => Kind::Unknown,
        text if text.starts_with('<') && text.contains("<svg") => Kind::Svg,
        _ => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide_the_type() {
        for (head, kind) in [
            (&b""[..], Kind::Empty),
            (b"\x89PNG\r\n\x1a\n\0\0", Kind::Png),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Kind::Jpeg),
            (b"GIF89a\x01\0", Kind::Gif),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Kind::Webp),
            (b"BM\x10\0\0\0\0\0\0\0\x36", Kind::Bmp),
            (b"BMW is a maker of cars", Kind::Text),
            (b"II*\0\x08", Kind::OtherImage("TIFF")),
            (b"\0\0\0\x1cftypavif\0", Kind::OtherImage("AVIF")),
            (b"\0\0\0\x18ftypheic\0", Kind::OtherImage("HEIC")),
            (b"\0\0\0\x18ftypmp42", Kind::Unknown),
            (b"%PDF-1.7\n", Kind::Pdf),
            (b"\n\n%PDF-1.7\n", Kind::Pdf),
            (b"<?xml version='1.0'?><svg xmlns='x'/>", Kind::Svg),
            (b"\xef\xbb\xbf <svg/>", Kind::Svg),
            (b"<html/>", Kind::Text),
            ("h\u{e9}llo \u{2192}".as_bytes(), Kind::Text),
            (&"h\u{2192}".as_bytes()[..3], Kind::Text),
            (b"\0\x01\x02", Kind::Unknown),
            (b"caf\xe9 au lait", Kind::Unknown),
        ] {
            assert_eq!(Kind::of(head), kind, "{head:?}");
        }
    }
}
