//! The effects, inputs and facts that pass between a turn and its host. Does not depend on the phases of a turn.

use crate::item::{CallId, Item, ToolOutcome};
use crate::model::{ModelError, ModelEvent, Shortfall, StopReason, Usage};
use crate::payload::{CommitRequest, Payload};
use crate::projection::ModelRequest;
pub use protocol::event::DeltaPart as Delta;
pub use protocol::outcome::Outcome;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of a turn that must be durable before the turn continues; the host writes each as a record. The facts of
/// one [`CommitRequest`] are one atomic batch, in this order in the journal; [`Fact::Note`], [`Fact::Item`] and
/// [`Fact::Finished`] are what the model sees, in the order it sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<P: Payload> {
    /// The turn started; the first fact of every turn.
    TurnStarted,
    /// An item that the host added: user or system.
    Note(P::Note),
    /// An item of the model's answer, or one that the turn added: reasoning, assistant, tool call or system. Never a
    /// result. A tool call is the model's, or the [`NewCall`] that the turn started with.
    Item(Item),
    /// The answer is complete.
    Response {
        stop: StopReason,
        /// The tokens of the answer and of the failed attempts before it.
        usage: Usage,
        shortfall: Option<Shortfall>,
    },
    /// A call was judged, or gates decided before a request. A call without this fact was not judged, because the turn
    /// ended first.
    Judged(P::AuthorizationRecord),
    /// A call waits for a person. It has no start and no result until its [`Fact::Resolved`], also across turns.
    Parked { call: CallId, question: P::Question },
    /// A person answered for a parked call; its start or its result is the next fact.
    Resolved(P::Resolution),
    /// An allowed call is about to run.
    Started { call: CallId, start: P::Start },
    /// A call has its result: exactly one per call.
    Finished {
        call: CallId,
        outcome: ToolOutcome,
        /// The host's record of the end, for a call that started and whose result could be stored.
        ending: Option<P::Ending>,
    },
    /// A request is about to be sent. It contains all items before this fact.
    Request(RequestFact),
    /// The turn is over; its last fact.
    TurnFinished(Outcome),
}

impl<P: Payload> Fact<P> {
    /// What the model sees of it.
    #[must_use]
    pub fn item(&self) -> Option<Cow<'_, Item>> {
        match self {
            Self::Note(note) => Some(Cow::Owned(P::item(note))),
            Self::Item(item) => Some(Cow::Borrowed(item)),
            Self::Finished { call, outcome, .. } => Some(Cow::Owned(Item::ToolResult {
                id: *call,
                outcome: outcome.clone(),
            })),
            Self::TurnStarted
            | Self::Response { .. }
            | Self::Judged(_)
            | Self::Parked { .. }
            | Self::Resolved(_)
            | Self::Started { .. }
            | Self::Request(_)
            | Self::TurnFinished(_) => None,
        }
    }
}

/// Identifies a request, so that the request can be rebuilt from the journal and compared with the one that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFact {
    /// Its number in the session, from 1.
    pub number: u64,
    /// The generation of the tool surface.
    pub generation: u64,
    /// How many items it holds.
    pub items: u64,
    /// BLAKE3 of the request in the [`crate::Neutral`] encoding, lower-case hex.
    pub neutral_digest: String,
    pub dialect: String,
    pub dialect_version: u16,
    /// BLAKE3 of the bytes sent, lower-case hex.
    pub body_digest: String,
    pub body_len: u64,
}

/// The decision on one call before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallVerdict<P: Payload> {
    /// The call runs with this start record.
    Allow(P::Start),
    /// The call waits until [`Input::Resolved`].
    Ask(P::Question),
    /// Permission or a gate denied the call. The reason goes to the model and to people.
    Refuse { reason: String },
    /// The tool does not exist or its arguments are invalid. The text says what to change.
    Invalid { problem: String },
    /// The call does not run and the turn ends. The reason is for people.
    Abort { reason: String },
}

impl From<ModelError> for Outcome {
    fn from(error: ModelError) -> Self {
        Self::ModelFailed {
            kind: error.kind,
            message: short(error.message),
            help: error.help.map(short),
        }
    }
}

/// The most bytes of a provider's stop reason or error message that are kept. A server controls their length, and they
/// have to fit into a record.
pub const MAX_REASON: usize = 8 << 10;

pub(crate) fn short(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(MAX_REASON));
    words
}

/// The next action of the host, from [`crate::Turn::poll`]. The host answers each with exactly one [`Input`], also when
/// the task that performs it has failed; `Delta`, `CancelModel`, `CancelTool` and `Finished` have no answer.
#[derive(Debug)]
pub enum Effect<P: Payload> {
    /// Run the gates before a request. Answered by [`Input::Gated`].
    Gate,
    /// Make these facts durable. Answered by [`Input::Committed`], [`Input::Refused`] or
    /// [`Input::Unstorable`].
    Commit(CommitRequest<P>),
    /// Send this request. Answered by [`Input::Model`] events up to a stop, or [`Input::ModelFailed`].
    Send(ModelRequest),
    /// For the screen; not durable.
    Delta(Delta),
    /// Decide on this call. Answered by [`Input::Judged`].
    Judge(CallView),
    /// Run this call. Answered by [`Input::ToolDone`].
    Run(ToolRun<P>),
    /// Drop the stream. Events that still arrive are ignored until the next [`Effect::Send`]; the host must not pass
    /// them after it.
    CancelModel,
    /// Cancel this call. The host still answers its `Run`, within its grace period.
    CancelTool(CallId),
    /// The turn's end is durable; take the history with [`crate::Turn::finish`]. Answers to effects that an early end
    /// withdrew may still arrive. They belong to this turn and must not reach the next one.
    Finished(Outcome),
}

/// A call that the host supplies in place of an answer of the model; see [`crate::Turn::start_call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCall {
    /// The tool's name.
    pub name: String,
    /// Raw argument text, as a model would write it.
    pub arguments: String,
}

/// A call that was proposed, for the host to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    pub id: CallId,
    /// The tool's name as it was written; need not exist.
    pub name: String,
    /// Raw argument text; need not be JSON.
    pub arguments: String,
}

/// Permits the host to run one call, whose start is durable. Only the turn machine creates it.
#[derive(Debug)]
pub struct ToolRun<P: Payload> {
    id: CallId,
    start: P::Start,
}

impl<P: Payload> ToolRun<P> {
    /// Called only by `turn`, once per acknowledged [`Fact::Started`].
    pub(crate) fn new(id: CallId, start: P::Start) -> Self {
        Self { id, start }
    }

    /// The call that may start.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.id
    }

    /// The host's payload that was committed with the start.
    #[must_use]
    pub fn into_start(self) -> P::Start {
        self.start
    }
}

/// An event that the host passes to [`crate::Turn::handle`]: an answer to an [`Effect`], or a request to end or hold the turn.
#[derive(Debug)]
pub enum Input<P: Payload> {
    /// The gates have run.
    Gated(Gated<P>),
    /// An event of the model's stream.
    Model(ModelEvent),
    /// The request failed; no complete answer will arrive.
    ModelFailed(ModelError),
    /// The request failed, and is sent once more: [`Effect::Send`] follows. Nothing of its answer so far counts but the
    /// tokens.
    SendAgain,
    /// Gates saw the answer that the next stop completes. With `halt`, the answer is kept, none of its calls runs, and the
    /// turn ends as [`Outcome::Aborted`] with this reason.
    Reviewed {
        authorization: P::AuthorizationRecord,
        halt: Option<String>,
    },
    /// A call was judged.
    Judged {
        id: CallId,
        verdict: CallVerdict<P>,
        authorization: P::AuthorizationRecord,
    },
    /// A call ended, in whichever way.
    ToolDone {
        id: CallId,
        /// Its result, bounded by the host.
        outcome: ToolOutcome,
        ending: P::Ending,
    },
    /// A person answered for a parked call: it runs with this start, or it is refused for this reason.
    Resolved {
        id: CallId,
        resolution: P::Resolution,
        run: Result<P::Start, String>,
    },
    /// The commit in flight is durable.
    Committed(P::Proof),
    /// The commit in flight failed and will not become durable.
    Refused(CommitRequest<P>),
    /// The commit in flight can never become durable, as it is too large. The turn drops the cause and ends as
    /// [`Outcome::Aborted`] with this reason, which is for people.
    Unstorable {
        request: CommitRequest<P>,
        reason: String,
    },
    /// Retry the refused commit: the disk may accept writes again.
    Resume,
    /// Wait before the next request, with everything so far durable; see [`crate::Turn::is_held`]. Gates that run are
    /// asked again after the release. Without another request the turn just ends. Legal at any time, any number of
    /// times.
    Hold,
    /// End the hold, or withdraw it before it takes effect. Legal at any time, any number of times.
    Release,
    /// End the turn early, as [`Outcome::Cancelled`]. Legal at any time, any number of times. Of this and
    /// [`Self::Leave`], the first decides; both change nothing once the turn has another end.
    Cancel,
    /// End the turn early because the host leaves, as [`Outcome::Interrupted`]; otherwise like [`Self::Cancel`]. Parked
    /// calls stay open; with one the outcome is [`Outcome::Waiting`].
    Leave,
}

/// The decision of the gates before a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gated<P: Payload> {
    /// The record of their verdicts; written before the other facts.
    pub authorization: Option<P::AuthorizationRecord>,
    /// Items to add to the request.
    pub notes: Vec<P::Note>,
    /// End the turn instead of sending the request; the notes are kept.
    pub stop: Option<TurnStop>,
}

impl<P: Payload> Default for Gated<P> {
    fn default() -> Self {
        Self {
            authorization: None,
            notes: Vec::new(),
            stop: None,
        }
    }
}

/// Why a turn ends before its next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnStop {
    /// The host's cost limit is reached.
    CostLimit,
    /// The host's limit on tokens is reached.
    TokenLimit,
    /// The host's limit on time is reached.
    TimeLimit,
    /// The next request does not fit the model's context window.
    ContextLimit,
    /// A gate ended the turn; the reason is for people.
    Aborted { reason: String },
}

impl From<TurnStop> for Outcome {
    fn from(stop: TurnStop) -> Self {
        match stop {
            TurnStop::CostLimit => Self::CostLimit,
            TurnStop::TokenLimit => Self::TokenLimit,
            TurnStop::TimeLimit => Self::TimeLimit,
            TurnStop::ContextLimit => Self::ContextLimit,
            TurnStop::Aborted { reason } => Self::Aborted { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_a_server_says_of_a_failure_fits_a_record() {
        let long = "é".repeat(1 << 20);
        let error = ModelError {
            kind: ErrorKind::Unavailable,
            message: long.clone(),
            help: Some(long),
        };
        let Outcome::ModelFailed { message, help, .. } = Outcome::from(error) else {
            panic!("a failure")
        };
        assert_eq!(
            (message.len(), help.map(|help| help.len())),
            (MAX_REASON, Some(MAX_REASON))
        );
    }
}
