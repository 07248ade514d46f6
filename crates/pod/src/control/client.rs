//! A client's handle on a pod: people and scripts send commands to the actor through it. Does not depend on records or
//! on the journal.

use super::limits::RunLimits;
use super::turn_end::TurnEnd;
use llm_worker::ErrorKind;
use session_store::BlobError;
use tokio::sync::{mpsc, oneshot, watch};

/// Commands that may wait for the actor.
const MAX_COMMANDS: usize = 64;

/// Inputs that may wait to be accepted.
pub(super) const MAX_SUBMISSIONS: usize = 64;

/// A command of a client. Commands are read even while requests of features wait.
pub(super) enum Command {
    Submit(Submission),
    Cancel,
    /// Release the session once nothing is in flight.
    Close {
        reason: String,
    },
}

/// An input with its limits, and the channel for the end of its turn.
pub(super) struct Submission {
    pub(super) text: String,
    /// Limits of the turn that takes the input.
    pub(super) limits: RunLimits,
    pub(super) reply: Reply,
}

pub(super) type Reply = oneshot::Sender<Result<TurnEnd, SubmitError>>;

/// The reason why a submitted input did not get into a turn.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The input is large and could not be stored as a blob.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The input, or a record that has to precede it, can never be stored; with the reason.
    #[error("the journal cannot store this input: {0}")]
    Unstorable(String),
    /// Too many inputs wait.
    #[error("{MAX_SUBMISSIONS} inputs wait to be accepted already")]
    Busy,
    /// The pod has ended; everything committed is on disk.
    #[error("the pod has closed its session")]
    Closed,
}

impl SubmitError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Blob(error) => crate::session::kind_of_store(error.kind()),
            Self::Unstorable(_) => ErrorKind::FixInput,
            Self::Busy => ErrorKind::Retry,
            Self::Closed => ErrorKind::Unavailable,
        }
    }
}

/// The handle for submitting inputs to an open pod, cancelling turns and closing the pod; clones share it. Used by `yoi
/// run` and tests.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    folded: watch::Receiver<u64>,
    limits: RunLimits,
}

/// Creates a client and the actor's receiving end.
pub(super) fn client(folded: watch::Receiver<u64>, limits: RunLimits) -> (Client, mpsc::Receiver<Command>) {
    let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
    (Client { commands, folded, limits }, receiver)
}

impl Client {
    /// Submits one input and waits for the end of the turn that takes it; that turn takes every input that was
    /// accepted before, under the tightest of their limits. An input that a gate refuses ends as an aborted turn.
    ///
    /// # Errors
    /// The input could not be stored, 64 wait already, or the pod has ended.
    pub async fn submit(&self, text: &str) -> Result<TurnEnd, SubmitError> {
        self.submit_within(text, self.limits).await
    }

    /// As [`Self::submit`], with limits for that turn.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn submit_within(&self, text: &str, limits: RunLimits) -> Result<TurnEnd, SubmitError> {
        let (reply, end) = oneshot::channel();
        let submission = Submission { text: text.to_owned(), limits, reply };
        self.commands.send(Command::Submit(submission)).await.map_err(|_closed| SubmitError::Closed)?;
        end.await.unwrap_or(Err(SubmitError::Closed))
    }

    /// Ends the running turn in good order, or the next one if its input was submitted; later turns run.
    pub async fn cancel(&self) {
        // A pod that has ended has no turn.
        drop(self.commands.send(Command::Cancel).await);
    }

    /// Asks the pod to end once no turn runs; its last record has the reason.
    pub async fn close(&self, reason: &str) {
        // The pod has ended already.
        drop(self.commands.send(Command::Close { reason: reason.to_owned() }).await);
    }

    /// The seq of the newest record that the pod has folded: everything up to it can be read from the files.
    #[must_use]
    pub fn folded(&self) -> watch::Receiver<u64> {
        self.folded.clone()
    }

    /// The limits of a turn whose input was submitted without limits.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        self.limits
    }
}
