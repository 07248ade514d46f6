//! A tool's schema, from its argument type: small, canonical, the same bytes in every build.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::sync::Arc;

/// The JSON Schema of `A` without the parts that only cost tokens: titles, `$schema`, Rust's number formats, null
/// defaults. Subschemas are inlined; only a type that contains itself keeps `$defs`.
#[must_use]
pub fn canonical_schema<A: JsonSchema>() -> Arc<str> {
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
    schema.to_string().into()
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
