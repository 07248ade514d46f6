#![no_main]
//! `openai` by coverage.

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::run("openai", input));
