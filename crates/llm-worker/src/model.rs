//! What a model is to the host: a dialect to encode requests in, and a stream of events back.

use crate::projection::{Dialect, ModelRequest};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What the caller of something that failed does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Try again later, unchanged.
    Retry,
    /// Change the input.
    FixInput,
    /// Not allowed; ask for authority.
    Denied,
    /// Something needed is not there.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// A limit was reached.
    Exhausted,
    /// It was cancelled.
    Cancelled,
    /// A fault in this program.
    Bug,
}

/// Where a model's events go; bounded, so a slow host slows the stream.
pub type EventSink = mpsc::Sender<ModelEvent>;

/// How many events may wait between a model and the turn.
pub const EVENT_QUEUE: usize = 256;

/// Sends one request, streams one answer.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// `provider/name`, as in `openai/gpt-4.1`, or `offline`.
    fn name(&self) -> &str;

    /// How requests are encoded for this model.
    fn dialect(&self) -> Arc<dyn Dialect>;

    /// Streams the answer into `events`, ending with exactly one [`ModelEvent::Stop`] before `Ok`.
    /// Retries inside are announced by [`ModelEvent::Retrying`], which voids what came before it.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// A stream that ended without a stop reason, a refusal by the endpoint, retries used up.
    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError>;
}

/// One event of an answer. Tool calls are numbered by `index` from 0 in order of appearance.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More answer text.
    Text(String),
    /// More reasoning text.
    Reasoning(String),
    /// A tool call begins; sent once per index.
    CallStarted {
        /// Its place in this answer.
        index: usize,
        /// The tool's name.
        name: String,
    },
    /// More of a call's raw argument text.
    CallArguments {
        /// Its place in this answer.
        index: usize,
        /// The fragment.
        fragment: String,
    },
    /// Tokens counted so far; the last one counts.
    Usage(Usage),
    /// Everything since the request began is void; it will be sent again after `delay`.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long until the next.
        delay: Duration,
        /// What failed, for people.
        why: String,
    },
    /// The answer is whole.
    Stop(StopReason),
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It said all it wanted.
    EndTurn,
    /// It wants tools run.
    ToolUse,
    /// Its output limit cut it.
    MaxTokens,
    /// It, or a filter, refused.
    Refusal,
    /// A vendor's other reason, verbatim.
    Other(String),
}

/// Tokens of one answer; `cached` is the part of `input` the vendor had in its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens of `input` that came from the vendor's cache.
    pub cached: u64,
}

/// A request that brought no whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// `Unavailable` (retries used up, cannot connect), `Denied` (key refused), `FixInput` (the endpoint calls
    /// the request invalid), `Exhausted` (quota, context length), `Cancelled`, `Bug`.
    pub kind: ErrorKind,
    /// What failed and where.
    pub message: String,
    /// The next step, if there is one to name.
    pub help: Option<String>,
}
