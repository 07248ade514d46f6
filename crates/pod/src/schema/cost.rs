//! What it costs to check one value: a schema that refers to itself can have each part of a value checked again and again, on a
//! stack that is finite. Follows the schema as a validator that never stops early, and compares nothing.

use super::references::References;
use serde_json::Value;

/// Most schemas that one value and its parts are checked against.
const MAX_STEPS: u64 = 250_000;
/// Most schemas that are entered inside of each other: in a build without optimisation each takes 8 to 12 KiB of the stack.
const MAX_DEPTH: usize = 96;
/// How many characters of a text cost as much as a schema, where a pattern looks at them.
const STEP_CHARS: usize = 16;

/// Why a value cannot be checked.
pub(super) const TOO_MUCH: &str =
    "too large or too deeply nested to be checked against this schema; send less of it";

/// Whether a value can be checked within the bounds.
pub(super) fn is_bounded(schema: &Value, references: &References, value: &Value) -> bool {
    let mut cost = Cost {
        root: schema,
        references,
        steps: 0,
        followed: Vec::new(),
    };
    cost.schema(schema, value, 0).is_some()
}

struct Cost<'a> {
    root: &'a Value,
    references: &'a References,
    steps: u64,
    /// The references on the way here: where each leads, and for which value. One that leads there again ends.
    followed: Vec<(*const Value, *const Value)>,
}

impl Cost<'_> {
    /// Counts the check of a value against a schema and all that follows from it; nothing if that is too much.
    fn schema(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.steps = self.steps.saturating_add(1 + self.size(value));
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return None;
        }
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        for (keyword, part) in keywords {
            match keyword.as_str() {
                // Lists that are gone through for each value.
                "required" | "enum" | "dependentRequired" | "dependentSchemas" | "dependencies"
                | "properties" => {
                    self.steps = self.steps.saturating_add(parts(part).count() as u64);
                }
                "patternProperties" => {
                    let names: usize = value
                        .as_object()
                        .into_iter()
                        .flat_map(serde_json::Map::keys)
                        .map(String::len)
                        .sum();
                    let each = (names / STEP_CHARS) as u64;
                    self.steps = self
                        .steps
                        .saturating_add(each.saturating_mul(parts(part).count() as u64));
                }
                "pattern" | "format" => self.steps = self.steps.saturating_add(chars(value)),
                _ => {}
            }
            match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    self.reference(part.as_str()?, value, depth)?
                }
                "not" | "if" | "then" | "else" => self.schema(part, value, depth + 1)?,
                "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                    parts(part).try_for_each(|part| self.schema(part, value, depth + 1))?;
                }
                "properties" | "patternProperties" => {
                    for (name, part) in part.as_object().into_iter().flatten() {
                        let is_one = keyword == "properties";
                        let one = value.get(name).into_iter().filter(|_| is_one);
                        let each = parts(value).filter(|_| !is_one && value.is_object());
                        one.chain(each)
                            .try_for_each(|value| self.schema(part, value, depth + 1))?;
                    }
                }
                "items" | "prefixItems" if part.is_array() => {
                    let pairs = parts(part).zip(value.as_array().into_iter().flatten());
                    pairs
                        .into_iter()
                        .try_for_each(|(part, value)| self.schema(part, value, depth + 1))?;
                }
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties" => {
                    parts(value).try_for_each(|value| self.schema(part, value, depth + 1))?;
                }
                "propertyNames" => {
                    let names = value
                        .as_object()
                        .into_iter()
                        .flat_map(serde_json::Map::keys);
                    names
                        .map(|name| Value::from(name.as_str()))
                        .try_for_each(|name| self.schema(part, &name, depth + 1))?;
                }
                _ => {}
            }
        }
        Some(())
    }

    /// What a value costs each schema that it is checked against, without its parts: a text is counted through, and where any
    /// schema asks what others have looked at, all parts of a list or an object are noted.
    fn size(&self, value: &Value) -> u64 {
        let noted = if self.references.has_unevaluated {
            parts(value).count()
        } else {
            0
        };
        noted as u64 + chars(value) / STEP_CHARS as u64
    }

    fn reference(&mut self, to: &str, value: &Value, depth: usize) -> Option<()> {
        for part in self.references.targets(self.root, to) {
            let step = (std::ptr::from_ref(part), std::ptr::from_ref(value));
            if !self.followed.contains(&step) {
                self.followed.push(step);
                self.schema(part, value, depth + 1)?;
                self.followed.pop();
            }
        }
        Some(())
    }
}

/// The elements of a list, or the values of an object.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let elements = value.as_array().into_iter().flatten();
    elements.chain(
        value
            .as_object()
            .into_iter()
            .flat_map(|object| object.values()),
    )
}

/// What a text costs a pattern.
fn chars(value: &Value) -> u64 {
    value
        .as_str()
        .map_or(0, |text| (text.len() / STEP_CHARS) as u64)
}

#[cfg(test)]
mod tests {
    use crate::schema::Schema;
    use serde_json::{Value, json};

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }))
    }

    fn refuses(schema: Value, value: &Value) -> bool {
        match Schema::compile(schema).unwrap().check(value) {
            Ok(()) => false,
            Err(problems) => problems
                .iter()
                .any(|problem| problem.contains("too deeply nested")),
        }
    }

    /// A schema that has each part checked twice for each part around it, with references of every form.
    fn twice(to: &str, keyword: &str) -> Value {
        let next = json!({ "properties": { "x": { keyword: to } } });
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$anchor": "n", "$dynamicAnchor": "d", "allOf": [next, next] } } })
    }

    #[test]
    fn what_doubles_at_each_level_is_refused() {
        for (to, keyword) in [
            ("#/$defs/a", "$ref"),
            ("#/%24defs/a", "$ref"),
            ("schema:/root#/$defs/a", "$ref"),
            ("root#n", "$ref"),
            ("#n", "$ref"),
            ("#d", "$dynamicRef"),
            ("#", "$ref"),
        ] {
            assert!(!refuses(twice(to, keyword), &nested(4)), "{to}");
            assert!(refuses(twice(to, keyword), &nested(24)), "{to}");
        }
        let own = json!({ "$ref": "b", "$defs": { "b": { "$id": "b", "$ref": "#/$defs/a", "$defs": {
            "a": twice("#/$defs/a", "$ref")["$defs"]["a"] } }, "a": { "type": "object" } } });
        assert!(!refuses(own.clone(), &nested(4)), "own");
        assert!(refuses(own, &nested(24)));
        let mut named = twice("#/$defs/a", "$ref");
        named["$defs"]["z"] = json!({ "$id": "z" });
        assert!(
            refuses(named, &nested(24)),
            "an address of another part changes nothing"
        );
        let many = json!({ "items": { "allOf": vec![json!({}); 1000] } });
        assert!(refuses(many.clone(), &json!(vec![0; 260])));
        assert!(!refuses(many, &json!(vec![0; 240])));
        let named = json!({ "patternProperties": { "a": { "not": { "type": "null" } }, "b": { "not": {} } } });
        let wide: Value = (0..130_000)
            .map(|n| (format!("c{n}"), Value::Null))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert!(refuses(named, &wide));
    }

    /// What a step goes through counts, too: lists of names, texts, and parts of a value that are noted for others.
    #[test]
    fn what_one_step_costs_counts() {
        let names: Vec<String> = (0..9_000).map(|n| format!("n{n}")).collect();
        let texts = || json!(vec!["x".repeat(1_000); 500]);
        for (schema, value) in [
            (
                json!({ "items": { "required": names } }),
                json!(vec![json!({}); 50]),
            ),
            (json!({ "items": { "enum": names } }), json!(vec![0; 50])),
            (
                json!({ "unevaluatedItems": {}, "allOf": vec![json!({}); 100] }),
                json!(vec![0; 5_000]),
            ),
            (
                json!({ "items": { "allOf": vec![json!({ "pattern": "^a*b" }); 10] } }),
                texts(),
            ),
            (
                json!({ "items": { "allOf": vec![json!({ "maxLength": 9 }); 200] } }),
                texts(),
            ),
        ] {
            assert!(
                refuses(schema.clone(), &value),
                "{}",
                schema.to_string().get(..90).unwrap_or_default()
            );
        }
        let named = json!({ "x".repeat(500_000): 1 });
        let each = |of: &dyn Fn(usize) -> Value| -> Value {
            (0..10).map(|n| (format!("^a{{{n}}}b"), of(n))).collect()
        };
        assert!(refuses(
            json!({ "patternProperties": each(&|_| json!({})) }),
            &named
        ));
        assert!(refuses(
            json!({ "propertyNames": { "allOf": vec![json!({ "pattern": "^a" }); 10] } }),
            &named
        ));
        assert!(!refuses(
            json!({ "propertyNames": { "pattern": "^a" } }),
            &named
        ));
        assert!(!refuses(
            json!({ "items": { "pattern": "^a*b" } }),
            &texts()
        ));
        assert!(!refuses(
            json!({ "items": { "enum": ["a", "b"] } }),
            &texts()
        ));
        let unseen = json!({ "allOf": vec![json!({}); 100] });
        assert!(!refuses(unseen, &json!(vec![0; 5_000])));
    }

    /// The problems of a value are told in little, however many they are and whatever they repeat.
    #[test]
    fn problems_are_few_and_short() {
        let long: Vec<String> = (0..500).map(|n| format!("{}{n}", "x".repeat(90))).collect();
        let schema = json!({ "items": { "enum": long, "type": "null", "required": long } });
        let problems = Schema::compile(schema)
            .unwrap()
            .check(&json!(vec![json!({}); 100]))
            .unwrap_err();
        let last = problems.last().unwrap();
        assert!(
            problems.len() == 9 && last.starts_with("and ") && last.ends_with(" more"),
            "{problems:?}"
        );
        assert!(
            problems.iter().all(|problem| problem.len() < 400),
            "{problems:?}"
        );
    }

    /// The deepest check that is allowed fits into the stack of a thread, in a build without optimisation.
    #[test]
    fn the_deepest_check_fits_into_a_stack() {
        let schemas = [
            json!({ "properties": { "x": { "$ref": "#" } } }),
            json!({ "additionalProperties": { "allOf": [{ "anyOf": [{ "oneOf": [{ "$ref": "#" }] }] }] } }),
            json!({ "unevaluatedProperties": { "if": { "not": { "$ref": "#" } } } }),
            json!({ "$dynamicAnchor": "d", "patternProperties": { "x": { "$dynamicRef": "#d" } } }),
        ];
        let deepest = |schema: Value| {
            let fits = (1..120)
                .take_while(|depth| !refuses(schema.clone(), &nested(*depth)))
                .count();
            assert!(fits > 9, "{schema}: {fits}");
            // One more is refused without a look.
            assert!(refuses(schema, &nested(fits + 1)));
        };
        let small = std::thread::Builder::new().stack_size(1024 * 1536);
        small
            .spawn(move || schemas.into_iter().for_each(deepest))
            .unwrap()
            .join()
            .unwrap();
    }
}
