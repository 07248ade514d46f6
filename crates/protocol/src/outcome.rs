//! How a turn ended, and the kinds of errors that all crates but the store share. Defines no errors.

use serde::{Deserialize, Serialize};

words! {
    /// What the caller of a failed operation can do next. Errors of the host, of tools and of models have a `kind()` of
    /// this type; the model sees it with a failed call.
    ErrorKind: Hash {
        /// Try again later, unchanged.
        Retry = "retry",
        /// Change the input.
        FixInput = "fix_input",
        /// Not allowed; ask for authority.
        Denied = "denied",
        /// Something needed is missing.
        Unavailable = "unavailable",
        /// Stored data is damaged.
        Corrupt = "corrupt",
        /// A limit was reached.
        Exhausted = "exhausted",
        /// The operation was cancelled.
        Cancelled = "cancelled",
        /// A bug in this program.
        Bug = "bug",
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The model finished its answer.
    Done,
    /// The output limit cut the final answer; the part that arrived is kept.
    MaxTokens,
    /// The model or a filter of the provider refused.
    Refused,
    /// The final answer had neither text nor calls.
    Empty,
    /// No complete answer arrived; the history has no part of it.
    ModelFailed {
        /// The error's kind; also `Exhausted` after `MAX_OVERFLOWS` consecutive answers over
        /// the limits of a turn.
        kind: ErrorKind,
        message: String,
        help: Option<String>,
    },
    /// The turn was cancelled.
    Cancelled,
    /// The limit of requests was reached.
    StepLimit,
    /// The cost limit was reached or passed: the cost of an answer is known only after it.
    CostLimit,
    /// The host stopped it at its limit on tokens.
    TokenLimit,
    /// The host stopped it at its limit on time.
    TimeLimit,
    /// The next request did not fit the model's context window.
    ContextLimit,
    /// A gate, or the host, ended it; the reason is for people.
    Aborted { reason: String },
    /// The host left during the turn, or it stopped without an end; then recovery writes this.
    Interrupted,
    /// As [`Self::Interrupted`], and calls that wait for a person are still open. The next turn begins with them.
    Waiting,
}

impl Outcome {
    /// In one word, as in the journal.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::MaxTokens => "max_tokens",
            Self::Refused => "refused",
            Self::Empty => "empty",
            Self::ModelFailed { .. } => "model_failed",
            Self::Cancelled => "cancelled",
            Self::StepLimit => "step_limit",
            Self::CostLimit => "cost_limit",
            Self::TokenLimit => "token_limit",
            Self::TimeLimit => "time_limit",
            Self::ContextLimit => "context_limit",
            Self::Aborted { .. } => "aborted",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
        }
    }
}
