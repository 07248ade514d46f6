#![no_main]
//! `config` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("config", input));
