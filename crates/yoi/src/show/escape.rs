//! Text of models, tools and files, made harmless for a terminal.

use std::borrow::Cow;

/// The text with control characters (but newline and tab) and characters that reorder text shown as `\u{…}`, so
/// that nothing a model or a file says can move the cursor or hide what stands there.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(dangerous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if dangerous(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// A JSON text of one line with the same characters written as JSON escapes: it means what it meant.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(dangerous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // All of them stand in the first plane, so four digits are enough; JSON has them inside of strings only.
        if dangerous(c) { shown.push_str(&format!("\\u{:04x}", u32::from(c))) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn dangerous(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && c != '\n' && c != '\t')
}

/// The first line, cut to `width` characters.
pub(crate) fn line(text: &str, width: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    let more = text.lines().nth(1).is_some();
    let mut shown: String = plain(first).chars().take(width).collect();
    if more || plain(first).chars().count() > width {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_moves_it() {
        assert_eq!(plain("a\tb\nc"), "a\tb\nc");
        assert_eq!(plain("\u{1b}[2Jx\r\u{7}\u{9b}"), "\\u{1b}[2Jx\\u{d}\\u{7}\\u{9b}");
        assert_eq!(plain("abc\u{202e}fdp"), "abc\\u{202e}fdp");
    }

    #[test]
    fn json_stays_json() {
        for text in ["plain", "abc\u{202e}fdp\u{7f}\u{9b}2J", "\u{1b}[2J\n\t\u{1f600}"] {
            let document = serde_json::json!({ text: text });
            let shown = json(&document.to_string()).into_owned();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document, "{shown}");
            assert_eq!(plain(&shown), shown);
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line("one\ntwo", 10), "one…");
        assert_eq!(line("abcdef", 3), "abc…");
        assert_eq!(line("abc", 3), "abc");
    }
}
