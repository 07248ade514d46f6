//! Parsing vendors' error responses in their different formats. Does not decide what to do about them.

use authority::text::escape_line;
use serde_json::Value;
use std::time::Duration;

/// The most characters of a provider's message that are kept.
const MAX_WORDS: usize = 600;

/// Words by which providers name what has an HTTP status, in lower case.
const STATUSES: [(&str, u16); 21] = [
    ("invalid_request_error", 400),
    ("invalid_argument", 400),
    ("badrequesterror", 400),
    ("bad_request", 400),
    ("invalidparameter", 400),
    ("validationexception", 400),
    ("authentication_error", 401),
    ("authenticationerror", 401),
    ("unauthenticated", 401),
    ("invalidapikey", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("permission_denied", 403),
    ("permissiondeniederror", 403),
    ("not_found_error", 404),
    ("notfounderror", 404),
    ("model_not_found", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// What an error says that has neither a status nor a label, in lower case.
const WORDS: [(&str, u16); 11] = [
    ("not found", 404),
    ("does not exist", 404),
    ("unauthorized", 401),
    ("not authenticated", 401),
    ("api key", 401),
    ("authentication", 401),
    ("forbidden", 403),
    ("permission denied", 403),
    ("invalid request", 400),
    ("bad request", 400),
    ("field required", 422),
];

/// MiniMax's numbers, in `base_resp`.
const MINIMAX: [(u64, u16); 7] = [
    (1002, 429),
    (1004, 401),
    (1008, 402),
    (1026, 400),
    (1027, 400),
    (2013, 400),
    (2049, 401),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VendorError {
    /// The message as received, of any length.
    pub(crate) message: String,
    /// `code`, `type` and `status`, in lower case, except HTTP statuses.
    pub(crate) labels: Vec<String>,
    /// The HTTP status that a number or a label stands for.
    pub(crate) status: Option<u16>,
    /// The wait that the body asks for (Google's `retryDelay`).
    pub(crate) wait: Option<Duration>,
}

impl VendorError {
    pub(crate) fn saying(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            labels: Vec::new(),
            status: None,
            wait: None,
        }
    }

    /// The error that a stop reason for a full context is.
    pub(crate) fn full_context(reason: &str) -> Self {
        let labels = vec!["context_length_exceeded".to_owned()];
        Self {
            labels,
            ..Self::saying(&format!(
                "the model's context is full (stop reason {})",
                one_line(reason)
            ))
        }
    }

    /// The value of an `error` key; `None` for null and empty values.
    pub(crate) fn read(error: &Value) -> Option<Self> {
        let object = match error {
            Value::String(text) if !text.is_empty() => return Some(Self::saying(text)),
            Value::Object(object) if !object.is_empty() => object,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                return None;
            }
        };
        let text = |key: &&str| {
            object
                .get(*key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let said = [
            "message",
            "msg",
            "error_message",
            "error_msg",
            "Message",
            "status_msg",
            "detail",
            "error",
            "error_description",
            "reason",
        ];
        let message = said
            .iter()
            .find_map(text)
            .map_or_else(|| error.to_string(), str::to_owned);
        // OpenRouter's own message is "Provider returned error"; the provider's message is nested in it.
        let below = object
            .get("metadata")
            .and_then(|metadata| metadata.get("raw"))
            .and_then(Value::as_str);
        let message = below.map_or_else(|| message.clone(), |raw| format!("{message}: {raw}"));
        let number = |key: &&str| {
            object
                .get(*key)
                .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
        };
        let codes = [
            "code",
            "status_code",
            "error_code",
            "status",
            "error_type",
            "type",
            "__type",
        ];
        let status = codes.iter().filter_map(number).find_map(|code| {
            u16::try_from(code)
                .ok()
                .filter(|code| (400..600).contains(code))
        });
        let label = |key: &&str| {
            object
                .get(*key)
                .filter(|code| code.is_string() || code.is_number())
        };
        let labels = codes
            .iter()
            .filter_map(label)
            .map(|code| code.to_string().trim_matches('"').to_lowercase());
        let labels: Vec<String> = labels.collect();
        let named = || {
            STATUSES
                .iter()
                .find(|(word, _)| labels.iter().any(|label| label == word))
                .map(|(_, status)| *status)
        };
        let status = status.or_else(named);
        Some(Self {
            message,
            labels,
            status,
            wait: object.get("details").and_then(retry_delay),
        })
    }

    /// The error that a document without an answer is, in any of the forms that servers send, with any status.
    pub(crate) fn in_document(value: &Value) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        let outer = Self::read(value)?;
        let has = |key: &str| value.get(key).is_some_and(|value| !value.is_null());
        let nested = value
            .get("error")
            .or_else(|| value.get("errors")?.get(0))
            .and_then(Self::read);
        if let Some(inner) = nested {
            return Some(Self {
                status: inner.status.or(outer.status),
                ..inner
            });
        }
        if let Some(answer) = value.get("base_resp") {
            let code = answer
                .get("status_code")
                .and_then(Value::as_u64)
                .filter(|code| *code != 0)?;
            let status = MINIMAX
                .iter()
                .find(|(number, _)| *number == code)
                .map(|(_, status)| *status);
            return Some(Self {
                status,
                ..Self::read(answer)?
            });
        }
        let code = value
            .get("code")
            .or_else(|| value.get("status").filter(|status| status.is_number()));
        let has_failed = code.is_some_and(|code| {
            let text = code
                .as_str()
                .map_or_else(|| code.to_string(), str::to_lowercase);
            !matches!(text.as_str(), "0" | "200" | "ok" | "success" | "null" | "")
        });
        let says = (has("message") || has("msg")) && has_failed;
        let kind = ["object", "type"].iter().any(|key| {
            value
                .get(key)
                .and_then(Value::as_str)
                .is_some_and(|kind| kind.ends_with("error"))
        });
        let is = |key: &str, other: Value| value.get(key) == Some(&other);
        let fails = says
            || kind
            || ["detail", "error_message", "error_msg", "__type", "Message"]
                .into_iter()
                .any(has)
            || is("success", false.into())
            || is("status", "error".into())
            || (has("msg") && has("ret") && !is("ret", 0.into()));
        let detail = value
            .get("detail")
            .filter(|detail| !detail.is_string() && !detail.is_null());
        let message = detail.map_or_else(|| outer.message.clone(), Value::to_string);
        fails.then_some(Self { message, ..outer })
    }

    /// The HTTP status that its words stand for, where it came in place of an answer.
    pub(crate) fn status_of_words(&self) -> Option<u16> {
        let words = self.message.to_lowercase();
        let said = || {
            WORDS
                .iter()
                .find(|(some, _)| words.contains(some))
                .map(|(_, status)| *status)
        };
        self.status.or_else(said)
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
        Self::in_document(value)
            .or_else(|| Self::read(value))
            .unwrap_or_else(|| Self::saying(&text))
    }

    pub(crate) fn labelled(&self, any: &[&str]) -> bool {
        self.labels
            .iter()
            .any(|label| any.contains(&label.as_str()))
    }
}

fn retry_delay(details: &Value) -> Option<Duration> {
    let text = details
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
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
