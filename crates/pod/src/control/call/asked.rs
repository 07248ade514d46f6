//! What a person is asked about a call: the parts of the question. Does not depend on the judging of calls.

use super::order::Claims;
use crate::feature::RegisteredTool;
use crate::hook::GateOutcome;
use crate::permission::{Person, Proposal};
use crate::record::{ApprovalExpiry, AskedCommand, AskingGate, Decision, ToolStarted};
use authority::SandboxMode;
use llm_worker::tool::Escalation;
use session_store::Clock;

/// What is asked about one call: several questions are one approval.
#[derive(Debug, Default)]
pub(super) struct Asks {
    /// The question of permission.
    pub(super) by_rule: Option<String>,
    /// What the call would act on: [`crate::permission::Policy::resources_digest`].
    pub(super) resources_digest: String,
    /// The rules that would allow such calls.
    pub(super) proposal: Proposal,
    /// What its command line runs.
    pub(super) command: Option<AskedCommand>,
    /// What the call touches.
    pub(super) claims: Option<Claims>,
    /// What gates ask.
    pub(super) by_gates: Vec<GateQuestion>,
}

/// What a gate asks.
#[derive(Debug)]
pub(super) struct GateQuestion {
    pub(super) gate: AskingGate,
    pub(super) question: String,
    pub(super) expires_after_ms: Option<u64>,
}

impl Asks {
    /// What is asked, a line for each rule and gate.
    pub(super) fn question(&self) -> String {
        let by_gates = self.by_gates.iter().map(|asked| &asked.question);
        self.by_rule
            .iter()
            .chain(by_gates)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// When the call is denied if nobody answers: the earliest end that a gate asks for.
    pub(super) fn expires(&self, clock: &Clock) -> Option<ApprovalExpiry> {
        let after_ms = self
            .by_gates
            .iter()
            .filter_map(|asked| asked.expires_after_ms)
            .min()?;
        Some(ApprovalExpiry {
            at_ms: (clock() / 1000).saturating_add(after_ms),
            after_ms,
        })
    }
}

/// The questions of gates. Where nobody can answer, they are refusals.
pub(super) fn of_gates(
    mut outcome: GateOutcome,
    person: Person,
) -> (GateOutcome, Vec<GateQuestion>) {
    let mut asks = Vec::new();
    for run in &mut outcome.runs {
        let Decision::Ask {
            question,
            expires_after_ms,
        } = &run.decision
        else {
            continue;
        };
        match person {
            Person::Later => {
                let gate = AskingGate {
                    hook: run.hook.clone(),
                    feature: run.feature.to_string(),
                };
                asks.push(GateQuestion {
                    gate,
                    question: question.clone(),
                    expires_after_ms: *expires_after_ms,
                });
            }
            Person::Never => run.decision = unanswerable(question),
        }
    }
    match (&outcome.decision, person) {
        (Decision::Ask { question, .. }, Person::Never) => {
            outcome.decision = unanswerable(question);
            // The verdict of the call is that of the gate that refuses.
            let asked = outcome.runs.iter().position(|run| !run.decision.allows());
            outcome.runs.truncate(asked.map_or(0, |at| at + 1));
        }
        // A later gate refused: nobody is asked.
        (
            Decision::Refuse { .. }
            | Decision::Invalid { .. }
            | Decision::Abort { .. }
            | Decision::Pause { .. },
            _,
        ) => {
            asks.clear();
        }
        (
            Decision::Allow
            | Decision::Ask { .. }
            | Decision::Retry { .. }
            | Decision::Again { .. },
            _,
        ) => {}
    }
    (outcome, asks)
}

fn unanswerable(question: &str) -> Decision {
    Decision::Refuse {
        reason: format!("{question} (this run cannot ask for approval)"),
    }
}

/// The sandbox of a call, for people.
pub(super) fn sandbox_text(mode: SandboxMode, started: &ToolStarted) -> &'static str {
    match (mode, started.escalation) {
        (SandboxMode::Off, _) | (_, Some(Escalation::Unconfined)) => "off",
        (SandboxMode::WorkspaceWrite, Some(Escalation::Network)) if !started.hosts.is_empty() => {
            "workspace-write, with a way to the hosts"
        }
        (SandboxMode::WorkspaceWrite, Some(Escalation::Network)) => {
            "workspace-write, with the network"
        }
        (SandboxMode::WorkspaceWrite, None) => "workspace-write",
        (SandboxMode::ReadOnly, _) => "read-only",
    }
}

/// BLAKE3 of what a tool is, hex: with another definition its arguments may mean something else. Enrichers do not count:
/// they change which arguments fit, which is checked again, not what these mean.
pub(super) fn definition_digest(tool: &RegisteredTool) -> String {
    let mut hasher = blake3::Hasher::new();
    let definition = tool.declared();
    let effect = format!("{:?}", definition.effect);
    for part in [
        tool.feature.to_string().as_str(),
        &definition.name,
        &definition.description,
        &definition.schema,
        &effect,
    ] {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}
