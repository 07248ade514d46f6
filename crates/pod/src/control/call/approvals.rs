//! What waits for approval: answers of people, of which the first valid one counts and every later one gets that, and the end of a
//! question that nobody answers. Does not depend on the turn machine.

use crate::control::submit_error::SubmitError;
use crate::control::tasks::supervisor::MAX_SLEEP_MS;
use crate::hook::MAX_EXPIRY;
use crate::record::{
    ApprovalDecision, ApprovalId, ApprovalRequested, ApprovalResolved, ApprovalScope, InputMode,
    Who,
};
use crate::session::approvals::Approvals;
use crate::session::fold::SessionState;
use crate::session::queue::QueuedInput;
use session_store::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Clients that may wait for the record of an answer.
const MAX_WAITING: usize = 256;

/// Bytes of the words of a person who denies.
pub const MAX_DENIAL: usize = 2 * 1024;

/// The channel to a client for the answer that counts.
type RecordedReply = oneshot::Sender<Result<ApprovalResolved, SubmitError>>;

/// A person's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalAnswer {
    pub approval: ApprovalId,
    pub allow: bool,
    pub scope: ApprovalScope,
    /// As in the question: an answer about other arguments is none.
    pub arguments_digest: String,
    /// For the model, of a person who denies.
    pub words: Option<String>,
    pub by: Option<Who>,
}

impl ApprovalAnswer {
    /// The denial by an input that its client sent instead of an answer.
    fn instead(asked: &ApprovalRequested, input: &QueuedInput) -> Self {
        Self {
            approval: asked.approval,
            allow: false,
            scope: ApprovalScope::Once,
            arguments_digest: asked.arguments_digest.clone(),
            words: Some("another input came instead".to_owned()),
            by: input.by.clone(),
        }
    }

    /// The record of the answer. `void`: why it counts for nothing.
    pub(crate) fn record(self, void: Option<String>) -> ApprovalResolved {
        let Self {
            approval,
            allow,
            scope,
            arguments_digest,
            words,
            by,
        } = self;
        let decision = match (&void, allow) {
            (Some(_), _) => ApprovalDecision::Void,
            (None, true) => ApprovalDecision::Allow,
            (None, false) => ApprovalDecision::Deny,
        };
        let scope = if decision == ApprovalDecision::Allow {
            scope
        } else {
            ApprovalScope::Once
        };
        ApprovalResolved {
            approval,
            decision,
            scope,
            arguments_digest,
            reason: void.or(words),
            by,
        }
    }

    /// What the model is told of a denial.
    pub(crate) fn denial(&self) -> String {
        match &self.words {
            Some(words) => format!("a person denied this call: {words}"),
            None => "a person denied this call".to_owned(),
        }
    }
}

/// The clients that wait until an answer is in the log, and answers that no turn can take yet.
#[derive(Default)]
pub(crate) struct ApprovalReplies {
    replies: Vec<(ApprovalId, RecordedReply)>,
    /// In the order of arrival.
    waiting: Vec<ApprovalAnswer>,
}

impl ApprovalReplies {
    /// Accepts an answer, or replies at once.
    pub(crate) fn take(
        &mut self,
        approvals: &Approvals,
        answer: ApprovalAnswer,
        reply: RecordedReply,
    ) {
        let error = match (
            approvals.open.get(&answer.approval),
            approvals.answer(answer.approval),
        ) {
            (_, Some(resolved)) => return drop(reply.send(Ok(resolved.clone()))),
            (None, None) => SubmitError::NoApproval(answer.approval),
            (Some(open), None) => match unfit(open, &answer) {
                Some(error) => error,
                None if self.replies.len() >= MAX_WAITING => {
                    SubmitError::TooMany("too many answers are waiting".to_owned())
                }
                None => {
                    self.replies.push((answer.approval, reply));
                    self.waiting.push(answer);
                    return;
                }
            },
        };
        drop(reply.send(Err(error)));
    }

    /// The answers for the turn that runs, with their questions. An input that comes instead of what waits denies all of it.
    pub(crate) fn due(
        &mut self,
        state: &SessionState,
    ) -> Vec<(Arc<ApprovalRequested>, ApprovalAnswer)> {
        let open = &state.approvals.open;
        let instead = state
            .queued
            .iter()
            .find(|waiting| waiting.mode == InputMode::DenyParked);
        let denied = instead.into_iter().flat_map(|input| {
            open.values()
                .map(|asked| ApprovalAnswer::instead(asked, input))
        });
        let waiting = std::mem::take(&mut self.waiting).into_iter().chain(denied);
        waiting
            .filter_map(|answer| Some((open.get(&answer.approval)?.clone(), answer)))
            .collect()
    }

    /// Replies to the clients whose answers are in the log by now.
    pub(crate) fn recorded(&mut self, approvals: &Approvals) {
        let answered = |(approval, _): &mut (ApprovalId, _)| !approvals.open.contains_key(approval);
        for (approval, reply) in self.replies.extract_if(.., answered) {
            let recorded = approvals
                .answer(approval)
                .cloned()
                .ok_or(SubmitError::NoApproval(approval));
            // The client may have ended.
            drop(reply.send(recorded));
        }
    }
}

/// Why an answer cannot be one to this question.
fn unfit(open: &ApprovalRequested, answer: &ApprovalAnswer) -> Option<SubmitError> {
    if answer.arguments_digest != open.arguments_digest {
        return Some(SubmitError::OtherArguments(answer.approval));
    }
    if answer
        .words
        .as_ref()
        .is_some_and(|words| words.len() > MAX_DENIAL)
    {
        return Some(SubmitError::TooLong(format!(
            "the words of a denial can have at most {MAX_DENIAL} bytes"
        )));
    }
    match answer.scope {
        ApprovalScope::Once => None,
        ApprovalScope::Pod | ApprovalScope::Rule if open.rules.is_empty() => {
            Some(SubmitError::NoRule(answer.approval))
        }
        ApprovalScope::Rule if !open.configurable => {
            Some(SubmitError::NoConfigurableRule(answer.approval))
        }
        ApprovalScope::Pod | ApprovalScope::Rule => None,
    }
}

/// When the questions end that wait: by the wall clock, or by the time that this process has waited, whichever comes first.
///
/// The wall clock may be set. Set forward, it ends a question at the next look; set back, it does not make one wait longer.
#[derive(Default)]
pub(crate) struct ApprovalEnds(BTreeMap<ApprovalId, End>);

struct End {
    /// By the wall clock, in milliseconds since 1970.
    at_ms: u64,
    /// By the time that passes for this process.
    at: Instant,
}

impl ApprovalEnds {
    /// Takes the questions that wait now, and returns those that have ended.
    pub(crate) fn ended(
        &mut self,
        waiting: &[Arc<ApprovalRequested>],
        clock: &Clock,
    ) -> Vec<Arc<ApprovalRequested>> {
        self.0
            .retain(|id, _| waiting.iter().any(|asked| asked.approval == *id));
        let ends: Vec<_> = waiting
            .iter()
            .filter_map(|asked| Some((asked, asked.expires?)))
            .collect();
        if ends.is_empty() {
            return Vec::new();
        }
        let now_ms = clock() / 1000;
        let now = Instant::now();
        let mut ended = Vec::new();
        for (asked, expires) in ends {
            let left =
                Duration::from_millis(expires.at_ms.saturating_sub(now_ms).min(expires.after_ms));
            let first = End {
                at_ms: expires.at_ms,
                at: now + left.min(MAX_EXPIRY),
            };
            let end = self.0.entry(asked.approval).or_insert(first);
            if end.at_ms <= now_ms || end.at <= now {
                ended.push(Arc::clone(asked));
            }
        }
        ended
    }

    /// When to look again at the latest; none if no question ends by itself.
    pub(crate) fn look_at(&self, clock: &Clock) -> Option<Instant> {
        let next = |end: &End, now_ms: u64, now: Instant| {
            let left = end.at_ms.saturating_sub(now_ms).min(MAX_SLEEP_MS);
            end.at.min(now + Duration::from_millis(left))
        };
        if self.0.is_empty() {
            return None;
        }
        let now_ms = clock() / 1000;
        let now = Instant::now();
        self.0.values().map(|end| next(end, now_ms, now)).min()
    }
}
