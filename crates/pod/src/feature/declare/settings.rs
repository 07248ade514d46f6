//! Settings of a feature: declared as a JSON Schema, checked before anything of the feature runs. Does not depend on where
//! they are written.

use super::descriptor::FeatureDescriptor;
use crate::schema::{Schema, SchemaProblem, SchemaProblemKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The settings of one feature, by key.
pub type Settings = Map<String, Value>;

/// Longest schema and longest settings of one feature, in bytes.
const MAX_SCHEMA: usize = 64 * 1024;
const MAX_SETTINGS: usize = 64 * 1024;

/// Most problems of one feature's settings that are reported.
const MAX_PROBLEMS: usize = 3;

/// Hexadecimal digits that stand for a value in a report.
const DIGITS: usize = 16;

/// A problem of a declared schema, for the descriptor.
pub(crate) fn problem(schema: &str) -> Option<String> {
    if schema.len() > MAX_SCHEMA {
        return Some(format!(
            "the schema of the settings has over {MAX_SCHEMA} bytes"
        ));
    }
    let parsed = serde_json::from_str(schema).map_err(|error| error.to_string());
    let checked = parsed.and_then(|schema: Value| {
        let compiled = Schema::compile(schema.clone())?;
        unfit_default(&schema, &compiled).map_or(Ok(()), Err)
    });
    checked
        .err()
        .map(|why| format!("the schema of the settings is not valid: {why}"))
}

/// The first default that does not fit the schema which has it: no start could take it.
fn unfit_default(schema: &Value, compiled: &Schema) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let with_default = properties
        .iter()
        .filter_map(|(key, property)| Some((key, property.get("default")?)));
    for (key, default) in with_default {
        let alone = Value::Object(Settings::from_iter([(key.clone(), default.clone())]));
        let place = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let problems = compiled.problems(&alone);
        // Those of the whole are about keys that are not set.
        let own = problems.iter().find(|problem| {
            let rest = problem.pointer.strip_prefix(&place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if let Some(problem) = own {
            return Some(format!("the default of {}", told(problem)));
        }
    }
    None
}

/// The settings in effect: the written ones and the defaults of the schema.
///
/// # Errors
/// The problems, at least one.
pub(crate) fn effective(
    descriptor: &FeatureDescriptor,
    written: &Settings,
) -> Result<Settings, Vec<String>> {
    let Some(schema) = descriptor.settings.as_deref() else {
        return match written.keys().next() {
            None => Ok(Settings::new()),
            Some(key) => Err(vec![format!(
                "`{key}` is set, but the feature has no settings"
            )]),
        };
    };
    if serde_json::to_string(written).map_or(usize::MAX, |text| text.len()) > MAX_SETTINGS {
        return Err(vec![format!("the settings have over {MAX_SETTINGS} bytes")]);
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| vec![error.to_string()])?;
    let mut effective = written.clone();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (key, property) in properties {
        if let (Some(default), false) = (property.get("default"), effective.contains_key(key)) {
            effective.insert(key.clone(), default.clone());
        }
    }
    let needs_none = schema
        .get("required")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty);
    if written.is_empty() && needs_none && descriptor.typed_settings {
        // The defaults of a type fit it, and compiling schemas at each start took a tenth of it.
        return Ok(effective);
    }
    let schema = Schema::compile(schema).map_err(|why| vec![why])?;
    let problems = schema.problems(&Value::Object(effective.clone()));
    if problems.is_empty() {
        Ok(effective)
    } else {
        Err(problems.iter().take(MAX_PROBLEMS).map(told).collect())
    }
}

/// Settings as reports show them: numbers and switches as they are, other values, which may be private, by a digest.
pub(crate) fn shown(settings: &Settings) -> BTreeMap<String, Value> {
    let shown = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Value::String(digest(value).chars().take(DIGITS).collect())
        }
    };
    settings
        .iter()
        .map(|(key, value)| (key.clone(), shown(value)))
        .collect()
}

/// BLAKE3 of a JSON value with sorted keys, lower-case hex.
pub(crate) fn digest(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    blake3::hash(value.to_string().as_bytes())
        .to_hex()
        .to_string()
}

/// A problem as it is told to people who write settings.
fn told(SchemaProblem { pointer, kind }: &SchemaProblem) -> String {
    let place = pointer.trim_start_matches('/').replace('/', ".");
    let place = if place.is_empty() {
        place
    } else {
        format!("`{place}`: ")
    };
    let quoted = |names: &[String], between: &str| {
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(between)
    };
    let what = match kind {
        SchemaProblemKind::Missing(names) => format!("{} must be set", quoted(names, " and ")),
        SchemaProblemKind::Unknown(names) => format!("unknown key {}", quoted(names, ", ")),
        SchemaProblemKind::Other(what) => what.clone(),
    };
    format!("{place}{what}")
}
