//! Checks of hooks: each is called with ordinary views, in a pod that runs calls.

use super::{CheckOutcome, Conformance, all};
use crate::feature_host::{FeatureUnderTest, tool_call};
use crate::tool::FnTool;
use crate::{ScriptedAnswer, Shared};
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput};
use pod::hook::{
    HookPoint, PreRequest, PreToolCall, PromptSubmit, PromptView, RequestView, ToolCallView, TurnEnd, TurnEndView,
};
use pod::record::{Record, TransformNote};
use serde_json::json;

/// A tool that is called under the hooks.
const TOOL: &str = "testkit-tool";

/// Arguments with which it fails.
const FAILS: &str = r#"{"fail":true}"#;

/// Calls of a tool that the feature does not know: one that succeeds, one that fails.
pub(super) const STRANGE: [(&str, &str); 2] = [(TOOL, "{}"), (TOOL, FAILS)];

pub(super) fn stranger() -> FnTool {
    FnTool::new(TOOL, ToolEffect::ReadOnly, |_, arguments| async move {
        match arguments == FAILS {
            true => Err(ToolError::new(ErrorKind::Unavailable, "it failed as it was told to")),
            false => Ok(ToolOutput { summary: "done".to_owned(), content: "one\ntwo\n".to_owned() }),
        }
    })
}

pub(super) fn hooks(conformance: &Conformance) -> CheckOutcome {
    let declared = conformance.descriptor().hooks;
    if declared.is_empty() {
        return CheckOutcome::Yes;
    }
    let mut host = conformance.host().tool(stranger()).install(Shared(conformance.instance()));
    let mut results = Vec::new();
    for point in declared.iter().map(|hook| hook.point) {
        results.push(asked(&mut host, point));
    }
    // Runs transforms and observers on calls of a tool they do not know, and on their results.
    host.turn("Look around.", [ScriptedAnswer::calls(&STRANGE), ScriptedAnswer::text("Done.")]);
    let mine = host.id().to_string();
    let notes = host.records().into_iter().flat_map(|(_, record)| match record {
        Record::VerdictGiven(verdict) => verdict.transforms,
        Record::ToolFinished(finished) => finished.transforms,
        _other_kind => Vec::new(),
    });
    results.extend(notes.filter(|note| note.feature == mine).map(
        |TransformNote { hook, problem, .. }| match problem {
            Some(problem) => Err(format!("transform `{hook}`: {problem}")),
            None => Ok(()),
        },
    ));
    all(results)
}

/// Calls the gates of a point with ordinary views; any decision is accepted.
fn asked(host: &mut FeatureUnderTest, point: HookPoint) -> Result<(), String> {
    let touches = [
        Vec::new(),
        vec![Touch::Read("src/main.rs".into()), Touch::Write("../out of reach".into())],
        vec![Touch::Shell("true".to_owned())],
    ];
    let mut ran = Vec::new();
    match point {
        HookPoint::PromptSubmit => {
            for text in ["", "How many files are here?", "\u{202e}x"] {
                ran.extend(host.gates::<PromptSubmit>(PromptView { text: text.to_owned() }).runs);
            }
        }
        HookPoint::PreRequest => ran = host.gates::<PreRequest>(RequestView { turn: 1, number: 1, items: 1 }).runs,
        HookPoint::PreToolCall => {
            for touches in touches {
                let view = ToolCallView { touches, ..tool_call(TOOL, json!({"path": "src/main.rs"})) };
                ran.extend(host.gates::<PreToolCall>(view).runs);
            }
        }
        HookPoint::TurnEnd => {
            ran = host.gates::<TurnEnd>(TurnEndView { turn: 1, outcome: Outcome::Done, steps: 1 }).runs;
        }
        HookPoint::ToolArguments | HookPoint::ToolOutcome | HookPoint::Event => {}
    }
    match ran.into_iter().find(|run| run.failed && run.feature == *host.id()) {
        Some(run) => Err(format!("gate `{}`: {:?}", run.hook, run.decision)),
        None => Ok(()),
    }
}
