//! The scanner and serde_json agree about every text.

use crate::{agree, expect};

/// Tries all of `bytes` as one text, and each of its lines.
pub fn hold(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.split('\n').chain([text.as_ref()]) {
        expect(agree::on(line).map(drop));
    }
}
