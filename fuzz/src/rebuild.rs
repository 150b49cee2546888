//! Any bytes are a transcript, and the rebuilt messages obey the laws.

use crate::{expect, laws};
use clawutils::finding::rules::REFUSED;
use clawutils::input::Input;
use clawutils::lint;

/// Tests `bytes` as a transcript.
pub fn hold(bytes: &[u8]) {
    expect(laws::hold(bytes).map(drop));
    expect(laws::hold_for_each_option(bytes));
    if let Ok(findings) = lint::lint(Input::memory("t", bytes.to_vec())) {
        assert!(findings.iter().all(|found| *found.rule != REFUSED), "{findings:?}");
    }
}
