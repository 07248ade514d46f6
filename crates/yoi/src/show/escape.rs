//! Text of models, tools and files as a terminal gets it; which characters mislead is said in `authority::text`.

pub(crate) use authority::text::first_line as line;
use authority::text::misleads;
use std::borrow::Cow;

/// A JSON text of one line with the same characters written as JSON escapes: it means what it meant.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(misleads) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // JSON has them inside of strings only; what stands above the first plane is a pair there.
        if misleads(c) {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// A line of a journal: unchanged, so that its checksum can be checked; a terminal gets the same document in harmless
/// letters.
pub(crate) fn journal_line(line: &str, terminal: bool) -> Cow<'_, str> {
    if terminal {
        json(line)
    } else {
        Cow::Borrowed(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::text::escape_lines;

    #[test]
    fn json_stays_json() {
        for text in [
            "plain",
            "abc\u{202e}fdp\u{7f}\u{9b}2J",
            "\u{1b}[2J\n\t\u{1f600}",
            "\u{e0041}\u{200b}\u{2028}",
        ] {
            let document = serde_json::json!({ text: text });
            let shown = json(&document.to_string()).into_owned();
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
                document,
                "{shown}"
            );
            assert_eq!(escape_lines(&shown), shown);
        }
    }
}
