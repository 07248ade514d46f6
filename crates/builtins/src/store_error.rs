//! The error of the contracts of work items and memory.

use llm_worker::{ErrorKind, ToolError};

/// The error of a store of notes or work items: what failed, where, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
}

impl StoreError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The caller must ask differently.
    pub(crate) fn fix(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::FixInput, message)
    }

    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<ToolError> for StoreError {
    fn from(error: ToolError) -> Self {
        Self {
            kind: error.kind,
            message: error.message,
        }
    }
}

impl From<authority::Error> for StoreError {
    fn from(error: authority::Error) -> Self {
        tools::refused(&error).into()
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        tools::fail(error.kind, &error.message)
    }
}
