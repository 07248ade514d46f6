#![no_main]
//! `anthropic` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("anthropic", input));
