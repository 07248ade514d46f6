//! Lines of JSON-RPC 2.0: requests of clients, answers and events of a pod.

use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::method::{Ask, Method};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The value of `jsonrpc`.
const JSONRPC: &str = "2.0";

/// A client's line. Its number is the client's; the answer has it, too.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRequest {
    pub id: u64,
    pub method: Method,
}

/// A line that is no request, and the number that the answer gets, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRequest {
    pub id: Option<u64>,
    pub error: Error,
}

#[derive(Serialize)]
struct RequestLine<'a, A> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    params: &'a A,
}

/// Every member of a line, of which a kind of message has some.
#[derive(Deserialize)]
struct AnyLine<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Error>,
}

/// The number of a line that is no request otherwise.
#[derive(Deserialize)]
struct Numbered {
    id: Option<u64>,
}

/// The line of a request, with its newline.
///
/// # Errors
/// A text is no JSON: never for the types of this crate.
pub fn request_line<A: Ask>(id: u64, ask: &A) -> Result<String, serde_json::Error> {
    line(&RequestLine {
        jsonrpc: JSONRPC,
        id,
        method: ask.name(),
        params: ask,
    })
}

impl ClientRequest {
    /// Reads a client's line, without its newline.
    ///
    /// # Errors
    /// It is no request; the error is the answer.
    pub fn read(line: &[u8]) -> Result<Self, BadRequest> {
        let bad = |id, kind, message: String| BadRequest {
            id,
            error: Error::new(kind, message),
        };
        let Ok(text) = std::str::from_utf8(line) else {
            return Err(bad(
                None,
                ErrorKind::Parse,
                "the line is not UTF-8".to_owned(),
            ));
        };
        if text.trim_start().starts_with('[') {
            return Err(bad(
                None,
                ErrorKind::Request,
                "a line must be one request; lists are not supported".to_owned(),
            ));
        }
        let found: AnyLine<'_> = serde_json::from_str(text).map_err(|error| {
            let kind = if error.is_data() {
                ErrorKind::Request
            } else {
                ErrorKind::Parse
            };
            let id = serde_json::from_str::<Numbered>(text)
                .ok()
                .and_then(|line| line.id);
            bad(id, kind, format!("the line is not a request: {error}"))
        })?;
        let AnyLine {
            jsonrpc,
            id,
            method,
            params,
            ..
        } = found;
        let wants = |what: &str| {
            bad(
                id,
                ErrorKind::Request,
                format!("the line is not a request: {what}"),
            )
        };
        if jsonrpc.as_deref() != Some(JSONRPC) {
            return Err(wants("`jsonrpc` must be \"2.0\""));
        }
        let name = method.ok_or_else(|| wants("`method` is missing"))?;
        let number = id.ok_or_else(|| wants("`id` must be a whole number"))?;
        // Parameters in a list would make their order a part of the protocol.
        if params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(bad(
                id,
                ErrorKind::Params,
                format!("the parameters of `{name}` must be an object"),
            ));
        }
        match Method::read(&name, params.map_or("{}", RawValue::get)) {
            Some(Ok(method)) => Ok(Self { id: number, method }),
            Some(Err(error)) => Err(bad(
                id,
                ErrorKind::Params,
                format!("invalid parameters of `{name}`: {error}"),
            )),
            None => {
                let names = Method::NAMES.join(", ");
                Err(bad(
                    id,
                    ErrorKind::Method,
                    format!("there is no method `{name}`; the methods are: {names}"),
                ))
            }
        }
    }
}

/// A pod's line.
#[derive(Clone, Debug)]
pub enum Message {
    /// The answer to the request with this number; without one it is about the connection.
    Answer {
        id: Option<u64>,
        answer: Result<Box<RawValue>, Error>,
    },
    Event(Event),
}

#[derive(Serialize)]
struct AnswerLine<'a, T> {
    jsonrpc: &'a str,
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    jsonrpc: &'a str,
    method: &'a str,
    params: &'a RawValue,
}

/// The line of an answer, with its newline.
///
/// # Errors
/// The result is no JSON: never for the types of this crate.
pub fn answer_line<T: Serialize>(
    id: Option<u64>,
    answer: Result<&T, &Error>,
) -> Result<String, serde_json::Error> {
    let result = answer.ok();
    let error = answer.err();
    line(&AnswerLine {
        jsonrpc: JSONRPC,
        id,
        result,
        error,
    })
}

/// The line of an event, with its newline.
///
/// # Errors
/// The parameters are no JSON: never for the types of this crate.
pub fn event_line(event: &Event) -> Result<String, serde_json::Error> {
    line(&EventLine {
        jsonrpc: JSONRPC,
        method: event.name(),
        params: &event.params()?,
    })
}

/// The line of the event `record`, with its newline: the record's own line in it is not parsed.
#[must_use]
pub fn record_line(record: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"{JSONRPC}\",\"method\":\"record\",\"params\":{}}}\n",
        record.trim_end_matches('\n')
    )
}

impl Message {
    /// Reads a pod's line, without its newline. Members that are unknown are passed over.
    ///
    /// # Errors
    /// It is no message of this protocol.
    pub fn read(line: &str) -> Result<Self, serde_json::Error> {
        let AnyLine {
            id,
            method,
            params,
            result,
            error,
            ..
        } = serde_json::from_str(line)?;
        Ok(match (method, result, error) {
            (Some(name), _, _) => {
                Self::Event(Event::read(&name, params.map_or("{}", RawValue::get))?)
            }
            (None, _, Some(error)) => Self::Answer {
                id,
                answer: Err(error),
            },
            (None, Some(result), None) => Self::Answer {
                id,
                answer: Ok(result.to_owned()),
            },
            (None, None, None) => {
                return Err(serde::de::Error::custom("neither an answer nor an event"));
            }
        })
    }
}

fn line<T: Serialize>(message: &T) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    Ok(line)
}
