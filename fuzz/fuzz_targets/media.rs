#![no_main]
//! The target `media`: see [`clawutils_fuzz::media`].

use clawutils_fuzz::media;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| media::run(bytes));
