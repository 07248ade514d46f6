//! The return values of hooks. Each point allows some verdicts only; others do not compile.
//!
//! An author's gate returns a [`Verdict`]; it contains the [`Decision`] that the host journals.

use super::typed::{
    Point, PostAssistant, PreCompaction, PreRequest, PreToolCall, PromptSubmit, TurnEnd, TurnError,
};
use crate::feature::millis;
use crate::record::Decision;
use std::marker::PhantomData;
use std::time::Duration;

/// Bytes of the reason of a verdict; a longer text is cut.
pub const MAX_REASON: usize = 2 * 1024;

/// Requests that gates may have sent again in one turn.
pub const MAX_RETRIES: u32 = 3;

/// The longest wait before a request that a gate has sent again.
pub const MAX_RETRY_WAIT: Duration = Duration::from_secs(5 * 60);

/// The longest time that [`Verdict::expires_after`] takes.
pub const MAX_EXPIRY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Turns that gates may add to one input of a person.
pub const MAX_AGAIN: u64 = 3;

/// Bytes of the words of such a turn; a longer text is cut.
pub const MAX_AGAIN_WORDS: usize = 8 * 1024;

/// The return value of a gate at the point `P`; `P` decides which constructors exist.
#[must_use]
pub struct Verdict<P> {
    decision: Decision,
    point: PhantomData<fn(P)>,
}

impl<P> Verdict<P> {
    pub(super) fn of(decision: Decision) -> Self {
        Self {
            decision,
            point: PhantomData,
        }
    }

    pub(super) fn decision(self) -> Decision {
        self.decision
    }

    /// Whether the next gate is asked.
    pub(super) fn goes_on(&self) -> bool {
        !self.decision.refuses()
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
        Self::of(Decision::Refuse {
            reason: reason.into(),
        })
    }
}

impl<P: MayAsk> Verdict<P> {
    /// Ask a person; a later gate may still refuse. The call waits, also across restarts, while other calls run. Several
    /// questions about one call are one approval. Where nobody can answer, the call is refused with the question as reason.
    pub fn ask(question: impl Into<String>) -> Self {
        Self::of(Decision::Ask {
            question: question.into(),
            expires_after_ms: None,
        })
    }

    /// Deny the call when nobody has answered for this time, at least a second and at most [`MAX_EXPIRY`]. The host
    /// denies it also if the time ends while the pod is stopped: at its next start. Of several questions about one call
    /// the earliest end counts. Changes only a verdict that asks.
    pub fn expires_after(mut self, time: Duration) -> Self {
        if let Decision::Ask {
            expires_after_ms, ..
        } = &mut self.decision
        {
            *expires_after_ms = Some(millis(time.clamp(Duration::from_secs(1), MAX_EXPIRY)));
        }
        self
    }
}

impl<P: MayAbort> Verdict<P> {
    /// Refuse, and end the turn.
    pub fn abort(reason: impl Into<String>) -> Self {
        Self::of(Decision::Abort {
            reason: reason.into(),
        })
    }
}

impl<P: MayFinish> Verdict<P> {
    /// Let the turn end as it is.
    pub fn finish() -> Self {
        Self::of(Decision::Allow)
    }
}

impl<P: MayRetry> Verdict<P> {
    /// Let the turn end without an answer.
    pub fn give_up() -> Self {
        Self::of(Decision::Allow)
    }

    /// Send the request again after this time, at most [`MAX_RETRY_WAIT`]: at most [`MAX_RETRIES`] times in one turn,
    /// and only after errors of the kinds `Retry` and `Unavailable`.
    pub fn retry(after: Duration) -> Self {
        let after = after.min(MAX_RETRY_WAIT);
        Self::of(Decision::Retry {
            after_ms: millis(after),
        })
    }
}

impl<P: MayGoOn> Verdict<P> {
    /// Have the model go on in another turn with these words, at most [`MAX_AGAIN`] times for one input of a person and
    /// within its limits. A gate that pauses wins.
    pub fn again(words: impl Into<String>) -> Self {
        Self::of(Decision::Again {
            words: words.into(),
        })
    }
}

impl<P: MayPause> Verdict<P> {
    /// Let the turn end, and report that a person should look at the result before another turn starts.
    pub fn pause(reason: impl Into<String>) -> Self {
        Self::of(Decision::Pause {
            reason: reason.into(),
        })
    }
}

/// Implemented by the points whose gates can return [`Verdict::allow`].
pub trait MayAllow: Point {}
/// Implemented by the points whose gates can return [`Verdict::deny`].
pub trait MayDeny: Point {}
/// Implemented by the points whose gates can return [`Verdict::ask`].
pub trait MayAsk: Point {}
/// Implemented by the points whose gates can return [`Verdict::abort`].
pub trait MayAbort: Point {}
/// Implemented by the points whose gates can return [`Verdict::finish`].
pub trait MayFinish: Point {}
/// Implemented by the points whose gates can return [`Verdict::pause`].
pub trait MayPause: Point {}
/// Implemented by the points whose gates can return [`Verdict::give_up`] or [`Verdict::retry`].
pub trait MayRetry: Point {}
/// Implemented by the points whose gates can return [`Verdict::again`].
pub trait MayGoOn: Point {}

impl MayAllow for PreToolCall {}
impl MayDeny for PreToolCall {}
impl MayAsk for PreToolCall {}
impl MayAbort for PreToolCall {}
impl MayAllow for PromptSubmit {}
impl MayAbort for PromptSubmit {}
impl MayAllow for PreRequest {}
impl MayAbort for PreRequest {}
impl MayAllow for PreCompaction {}
impl MayDeny for PreCompaction {}
impl MayAllow for PostAssistant {}
impl MayAbort for PostAssistant {}
impl MayRetry for TurnError {}
impl MayPause for TurnError {}
impl MayFinish for TurnEnd {}
impl MayPause for TurnEnd {}
impl MayGoOn for TurnEnd {}

/// The return value of a transform.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Change<V> {
    Unchanged,
    /// Use this value instead. The host checks it like the original and journals the replacement.
    Replaced(V),
}
