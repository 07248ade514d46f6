//! Gates that see an answer that is whole, and gates that see a request that brought none. Does not depend on calls.

use super::answering::Reviewing;
use super::model_backoff::ModelBackoff;
use super::{Running, TurnStage};
use crate::control::core::{Core, Fatal};
use crate::control::gates;
use crate::hook::{
    AnswerView, ErrorView, GateOutcome, HookPoint, MAX_RETRIES, PostAssistant, TurnError,
};
use crate::record::Decision;
use llm_worker::effect::Input;
use llm_worker::{ErrorKind, ModelError, ModelEvent};
use protocol::status::ModelRetry;
use std::time::Duration;
use tokio::time::Instant;
use tracing::warn;

/// How much earlier than expected a model's client may begin its next attempt.
const CLOCKS_APART: Duration = Duration::from_secs(1);

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
        let turn = self.info.number;
        let request = core.state.requests;
        let text = std::mem::take(&mut self.answering.text);
        let calls = std::mem::take(&mut self.answering.calls);
        self.answering.stop = Some(event);
        let view = AnswerView {
            turn,
            request,
            text,
            calls,
        };
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        self.tasks.reviews.spawn(async move {
            Reviewing::Answer(
                registry
                    .hooks()
                    .decide::<PostAssistant>(&callbacks, || view)
                    .await,
            )
        });
        None
    }

    /// A request brought no answer: gates see it, if there are any.
    pub(super) fn failed(&mut self, core: &Core, error: ModelError) -> Result<(), Fatal> {
        if !core.registry.hooks().any::<TurnError>("")
            || !matches!(self.stage, TurnStage::Machine)
            || self.cancelled
        {
            return self.no_answer(core, error);
        }
        let view = ErrorView {
            turn: self.info.number,
            request: core.state.requests,
            kind: error.kind,
            message: error.message.clone(),
            retries: self.answering.retries,
        };
        self.answering.error = Some(error);
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        self.tasks.reviews.spawn(async move {
            Reviewing::Failure(
                registry
                    .hooks()
                    .decide::<TurnError>(&callbacks, || view)
                    .await,
            )
        });
        Ok(())
    }

    /// The gates have answered.
    pub(super) fn reviewed(&mut self, core: &mut Core, reviewed: Reviewing) -> Result<(), Fatal> {
        match reviewed {
            Reviewing::Answer(gates) => {
                let Some(stop) = self.answering.stop.take() else {
                    return Ok(());
                };
                self.info.budget.count(&stop);
                let authorization = gates::verdicts(HookPoint::PostAssistant, None, &gates);
                self.turn.handle(Input::Reviewed {
                    authorization,
                    halt: gates::refusal(&gates),
                })?;
                Ok(self.turn.handle(Input::Model(stop))?)
            }
            Reviewing::Failure(gates) => self.failure_judged(core, &gates),
            Reviewing::View(answer) => self.view_answered(core, *answer),
        }
    }

    fn failure_judged(&mut self, core: &mut Core, gates: &GateOutcome) -> Result<(), Fatal> {
        let Some(error) = self.answering.error.take() else {
            return Ok(());
        };
        for verdict in gates::verdicts(HookPoint::TurnError, None, gates) {
            core.pending.add(verdict);
        }
        match &gates.decision {
            Decision::Retry { after_ms }
                if passes(&error) && self.answering.retries < MAX_RETRIES =>
            {
                self.answering.retries += 1;
                self.send_later(
                    core,
                    self.answering.retries,
                    Duration::from_millis(*after_ms),
                    error.message,
                )
            }
            Decision::Pause { reason } => {
                self.answering.paused = Some(reason.clone());
                self.give_up(error)
            }
            Decision::Allow
            | Decision::Ask { .. }
            | Decision::Refuse { .. }
            | Decision::Invalid { .. }
            | Decision::Abort { .. }
            | Decision::Retry { .. }
            | Decision::Again { .. } => self.no_answer(core, error),
        }
    }

    /// A request brought no answer, and no gate decided about it: a pod that stays sends it again until the model answers,
    /// or the turn is ended.
    fn no_answer(&mut self, core: &Core, error: ModelError) -> Result<(), Fatal> {
        if !core.stays
            || !passes(&error)
            || !matches!(self.stage, TurnStage::Machine)
            || self.cancelled
        {
            return self.give_up(error);
        }
        let (attempt, pause) = self.backoff.next_pause();
        warn!(parent: &self.step_span, ?pause, "the model could not be reached: the turn waits");
        self.send_later(core, attempt, pause, error.message)
    }

    /// Sends the request again after this time, unless its attempts used up a limit.
    fn send_later(
        &mut self,
        core: &Core,
        attempt: u32,
        delay: Duration,
        why: String,
    ) -> Result<(), Fatal> {
        let again = ModelEvent::Retrying {
            attempt,
            delay,
            why,
        };
        self.backoff.take(&again, (core.store.clock)());
        self.info.budget.count(&again);
        self.turn.handle(Input::Model(again))?;
        (core.store.probe)("model:waits");
        self.spent_limit(core)
            .map_or(Ok(()), |stop| self.give_up(self.limit_reached(core, &stop)))
    }

    /// The request is not sent again.
    pub(super) fn give_up(&mut self, error: ModelError) -> Result<(), Fatal> {
        self.backoff = ModelBackoff::default();
        Ok(self.turn.handle(Input::ModelFailed(error))?)
    }

    /// When the request is to be sent again; none while it is under way, or while a person holds the turn.
    pub(in crate::control) fn retry_at(&self) -> Option<Instant> {
        self.backoff
            .due()
            .filter(|_| self.waits_for_model() && !self.holds)
    }

    /// Whether nothing of the turn runs until its request is sent again.
    pub(in crate::control) fn waits_for_model(&self) -> bool {
        self.stream.is_none() && self.backoff.due().is_some()
    }

    /// What the turn waits for, for people; none while one of them holds it.
    pub(in crate::control) fn model_wait(&self) -> Option<ModelRetry> {
        self.backoff
            .wait()
            .filter(|_| !(self.holds && self.waits_for_model()))
    }

    /// Sends the request again now, if no attempt is under way and nobody holds the turn.
    pub(in crate::control) fn try_now(&mut self) -> Result<(), Fatal> {
        if self.holds || !self.is_between_attempts() {
            return Ok(());
        }
        self.stream = None;
        Ok(self.turn.handle(Input::SendAgain)?)
    }

    /// A model's client that waits between its attempts waits on here, until the turn is not held any more.
    pub(super) fn hold_attempts(&mut self) {
        if self.is_between_attempts() {
            self.stream = None;
        }
    }

    /// Whether no attempt is under way. The model's client has a clock of its own for its next one.
    fn is_between_attempts(&self) -> bool {
        self.backoff
            .due()
            .is_some_and(|at| self.stream.is_none() || at > Instant::now() + CLOCKS_APART)
    }
}

/// Whether the same request may be answered later.
fn passes(error: &ModelError) -> bool {
    matches!(error.kind, ErrorKind::Retry | ErrorKind::Unavailable)
}
