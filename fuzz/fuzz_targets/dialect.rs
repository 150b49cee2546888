#![no_main]
//! The target `dialect`: see [`clawutils_fuzz::dialect`].

use clawutils_fuzz::dialect;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dialect::run(bytes));
