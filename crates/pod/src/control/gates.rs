//! Hooks as the actor uses them: their views, and the records of their decisions.

use super::call::output::INLINE;
use crate::feature::FeatureRegistry;
use crate::foreign::Callbacks;
use crate::hook::{GateOutcome, GateRun, HookPoint, ToolCallView, ToolOutcomeView, Transformed};
use crate::record::{GateNote, TransformNote, VerdictGiven};
use llm_worker::{CallId, ToolOutcome};
use std::sync::Arc;

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
    let GateRun {
        feature,
        hook,
        ms,
        decision,
        failed: _,
    } = run;
    let gate = GateNote {
        hook: Some(hook.clone()),
        feature: Some(feature.to_string()),
        ms: Some(*ms),
    };
    let rule = format!("{point} gate `{hook}` ({feature})");
    VerdictGiven {
        call,
        turn: None,
        decision: decision.clone(),
        rule,
        gate,
        transforms: Vec::new(),
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
    let note = |Transformed {
                    feature,
                    hook,
                    ms,
                    before,
                    after,
                    withheld: _,
                }| {
        let feature = feature.to_string();
        match after {
            Ok(after) => TransformNote {
                hook,
                feature,
                ms,
                before,
                after: Some(after),
                problem: None,
            },
            Err(problem) => TransformNote {
                hook,
                feature,
                ms,
                before,
                after: None,
                problem: Some(problem),
            },
        }
    };
    transformed.into_iter().map(note).collect()
}

/// Calls the transforms of a result.
pub(crate) async fn outcome(
    registry: &FeatureRegistry,
    callbacks: &Callbacks,
    call: Arc<ToolCallView>,
    outcome: ToolOutcome,
) -> (ToolOutcome, Vec<TransformNote>) {
    if !registry.hooks().any::<crate::hook::ToolOutcome>(&call.tool) {
        return (outcome, Vec::new());
    }
    let tool = call.tool.clone();
    let recheck = Arc::new(|view: ToolOutcomeView| fits(&view.outcome).map(|()| view));
    let view = ToolOutcomeView { call, outcome };
    let hooks = registry.hooks();
    let (last, done) = hooks
        .transform::<crate::hook::ToolOutcome>(callbacks, &tool, view, recheck)
        .await;
    (last.outcome.clone(), notes(done))
}

/// The bounds of a result as the model sees it.
fn fits(outcome: &ToolOutcome) -> Result<(), String> {
    const SUMMARY: usize = ToolOutcome::SUMMARY_MAX;
    let ToolOutcome {
        summary, content, ..
    } = outcome;
    if summary.len() > SUMMARY || summary.contains('\n') {
        return Err(format!(
            "its summary is not one line of at most {SUMMARY} bytes"
        ));
    }
    if content.len() > INLINE {
        return Err(format!(
            "its content has {} bytes; at most {INLINE} are allowed",
            content.len()
        ));
    }
    Ok(())
}
