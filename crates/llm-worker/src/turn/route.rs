//! Routes each input to the current phase. An unexpected input changes nothing and is a typed error.

use super::answer::{Taken, dropped};
use super::phase::{Answered, CallState, Phase, Review};
use super::{Acknowledged, IllegalInput, MAX_OVERFLOWS, Payload, Turn, host_may_add};
use crate::ErrorKind;
use crate::effect::{CallVerdict, Delta, Effect, Fact, Gated, Input, Outcome};
use crate::item::{CallId, ToolOutcome};
use crate::model::{ModelError, ModelEvent, Usage};
use crate::sendable::sendable_text;
use std::mem;

impl<P: Payload> Turn<P> {
    /// Processes one input of the host. Call [`poll`](Self::poll) afterwards until it returns `None`.
    ///
    /// # Errors
    /// The input answers no effect of this phase, or the end of the turn cannot be stored. Answers to effects that an
    /// early end, a hold or an overflow withdrew are no errors; they are ignored.
    pub fn handle(&mut self, input: Input<P>) -> Result<(), IllegalInput> {
        match input {
            Input::Gated(gated) => self.gated(gated),
            Input::Model(event) => self.model(event),
            Input::ModelFailed(error) => self.model_failed(error),
            Input::SendAgain => self.send_again(),
            Input::Reviewed {
                authorization,
                halt,
            } => self.reviewed(Review {
                authorization,
                halt,
            }),
            Input::Judged {
                id,
                verdict,
                authorization,
            } => self.judged(id, verdict, authorization),
            Input::ToolDone {
                id,
                outcome,
                ending,
            } => self.tool_done(id, outcome, ending),
            Input::Resolved {
                id,
                resolution,
                run,
            } => self.resolved(id, resolution, run),
            Input::Committed(proof) => self.committed(proof.into_request()),
            Input::Refused(request) => self.refused(request),
            Input::Unstorable { request, reason } => self.unstorable(request, reason),
            Input::Resume => self.resume(),
            Input::Hold => {
                self.hold();
                Ok(())
            }
            Input::Release => {
                self.release();
                Ok(())
            }
            Input::Cancel => {
                self.end_early(Outcome::Cancelled);
                Ok(())
            }
            Input::Leave => {
                self.end_early(Outcome::Interrupted);
                Ok(())
            }
        }
    }

    pub(super) fn illegal(&self, input: &'static str) -> IllegalInput {
        IllegalInput::Input {
            input,
            phase: self.phase.name(),
        }
    }

    fn gated(&mut self, gated: Gated<P>) -> Result<(), IllegalInput> {
        let Phase::Gating(pending_facts) = &mut self.phase else {
            return if mem::take(&mut self.withdrawn.gate) {
                Ok(())
            } else {
                Err(self.illegal("Gated"))
            };
        };
        if let Some(index) = gated
            .notes
            .iter()
            .position(|note| !host_may_add(&P::item(note)))
        {
            return Err(IllegalInput::Item(index));
        }
        let mut facts: Vec<_> = gated.authorization.into_iter().map(Fact::Judged).collect();
        facts.append(pending_facts);
        facts.extend(gated.notes.into_iter().map(Fact::Note));
        match gated.stop {
            Some(stop) => self.end(facts, stop.into()),
            None => self.request(facts),
        }
        Ok(())
    }

    fn model(&mut self, event: ModelEvent) -> Result<(), IllegalInput> {
        let Phase::Streaming(answer) = &mut self.phase else {
            return if self.withdrawn.model {
                Ok(())
            } else {
                Err(self.illegal("Model"))
            };
        };
        match answer.take(event, &self.limits) {
            Ok(Taken::More(Some(delta))) => self.notices.push_back(Effect::Delta(delta)),
            Ok(Taken::More(None)) => {}
            Ok(Taken::Whole(stop)) => {
                let answer = mem::take(answer);
                self.overflows = 0;
                self.answered(answer, stop);
            }
            Err(error) => {
                let spent = answer.spent();
                self.void(error, spent);
            }
        }
        Ok(())
    }

    fn model_failed(&mut self, error: ModelError) -> Result<(), IllegalInput> {
        if matches!(self.phase, Phase::Streaming(_)) {
            self.end(Vec::new(), error.into());
            return Ok(());
        }
        if mem::take(&mut self.withdrawn.model) {
            Ok(())
        } else {
            Err(self.illegal("ModelFailed"))
        }
    }

    fn send_again(&mut self) -> Result<(), IllegalInput> {
        let Phase::Streaming(answer) = &mut self.phase else {
            return if self.withdrawn.model {
                Ok(())
            } else {
                Err(self.illegal("SendAgain"))
            };
        };
        self.voided = mem::take(answer).spent();
        self.phase = Phase::Cleared;
        Ok(())
    }

    fn reviewed(&mut self, review: Review<P>) -> Result<(), IllegalInput> {
        if matches!(self.phase, Phase::Streaming(_)) {
            self.review = Some(review);
            return Ok(());
        }
        if self.withdrawn.model {
            Ok(())
        } else {
            Err(self.illegal("Reviewed"))
        }
    }

    /// Drops the stream because it broke the protocol or exceeded a limit. After an overflow, a note with the next
    /// request tells the model, unless earlier notes did not help.
    fn void(&mut self, error: ModelError, spent: Usage) {
        let over = error.kind == ErrorKind::Exhausted;
        self.overflows += u32::from(over);
        if !over || self.overflows >= MAX_OVERFLOWS {
            self.withdraw_model();
            return self.end(Vec::new(), error.into());
        }
        self.voided = spent;
        let why = error.message.clone();
        let again = Delta::Retrying {
            attempt: self.overflows,
            delay_ms: 0,
            why,
        };
        self.notices.push_back(Effect::Delta(again));
        self.withdraw_model();
        self.step(vec![Fact::Item(dropped(&error.message))]);
    }

    fn judged(
        &mut self,
        id: CallId,
        verdict: CallVerdict<P>,
        authorization: P::AuthorizationRecord,
    ) -> Result<(), IllegalInput> {
        let Phase::Judging(judging) = &mut self.phase else {
            return if self.withdrawn.verdicts.remove(&id) {
                Ok(())
            } else {
                Err(IllegalInput::Call(id))
            };
        };
        let call = judging
            .calls
            .iter_mut()
            .find(|call| call.id == id)
            .ok_or(IllegalInput::Call(id))?;
        if !matches!(call.state, CallState::Asked) {
            return Err(IllegalInput::Call(id));
        }
        call.state = CallState::Judged(verdict, authorization);
        if judging
            .calls
            .iter()
            .all(|call| matches!(call.state, CallState::Judged(..)))
        {
            let judging = mem::take(judging);
            self.start_calls(judging);
        }
        Ok(())
    }

    fn resolved(
        &mut self,
        call: CallId,
        resolution: P::Resolution,
        run: Result<P::Start, String>,
    ) -> Result<(), IllegalInput> {
        let Phase::Running(running) = &mut self.phase else {
            return Err(IllegalInput::Call(call));
        };
        if !running.parked.remove(&call) {
            return Err(IllegalInput::Call(call));
        }
        running.answered.push(Answered {
            call,
            resolution,
            run,
        });
        Ok(())
    }

    fn tool_done(
        &mut self,
        id: CallId,
        outcome: ToolOutcome,
        ending: P::Ending,
    ) -> Result<(), IllegalInput> {
        let (Phase::Running(running) | Phase::Draining(running, _)) = &mut self.phase else {
            return Err(IllegalInput::Call(id));
        };
        if !running.open.remove(&id) {
            return Err(IllegalInput::Call(id));
        }
        let ToolOutcome {
            status,
            summary,
            content,
            attachments,
        } = outcome;
        let outcome = ToolOutcome {
            status,
            summary: sendable_text(summary),
            content: sendable_text(content),
            attachments,
        };
        running.done.push(Fact::Finished {
            call: id,
            outcome,
            ending: Some(ending),
        });
        self.continue_when_idle();
        Ok(())
    }
}
