//! Arguments of a call as a person reads them. Knows no tool.

/// Arguments that say what a call is about, the first first.
const ABOUT: [&str; 4] = ["command", "pattern", "path", "handle"];

/// A call's arguments as a person reads them: the values, without the braces, where they are a flat object.
pub(crate) fn brief(arguments: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(arguments) else { return arguments.to_owned() };
    let mut fields: Vec<_> = fields.into_iter().collect();
    // What a call is about stands first, before a text that may be cut.
    fields.sort_by_key(|(name, _)| ABOUT.iter().position(|about| about == name).unwrap_or(ABOUT.len()));
    let shown =
        fields.iter().map(|(name, value)| value.as_str().map_or_else(|| format!("{name}={value}"), str::to_owned));
    shown.collect::<Vec<_>>().join(" ")
}

/// What a call is about: its command, its path.
pub(crate) fn subject(arguments: &str) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(arguments) else { return arguments.to_owned() };
    let about: Vec<&str> = ABOUT.iter().filter_map(|name| fields.get(*name)?.as_str()).collect();
    if about.is_empty() { brief(arguments) } else { about.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_by_what_it_is_about() {
        assert_eq!(brief(r#"{"content":"long text","path":"a.rs"}"#), "a.rs long text");
        assert_eq!(brief(r#"{"glob":"*.rs","path":".","pattern":"fn","limit":3}"#), "fn . *.rs limit=3");
        assert_eq!(brief("{cut"), "{cut");
    }
}
