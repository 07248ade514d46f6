//! Sanitizes text of a feature before it reaches a screen, a report or a model.

use authority::Redactor;
pub(crate) use authority::text::Lines;
use authority::text::{escape_within, find};
use serde_json::Value;
use std::time::Duration;

/// Longest name of anything, in bytes.
pub(crate) const MAX_NAME: usize = 64;
/// Longest description, instruction or tool text, in bytes.
pub(crate) const MAX_TEXT: usize = 8 * 1024;

/// Whether a name in a `const` key can be shown as it is: one line of printable ASCII that is not blank.
pub(crate) const fn name_fits(name: &str, max: usize) -> bool {
    let mut rest = name.as_bytes();
    let mut shows = false;
    while let [byte, tail @ ..] = rest {
        if !matches!(*byte, b' '..=b'~') {
            return false;
        }
        shows = shows || *byte != b' ';
        rest = tail;
    }
    shows && name.len() <= max
}

/// Whether a name in a `const` key is 1 to [`MAX_NAME`] bytes of `[a-z0-9-]`.
pub(crate) const fn plain_name_fits(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [byte, tail @ ..] = rest {
        if !matches!(*byte, b'a'..=b'z' | b'0'..=b'9' | b'-') {
            return false;
        }
        rest = tail;
    }
    !name.is_empty() && name.len() <= MAX_NAME
}

/// Whether a name is 1 to [`MAX_NAME`] bytes of `[A-Za-z0-9_-]`, as APIs of models take it.
pub(crate) const fn tool_name_fits(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [byte, tail @ ..] = rest {
        if !(byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'-')) {
            return false;
        }
        rest = tail;
    }
    !name.is_empty() && name.len() <= MAX_NAME
}

/// Whole milliseconds, as they are declared.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Refuses empty, oversized and misleading text, which can make a screen show something else than the text says. The
/// problem names `what`.
pub(crate) fn check(what: &str, text: &str, max: usize, lines: Lines) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.len() > max {
        return Err(format!(
            "{what} has {} bytes; at most {max} are allowed",
            text.len()
        ));
    }
    match find(text, lines) {
        Some(c) => Err(format!(
            "{what} contains {}, a control, direction or invisible character",
            c.escape_unicode()
        )),
        None => Ok(()),
    }
}

/// Cuts text to at most `max` bytes at a character, and escapes what [`check`] refuses: for texts that must be shown
/// whatever they contain. Texts of a feature need [`sanitize`].
pub(crate) fn escape_line(text: &str, max: usize) -> String {
    escape_within(text, Lines::One, max)
}

/// Limit on a feature's text before redaction: far beyond all that is ever shown of it, so that a secret that is cut in
/// half here is not shown either.
const MAX_RAW: usize = 64 * 1024;

/// Bounds a feature's text before redaction; the holder of the redactor calls [`sanitize`].
pub(crate) fn clamp(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_RAW))
        .unwrap_or(text)
}

/// Makes a feature's text safe to write and show: removes secrets first, then cuts and escapes as [`escape_line`].
pub(crate) fn sanitize(text: &str, max: usize, redactor: &Redactor) -> String {
    escape_line(&redactor.text(clamp(text)), max)
}

/// As [`sanitize`], for texts that may have several lines.
pub(crate) fn sanitize_lines(text: &str, max: usize, redactor: &Redactor) -> String {
    escape_within(&redactor.text(clamp(text)), Lines::Many, max)
}

/// The name of a secret that some string, key or number of a value contains.
pub(crate) fn secret(value: &Value, redactor: &Redactor) -> Option<String> {
    if redactor.is_idle() {
        return None;
    }
    match value {
        Value::String(text) => redactor.finds(text.as_bytes()),
        Value::Number(number) => redactor.finds(number.to_string().as_bytes()),
        Value::Array(values) => values.iter().find_map(|value| secret(value, redactor)),
        Value::Object(fields) => {
            let named = |(name, value)| {
                redactor
                    .finds(String::as_bytes(name))
                    .or_else(|| secret(value, redactor))
            };
            fields.iter().find_map(named)
        }
        Value::Null | Value::Bool(_) => None,
    }
}
