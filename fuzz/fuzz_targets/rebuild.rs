#![no_main]
//! The target `rebuild`: see [`clawutils_fuzz::rebuild`].

use clawutils_fuzz::rebuild;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rebuild::run(bytes));
