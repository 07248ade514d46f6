//! What a call gave, as a result of `tools/call`: always with text, and with the value for programs where there is one.

use protocol::record::ToolFinished;
use serde_json::{Map, Value, json};

/// Above it, programs that keep numbers as doubles lose digits.
const EXACT: u64 = 1 << 53;

/// A result of this kind: `complete`, or of an older version of the protocol, which has no kinds.
pub(crate) fn complete(mut result: Map<String, Value>, is_modern: bool) -> Value {
    if is_modern {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    Value::Object(result)
}

/// The result of a call that has its record.
pub(crate) fn of_call(finished: &ToolFinished, is_modern: bool) -> Value {
    let outcome = &finished.outcome;
    let is_error = outcome.status != "ok";
    let content = outcome.content.as_deref().unwrap_or_default();
    let text = match (is_error, content.is_empty()) {
        (_, true) => outcome.summary.clone(),
        (true, false) => format!("{}\n{content}", outcome.summary),
        (false, false) => content.to_owned(),
    };
    let data = finished.data.as_ref().and_then(|data| data.value.as_ref());
    let mut content = vec![block(&text)];
    // Texts keep all digits.
    content.extend(
        data.filter(|data| has_large(data))
            .map(|data| block(&data.to_string())),
    );
    let mut result = Map::new();
    result.insert("content".to_owned(), Value::Array(content));
    // In older versions, only an object is one.
    if let Some(data) = data.filter(|data| data.is_object()) {
        result.insert("structuredContent".to_owned(), data.clone());
    }
    result.insert("isError".to_owned(), json!(is_error));
    complete(result, is_modern)
}

/// A result that says why there is none of the call.
pub(crate) fn failed(why: &str, is_modern: bool) -> Value {
    let mut result = Map::new();
    result.insert("content".to_owned(), json!([block(why)]));
    result.insert("isError".to_owned(), json!(true));
    complete(result, is_modern)
}

fn block(text: &str) -> Value {
    // A text that is empty is none for some clients.
    let text = if text.is_empty() { "(nothing)" } else { text };
    json!({ "type": "text", "text": text })
}

fn has_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let is_large = number.as_i64().is_some_and(|of| of.unsigned_abs() > EXACT);
            is_large || number.as_u64().is_some_and(|of| of > EXACT)
        }
        Value::Array(values) => values.iter().any(has_large),
        Value::Object(fields) => fields.values().any(has_large),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The arguments with whole numbers as integers: to JSON Schema `3.0` is one, and a tool may read it as one only.
pub(crate) fn with_integers(arguments: Map<String, Value>) -> Map<String, Value> {
    fn integer(value: Value) -> Value {
        match value {
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
                Some(of) if of.fract() == 0.0 && of.abs() < EXACT as f64 => json!(of as i64),
                Some(_) | None => Value::Number(number),
            },
            Value::Array(values) => values.into_iter().map(integer).collect(),
            Value::Object(fields) => Value::Object(with_integers(fields)),
            other => other,
        }
    }
    arguments
        .into_iter()
        .map(|(name, value)| (name, integer(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(record: Value) -> ToolFinished {
        serde_json::from_value(record).unwrap()
    }

    fn result(outcome: Value, data: Option<Value>) -> Value {
        let mut record = json!({ "call": "c00000001", "ms": 1, "outcome": outcome });
        if let Some(data) = data {
            record["data"] = json!({ "value": data });
        }
        of_call(&finished(record), false)
    }

    #[test]
    fn every_result_has_text_and_only_objects_are_structured() {
        let ok =
            |content: &str| json!({ "status": "ok", "summary": "2 lines", "content": content });
        let text = |words: &str| json!({ "type": "text", "text": words });
        for (outcome, data, expected) in [
            (
                ok("a\nb"),
                None,
                json!({ "content": [text("a\nb")], "isError": false }),
            ),
            (
                ok(""),
                None,
                json!({ "content": [text("2 lines")], "isError": false }),
            ),
            (
                json!({ "status": "ok", "summary": "" }),
                None,
                json!({ "content": [text("(nothing)")], "isError": false }),
            ),
            (
                json!({ "status": "refused", "summary": "a rule denies it", "content": "help" }),
                None,
                json!({ "content": [text("a rule denies it\nhelp")], "isError": true }),
            ),
            (
                ok("a"),
                Some(json!({ "n": 1, "m": null })),
                json!({ "content": [text("a")], "structuredContent": { "n": 1, "m": null }, "isError": false }),
            ),
            (
                ok("a"),
                Some(json!([1])),
                json!({ "content": [text("a")], "isError": false }),
            ),
            (
                ok("a"),
                Some(json!({ "n": [u64::MAX] })),
                json!({ "content": [text("a"), text("{\"n\":[18446744073709551615]}")], "structuredContent": { "n": [u64::MAX] }, "isError": false }),
            ),
        ] {
            assert_eq!(result(outcome, data), expected);
        }
    }

    #[test]
    fn whole_numbers_are_integers_and_texts_stay_texts() {
        let given = json!({ "a": 3.0, "b": [-2.0, 0.5, 1e300], "c": { "d": 1e2 }, "e": "3.0", "f": 9007199254740993_i64 });
        let Value::Object(given) = given else {
            panic!("an object")
        };
        let integers = json!({ "a": 3, "b": [-2, 0.5, 1e300], "c": { "d": 100 }, "e": "3.0", "f": 9007199254740993_i64 });
        assert_eq!(Value::Object(with_integers(given)), integers);
    }
}
