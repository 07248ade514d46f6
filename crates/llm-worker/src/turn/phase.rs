//! The phases of a turn. Each phase holds exactly the data it needs.

use super::Payload;
use super::answer::Answer;
use crate::effect::{CallVerdict, Fact, Outcome};
use crate::item::CallId;
use std::collections::{BTreeSet, VecDeque};

pub(super) enum Phase<P: Payload> {
    /// These facts are committed with the next request; the gates have not run yet.
    BeforeGate(Vec<Fact<P>>),
    /// These facts are committed with the next request; the gates are running.
    Gating(Vec<Fact<P>>),
    /// The commit of the facts before a hold is under way.
    Holding,
    /// Held: nothing is pending and nothing is under way.
    Held,
    /// The commit of a request is under way.
    Sending,
    /// The request is durable and not sent yet.
    Cleared,
    /// The request was sent.
    Streaming(Answer),
    /// The answer is complete; its calls are being judged.
    Judging(Judging<P>),
    /// The commit of an answer after which the turn continues is under way; the calls that it starts run after it.
    Starting,
    /// Calls run.
    Running(RunningCalls<P>),
    /// The turn ends early with this outcome, after the commit under way and the calls that run. Nothing waits to run
    /// here.
    Draining(RunningCalls<P>, Outcome),
    /// The commit of the end is under way.
    Ending(Outcome),
    /// The end is durable.
    Ended,
}

impl<P: Payload> Phase<P> {
    /// Its name in error messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::BeforeGate(_) => "before its gates",
            Self::Gating(_) => "gating",
            Self::Holding => "holding",
            Self::Held => "held",
            Self::Sending => "sending",
            Self::Cleared => "cleared",
            Self::Streaming(_) => "streaming",
            Self::Judging(_) => "judging",
            Self::Starting => "starting",
            Self::Running(_) => "running",
            Self::Draining(..) => "draining",
            Self::Ending(_) => "ending",
            Self::Ended => "ended",
        }
    }
}

/// A complete answer whose calls are being judged.
pub(super) struct Judging<P: Payload> {
    /// The answer's items and its response.
    pub(super) answer: Vec<Fact<P>>,
    /// In the answer's order.
    pub(super) calls: Vec<Proposed<P>>,
}

/// What gates said of a complete answer.
pub(super) struct Review<P: Payload> {
    pub(super) authorization: P::AuthorizationRecord,
    /// Why the turn ends with this answer.
    pub(super) halt: Option<String>,
}

pub(super) struct Proposed<P: Payload> {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) state: CallState<P>,
}

/// How far a call of the answer is on its way to permission.
pub(super) enum CallState<P: Payload> {
    /// The model proposed it; the host was not asked yet.
    Proposed,
    /// The host was asked and has not answered.
    Asked,
    Judged(CallVerdict<P>, P::AuthorizationRecord),
}

impl<P: Payload> Default for Judging<P> {
    fn default() -> Self {
        Self {
            answer: Vec::new(),
            calls: Vec::new(),
        }
    }
}

/// Calls whose start is durable, until their results are.
pub(super) struct RunningCalls<P: Payload> {
    /// Not yet returned as [`Effect::Run`](crate::Effect::Run).
    pub(super) waiting: VecDeque<(CallId, P::Start)>,
    /// Running; no result yet.
    pub(super) open: BTreeSet<CallId>,
    /// Results that are not durable yet.
    pub(super) done: Vec<Fact<P>>,
    /// Waiting for a person.
    pub(super) parked: BTreeSet<CallId>,
    /// Answered by a person; the answers are not on their way to the log yet.
    pub(super) answered: Vec<Answered<P>>,
}

/// A person's answer for a parked call: its start, or why it does not run.
pub(super) struct Answered<P: Payload> {
    pub(super) call: CallId,
    pub(super) resolution: P::Resolution,
    pub(super) run: Result<P::Start, String>,
}

impl<P: Payload> Default for RunningCalls<P> {
    fn default() -> Self {
        let waiting = VecDeque::new();
        let open = BTreeSet::new();
        let done = Vec::new();
        Self {
            waiting,
            open,
            done,
            parked: BTreeSet::new(),
            answered: Vec::new(),
        }
    }
}

impl<P: Payload> RunningCalls<P> {
    /// Whether nothing runs or is about to.
    pub(super) fn is_still(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty() && self.answered.is_empty()
    }

    /// Whether every call has its result.
    pub(super) fn idle(&self) -> bool {
        self.is_still() && self.parked.is_empty()
    }
}

/// Requests to the host that were withdrawn; their answers are ignored when they arrive.
#[derive(Default)]
pub(super) struct Withdrawn {
    pub(super) gate: bool,
    pub(super) model: bool,
    pub(super) verdicts: BTreeSet<CallId>,
}
