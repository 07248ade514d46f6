//! The gates at the end of a turn: they may have a person look before the next one, or have the model go on. Does not
//! depend on the turn machine.

use super::{AfterTurn, Running, TurnStage};
use crate::control::core::Core;
use crate::control::gates;
use crate::control::pipeline::ActorCommit;
use crate::feature::escape_line;
use crate::hook::{GateOutcome, HookPoint, MAX_AGAIN, MAX_REASON, TurnEnd, TurnEndView};
use crate::mailbox::events::Event;
use crate::record::{
    Again, Decision, HoldCause, InputId, InputQueued, Record, Resumed, Suspended, VerdictGiven,
};
use llm_worker::effect::Outcome;
use tokio::task::JoinSet;

/// The lines that say why an answer was not accepted; what to do follows.
const REASON_LINES: usize = 3;

impl Running {
    /// Calls the gates at the end of the turn, if there are any. A turn that waits for a person has not ended: the next one
    /// goes on with it.
    pub(super) fn ask_end_gates(&mut self, core: &Core, outcome: Outcome) -> TurnStage {
        // Gates before a request that will not be sent are dropped.
        self.tasks.gates = JoinSet::new();
        if outcome == Outcome::Waiting || !self.any_end_gate(core) {
            let none = GateOutcome {
                decision: Decision::Allow,
                runs: Vec::new(),
            };
            return match self.answering.paused {
                Some(_) => TurnStage::Answered(outcome, none),
                None => TurnStage::Over(outcome, AfterTurn::default()),
            };
        }
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        let steps = core.state.spent().since(self.before).requests;
        let answer = core.state.last_answer.clone();
        let turn = core.state.turns;
        let shortfall = core.state.shortfall;
        let output_schema = core.state.output_schema.clone();
        let view = TurnEndView {
            turn,
            outcome: outcome.clone(),
            steps,
            answer,
            shortfall,
            output_schema,
        };
        self.tasks.gates.spawn(async move {
            registry
                .hooks()
                .decide::<TurnEnd>(&callbacks, || view)
                .await
        });
        TurnStage::Asking(outcome)
    }

    /// Whether a gate is asked at the end of the turn. They judge the work of a model, of which a command has none.
    pub(super) fn any_end_gate(&self, core: &Core) -> bool {
        if self.is_command {
            return false;
        }
        let taken = |input: &InputId| {
            core.state
                .queued
                .get(*input)
                .is_some_and(|input| input.output_schema.is_some())
        };
        let has_schema = core.state.output_schema.is_some() || self.taking.iter().any(taken);
        core.registry.hooks().any_gate::<TurnEnd>(has_schema)
    }

    /// The gates have answered, and nothing else changes the queue: their verdicts are committed.
    pub(super) fn end_gates_answered(&mut self, core: &mut Core) {
        let TurnStage::Answered(outcome, gates) = &self.stage else {
            return;
        };
        let outcome = outcome.clone();
        let gates = gates.clone();
        let verdicts = gates::verdicts(HookPoint::TurnEnd, None, &gates);
        let turn = Some(core.state.turns);
        let mut records: Vec<_> = verdicts
            .into_iter()
            .map(|verdict| Record::from(VerdictGiven { turn, ..verdict }))
            .collect();
        let mut after = AfterTurn {
            paused: gates::refusal(&gates),
            ..AfterTurn::default()
        };
        after.paused = after.paused.or(self.answering.paused.take());
        if let Some(reason) = after.paused.clone() {
            let cause = Some(HoldCause::Gate);
            records.push(
                Suspended {
                    reason,
                    cause,
                    budget: None,
                    by: None,
                }
                .into(),
            );
            if self.reopened && !core.stays {
                // The person who began this run goes on.
                records.push(
                    Resumed {
                        cause,
                        more: Vec::new(),
                        by: None,
                    }
                    .into(),
                );
            }
        } else if let Decision::Again { words } = &gates.decision
            && !self.cancelled
            && may_go_on(core, &outcome)
        {
            match self.again(core, &gates, words) {
                Ok(Some(queued)) => {
                    after.again = Some(queued.input);
                    records.push(queued.into());
                }
                Ok(None) => {
                    let by = gates
                        .runs
                        .iter()
                        .find(|run| matches!(run.decision, Decision::Again { .. }));
                    let by = by.map(|run| run.feature.to_string()).unwrap_or_default();
                    let why = words
                        .lines()
                        .take(REASON_LINES)
                        .collect::<Vec<_>>()
                        .join(" ");
                    let text = format!(
                        "{by} does not accept the answer, also after {MAX_AGAIN} corrections: {why}"
                    );
                    core.outbox
                        .show(Event::warning(escape_line(&text, MAX_REASON)));
                }
                Err(limit) => after.limit = Some(limit),
            }
        }
        self.stage = TurnStage::Noting(outcome, after);
        core.append_actor_commit(ActorCommit::TurnEnd, records);
    }

    /// The input with which the model goes on: what is left of the limits is its own. None if it went on often enough.
    fn again(
        &self,
        core: &Core,
        gates: &GateOutcome,
        words: &str,
    ) -> Result<Option<InputQueued>, Outcome> {
        let (of, nth) = core
            .state
            .going_on
            .map_or((0, 1), |of| (of.input, of.nth + 1));
        let Some(run) = gates
            .runs
            .iter()
            .find(|run| matches!(run.decision, Decision::Again { .. }))
        else {
            return Ok(None);
        };
        if nth > MAX_AGAIN {
            return Ok(None);
        }
        let left = self.limits.left(core.state.spent().since(self.before))?;
        let again = Again {
            feature: run.feature.to_string(),
            hook: run.hook.clone(),
            of,
            nth,
        };
        Ok(Some(InputQueued {
            input: core.state.inputs + 1,
            text: words.to_owned(),
            limits: Some(left.into()),
            output_schema: core.state.output_schema.as_deref().map(str::to_owned),
            again: Some(again),
            ..InputQueued::default()
        }))
    }

    /// The verdicts were committed, or cannot be.
    pub(super) fn end_gates_noted(&mut self, core: &mut Core, durable: bool) {
        if let TurnStage::Noting(outcome, after) = &self.stage {
            let outcome = outcome.clone();
            let mut after = after.clone();
            after
                .paused
                .iter()
                .for_each(|reason| core.outbox.show(Event::warning(reason.clone())));
            after.again.take_if(|_| !durable);
            self.stage = TurnStage::Over(outcome, after);
        }
    }
}

/// Whether a turn that ended so may be followed by another one: not where a person or a limit ended it.
fn may_go_on(core: &Core, outcome: &Outcome) -> bool {
    let ended = matches!(
        outcome,
        Outcome::Done | Outcome::MaxTokens | Outcome::Empty | Outcome::Refused
    );
    ended && core.state.held.is_none()
}
