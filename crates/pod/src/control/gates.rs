//! The decisions of gates and the changes of transforms, as records.

use crate::hook::{GateOutcome, GateRun, HookPoint, Transformed};
use crate::record::{GateNote, TransformNote, VerdictGiven};
use llm_worker::CallId;

/// The decision of every called gate, as records.
pub(crate) fn verdicts(
    point: HookPoint,
    call: Option<CallId>,
    outcome: &GateOutcome,
) -> Vec<VerdictGiven> {
    outcome
        .runs
        .iter()
        .map(|run| verdict(point, call, run))
        .collect()
}

fn verdict(point: HookPoint, call: Option<CallId>, run: &GateRun) -> VerdictGiven {
    VerdictGiven {
        call,
        turn: None,
        decision: run.decision.clone(),
        rule: format!("{point} gate `{}` ({})", run.hook, run.feature),
        gate: GateNote {
            hook: Some(run.hook.clone()),
            feature: Some(run.feature.to_string()),
            ms: Some(run.ms),
        },
        transforms: Vec::new(),
        tool: None,
    }
}

/// The reason, if a gate refused.
pub(crate) fn refusal(outcome: &GateOutcome) -> Option<String> {
    outcome
        .decision
        .refuses()
        .then(|| outcome.decision.reason().to_owned())
}

/// The changes and failures of transforms, as records.
pub(crate) fn notes(transformed: Vec<Transformed>) -> Vec<TransformNote> {
    let note = |done: Transformed| {
        let (after, problem) = match done.after {
            Ok(after) => (Some(after), None),
            Err(problem) => (None, Some(problem)),
        };
        TransformNote {
            hook: done.hook,
            feature: done.feature.to_string(),
            ms: done.ms,
            before: done.before,
            after,
            problem,
        }
    };
    transformed.into_iter().map(note).collect()
}
