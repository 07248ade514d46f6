//! Answers of vendors as JSON of which any part may be missing or of another type. What is optional is then left out; what
//! is needed is an error that names it.

use crate::ServiceFault;
use llm_worker::ErrorKind;
use serde_json::Value;

/// The text at a JSON pointer, unless it is empty.
#[must_use]
pub fn text(of: &Value, at: &str) -> Option<String> {
    let text = of.pointer(at)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// The text or the whole number at a JSON pointer, as text.
#[must_use]
pub fn id(of: &Value, at: &str) -> Option<String> {
    text(of, at).or_else(|| {
        let number = of.pointer(at)?;
        (number.is_u64() || number.is_i64()).then(|| number.to_string())
    })
}

/// The number at a JSON pointer, or in the text there.
#[must_use]
pub fn number(of: &Value, at: &str) -> Option<u64> {
    let found = of.pointer(at)?;
    found
        .as_u64()
        .or_else(|| found.as_str().and_then(|text| text.parse().ok()))
}

/// Whether there is a `true` at a JSON pointer.
#[must_use]
pub fn flag(of: &Value, at: &str) -> bool {
    of.pointer(at).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a JSON pointer; empty if there is none.
#[must_use]
pub fn list<'a>(of: &'a Value, at: &str) -> &'a [Value] {
    of.pointer(at)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The texts at a JSON pointer in each part of the list at another one; parts without one are left out.
#[must_use]
pub fn texts(of: &Value, at: &str, in_each: &str) -> Vec<String> {
    list(of, at)
        .iter()
        .filter_map(|part| text(part, in_each))
        .collect()
}

/// All texts of a value, each behind the name of its field: `title: is too long`.
#[must_use]
pub fn sentences(of: &Value) -> Vec<String> {
    match of {
        Value::String(text) if !text.is_empty() => vec![text.clone()],
        Value::Array(parts) => parts.iter().flat_map(sentences).collect(),
        Value::Object(fields) => {
            let named = fields.iter().flat_map(|(name, value)| {
                let all = sentences(value).into_iter();
                all.map(move |text| format!("{name}: {text}"))
            });
            named.collect()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// What an answer has to have: `what` is the thing, such as `an issue`, and `at` the pointer where nothing was found.
///
/// # Errors
/// Nothing was found.
pub fn needed<T>(found: Option<T>, vendor: &str, what: &str, at: &str) -> Result<T, ServiceFault> {
    found.ok_or_else(|| {
        let message = format!("{vendor} answered with {what} that has no usable `{at}`");
        ServiceFault::new(ErrorKind::Corrupt, message)
    })
}

/// Each part of an answer that is a list, read by `read`.
///
/// # Errors
/// The answer is no list, or a part of it lacks what it has to have.
pub fn each<T>(
    answer: &Value,
    vendor: &str,
    mut read: impl FnMut(&Value) -> Result<T, ServiceFault>,
) -> Result<Vec<T>, ServiceFault> {
    let all = needed(answer.as_array(), vendor, "something", "[…]")?;
    all.iter().map(&mut read).collect()
}
