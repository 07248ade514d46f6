//! The reasons why a pod did not do what a client asked. Depend on no part of the pod that does it.

use super::queue::MAX_QUEUED;
use crate::record::{ApprovalId, InputId};
use llm_worker::ErrorKind;
use session_store::BlobError;

/// The reason why a pod did not do what a client asked.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The input is large and could not be stored as a blob.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The input, or a record that has to precede it, can never be stored; with the reason.
    #[error("the journal cannot store this input: {0}")]
    Unstorable(String),
    /// The disk refused; nothing was accepted.
    #[error("{0}")]
    Disk(String),
    /// It has too many bytes.
    #[error("{0}")]
    TooLong(String),
    /// A gate refused the input, with its reason.
    #[error("{0}")]
    Refused(String),
    /// Too many inputs wait.
    #[error("{MAX_QUEUED} inputs are already waiting")]
    Busy,
    /// Too many notifications of clients wait, or came in this turn.
    #[error("{0}")]
    TooMany(String),
    /// A turn took the input, it was withdrawn, or there was none with this number.
    #[error("input {0} is not waiting")]
    NotWaiting(InputId),
    /// The input with this key was accepted earlier, and its turn has ended.
    #[error("the turn of input {0} has already ended")]
    Over(InputId),
    /// There is no approval of this number, or it was answered long ago.
    #[error("there is no approval {0}")]
    NoApproval(ApprovalId),
    /// The answer names other arguments than the question has.
    #[error("the answer is about other arguments than approval {0}")]
    OtherArguments(ApprovalId),
    /// No rule can allow such calls.
    #[error("approval {0} can be given once only")]
    NoRule(ApprovalId),
    /// The rules would not do in the user's configuration.
    #[error(
        "no rule in your configuration would allow the call of approval {0}: other rules come after it"
    )]
    NoConfigurableRule(ApprovalId),
    /// No rule of this number is allowed for the pod.
    #[error("there is no rule {0}")]
    NoRuleNumber(u64),
    /// No pin has this number.
    #[error("there is no pin {0}")]
    NoPin(u64),
    /// No job of this number runs.
    #[error("no job {0} runs")]
    NoJob(u64),
    /// No run of a background task of this number is open.
    #[error("no background task has the run {0} now")]
    NoRun(u64),
    /// The text cannot be pinned, with the reason.
    #[error("{0}")]
    NotPinned(String),
    /// What was asked for is so already, or cannot be made so: the reason.
    #[error("{0}")]
    Unchanged(String),
    /// Past calls could not be judged.
    #[error("the past calls could not be judged: {0}")]
    Unjudged(String),
    /// The pod cannot be resumed before this is there.
    #[error("{0}")]
    Required(String),
    /// The budget of the pod is used up: a person grants it once more.
    #[error("{0}")]
    Budget(String),
    /// No feature opens a tool of this name to clients, or such a call.
    #[error("{0}")]
    NoTool(String),
    /// The pod has no tool for commands of a person; with the way out.
    #[error("{0}")]
    NoShell(String),
    /// The arguments of a call do not fit the tool.
    #[error("{0}")]
    Arguments(String),
    /// The call changes something, and the client may not.
    #[error("{0}")]
    ReadOnly(String),
    /// The tool failed, with its reason.
    #[error("{0}")]
    ToolFailed(String),
    /// A turn runs, or another client changes the pod.
    #[error("the pod is working")]
    Working,
    /// The pod has ended; everything committed is on disk.
    #[error("the pod has ended")]
    Closed,
}

impl SubmitError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Blob(error) => crate::session::kind_of_store(error.kind()),
            Self::Unstorable(_) => ErrorKind::FixInput,
            Self::Busy | Self::TooMany(_) | Self::Working => ErrorKind::Retry,
            Self::Refused(_) | Self::ReadOnly(_) => ErrorKind::Denied,
            Self::NoTool(_) | Self::Arguments(_) | Self::ToolFailed(_) => ErrorKind::FixInput,
            Self::TooLong(_)
            | Self::NotWaiting(_)
            | Self::Over(_)
            | Self::NoApproval(_)
            | Self::OtherArguments(_)
            | Self::NoRule(_)
            | Self::NoConfigurableRule(_)
            | Self::NoRuleNumber(_)
            | Self::NoPin(_)
            | Self::NoJob(_)
            | Self::NoRun(_)
            | Self::NotPinned(_)
            | Self::Unchanged(_) => ErrorKind::FixInput,
            Self::Closed
            | Self::Disk(_)
            | Self::Required(_)
            | Self::Budget(_)
            | Self::Unjudged(_)
            | Self::NoShell(_) => ErrorKind::Unavailable,
        }
    }
}
