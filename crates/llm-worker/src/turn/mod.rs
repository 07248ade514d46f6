//! One turn: from input to final answer, as a state machine that does no I/O and reads no clock.
//!
//! The host calls [`Turn::handle`] with what happened, then [`Turn::poll`] until it says `None`, and performs
//! each [`Effect`]. A commit comes last and one is in flight, so batching falls out.
//!
//! ```text
//!  start
//!    ▼
//!  Ungated <──────────────────────────────────┐
//!    │ Gate                                   │
//!  Gating                                     │
//!    │ Gated                                  │ every call has its result;
//!  Sending ══ carry, added items, Request     │ those not yet durable are the carry
//!    ║                                        │
//!  Cleared                                    │
//!    │ Send                                   │
//!  Streaming ─ failed, or without calls ─┐    │
//!    │ └─ over a limit ──────────────────│───>│ with words for the model
//!    │ Stop                              │    │
//!  Judging ─ a verdict aborts ───────────┤    │
//!    │ Judge, Judged                     │    │
//!  Starting ══ items, Response, Judged,  │    │
//!    ║         Started, Finished(not run)│    │
//!  Running ─ Run, ToolDone ──────────────┼────┘
//!    │ ══ Finished, while others run     │
//!    │ Cancel                            ▼
//!  Draining ─ open calls end ────────> Ending ══ carry, TurnFinished ══> Ended ─ Finished
//! ```
//!
//! `══` is a commit and the only way across: what lies behind it is made on the acknowledgement. Refused, the machine is
//! [`Turn::suspended`] and yields the same commit again after [`crate::Input::Resume`]. `Cancel` is legal everywhere;
//! where each phase goes is in `cancel`. Decisions worth knowing:
//!
//! - An answer is committed whole or not at all: a failed, cut, cancelled or overflowing stream leaves nothing.
//! - An answer cut by its output limit (or refused) runs none of its calls: the last one may be half a call that
//!   happens to parse, and the ones before it were meant to go with it. Each gets a result saying so; after a cut the
//!   model is asked again, after a refusal the turn ends.
//! - An answer over one of [`Limits`] is dropped at once and its stream with it. The model is told which limit it was, in a
//!   system item that rides with the next request, so that it can split the work; what the answer cost is counted with the
//!   next one. [`MAX_OVERFLOWS`] in a row end the turn.
//! - An answer of white space without calls is [`Outcome::Empty`]; it is not asked for again.
//! - Text of white space alone is no item.
//! - An answer that its vendor paused is committed like one with calls, and the next request carries it, so that the
//!   vendor goes on; each such request is a step. Paused before its first word, it is [`Outcome::Empty`].
//! - The parts of an answer keep their order where a seal proves it (see [`crate::Seal`]); otherwise reasoning, text
//!   and calls are one after the other, each in one piece.
//! - A stop reason nobody knows counts as an end: its calls are judged like any others.

mod answer;
mod calls;
mod cancel;
mod commit;
mod phase;
mod route;
mod steps;

#[cfg(test)]
mod tests;

pub use commit::{Acknowledged, CommitRequest, Payload};
pub use route::Illegal;

use crate::effect::{CallView, Effect, Fact, Outcome, ToolRun};
use crate::history::History;
use crate::item::Item;
use crate::model::Usage;
use crate::projection::ModelRequest;
use answer::Answer;
use cancel::Withdrawn;
use commit::Pen;
use phase::{Phase, Standing};
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one turn may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests in this turn.
    pub steps: u32,
    /// Calls in one answer.
    pub calls: usize,
    /// Bytes of a call's name and raw arguments.
    pub argument_bytes: usize,
    /// Bytes of the names and raw arguments of all calls of one answer.
    pub all_argument_bytes: usize,
    /// Bytes of an answer's text and reasoning together.
    pub text_bytes: usize,
    /// Parts of an answer that keeps their order; each is an item of its own.
    pub parts: usize,
}

impl Limits {
    /// Calls in one answer: far above what a model does on purpose.
    pub const CALLS: usize = 64;
    /// Bytes of one call: a whole source file fits, a runaway stream does not.
    pub const ARGUMENT_BYTES: usize = 1 << 20;
    /// Bytes of all calls of an answer: above every vendor's longest output.
    pub const ALL_ARGUMENT_BYTES: usize = 8 << 20;
    /// Bytes of text and reasoning: above every vendor's longest output.
    pub const TEXT_BYTES: usize = 8 << 20;
    /// Parts of an answer: above what a model does on purpose, which thinks or talks between its calls at most.
    pub const PARTS: usize = 512;

    /// This many requests, and the limits above for each answer.
    #[must_use]
    pub const fn steps(steps: u32) -> Self {
        Self {
            steps,
            calls: Self::CALLS,
            argument_bytes: Self::ARGUMENT_BYTES,
            all_argument_bytes: Self::ALL_ARGUMENT_BYTES,
            text_bytes: Self::TEXT_BYTES,
            parts: Self::PARTS,
        }
    }
}

/// So many answers in a row over a limit end the turn: a model that was told twice does not find a smaller way.
pub const MAX_OVERFLOWS: u32 = 3;

/// A running turn.
#[must_use]
pub struct Turn<P: Payload> {
    history: History,
    limits: Limits,
    steps: u32,
    /// Answers over a limit since the last whole one.
    overflows: u32,
    /// What they cost.
    voided: Usage,
    phase: Phase<P>,
    pen: Pen<P>,
    notices: VecDeque<Effect<P>>,
    withdrawn: Withdrawn,
    id: u64,
    commits: u64,
}

/// Tells turns of one process apart, so that one cannot take another's acknowledgement.
static TURNS: AtomicU64 = AtomicU64::new(0);

impl<P: Payload> Turn<P> {
    /// Begins a turn over this history with these user and system items. They and the first request are one commit.
    /// An item of another kind ends the turn at once with [`Outcome::Aborted`], and none is kept.
    pub fn start(history: History, notes: Vec<P::Note>, limits: Limits) -> Self {
        let mut turn = Self {
            history,
            limits,
            steps: 0,
            overflows: 0,
            voided: Usage::default(),
            phase: Phase::Ungated(Vec::new()),
            pen: Pen::Idle,
            notices: VecDeque::new(),
            withdrawn: Withdrawn::default(),
            id: TURNS.fetch_add(1, Ordering::Relaxed),
            commits: 0,
        };
        let mut facts = vec![Fact::TurnStarted];
        if notes.iter().all(|note| is_said(&P::item(note))) {
            facts.extend(notes.into_iter().map(Fact::Note));
            turn.step(facts);
        } else {
            let reason = "a turn can begin with user and system items only".to_owned();
            turn.end(facts, Outcome::Aborted { reason });
        }
        turn
    }

    /// The next thing to do; `None` until something is handled.
    pub fn poll(&mut self) -> Option<Effect<P>> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        if let Some(effect) = self.perform() {
            return Some(effect);
        }
        if let Phase::Running(running) | Phase::Draining(running) = &mut self.phase
            && matches!(self.pen, Pen::Idle)
            && !running.done.is_empty()
        {
            let facts = mem::take(&mut running.done);
            self.write(facts);
        }
        self.pen.hand_out().map(Effect::Commit)
    }

    /// What this phase has to give out now, if anything.
    fn perform(&mut self) -> Option<Effect<P>> {
        match &mut self.phase {
            Phase::Ungated(carry) => {
                self.phase = Phase::Gating(mem::take(carry));
                Some(Effect::Gate)
            }
            Phase::Cleared => {
                self.phase = Phase::Streaming(Answer::after(mem::take(&mut self.voided)));
                self.withdrawn.model = false;
                let number = self.history.counters().requests;
                Some(Effect::Send(ModelRequest::new(self.history.body(), number, self.history.surface().generation)))
            }
            Phase::Judging(judging) => {
                let call = judging.calls.iter_mut().find(|call| matches!(call.standing, Standing::Proposed))?;
                call.standing = Standing::Asked;
                let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
                Some(Effect::Judge(CallView { id, name, arguments }))
            }
            Phase::Running(running) => {
                let (id, start) = running.waiting.pop_front()?;
                running.open.insert(id);
                Some(Effect::Run(ToolRun::new(id, start)))
            }
            Phase::Gating(_)
            | Phase::Sending
            | Phase::Streaming(_)
            | Phase::Starting
            | Phase::Draining(_)
            | Phase::Ending(_)
            | Phase::Ended => None,
        }
    }

    /// What is committed so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether a commit was refused and nothing goes on before [`crate::Input::Resume`]. Running calls may still end.
    #[must_use]
    pub fn suspended(&self) -> bool {
        matches!(self.pen, Pen::Suspended { .. })
    }

    /// Gives the history back once the turn's end is durable.
    ///
    /// # Errors
    /// The turn is not over; it comes back unchanged.
    pub fn finish(self) -> Result<History, Box<Self>> {
        if matches!(self.phase, Phase::Ended) { Ok(self.history) } else { Err(Box::new(self)) }
    }
}

/// Whether the host may put this into history: the rest comes from the model and its calls.
fn is_said(item: &Item) -> bool {
    match item {
        Item::User { .. } | Item::System { .. } => true,
        Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } | Item::ToolResult { .. } => false,
    }
}
