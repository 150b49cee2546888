#![no_main]
//! The target `scan`: see [`clawutils_fuzz::scan`].

use clawutils_fuzz::scan;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scan::run(bytes));
