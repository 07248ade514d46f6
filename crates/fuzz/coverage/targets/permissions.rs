#![no_main]
//! `permissions` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("permissions", input));
