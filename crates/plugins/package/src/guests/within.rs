//! The call of a tool within which a guest asks for something, and how what it asks is read. Does not depend on handles.

use super::wire::Refused;
use llm_worker::tool::{LineRange, data};
use llm_worker::{ErrorKind, ToolContext};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest handle of an output, in bytes.
const MAX_HANDLE: usize = 64;

/// The call of a tool that a guest answers.
#[derive(Clone)]
pub(crate) struct Within {
    pub(super) cx: ToolContext,
    /// Whether the tool may change something.
    pub(super) may_write: bool,
    /// The texts in its arguments: an output that none of them names is not for the guest.
    named: Arc<BTreeSet<String>>,
    /// What was written of the value beside its result.
    data: Arc<Mutex<String>>,
}

impl Within {
    /// A call with these arguments, as JSON.
    pub(crate) fn new(cx: ToolContext, may_write: bool, arguments: &str) -> Self {
        let mut named = BTreeSet::new();
        if let Ok(arguments) = serde_json::from_str(arguments) {
            add_texts(&arguments, &mut named);
        }
        Self {
            cx,
            may_write,
            named: Arc::new(named),
            data: Arc::default(),
        }
    }

    /// The value that was written in parts, if one was.
    ///
    /// # Errors
    /// It is not JSON.
    pub(crate) fn data(&self) -> Result<Option<Value>, serde_json::Error> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        match data.as_str() {
            "" => Ok(None),
            text => serde_json::from_str(text).map(Some),
        }
    }
}

/// Adds all texts of a value that can be handles, which are short. The parser bounds how deep it is.
fn add_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.len() <= MAX_HANDLE => {
            texts.insert(text.clone());
        }
        Value::Array(parts) => parts.iter().for_each(|part| add_texts(part, texts)),
        Value::Object(parts) => parts.values().for_each(|part| add_texts(part, texts)),
        _ => {}
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
    /// It is a part of the value beside the result.
    #[serde(default)]
    data: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    handle: String,
    #[serde(default = "first")]
    from: u64,
    #[serde(default = "page")]
    lines: u64,
}

fn first() -> u64 {
    1
}

/// Lines of a page whose guest names no number.
fn page() -> u64 {
    200
}

impl Within {
    /// Adds to the output of the call, or to the value beside its result.
    pub(super) fn write(&self, params: Value) -> Result<Value, Refused> {
        let Written {
            text,
            data: is_data,
        } = read(params)?;
        if !is_data {
            let written = self.cx.host.write_output(text.as_bytes());
            return written.map(|()| Value::Null).map_err(Refused::of);
        }
        let mut all = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() > data::MAX_DATA {
            let text = format!("data has at most {} bytes", data::MAX_DATA);
            return Err(Refused::new(ErrorKind::Exhausted, text));
        }
        all.push_str(&text);
        Ok(Value::Null)
    }

    /// Lines of an earlier output that the arguments of the call name.
    pub(super) fn page(&self, params: Value) -> Result<Value, Refused> {
        let Page {
            handle,
            from,
            lines,
        } = read(params)?;
        granted(
            self.named.get(&handle),
            "an output that no argument of the call names",
        )?;
        let range = LineRange::From { from, lines };
        let page = self.cx.host.read_output(&handle, range);
        // The words of the error name other outputs.
        let page = page.map_err(|error| {
            Refused::new(error.kind, format!("the output `{handle}` cannot be read"))
        })?;
        let first = page.first;
        let last = page.last;
        let total = page.total;
        Ok(json!({ "text": page.text, "first": first, "last": last, "total": total }))
    }
}

pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refused> {
    serde_json::from_value(params)
        .map_err(|error| Refused::new(ErrorKind::FixInput, format!("params: {error}")))
}

pub(super) fn granted<T>(sink: Option<T>, what: &str) -> Result<T, Refused> {
    sink.ok_or_else(|| Refused::new(ErrorKind::Denied, format!("{what} was not granted")))
}
