//! One turn: from input to final answer, as a state machine that does no I/O and reads no clock.
//!
//! The host calls [`Turn::handle`] with what happened, then [`Turn::poll`] until it returns `None`, and performs
//! each [`Effect`]. Commits are yielded last, and only one is in flight, so facts that wait for it become one batch.
//!
//! ```text
//!  start
//!    ▼
//!  BeforeGate <───────────────────────────────┐
//!    │ └─ Holding ═ pending ═> Held ─ Release >│ if Hold came
//!    │ Gate                                   │
//!  Gating ─ Hold ────────────────────────────>│ every call has its result;
//!    │ Gated                                  │ those not yet durable are pending
//!  Sending ══ pending, added items, Request   │
//!    ║                                        │
//!  Cleared                                    │
//!    │ Send                                   │
//!  Streaming ─ failed, or without calls ─┐    │
//!    │ └─ over a limit ──────────────────│───>│ with words for the model
//!    │ Stop                              │    │
//!  Judging ─ a verdict aborts ───────────┤    │
//!    │ Judge, Judged                     │    │
//!  Starting ══ items, Response, Judged,  │    │
//!    ║ Parked, Started, Finished(not run)│    │
//!  Running ─ Run, ToolDone, Resolved ────┼────┘
//!    │ ══ Finished, while others run;    │
//!    │    Resolved, Started              │
//!    │ Cancel, Leave                     ▼
//!  Draining ─ open calls end ────────> Ending ══ pending, TurnFinished ══> Ended ─ Finished
//! ```
//!
//! `══` is a commit and the only way across: the effects behind it are made on the acknowledgement. If a commit is
//! refused, the machine is [`Turn::suspended`] and yields the same commit again after [`crate::Input::Resume`].
//! `Cancel`, `Leave`, `Hold` and `Release` are legal everywhere; where each phase goes is in `early_end` and `hold`.
//! A commit that can never be stored ends the turn without it, as in `unstorable`. Decisions worth knowing:
//!
//! - An answer is committed whole or not at all: a failed, cut, cancelled or overflowing stream leaves nothing.
//! - An answer cut by its output limit (or refused) runs none of its calls: the last one may be half a call that
//!   happens to parse, and the ones before it were meant to go with it. Each gets a result saying so; after a cut the
//!   model is asked again, after a refusal the turn ends.
//! - An answer over one of [`TurnLimits`] is dropped at once and its stream with it. The model is told which limit it
//!   was, in a system item that is part of the next request, so that it can split the work. The tokens of the dropped
//!   answer are counted with the next one. [`MAX_OVERFLOWS`] in a row end the turn.
//! - An answer of white space without calls is [`Outcome::Empty`]; it is not asked for again.
//! - Text of white space alone is no item.
//! - An answer that its provider paused is committed like one with calls, and the next request carries it, so that the
//!   provider continues; each such request is a step. Paused before its first word, it is [`Outcome::Empty`].
//! - The parts of an answer keep their order where a seal proves it (see [`crate::SealedReasoning`]); otherwise
//!   reasoning, text and calls are one after the other, each in one piece.
//! - An unknown stop reason counts as an end: its calls are judged like any others.
//! - A turn with a call of a person ([`Turn::start_call`]) begins at Judging, where the items and the call are the answer.
//!   It ends as [`Outcome::Done`] when the call has its result, in place of the way back to BeforeGate.

mod answer;
mod calls;
mod commit;
mod early_end;
mod hold;
mod illegal;
mod limits;
mod phase;
mod route;
mod steps;
mod unstorable;

#[cfg(test)]
mod tests;

pub use crate::payload::{Acknowledged, CommitRequest, Payload};
pub use illegal::IllegalInput;
pub use limits::{MAX_OVERFLOWS, TurnLimits};

use crate::effect::{CallView, Effect, Fact, NewCall, Outcome, ToolRun};
use crate::history::{History, HistoryError};
use crate::item::{CallId, Item};
use crate::model::Usage;
use crate::projection::ModelRequest;
use answer::Answer;
use commit::CommitSlot;
use phase::{CallState, Phase, Review, RunningCalls, Withdrawn};
use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

/// A running turn, as a state machine that a host drives. `pod` does so in its actor.
///
/// A host polls effects until there are none, performs them, and answers each with one [`Input`](crate::Input). Here
/// the log is a vector and the model answers at once:
///
/// ```
/// use llm_worker::{
///     Acknowledged, CommitRequest, Effect, Gated, History, Input, Item, ModelEvent, Neutral, Outcome, Payload, StopReason,
///     Surface, Turn, TurnLimits,
/// };
/// use std::sync::Arc;
///
/// /// The proof that a commit is durable. A real host makes it from its store's receipt.
/// #[derive(Debug)]
/// struct Durable(CommitRequest<Host>);
///
/// impl Acknowledged<Host> for Durable {
///     fn into_request(self) -> CommitRequest<Host> {
///         self.0
///     }
/// }
///
/// /// A host that attaches nothing to facts but the items it adds.
/// #[derive(Debug)]
/// struct Host;
///
/// impl Payload for Host {
///     type Proof = Durable;
///     type Note = Item;
///     type AuthorizationRecord = ();
///     type Question = ();
///     type Resolution = ();
///     type Start = ();
///     type Ending = ();
///
///     fn item(note: &Item) -> Item {
///         note.clone()
///     }
/// }
///
/// let surface = Surface {
///     generation: 1,
///     model: "test/m".to_owned(),
///     system: "be brief".to_owned(),
///     tools: Vec::new(),
///     max_output: None,
///     effort: None,
///     thinking: false,
///     media: Vec::new(),
/// };
/// let history = History::begin(surface, Arc::new(Neutral));
/// let input = Item::user("say hello");
/// let mut turn = Turn::<Host>::start(history, vec![input], TurnLimits::steps(10));
///
/// let mut log = Vec::new();
/// let outcome = 'turn: loop {
///     while let Some(effect) = turn.poll() {
///         match effect {
///             Effect::Gate => turn.handle(Input::Gated(Gated::default()))?,
///             Effect::Commit(request) => {
///                 log.extend(request.facts().iter().map(|fact| format!("{fact:?}")));
///                 turn.handle(Input::Committed(Durable(request)))?;
///             }
///             Effect::Send(_) => {
///                 assert!(log.iter().any(|fact| fact.contains("say hello")), "the input is durable before it is sent");
///                 turn.handle(Input::Model(ModelEvent::Text("hello".to_owned())))?;
///                 turn.handle(Input::Model(ModelEvent::Stop(StopReason::EndTurn)))?;
///             }
///             Effect::Finished(outcome) => break 'turn outcome,
///             // This model proposes no calls, and nothing is cancelled.
///             other => assert!(matches!(other, Effect::Delta(_))),
///         }
///     }
/// };
/// assert_eq!(outcome, Outcome::Done);
/// let Ok(history) = turn.finish() else { panic!("the turn is over") };
/// assert_eq!(history.items(), 2);
/// # Ok::<(), llm_worker::IllegalInput>(())
/// ```
#[must_use]
pub struct Turn<P: Payload> {
    history: History,
    limits: TurnLimits,
    steps: u32,
    /// Answers over a limit since the last complete one.
    overflows: u32,
    /// The tokens of these answers.
    voided: Usage,
    phase: Phase<P>,
    slot: CommitSlot<P>,
    notices: VecDeque<Effect<P>>,
    withdrawn: Withdrawn,
    /// A hold was asked for and not released.
    hold_wanted: bool,
    /// The turn ends when its calls have their results: no request follows.
    ends_with_calls: bool,
    /// What gates said of the answer that streams.
    review: Option<Review<P>>,
    /// Why the turn ends, once a commit could not be stored.
    unstorable: Option<String>,
    id: u64,
    commits: u64,
}

/// Numbers the turns of this process, so that a turn refuses the acknowledgement of another one.
static TURNS: AtomicU64 = AtomicU64::new(0);

impl<P: Payload> Turn<P> {
    /// Starts a turn over this history with these user and system items. The items and the first request are one
    /// commit. If one item is of another kind, the turn ends at once with [`Outcome::Aborted`], and no item is kept.
    pub fn start(history: History, notes: Vec<P::Note>, limits: TurnLimits) -> Self {
        Self::begin(history, notes, limits, Self::step)
    }

    /// Starts a turn that makes this call, which no model proposed, and sends no request. The items, the call and its
    /// verdict are one commit. The turn ends as [`Outcome::Done`] when the call has its result. Otherwise as
    /// [`Self::start`].
    pub fn start_call(
        history: History,
        notes: Vec<P::Note>,
        call: NewCall,
        limits: TurnLimits,
    ) -> Self {
        Self::begin(history, notes, limits, |turn, facts| {
            turn.supply(facts, call)
        })
        .ending_with_calls()
    }

    fn begin(
        history: History,
        notes: Vec<P::Note>,
        limits: TurnLimits,
        first: impl FnOnce(&mut Self, Vec<Fact<P>>),
    ) -> Self {
        let mut turn = Self::before_its_start(history, limits);
        let mut facts = vec![Fact::TurnStarted];
        if notes.iter().all(|note| host_may_add(&P::item(note))) {
            facts.extend(notes.into_iter().map(Fact::Note));
            first(&mut turn, facts);
        } else {
            let reason = "a turn can begin with user and system items only".to_owned();
            turn.end(facts, Outcome::Aborted { reason });
        }
        turn
    }

    fn before_its_start(history: History, limits: TurnLimits) -> Self {
        Self {
            history,
            limits,
            steps: 0,
            overflows: 0,
            voided: Usage::default(),
            phase: Phase::BeforeGate(Vec::new()),
            slot: CommitSlot::Idle,
            notices: VecDeque::new(),
            withdrawn: Withdrawn::default(),
            hold_wanted: false,
            ends_with_calls: false,
            review: None,
            unstorable: None,
            id: TURNS.fetch_add(1, Ordering::Relaxed),
            commits: 0,
        }
    }

    /// Starts a turn over a history in which these calls wait for a person, as after [`Outcome::Waiting`]. Its first
    /// request follows once each of them has its result. There is at least one.
    pub fn go_on(history: History, parked: BTreeSet<CallId>, limits: TurnLimits) -> Self {
        let mut turn = Self::before_its_start(history, limits);
        let done = vec![Fact::TurnStarted];
        turn.phase = Phase::Running(RunningCalls {
            parked,
            done,
            ..RunningCalls::default()
        });
        turn
    }

    /// Has the turn end as [`Outcome::Done`] when its calls have their results, as after [`Self::start_call`].
    pub fn ending_with_calls(mut self) -> Self {
        self.ends_with_calls = true;
        self
    }

    /// A turn that has ended, over the history behind it.
    pub fn ended(history: History) -> Self {
        let mut turn = Self::before_its_start(history, TurnLimits::steps(0));
        turn.phase = Phase::Ended;
        turn
    }

    /// The next effect to perform; `None` until [`handle`](Self::handle) is called again.
    pub fn poll(&mut self) -> Option<Effect<P>> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        if let Some(effect) = self.perform() {
            return Some(effect);
        }
        if let Phase::Running(running) | Phase::Draining(running, _) = &mut self.phase
            && matches!(self.slot, CommitSlot::Idle)
            && !(running.done.is_empty() && running.answered.is_empty())
        {
            let facts = running.take_done();
            self.prepare(facts);
        }
        self.slot.hand_out().map(Effect::Commit)
    }

    /// The effect that is due in this phase, if any.
    fn perform(&mut self) -> Option<Effect<P>> {
        match &mut self.phase {
            Phase::BeforeGate(pending_facts) => {
                let pending_facts = mem::take(pending_facts);
                if self.hold_wanted {
                    self.hold_here(pending_facts);
                    return None;
                }
                if self.withdrawn.gate {
                    // The gates answer for an earlier request.
                    self.phase = Phase::BeforeGate(pending_facts);
                    return None;
                }
                self.phase = Phase::Gating(pending_facts);
                Some(Effect::Gate)
            }
            Phase::Cleared => {
                self.phase = Phase::Streaming(Answer::after(mem::take(&mut self.voided)));
                self.withdrawn.model = false;
                let number = self.history.counters().requests;
                Some(Effect::Send(ModelRequest::new(
                    self.history.body(),
                    number,
                    self.history.surface().generation,
                )))
            }
            Phase::Judging(judging) => {
                let call = judging
                    .calls
                    .iter_mut()
                    .find(|call| matches!(call.state, CallState::Proposed))?;
                call.state = CallState::Asked;
                let id = call.id;
                let name = call.name.clone();
                let arguments = call.arguments.clone();
                Some(Effect::Judge(CallView {
                    id,
                    name,
                    arguments,
                }))
            }
            Phase::Running(running) => {
                let (id, start) = running.waiting.pop_front()?;
                running.open.insert(id);
                Some(Effect::Run(ToolRun::new(id, start)))
            }
            Phase::Gating(_)
            | Phase::Holding
            | Phase::Held
            | Phase::Sending
            | Phase::Streaming(_)
            | Phase::Starting
            | Phase::Draining(..)
            | Phase::Ending(_)
            | Phase::Ended => None,
        }
    }

    /// The committed history so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether a commit was refused and the turn waits for [`crate::Input::Resume`]. Running calls may still end.
    #[must_use]
    pub fn suspended(&self) -> bool {
        matches!(self.slot, CommitSlot::Suspended { .. })
    }

    /// Whether the turn waits for [`crate::Input::Release`] before its next request. Nothing is outstanding then, but
    /// perhaps the ignored answer of gates.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held)
    }

    /// The facts that become durable with the next request, or before it if the turn is held.
    #[must_use]
    pub fn before_request(&self) -> &[Fact<P>] {
        match &self.phase {
            Phase::BeforeGate(pending_facts) | Phase::Gating(pending_facts) => pending_facts,
            Phase::Holding
            | Phase::Held
            | Phase::Sending
            | Phase::Cleared
            | Phase::Streaming(_)
            | Phase::Judging(_)
            | Phase::Starting
            | Phase::Running(_)
            | Phase::Draining(..)
            | Phase::Ending(_)
            | Phase::Ended => &[],
        }
    }

    /// Encodes the committed items again, as another view of the session shows them. The record of that view is durable.
    ///
    /// # Errors
    /// The turn is not held, or these are not its items in another view; nothing changed then.
    pub fn change_view<I>(&mut self, items: I) -> Result<(), HistoryError>
    where
        I: IntoIterator,
        I::Item: Borrow<Item>,
    {
        if self.is_held() {
            self.history.reviewed(items)
        } else {
            Err(HistoryError::NotHeld)
        }
    }

    /// Whether this call waits for [`crate::Input::Resolved`].
    #[must_use]
    pub fn is_parked(&self, call: CallId) -> bool {
        matches!(&self.phase, Phase::Running(running) if running.parked.contains(&call))
    }

    /// Whether the turn waits for a person, and nothing of it runs: the host keeps `behind` calls that it was told to run
    /// until the person has answered.
    #[must_use]
    pub fn is_waiting(&self, behind: usize) -> bool {
        let Phase::Running(running) = &self.phase else {
            return false;
        };
        let none_runs = running.waiting.is_empty()
            && running.answered.is_empty()
            && running.open.len() == behind;
        none_runs && !running.parked.is_empty()
    }

    /// Returns the history once the turn's end is durable.
    ///
    /// # Errors
    /// The turn is not over; it is returned unchanged.
    pub fn finish(self) -> Result<History, Box<Self>> {
        if matches!(self.phase, Phase::Ended) {
            Ok(self.history)
        } else {
            Err(Box::new(self))
        }
    }
}

/// Whether the host may add this item to history: other items come from the model and its calls.
fn host_may_add(item: &Item) -> bool {
    match item {
        Item::User { .. } | Item::Command { .. } | Item::System { .. } => true,
        Item::Assistant { .. }
        | Item::Reasoning { .. }
        | Item::ToolCall { .. }
        | Item::ToolResult { .. } => false,
    }
}
