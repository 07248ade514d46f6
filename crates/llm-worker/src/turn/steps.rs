//! The steps between commits: which facts each commit makes durable, and the phase after it.

use super::calls::{CANCELLED, cancelled, finished};
use super::commit::CommitSlot;
use super::phase::{Answered, Phase, RunningCalls};
use super::{Payload, Turn};
use crate::effect::{Effect, Fact, Outcome, RequestFact};
use crate::item::{CallId, ResultStatus};
use std::mem;

impl<P: Payload> Turn<P> {
    /// Continues with the next request, or ends the turn if no steps are left. The slot is free.
    pub(super) fn step(&mut self, pending_facts: Vec<Fact<P>>) {
        if self.steps < self.limits.steps {
            self.phase = Phase::BeforeGate(pending_facts);
        } else {
            self.end(pending_facts, Outcome::StepLimit);
        }
    }

    /// Records the request these facts lead to; it is made on the acknowledgement. The slot is free.
    pub(super) fn request(&mut self, mut facts: Vec<Fact<P>>) {
        let mut staged = self.history.stage(&facts);
        staged.projection.settle();
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
        self.prepare_staged(facts, staged);
        self.phase = Phase::Sending;
    }

    /// Records the end. The slot is free.
    pub(super) fn end(&mut self, mut facts: Vec<Fact<P>>, outcome: Outcome) {
        facts.push(Fact::TurnFinished(outcome.clone()));
        self.prepare(facts);
        self.phase = Phase::Ending(outcome);
    }

    /// Continues when no call is open: with the next request, or with the end of a turn that has none or only drains its
    /// calls.
    /// Waits for the slot, so that results that arrived meanwhile are part of the same commit.
    pub(super) fn continue_when_idle(&mut self) {
        if !matches!(self.slot, CommitSlot::Idle) {
            return;
        }
        if let Phase::Running(running) = &mut self.phase
            && running.idle()
        {
            let pending_facts = mem::take(&mut running.done);
            match self.ends_with_calls {
                true => self.end(pending_facts, Outcome::Done),
                false => self.step(pending_facts),
            }
        } else if let Phase::Draining(running, outcome) = &mut self.phase
            && running.is_still()
        {
            let outcome = if running.parked.is_empty() {
                outcome.clone()
            } else {
                Outcome::Waiting
            };
            let pending_facts = mem::take(&mut running.done);
            self.end(pending_facts, outcome);
        }
    }

    /// Continues after the acknowledgement of these facts.
    pub(super) fn advance(&mut self, facts: Vec<Fact<P>>) {
        let parked: Vec<_> = facts.iter().filter_map(parked).collect();
        let started = facts.into_iter().filter_map(started);
        match &mut self.phase {
            Phase::Holding => self.phase = Phase::BeforeGate(Vec::new()),
            Phase::Sending => {
                self.steps += 1;
                self.phase = Phase::Cleared;
            }
            Phase::Starting => {
                let waiting = started.collect();
                let parked = parked.into_iter().collect();
                self.phase = Phase::Running(RunningCalls {
                    waiting,
                    parked,
                    ..RunningCalls::default()
                });
                self.continue_when_idle();
            }
            Phase::Draining(running, outcome) => {
                running.done.extend(started.map(cancelled));
                running.parked.extend(parked);
                running.close_parked(outcome);
                self.continue_when_idle();
            }
            Phase::Running(running) => {
                running.waiting.extend(started);
                self.continue_when_idle();
            }
            Phase::Ending(outcome) => {
                self.notices.push_back(Effect::Finished(outcome.clone()));
                self.phase = Phase::Ended;
            }
            Phase::BeforeGate(_)
            | Phase::Gating(_)
            | Phase::Held
            | Phase::Cleared
            | Phase::Streaming(_)
            | Phase::Judging(_)
            | Phase::Ended => {}
        }
    }
}

impl<P: Payload> RunningCalls<P> {
    /// The facts to commit now, while the turn goes on.
    pub(super) fn take_done(&mut self) -> Vec<Fact<P>> {
        let mut facts = mem::take(&mut self.done);
        for Answered {
            call,
            resolution,
            run,
        } in self.answered.drain(..)
        {
            facts.push(Fact::Resolved(resolution));
            facts.push(match run {
                Ok(start) => Fact::Started { call, start },
                Err(reason) => finished(call, ResultStatus::Refused, &reason),
            });
        }
        facts
    }

    /// Ends the calls that wait for a person, unless the next turn begins with them. Answers that are not on their way to
    /// the log count as not given.
    pub(super) fn close_parked(&mut self, outcome: &Outcome) {
        self.parked
            .extend(self.answered.drain(..).map(|answered| answered.call));
        if *outcome != Outcome::Interrupted {
            let parked = mem::take(&mut self.parked);
            self.done.extend(
                parked
                    .into_iter()
                    .map(|call| finished(call, ResultStatus::Cancelled, CANCELLED)),
            );
        }
    }
}

fn parked<P: Payload>(fact: &Fact<P>) -> Option<CallId> {
    if let Fact::Parked { call, .. } = fact {
        Some(*call)
    } else {
        None
    }
}

fn started<P: Payload>(fact: Fact<P>) -> Option<(CallId, P::Start)> {
    if let Fact::Started { call, start } = fact {
        Some((call, start))
    } else {
        None
    }
}
