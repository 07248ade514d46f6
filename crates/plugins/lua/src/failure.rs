//! Why a script gave no result: a kind and a message for the model, and where it happened for the log.

use mlua::Value;
use serde_json::{Value as Json, json};

/// The code of JSON-RPC for errors that have a kind.
const FAILED: i32 = -32000;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 8 << 10;

/// What Lua says where its memory is used up.
const NO_MEMORY: &str = "not enough memory";

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// As the contract has it: `fix_input`, `retry`, `denied`, `unavailable`, `exhausted` or `bug`.
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) trace: String,
}

impl Failure {
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Self {
        let kind = kind.to_owned();
        let message = message.into();
        Self {
            kind,
            message,
            trace: String::new(),
        }
    }

    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self::new("bug", message)
    }

    /// What `error` was called with.
    pub(crate) fn of_value(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::said(&text.to_string_lossy()),
            Value::Error(error) => Self::from(error.as_ref()),
            Value::Table(table) => {
                let text = |key: &str| match table.raw_get(key) {
                    Ok(Value::String(text)) => Some(text.to_string_lossy()),
                    _ => None,
                };
                match text("message") {
                    Some(message) => {
                        Self::new(&text("kind").unwrap_or_else(|| "bug".into()), message)
                    }
                    None => Self::bug("the script raised a table without a `message`"),
                }
            }
            other => Self::bug(format!("the script raised a {}", other.type_name())),
        }
    }

    fn said(text: &str) -> Self {
        let kind = if text.ends_with(NO_MEMORY) {
            "exhausted"
        } else {
            "bug"
        };
        Self::new(kind, text)
    }

    /// The error of an answer.
    pub(crate) fn answer(&self) -> Json {
        let Self { kind, message, .. } = self;
        let message = message.get(..message.floor_char_boundary(MAX_MESSAGE));
        json!({ "code": FAILED, "message": message, "data": { "kind": kind } })
    }
}

/// An error of Lua, without its traceback.
impl From<&mlua::Error> for Failure {
    fn from(error: &mlua::Error) -> Self {
        let mut root = error;
        while let mlua::Error::CallbackError { cause, .. }
        | mlua::Error::WithContext { cause, .. } = root
        {
            root = cause;
        }
        let text = match root {
            mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
            mlua::Error::SyntaxError { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let (text, trace) = match text.split_once("\nstack traceback:\n") {
            Some((text, trace)) => (text, trace),
            None => (text.as_str(), ""),
        };
        Self {
            trace: trace.to_owned(),
            ..Self::said(text)
        }
    }
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Self {
        Self::from(&error)
    }
}
