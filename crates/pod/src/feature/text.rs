//! What text of a feature may reach a screen, a report or a model.

/// How many lines a text may have.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    One,
    Many,
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
    let allowed = |c: char| matches!((lines, c), (Lines::Many, '\n' | '\t'));
    match text.chars().find(|&c| misleading(c) && !allowed(c)) {
        Some(c) => Err(format!("{what} contains {}, a control or bidirectional character", c.escape_unicode())),
        None => Ok(()),
    }
}

fn misleading(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text cut to at most `max` bytes at a character, with what [`check`] refuses escaped: for words that come from a
/// failing feature and must be shown all the same.
pub(crate) fn shown(text: &str, max: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let before = out.len();
        if misleading(c) {
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
