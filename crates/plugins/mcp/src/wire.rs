//! The lines between a client and a server: JSON-RPC 2.0, one message in each. Results stay text, so that numbers keep their
//! digits.

use crate::elicit::{self, Agreed};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The version of the protocol in which each request says who asks.
pub(crate) const MODERN: &str = "2026-07-28";

/// The versions with a session, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The longest id of a request of a server, in bytes.
const MAX_ID: usize = 256;

/// The longest parameters of one, in bytes.
const MAX_PARAMS: usize = 64 << 10;

/// The code of servers that do not speak the version of a request.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The code for a method that is not known.
const NO_METHOD: i64 = -32601;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// A request, or without an id a notification.
pub(crate) fn request(
    id: Option<u64>,
    method: &str,
    params: impl Serialize,
) -> Result<Vec<u8>, String> {
    let request = Request {
        jsonrpc: "2.0",
        id,
        method,
        params,
    };
    serde_json::to_vec(&request).map_err(|error| error.to_string())
}

/// A request in the form of an era.
pub(crate) fn message(
    id: Option<u64>,
    is_modern: bool,
    method: &str,
    params: impl Serialize,
) -> Result<Vec<u8>, String> {
    if !is_modern {
        return request(id, method, params);
    }
    // As text, so that what is no value of `serde_json` passes.
    let params = serde_json::to_string(&params).map_err(|error| error.to_string())?;
    let rest = params.strip_prefix('{').ok_or("parameters are an object")?;
    let comma = if rest == "}" { "" } else { "," };
    let params = RawValue::from_string(format!("{{\"_meta\":{}{comma}{rest}", meta()));
    request(id, method, params.map_err(|error| error.to_string())?)
}

/// Who asks. It can be asked questions of people, and offers neither roots nor sampling nor logging.
pub(crate) fn client() -> Value {
    json!({ "name": "yoi", "version": env!("CARGO_PKG_VERSION") })
}

/// `_meta` of a modern request.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": client(),
        "io.modelcontextprotocol/clientCapabilities": elicit::capability(),
    })
}

/// The answer to what a server asked for: `ping` and questions of people have one. The id goes back as it came: as a value it could be too deep,
/// or no number at all.
pub(crate) fn answer(asked: &ServerRequest, agreed: &mut Agreed) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Reply<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(flatten)]
        of: Value,
    }
    let of = match asked.method.as_str() {
        "ping" => json!({ "result": {} }),
        elicit::METHOD => {
            let params = asked.params.as_ref().map(|params| params.get());
            let params = params.and_then(|params| serde_json::from_str(params).ok());
            json!({ "result": agreed.answer(&params.unwrap_or_default()) })
        }
        _ => json!({ "error": { "code": NO_METHOD, "message": "Method not found" } }),
    };
    let jsonrpc = "2.0";
    let id = &*asked.id;
    serde_json::to_vec(&Reply { jsonrpc, id, of }).map_err(|error| error.to_string())
}

/// Whether a notification says that definitions of a server changed.
pub(crate) fn is_change(method: &str) -> bool {
    matches!(
        method,
        "notifications/tools/list_changed" | "notifications/prompts/list_changed"
    )
}

/// An error that a server answers with.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    data: Option<ErrorData>,
    /// Not of a server: the request cannot be sent as it is, and was not.
    #[serde(skip)]
    pub(crate) is_unsent: bool,
}

/// What stands beside an error: of one about versions, those that the server speaks. Anything else is not looked at.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum ErrorData {
    Versions { supported: Vec<String> },
    Other(IgnoredAny),
}

impl RpcError {
    pub(crate) fn new(code: i64, message: String) -> Self {
        let data = None;
        Self {
            code,
            message,
            data,
            is_unsent: false,
        }
    }

    /// A request that cannot be sent as it is.
    pub(crate) fn unsent(why: String) -> Self {
        Self {
            is_unsent: true,
            ..Self::new(0, why)
        }
    }

    /// Whether a server says that it does not speak the version of a request, but the modern one.
    pub(crate) fn wants_modern(&self) -> bool {
        let supported = match &self.data {
            Some(ErrorData::Versions { supported }) => supported.as_slice(),
            Some(ErrorData::Other(_)) | None => &[],
        };
        self.code == UNSUPPORTED_VERSION && supported.iter().any(|version| version == MODERN)
    }
}

/// What a server asks for.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
}

/// A line of a server.
#[derive(Debug)]
pub(crate) enum FromServer {
    Answered {
        /// None where no request of this client has it.
        id: Option<u64>,
        answer: Result<Box<RawValue>, RpcError>,
    },
    Asked(ServerRequest),
    Told {
        method: String,
    },
    /// Not a message: what a server prints beside them.
    Noise,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<Box<RawValue>>,
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

/// `null` is a result.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// Reads a line. Fields that are not known are not looked at; a request with a long id is none.
pub(crate) fn read(line: &[u8]) -> FromServer {
    let Ok(line) = serde_json::from_slice::<Line>(line) else {
        return FromServer::Noise;
    };
    let id = line.id.filter(|id| id.get() != "null");
    match (id, line.method) {
        (Some(id), Some(_)) if id.get().len() > MAX_ID => FromServer::Noise,
        (Some(id), Some(method)) => {
            let params = line
                .params
                .filter(|params| params.get().len() <= MAX_PARAMS);
            FromServer::Asked(ServerRequest { id, method, params })
        }
        (None, Some(method)) => FromServer::Told { method },
        (id, None) => {
            let answer = match (line.error, line.result) {
                (Some(error), _) => Err(error),
                (None, Some(result)) => Ok(result),
                (None, None) => return FromServer::Noise,
            };
            let id = id.and_then(|id| id.get().parse().ok());
            FromServer::Answered { id, answer }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> &'static str {
        match read(line.as_bytes()) {
            FromServer::Answered {
                id: Some(7),
                answer: Ok(_),
            } => "result",
            FromServer::Answered {
                id: Some(7),
                answer: Err(_),
            } => "error",
            FromServer::Answered { .. } => "foreign",
            FromServer::Asked(_) => "asked",
            FromServer::Told { .. } => "told",
            FromServer::Noise => "noise",
        }
    }

    #[test]
    fn each_line_is_what_it_is() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "result"),
            (r#"{"id":7,"result":null,"more":[1]}"#, "result"),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x"}}"#,
                "error",
            ),
            (r#"{"id":7,"error":{}}"#, "error"),
            (r#"{"id":"7","result":{}}"#, "foreign"),
            (r#"{"id":8,"result":{}}"#, "foreign"),
            (
                r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#,
                "foreign",
            ),
            (r#"{"id":"a","method":"ping"}"#, "asked"),
            (r#"{"method":"notifications/message","params":{}}"#, "told"),
            ("Server is running", "noise"),
            ("null", "noise"),
            (r#"{"id":7}"#, "noise"),
            (r#"[{"id":7,"result":{}}]"#, "noise"),
            ("", "noise"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn odd_ids_go_back_as_they_came() {
        for id in ["1e999".to_owned(), "[".repeat(128) + &"]".repeat(128)] {
            let line = format!(r#"{{"id":{id},"method":"ping"}}"#);
            let FromServer::Asked(asked) = read(line.as_bytes()) else {
                panic!("no request: {line}");
            };
            let back = answer(&asked, &mut Agreed::default()).unwrap();
            let back = String::from_utf8(back).unwrap();
            assert_eq!(
                back,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
            );
        }
        let long = format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(MAX_ID));
        assert_eq!(kind(&long), "noise");
    }

    #[test]
    fn a_result_keeps_its_digits() {
        let line = r#"{"id":7,"result":{"n":12345678901234567890123}}"#;
        let FromServer::Answered {
            answer: Ok(result), ..
        } = read(line.as_bytes())
        else {
            panic!("no result");
        };
        assert_eq!(result.get(), r#"{"n":12345678901234567890123}"#);
    }
}
