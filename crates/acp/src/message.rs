//! JSON-RPC 2.0: what a line is, and answers. Knows no method.

use crate::pods::PodRefusal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The line is no JSON, or too long to be read.
pub(crate) const PARSE: i32 = -32700;
/// The line is no message, or comes at the wrong time.
pub(crate) const REQUEST: i32 = -32600;
/// There is no such method.
pub(crate) const METHOD: i32 = -32601;
/// The parameters do not fit the method.
pub(crate) const PARAMS: i32 = -32602;
/// It was not done.
pub(crate) const FAILED: i32 = -32603;
/// There is no such session.
pub(crate) const UNKNOWN: i32 = -32002;

/// The number of a request as its client wrote it: it is given back byte for byte.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Id(Box<RawValue>);

impl Id {
    fn of(raw: Box<RawValue>) -> Option<Self> {
        let fits = match serde_json::from_str(raw.get()).ok()? {
            Value::String(_) | Value::Null => true,
            Value::Number(number) => !number.is_f64(),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        };
        fits.then_some(Self(raw))
    }

    /// The number, if this agent could have given it.
    pub(crate) fn number(&self) -> Option<u64> {
        self.0.get().parse().ok()
    }
}

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// To a request of this agent; none for an error.
    Answer {
        id: Id,
        result: Option<Params>,
    },
}

/// The parameters of a method, not read yet.
#[derive(Debug)]
pub(crate) struct Params(Option<Box<RawValue>>);

impl Params {
    /// Reads them.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let text = self.0.as_ref().map_or("{}", |raw| raw.get());
        serde_json::from_str(text).map_err(|error| RpcError {
            code: PARAMS,
            message: format!("the parameters do not fit: {error}"),
            data: None,
        })
    }
}

/// A line that is no message, with the number to answer, if it has one.
#[derive(Debug)]
pub(crate) struct BadLine {
    pub(crate) id: Option<Id>,
    pub(crate) error: RpcError,
}

/// An error as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    /// Says what failed, and what to do.
    pub(crate) fn new(code: i32, message: impl Into<String>, help: &str) -> Self {
        Self::of(code, PodRefusal::new(message, Some(help.to_owned())))
    }

    /// Editors show the message alone, so the next step stands in it, too.
    fn of(code: i32, refusal: PodRefusal) -> Self {
        let PodRefusal { message, help, .. } = refusal;
        match help {
            Some(help) => Self {
                code,
                message: format!("{message}; {help}"),
                data: Some(json!({ "help": help })),
            },
            None => Self {
                code,
                message,
                data: None,
            },
        }
    }
}

impl From<PodRefusal> for RpcError {
    fn from(refusal: PodRefusal) -> Self {
        let code = if refusal.is_unknown { UNKNOWN } else { FAILED };
        Self::of(code, refusal)
    }
}

impl Incoming {
    /// Reads a line.
    pub(crate) fn read(line: &[u8]) -> Result<Self, BadLine> {
        let bad = |id: Option<Id>, code, message: &str, help: &str| BadLine {
            id,
            error: RpcError::new(code, message, help),
        };
        let one = "send one JSON-RPC 2.0 message a line";
        if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
            return Err(bad(None, PARSE, "the line is not JSON", one));
        }
        let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_slice(line);
        let mut fields =
            fields.map_err(|_| bad(None, REQUEST, "the line is not an object", one))?;
        let id = fields.remove("id").map(|raw| Id::of(raw).ok_or(()));
        let Ok(id) = id.transpose() else {
            let help = "use a string or an integer";
            return Err(bad(None, REQUEST, "the id does not fit", help));
        };
        let text = |raw: Option<&Box<RawValue>>| {
            serde_json::from_str::<String>(raw.map_or("null", |raw| raw.get())).ok()
        };
        if text(fields.get("jsonrpc")).as_deref() != Some("2.0") {
            return Err(bad(id, REQUEST, "`jsonrpc` is not \"2.0\"", one));
        }
        let params = Params(fields.remove("params").filter(|raw| raw.get() != "null"));
        let has_method = fields.contains_key("method");
        match (text(fields.get("method")), id) {
            (Some(method), Some(id)) => Ok(Self::Request { id, method, params }),
            (Some(method), None) => Ok(Self::Notification { method, params }),
            (None, Some(id)) if !has_method && fields.contains_key("result") => {
                let result = fields.remove("result").map(|raw| Params(Some(raw)));
                Ok(Self::Answer { id, result })
            }
            (None, Some(id)) if !has_method && fields.contains_key("error") => {
                Ok(Self::Answer { id, result: None })
            }
            (None, id) => Err(bad(id, REQUEST, "the line has no method", one)),
        }
    }
}

/// What this agent sends.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Outgoing<'a> {
    /// To a request; a line that is no message may have no number.
    Result {
        id: Option<&'a Id>,
        result: &'a Value,
    },
    Error {
        id: Option<&'a Id>,
        error: &'a RpcError,
    },
    Request {
        id: u64,
        method: &'a str,
        params: &'a Value,
    },
    Notification {
        method: &'a str,
        params: &'a Value,
    },
}

#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    #[serde(flatten)]
    message: &'a Outgoing<'a>,
}

impl Outgoing<'_> {
    /// Its line, with the end.
    pub(crate) fn line(&self) -> Result<String, serde_json::Error> {
        let envelope = Envelope {
            jsonrpc: "2.0",
            message: self,
        };
        let mut line = serde_json::to_string(&envelope)?;
        line.push('\n');
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (i32, String) {
        let BadLine { id, error } = Incoming::read(line.as_bytes()).unwrap_err();
        let answer = Outgoing::Error {
            id: id.as_ref(),
            error: &error,
        };
        let answer: Value = serde_json::from_str(&answer.line().unwrap()).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0");
        (error.code, answer["id"].to_string())
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_number() {
        let null = |code| (code, "null".to_owned());
        for (line, wanted) in [
            ("{", null(PARSE)),
            ("\u{fffd}", null(PARSE)),
            ("[]", null(REQUEST)),
            ("17", null(REQUEST)),
            (r#"{"jsonrpc":"2.0","method":7}"#, null(REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, null(REQUEST)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, null(REQUEST)),
            (r#"{"id":3,"method":"a"}"#, (REQUEST, "3".to_owned())),
            (
                r#"{"jsonrpc":"1.0","id":"x","method":"a"}"#,
                (REQUEST, "\"x\"".to_owned()),
            ),
            (r#"{"jsonrpc":"2.0","id":4}"#, (REQUEST, "4".to_owned())),
        ] {
            assert_eq!(refused(line), wanted, "{line}");
        }
        let bytes = Incoming::read(b"\xff").unwrap_err();
        assert_eq!(bytes.error.code, PARSE);
    }

    #[test]
    fn a_number_is_given_back_as_it_was_written() {
        for id in ["0", "-1", "9007199254740993", r#""a\u0041""#, "null"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":null}}"#);
            let Ok(Incoming::Request {
                id: read, params, ..
            }) = Incoming::read(line.as_bytes())
            else {
                panic!("{line} is a request");
            };
            assert!(params.read::<BTreeMap<String, Value>>().unwrap().is_empty());
            let answer = Outgoing::Result {
                id: Some(&read),
                result: &json!({}),
            };
            let wanted = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
            assert_eq!(answer.line().unwrap(), wanted);
        }
    }

    #[test]
    fn an_answer_has_a_result_or_an_error() {
        let read = |text: &str| Incoming::read(text.as_bytes()).unwrap();
        let done = read(r#"{"jsonrpc":"2.0","id":2,"result":{"a":1}}"#);
        assert!(matches!(done, Incoming::Answer { id, result: Some(_) } if id.number() == Some(2)));
        let failed = read(r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m"}}"#);
        assert!(matches!(failed, Incoming::Answer { result: None, .. }));
        let told = read(r#"{"jsonrpc":"2.0","method":"m"}"#);
        assert!(matches!(told, Incoming::Notification { .. }));
    }
}
