//! Tools as programs of others can read them: schemas in what all of them understand, and what a call may change.
//!
//! A schema may lose what not every client reads, never gain anything: the pod checks arguments against the whole one.

use protocol::tool::ToolEffect;
use serde_json::{Map, Value, json};

/// How deep a schema is followed; what is below is left out.
const MAX_DEPTH: usize = 64;

/// The schema of a tool's arguments for clients: an object of `type: object`, without `true`, with references inside of
/// itself that lead somewhere, and patterns that ECMAScript reads.
pub(crate) fn schema(text: &str) -> Value {
    let root = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
    let walked = |is_strict| {
        let mut walk = Walk {
            root: &root,
            lost: false,
            is_strict,
            exact: 0,
        };
        (walk.schema(&root, 0), walk.lost)
    };
    let published = match walked(false) {
        (published, false) => published,
        // What a reference leads to may have lost something.
        (_, true) => walked(true).0,
    };
    let mut keywords = match published {
        Value::Object(keywords) => keywords,
        _ => Map::new(),
    };
    keywords.insert("type".to_owned(), json!("object"));
    Value::Object(keywords)
}

/// What a call may change, as hints: none that the pod does not know.
pub(crate) fn annotations(effect: ToolEffect) -> Value {
    match effect {
        ToolEffect::ReadOnly => json!({ "readOnlyHint": true }),
        ToolEffect::Idempotent => json!({ "readOnlyHint": false, "idempotentHint": true }),
        ToolEffect::Effectful => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false })
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// Something was left out: what is below accepts more than it did.
    lost: bool,
    /// A reference may lead to a schema that lost something.
    is_strict: bool,
    /// How many schemas around this one have to stay whole.
    exact: usize,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        match schema {
            Value::Bool(false) => json!({ "not": {} }),
            Value::Object(keywords) if depth < MAX_DEPTH => self.keywords(keywords, depth),
            Value::Bool(true) => json!({}),
            _ => {
                self.lost = true;
                json!({})
            }
        }
    }

    fn keywords(&mut self, keywords: &Map<String, Value>, depth: usize) -> Value {
        let mut kept = Map::new();
        // Beside a list of patterns with one less, what is said of the others would be about more.
        let unread = |name: &str| !is_ecmascript(name);
        let loses_pattern = keywords
            .get("patternProperties")
            .and_then(Value::as_object)
            .is_some_and(|all| all.keys().any(|name| unread(name)));
        for (name, value) in keywords {
            let value = match (name.as_str(), value) {
                // A base, an anchor or a reference by one: those that stay are plain.
                ("$id" | "$schema" | "$anchor" | "$vocabulary" | "$dynamicAnchor", _) => None,
                ("$dynamicRef" | "$recursiveRef" | "$recursiveAnchor", _) => self.without(),
                ("$ref", _) if self.is_strict && self.exact > 0 => self.without(),
                ("$ref", Value::String(to)) if self.leads(to) => Some(value.clone()),
                ("$ref", _) => self.without(),
                ("pattern", Value::String(pattern)) if is_ecmascript(pattern) => {
                    Some(value.clone())
                }
                ("pattern", _) => self.without(),
                ("default", Value::Null) => None,
                ("additionalProperties" | "unevaluatedProperties", _) if loses_pattern => {
                    self.without()
                }
                (
                    "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems",
                    Value::Bool(true),
                ) => None,
                (
                    "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems",
                    Value::Bool(false),
                ) => Some(value.clone()),
                ("items", _) if keywords.contains_key("prefixItems") || value.is_array() => {
                    self.without()
                }
                (
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas",
                    Value::Object(all),
                ) => Some(self.named(all, name == "patternProperties", depth)),
                ("allOf" | "anyOf" | "prefixItems", Value::Array(all)) => {
                    let all = all.iter().map(|one| self.schema(one, depth + 1));
                    Some(Value::Array(all.collect()))
                }
                // What loses a part there would be accepted less often.
                ("oneOf", Value::Array(all)) => self.exact(|walk| {
                    let all = all.iter().map(|one| walk.schema(one, depth + 1));
                    Value::Array(all.collect())
                }),
                ("not" | "if" | "contains", _) => self.exact(|walk| walk.schema(value, depth + 1)),
                (
                    "items"
                    | "additionalProperties"
                    | "then"
                    | "else"
                    | "propertyNames"
                    | "unevaluatedProperties"
                    | "unevaluatedItems"
                    | "contentSchema",
                    _,
                ) => Some(self.schema(value, depth + 1)),
                _ => Some(value.clone()),
            };
            if let Some(value) = value {
                kept.insert(name.clone(), value);
            }
        }
        if keywords.contains_key("if") && !kept.contains_key("if") {
            kept.remove("then");
            kept.remove("else");
        }
        Value::Object(kept)
    }

    fn named(&mut self, all: &Map<String, Value>, are_patterns: bool, depth: usize) -> Value {
        let mut kept = Map::new();
        for (name, one) in all {
            if are_patterns && !is_ecmascript(name) {
                self.lost = true;
                continue;
            }
            kept.insert(name.clone(), self.schema(one, depth + 1));
        }
        Value::Object(kept)
    }

    /// What is made here, if all of it stays.
    fn exact(&mut self, make: impl FnOnce(&mut Self) -> Value) -> Option<Value> {
        let before = std::mem::take(&mut self.lost);
        self.exact += 1;
        let made = make(self);
        self.exact -= 1;
        let is_whole = !self.lost;
        self.lost |= before;
        is_whole.then_some(made)
    }

    fn without(&mut self) -> Option<Value> {
        self.lost = true;
        None
    }

    /// Whether a reference leads to a place in this schema.
    fn leads(&self, to: &str) -> bool {
        let place = to.strip_prefix('#').filter(|place| !place.contains('%'));
        place.is_some_and(|place| self.root.pointer(place).is_some())
    }
}

/// Whether ECMAScript certainly reads a pattern, with and without its flag `u`, as Rust does.
fn is_ecmascript(pattern: &str) -> bool {
    const ESCAPED: &str = "dDwWsSbBnrtfv.*+?()[]{}|^$\\/-";
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                // Outside of a class, `u` takes no `\-`.
                Some('-') if !in_class => return false,
                Some(escaped) if ESCAPED.contains(escaped) => {}
                Some(_) | None => return false,
            },
            // Sets in sets, and operators on them.
            '[' if in_class => return false,
            '&' | '~' | '-' if in_class && rest.peek() == Some(&next) => return false,
            '[' => in_class = true,
            ']' if in_class => in_class = false,
            '(' if !in_class && rest.peek() == Some(&'?') => {
                rest.next();
                if !matches!(rest.next(), Some(':' | '=' | '!')) {
                    return false;
                }
            }
            _ => {}
        }
    }
    !in_class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_not_every_client_reads_is_left_out_and_nothing_becomes_stricter() {
        for (given, published) in [
            (json!({}), json!({ "type": "object" })),
            (json!(true), json!({ "type": "object" })),
            (
                json!({ "type": ["object", "null"], "properties": { "a": true, "b": false } }),
                json!({ "type": "object", "properties": { "a": {}, "b": { "not": {} } } }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/A" }, "b": { "$ref": "http://127.0.0.1:1/x" }, "c": { "$ref": "#/$defs/C" } },
                        "$defs": { "A": { "items": true } }, "$id": "x", "$schema": "y" }),
                json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" }, "b": {}, "c": {} },
                        "$defs": { "A": { "items": {} } } }),
            ),
            (
                json!({ "properties": { "a": { "pattern": "^[a-z]+$" }, "b": { "pattern": "(?i)x" }, "c": { "pattern": "\\Ax" } } }),
                json!({ "type": "object", "properties": { "a": { "pattern": "^[a-z]+$" }, "b": {}, "c": {} } }),
            ),
            (
                json!({ "additionalProperties": true, "properties": { "t": { "prefixItems": [true], "items": false } } }),
                json!({ "type": "object", "properties": { "t": { "prefixItems": [{}] } } }),
            ),
            (
                json!({ "patternProperties": { "^(?i)x": {}, "^y": {} }, "additionalProperties": false }),
                json!({ "type": "object", "patternProperties": { "^y": {} } }),
            ),
            (
                json!({ "properties": { "n": { "not": { "pattern": "(?i)x" } }, "m": { "not": { "pattern": "x" } },
                        "o": { "oneOf": [{ "pattern": "(?i)x" }, { "type": "null" }] }, "p": { "oneOf": [true] } } }),
                json!({ "type": "object", "properties": { "n": {}, "m": { "not": { "pattern": "x" } }, "o": {}, "p": { "oneOf": [{}] } } }),
            ),
            (
                json!({ "properties": { "n": { "not": { "$ref": "#/$defs/A" } }, "r": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "pattern": "(?i)x" } } }),
                json!({ "type": "object", "properties": { "n": {}, "r": { "$ref": "#/$defs/A" } }, "$defs": { "A": {} } }),
            ),
            (
                json!({ "properties": { "i": { "if": { "pattern": "(?i)x" }, "then": { "type": "null" } }, "d": { "default": null, "const": true } } }),
                json!({ "type": "object", "properties": { "i": {}, "d": { "const": true } } }),
            ),
        ] {
            assert_eq!(schema(&given.to_string()), published, "{given}");
        }
        assert_eq!(schema("{"), json!({ "type": "object" }));
    }

    #[test]
    fn a_deep_schema_ends() {
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "properties": { "a": deep } });
        }
        assert!(schema(&deep.to_string()).is_object());
    }

    #[test]
    fn patterns_that_only_rust_reads_are_known() {
        for (pattern, is_read) in [
            ("^a|b$", true),
            ("[^/]*(?:x|y)\\.rs", true),
            ("(?=a)(?!b)", true),
            ("[a\\-z]", true),
            ("\\-", false),
            ("(?P<n>a)", false),
            ("(?x) a", false),
            ("\\z", false),
            ("\\x{41}", false),
            ("\\pL", false),
            ("[[:alpha:]]", false),
            ("[a&&b]", false),
            ("[a", false),
            ("a\\", false),
        ] {
            assert_eq!(is_ecmascript(pattern), is_read, "{pattern}");
        }
    }

    #[test]
    fn hints_are_honest() {
        assert_eq!(annotations(ToolEffect::ReadOnly)["readOnlyHint"], true);
        for effect in [ToolEffect::Idempotent, ToolEffect::Effectful] {
            assert_eq!(annotations(effect)["readOnlyHint"], false);
        }
    }
}
