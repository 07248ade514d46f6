//! The return values of hooks. Each point allows some verdicts only; others do not compile.
//!
//! An author's gate returns a [`Verdict`]; it contains the [`Decision`] that the host journals.

use super::typed::{Point, PreRequest, PreToolCall, PromptSubmit, TurnEnd};
use crate::record::Decision;
use std::marker::PhantomData;

/// Bytes of the reason of a verdict; a longer text is cut.
pub const MAX_REASON: usize = 2 * 1024;

/// The return value of a gate at the point `P`; `P` decides which constructors exist.
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
    /// Allow; a later gate may still refuse.
    pub fn allow() -> Self {
        Self::of(Decision::Allow)
    }
}

impl<P: MayDeny> Verdict<P> {
    /// Refuse this call. The model reads the reason: name an alternative.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::of(Decision::Refuse { reason: reason.into() })
    }
}

impl<P: MayAbort> Verdict<P> {
    /// Refuse, and end the turn.
    pub fn abort(reason: impl Into<String>) -> Self {
        Self::of(Decision::Abort { reason: reason.into() })
    }
}

impl<P: MayPause> Verdict<P> {
    /// Let the turn end as it is.
    pub fn finish() -> Self {
        Self::of(Decision::Allow)
    }

    /// Let the turn end, and report that a person should look at the result before another turn starts.
    pub fn pause(reason: impl Into<String>) -> Self {
        Self::of(Decision::Pause { reason: reason.into() })
    }
}

/// Implemented by the points whose gates can return [`Verdict::allow`].
pub trait MayAllow: Point {}
/// Implemented by the points whose gates can return [`Verdict::deny`].
pub trait MayDeny: Point {}
/// Implemented by the points whose gates can return [`Verdict::abort`].
pub trait MayAbort: Point {}
/// Implemented by the points whose gates can return [`Verdict::finish`] or [`Verdict::pause`].
pub trait MayPause: Point {}

impl MayAllow for PreToolCall {}
impl MayDeny for PreToolCall {}
impl MayAbort for PreToolCall {}
impl MayAllow for PromptSubmit {}
impl MayAbort for PromptSubmit {}
impl MayAllow for PreRequest {}
impl MayAbort for PreRequest {}
impl MayPause for TurnEnd {}

/// The return value of a transform.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Change<V> {
    Unchanged,
    /// Use this value instead. The host checks it like the original and journals the replacement.
    Replaced(V),
}
