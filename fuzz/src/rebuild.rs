//! Any bytes are a transcript, and what is rebuilt from them is lawful.

use crate::{expect, laws};
use clawutils::finding::rules::REFUSED;
use clawutils::input::Input;
use clawutils::lint;

/// Takes `bytes` as a transcript.
pub fn hold(bytes: &[u8]) {
    expect(laws::hold(bytes).map(drop));
    expect(laws::hold_for_each_option(bytes));
    if let Ok(findings) = lint::lint(Input::memory("t", bytes.to_vec())) {
        assert!(findings.iter().all(|found| *found.rule != REFUSED), "{findings:?}");
    }
}
