//! Checks of text for files that people read: no control, invisible or reordering characters.

use authority::text::{Lines, find};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

/// One line: not empty, at most `max` bytes, no space at its ends. The problem names `what`.
pub(crate) fn line(what: &str, value: &str, max: usize) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("the {what} is empty"));
    }
    if value.chars().any(char::is_control) {
        return Err(format!(
            "the {what} has a line break or another control character; write it on one plain line"
        ));
    }
    if value.starts_with(' ') || value.ends_with(' ') {
        return Err(format!("the {what} begins or ends with a space"));
    }
    bounded(what, value, max)?;
    visible(what, value, Lines::One)
}

/// Lines: at most `max` bytes, line feeds and tabs allowed; it may be empty.
pub(crate) fn text(what: &str, value: &str, max: usize) -> Result<(), String> {
    bounded(what, value, max)?;
    if value
        .chars()
        .any(|c| c.is_ascii_control() && !matches!(c, '\n' | '\t'))
    {
        return Err(format!(
            "the {what} has control characters; only line feeds and tabs are allowed"
        ));
    }
    visible(what, value, Lines::Many)
}

/// Without white space at the ends of lines and of the whole.
pub(crate) fn trimmed(value: &str) -> String {
    let lines: Vec<&str> = value
        .trim_end()
        .lines()
        .map(|line| line.trim_end_matches(|c: char| c.is_ascii_whitespace()))
        .collect();
    lines.join("\n")
}

/// A name in small letters, digits and single dashes, from any text; empty if no character can be used.
pub(crate) fn slug(value: &str, max: usize) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte.to_ascii_lowercase() {
            letter @ (b'a'..=b'z' | b'0'..=b'9') => out.push(char::from(letter)),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
        if out.trim_start_matches('-').len() == max {
            break;
        }
    }
    out.trim_matches('-').to_owned()
}

/// Whether `value` is of the form `like-this-1`.
pub(crate) fn is_slug(value: &str, max: usize) -> bool {
    let plain = value
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    !value.is_empty()
        && value.len() <= max
        && plain
        && !value.starts_with('-')
        && !value.ends_with('-')
        && !value.contains("--")
}

/// Whether `text` matches a form, byte by byte: `d` matches a digit, a digit matches digits up to it, any other byte
/// matches itself.
pub(crate) fn has_form(text: &str, form: &[u8]) -> bool {
    let fits = |(byte, form): (u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        most @ b'0'..=b'9' => (b'0'..=*most).contains(&byte),
        exact => byte == *exact,
    };
    text.len() == form.len() && text.bytes().zip(form).all(fits)
}

/// The value of an enum whose serialized name this is.
pub(crate) fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    T::deserialize(name).ok()
}

/// Enums that are shown by their serialized names.
macro_rules! names {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    )*};
}

/// Types that hold one text.
macro_rules! texts {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    )*};
}

pub(crate) use {names, texts};

/// Words with commas between them.
pub(crate) fn joined<T: ToString>(words: &[T]) -> String {
    words
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `"…"` with quotes and backslashes escaped.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The other way round; `None` for what is not of that form.
pub(crate) fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return None,
            '\\' => out.push(chars.next().filter(|next| matches!(next, '"' | '\\'))?),
            plain => out.push(plain),
        }
    }
    Some(out)
}

fn bounded(what: &str, value: &str, max: usize) -> Result<(), String> {
    if value.len() <= max {
        Ok(())
    } else {
        Err(format!(
            "the {what} has {} bytes; at most {max}",
            value.len()
        ))
    }
}

fn visible(what: &str, value: &str, lines: Lines) -> Result<(), String> {
    match find(value, lines) {
        Some(c) => Err(format!(
            "the {what} has {}, an invisible or direction-changing character",
            c.escape_unicode()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_those_of_the_script() {
        let cases = [
            ("First title", "first-title"),
            ("  -- Ünïcode & Co.!  ", "n-code-co"),
            ("日本", ""),
            ("a--b", "a-b"),
            ("0123456789 0123456789", "0123456789"),
        ];
        for (title, slug) in cases {
            assert_eq!(super::slug(title, 11), slug, "{title}");
            assert_eq!(is_slug(slug, 11), !slug.is_empty());
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "abcdefghijkl", "ä"] {
            assert!(!is_slug(bad, 11), "{bad}");
        }
    }

    #[test]
    fn quoting_goes_both_ways() {
        for plain in ["", "a", r#"Ann "A" \B\"#] {
            assert_eq!(unquoted(&quoted(plain)).as_deref(), Some(plain));
        }
        for bad in ["a", "\"", "\"a", r#""a"b""#, r#""a\n""#, r#""a\""#] {
            assert_eq!(unquoted(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_hides_is_refused() {
        for bad in [
            "",
            " a",
            "a ",
            "a\nb",
            "a\tb",
            "\u{1b}[31m",
            "a\u{202e}b",
            "a\u{200b}",
            "\u{feff}a",
            "\u{85}",
            "abcdefghijk",
        ] {
            assert!(line("title", bad, 10).is_err(), "{bad:?}");
        }
        for bad in ["a\r\nb", "\u{7f}", "a\u{2066}b", "abcdefghijk"] {
            assert!(text("body", bad, 10).is_err(), "{bad:?}");
        }
        assert_eq!(
            (
                line("title", "ä b", 10),
                text("body", "a\n\tb", 10),
                text("body", "", 10)
            ),
            (Ok(()), Ok(()), Ok(()))
        );
        assert_eq!(trimmed("a \n\n b\t\n\n"), "a\n\n b");
    }
}
