#![no_main]
//! The target `pi`: see [`clawutils_fuzz::pi`].

use clawutils_fuzz::pi;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pi::run(bytes));
