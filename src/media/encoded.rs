//! Base64 text: cleaned, checked, and read at any place.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The standard alphabet. Padding and unused bits are not checked, because providers do not.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The number of characters that are checked at once.
const PIECE: usize = 4096;

/// Bytes as base64 in the standard alphabet, padded to groups of four characters: the form that every provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    text: &'a str,
    length: usize,
}

impl<'a> Encoded<'a> {
    /// Returns the bytes in `text`, or `None` if it does not have this form.
    #[must_use]
    pub fn new(text: &'a str) -> Option<Encoded<'a>> {
        let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
        // The loop over a piece has no exit, so the compiler checks many characters at once.
        let is_clean = |piece: &[u8]| piece.iter().fold(true, |all, byte| all & is_digit(*byte));
        let fits = text.len().is_multiple_of(4) && digits.as_bytes().chunks(PIECE).all(is_clean);
        fits.then(|| Encoded { text, length: digits.len() / 4 * 3 + digits.len() % 4 * 3 / 4 })
    }

    /// Returns the base64 text.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn byte_count(self) -> usize {
        self.length
    }

    /// Returns the bytes from `at` on, at most `count` of them.
    #[must_use]
    pub fn read(self, at: usize, count: usize) -> Vec<u8> {
        if at >= self.length {
            return Vec::new();
        }
        let last = at.saturating_add(count).min(self.length);
        let groups = self.text.get(at / 3 * 4..last.div_ceil(3) * 4).unwrap_or_default();
        let mut bytes = ENGINE.decode(groups).unwrap_or_default();
        bytes.truncate(last - at / 3 * 3);
        bytes.split_off((at % 3).min(bytes.len()))
    }

    /// Returns all bytes.
    #[must_use]
    pub fn decode(self) -> Vec<u8> {
        self.read(0, self.length)
    }
}

/// Returns true for a character of the standard alphabet.
fn is_digit(byte: u8) -> bool {
    let is_in = |first: u8, count: u8| byte.wrapping_sub(first) < count;
    // '/' comes right before '0'.
    is_in(b'A', 26) | is_in(b'a', 26) | is_in(b'/', 11) | (byte == b'+')
}

/// Returns the text in the standard form, without a `data:` prefix and white space, in the standard alphabet, and padded.
/// `None` if it contains other characters.
#[must_use]
pub fn clean(text: &str) -> Option<String> {
    let data = match text.trim_start().strip_prefix("data:") {
        Some(address) => address.split_once(',').map_or("", |(_, data)| data),
        None => text,
    };
    let kept = data.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let mut clean: String = kept
        .map(|byte| match byte {
            b'-' => '+',
            b'_' => '/',
            other => char::from(other),
        })
        .collect();
    clean.truncate(clean.trim_end_matches('=').len());
    while !clean.len().is_multiple_of(4) {
        clean.push('=');
    }
    // A single digit holds less than a byte.
    Encoded::new(&clean).map(|_| ()).filter(|()| !clean.ends_with("===")).map(|()| clean)
}

/// Returns bytes as base64.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_at_any_place() {
        for length in 0..20_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(91)).collect();
            let text = encode(&bytes);
            let encoded = Encoded::new(&text).unwrap();
            assert_eq!((encoded.byte_count(), encoded.decode()), (bytes.len(), bytes.clone()));
            for at in 0..22 {
                for count in [0, 1, 2, 3, 4, 7, 100, usize::MAX] {
                    let expected: Vec<u8> = bytes.iter().skip(at).take(count).copied().collect();
                    assert_eq!(encoded.read(at, count), expected, "{length} {at} {count}");
                }
            }
        }
    }

    #[test]
    fn only_the_standard_form_is_accepted_and_other_forms_are_cleaned() {
        for (text, cleaned) in [
            ("-_-_", Some("+/+/")),
            ("eA", Some("eA==")),
            ("eHg", Some("eHg=")),
            (" eH\r\ng=\n", Some("eHg=")),
            ("data:image/png;base64,eHg=", Some("eHg=")),
            ("data:image/png;base64,", Some("")),
            ("e", None),
            ("eHg=eHg=", None),
            ("https://example.org/a.png", None),
            ("é", None),
            // The neighbours of the letters and digits.
            ("@AAA", None),
            ("[AAA", None),
            ("`AAA", None),
            ("{AAA", None),
            (".AAA", None),
            (":AAA", None),
        ] {
            assert_eq!(Encoded::new(text), None, "{text}");
            assert_eq!(clean(text).as_deref(), cleaned, "{text}");
        }
        for text in ["", "eHg=", "eA==", "AZaz09+/"] {
            assert!(Encoded::new(text).is_some(), "{text}");
            assert_eq!(clean(text).as_deref(), Some(text));
        }
    }
}
