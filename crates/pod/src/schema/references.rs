//! What the references of a schema can lead to. Where parts have addresses of their own, more than one place is possible, and
//! all of them count. No reference leads to a document that the validator brings along: the schemas of schemas refer to
//! themselves in ways that are not followed here.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// Most objects of a schema, and the sum of the lengths of their JSON pointers: compiling compares each with each.
const MAX_OBJECTS: usize = 4_000;
const MAX_POINTERS: usize = 512 * 1024;
/// Most parts with an address or a name of their own.
const MAX_NAMED: usize = 64;
/// Where the schemas of schemas are.
const OF_SCHEMAS: &str = "json-schema.org";

/// The parts of a schema that have a name, by their JSON pointers.
#[derive(Debug, Default)]
pub(super) struct References {
    /// Those with an address of their own.
    addressed: Vec<String>,
    named: BTreeMap<String, Vec<String>>,
    objects: usize,
    pointers: usize,
    /// Whether any part asks which parts of a value others have looked at.
    pub(super) has_unevaluated: bool,
    /// Whether `id` may be an address, as in draft 4; in others it is data.
    has_plain_ids: bool,
}

/// Drafts in which only `$id` is an address.
const DRAFTS: [&str; 4] = [
    "2020-12/schema",
    "2019-09/schema",
    "draft-07/schema",
    "draft-06/schema",
];

impl References {
    /// # Errors
    /// The schema is too large to be compiled soon, or has an address that could be that of a schema of schemas.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let mut all = Self {
            has_plain_ids: is_of_another_draft(schema),
            ..Self::default()
        };
        all.collect(schema, &mut String::new())?;
        Ok(all)
    }

    /// Looks into all values, since a reference can lead into any.
    fn collect(&mut self, value: &Value, at: &mut String) -> Result<(), String> {
        let length = at.len();
        match value {
            Value::Object(keywords) => {
                (self.objects, self.pointers) = (self.objects + 1, self.pointers + length);
                if self.objects > MAX_OBJECTS || self.pointers > MAX_POINTERS {
                    return Err(format!(
                        "it has more than {MAX_OBJECTS} objects, or their places are too long"
                    ));
                }
                for (keyword, value) in keywords {
                    if let Value::String(text) = value {
                        self.name(keyword, text, at)?;
                    }
                    self.has_unevaluated |= keyword.starts_with("unevaluated");
                    at.extend(["/", &keyword.replace('~', "~0").replace('/', "~1")]);
                    self.collect(value, at)?;
                    at.truncate(length);
                }
            }
            Value::Array(all) => {
                for (index, value) in all
                    .iter()
                    .enumerate()
                    .filter(|(_, value)| value.is_object() || value.is_array())
                {
                    at.extend(["/", &index.to_string()]);
                    self.collect(value, at)?;
                    at.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// A keyword that names this part, or refers to another one.
    fn name(&mut self, keyword: &str, text: &str, at: &str) -> Result<(), String> {
        match keyword {
            "$anchor" | "$dynamicAnchor" => self
                .named
                .entry(text.to_owned())
                .or_default()
                .push(at.to_owned()),
            "id" if !self.has_plain_ids => return Ok(()),
            "$id" | "id" => {
                self.addressed.push(at.to_owned());
                if let Some(name) = text.strip_prefix('#') {
                    self.named
                        .entry(name.to_owned())
                        .or_default()
                        .push(at.to_owned());
                }
            }
            "$ref" | "$dynamicRef" | "$recursiveRef" => {}
            _ => return Ok(()),
        }
        if self.addressed.len() + self.named.values().map(Vec::len).sum::<usize>() > MAX_NAMED {
            return Err(format!(
                "more than {MAX_NAMED} of its parts have an address or a name"
            ));
        }
        match is_of_schemas(text) {
            true => Err(format!(
                "`{keyword}` cannot be followed; refer to a part of this schema, as in `#/$defs/name`"
            )),
            false => Ok(()),
        }
    }

    /// Every part that a reference can lead to.
    pub(super) fn targets<'a>(&self, root: &'a Value, to: &str) -> Vec<&'a Value> {
        let fragment = to.split_once('#').map_or("", |(_, fragment)| fragment);
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        if !(fragment.is_empty() || fragment.starts_with('/')) {
            let named = self.named.get(&*fragment).into_iter().flatten();
            return named.filter_map(|at| root.pointer(at)).collect();
        }
        let bases = self
            .addressed
            .iter()
            .filter_map(|at| root.pointer(at))
            .chain([root]);
        let mut found: Vec<&Value> = bases.filter_map(|base| base.pointer(&fragment)).collect();
        found.sort_by_key(|part| std::ptr::from_ref(*part));
        found.dedup_by_key(|part| std::ptr::from_ref(*part));
        found
    }
}

/// Whether any part of a schema is of a draft that is not known here.
fn is_of_another_draft(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.iter().any(|(keyword, value)| {
            let draft = value
                .as_str()
                .filter(|_| keyword == "$schema")
                .map(|draft| draft.trim_end_matches('#'));
            draft.is_some_and(|draft| !DRAFTS.iter().any(|known| draft.ends_with(known)))
                || is_of_another_draft(value)
        }),
        Value::Array(all) => all.iter().any(is_of_another_draft),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether an address is, or could be together with another one, that of a schema of schemas.
fn is_of_schemas(address: &str) -> bool {
    let odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    let (place, _) = address.split_once('#').unwrap_or((address, ""));
    place.starts_with("//")
        || place.contains(odd)
        || Url::parse(place).is_ok_and(|url| url.host_str() == Some(OF_SCHEMAS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_data_is_no_address() {
        let data = json!({ "default": { "id": "a b" }, "enum": vec![json!({ "id": "//x" }); 100] });
        assert!(References::of(&data).is_ok());
        let mut draft4 = data;
        draft4["$schema"] = json!("http://json-schema.org/draft-04/schema#");
        assert!(
            References::of(&draft4)
                .unwrap_err()
                .contains("cannot be followed")
        );
    }

    #[test]
    fn large_schemas_are_refused_before_they_are_compiled() {
        let long = |count: usize, name: usize| json!({ "properties": { "k".repeat(name): { "allOf": vec![json!({}); count] } } });
        for (schema, says) in [
            (json!({ "allOf": vec![json!({}); 4_001] }), "4000 objects"),
            (long(200, 4_000), "their places are too long"),
            (
                json!({ "default": vec![json!({ "$id": "a" }); 65] }),
                "more than 64",
            ),
            (
                json!({ "default": vec![json!({ "$anchor": "a" }); 65] }),
                "more than 64",
            ),
        ] {
            let why = References::of(&schema).unwrap_err();
            assert!(why.contains(says), "{says}: {why}");
        }
        assert!(References::of(&json!({ "allOf": vec![json!({}); 3_900] })).is_ok());
        assert!(References::of(&long(100, 4_000)).is_ok());
    }

    #[test]
    fn addresses_of_schemas_of_schemas_are_known_in_every_form() {
        for address in [
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-07/schema#",
            "HTTPS://JSON-Schema.org/x",
            "https://json-schema%2Eorg/x",
            "https:json-schema.org/x",
            "https:\\\\json-schema.org/x",
            "//json-schema.org/x",
            "/\t/json-schema.org/x",
            "https://user@json-schema.org:443/x",
        ] {
            assert!(is_of_schemas(address), "{address}");
        }
        for address in [
            "#/$defs/a b",
            "#a",
            "a.json",
            "https://example.org/json-schema.org",
            "urn:uuid:1",
        ] {
            assert!(!is_of_schemas(address), "{address}");
        }
    }
}
