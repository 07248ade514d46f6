#![no_main]
//! `gemini` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("gemini", input));
