//! Inputs on their way into the log, one after the other in the order of arrival: gates are called, a large input is
//! stored as a blob, and the commit is awaited. Depends on no turn, only on the end of one.

use super::client::{MAX_SUBMISSIONS, Reply, Submission, SubmitError};
use super::core::Core;
use super::gates;
use super::limits::RunLimits;
use super::pipeline::ActorCommit;
use super::turn_end::TurnEnd;
use crate::hook::{GateOutcome, HookPoint, PromptSubmit, PromptView};
use crate::permission::Remedy;
use crate::record::{Decision, InputQueued, Output, Record, Stored};
use session_store::{BlobError, BlobRef};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use tokio::task::{JoinError, JoinSet};

/// An input up to this many bytes, encoded as JSON, is in the history whole.
pub const MAX_INLINE_INPUT: usize = 256 * 1024;

/// Of a longer input: this much of its beginning and of its end.
const INPUT_ENDS: usize = 16 * 1024;

/// All inputs that no turn has taken yet.
pub(super) struct Submissions {
    /// The newest input that existed when the pod was opened.
    opened_at: u64,
    waiting: VecDeque<Submission>,
    step: Step,
    task: JoinSet<Prepared>,
    /// The limits of the next turn; none while no input waits for it.
    accepted: Option<RunLimits>,
    /// That turn is cancelled as it begins.
    cancelled: bool,
    /// The clients that wait for the end of the next turn, and of the running one.
    next: Vec<Reply>,
    current: Vec<Reply>,
}

/// The stage of the oldest input.
#[derive(Default)]
enum Step {
    #[default]
    Waiting,
    Preparing(Submission),
    /// Its commit is in flight.
    Committing {
        submission: Submission,
        /// The reason if a gate refused it.
        refused: Option<String>,
        /// How many records of the start precede it.
        preamble: usize,
    },
}

/// The decision of gates about an input, and its blob if it is large.
pub(super) struct Prepared {
    outcome: GateOutcome,
    whole: Option<Result<BlobRef, BlobError>>,
}

impl Submissions {
    pub(super) fn new(opened_at: u64) -> Self {
        let (waiting, next, current) = (VecDeque::new(), Vec::new(), Vec::new());
        Self {
            opened_at,
            waiting,
            step: Step::Waiting,
            task: JoinSet::new(),
            accepted: None,
            next,
            current,
            cancelled: false,
        }
    }

    pub(super) fn take(&mut self, submission: Submission) {
        let on_the_way = usize::from(!matches!(self.step, Step::Waiting));
        if self.waiting.len() + on_the_way + self.next.len() < MAX_SUBMISSIONS {
            self.waiting.push_back(submission);
        } else {
            // A client that has ended gets no answer.
            drop(submission.reply.send(Err(SubmitError::Busy)));
        }
    }

    /// Whether no input is on its way to the log.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && matches!(self.step, Step::Waiting)
    }

    /// Cancels the turn that will take the inputs on their way, if there are any.
    pub(super) fn cancel(&mut self) {
        self.cancelled = !self.is_idle() || self.accepted.is_some();
    }

    /// Starts a turn if there is a new input: returns its limits, and whether it is cancelled.
    pub(super) fn begin_turn(&mut self) -> Option<(RunLimits, bool)> {
        let limits = self.accepted.take()?;
        self.current.append(&mut self.next);
        Some((limits, std::mem::take(&mut self.cancelled)))
    }

    /// Sends the end of a turn to the clients that wait for it.
    pub(super) fn turn_ended(&mut self, end: &TurnEnd) {
        for reply in self.current.drain(..) {
            drop(reply.send(Ok(end.clone())));
        }
    }

    /// Starts with the next input, unless one is on its way. The records of `preamble` go into the log before it.
    pub(super) fn advance(&mut self, core: &mut Core, preamble: &mut Vec<Record>) {
        if !matches!(self.step, Step::Waiting) {
            return;
        }
        let Some(submission) = self.waiting.pop_front() else { return };
        let is_large = encoded_len(&submission.text) > MAX_INLINE_INPUT;
        if !is_large && !core.registry.hooks().any::<PromptSubmit>("") {
            return self.commit(
                core,
                preamble,
                submission,
                &GateOutcome { decision: Decision::Allow, runs: Vec::new() },
                None,
            );
        }
        let (registry, callbacks, blobs) = (core.registry.clone(), core.callbacks.clone(), core.store.blobs.clone());
        let text = submission.text.clone();
        self.step = Step::Preparing(submission);
        self.task.spawn(async move {
            let view = || PromptView { text: text.clone() };
            let outcome = registry.hooks().decide::<PromptSubmit>(&callbacks, view).await;
            if !is_large || gates::refusal(&outcome).is_some() {
                return Prepared { outcome, whole: None };
            }
            match callbacks.runtime().spawn_blocking(move || blobs.put(text.as_bytes())).await {
                Ok(stored) => Prepared { outcome, whole: Some(stored) },
                Err(panic) => resume_unwind(panic.into_panic()),
            }
        });
    }

    /// The next prepared input; pending while none is prepared. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Prepared, JoinError> {
        match self.task.join_next().await {
            Some(prepared) => prepared,
            None => std::future::pending().await,
        }
    }

    /// Commits a prepared input, or returns its error to the client.
    pub(super) fn prepared(&mut self, core: &mut Core, preamble: &mut Vec<Record>, prepared: Prepared) {
        let Step::Preparing(submission) = std::mem::take(&mut self.step) else { return };
        match prepared.whole.transpose() {
            Ok(stored) => {
                let whole = stored.map(|stored| Output::from(Stored::from(stored)));
                self.commit(core, preamble, submission, &prepared.outcome, whole);
            }
            Err(error) => drop(submission.reply.send(Err(error.into()))),
        }
    }

    fn commit(
        &mut self,
        core: &mut Core,
        preamble: &mut Vec<Record>,
        submission: Submission,
        outcome: &GateOutcome,
        whole: Option<Output>,
    ) {
        let mut records = std::mem::take(preamble);
        let preamble = records.len();
        records.extend(gates::verdicts(HookPoint::PromptSubmit, None, outcome).into_iter().map(Record::from));
        let refused = gates::refusal(outcome);
        if refused.is_none() {
            let input = core.state.inputs + 1;
            let text = match &whole {
                Some(whole) => shortened(core, &submission.text, whole),
                None => submission.text.clone(),
            };
            // A client that got an error may submit the input again: it is the same input.
            let waited = core.state.queued.last_key_value().filter(|(input, _)| **input <= self.opened_at);
            if waited.is_none_or(|(_, waiting)| *waiting != text) {
                records.push(InputQueued { input, text, whole }.into());
            }
        }
        self.step = Step::Committing { submission, refused, preamble };
        if records.is_empty() {
            return self.commit_ended();
        }
        core.append_actor_commit(ActorCommit::Input, records);
    }

    /// The input's commit has ended.
    pub(super) fn commit_ended(&mut self) {
        let Step::Committing { submission: Submission { reply, limits, .. }, refused, .. } =
            std::mem::take(&mut self.step)
        else {
            return;
        };
        match refused {
            Some(reason) => {
                self.cancelled &= self.accepted.is_some();
                drop(reply.send(Ok(TurnEnd::refused(reason))));
            }
            None => {
                self.accepted = Some(self.accepted.map_or(limits, |others| others.meet(limits)));
                self.next.push(reply);
            }
        }
    }

    /// The input's commit can never be stored: its client gets an error, and the records of the start wait for the next
    /// input.
    pub(super) fn unstorable(&mut self, waiting: &mut Vec<Record>, mut records: Vec<Record>, reason: String) {
        let Step::Committing { submission, preamble, .. } = std::mem::take(&mut self.step) else { return };
        records.truncate(preamble);
        records.append(waiting);
        *waiting = records;
        self.cancelled &= self.accepted.is_some();
        drop(submission.reply.send(Err(SubmitError::Unstorable(reason))));
    }
}

/// Both ends of a text, and the handle of the whole.
fn shortened(core: &Core, text: &str, whole: &Output) -> String {
    let head = text.get(..text.floor_char_boundary(INPUT_ENDS)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - INPUT_ENDS)..).unwrap_or_default();
    let missing = text.len() - head.len() - tail.len();
    let hint = (core.permission.policy.terms.remedy)(&Remedy::PageOutput(whole.handle.clone()));
    format!("{head}\n[… {missing} of {} bytes left out; {hint}]\n{tail}", text.len())
}

/// Bytes of the text as a JSON string: at least its own, at most six times as many.
fn encoded_len(text: &str) -> usize {
    text.bytes().map(|byte| if byte < 0x20 { 6 } else { 1 + usize::from(matches!(byte, b'"' | b'\\')) }).sum()
}
