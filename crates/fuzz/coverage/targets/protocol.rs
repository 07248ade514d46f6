#![no_main]
//! `protocol` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("protocol", input));
