#![no_main]
//! `arguments` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("arguments", input));
