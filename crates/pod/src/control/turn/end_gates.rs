//! The gates at the end of a turn: they may have a person look before the next one. Does not depend on the turn machine.

use super::super::core::Core;
use super::super::gates;
use super::super::pipeline::ActorCommit;
use super::{Running, TurnStage};
use crate::hook::{GateOutcome, HookPoint, TurnEnd, TurnEndView};
use crate::mailbox::events::Event;
use crate::record::{HoldCause, Record, Suspended};
use llm_worker::effect::Outcome;
use tokio::task::JoinSet;

impl Running {
    /// Calls the gates at the end of the turn, if there are any.
    pub(super) fn ask_end_gates(&mut self, core: &Core, outcome: Outcome) -> TurnStage {
        // Gates before a request that will not be sent are dropped.
        self.tasks.gates = JoinSet::new();
        if !core.registry.hooks().any::<TurnEnd>("") {
            return TurnStage::Over(outcome, None);
        }
        let (registry, callbacks) = (core.registry.clone(), core.callbacks.clone());
        let steps = core.state.requests - self.before.requests;
        let view = TurnEndView { turn: core.state.turns, outcome: outcome.clone(), steps };
        self.tasks.gates.spawn(async move { registry.hooks().decide::<TurnEnd>(&callbacks, || view).await });
        TurnStage::Asking(outcome)
    }

    /// The gates have answered; their verdicts are committed.
    pub(super) fn end_gates_answered(&mut self, core: &mut Core, outcome: Outcome, gates: &GateOutcome) {
        let refusal = gates::refusal(gates);
        let verdicts = gates::verdicts(HookPoint::TurnEnd, None, gates);
        let mut records: Vec<_> = verdicts.into_iter().map(Record::from).collect();
        if let Some(reason) = refusal.clone() {
            records.push(Suspended { reason, cause: Some(HoldCause::Gate), by: None }.into());
        }
        self.stage = TurnStage::Noting(outcome, refusal);
        core.append_actor_commit(ActorCommit::TurnEnd, records);
    }

    /// The verdicts were committed, or cannot be.
    pub(super) fn end_gates_noted(&mut self, core: &mut Core) {
        if let TurnStage::Noting(outcome, paused) = &self.stage {
            paused.iter().for_each(|reason| core.outbox.show(Event::warning(reason.clone())));
            self.stage = TurnStage::Over(outcome.clone(), paused.clone());
        }
    }
}
