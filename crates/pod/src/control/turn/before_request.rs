//! Before each request of a turn: the checks of the host, the gates, the items that join the request, and a hold. Does
//! not depend on the model's stream or on calls.

use super::{Running, TurnStage, ViewChange};
use crate::control::commit::Note;
use crate::control::core::{Core, Fatal};
use crate::control::limits::RunLimits;
use crate::control::{gates, queue};
use crate::foreign::MAX_STUCK;
use crate::hook::{GateOutcome, HookPoint, PreRequest, RequestView};
use crate::record::{NotificationQueued, SystemItem, VerdictGiven};
use llm_worker::effect::{Gated, Input, TurnStop};
use llm_worker::projection::Neutral;
use tokio::task::JoinSet;

impl Running {
    /// Checks the limits and calls the gates; without gates the request is cleared at once.
    pub(super) fn gate(&mut self, core: &mut Core) -> Result<(), Fatal> {
        let is_first = core.state.requests == self.before.requests;
        if let Some(Err(replaced)) = is_first.then(|| core.permission.workspace.check_roots()) {
            return self.gated(
                core,
                None,
                Some(TurnStop::Aborted {
                    reason: replaced.to_string(),
                }),
            );
        }
        if let Some(stop) = self.over_budget(core) {
            return self.gated(core, None, Some(stop));
        }
        if self.wants_view(core)? {
            return Ok(());
        }
        if self.is_too_large(core) {
            return self.gated(core, None, Some(TurnStop::ContextLimit));
        }
        let stuck = core.callbacks.stuck() >= MAX_STUCK;
        if stuck || !core.registry.hooks().any::<PreRequest>("") {
            return self.gated(
                core,
                None,
                stuck.then(|| TurnStop::Aborted {
                    reason: Fatal::Stuck.to_string(),
                }),
            );
        }
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        let number = core.state.requests + 1;
        let items = core.state.items;
        let view = RequestView {
            turn: self.info.number,
            number,
            items,
        };
        self.tasks.gates.spawn(async move {
            registry
                .hooks()
                .decide::<PreRequest>(&callbacks, || view)
                .await
        });
        Ok(())
    }

    /// The gates have answered.
    pub(super) fn request_gates_answered(
        &mut self,
        core: &Core,
        gates: &GateOutcome,
    ) -> Result<(), Fatal> {
        let authorization = gates::verdicts(HookPoint::PreRequest, None, gates);
        self.gated(
            core,
            Some(authorization),
            gates::refusal(gates).map(|reason| TurnStop::Aborted { reason }),
        )
    }

    /// Clears or stops the next request. Waiting notifications are committed with it.
    fn gated(
        &mut self,
        core: &Core,
        authorization: Option<Vec<VerdictGiven>>,
        stop: Option<TurnStop>,
    ) -> Result<(), Fatal> {
        let deliver = |notice: &NotificationQueued| {
            let NotificationQueued {
                number,
                feature,
                registry_generation,
                text,
                ..
            } = notice.clone();
            Note::System(SystemItem::Notification {
                number,
                feature,
                registry_generation,
                text,
            })
        };
        let mut notes = std::mem::take(&mut self.deferred);
        notes.extend(core.state.notices.values().map(deliver));
        if stop.is_none() && core.state.standing.note_due {
            let now = (core.store.clock)();
            let budget = self
                .limits
                .left_words(core.state.spent_at(now).since(self.before));
            let generation = self.info.generation;
            let text = core.state.context_note(now, &self.taking, &budget);
            notes.push(Note::System(SystemItem::Context { generation, text }));
        }
        // Before the first request the turn's own input comes first; it is not in the log yet.
        if stop.is_none() && !core.pipeline.changes_queue() {
            let joining = || {
                queue::joining(&core.state.queued)
                    .filter(|waiting| !self.own().contains(&waiting.input))
            };
            notes.extend(joining().map(Note::from));
            let new: Vec<_> = joining()
                .map(|waiting| waiting.input)
                .filter(|input| !self.taking.contains(input))
                .collect();
            self.taking.extend(new);
        }
        Ok(self.turn.handle(Input::Gated(Gated {
            authorization,
            notes,
            stop,
        }))?)
    }

    /// The limit on cost, tokens or time that is reached.
    pub(super) fn spent_limit(&self, core: &Core) -> Option<TurnStop> {
        let (
            RunLimits {
                max_cost,
                max_tokens,
                max_wall,
                ..
            },
            budget,
        ) = (self.limits, &self.info.budget);
        if budget.is_spent(max_cost, core.state.cost.unwrap_or_default()) {
            return Some(TurnStop::CostLimit);
        }
        let used = core.state.spent_at((core.store.clock)()).since(self.before);
        let tokens = budget
            .is_out_of_tokens(max_tokens, used.usage)
            .then_some(TurnStop::TokenLimit);
        tokens.or_else(|| {
            max_wall
                .is_some_and(|most| used.wall() >= most)
                .then_some(TurnStop::TimeLimit)
        })
    }

    /// The limit that is reached, or that cannot be kept because the provider does not count.
    fn over_budget(&self, core: &Core) -> Option<TurnStop> {
        let unkept = |limit: &str| {
            let model = core.model.name();
            let reason = format!(
                "{model} does not say how many tokens it used, so the {limit} limit cannot be kept"
            );
            TurnStop::Aborted { reason }
        };
        let no_cost = self.info.budget.is_uncounted() && self.limits.max_cost.is_some();
        // A model in this process is no provider: it takes no tokens.
        let is_remote = core.model.dialect().id() != Neutral::ID;
        let no_tokens =
            is_remote && self.info.budget.is_unmetered() && self.limits.max_tokens.is_some();
        let unkept = no_cost
            .then(|| unkept("cost"))
            .or_else(|| no_tokens.then(|| unkept("token")));
        self.spent_limit(core).or(unkept)
    }

    /// Has the turn wait before its next request, or go on.
    pub(crate) fn hold(&mut self, held: bool) -> Result<(), Fatal> {
        if held == self.holds || !matches!(self.stage, TurnStage::Machine) {
            return Ok(());
        }
        self.holds = held;
        if matches!(
            self.view_change,
            ViewChange::Wanted | ViewChange::Asking | ViewChange::Recording(_)
        ) {
            // The turn is held already.
            return Ok(());
        }
        self.turn
            .handle(if held { Input::Hold } else { Input::Release })?;
        // Gates that run are not waited for; when the turn goes on they are called again. Their answer is ignored, but
        // it is due.
        if held && !self.tasks.gates.is_empty() {
            self.tasks.gates = JoinSet::new();
            self.turn.handle(Input::Gated(Gated::default()))?;
        }
        if held {
            self.hold_attempts()
        } else {
            self.try_now()?
        }
        Ok(())
    }
}
