//! The lines between a host and a guest: JSON-RPC 2.0, one message in each.

use authority::MAX_LINE;
use llm_worker::{ErrorKind, ToolError};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// The code of errors that have a kind.
const FAILED: i32 = -32000;
/// The code for a method that is not known.
const NO_METHOD: i32 = -32601;

/// A request to a guest.
#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

pub(super) fn request(id: u64, method: &str, params: impl Serialize) -> Result<Vec<u8>, String> {
    let request = Request {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    serde_json::to_vec(&request).map_err(|error| error.to_string())
}

/// Why the host does not do what a guest asked for.
pub(super) struct Refused {
    pub(super) kind: Option<ErrorKind>,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let kind = Some(kind);
        let message = message.into();
        Self { kind, message }
    }

    pub(super) fn of(error: ToolError) -> Self {
        Self::new(error.kind, error.message)
    }
}

/// The answer to what a guest asked for; that it is too long, where it does not fit into a line.
pub(super) fn answer(id: &Value, answer: Result<Value, Refused>) -> Vec<u8> {
    let line = line(id, answer);
    match line.len() {
        0..=MAX_LINE => line,
        _ => {
            let text = "the answer does not fit into a line of 1 MiB";
            self::line(id, Err(Refused::new(ErrorKind::Exhausted, text)))
        }
    }
}

fn line(id: &Value, answer: Result<Value, Refused>) -> Vec<u8> {
    let line = match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refused { kind, message }) => {
            let error = match kind {
                Some(kind) => {
                    json!({ "code": FAILED, "message": message, "data": { "kind": kind } })
                }
                None => json!({ "code": NO_METHOD, "message": message }),
            };
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    };
    line.to_string().into_bytes()
}

/// A line of a guest.
pub(super) enum FromGuest {
    /// Something is asked of the host; without an id, no answer is.
    Asked {
        id: Option<Value>,
        method: String,
        params: Value,
    },
    /// The result of the request with this id, or its failure.
    Answered {
        id: u64,
        answer: Result<Value, Failure>,
    },
}

/// A failure that a guest answers with.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Failure {
    #[serde(default = "bug")]
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

fn bug() -> ErrorKind {
    ErrorKind::Bug
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "jsonrpc")]
    _version: Version,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    /// `null` is a result.
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
struct RpcError {
    message: String,
    #[serde(default)]
    data: Value,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads a line.
///
/// # Errors
/// It is neither a request nor an answer; the text does not quote it.
pub(super) fn read(line: &[u8]) -> Result<FromGuest, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        let category = error.classify();
        let at = error.column();
        format!("it wrote a line that is not JSON-RPC ({category:?} error in column {at})")
    })?;
    match line {
        Line {
            id,
            method: Some(method),
            params,
            result: None,
            error: None,
            ..
        } => Ok(FromGuest::Asked { id, method, params }),
        Line {
            id: Some(id),
            method: None,
            result,
            error,
            ..
        } if result.is_some() != error.is_some() => {
            let id = id
                .as_u64()
                .ok_or("it answered a request that was not made")?;
            let failure = |RpcError { message, data }| {
                let kind = data
                    .get("kind")
                    .and_then(|kind| ErrorKind::deserialize(kind).ok());
                let kind = kind.unwrap_or(ErrorKind::Bug);
                Failure { kind, message }
            };
            let answer = error.map_or_else(|| Ok(result.unwrap_or_default()), |e| Err(failure(e)));
            Ok(FromGuest::Answered { id, answer })
        }
        _ => Err("it wrote a line that is neither a request nor an answer".to_owned()),
    }
}
