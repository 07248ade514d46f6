//! The part of a tool that an enricher may change, and the check that it only narrowed it. Does not depend on enrichers.

use super::text::{self, Lines, MAX_TEXT};
use super::tool::MAX_SCHEMA;
use crate::schema::Schema;
use llm_worker::ToolDefinition;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Most values of one `enum` that an enricher sets.
const MAX_CHOICES: usize = 256;
/// Longest text in such an `enum`, in bytes.
const MAX_CHOICE: usize = 256;

/// The description and the argument schema of a tool, as an enricher sees and changes them. Of the schema it may set
/// `description`, `default` and `enum`, at the root, of properties and of their items; values of an `enum` must fit the
/// schema as it was. The host refuses every other change.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSchema {
    /// What the model reads about the tool; at most 8 KiB.
    pub description: String,
    /// The JSON Schema of the arguments; at most 64 KiB as text.
    pub arguments: Value,
}

impl ToolSchema {
    /// The schema of a property of the arguments.
    pub fn property(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        self.arguments
            .get_mut("properties")?
            .get_mut(name)?
            .as_object_mut()
    }

    /// Limits a property to these values, or, if the property is a list, its items. `null` stays where the schema allows
    /// it. Returns whether there is such a property.
    pub fn choices(
        &mut self,
        property: &str,
        values: impl IntoIterator<Item = impl Into<Value>>,
    ) -> bool {
        let Some(property) = self.property(property) else {
            return false;
        };
        let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
        match property.get_mut("items").and_then(Value::as_object_mut) {
            Some(items) => drop(items.insert("enum".to_owned(), values.into())),
            None => {
                let null = Schema::compile(Value::Object(property.clone()))
                    .is_ok_and(|of| of.check(&Value::Null).is_ok());
                values.extend(null.then_some(Value::Null));
                property.insert("enum".to_owned(), values.into());
            }
        }
        true
    }

    pub(crate) fn of(definition: &ToolDefinition) -> Self {
        let arguments = serde_json::from_str(&definition.schema).unwrap_or_default();
        Self {
            description: definition.description.clone(),
            arguments,
        }
    }

    /// The definition with this description and schema.
    pub(crate) fn definition(&self, of: &ToolDefinition) -> ToolDefinition {
        let mut schema = self.arguments.clone();
        // Sorted here, because `serde_json` may be built with another map type.
        schema.sort_all_objects();
        ToolDefinition {
            description: self.description.clone(),
            schema: schema.to_string().into(),
            ..of.clone()
        }
    }

    /// What changed since `before`.
    ///
    /// # Errors
    /// A change that an enricher may not make.
    pub(crate) fn narrowed_from(&self, before: &Self) -> Result<Narrowing, String> {
        text::check("the description", &self.description, MAX_TEXT, Lines::Many)?;
        let bytes = self.arguments.to_string().len();
        if bytes > MAX_SCHEMA {
            return Err(format!(
                "the schema has {bytes} bytes; at most {MAX_SCHEMA} are allowed"
            ));
        }
        let check = Check {
            root: &before.arguments,
        };
        let overlay = check
            .schema(&before.arguments, &self.arguments, "")?
            .unwrap_or_else(|| json!({}));
        let was = before
            .arguments
            .get("properties")
            .and_then(Value::as_object);
        let is = self.arguments.get("properties").and_then(Value::as_object);
        let changed = is
            .into_iter()
            .flatten()
            .filter(|(name, schema)| was.and_then(|was| was.get(*name)) != Some(schema));
        Ok(Narrowing {
            properties: changed.map(|(name, _)| name.clone()).collect(),
            overlay,
        })
    }
}

/// What an enricher changed of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Narrowing {
    /// The properties of the arguments whose schema changed.
    pub(crate) properties: BTreeSet<String>,
    /// A schema with the new enums alone. `null` fits where it did before: the tool says what it takes for nothing.
    pub(crate) overlay: Value,
}

struct Check<'a> {
    /// The whole schema as it was.
    root: &'a Value,
}

impl Check<'_> {
    /// Compares two schemas; returns the enums that are new in the second one.
    fn schema(&self, before: &Value, after: &Value, place: &str) -> Result<Option<Value>, String> {
        if before == after {
            return Ok(None);
        }
        let shown = if place.is_empty() {
            "the schema".to_owned()
        } else {
            format!("`{place}`")
        };
        let (Value::Object(was), Value::Object(is)) = (before, after) else {
            return Err(format!("{shown} became another kind of schema"));
        };
        let mut overlay = Map::new();
        let keywords: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for keyword in keywords {
            let old = was.get(keyword);
            let new = is.get(keyword);
            if old == new {
                continue;
            }
            match (keyword.as_str(), old, new) {
                ("description", _, Some(Value::String(words))) => {
                    text::check(
                        &format!("the description of {shown}"),
                        words,
                        MAX_TEXT,
                        Lines::Many,
                    )?;
                }
                ("enum", _, Some(Value::Array(values))) => {
                    self.choices(was, values, &shown)?;
                    let mut values = values.clone();
                    let null = self
                        .compiled(was)
                        .is_ok_and(|schema| schema.check(&Value::Null).is_ok());
                    if null && !values.contains(&Value::Null) {
                        values.push(Value::Null);
                    }
                    overlay.insert("enum".to_owned(), values.into());
                }
                ("default", _, Some(value)) => {
                    let fits = self
                        .compiled(is)
                        .and_then(|schema| schema.check(value).map_err(|p| p.join("; ")));
                    fits.map_err(|why| format!("the default of {shown} does not fit: {why}"))?;
                }
                ("properties", Some(Value::Object(old)), Some(Value::Object(new))) => {
                    overlay.extend(
                        self.properties(old, new, place)?
                            .map(|of| ("properties".to_owned(), of)),
                    );
                }
                ("items", Some(old), Some(new)) => {
                    overlay.extend(
                        self.schema(old, new, &format!("{place}/items"))?
                            .map(|of| ("items".to_owned(), of)),
                    );
                }
                _ => {
                    return Err(format!(
                        "`{keyword}` of {shown} changed, which no enricher may change"
                    ));
                }
            }
        }
        Ok((!overlay.is_empty()).then_some(Value::Object(overlay)))
    }

    fn properties(
        &self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        place: &str,
    ) -> Result<Option<Value>, String> {
        if let Some(name) = old.keys().find(|name| !new.contains_key(*name)) {
            return Err(format!("the property `{place}/{name}` was removed"));
        }
        let mut overlay = Map::new();
        for (name, after) in new {
            let Some(before) = old.get(name) else {
                return Err(format!("the property `{place}/{name}` was added"));
            };
            overlay.extend(
                self.schema(before, after, &format!("{place}/{name}"))?
                    .map(|of| (name.clone(), of)),
            );
        }
        Ok((!overlay.is_empty()).then_some(Value::Object(overlay)))
    }

    /// Checks the values of a new `enum`: each of them fitted before.
    fn choices(
        &self,
        was: &Map<String, Value>,
        values: &[Value],
        shown: &str,
    ) -> Result<(), String> {
        if values.is_empty() || values.len() > MAX_CHOICES {
            return Err(format!(
                "the `enum` of {shown} has {} values, not 1 to {MAX_CHOICES}",
                values.len()
            ));
        }
        let schema = self.compiled(was)?;
        for value in values {
            if let Value::String(words) = value
                && !words.is_empty()
            {
                text::check(
                    &format!("a value in the `enum` of {shown}"),
                    words,
                    MAX_CHOICE,
                    Lines::One,
                )?;
            }
            if let Err(why) = schema.check(value) {
                return Err(format!(
                    "a value in the `enum` of {shown} did not fit before: {}",
                    why.join("; ")
                ));
            }
        }
        Ok(())
    }

    /// A part of the schema, with what it may refer to.
    fn compiled(&self, part: &Map<String, Value>) -> Result<Schema, String> {
        let mut part = part.clone();
        for shared in ["$defs", "definitions", "$schema"] {
            part.extend(
                self.root
                    .get(shared)
                    .map(|value| (shared.to_owned(), value.clone())),
            );
        }
        Schema::compile(Value::Object(part))
    }
}
