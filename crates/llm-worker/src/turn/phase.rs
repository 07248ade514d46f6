//! Where a turn stands. Each phase holds exactly what is there while it lasts.

use super::answer::Answer;
use crate::effect::{Fact, Outcome, Verdict};
use crate::item::CallId;
use std::collections::{BTreeSet, VecDeque};

pub(super) enum Phase {
    /// These facts ride with the next request; the gates were not asked yet.
    Ungated(Vec<Fact>),
    /// The same, and the gates are running.
    Gating(Vec<Fact>),
    /// The commit of a request is under way.
    Sending,
    /// The request is durable and not sent yet.
    Cleared,
    /// The request was sent.
    Streaming(Answer),
    /// The answer is whole; its calls are being judged.
    Judging(Judging),
    /// The commit of an answer with calls is under way; these may run behind it.
    Starting(VecDeque<CallId>),
    /// Calls run.
    Running(Running),
    /// Cancelled; calls that run are ending. Nothing waits to run here.
    Draining(Running),
    /// The commit of the end is under way.
    Ending(Outcome),
    /// The end is durable.
    Ended,
}

impl Phase {
    /// Its name in error messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ungated(_) => "ungated",
            Self::Gating(_) => "gating",
            Self::Sending => "sending",
            Self::Cleared => "cleared",
            Self::Streaming(_) => "streaming",
            Self::Judging(_) => "judging",
            Self::Starting(_) => "starting",
            Self::Running(_) => "running",
            Self::Draining(_) => "draining",
            Self::Ending(_) => "ending",
            Self::Ended => "ended",
        }
    }
}

/// A whole answer whose calls are being judged.
#[derive(Default)]
pub(super) struct Judging {
    /// The answer's items and its response.
    pub(super) answer: Vec<Fact>,
    /// In the answer's order.
    pub(super) calls: Vec<Proposed>,
}

pub(super) struct Proposed {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) standing: Standing,
}

pub(super) enum Standing {
    Proposed,
    Asked,
    Judged(Verdict),
}

/// Calls whose start is durable.
#[derive(Default)]
pub(super) struct Running {
    /// Not handed out yet.
    pub(super) waiting: VecDeque<CallId>,
    /// Handed out, no result yet.
    pub(super) open: BTreeSet<CallId>,
    /// Results that are not durable yet.
    pub(super) done: Vec<Fact>,
}

impl Running {
    pub(super) fn idle(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty()
    }
}
