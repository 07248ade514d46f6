//! Arguments that a server on the network wants in headers as well, which its schemas say by `x-mcp-header`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const KEY: &str = "x-mcp-header";

/// The names of headers, without what stands before all of them, by the arguments that they have.
///
/// # Errors
/// One cannot be the name of a header, or of these arguments.
pub(crate) fn mirrored(schema: &Value) -> Result<BTreeMap<String, String>, String> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let mut headers = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (argument, field) in fields.into_iter().flatten() {
        let Some(header) = field.get(KEY) else {
            continue;
        };
        let header = header.as_str().filter(|name| is_token(name));
        let header = header.ok_or_else(|| format!("its `{KEY}` is no name of a header"))?;
        let kind = field.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(format!(
                "its `{KEY}` is for an argument that no header can have"
            ));
        }
        if !taken.insert(header.to_ascii_lowercase()) {
            return Err(format!("its `{KEY}` names a header twice"));
        }
        headers.insert(argument.clone(), header.to_owned());
    }
    Ok(headers)
}

/// The headers of a call with these arguments; none for those that are not there.
pub(crate) fn headers(schema: &Value, arguments: &str) -> Vec<(String, String)> {
    let named = mirrored(schema).unwrap_or_default();
    if named.is_empty() {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let value = |(argument, header): (&String, &String)| {
        let text = match arguments.get(argument)? {
            Value::String(text) => text.clone(),
            Value::Bool(is) => is.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((header.clone(), text))
    };
    named.iter().filter_map(value).collect()
}

/// Whether a text can stand in the name of a header.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_names_of_headers_for_plain_arguments_fit() {
        let of = |kind: &str, header: Value| json!({ "properties": { "a": { "type": kind, KEY: header }, "b": { "type": "string", KEY: "Other" } } });
        for (kind, header) in [("string", "Region"), ("integer", "N"), ("boolean", "B-1")] {
            assert_eq!(
                mirrored(&of(kind, json!(header))).unwrap().len(),
                2,
                "{kind}"
            );
        }
        for (kind, header) in [
            ("string", json!("")),
            ("string", json!("a b")),
            ("string", json!("a:b")),
            ("string", json!("größe")),
            ("string", json!("a\r\nb")),
            ("string", json!(1)),
            ("string", json!("OTHER")),
            ("number", json!("N")),
            ("object", json!("O")),
        ] {
            assert!(
                mirrored(&of(kind, header.clone())).is_err(),
                "{kind} {header}"
            );
        }
    }

    #[test]
    fn arguments_that_are_there_are_mirrored() {
        let field = |kind: &str, name: &str| json!({ "type": kind, KEY: name });
        let schema = json!({ "properties": {
            "a": field("string", "A"), "b": field("boolean", "B"), "c": field("integer", "C"), "d": field("string", "D"), "e": {},
        } });
        let got = headers(
            &schema,
            r#"{"a":"x y","b":false,"c":12345678901234567,"d":null,"e":"z"}"#,
        );
        let expected = [("A", "x y"), ("B", "false"), ("C", "12345678901234567")];
        assert_eq!(
            got,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
