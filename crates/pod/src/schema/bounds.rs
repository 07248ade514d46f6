//! Bounds of foreign schemas, so that compiling one and checking a value against it end soon, whatever the schema says.
//! Compiles no schema.

use super::references::References;
use regex::RegexBuilder;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most patterns of one schema, and the longest of them in bytes.
const MAX_PATTERNS: usize = 64;
const MAX_PATTERN: usize = 1024;
/// Most bytes of one pattern when it is compiled: `^[a-z]{1,1000}$` has a fifth of it.
const MAX_COMPILED: usize = 512 * 1024;
/// Most schemas inside of each other, references followed: each costs stack when it is compiled.
const MAX_DEPTH: usize = 128;
/// Most schemas with all references followed, which is what one value may be checked against.
const MAX_PARTS: u64 = 100_000;

/// The problem of a schema that costs too much, if it is one.
pub(super) fn problem(schema: &Value, references: &References) -> Option<String> {
    let mut walk = Walk {
        root: schema,
        references,
        patterns: 0,
        known: BTreeMap::new(),
    };
    match walk
        .all_patterns(schema)
        .and_then(|()| walk.parts(schema, 0))
    {
        Ok(..=MAX_PARTS) => None,
        Ok(_) => Some(format!(
            "its references make more than {MAX_PARTS} parts of it"
        )),
        Err(why) => Some(why),
    }
}

struct Walk<'a> {
    root: &'a Value,
    references: &'a References,
    patterns: usize,
    /// The parts of a schema by its address; none while they are counted.
    known: BTreeMap<usize, Option<u64>>,
}

fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

impl<'a> Walk<'a> {
    /// Looks into all values, since a reference can lead into any.
    fn all_patterns(&mut self, schema: &'a Value) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return schema
                .as_array()
                .into_iter()
                .flatten()
                .try_for_each(|part| self.all_patterns(part));
        };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                ("patternProperties", Value::Object(by_pattern)) => {
                    by_pattern
                        .keys()
                        .try_for_each(|pattern| self.pattern(pattern))?;
                    self.all_patterns(value)?;
                }
                _ => self.all_patterns(value)?,
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS || pattern.len() > MAX_PATTERN {
            return Err(format!(
                "at most {MAX_PATTERNS} patterns of at most {MAX_PATTERN} bytes are allowed"
            ));
        }
        match RegexBuilder::new(&ascii_classes(pattern))
            .size_limit(MAX_COMPILED)
            .build()
        {
            Err(regex::Error::CompiledTooBig(_)) => {
                Err("a pattern is too large: it repeats too much".to_owned())
            }
            // What is wrong with it, its compiler says.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts a schema and all that it consists of. What refers to itself ends there: a value is finite.
    fn parts(&mut self, schema: &'a Value, depth: usize) -> Result<u64, String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "it has more than {MAX_DEPTH} parts inside of each other"
            ));
        }
        match self.known.get(&address(schema)) {
            Some(known) => return Ok(known.unwrap_or_default()),
            None => self.known.insert(address(schema), None),
        };
        let mut parts = 1_u64;
        match schema {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let all = match (keyword.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                            self.references.targets(self.root, to)
                        }
                        (_, Value::Object(_) | Value::Array(_)) => vec![value],
                        _ => Vec::new(),
                    };
                    for part in all {
                        parts = parts.saturating_add(self.parts(part, depth + 1)?);
                    }
                }
            }
            Value::Array(all) => {
                for part in all {
                    parts = parts.saturating_add(self.parts(part, depth + 1)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.known.insert(address(schema), Some(parts));
        Ok(parts)
    }
}

/// The pattern with the classes that JSON Schema means, which are of ASCII.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match (letter, (letter == '\\').then(|| letters.next()).flatten()) {
            ('\\', Some('w')) => out.push_str("[0-9A-Za-z_]"),
            ('\\', Some('d')) => out.push_str("[0-9]"),
            (letter, next) => out.extend([letter].into_iter().chain(next)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(schema: &Value) -> Option<String> {
        References::of(schema).map_or_else(Some, |references| super::problem(schema, &references))
    }

    /// A chain of definitions, each of which `of` makes from the reference to the next one.
    fn chain(length: usize, of: impl Fn(Value) -> Value) -> Value {
        let definitions = (0..length).map(|n| {
            (
                format!("d{n}"),
                of(json!({ "$ref": format!("#/$defs/d{}", n + 1) })),
            )
        });
        let mut definitions: serde_json::Map<String, Value> = definitions.collect();
        definitions.insert(format!("d{length}"), json!({ "type": "string" }));
        json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": definitions })
    }

    #[test]
    fn ordinary_schemas_fit() {
        let tree = json!({ "$ref": "#/$defs/node", "$defs": { "node": { "$anchor": "n", "type": "object", "properties": {
            "left": { "$ref": "#n" }, "right": { "$ref": "#/$defs/node" }, "name": { "pattern": "^[\\w.-]{1,64}$" } } } } });
        for schema in [
            tree,
            json!(true),
            chain(20, |next| json!({ "items": next })),
        ] {
            assert_eq!(problem(&schema), None, "{schema}");
        }
    }

    #[test]
    fn what_would_take_too_long_is_refused() {
        let many = |count: usize| -> Value {
            (0..count)
                .map(|n| (format!("p{n}"), json!({ "pattern": "^a" })))
                .collect()
        };
        for (schema, says) in [
            (json!({ "properties": many(65) }), "at most 64 patterns"),
            (json!({ "pattern": "x".repeat(1025) }), "at most 1024 bytes"),
            (
                json!({ "patternProperties": { "(\\p{L}{100}){100}": {} } }),
                "too large",
            ),
            (
                json!({ "items": { "pattern": "((a{100}){100}){100}" } }),
                "too large",
            ),
            (
                chain(20, |next| json!({ "allOf": [next, next] })),
                "100000 parts",
            ),
            (
                json!({ "$ref": "#/default", "default": { "pattern": "a".repeat(1025) } }),
                "at most 1024 bytes",
            ),
            (
                chain(
                    100,
                    |next| json!({ "properties": { "a": next, "b": next } }),
                ),
                "inside of each other",
            ),
            (chain(1000, |next| next), "inside of each other"),
        ] {
            let why = problem(&schema).unwrap_or_default();
            assert!(why.contains(says), "{says}: {why}");
        }
        assert_eq!(problem(&json!({ "properties": many(64) })), None);
    }

    #[test]
    fn classes_are_those_of_ascii() {
        assert_eq!(
            ascii_classes("a\\w\\\\w[\\d]\\"),
            "a[0-9A-Za-z_]\\\\w[[0-9]]\\"
        );
    }
}
