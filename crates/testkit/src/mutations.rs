//! Answers of vendors that are not as expected.

use serde_json::{Value, json};

/// This value with each of its parts once missing, null, of another type, longer, and in another language; and values of
/// each other kind in its place.
#[must_use]
pub fn mutations(of: &Value) -> Vec<Value> {
    let replacements = [
        Value::Null,
        7.into(),
        (-1).into(),
        1e300.into(),
        true.into(),
        json!([]),
        json!({}),
        json!([[{}]]),
        "x".repeat(3_000).into(),
        "Ошибка 错误 \u{202e}\u{0}".into(),
    ];
    let mut out = vec![Value::Null, json!([]), json!({}), json!("text"), json!(3)];
    let mut all = Vec::new();
    pointers(of, "", &mut all);
    for at in all {
        let changed = replacements.iter().filter_map(|value| {
            let mut other = of.clone();
            *other.pointer_mut(&at)? = value.clone();
            Some(other)
        });
        out.extend(changed);
        let mut other = of.clone();
        let (parent, name) = at.rsplit_once('/').unwrap_or_default();
        if let Some(fields) = other.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(name);
            out.push(other);
        }
    }
    out
}

fn pointers(of: &Value, at: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match of {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            parts.map(|(at, value)| (at.to_string(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in children {
        let at = format!("{at}/{name}");
        into.push(at.clone());
        pointers(value, &at, into);
    }
}
