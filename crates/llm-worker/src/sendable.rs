//! What a model wrote, in the form in which every model API takes it back. Does not depend on tools.

use crate::tool::is_one_object;
use serde_json::Value;
use std::borrow::Cow;

/// The longest tool name that model APIs accept.
const MAX_NAME: usize = 64;

/// Nesting of arguments. Parsers accept at least 100 levels, and a request adds its own.
const MAX_DEPTH: usize = 64;

/// Bytes that are sent back of arguments that are no JSON object.
const MAX_INVALID: usize = 32 * 1024;

/// Arguments as one JSON object that strict parsers read: without a key twice, half a character, a NUL, a number beyond
/// a double, or very deep nesting. Other text is the value of `invalid_json`, cut if it is long.
#[must_use]
pub fn sendable_arguments(raw: &str) -> Cow<'_, str> {
    if raw.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_one_object(raw) && serde_json::from_str(raw).is_ok_and(|value| fits(&value, 1)) {
        return Cow::Borrowed(raw);
    }
    let kept = raw
        .get(..raw.floor_char_boundary(MAX_INVALID))
        .unwrap_or_default();
    let cut = if kept.len() < raw.len() { "…" } else { "" };
    Cow::Owned(serde_json::json!({ "invalid_json": format!("{kept}{cut}") }).to_string())
}

/// A tool's name in the form that model APIs accept.
#[must_use]
pub fn sendable_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        Cow::Borrowed("unnamed")
    } else if name.len() <= MAX_NAME && name.chars().all(fits) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(
            name.chars()
                .take(MAX_NAME)
                .map(|c| if fits(c) { c } else { '_' })
                .collect(),
        )
    }
}

/// A text without NUL, which some servers refuse.
pub(crate) fn sendable_text(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// Whether the texts of a value have no NUL, and it is not nested too deeply.
fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(_) | Value::Object(_) if depth > MAX_DEPTH => false,
        Value::Array(list) => list.iter().all(|value| fits(value, depth + 1)),
        Value::Object(map) => map
            .iter()
            .all(|(key, value)| !key.contains('\0') && fits(value, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_sent_as_written_or_as_a_text() {
        let deep = |levels: usize| {
            format!(
                "{{\"a\":{}{}}}",
                "[".repeat(levels - 1),
                "]".repeat(levels - 1)
            )
        };
        let long = "9".repeat(400);
        for fits in [
            r#"{"a":1.0,"b":[null,true,"x\ud83d\ude00"]}"#,
            " {} ",
            r#"{"n":123456789012345678901234567890}"#,
            &deep(64),
        ] {
            assert_eq!(sendable_arguments(fits), fits);
        }
        assert_eq!(
            (sendable_arguments(""), sendable_arguments("\n ")),
            ("{}".into(), "{}".into())
        );
        let refused = [
            r#"{"a":"\ud800"}"#,
            r#"{"\udc00":1}"#,
            r#"{"a":1e999}"#,
            r#"{"a":-1e999}"#,
            &format!("{{\"a\":{long}}}"),
            &deep(65),
            &deep(100_000),
            r#"{"a":1,"a":2}"#,
            r#"{"b":[{"a":1,"a":2}]}"#,
            r#"{"a":"\u0000"}"#,
            r#"{"a\u0000":1}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":NaN}"#,
            r#"{"a":1}{"b":2}"#,
            r#"{"a":1"#,
            "[1]",
            "null",
            "ls",
        ];
        for raw in refused {
            let sent = sendable_arguments(raw);
            let read: serde_json::Value = serde_json::from_str(&sent).unwrap();
            let kept = read["invalid_json"].as_str().unwrap();
            assert!(raw.starts_with(kept.trim_end_matches('…')), "{sent}");
            assert!(raw.len() > MAX_INVALID || kept == raw, "{sent}");
            assert_eq!(sendable_arguments(&sent), sent, "it is sent again as it is");
        }
    }

    #[test]
    fn a_name_is_sent_in_the_letters_of_the_apis() {
        let long = "n".repeat(70);
        let table = [
            ("Read", "Read"),
            ("functions.Read", "functions_Read"),
            ("", "unnamed"),
            ("a b\u{0}\n", "a_b__"),
            ("読む", "__"),
            (&long, &long[..64]),
        ];
        for (name, sent) in table {
            assert_eq!(sendable_name(name), sent);
        }
    }
}
