//! Ending a turn early, for `Cancel` and `Leave`: nothing is sent or run after it, every call still gets its one result,
//! and the end is committed like any other. The two differ in the outcome only, and the first of them decides.
//!
//! | phase | what happens |
//! |---|---|
//! | BeforeGate, Gating | the facts that wait for the request are committed with the end; a gate's answer is ignored |
//! | Holding | the commit under way is awaited, then the end |
//! | Held, Cleared | the end |
//! | Sending | the commit under way is awaited, then the end; the request stays recorded and is never sent |
//! | Streaming | `CancelModel`; nothing of the answer is kept; later events are ignored |
//! | Judging | the whole answer with a cancelled result for each call that would have run; later verdicts are ignored |
//! | Starting | the commit under way is awaited, then the starts get cancelled results |
//! | Running | `CancelTool` for each open call, whose own result is awaited and kept; the rest are not run; parked calls get cancelled results after `Cancel` and stay open after `Leave` |
//! | Draining, Ending, Ended | nothing more: the outcome is decided |
//!
//! A suspended machine stays suspended: after `Resume` the refused commit is made first, then the above.

use super::calls::{CANCELLED, answer_facts, cancelled};
use super::phase::{CallState, Phase, RunningCalls};
use super::{Payload, Turn};
use crate::effect::{Effect, Outcome};
use std::mem;

impl<P: Payload> Turn<P> {
    /// Ends the turn with this outcome, unless its outcome is decided.
    pub(super) fn end_early(&mut self, outcome: Outcome) {
        match &mut self.phase {
            Phase::BeforeGate(pending_facts) => {
                let facts = mem::take(pending_facts);
                self.end(facts, outcome);
            }
            Phase::Gating(pending_facts) => {
                let facts = mem::take(pending_facts);
                self.withdrawn.gate = true;
                self.end(facts, outcome);
            }
            // A start that is being committed gets its cancelled result on the acknowledgement.
            Phase::Holding | Phase::Sending | Phase::Starting => {
                self.phase = Phase::Draining(RunningCalls::default(), outcome);
            }
            Phase::Held | Phase::Cleared => self.end(Vec::new(), outcome),
            Phase::Streaming(_) => {
                self.withdraw_model();
                self.end(Vec::new(), outcome);
            }
            Phase::Judging(judging) => {
                let judging = mem::take(judging);
                let asked = judging
                    .calls
                    .iter()
                    .filter(|call| matches!(call.state, CallState::Asked));
                self.withdrawn.verdicts.extend(asked.map(|call| call.id));
                let facts = answer_facts(judging, Some(CANCELLED));
                self.end(facts, outcome);
            }
            Phase::Running(running) => {
                let running = mem::take(running);
                self.drain_calls(running, outcome);
            }
            Phase::Draining(..) | Phase::Ending(_) | Phase::Ended => {}
        }
    }

    /// Cancels the calls that run or wait to run; the turn ends with this outcome after them.
    pub(super) fn drain_calls(&mut self, mut running: RunningCalls<P>, outcome: Outcome) {
        running
            .done
            .extend(running.waiting.drain(..).map(cancelled));
        running.close_parked(&outcome);
        self.notices
            .extend(running.open.iter().copied().map(Effect::CancelTool));
        self.phase = Phase::Draining(running, outcome);
        self.continue_when_idle();
    }

    /// Ends the stream; events that still arrive are ignored.
    pub(super) fn withdraw_model(&mut self) {
        self.withdrawn.model = true;
        self.review = None;
        self.notices.push_back(Effect::CancelModel);
    }
}
