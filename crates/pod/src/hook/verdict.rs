//! What hooks answer. A verdict can be made only where its point allows it. It knows no chain.

use super::typed::{Point, PreRequest, PreToolCall, PromptSubmit, TurnEnd};
use crate::record::Decision;
use std::marker::PhantomData;

/// Longest reason of a verdict, in bytes; a longer one is cut.
pub const MAX_REASON: usize = 2 * 1024;

/// A gate's answer at the point `P`.
#[must_use]
pub struct Verdict<P> {
    ruling: Ruling,
    point: PhantomData<fn(P)>,
}

/// What a verdict says, for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    /// This call does not run.
    Deny {
        /// For the model and for people.
        reason: String,
    },
    Abort {
        /// For people.
        reason: String,
    },
    /// Nothing is started by itself until a person goes on.
    Pause {
        /// For people.
        reason: String,
    },
}

impl From<Ruling> for Decision {
    fn from(ruling: Ruling) -> Self {
        match ruling {
            Ruling::Allow => Self::Allow,
            Ruling::Deny { reason } => Self::Refuse { reason },
            Ruling::Abort { reason } => Self::Abort { reason },
            Ruling::Pause { reason } => Self::Pause { reason },
        }
    }
}

impl<P> Verdict<P> {
    fn of(ruling: Ruling) -> Self {
        Self { ruling, point: PhantomData }
    }

    pub(super) fn ruling(self) -> Ruling {
        self.ruling
    }

    pub(super) fn allows(&self) -> bool {
        self.ruling == Ruling::Allow
    }
}

impl<P: MayAllow> Verdict<P> {
    /// Nothing against it.
    pub fn allow() -> Self {
        Self::of(Ruling::Allow)
    }
}

impl<P: MayDeny> Verdict<P> {
    /// Not this call; the model reads why, so say what to do instead.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::of(Ruling::Deny { reason: reason.into() })
    }
}

impl<P: MayAbort> Verdict<P> {
    /// The turn ends here.
    pub fn abort(reason: impl Into<String>) -> Self {
        Self::of(Ruling::Abort { reason: reason.into() })
    }
}

impl<P: MayPause> Verdict<P> {
    /// The turn is over as it is.
    pub fn finish() -> Self {
        Self::of(Ruling::Allow)
    }

    /// A person should look before anything goes on.
    pub fn pause(reason: impl Into<String>) -> Self {
        Self::of(Ruling::Pause { reason: reason.into() })
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
