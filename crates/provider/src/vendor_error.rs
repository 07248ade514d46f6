//! Parsing vendors' error responses in their different formats. Does not decide what to do about them.

use authority::text::escape_line;
use serde_json::Value;
use std::time::Duration;

/// The most characters of a provider's message that are kept.
const MAX_WORDS: usize = 600;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VendorError {
    /// The message as received, of any length.
    pub(crate) message: String,
    /// `code`, `type` and `status`, if they are text, in lower case.
    pub(crate) labels: Vec<String>,
    /// A numeric `code`, which gateways fill with an HTTP status.
    pub(crate) status: Option<u16>,
    /// The wait that the body asks for (Google's `retryDelay`).
    pub(crate) wait: Option<Duration>,
}

impl VendorError {
    pub(crate) fn saying(message: &str) -> Self {
        Self { message: message.to_owned(), labels: Vec::new(), status: None, wait: None }
    }

    /// The value of an `error` key; `None` for null and empty values.
    pub(crate) fn read(error: &Value) -> Option<Self> {
        let object = match error {
            Value::String(text) if !text.is_empty() => return Some(Self::saying(text)),
            Value::Object(object) if !object.is_empty() => object,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return None;
            }
        };
        let word = |key: &str| object.get(key).and_then(Value::as_str);
        let message = word("message").or_else(|| word("msg")).map_or_else(|| error.to_string(), str::to_owned);
        // OpenRouter's own message is "Provider returned error"; the provider's message is nested in it.
        let below = object.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str);
        let message = below.map_or_else(|| message.clone(), |raw| format!("{message}: {raw}"));
        let labels = ["code", "type", "status"].into_iter().filter_map(word).map(str::to_lowercase).collect();
        let number = object.get("code").and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        let status = number.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        Some(Self { message, labels, status, wait: object.get("details").and_then(retry_delay) })
    }

    /// A whole error body: JSON in one of its wrappings, or plain text.
    pub(crate) fn read_bytes(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            return Self::saying(if text.trim_start().starts_with('<') {
                "an HTML page, not an API answer"
            } else {
                &text
            });
        };
        let value = value.get(0).unwrap_or(&value);
        let detail =
            || value.get("detail").map(|detail| detail.as_str().map_or_else(|| detail.to_string(), str::to_owned));
        let inner = value.get("error").and_then(Self::read);
        inner
            .or_else(|| detail().map(|words| Self::saying(&words)))
            .or_else(|| Self::read(value))
            .unwrap_or_else(|| Self::saying(&text))
    }

    pub(crate) fn labelled(&self, any: &[&str]) -> bool {
        self.labels.iter().any(|label| any.contains(&label.as_str()))
    }
}

fn retry_delay(details: &Value) -> Option<Duration> {
    let text = details.as_array()?.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A provider's message for terminals, records and one-line errors: in one line, without misleading characters, at most
/// [`MAX_WORDS`] characters.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut words = escape_line(&words).into_owned();
    if let Some((at, _)) = words.char_indices().nth(MAX_WORDS) {
        words.truncate(at);
        words.push('…');
    }
    words
}
