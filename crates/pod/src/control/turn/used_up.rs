//! The words for a budget that a turn has used up: whose it is, and what it came to. Does not depend on the turn machine.

use super::Running;
use crate::control::commit::Journaled;
use crate::control::core::Core;
use crate::control::pod_budget::{pod_stopped, run_stopped};
use crate::permission::Remedy;
use crate::record::{BudgetKind, Suspended};
use crate::session::spent::{Spent, limit_of};
use llm_worker::effect::{Fact, TurnStop};
use llm_worker::turn::CommitRequest;
use llm_worker::{ErrorKind, ModelError};

impl Running {
    /// What holds the pod behind this commit, if it ends the turn at a limit.
    pub(super) fn used_up(
        &self,
        core: &Core,
        request: &CommitRequest<Journaled>,
    ) -> Option<Suspended> {
        let end = |fact: &Fact<Journaled>| {
            if let Fact::TurnFinished(outcome) = fact {
                limit_of(outcome).map(|row| row.kind)
            } else {
                None
            }
        };
        let kind = request.facts().iter().find_map(end)?;
        let used = self.used(core);
        if self.is_of_pod(core, kind) {
            return Some(pod_stopped(&core.state, self.pod_limits, used, &[kind]));
        }
        // An input with which a hook had the model go on has what the one before left.
        let since = core
            .state
            .going_on
            .filter(|on| on.nth == 0)
            .map_or(self.before, |on| on.since);
        Some(run_stopped(
            self.limits,
            self.before.since(since),
            used.since(since),
            kind,
        ))
    }

    /// Whether it is the pod's budget of this kind that is used up, and not the run's.
    fn is_of_pod(&self, core: &Core, kind: BudgetKind) -> bool {
        self.pod_limits
            .reached(self.used(core).since(core.state.budget_since))
            .contains(&kind)
    }

    /// What the session has used by now, attempts without an answer included.
    fn used(&self, core: &Core) -> Spent {
        let used = core.state.spent_at((core.store.clock)());
        self.info
            .budget
            .unanswered()
            .map_or(used, |lost| used.plus(lost.usage, lost.cost))
    }

    /// The failure of a request whose failed attempts reached a limit.
    pub(super) fn limit_reached(&self, core: &Core, stop: &TurnStop) -> ModelError {
        let (kind, limit, remedy) = match stop {
            TurnStop::TokenLimit => (BudgetKind::Tokens, "token", Remedy::RaiseTokens),
            TurnStop::TimeLimit => (BudgetKind::Time, "time", Remedy::RaiseTime),
            TurnStop::CostLimit | TurnStop::ContextLimit | TurnStop::Aborted { .. } => {
                (BudgetKind::Cost, "cost", Remedy::RaiseCost)
            }
        };
        let is_of_pod = self.is_of_pod(core, kind);
        let whose = if is_of_pod { "pod's " } else { "" };
        let message =
            format!("the {whose}{limit} limit was reached by attempts that gave no answer");
        let remedy = if is_of_pod {
            Remedy::RaisePodBudget
        } else {
            remedy
        };
        let help = Some((core.permission.policy.terms.remedy)(&remedy));
        ModelError {
            kind: ErrorKind::Exhausted,
            message,
            help,
        }
    }
}
