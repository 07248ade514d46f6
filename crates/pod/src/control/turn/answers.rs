//! The answers of people to the calls of a turn that wait: a denial ends the call, an allowed call is made ready again and
//! starts. Does not depend on clients.

use super::{Answered, Running, TurnStage};
use crate::control::call::approvals::ApprovalAnswer;
use crate::control::core::{Core, Fatal};
use crate::control::turn_end::TurnEnd;
use crate::record::{ApprovalDecision, ApprovalRequested, ApprovalResolved, ApprovalScope};
use llm_worker::effect::{Input, Outcome};
use std::sync::Arc;
use std::time::Duration;

impl Running {
    /// Whether it waits for a person, and nothing else of it runs.
    pub(in crate::control) fn is_waiting(&self) -> bool {
        matches!(self.stage, TurnStage::Machine)
            && self.turn.is_waiting(self.tasks.calls.waiting())
            && self.tasks.answers.is_empty()
    }

    /// How a turn stands that waits for a person.
    pub(in crate::control) fn waiting(&self, core: &Core) -> TurnEnd {
        self.end(core, Outcome::Waiting, None)
    }

    /// The questions that it takes an answer to.
    pub(in crate::control) fn unanswered(&self, core: &Core) -> Vec<Arc<ApprovalRequested>> {
        let open = core.state.approvals.open.values();
        open.filter(|asked| {
            self.turn.is_parked(asked.call) && !self.answered.contains(&asked.approval)
        })
        .cloned()
        .collect()
    }

    /// Denies the call of a question to which nobody has answered in time.
    pub(in crate::control) fn expire(&mut self, asked: &ApprovalRequested) -> Result<(), Fatal> {
        self.answered.insert(asked.approval);
        let after_ms = asked
            .expires
            .map(|expires| expires.after_ms)
            .unwrap_or_default();
        let reason = format!(
            "nobody answered within {}",
            humantime::format_duration(Duration::from_millis(after_ms))
        );
        let told = format!("this call needs a person's approval, and {reason}");
        let resolution = Box::new(ApprovalResolved {
            approval: asked.approval,
            decision: ApprovalDecision::Deny,
            scope: ApprovalScope::Once,
            arguments_digest: asked.arguments_digest.clone(),
            reason: Some(reason),
            by: None,
        });
        self.tasks.calls.order.end(asked.call);
        Ok(self.turn.handle(Input::Resolved {
            id: asked.call,
            resolution,
            run: Err(told),
        })?)
    }

    /// Takes the first answer to a question. The call of another one has ended, or has its answer.
    pub(in crate::control) fn answer(
        &mut self,
        core: &Core,
        approval: Arc<ApprovalRequested>,
        answer: ApprovalAnswer,
    ) -> Result<(), Fatal> {
        let call = approval.call;
        let is_first = self.turn.is_parked(call) && self.answered.insert(approval.approval);
        if !is_first {
            return Ok(());
        }
        if !answer.allow {
            let words = answer
                .words
                .as_ref()
                .map(|words| core.registry.redactor().text(words).into_owned());
            let answer = ApprovalAnswer { words, ..answer };
            let reason = answer.denial();
            let resolution = Box::new(answer.record(None));
            self.tasks.calls.order.end(call);
            return Ok(self.turn.handle(Input::Resolved {
                id: call,
                resolution,
                run: Err(reason),
            })?);
        }
        // The turn may have waited for weeks.
        let authorizer = self
            .authorizer
            .under(core.permission.clone())
            .with_rules(&core.state.approvals.rules);
        self.tasks.answers.spawn(async move {
            let ready = authorizer.again(approval).await;
            Box::new(Answered {
                call,
                answer,
                ready,
            })
        });
        Ok(())
    }

    /// An allowed call is ready, or cannot run.
    pub(super) fn answered(
        &mut self,
        Answered {
            call,
            answer,
            ready,
        }: Answered,
    ) -> Result<(), Fatal> {
        if !self.turn.is_parked(call) {
            return Ok(());
        }
        let void = ready.as_ref().err().cloned();
        if void.is_some() {
            self.tasks.calls.order.end(call);
        }
        let run =
            ready.map_err(|why| format!("a person allowed this call, but it was not run: {why}"));
        let resolution = Box::new(answer.record(void));
        Ok(self.turn.handle(Input::Resolved {
            id: call,
            resolution,
            run,
        })?)
    }
}
