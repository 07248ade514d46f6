//! The errors of a pod, as clients get them. The words for people are the client's: a pod knows no commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares every kind once: its name and its JSON-RPC code.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal,)*) => {
        /// What kind of error it is; `code` in JSON-RPC, and `data.kind` by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)*
            /// A kind of a later version.
            #[serde(other)]
            Unknown,
        }

        impl ErrorKind {
            /// The code of JSON-RPC.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Unknown => -32000,
                }
            }

            /// The kind of a code.
            #[must_use]
            pub const fn of(code: i32) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }
    };
}

kinds! {
    /// The line is no JSON, or not in UTF-8. The connection ends.
    Parse = -32700,
    /// The line is no request, or it came before `hello`.
    Request = -32600,
    /// There is no such method.
    Method = -32601,
    /// The parameters do not fit the method.
    Params = -32602,
    /// A fault of the pod.
    Internal = -32603,
    /// A client of this role, or a process that a pod started, may not do this.
    NotAllowed = -32001,
    /// Pod and client have no version of the protocol in common.
    Version = -32002,
    /// Too much waits already; later it may work.
    Busy = -32003,
    /// The text or the line exceeds a bound.
    TooLong = -32004,
    /// A hook refused it.
    Refused = -32005,
    /// The input does not wait: a turn took it, it was withdrawn, or there is none of this number.
    NotWaiting = -32006,
    /// The turn of the input with this `cmd_id` has ended before.
    Over = -32007,
    /// The disk refused; nothing was accepted.
    Disk = -32008,
    /// The pod lacks something, such as a key, and works again once it was started with it.
    Required = -32009,
    /// A turn runs, and this is possible between turns only.
    Working = -32010,
    /// The answer does not fit an approval that waits: there is none of this number, it is about other arguments, or the
    /// scope is not offered.
    NoApproval = -32013,
    /// The pod ends.
    Closing = -32011,
    /// What the pod may use is used up: `resume` with `more` grants it once more.
    Budget = -32014,
    /// A tool that a client called failed, or the pod has no tool for commands; with the reason.
    Failed = -32012,
}

/// An error, as the answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
#[serde(from = "ErrorObject", into = "ErrorObject")]
#[schemars(with = "ErrorObject")]
pub struct Error {
    pub kind: ErrorKind,
    /// What went wrong, in one line for people.
    pub message: String,
}

impl Error {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// An [`Error`] as JSON-RPC has it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
struct ErrorObject {
    code: i32,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<ErrorData>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ErrorData {
    kind: ErrorKind,
}

impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        let kind = object
            .data
            .map_or_else(|| ErrorKind::of(object.code), |data| data.kind);
        Self {
            kind,
            message: object.message,
        }
    }
}

impl From<Error> for ErrorObject {
    fn from(error: Error) -> Self {
        Self {
            code: error.kind.code(),
            message: error.message,
            data: Some(ErrorData { kind: error.kind }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_by_its_code_alone_and_by_a_name_of_a_later_version() {
        let busy = Error::new(ErrorKind::Busy, "64 inputs wait");
        let line = serde_json::to_value(&busy).unwrap();
        assert_eq!(
            line,
            serde_json::json!({ "code": -32003, "message": "64 inputs wait", "data": { "kind": "busy" } })
        );
        assert_eq!(serde_json::from_value::<Error>(line).unwrap(), busy);
        let bare = serde_json::json!({ "code": -32003, "message": "64 inputs wait" });
        assert_eq!(serde_json::from_value::<Error>(bare).unwrap(), busy);
        let later = serde_json::json!({ "code": -32050, "message": "m", "data": { "kind": "tired", "by": 1 } });
        assert_eq!(
            serde_json::from_value::<Error>(later).unwrap().kind,
            ErrorKind::Unknown
        );
    }
}
