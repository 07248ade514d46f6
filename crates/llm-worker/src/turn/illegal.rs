//! The error of a host that misuses a turn.

use crate::ErrorKind;
use crate::item::CallId;

/// The error of [`crate::Turn::handle`] for an input that the turn does not expect in its phase: a bug in the host, but
/// for [`Self::EndUnstorable`]. The turn is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalInput {
    /// The turn did not ask for this input.
    #[error("a turn that is {phase} cannot take {input}")]
    Input {
        input: &'static str,
        phase: &'static str,
    },
    /// The call awaits no answer, or was answered before.
    #[error("call {0} is not waiting for a result")]
    Call(CallId),
    /// The acknowledged or refused commit is not the one in flight.
    #[error("this commit is not the one in flight")]
    ForeignAck,
    /// The end of the turn cannot be stored, although everything else was dropped: the host has to stop. The
    /// commit counts as refused.
    #[error("the end of the turn cannot be stored, although everything else was dropped")]
    EndUnstorable,
    /// The gates may add user and system items only.
    #[error("item {0} added by the gates is neither a user nor a system item")]
    Item(usize),
}

impl IllegalInput {
    /// `Bug`, or `Exhausted` for an end that cannot be stored.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Input { .. } | Self::Call(_) | Self::ForeignAck | Self::Item(_) => ErrorKind::Bug,
            Self::EndUnstorable => ErrorKind::Exhausted,
        }
    }
}
