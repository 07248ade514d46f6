//! Gates that see an answer that is whole, and gates that see a request that brought none. Does not depend on calls.

use super::super::core::{Core, Fatal};
use super::super::gates;
use super::answering::Reviewing;
use super::{Running, TurnStage};
use crate::hook::{AnswerView, ErrorView, GateOutcome, HookPoint, MAX_RETRIES, PostAssistant, TurnError};
use crate::record::Decision;
use llm_worker::effect::Input;
use llm_worker::{ErrorKind, ModelError, ModelEvent};
use std::time::Duration;

impl Running {
    /// Returns an event of the stream for the turn machine, or keeps the end of an answer for gates.
    pub(super) fn review(&mut self, core: &Core, event: ModelEvent) -> Option<ModelEvent> {
        if !core.registry.hooks().any::<PostAssistant>("") || self.cancelled {
            return Some(event);
        }
        self.answering.take(&event);
        if !matches!(event, ModelEvent::Stop(_)) {
            return Some(event);
        }
        let (turn, request) = (self.info.number, core.state.requests);
        let (text, calls) = (std::mem::take(&mut self.answering.text), std::mem::take(&mut self.answering.calls));
        self.answering.stop = Some(event);
        let view = AnswerView { turn, request, text, calls };
        let (registry, callbacks) = (core.registry.clone(), core.callbacks.clone());
        self.tasks.reviews.spawn(async move {
            Reviewing::Answer(registry.hooks().decide::<PostAssistant>(&callbacks, || view).await)
        });
        None
    }

    /// A request brought no answer: gates see it, if there are any.
    pub(super) fn failed(&mut self, core: &Core, error: ModelError) -> Result<(), Fatal> {
        if !core.registry.hooks().any::<TurnError>("") || !matches!(self.stage, TurnStage::Machine) || self.cancelled {
            return Ok(self.turn.handle(Input::ModelFailed(error))?);
        }
        let view = ErrorView {
            turn: self.info.number,
            request: core.state.requests,
            kind: error.kind,
            message: error.message.clone(),
            retries: self.answering.retries,
        };
        self.answering.error = Some(error);
        let (registry, callbacks) = (core.registry.clone(), core.callbacks.clone());
        self.tasks
            .reviews
            .spawn(async move { Reviewing::Failure(registry.hooks().decide::<TurnError>(&callbacks, || view).await) });
        Ok(())
    }

    /// The gates have answered, or the wait before a request is over.
    pub(super) fn reviewed(&mut self, core: &mut Core, reviewed: Reviewing) -> Result<(), Fatal> {
        match reviewed {
            Reviewing::Answer(gates) => {
                let Some(stop) = self.answering.stop.take() else { return Ok(()) };
                self.info.budget.count(&stop);
                let authorization = gates::verdicts(HookPoint::PostAssistant, None, &gates);
                self.turn.handle(Input::Reviewed { authorization, halt: gates::refusal(&gates) })?;
                Ok(self.turn.handle(Input::Model(stop))?)
            }
            Reviewing::Failure(gates) => self.failure_judged(core, &gates),
            Reviewing::Again => Ok(self.turn.handle(Input::SendAgain)?),
            Reviewing::View(answer) => self.view_answered(core, *answer),
        }
    }

    fn failure_judged(&mut self, core: &mut Core, gates: &GateOutcome) -> Result<(), Fatal> {
        let Some(error) = self.answering.error.take() else { return Ok(()) };
        for verdict in gates::verdicts(HookPoint::TurnError, None, gates) {
            core.pending.add(verdict);
        }
        let passes = matches!(error.kind, ErrorKind::Retry | ErrorKind::Unavailable);
        match &gates.decision {
            Decision::Retry { after_ms } if passes && self.answering.retries < MAX_RETRIES => {
                self.answering.retries += 1;
                let (attempt, delay) = (self.answering.retries, Duration::from_millis(*after_ms));
                let again = ModelEvent::Retrying { attempt, delay, why: error.message };
                self.info.budget.count(&again);
                self.turn.handle(Input::Model(again))?;
                if let Some(stop) = self.spent_limit(core) {
                    return Ok(self.turn.handle(Input::ModelFailed(self.limit_reached(core, &stop)))?);
                }
                self.tasks.reviews.spawn(async move {
                    tokio::time::sleep(delay).await;
                    Reviewing::Again
                });
                Ok(())
            }
            Decision::Pause { reason } => {
                self.answering.paused = Some(reason.clone());
                Ok(self.turn.handle(Input::ModelFailed(error))?)
            }
            Decision::Allow
            | Decision::Ask { .. }
            | Decision::Refuse { .. }
            | Decision::Invalid { .. }
            | Decision::Abort { .. }
            | Decision::Retry { .. }
            | Decision::Again { .. } => Ok(self.turn.handle(Input::ModelFailed(error))?),
        }
    }
}
