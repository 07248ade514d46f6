//! What an argument may be, from the schema of a tool, in words for a model.

use super::ArgumentError;
use serde_json::{Value, json};

/// The most levels of a schema that an example shows.
const MAX_DEPTH: usize = 4;

impl ArgumentError {
    /// Names what the schema wants where a value has another type; parsers name types of Rust.
    #[must_use]
    pub fn in_words_of(mut self, schema: &str) -> Self {
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        for problem in &mut self.problems {
            let Some((place, what)) = problem.split_once(": ") else {
                continue;
            };
            let found = match what {
                "expected value" => "",
                _ if what.starts_with("invalid ") => what
                    .rsplit_once("expected ")
                    .map_or(what, |(found, _)| found),
                _ => continue,
            };
            let wanted = place
                .split('/')
                .skip(1)
                .try_fold(&schema, |schema, key| below(schema, key));
            if let Some(wanted) = wanted.and_then(wanted_by) {
                *problem = format!("{place}: {found}expected {wanted}");
            }
        }
        self
    }
}

/// The schema of a field or an item.
fn below<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let named = schema
        .get("properties")
        .and_then(|fields| fields.get(key.replace("~1", "/").replace("~0", "~")));
    named
        .or_else(|| schema.get("items"))
        .or_else(|| schema.get("additionalProperties"))
}

fn wanted_by(schema: &Value) -> Option<String> {
    let example = example(schema, 0)?;
    Some(
        match (schema.get("enum").and_then(Value::as_array), &example) {
            (Some(values), _) => format!("one of {}", json!(values)),
            (None, Value::Object(_)) => format!("an object such as {example}"),
            (None, Value::Array(_)) => format!("an array such as {example}"),
            (None, Value::Number(_)) => "a number such as 1".to_owned(),
            (None, _) => return None,
        },
    )
}

/// The smallest value that fits, as far as types and required fields say.
fn example(schema: &Value, depth: usize) -> Option<Value> {
    let first = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .and_then(|values| values.first())
    };
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return Some(value.clone());
    }
    if let Some(other) = first("oneOf").or_else(|| first("anyOf")) {
        return example(other, depth);
    }
    let kind = schema
        .get("type")
        .and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()))?;
    Some(match kind {
        "object" if depth < MAX_DEPTH => {
            let required = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let field = |name: &Value| {
                let name = name.as_str()?;
                Some((name.to_owned(), example(below(schema, name)?, depth + 1)?))
            };
            Value::Object(required.filter_map(field).collect())
        }
        "array" if depth < MAX_DEPTH => schema
            .get("items")
            .and_then(|items| example(items, depth + 1))
            .into_iter()
            .collect(),
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "string" => json!("…"),
        _ => return None,
    })
}
