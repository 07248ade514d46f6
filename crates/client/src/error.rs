//! What can fail between a client and its pod. The words for people are the program's that uses this crate.

use protocol::error::{Error, ErrorKind};
use std::io;
use std::time::Duration;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process serves the socket.
    #[error("cannot connect to the pod: {0}")]
    Unreachable(io::Error),
    /// The pod's directory is not there.
    #[error("the pod was removed")]
    Removed,
    #[error("the connection failed: {0}")]
    Io(io::Error),
    #[error("the pod closed the connection")]
    Closed,
    /// The connection ended within a message.
    #[error("the connection ended within a message")]
    Cut,
    /// The pod ended the connection and gave a reason.
    #[error("the pod closed the connection: {0}")]
    Dismissed(Error),
    /// The pod's answer is an error; the connection goes on.
    #[error("{0}")]
    Refused(Error),
    /// A later answer to the request is passed over.
    #[error("the pod did not answer within {0:?}")]
    Silent(Duration),
    /// More events than are kept arrived before an answer. Those that are kept are still handed out; then the
    /// connection is over.
    #[error("too many events arrived before the answer")]
    Overrun,
    /// What arrived is no message of the protocol.
    #[error("the pod sent an invalid message: {0}")]
    Garbled(String),
    #[error("the pod uses another version of the protocol: {0}")]
    Version(String),
    /// The request exceeds [`protocol::MAX_LINE`].
    #[error("the request has {0} bytes; the limit is {max} bytes", max = protocol::MAX_LINE)]
    TooLong(usize),
    #[error("{0} requests are still without an answer")]
    Unanswered(usize),
    /// A record came that does not follow those before it.
    #[error("record {seq} arrived after record {cursor}")]
    OutOfOrder { cursor: u64, seq: u64 },
    /// The pod has fewer records than the client has seen.
    #[error("the client has record {cursor}, but the newest record of the pod is {seq}")]
    Behind { cursor: u64, seq: u64 },
    /// Another session has the pod's place, so that the cursor means nothing in it.
    #[error("the pod has another session now")]
    AnotherSession,
}

impl ClientError {
    /// Whether a new connection may get what this one did not.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Io(_)
            | Self::Closed
            | Self::Cut
            | Self::Silent(_)
            | Self::Overrun => true,
            Self::Dismissed(error) | Self::Refused(error) => {
                matches!(error.kind, ErrorKind::Busy | ErrorKind::Closing)
            }
            Self::Removed
            | Self::Garbled(_)
            | Self::Version(_)
            | Self::TooLong(_)
            | Self::Unanswered(_)
            | Self::OutOfOrder { .. }
            | Self::Behind { .. }
            | Self::AnotherSession => false,
        }
    }
}
