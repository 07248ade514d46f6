//! Arguments of a call as a person reads them. Knows no tool.

use authority::text::escape_line;
use serde_json::Value;

/// Arguments that say what a call is about, the first first.
const ABOUT: [&str; 4] = ["command", "pattern", "path", "handle"];

/// What a command is for.
const PURPOSE: &str = "description";

/// A call's arguments as a person reads them: the values, without the braces, where they are a flat object.
#[must_use]
pub fn brief(arguments: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return arguments.to_owned();
    };
    let mut fields: Vec<_> = fields.into_iter().collect();
    // What a call is about stands first, before a text that may be cut.
    fields.sort_by_key(|(name, _)| {
        let mut about = ABOUT.iter().chain([&"name"]);
        about.position(|about| about == name).unwrap_or(usize::MAX)
    });
    let shown = fields.iter().map(|(name, value)| {
        value
            .as_str()
            .map_or_else(|| format!("{name}={value}"), str::to_owned)
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// What a call is about: its command, with its purpose behind it as a shell has words that run nothing, or its path.
#[must_use]
pub fn subject(arguments: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return arguments.to_owned();
    };
    let about: Vec<&str> = ABOUT
        .iter()
        .filter_map(|name| fields.get(*name)?.as_str())
        .collect();
    if about.is_empty() {
        return brief(arguments);
    }
    let mut text = about.join(" ");
    if let (Some(words), true) = (
        fields.get(PURPOSE).and_then(Value::as_str),
        fields.contains_key(ABOUT[0]),
    ) {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        text.insert_str(
            text.find('\n').unwrap_or(text.len()),
            &format!("  # {words}"),
        );
    }
    text
}

/// The arguments by name: as JSON, except a text that reads as no other JSON value.
#[must_use]
pub fn fields(arguments: &str) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return vec![("arguments".to_owned(), arguments.to_owned())];
    };
    let is_plain = |text: &&str| serde_json::from_str::<Value>(text).is_err();
    let text = |value: Value| {
        value
            .as_str()
            .filter(is_plain)
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    fields
        .into_iter()
        .map(|(name, value)| (escape_line(&name).into_owned(), text(value)))
        .collect()
}

/// The texts that an argument replaces, and those that it puts there, if that is what it says.
#[must_use]
pub fn replacements(value: &str) -> Option<Vec<(String, String)>> {
    let Ok(Value::Array(list)) = serde_json::from_str(value) else {
        return None;
    };
    let replacement = |one: &Value| {
        let fields = one.as_object().filter(|fields| fields.len() == 2)?;
        Some((
            fields.get("old")?.as_str()?.to_owned(),
            fields.get("new")?.as_str()?.to_owned(),
        ))
    };
    list.iter()
        .map(replacement)
        .collect::<Option<Vec<_>>>()
        .filter(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_another_value_look_different() {
        let shown = fields(r#"{"a":"5","b":5,"c":"true","d":"[1]","e":"sleep 5"}"#);
        let shown: Vec<_> = shown.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(shown, [r#""5""#, "5", r#""true""#, r#""[1]""#, "sleep 5"]);
    }

    #[test]
    fn the_name_of_an_argument_begins_no_line() {
        assert_eq!(fields(r#"{"a\n? b":1}"#)[0].0, r"a\n? b");
    }

    #[test]
    fn a_call_is_shown_by_what_it_is_about() {
        assert_eq!(
            brief(r#"{"content":"long text","path":"a.rs"}"#),
            "a.rs long text"
        );
        assert_eq!(
            brief(r#"{"glob":"*.rs","path":".","pattern":"fn","limit":3}"#),
            "fn . *.rs limit=3"
        );
        assert_eq!(
            brief(r#"{"arguments":{"q":"x"},"name":"mcp__db__drop"}"#),
            r#"mcp__db__drop arguments={"q":"x"}"#
        );
        assert_eq!(brief("{cut"), "{cut");
        let counted = r#"{"command":"wc -l a","description":"Count\n lines","timeout_s":120}"#;
        assert_eq!(brief(counted), "wc -l a Count\n lines timeout_s=120");
        assert_eq!(subject(counted), "wc -l a  # Count lines");
        assert_eq!(
            subject(r#"{"command":"a\nb","description":"Two"}"#),
            "a  # Two\nb"
        );
        assert_eq!(subject(r#"{"path":"a","description":"no command"}"#), "a");
    }
}
