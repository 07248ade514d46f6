//! The part of JSON Schema that arguments need: finding an error in a schema, and making a value that matches one.

use serde_json::{Map, Value, json};

/// How deep a schema may refer to itself before a sample stops.
const DEEP: usize = 8;

/// The longest text and list of a sample.
const MANY: usize = 64;

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// The first error in a schema, if any; references start at `root`.
pub(super) fn problem(schema: &Value, root: &Value) -> Option<String> {
    let schema = match schema {
        Value::Bool(_) => return None,
        Value::Object(schema) => schema,
        other => return Some(format!("{other} is no schema")),
    };
    if let Some(to) = schema.get("$ref") {
        let to = to.as_str().unwrap_or_default();
        if resolve(to, root).is_none() {
            return Some(format!("the reference `{to}` leads nowhere"));
        }
    }
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    if let Some(unknown) = types
        .iter()
        .find(|t| !t.as_str().is_some_and(|t| TYPES.contains(&t)))
    {
        return Some(format!("{unknown} is no type"));
    }
    let properties = schema.get("properties").map(|p| {
        p.as_object()
            .ok_or_else(|| format!("{p} are no properties"))
    });
    let properties = match properties.transpose() {
        Ok(properties) => properties,
        Err(problem) => return Some(problem),
    };
    let named = |name: &&Value| {
        properties.is_some_and(|p| name.as_str().is_some_and(|name| p.contains_key(name)))
    };
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    if let Some(missing) = required.into_iter().find(|name| !named(name)) {
        return Some(format!("{missing} is required and not described"));
    }
    let below = ["items", "additionalProperties", "not"]
        .iter()
        .filter_map(|key| schema.get(*key));
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems"]
        .iter()
        .filter_map(|key| schema.get(*key)?.as_array());
    let maps = ["$defs", "definitions"]
        .iter()
        .filter_map(|key| schema.get(*key)?.as_object());
    let below = below
        .chain(lists.flatten())
        .chain(maps.chain(properties).flat_map(Map::values));
    below.into_iter().find_map(|schema| problem(schema, root))
}

/// The part of `root` that a reference like `#/$defs/Mode` names.
fn resolve<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// A small value that matches the schema. It respects limits of numbers and lengths, but not patterns.
pub(super) fn of(schema: &Value) -> Value {
    value(schema, schema, 0)
}

fn value(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| depth < DEEP) else {
        return Value::Null;
    };
    if let Some(given) = schema.get("default").or_else(|| schema.get("const")) {
        return given.clone();
    }
    if let Some(first) = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|values| values.first())
    {
        return first.clone();
    }
    if let Some(to) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| resolve(to, root))
    {
        return value(to, root, depth + 1);
    }
    let mut choices = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| schema.get(*key)?.as_array()?.first());
    if let Some(first) = choices.next() {
        return value(first, root, depth + 1);
    }
    let named = match schema.get("type") {
        Some(Value::Array(types)) => types.first().and_then(Value::as_str),
        Some(one) => one.as_str(),
        None => None,
    };
    let many = |key: &str, some: u64| {
        usize::try_from(some.max(least(schema, key)))
            .unwrap_or(usize::MAX)
            .min(MANY)
    };
    match named {
        Some("string") => json!("x".repeat(many("minLength", 1))),
        Some("integer" | "number") => json!(least(schema, "minimum")),
        Some("boolean") => json!(false),
        Some("array") => {
            let item = schema
                .get("items")
                .map_or(Value::Null, |items| value(items, root, depth + 1));
            Value::Array(vec![item; many("minItems", 0)])
        }
        Some("object") => {
            let required = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let names = required.filter_map(Value::as_str);
            let field = |name: &str| {
                let described = schema
                    .get("properties")
                    .and_then(|properties| properties.get(name));
                (
                    name.to_owned(),
                    described.map_or(Value::Null, |described| value(described, root, depth + 1)),
                )
            };
            Value::Object(names.map(field).collect())
        }
        Some(_) | None => Value::Null,
    }
}

fn least(schema: &Map<String, Value>, key: &str) -> u64 {
    schema.get(key).and_then(Value::as_u64).unwrap_or(0)
}
