#![no_main]
//! `commands` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("commands", input));
