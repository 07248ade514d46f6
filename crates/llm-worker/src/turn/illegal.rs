//! What a host does wrong with a turn. Knows no turn.

use crate::error::ErrorKind;
use crate::item::CallId;

/// An input the turn has no use for now: a fault in the host. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalInput {
    /// Nothing that was asked for is answered by it.
    #[error("a turn that is {phase} has no use for {input}")]
    Input { input: &'static str, phase: &'static str },
    /// No answer is awaited for this call, or it was given before.
    #[error("no answer is awaited for call {0}")]
    Call(CallId),
    /// The acknowledged or refused commit is not the one in flight.
    #[error("this commit is not the one in flight")]
    ForeignAck,
    /// The gates may add user and system items only.
    #[error("item {0} added by the gates is neither a user nor a system item")]
    Item(usize),
}

impl IllegalInput {
    /// What the caller does next: always a bug report.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        ErrorKind::Bug
    }
}
