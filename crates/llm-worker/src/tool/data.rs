//! The JSON value beside a result's text: its bounds, and changes of the texts in it.

use serde_json::{Map, Value};
use std::fmt::{self, Write as _};

/// The most bytes of a value, as JSON text.
pub const MAX_DATA: usize = 8 << 20;

/// The most levels of a value: what a record has around them still fits into what readers of JSON accept.
pub const MAX_LEVELS: usize = 64;

/// The length of a value as JSON text, in bytes.
///
/// # Errors
/// It exceeds [`MAX_DATA`] or [`MAX_LEVELS`].
pub fn bytes(value: &Value) -> Result<usize, String> {
    if !is_within(value, MAX_LEVELS) {
        return Err(format!("it has more than {MAX_LEVELS} levels"));
    }
    let mut counted = Counted(0);
    write!(counted, "{value}").map_err(|_| format!("it has more than {MAX_DATA} bytes"))?;
    Ok(counted.0)
}

fn is_within(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(values), Some(left)) => values.iter().all(|value| is_within(value, left)),
        (Value::Object(fields), Some(left)) => fields.values().all(|value| is_within(value, left)),
        (Value::Array(_) | Value::Object(_), None) => false,
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => true,
    }
}

/// Counts bytes, up to [`MAX_DATA`].
struct Counted(usize);

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        match self.0 {
            0..=MAX_DATA => Ok(()),
            _ => Err(fmt::Error),
        }
    }
}

/// The value with other texts, where `change` gives one: of strings, of the names of fields, and of numbers, which then
/// become strings. The value has at most [`MAX_LEVELS`] levels.
pub fn map_texts(value: Value, change: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text).unwrap_or(text)),
        Value::Number(number) => {
            change(&number.to_string()).map_or(Value::Number(number), Value::String)
        }
        Value::Array(values) => {
            let values = values.into_iter().map(|value| map_texts(value, change));
            Value::Array(values.collect())
        }
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                (change(&name).unwrap_or(name), map_texts(value, change))
            };
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        value @ (Value::Null | Value::Bool(_)) => value,
    }
}
