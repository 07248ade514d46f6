//! The JSON Schema of the protocol: methods with their answers, events, and the kinds of records that clients draw.

use crate::error::Error;
use crate::{VERSION, event, method, record};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The whole schema: `methods`, `events` and `records` by name, which refer to `$defs`.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let methods = method::schemas(&mut generator);
    let events = event::schemas(&mut generator);
    let records = record::schemas(&mut generator);
    let error = generator.subschema_for::<Error>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "yoi protocol",
        "version": VERSION,
        "methods": methods,
        "events": events,
        "records": records,
        "error": error,
        "$defs": generator.take_definitions(true),
    })
}
