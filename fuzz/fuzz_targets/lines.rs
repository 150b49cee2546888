#![no_main]
//! The target `lines`: see [`clawutils_fuzz::lines`].

use clawutils_fuzz::lines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lines::run(bytes));
