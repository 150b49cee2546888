//! Tests that the JSON scanner and serde_json agree on any input.

use super::{agree, expect};

/// Tests `bytes` as a whole, and each line.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.split('\n').chain([text.as_ref()]) {
        expect(agree::on(line).map(drop));
    }
}
