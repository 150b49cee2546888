#![no_main]
//! The target `stream`: see [`clawutils_fuzz::stream`].

use clawutils_fuzz::stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream::run(bytes));
