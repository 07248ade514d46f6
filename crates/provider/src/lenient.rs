//! Reading a provider's JSON so that a field of another type is a missing field, never a lost answer: values are read one
//! by one. Halves of characters and repeated arguments are put together here. Does not depend on any vendor.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A JSON object. A key that is null is missing; of a key that occurs twice, the last counts.
#[derive(Default)]
pub(crate) struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    /// `None` for other JSON and for no JSON.
    pub(crate) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    /// The JSON text of a value.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        self.0
            .get(key)
            .map(|value| value.get())
            .filter(|text| *text != "null")
    }

    /// An object; an empty one for everything else.
    pub(crate) fn object(&self, key: &str) -> Self {
        self.raw(key).and_then(Self::read).unwrap_or_default()
    }

    /// The objects of a list, or one that stands there without a list.
    pub(crate) fn objects(&self, key: &str) -> Vec<Self> {
        let text = self.raw(key).unwrap_or_default();
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(list) => list
                .into_iter()
                .filter_map(|item| Self::read(item.get()))
                .collect(),
            Err(_) => Self::read(text).into_iter().collect(),
        }
    }

    /// A count: also `12.0` and `"12"`. Unknown for everything else.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let text = self.raw(key)?.trim_matches('"');
        let whole = |float: &f64| (0.0..EXACT).contains(float) && float.fract() == 0.0;
        text.parse()
            .ok()
            .or_else(|| text.parse().ok().filter(whole).map(|float| float as u64))
    }

    /// A word, such as a name or an id: a string, or the JSON text of anything else. Empty if it is missing.
    pub(crate) fn word(&self, key: &str) -> String {
        text_of(self.text_or_json(key))
    }

    /// The text of a string, or of a list of parts with a `text` each; empty for everything else.
    pub(crate) fn text(&self, key: &str) -> Vec<u8> {
        match self.raw(key) {
            Some(text) if text.starts_with('[') => self
                .objects(key)
                .iter()
                .flat_map(|part| part.text("text"))
                .collect(),
            Some(text) => serde_json::from_str(text)
                .map(|Halves(text)| text)
                .unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// The text of a string, or the JSON text of anything else: some servers send arguments as an object.
    pub(crate) fn text_or_json(&self, key: &str) -> Vec<u8> {
        let text = self.raw(key).unwrap_or_default();
        serde_json::from_str(text).map_or_else(|_| text.as_bytes().to_vec(), |Halves(text)| text)
    }
}

/// The text of a document. What some servers write and JSON does not have becomes what it has: numbers that are none are
/// null, and characters of control in strings are escaped.
pub(crate) fn readable(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return text;
    }
    let mut out = String::new();
    let mut rest = &*text;
    let mut is_string = false;
    while let Some(c) = rest.chars().next() {
        let no_number = ["NaN", "Infinity", "-Infinity"]
            .into_iter()
            .find(|word| !is_string && rest.starts_with(word));
        if let Some(word) = no_number {
            out.push_str("null");
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        let length = if is_string && c == '\\' { 2 } else { 1 };
        let taken = rest
            .char_indices()
            .nth(length)
            .map_or(rest.len(), |(at, _)| at);
        match c {
            '\0'..='\x1f' if is_string => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(rest.get(..taken).unwrap_or_default()),
        }
        is_string ^= c == '"';
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// The text of a JSON string in WTF-8: a lone half of a character (a surrogate) stays what it is.
struct Halves(Vec<u8>);

impl<'de> Deserialize<'de> for Halves {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Halves;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<Halves, E> {
                Ok(Halves(text.to_vec()))
            }
        }
        source.deserialize_bytes(Text)
    }
}

/// Text in which pairs of halves are characters and lone halves are U+FFFD.
fn text_of(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let mut units = Vec::new();
    let mut rest = &bytes[..];
    while let Some(at) = rest
        .windows(2)
        .position(|pair| matches!(pair, [0xED, 0xA0..=0xFF]))
    {
        let (plain, half) = rest.split_at(at);
        units.extend(String::from_utf8_lossy(plain).encode_utf16());
        rest = match half {
            [_, high, low, behind @ ..] => {
                units.push(0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F));
                behind
            }
            _incomplete => &[],
        };
    }
    units.extend(String::from_utf8_lossy(rest).encode_utf16());
    String::from_utf16_lossy(&units)
}

/// A text that arrives in pieces. The first half of a character waits for the second.
#[derive(Default)]
pub(crate) struct TextJoiner(Vec<u8>);

impl TextJoiner {
    pub(crate) fn push(&mut self, piece: Vec<u8>) -> String {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.extend(piece);
        if let [.., 0xED, 0xA0..=0xAF, _] = bytes[..] {
            self.0 = bytes.split_off(bytes.len() - 3);
        }
        text_of(bytes)
    }

    /// What still waits.
    pub(crate) fn finish(&mut self) -> String {
        text_of(std::mem::take(&mut self.0))
    }
}

/// The raw arguments of one call: in pieces, or, as some servers send them, whole again at the end or in every piece.
#[derive(Default)]
pub(crate) struct ArgumentText {
    joiner: TextJoiner,
    joined: String,
    /// The last piece alone.
    last: Vec<u8>,
    /// How much of `joined` was told: all of it once it is long.
    told: usize,
}

impl ArgumentText {
    /// Arguments are told when they are complete, or as soon as they are longer than this: the host has a limit.
    const LONG: usize = 128 << 10;

    pub(crate) fn push(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            self.last.clone_from(&piece);
            self.joined.push_str(&self.joiner.push(piece));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// What is to be told before the end.
    pub(crate) fn long_part(&mut self) -> Option<String> {
        let part = self
            .joined
            .get(self.told..)
            .filter(|_| self.joined.len() > Self::LONG)?
            .to_owned();
        self.told = self.joined.len();
        Some(part)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.joined.trim_end().ends_with('}') && is_object(&self.joined)
    }

    /// Whether these are the same arguments again.
    pub(crate) fn is(&self, other: &str) -> bool {
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        self.joined == other
            || value(&self.joined).is_some_and(|joined| value(other) == Some(joined))
    }

    /// The arguments, as far as they were not told. The pieces one after the other, as vendors' own clients read them, if
    /// that gives an object; else the last whole object. Nothing at all is `{}`, except in an answer that was cut.
    pub(crate) fn finish(mut self, is_cut: bool) -> String {
        self.joined.push_str(&self.joiner.finish());
        if self.told > 0 || is_cut || is_object(&self.joined) {
            return self.joined.split_off(self.told.min(self.joined.len()));
        }
        if matches!(self.joined.trim(), "" | "null") {
            return "{}".to_owned();
        }
        let values: Result<Vec<&RawValue>, _> = serde_json::Deserializer::from_str(&self.joined)
            .into_iter()
            .collect();
        let values = values.unwrap_or_default();
        let last = text_of(self.last);
        let last = [last.as_str()]
            .into_iter()
            .chain(values.iter().rev().map(|value| value.get()));
        let objects: Vec<&str> = last.filter(|text| is_object(text)).collect();
        // An empty one behind another says no more than that the arguments are complete.
        let found = objects
            .iter()
            .find(|text| text.len() > 2)
            .or(objects.first());
        found.map_or_else(|| self.joined.clone(), |text| (*text).to_owned())
    }
}

/// Whether a text is one JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text).is_ok()
}
