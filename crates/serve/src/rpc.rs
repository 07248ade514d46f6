//! Messages of JSON-RPC 2.0 as a server reads and writes them. Ids go back as they came.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The longest id of a request, in bytes.
const MAX_ID: usize = 256;

pub(crate) const PARSE: i64 = -32700;
pub(crate) const INVALID: i64 = -32600;
pub(crate) const NO_METHOD: i64 = -32601;
pub(crate) const PARAMS: i64 = -32602;
pub(crate) const INTERNAL: i64 = -32603;

/// An error, with what stands beside it.
#[derive(Debug)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Box<RawValue>,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Request),
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
    /// An answer to what a server asked: this one asks for nothing.
    Answer,
    /// No message; the line that says so.
    Wrong(String),
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    #[serde(default)]
    jsonrpc: Option<String>,
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

/// `null` is an id that is there, and no valid one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// Reads one message.
pub(crate) fn read(text: &[u8]) -> Incoming {
    let wrong = |id, code, why: &str| Incoming::Wrong(error_line(id, &RpcError::new(code, why)));
    if serde_json::from_slice::<&RawValue>(text).is_err() {
        return wrong(None, PARSE, "this is not JSON");
    }
    let Ok(line) = serde_json::from_slice::<Line>(text) else {
        return wrong(None, INVALID, "this is not a message of JSON-RPC");
    };
    let id = line.id;
    if let Some(id) = id.as_deref()
        && !is_id(id)
    {
        return wrong(None, INVALID, "an id is a text or a whole number");
    }
    let Some(method) = line.method else {
        return match id {
            Some(_) => Incoming::Answer,
            None => wrong(None, INVALID, "there is no method"),
        };
    };
    if line.jsonrpc.as_deref() != Some("2.0") {
        return wrong(id.as_deref(), INVALID, "`jsonrpc` is not \"2.0\"");
    }
    let params = line.params;
    match id {
        Some(id) => Incoming::Request(Request { id, method, params }),
        None => Incoming::Notification { method, params },
    }
}

/// Whether this is a text or a whole number, and short.
pub(crate) fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_ID && (text.starts_with('"') || is_number)
}

/// The line of an answer.
pub(crate) fn result_line(id: &RawValue, result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Answer<'a, R> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a R,
    }
    let answer = Answer {
        jsonrpc: "2.0",
        id,
        result,
    };
    serde_json::to_string(&answer).unwrap_or_else(|why| {
        let error = RpcError::new(INTERNAL, format!("the answer cannot be written: {why}"));
        error_line(Some(id), &error)
    })
}

/// The line of an error; without an id it is about no request that could be read.
pub(crate) fn error_line(id: Option<&RawValue>, error: &RpcError) -> String {
    #[derive(Serialize)]
    struct Failure<'a> {
        jsonrpc: &'static str,
        id: Option<&'a RawValue>,
        error: Body<'a>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        code: i64,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    }
    let failure = Failure {
        jsonrpc: "2.0",
        id,
        error: Body {
            code: error.code,
            message: &error.message,
            data: error.data.as_ref(),
        },
    };
    serde_json::to_string(&failure).unwrap_or_default()
}

/// The line of a notification.
pub(crate) fn notification_line(method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    let notification = Notification {
        jsonrpc: "2.0",
        method,
        params,
    };
    serde_json::to_string(&notification).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match read(text.as_bytes()) {
            Incoming::Request(request) => format!("request {}", request.id.get()),
            Incoming::Notification { method, .. } => format!("notification {method}"),
            Incoming::Answer => "answer".to_owned(),
            Incoming::Wrong(line) => {
                let line: Value = serde_json::from_str(&line).unwrap();
                format!("{} {}", line["error"]["code"], line["id"])
            }
        }
    }

    #[test]
    fn each_message_is_what_it_is_and_ids_keep_their_form() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
            "x".repeat(300)
        );
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "request 7"),
            (
                r#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#,
                r#"request "7""#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":-0,"method":"ping","later":1}"#,
                "request -0",
            ),
            (
                r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}"#,
                "request 123456789012345678901234567890",
            ),
            (r#"{"jsonrpc":"2.0","method":"x"}"#, "notification x"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "answer"),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                "-32600 null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                "-32600 null",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                "-32600 null",
            ),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, "-32600 3"),
            (r#"{"id":3,"method":"ping"}"#, "-32600 3"),
            (r#"{"jsonrpc":"2.0"}"#, "-32600 null"),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                "-32600 null",
            ),
            ("null", "-32600 null"),
            ("{", "-32700 null"),
            ("", "-32700 null"),
            (&long, "-32600 null"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_deep_is_no_message_and_breaks_nothing() {
        let deep = "[".repeat(100_000);
        assert_eq!(kind(&deep), "-32700 null");
    }
}
