//! What text of a feature may reach a screen, a report or a model.

use authority::Redactor;
use serde_json::Value;

/// How many lines a text may have.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    One,
    Many,
}

impl Lines {
    fn allow(self, c: char) -> bool {
        matches!((self, c), (Self::Many, '\n' | '\t'))
    }
}

/// Refuses empty, oversized and misleading text (control and bidirectional characters, which can make a screen
/// show something else than what is there). The problem names `what`.
pub(super) fn check(what: &str, text: &str, max: usize, lines: Lines) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.len() > max {
        return Err(format!("{what} has {} bytes; at most {max} are allowed", text.len()));
    }
    match text.chars().find(|&c| misleading(c) && !lines.allow(c)) {
        Some(c) => Err(format!("{what} contains {}, a control or bidirectional character", c.escape_unicode())),
        None => Ok(()),
    }
}

fn misleading(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text cut to at most `max` bytes at a character, with what [`check`] refuses escaped: for words that must be shown
/// whatever is in them. Words of a feature are [`said`].
pub(crate) fn shown(text: &str, max: usize) -> String {
    bounded(text, max, Lines::One)
}

fn bounded(text: &str, max: usize, lines: Lines) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let before = out.len();
        if misleading(c) && !lines.allow(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        if out.len() > max {
            out.truncate(before);
            out.push('…');
            break;
        }
    }
    out
}

/// A feature's words on their way are cut here: far beyond all that is ever shown of them, so that half a secret on
/// this edge is not shown either.
const MAX_RAW: usize = 64 * 1024;

/// Words of a feature as they were said, to be [`said`] by whoever has the redactor.
pub(crate) fn raw(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_RAW)).unwrap_or(text)
}

/// Words of a feature, as they may be written and shown: without secrets, which are looked for before anything is
/// escaped or cut, and then as [`shown`].
pub(crate) fn said(text: &str, max: usize, redactor: &Redactor) -> String {
    shown(&redactor.text(raw(text)), max)
}

/// The same of words that may have lines.
pub(crate) fn said_in_lines(text: &str, max: usize, redactor: &Redactor) -> String {
    bounded(&redactor.text(raw(text)), max, Lines::Many)
}

/// The name of a secret whose words stand in some string, name or number of a value.
pub(crate) fn secret<'a>(value: &Value, redactor: &'a Redactor) -> Option<&'a str> {
    if redactor.is_idle() {
        return None;
    }
    match value {
        Value::String(text) => redactor.finds(text.as_bytes()),
        Value::Number(number) => redactor.finds(number.to_string().as_bytes()),
        Value::Array(values) => values.iter().find_map(|value| secret(value, redactor)),
        Value::Object(fields) => {
            let named = |(name, value)| redactor.finds(String::as_bytes(name)).or_else(|| secret(value, redactor));
            fields.iter().find_map(named)
        }
        Value::Null | Value::Bool(_) => None,
    }
}
