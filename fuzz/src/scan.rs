//! Tests that the JSON scanner and serde_json agree on every text.

use crate::{agree, expect};

/// Tests all of `bytes` as one text, and each of its lines.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.split('\n').chain([text.as_ref()]) {
        expect(agree::on(line).map(drop));
    }
}
