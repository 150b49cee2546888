#![no_main]
//! The target `pair`: see [`clawutils_fuzz::pair`].

use clawutils_fuzz::pair;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pair::run(bytes));
