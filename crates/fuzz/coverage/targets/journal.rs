#![no_main]
//! `journal` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("journal", input));
