//! Tests that any bytes can be read as a transcript, and that the rebuilt messages obey the laws.

use super::{expect, laws};
use clawutils::finding::rules::REFUSED;
use clawutils::input::Input;
use clawutils::lint;

/// Tests `bytes` as a transcript.
pub fn run(bytes: &[u8]) {
    expect(laws::check(bytes).map(drop));
    expect(laws::check_each_option(bytes));
    if let Ok(findings) = lint::lint(Input::memory("t", bytes.to_vec())) {
        assert!(findings.iter().all(|found| *found.rule != REFUSED), "{findings:?}");
    }
}
