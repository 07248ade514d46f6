//! What a parser says of a configuration, in the words of its documents: keys, values, text and lists. Reads no file.

use crate::nearest::{did_you_mean, nearest};

/// The ways to name a key's place.
pub(super) const KEY_PLACES: &str =
    "{ env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }";

/// What is said of a key that stands in the file itself. It does not repeat the key.
pub(super) const PLAIN_KEY: &str = "an API key must not be written into a configuration file";

/// Of a key with no source or more than one.
pub(super) const NO_SOURCE: &str = "`key` names no source";
pub(super) const MORE_SOURCES: &str = "`key` names more than one source";

/// The help where nothing better is known.
const SCHEMA: &str = "`yoi config schema` prints the keys and the values that they accept";

/// An error and its help. `line` is the text of its line, `before` the part of it before the error.
pub fn explain(message: &str, line: &str, before: &str) -> (String, String) {
    if message == PLAIN_KEY {
        return (
            message.to_owned(),
            format!("name its source: key = {KEY_PLACES}"),
        );
    }
    if message == NO_SOURCE || message == MORE_SOURCES {
        return (message.to_owned(), format!("write key = {KEY_PLACES}"));
    }
    let key = key_before(before);
    if message.starts_with("string values must be quoted") {
        return unquoted(key.or_else(|| key_before(line)), line);
    }
    if let Some(missing) = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        let table = if line.trim_start().starts_with('[') {
            format!(" under {}", line.trim())
        } else {
            String::new()
        };
        return (
            format!("the key `{missing}` is missing"),
            format!("add {}{table}", example(missing)),
        );
    }
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let list = |known: &[&str]| known.join(", ");
    match (message, names.split_first()) {
        (_, Some((unknown, known))) if message.starts_with("unknown field") => {
            let help = match known {
                [] => SCHEMA.to_owned(),
                _ if known.contains(&"key") && unknown.contains("key") => {
                    format!("write key = {KEY_PLACES}")
                }
                _ => format!(
                    "{}known keys: {}",
                    did_you_mean(unknown, known),
                    list(known)
                ),
            };
            (format!("unknown key `{unknown}`"), help)
        }
        (_, Some((unknown, known))) if message.starts_with("unknown variant") => {
            let name = key.map_or_else(|| "this value".to_owned(), |key| format!("`{key}`"));
            // Two letters are near to too much.
            let help = match nearest(unknown, known).filter(|_| unknown.len() > 2) {
                Some(name) => format!("did you mean `{name}`?"),
                None => SCHEMA.to_owned(),
            };
            (
                format!("{name} must be {}, not `{unknown}`", one_of(known)),
                help,
            )
        }
        (_, _) => (
            in_words(message, key),
            typed_example(message, key).unwrap_or_else(|| SCHEMA.to_owned()),
        ),
    }
}

/// `a, b or c`.
fn one_of(known: &[&str]) -> String {
    match known {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        known => known.concat(),
    }
}

/// How a value of the right kind is written.
fn typed_example(message: &str, key: Option<&str>) -> Option<String> {
    let value = match kind(message.split_once(", expected ")?.1) {
        "a whole number" => "20",
        "a number" => "0.50",
        "text in quotes" => "\"TEXT\"",
        "true or false" => "true",
        "a list" => "[\"TEXT\"]",
        _ => return None,
    };
    Some(format!("write a value such as {} = {value}", key?))
}

/// What a parser says of one value, of this key where that is known.
pub fn in_words(message: &str, key: Option<&str>) -> String {
    let name = key.map_or_else(|| "this value".to_owned(), |key| format!("`{key}`"));
    if let Some(unknown) = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split('`').next())
    {
        return format!("unknown key `{unknown}`");
    }
    let typed = message
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.split_once(", expected "));
    if let Some((found, expected)) = typed {
        return format!(
            "{name} must be {}, not {}",
            kind(expected),
            found_kind(found)
        );
    }
    let valued = message
        .strip_prefix("invalid value: ")
        .and_then(|rest| rest.split_once(", expected "));
    if let Some((found, expected)) = valued {
        let found = found.split('`').nth(1).unwrap_or(found);
        let range = match expected {
            "u32" => " from 0 to 4294967295",
            "u64" | "usize" => ", at least 0",
            _ => "",
        };
        return format!("{name} must be {}{range}, not {found}", kind(expected));
    }
    message.to_owned()
}

/// A value that is missing, or text without quotes.
fn unquoted(key: Option<&str>, line: &str) -> (String, String) {
    let key = key.unwrap_or("KEY");
    let nothing = line
        .split('#')
        .next()
        .unwrap_or_default()
        .trim_end()
        .ends_with('=');
    match (nothing, key) {
        (true, "model") => (
            "`model` has no value".to_owned(),
            "write model = \"offline\" or model = \"PROVIDER/MODEL\"".to_owned(),
        ),
        (true, _) => (
            format!("`{key}` has no value"),
            format!("write a value, or delete the line; {SCHEMA}"),
        ),
        (false, _) => (
            format!("`{key}`: text must be in quotes"),
            format!("write {key} = \"TEXT\""),
        ),
    }
}

/// The key whose value begins where this text ends.
fn key_before(before: &str) -> Option<&str> {
    let key = before.split_once('=').map_or(before, |_| {
        before.rsplit_once('=').map_or(before, |(key, _)| key)
    });
    let key = key.rsplit(['{', ',']).next()?.trim();
    (before.contains('=') && !key.is_empty()).then_some(key)
}

fn kind(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        "f64" => "a number",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        table if table.starts_with("struct ") => "a table",
        other => other,
    }
}

fn found_kind(found: &str) -> &str {
    let kinds = [
        ("string", "text"),
        ("integer", "a whole number"),
        ("floating point", "a number with a fraction"),
        ("boolean", "true or false"),
        ("sequence", "a list"),
        ("map", "a table"),
    ];
    kinds
        .into_iter()
        .find(|(start, _)| found.starts_with(start))
        .map_or(found, |(_, kind)| kind)
}

/// How a required key is written.
fn example(key: &str) -> String {
    let value = match key {
        "base_url" => "\"http://HOST:PORT/v1\"",
        "api" => "\"openai-chat\" (or \"openai-responses\", \"anthropic\", \"gemini\")",
        "input" | "output" => "DOLLARS",
        "tool" => "\"TOOL\"",
        "decision" => "\"allow\" (or \"ask\" or \"deny\")",
        _ => "VALUE",
    };
    format!("{key} = {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_wrong_kind_are_named_with_their_key() {
        let cases = [
            (
                "max_steps = ",
                "invalid type: string \"x\", expected u32",
                "`max_steps` must be a whole number, not text",
            ),
            (
                "a = { b = ",
                "invalid type: integer `3`, expected a boolean",
                "`b` must be true or false, not a whole number",
            ),
            (
                "",
                "invalid type: map, expected a string",
                "this value must be text in quotes, not a table",
            ),
            (
                "n = ",
                "invalid value: integer `-1`, expected u32",
                "`n` must be a whole number from 0 to 4294967295, not -1",
            ),
            ("x = ", "duplicate key", "duplicate key"),
        ];
        for (before, message, expected) in cases {
            assert_eq!(explain(message, before, before).0, expected);
        }
    }

    #[test]
    fn a_value_of_a_wrong_kind_is_told_with_a_right_one() {
        let help = |message: &str, before: &str| explain(message, before, before).1;
        assert_eq!(
            help("invalid type: string \"x\", expected u32", "n = "),
            "write a value such as n = 20"
        );
        assert_eq!(help("invalid type: map, expected a string", ""), SCHEMA);
    }

    #[test]
    fn a_missing_value_or_key_is_told_with_what_to_write() {
        let quoted = |line: &str| {
            explain(
                "string values must be quoted, expected literal string",
                line,
                line,
            )
        };
        assert!(quoted("model =").1.contains("\"offline\""));
        assert_eq!(quoted("x = ").0, "`x` has no value");
        assert_eq!(
            explain("string values must be quoted", "x = y", "x = ").1,
            "write x = \"TEXT\""
        );
        let missing = explain("missing field `base_url`", "[providers.x]", "");
        assert_eq!(
            missing.1,
            "add base_url = \"http://HOST:PORT/v1\" under [providers.x]"
        );
    }
}
