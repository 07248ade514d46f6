//! The regular expressions that a person writes into settings, bounded. Does not depend on what they are matched against.

use authority::text::{Lines, escape_within};
use regex::{Regex, RegexBuilder};
use std::sync::Arc;

/// Most patterns, and bytes of one.
const MAX_PATTERNS: usize = 64;
const MAX_BYTES: usize = 512;

/// Most bytes of one compiled pattern.
const MAX_COMPILED: usize = 1024 * 1024;

/// The most bytes of a pattern that a message shows.
const MAX_SHOWN: usize = 40;

/// Compiles the value of `patterns`, which has at least so many.
///
/// # Errors
/// For people, with the key and what was expected.
pub(crate) fn compiled(texts: &[String], least: usize) -> Result<Arc<[Regex]>, String> {
    if !(least..=MAX_PATTERNS).contains(&texts.len()) {
        return Err(format!(
            "`patterns` has {}; expected {least} to {MAX_PATTERNS}",
            texts.len()
        ));
    }
    texts.iter().map(|text| one(text)).collect()
}

fn one(text: &str) -> Result<Regex, String> {
    let bad = |problem: &str| Err(format!("`patterns` has `{}`: {problem}", shown(text)));
    if text.is_empty() || text.len() > MAX_BYTES {
        return bad(&format!("expected 1 to {MAX_BYTES} bytes"));
    }
    match RegexBuilder::new(text).size_limit(MAX_COMPILED).build() {
        Ok(regex) if regex.is_match("") => bad("it matches the empty text"),
        Ok(regex) => Ok(regex),
        Err(_) => bad("it is no regular expression of at most 1 MiB"),
    }
}

/// A pattern for a message.
pub(crate) fn shown(text: &str) -> String {
    escape_within(text, Lines::One, MAX_SHOWN)
}
