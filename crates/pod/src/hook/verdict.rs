//! The return values of hooks. Each point allows some verdicts only; others do not compile. It knows no chain.
//!
//! A [`Verdict`] is what an author's gate returns; inside it is the [`Decision`] that the host journals.

use super::typed::{Point, PreRequest, PreToolCall, PromptSubmit, TurnEnd};
use crate::record::Decision;
use std::marker::PhantomData;

/// Longest reason of a verdict, in bytes; a longer one is cut.
pub const MAX_REASON: usize = 2 * 1024;

/// What a gate at the point `P` returns.
#[must_use]
pub struct Verdict<P> {
    decision: Decision,
    point: PhantomData<fn(P)>,
}

impl<P> Verdict<P> {
    fn of(decision: Decision) -> Self {
        Self { decision, point: PhantomData }
    }

    pub(super) fn decision(self) -> Decision {
        self.decision
    }

    pub(super) fn allows(&self) -> bool {
        self.decision.allows()
    }
}

impl<P: MayAllow> Verdict<P> {
    /// Nothing against it.
    pub fn allow() -> Self {
        Self::of(Decision::Allow)
    }
}

impl<P: MayDeny> Verdict<P> {
    /// Not this call; the model reads why, so say what to do instead.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::of(Decision::Refuse { reason: reason.into() })
    }
}

impl<P: MayAbort> Verdict<P> {
    /// The turn ends here.
    pub fn abort(reason: impl Into<String>) -> Self {
        Self::of(Decision::Abort { reason: reason.into() })
    }
}

impl<P: MayPause> Verdict<P> {
    /// The turn is over as it is.
    pub fn finish() -> Self {
        Self::of(Decision::Allow)
    }

    /// A person should look before anything goes on.
    pub fn pause(reason: impl Into<String>) -> Self {
        Self::of(Decision::Pause { reason: reason.into() })
    }
}

/// Points whose gates may allow.
pub trait MayAllow: Point {}
/// Points whose gates may refuse one call.
pub trait MayDeny: Point {}
/// Points whose gates may end the turn.
pub trait MayAbort: Point {}
/// Points whose gates may ask for a person.
pub trait MayPause: Point {}

impl MayAllow for PreToolCall {}
impl MayDeny for PreToolCall {}
impl MayAbort for PreToolCall {}
impl MayAllow for PromptSubmit {}
impl MayAbort for PromptSubmit {}
impl MayAllow for PreRequest {}
impl MayAbort for PreRequest {}
impl MayPause for TurnEnd {}

/// A transform's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Change<V> {
    Unchanged,
    /// Use this instead. The host checks it as it checks any such value, and journals that it was replaced.
    Replaced(V),
}
