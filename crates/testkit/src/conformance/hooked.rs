//! Checks of hooks: each is called with ordinary views, in a pod that runs calls.

use super::{CheckOutcome, Conformance, all};
use crate::feature_host::{FeatureUnderTest, tool_call};
use crate::tool::FnTool;
use crate::{ScriptedAnswer, Shared};
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput};
use pod::hook::{
    AnswerView, CompactionView, ErrorView, HookPoint, PostAssistant, PreCompaction, PreRequest,
    PreToolCall, PromptSubmit, PromptView, ProposedCall, RequestView, ToolCallView, TurnEnd,
    TurnEndView, TurnError,
};
use pod::record::{Record, TransformNote, ViewLevel};
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
            true => Err(ToolError::new(
                ErrorKind::Unavailable,
                "it failed as it was told to",
            )),
            false => Ok(ToolOutput {
                summary: "done".to_owned(),
                content: "one\ntwo\n".to_owned(),
                data: None,
            }),
        }
    })
}

pub(super) fn hooks(conformance: &Conformance) -> CheckOutcome {
    let declared = conformance.descriptor().declared_hooks;
    if declared.is_empty() {
        return CheckOutcome::Yes;
    }
    let mut host = conformance
        .host()
        .tool(stranger())
        .install(Shared(conformance.instance()));
    let mut results = Vec::new();
    for point in declared.iter().map(|hook| hook.point) {
        results.push(asked(&mut host, point));
    }
    // Runs transforms and observers on calls of a tool they do not know, and on their results.
    host.turn(
        "Look around.",
        [
            ScriptedAnswer::calls(&STRANGE),
            ScriptedAnswer::text("Done."),
        ],
    );
    let mine = host.id().to_string();
    let notes = host
        .records()
        .into_iter()
        .flat_map(|(_, record)| match record {
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
        vec![
            Touch::Read("src/main.rs".into()),
            Touch::Write("../out of reach".into()),
        ],
        vec![Touch::Shell("true".to_owned())],
    ];
    let mut ran = Vec::new();
    match point {
        HookPoint::PromptSubmit => {
            for text in ["", "How many files are here?", "\u{202e}x"] {
                for schema in [None, Some("{}")] {
                    let view = PromptView {
                        text: text.to_owned(),
                        output_schema: schema.map(Into::into),
                    };
                    ran.extend(host.gates::<PromptSubmit>(view).runs);
                }
            }
        }
        HookPoint::PostAssistant => {
            let calls = vec![ProposedCall {
                tool: TOOL.to_owned(),
                arguments: "{".to_owned(),
            }];
            let view = AnswerView {
                turn: 1,
                request: 1,
                text: "So.".to_owned(),
                calls,
            };
            ran = host.gates::<PostAssistant>(view).runs;
        }
        HookPoint::TurnError => {
            for kind in [ErrorKind::Retry, ErrorKind::FixInput] {
                let view = ErrorView {
                    turn: 1,
                    request: 1,
                    kind,
                    message: "no".to_owned(),
                    retries: 0,
                };
                ran.extend(host.gates::<TurnError>(view).runs);
            }
        }
        HookPoint::PreRequest => {
            ran = host
                .gates::<PreRequest>(RequestView {
                    turn: 1,
                    number: 1,
                    items: 1,
                })
                .runs
        }
        HookPoint::PreCompaction => {
            for level in [ViewLevel::Results, ViewLevel::Steps, ViewLevel::Turns] {
                let view = CompactionView::new(level, 100_000, Some(128_000), Vec::new());
                ran.extend(host.gates::<PreCompaction>(view).runs);
            }
        }
        HookPoint::PreToolCall => {
            for touches in touches {
                let view = ToolCallView {
                    touches,
                    ..tool_call(TOOL, json!({"path": "src/main.rs"}))
                };
                ran.extend(host.gates::<PreToolCall>(view).runs);
            }
        }
        HookPoint::TurnEnd => {
            for schema in [None, Some("{}")] {
                let answer = Some("Done.".into());
                let output_schema = schema.map(Into::into);
                let view = TurnEndView {
                    turn: 1,
                    outcome: Outcome::Done,
                    steps: 1,
                    answer,
                    shortfall: None,
                    output_schema,
                };
                ran.extend(host.gates::<TurnEnd>(view).runs);
            }
        }
        HookPoint::ToolArguments
        | HookPoint::ToolRun
        | HookPoint::ToolRepeat
        | HookPoint::ToolShape
        | HookPoint::ToolOutcome
        | HookPoint::Compaction
        | HookPoint::Event => {}
    }
    match ran
        .into_iter()
        .find(|run| run.failed && run.feature == *host.id())
    {
        Some(run) => Err(format!("gate `{}`: {:?}", run.hook, run.decision)),
        None => Ok(()),
    }
}
