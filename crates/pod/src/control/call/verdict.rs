//! The decision about a call, as an input for the turn machine and as records. Does not depend on who decides.

use super::asked::Asks;
use super::order::Claims;
use super::parse::taken_back;
use crate::control::commit::Journaled;
use crate::control::limits::MAX_CALLS;
use crate::feature::{RegisteredTool, sanitize_lines};
use crate::record::{Decision, GateNote, TransformNote, VerdictGiven};
use authority::Redactor;
use llm_worker::CallId;
use llm_worker::effect::{CallVerdict, Input};

/// Bytes of the reason why a call does not run; a part of it may be the text of a foreign tool.
pub(super) const MAX_PROBLEM: usize = 4 * 1024;

/// The decision about a call, with the parts of its `verdict` records.
#[derive(Debug)]
pub(crate) struct Authorization {
    pub(crate) verdict: CallVerdict<Journaled>,
    pub(super) rule: String,
    /// The gate that decided, if a gate did.
    pub(super) gate: GateNote,
    /// The verdicts of the gates that allowed the call.
    pub(super) allowed: Vec<VerdictGiven>,
    pub(super) transforms: Vec<TransformNote>,
    /// What a person is asked before the call runs.
    pub(super) asks: Asks,
    /// The tool that the call names in its arguments, if it does.
    pub(super) named: Option<String>,
}

impl Authorization {
    pub(super) fn by(rule: impl Into<String>, verdict: CallVerdict<Journaled>) -> Self {
        Self {
            verdict,
            rule: rule.into(),
            gate: GateNote::default(),
            allowed: Vec::new(),
            transforms: Vec::new(),
            asks: Asks::default(),
            named: None,
        }
    }

    /// A call that is not valid; `rule` names the check that failed.
    pub(super) fn invalid(rule: &str, problem: &str, redactor: &Redactor) -> Self {
        Self::by(
            rule,
            CallVerdict::Invalid {
                problem: sanitize_lines(problem, MAX_PROBLEM, redactor),
            },
        )
    }

    /// Why the call does not run.
    pub(super) fn reason(&self) -> String {
        match &self.verdict {
            CallVerdict::Refuse { reason }
            | CallVerdict::Invalid { problem: reason }
            | CallVerdict::Abort { reason } => reason.clone(),
            CallVerdict::Allow(_) | CallVerdict::Ask(_) => String::new(),
        }
    }

    /// The project is another one: the turn of the call ends before anything runs.
    pub(crate) fn project_replaced(reason: String) -> Self {
        Self::by("host:project", CallVerdict::Abort { reason })
    }

    pub(super) fn revoked(tool: &RegisteredTool) -> Self {
        Self::by(
            "host:revoked",
            CallVerdict::Refuse {
                reason: taken_back(&tool.definition.name, &tool.feature),
            },
        )
    }

    /// Refuses an allowed call if the calls of this answer have too many bytes of arguments together: defaults can make
    /// short arguments long.
    pub(crate) fn within(self, bytes: &mut usize, redactor: &Redactor) -> Self {
        let new = match &self.verdict {
            CallVerdict::Allow(call) => call.record.arguments.len(),
            CallVerdict::Ask(question) => question.arguments.len(),
            CallVerdict::Refuse { .. }
            | CallVerdict::Invalid { .. }
            | CallVerdict::Abort { .. } => return self,
        };
        *bytes += new;
        if *bytes <= MAX_CALLS {
            return self;
        }
        *bytes -= new;
        let problem = format!(
            "the calls of this answer have over {MAX_CALLS} bytes of arguments together, defaults included; make this \
             one again by itself"
        );
        self.replaced(Self::invalid("host:arguments", &problem, redactor))
    }

    /// Refuses a call about which a person is to be asked, if too many wait already.
    pub(crate) fn within_open(self, open: &mut usize, most: usize) -> Self {
        if !matches!(self.verdict, CallVerdict::Ask(_)) {
            return self;
        }
        if *open < most {
            *open += 1;
            return self;
        }
        let reason =
            format!("{most} calls already wait for approval; call again once they are answered");
        self.replaced(Self::by("host:approvals", CallVerdict::Refuse { reason }))
    }

    /// Another decision about the same call; what hooks did to it stays.
    fn replaced(self, by: Self) -> Self {
        Self {
            verdict: by.verdict,
            rule: by.rule,
            ..self
        }
    }

    /// What the call touches, if it may run now or once a person has allowed it.
    pub(crate) fn claims(&self) -> Option<&Claims> {
        let may_run = matches!(self.verdict, CallVerdict::Allow(_) | CallVerdict::Ask(_));
        self.asks.claims.as_ref().filter(|_| may_run)
    }

    /// The input for the turn machine.
    pub(crate) fn into_input(self, id: CallId) -> Input<Journaled> {
        let Self {
            verdict,
            rule,
            gate,
            allowed: mut authorization,
            transforms,
            asks,
            named,
        } = self;
        let decision = match &verdict {
            CallVerdict::Allow(_) => Decision::Allow,
            // The gates that ask have records of their own.
            CallVerdict::Ask(_) => asks
                .by_rule
                .map_or(Decision::Allow, |question| Decision::Ask {
                    question,
                    expires_after_ms: None,
                }),
            CallVerdict::Refuse { reason } => Decision::Refuse {
                reason: reason.clone(),
            },
            CallVerdict::Invalid { problem } => Decision::Invalid {
                reason: problem.clone(),
            },
            CallVerdict::Abort { reason } => Decision::Abort {
                reason: reason.clone(),
            },
        };
        authorization.push(VerdictGiven {
            call: Some(id),
            turn: None,
            decision,
            rule,
            gate,
            transforms,
            tool: named,
        });
        Input::Judged {
            id,
            verdict,
            authorization,
        }
    }
}
