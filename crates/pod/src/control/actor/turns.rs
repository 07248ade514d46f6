//! The begin and the end of a turn. Both happen with nothing in flight.

use super::{Actor, At, GRANTS_EVERY};
use crate::control::client::TurnCancel;
use crate::control::core::{Core, Fatal};
use crate::control::limits::RunLimits;
use crate::control::pipeline::ActorCommit;
use crate::control::turn::Running;
use crate::record::{HoldCause, InputId, Suspended, SystemItem};
use crate::session::fold::GoingOn;
use crate::session::references;
use crate::session::restore::loss;
use crate::session::spent::Spent;
use tokio::time::Instant;

impl Actor {
    /// Takes these inputs through a turn, under the tightest of their limits.
    pub(super) fn begin_turn(&mut self, inputs: &[InputId]) -> Result<(), Fatal> {
        let At::Idle(history) = std::mem::replace(&mut self.at, At::Between) else {
            return Ok(());
        };
        let Core {
            store,
            state,
            registry,
            pending,
            ..
        } = &mut self.core;
        if self.submissions.is_idle() {
            // Blobs that only older outputs need may make room. If this fails, the next blob fails for the same reason
            // and says so.
            drop(
                store
                    .blobs
                    .refer(references::of(state, store.blobs.bound())),
            );
        }
        if self.grants_written.elapsed() >= GRANTS_EVERY {
            self.grants_written = Instant::now();
            pending.add(registry.grants_used());
        }
        let generation = history.surface().generation;
        let untold = state.untold.as_ref().map(loss);
        let untold = untold.into_iter().chain(state.standing.undo_note());
        let mut notes: Vec<_> = untold
            .map(|text| SystemItem::Recovery { generation, text })
            .collect();
        let text = (self.preamble.environment)();
        if state.environment.as_deref() != Some(text.as_str()) {
            notes.push(SystemItem::Environment { generation, text });
        }
        notes.extend(self.preamble.notes.iter().cloned());
        let limits = self.limits_of(inputs);
        let state = &self.core.state;
        self.submissions
            .taken(state.interrupted_inputs().collect::<Vec<_>>().into_iter());
        let mut turn = Box::new(Running::start(
            &mut self.core,
            *history,
            notes,
            inputs,
            limits,
        ));
        if let Some(TurnCancel { by }) = self.submissions.turn_begins() {
            turn.cancel(by)?;
        }
        self.at = At::Turn(turn);
        Ok(())
    }

    /// Holds a pod that stays and has used its budget, before a turn begins. Returns whether it did.
    pub(super) fn hold_at_budget(&mut self) -> bool {
        let is_free = self.core.stays && self.core.state.held.is_none();
        let Some(stopped) = is_free.then(|| self.core.used_up()).flatten() else {
            return false;
        };
        self.core
            .append_actor_commit(ActorCommit::TurnEnd, vec![stopped.into()]);
        true
    }

    /// What these inputs may use; without an input, what is left to the one that the turn goes on with.
    fn limits_of(&self, inputs: &[InputId]) -> RunLimits {
        let state = &self.core.state;
        let left = |on: GoingOn| {
            let used = if inputs.is_empty() {
                state.spent().since(on.since)
            } else {
                Spent::default()
            };
            self.limits.of_input(on.limits).less(used)
        };
        let queued = inputs.iter().filter_map(|input| state.queued.get(*input));
        let own = queued.map(|input| self.limits.of_input(input.limits));
        let resumed = state
            .going_on
            .filter(|_| inputs.is_empty() && state.is_resumed_at_limit());
        let run = own
            .chain(state.continued().or(resumed).map(left))
            .reduce(RunLimits::meet)
            .unwrap_or(self.limits);
        run.within(
            self.core
                .pod_limits
                .less(state.spent().since(state.budget_since)),
        )
    }

    /// Asks the gates at the end of the newest turn: the process ended before they had answered.
    pub(super) fn ask_end_gates(&mut self) {
        self.owes_end_gates = false;
        let state = &self.core.state;
        let Some(outcome) = state.last_outcome.clone() else {
            return;
        };
        let left = |on: GoingOn| {
            self.limits
                .of_input(on.limits)
                .less(state.turn_began.since(on.since))
        };
        let pod = self
            .core
            .pod_limits
            .less(state.turn_began.since(state.budget_since));
        let limits = state.going_on.map_or(self.limits, left).within(pod);
        let At::Idle(history) = std::mem::replace(&mut self.at, At::Between) else {
            return;
        };
        self.at = At::Turn(Box::new(Running::ended(
            &self.core, *history, outcome, limits,
        )));
    }

    pub(super) fn end_turn(&mut self) -> Result<(), Fatal> {
        if let At::Turn(turn) = std::mem::replace(&mut self.at, At::Between) {
            if turn
                .own()
                .iter()
                .any(|input| self.core.state.queued.get(*input).is_some())
            {
                // A turn for it would end in the same way.
                let reason = "the turn ended before it took its input".to_owned();
                let record = Suspended {
                    reason,
                    cause: Some(HoldCause::Bug),
                    budget: None,
                    by: None,
                }
                .into();
                self.core
                    .append_actor_commit(ActorCommit::TurnEnd, vec![record]);
            }
            // Also the clients of inputs that it did not take are told how it ended.
            self.submissions.taken(turn.own().iter().copied());
            if turn.delivered() {
                self.preamble.notes.clear();
            }
            let (history, end, again) = turn.finish(&self.core)?;
            self.at = At::Idle(Box::new(history));
            self.submissions.turn_ended(&end, again);
        }
        Ok(())
    }
}
