//! A commit that can never be stored: the turn drops what may be the cause and ends as [`Outcome::Aborted`], with
//! everything durable closed.
//!
//! | the commit contains | what happens |
//! |---|---|
//! | an answer, or a call in place of one | it is dropped whole; none of its calls starts, and their numbers are given again |
//! | notes, verdicts of gates, a request | they are dropped; results beside them are kept |
//! | a person's answer for parked calls | it is dropped; those that it allowed get cancelled results |
//! | results and nothing of the above | each is replaced by a short one with the same status |
//! | the turn's start, its end | they are kept; the end is [`Outcome::Aborted`], also after a cancel |
//!
//! Calls that still run are cancelled and awaited, as in `early_end`. A shorter commit may be unstorable, too: then the
//! next row applies, until nothing is left to drop and the host gets [`IllegalInput::EndUnstorable`].

use super::calls::{CANCELLED, finished};
use super::commit::CommitSlot;
use super::phase::Phase;
use super::{IllegalInput, Payload, Turn};
use crate::effect::{Fact, Outcome, short};
use crate::item::{CallId, Item, ResultStatus, ToolOutcome};
use crate::payload::CommitRequest;
use std::mem;

/// The result of a call whose own result cannot be stored.
pub(super) const UNSTORED: &str = "the call ended, but its result could not be stored";

impl<P: Payload> Turn<P> {
    pub(super) fn unstorable(
        &mut self,
        request: CommitRequest<P>,
        reason: String,
    ) -> Result<(), IllegalInput> {
        let staged = self.slot.take_flight(&request)?;
        // The end in a second such commit is the one that this function made for the first.
        let end_is_replaced = self.unstorable.is_some();
        // One of a model, or a call in place of one.
        let of_answer = |fact: &Fact<P>| {
            matches!(
                fact,
                Fact::Response { .. } | Fact::Item(Item::ToolCall { .. })
            )
        };
        let has_answer = request.facts.iter().any(of_answer);
        let is_kept = |fact: &Fact<P>| match fact {
            Fact::TurnStarted => true,
            Fact::Finished { .. } => !has_answer,
            Fact::TurnFinished(_) => end_is_replaced,
            Fact::Note(_)
            | Fact::Item(_)
            | Fact::Response { .. }
            | Fact::Judged(_)
            | Fact::Parked { .. }
            | Fact::Resolved(_)
            | Fact::Started { .. }
            | Fact::Request(_) => false,
        };
        let is_whole = request.facts.iter().all(is_kept);
        if is_whole && !request.facts.iter().any(can_be_shorter) {
            self.slot = CommitSlot::Suspended { request, staged };
            return Err(IllegalInput::EndUnstorable);
        }
        let mut facts = request.facts;
        // A person allowed these; they were parked before, and durable.
        let unstarted: Vec<_> = facts
            .iter()
            .filter(|_| !has_answer)
            .filter_map(starting)
            .collect();
        facts.retain(|fact| is_kept(fact) && !matches!(fact, Fact::TurnFinished(_)));
        if is_whole {
            facts.iter_mut().for_each(shorten);
        }
        facts.extend(
            unstarted
                .into_iter()
                .map(|call| finished(call, ResultStatus::Cancelled, CANCELLED)),
        );
        let reason = self.unstorable.get_or_insert_with(|| short(reason)).clone();
        let aborted = Outcome::Aborted { reason };
        match &mut self.phase {
            Phase::Running(running) => {
                let mut running = mem::take(running);
                facts.append(&mut running.done);
                running.done = facts;
                self.drain_calls(running, aborted);
            }
            Phase::Draining(running, outcome) => {
                *outcome = aborted;
                facts.append(&mut running.done);
                running.done = facts;
                running.close_parked(outcome);
                self.continue_when_idle();
            }
            // Its calls stay open, whatever else is lost.
            Phase::Ending(Outcome::Waiting) => self.end(facts, Outcome::Waiting),
            Phase::Sending | Phase::Holding | Phase::Starting | Phase::Ending(_) => {
                self.end(facts, aborted);
            }
            // No commit is in flight in these.
            Phase::BeforeGate(_)
            | Phase::Gating(_)
            | Phase::Held
            | Phase::Cleared
            | Phase::Streaming(_)
            | Phase::Judging(_)
            | Phase::Ended => {}
        }
        Ok(())
    }
}

fn starting<P: Payload>(fact: &Fact<P>) -> Option<CallId> {
    if let Fact::Started { call, .. } = fact {
        Some(*call)
    } else {
        None
    }
}

fn can_be_shorter<P: Payload>(fact: &Fact<P>) -> bool {
    matches!(fact, Fact::Finished { outcome, ending, .. } if ending.is_some() || outcome.summary != UNSTORED)
}

fn shorten<P: Payload>(fact: &mut Fact<P>) {
    if let Fact::Finished {
        outcome, ending, ..
    } = fact
    {
        *outcome = ToolOutcome::of(outcome.status, UNSTORED);
        *ending = None;
    }
}
