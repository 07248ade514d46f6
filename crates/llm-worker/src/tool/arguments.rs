//! Parsing a model's raw argument text strictly: nothing is guessed. A number that is whole is an integer, however it is
//! written.

use super::ArgumentError;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The longest text of one problem: parsers quote the values they refuse.
const PROBLEM_MAX: usize = 240;

/// The most digits of an integer that is written with a point or an exponent.
const MAX_DIGITS: usize = 64;

/// Parses arguments and writes them back in canonical form, with defaults filled in, so that the arguments that are
/// judged and shown are those that run. Of what is read as it was written, integers have all of their digits. Unknown
/// fields inside internally tagged or untagged enums are seen by `deny_unknown_fields` only.
///
/// # Errors
/// Not JSON, more than one value, not an object, a key twice, an unknown field, a missing one, a wrong type. Names at
/// most [`ArgumentError::MAX_PROBLEMS`] places as JSON pointers.
pub fn parse_arguments<A: DeserializeOwned + Serialize>(
    tool: &str,
    raw: &str,
) -> Result<(A, Arc<str>), ArgumentError> {
    let mut problems = Problems::default();
    check_shape(raw, &mut problems);
    if !problems.0.is_empty() {
        return Err(problems.of(tool));
    }
    let raw = canonical(raw).unwrap_or_else(|_not_json| raw.to_owned());
    let mut track = serde_path_to_error::Track::new();
    let mut source = serde_json::Deserializer::from_str(&raw);
    let tracked = serde_path_to_error::Deserializer::new(&mut source, &mut track);
    let parsed = serde_ignored::deserialize(tracked, |path| {
        let at_top = matches!(
            path,
            serde_ignored::Path::Map {
                parent: serde_ignored::Path::Root,
                ..
            }
        );
        problems.unknown(
            &ignored_pointer(&path),
            if at_top { known_fields::<A>() } else { &[] },
        );
    });
    let arguments: A = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            problems.add(&tracked_pointer(&track.path()), &without_position(&error));
            return Err(problems.of(tool));
        }
    };
    let mut text = String::new();
    match serde_json::to_value(&arguments) {
        Ok(mut value) => {
            // Sorted here, because `serde_json` may be built with another map type.
            value.sort_all_objects();
            let given: Value = serde_json::from_str(&raw).unwrap_or_default();
            check_objects(&given, &value, &mut String::new(), &mut problems);
            text = if given == value {
                raw
            } else {
                value.to_string()
            };
        }
        Err(error) => problems.add("", &format!("cannot be written back: {error}")),
    }
    if problems.0.is_empty() {
        Ok((arguments, text.into()))
    } else {
        Err(problems.of(tool))
    }
}

/// JSON with sorted keys, without spaces, and with numbers as [`number`] has them.
fn canonical(raw: &str) -> serde_json::Result<String> {
    let text = serde_json::from_str::<&RawValue>(raw)?.get();
    Ok(match text.bytes().next() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            let field = |(name, value): (&String, &&RawValue)| {
                Ok(format!(
                    "{}:{}",
                    serde_json::to_string(name)?,
                    canonical(value.get())?
                ))
            };
            format!(
                "{{{}}}",
                fields
                    .iter()
                    .map(field)
                    .collect::<serde_json::Result<Vec<_>>>()?
                    .join(",")
            )
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(text)?;
            let values = values.iter().map(|value| canonical(value.get()));
            format!(
                "[{}]",
                values.collect::<serde_json::Result<Vec<_>>>()?.join(",")
            )
        }
        Some(b'-' | b'0'..=b'9') => number(text)?,
        _ => serde_json::from_str::<Value>(text)?.to_string(),
    })
}

/// A number: the digits of an integer, `3` for `3.0` and `1000` for `1e3`, and `0` for `-0`; a fraction as it reads.
fn number(text: &str) -> serde_json::Result<String> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    let behind = (all.len() - all.trim_end_matches('0').len()) as i64 - fraction.len() as i64;
    let zeros = exponent
        .parse::<i64>()
        .ok()
        .and_then(|exponent| exponent.checked_add(behind));
    let zeros = zeros.and_then(|zeros| usize::try_from(zeros).ok());
    let sign = if text.starts_with('-') { "-" } else { "" };
    match zeros {
        _ if digits.is_empty() => Ok("0".to_owned()),
        _ if mantissa == text && fraction.is_empty() => Ok(text.to_owned()),
        Some(zeros) if zeros + digits.len() <= MAX_DIGITS => {
            Ok(format!("{sign}{digits}{}", "0".repeat(zeros)))
        }
        _ => Ok(serde_json::from_str::<Value>(text)?.to_string()),
    }
}

/// Refuses an array instead of a struct, which serde reads as the fields in order.
fn check_objects(given: &Value, read: &Value, pointer: &mut String, problems: &mut Problems) {
    let mut inside = |key: &str, given: &Value, read: &Value| {
        let here = pointer.len();
        push_pointer(pointer, key);
        check_objects(given, read, pointer, problems);
        pointer.truncate(here);
    };
    if let (Value::Array(given), Value::Array(read)) = (given, read) {
        for (index, (given, read)) in given.iter().zip(read).enumerate() {
            inside(&index.to_string(), given, read);
        }
    } else if let (Value::Object(given), Value::Object(read)) = (given, read) {
        for (key, given) in given {
            read.get(key)
                .into_iter()
                .for_each(|read| inside(key, given, read));
        }
    } else if given.is_array() && read.is_object() {
        problems.add(pointer, "expected an object, found an array");
    }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, pointer: &str, what: &str) {
        if self.0.len() < ArgumentError::MAX_PROBLEMS {
            let mut text = if pointer.is_empty() {
                what.to_owned()
            } else {
                format!("{pointer}: {what}")
            };
            if text.len() > PROBLEM_MAX {
                text.truncate(text.floor_char_boundary(PROBLEM_MAX));
                text.push('…');
            }
            self.0.push(text);
        }
    }

    fn unknown(&mut self, pointer: &str, known: &[&str]) {
        let expected = if known.is_empty() {
            String::new()
        } else {
            format!("; expected {}", known.join(", "))
        };
        self.add(pointer, &format!("unknown field{expected}"));
    }

    fn of(self, tool: &str) -> ArgumentError {
        ArgumentError {
            tool: tool.to_owned(),
            problems: self.0,
        }
    }
}

/// Whether this is one JSON object without a key twice.
pub(crate) fn is_one_object(raw: &str) -> bool {
    let mut problems = Problems::default();
    check_shape(raw, &mut problems);
    problems.0.is_empty()
}

/// Checks what serde accepts and this crate does not: more than one JSON object, and duplicate keys at any depth.
fn check_shape(raw: &str, problems: &mut Problems) {
    let mut source = serde_json::Deserializer::from_str(raw);
    let mut duplicates = Vec::new();
    let mut pointer = String::new();
    let walked = Shape {
        pointer: &mut pointer,
        duplicates: &mut duplicates,
    }
    .deserialize(&mut source);
    match walked.and_then(|found| source.end().map(|()| found)) {
        Err(error) if error.is_eof() => problems.add(
            "",
            &format!("expected a JSON object, but the text is cut off: {error}"),
        ),
        Err(error) => problems.add(
            "",
            &format!("expected a JSON object, but this is not JSON: {error}"),
        ),
        Ok("an object") => duplicates
            .iter()
            .for_each(|place| problems.add(place, "the key occurs twice")),
        Ok(other) => problems.add("", &format!("expected an object, found {other}")),
    }
}

/// Visits a value and records duplicate keys; returns the kind of the value.
struct Shape<'a> {
    pointer: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl Shape<'_> {
    /// Runs `next` one level deeper, below `key`.
    fn inside<T>(&mut self, key: &str, next: impl FnOnce(Shape<'_>) -> T) -> T {
        let here = self.pointer.len();
        push_pointer(self.pointer, key);
        let done = next(Shape {
            pointer: self.pointer,
            duplicates: self.duplicates,
        });
        self.pointer.truncate(here);
        done
    }
}

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            self.inside(&key, |shape| {
                if keys.contains(&key) && shape.duplicates.len() < ArgumentError::MAX_PROBLEMS {
                    shape.duplicates.push(shape.pointer.clone());
                }
                map.next_value_seed(shape)
            })?;
            keys.insert(key);
        }
        Ok("an object")
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut index = 0_usize;
        while self
            .inside(&index.to_string(), |shape| list.next_element_seed(shape))?
            .is_some()
        {
            index += 1;
        }
        Ok("an array")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok("a boolean")
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok("a string")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok("null")
    }
}

fn push_pointer(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

fn tracked_pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => push_pointer(&mut pointer, &index.to_string()),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                push_pointer(&mut pointer, key)
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

fn ignored_pointer(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    let below = |parent: &Path<'_>, key: &str| {
        let mut pointer = ignored_pointer(parent);
        push_pointer(&mut pointer, key);
        pointer
    };
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => below(parent, &index.to_string()),
        Path::Map { parent, key } => below(parent, key),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => ignored_pointer(parent),
    }
}

/// The parser's message without line and column; the pointer names the place.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}

/// The field names of a struct, from its `Deserialize`; empty for other types.
fn known_fields<A: DeserializeOwned>() -> &'static [&'static str] {
    match A::deserialize(Probe) {
        Err(Announced(fields)) => fields,
        Ok(_) => &[],
    }
}

/// A deserializer that fails with the field names of the struct that is requested.
struct Probe;

#[derive(Debug)]
struct Announced(&'static [&'static str]);

impl fmt::Display for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a probe holds no value")
    }
}

impl std::error::Error for Announced {}

impl de::Error for Announced {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Probe {
    type Error = Announced;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Announced> {
        Err(Announced(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Announced> {
        Err(Announced(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
