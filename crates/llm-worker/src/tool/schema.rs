//! A tool's schema, from its argument type: small, canonical, the same bytes in every build.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The schemas of the types that were asked for: a start asks for each at least twice, and to make one takes long.
static MADE: LazyLock<Mutex<HashMap<TypeId, Arc<str>>>> = LazyLock::new(Mutex::default);

/// The JSON Schema of `A` without the parts that only cost tokens: titles, `$schema`, Rust's number formats, null
/// defaults. Subschemas are inlined; only a type that contains itself keeps `$defs`.
#[must_use]
pub fn canonical_schema<A: JsonSchema + 'static>() -> Arc<str> {
    let id = TypeId::of::<A>();
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = made().get(&id) {
        return Arc::clone(schema);
    }
    let schema = make_schema::<A>();
    made().insert(id, Arc::clone(&schema));
    schema
}

fn make_schema<A: JsonSchema>() -> Arc<str> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    slim(&mut schema);
    // Sorted here, because `serde_json` may be built with another map type.
    schema.sort_all_objects();
    // Not `to_string`, which writes each piece through a formatter.
    serde_json::to_string(&schema).unwrap_or_default().into()
}

/// Rust's names for the sizes of numbers; a format such as `date-time` stays.
const SIZES: [&str; 14] = [
    "int", "int8", "int16", "int32", "int64", "int128", "uint", "uint8", "uint16", "uint32",
    "uint64", "uint128", "float", "double",
];

/// Removes the parts that only cost tokens. Follows only keywords that contain schemas, so that a property called
/// `title` stays.
fn slim(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.retain(|keyword, value| match keyword.as_str() {
        "$schema" | "title" => false,
        "format" => !value.as_str().is_some_and(|format| SIZES.contains(&format)),
        "default" => !value.is_null(),
        _ => true,
    });
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "dependentSchemas" => {
                value
                    .as_object_mut()
                    .into_iter()
                    .flat_map(|named| named.values_mut())
                    .for_each(slim);
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(slim);
            }
            "items"
            | "additionalProperties"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "unevaluatedProperties" => slim(value),
            _ => {} // holds values, not schemas
        }
    }
}
