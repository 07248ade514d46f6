#![no_main]
//! `responses` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("responses", input));
