//! From one commit to the next: what each makes durable, and where the turn stands behind it.

use super::commit::Pen;
use super::phase::{Phase, Running};
use super::{Acknowledged, Turn};
use crate::effect::{Effect, Fact, Outcome, RequestFact};
use std::mem;

impl<A: Acknowledged> Turn<A> {
    /// Goes on to the next request, or ends when no more are left. The pen is idle.
    pub(super) fn step(&mut self, carry: Vec<Fact>) {
        if self.steps < self.limits.steps {
            self.phase = Phase::Ungated(carry);
        } else {
            self.end(carry, Outcome::StepLimit);
        }
    }

    /// Records the request these facts lead to; it is made on the acknowledgement. The pen is idle.
    pub(super) fn request(&mut self, mut facts: Vec<Fact>) {
        let mut staged = self.history.stage(&facts);
        let body = staged.projection.body();
        let dialect = staged.projection.dialect();
        let fact = Fact::Request(RequestFact {
            number: staged.counters.requests + 1,
            generation: self.history.surface().generation,
            items: body.items,
            neutral_digest: staged.projection.neutral_digest(),
            dialect: dialect.id().to_owned(),
            dialect_version: dialect.version(),
            body_digest: body.digest,
            body_len: body.len,
        });
        staged.see(&fact);
        facts.push(fact);
        self.write_staged(facts, staged);
        self.phase = Phase::Sending;
    }

    /// Records the end. The pen is idle.
    pub(super) fn end(&mut self, mut facts: Vec<Fact>, outcome: Outcome) {
        facts.push(Fact::TurnFinished(outcome.clone()));
        self.write(facts);
        self.phase = Phase::Ending(outcome);
    }

    /// Goes on when no call is open: to the next request, or to the end of a cancelled turn. Waits for the pen,
    /// so that results that came meanwhile ride along.
    pub(super) fn settle(&mut self) {
        if !matches!(self.pen, Pen::Idle) {
            return;
        }
        match &mut self.phase {
            Phase::Running(running) if running.idle() => {
                let carry = mem::take(&mut running.done);
                self.step(carry);
            }
            Phase::Draining(running) if running.idle() => {
                let carry = mem::take(&mut running.done);
                self.end(carry, Outcome::Cancelled);
            }
            Phase::Running(_)
            | Phase::Draining(_)
            | Phase::Ungated(_)
            | Phase::Gating(_)
            | Phase::Sending
            | Phase::Cleared
            | Phase::Streaming(_)
            | Phase::Judging(_)
            | Phase::Starting(_)
            | Phase::Ending(_)
            | Phase::Ended => {}
        }
    }

    /// Goes on after an acknowledgement.
    pub(super) fn advance(&mut self) {
        match &mut self.phase {
            Phase::Sending => {
                self.steps += 1;
                self.phase = Phase::Cleared;
            }
            Phase::Starting(allowed) => {
                self.phase = Phase::Running(Running { waiting: mem::take(allowed), ..Running::default() });
                self.settle();
            }
            Phase::Running(_) | Phase::Draining(_) => self.settle(),
            Phase::Ending(outcome) => {
                self.notices.push_back(Effect::Finished(outcome.clone()));
                self.phase = Phase::Ended;
            }
            Phase::Ungated(_)
            | Phase::Gating(_)
            | Phase::Cleared
            | Phase::Streaming(_)
            | Phase::Judging(_)
            | Phase::Ended => {}
        }
    }
}
