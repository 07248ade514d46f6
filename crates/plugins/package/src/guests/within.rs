//! The call of a tool within which a guest asks for something, and how what it asks is read. Does not depend on handles.

use super::wire::Refused;
use llm_worker::tool::{LineRange, data};
use llm_worker::{ErrorKind, ToolContext};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The call of a tool that a guest answers.
#[derive(Clone)]
pub(crate) struct Within {
    pub(super) cx: ToolContext,
    /// Whether the tool may change something.
    pub(super) may_write: bool,
    /// What was written of the value beside its result.
    data: Arc<Mutex<String>>,
}

impl Within {
    pub(crate) fn new(cx: ToolContext, may_write: bool) -> Self {
        Self {
            cx,
            may_write,
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

    /// Lines of an earlier output.
    pub(super) fn page(&self, params: Value) -> Result<Value, Refused> {
        let Page {
            handle,
            from,
            lines,
        } = read(params)?;
        let range = LineRange::From { from, lines };
        let page = self.cx.host.read_output(&handle, range);
        let page = page.map_err(Refused::of)?;
        let (first, last, total) = (page.first, page.last, page.total);
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
