//! What a call gave, as the model reads it: text as it is, and a line for what is no text. Nothing is lost because one part
//! of a result is odd.

use crate::elicit::Elicited;
use authority::text::{Lines, escape_within};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use llm_worker::tool::data;
use llm_worker::{Attachment, ErrorKind, ToolError, ToolOutput, ToolResult};
use pod::schema::Schema;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::{self, Write};
use std::time::Duration;

/// The longest name, address or type in a line, in bytes.
pub(crate) const MAX_QUOTE: usize = 256;

/// Most parts of a result that are shown.
const MAX_BLOCKS: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(default)]
    content: Option<Blocks>,
    #[serde(default, borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    result_type: Option<String>,
}

/// The parts of a result: the first ones, and how many more there are.
#[derive(Default)]
struct Blocks {
    first: Vec<Value>,
    more: usize,
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(BlocksVisitor)
    }
}

struct BlocksVisitor;

impl<'de> Visitor<'de> for BlocksVisitor {
    type Value = Blocks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Blocks, A::Error> {
        let mut blocks = Blocks::default();
        while blocks.first.len() < MAX_BLOCKS {
            match list.next_element()? {
                Some(block) => blocks.first.push(block),
                None => return Ok(blocks),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            blocks.more += 1;
        }
        Ok(blocks)
    }
}

/// What a server asks a person before it goes on, if that is what it answered.
pub(crate) fn input_required(result: &RawValue) -> Option<Result<Elicited, String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        result_type: String,
    }
    let kind: Kind = serde_json::from_str(result.get()).ok()?;
    (kind.result_type == "input_required").then(|| Elicited::of(result.get()))
}

/// Puts an image of a result beside its text, for a model that sees.
pub(crate) type Show<'a> = &'a dyn Fn(&[u8]) -> Result<Attachment, ToolError>;

/// What a result says, and in what it does not fit the schema that was pinned.
pub(crate) fn outcome(
    result: &RawValue,
    schema: Option<&Value>,
    took: Duration,
    show: Show<'_>,
) -> (ToolResult, Option<String>) {
    let Ok(result) = serde_json::from_str::<CallResult<'_>>(result.get()) else {
        let why = "the server answered this call with something that is no result; what the call did is not known";
        let error = ToolError {
            content: result.get().to_owned(),
            ..ToolError::new(ErrorKind::Bug, why)
        };
        return (Err(error), None);
    };
    if let Some(kind) = result.result_type.filter(|kind| kind != "complete") {
        let why = format!(
            "the server answered with `{}`, which yoi does not speak",
            line(&kind)
        );
        return (Err(ToolError::new(ErrorKind::Unavailable, why)), None);
    }
    let data = result
        .structured_content
        .filter(|data| data.get() != "null");
    let warning = match (data, schema) {
        (Some(data), Some(schema)) if !result.is_error => mismatch(data, schema),
        _ => None,
    };
    let mut text = String::new();
    let Blocks { first, more } = result.content.unwrap_or_default();
    for block in &first {
        push(&mut text, block, show);
    }
    if more > 0 {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        write!(text, "{end}[{more} more parts are not shown]").ok();
    }
    if text.trim().is_empty()
        && let Some(data) = data
    {
        data.get().clone_into(&mut text);
    }
    let given = match (result.is_error, text.is_empty()) {
        (true, _) => Err(ToolError {
            content: text,
            ..ToolError::new(ErrorKind::FixInput, "the tool reported an error")
        }),
        (false, true) => Ok(ToolOutput {
            summary: "the server returned an empty result".to_owned(),
            ..ToolOutput::default()
        }),
        (false, false) => Ok(ToolOutput {
            summary: format!("answered in {:.1} s", took.as_secs_f64()),
            content: text,
            data: data.and_then(exact),
        }),
    };
    (given, warning)
}

/// The value for programs, where it keeps all of its digits and fits.
fn exact(data: &RawValue) -> Option<Value> {
    fn is_exact(value: &Value) -> bool {
        match value {
            // An integer that is larger became such a number.
            Value::Number(number) => {
                !number.is_f64() || number.as_f64().is_some_and(|of| of.abs() < 9e15)
            }
            Value::Array(values) => values.iter().all(is_exact),
            Value::Object(fields) => fields.values().all(is_exact),
            Value::Null | Value::Bool(_) | Value::String(_) => true,
        }
    }
    let value: Value = serde_json::from_str(data.get()).ok()?;
    (is_exact(&value) && data::bytes(&value).is_ok()).then_some(value)
}

/// For a text that has no files beside it.
pub(crate) fn no_files(_: &[u8]) -> Result<Attachment, ToolError> {
    let why = "a command shows no files";
    Err(ToolError::new(ErrorKind::Unavailable, why))
}

/// Adds a block of a result.
pub(crate) fn push(text: &mut String, block: &Value, show: Show<'_>) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let of = |key: &str| block.get(key).and_then(Value::as_str);
    let quoted = |key: &str| line(of(key).unwrap_or("unknown"));
    // Writing to a String cannot fail.
    match (of("type"), of("text")) {
        (Some("text"), Some(words)) => text.push_str(words),
        (Some("image"), _) => {
            let shown = match STANDARD.decode(of("data").unwrap_or_default()) {
                Ok(bytes) => show(&bytes).map_err(|error| error.message),
                Err(_) => Err("its data is not base64".to_owned()),
            };
            match shown {
                Ok(file) => write!(text, "[image, {}]", file.about()).ok(),
                Err(why) => write!(
                    text,
                    "[image, {}, {} bytes, is not shown: {}]",
                    quoted("mimeType"),
                    of("data").map_or(0, decoded),
                    line(&why)
                )
                .ok(),
            };
        }
        (Some("audio"), _) => {
            let bytes = of("data").map_or(0, decoded);
            write!(
                text,
                "[audio, {}, {bytes} bytes, is not shown]",
                quoted("mimeType")
            )
            .ok();
        }
        (Some("resource_link"), _) => {
            write!(text, "[resource {}: {}]", quoted("uri"), quoted("name")).ok();
        }
        (Some("resource"), _) => push_resource(text, block.get("resource").unwrap_or(&Value::Null)),
        (kind, _) => {
            write!(
                text,
                "[content of the type `{}`, which yoi does not know]",
                line(kind.unwrap_or("none"))
            )
            .ok();
        }
    }
}

/// Adds the content of a resource.
pub(crate) fn push_resource(text: &mut String, resource: &Value) {
    let of = |key: &str| resource.get(key).and_then(Value::as_str);
    let uri = line(of("uri").unwrap_or("unknown"));
    match (of("text"), of("blob")) {
        (Some(words), _) => write!(text, "[resource {uri}]\n{words}").ok(),
        (None, Some(blob)) => {
            let kind = line(of("mimeType").unwrap_or("unknown"));
            let bytes = decoded(blob);
            write!(
                text,
                "[resource {uri}, {kind}, {bytes} bytes, is not shown]"
            )
            .ok()
        }
        (None, None) => write!(text, "[resource {uri}, without content]").ok(),
    };
}

/// How many bytes a text in base 64 has.
fn decoded(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// A text of a server in a line.
pub(crate) fn line(text: &str) -> String {
    escape_within(text, Lines::One, MAX_QUOTE)
}

fn mismatch(data: &RawValue, schema: &Value) -> Option<String> {
    let value: Value = serde_json::from_str(data.get()).ok()?;
    let schema = Schema::compile(schema.clone()).ok()?;
    let problems = schema.check(&value).err()?;
    let problem = line(&problems.join("; "));
    Some(format!(
        "the result does not fit the schema that its server gave for it: {problem}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_parts_become_a_count() {
        let ones = vec!["1"; 100_000].join(",");
        let result = RawValue::from_string(format!(r#"{{"content":[{ones}]}}"#)).unwrap();
        let refused = |_: &[u8]| Err(ToolError::new(ErrorKind::FixInput, "no image"));
        let (given, _) = outcome(&result, None, Duration::ZERO, &refused);
        let text = given.unwrap().content;
        assert_eq!(text.lines().count(), MAX_BLOCKS + 1);
        assert!(text.ends_with("\n[99000 more parts are not shown]"));
    }
}
