//! Services as JSON: the form in which code elsewhere provides and uses them. Does not depend on the plan.

use super::handle::ServiceFuture;
use llm_worker::{ErrorKind, ToolContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A service as JSON: one method with a name for each of its contract's.
pub trait JsonService: Send + Sync {
    /// Answers one call.
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>>;
}

/// One call of a [`JsonService`].
#[derive(Clone)]
#[non_exhaustive]
pub struct JsonCall {
    pub method: String,
    /// The arguments.
    pub params: Value,
    /// The call of a tool for which this is done. Methods that change files need it: its host records each change before
    /// it happens.
    pub within: Option<ToolContext>,
}

impl JsonCall {
    /// A call outside of any call of a tool.
    pub fn new(method: impl Into<String>, params: Value) -> Self {
        Self {
            method: method.into(),
            params,
            within: None,
        }
    }

    /// Sets the call of a tool for which this is done.
    #[must_use]
    pub fn within(self, cx: ToolContext) -> Self {
        Self {
            within: Some(cx),
            ..self
        }
    }
}

/// The failure of a call of a [`JsonService`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{message}")]
pub struct ServiceFault {
    /// What the caller can do.
    pub kind: ErrorKind,
    pub message: String,
}

impl ServiceFault {
    /// A failure with its reason.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}
