//! What code of features says, answers or panics with is bounded before it reaches a record: no length of it ends the pod.

use crate::fixtures::{pod, said, sound, verified};
use llm_worker::tool::{ArgumentError, Prepared};
use llm_worker::{ResultStatus, Tool, ToolDefinition, ToolEffect};
use pod::feature::*;
use pod::hook::{Change, ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView};
use pod::record::{Record, ToolFinished, TransformNote, VerdictGiven};
use serde_json::json;
use std::sync::Arc;
use testkit::{FnTool, PodUnderTest, ScriptedAnswer, feature};

/// More than any record takes.
const LONG: usize = 2 << 20;

fn long() -> String {
    "x".repeat(LONG)
}

/// A panic that nobody prints.
fn dies() -> ! {
    std::panic::resume_unwind(Box::new(long()))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Panics,
    Refuses,
    Inflates,
}

/// A tool that parses its own arguments, in its own way.
struct Foreign(ToolDefinition, Way);

impl Tool for Foreign {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(&self, _: &str) -> Result<Prepared, ArgumentError> {
        match self.1 {
            Way::Panics => dies(),
            Way::Refuses => Err(ArgumentError {
                tool: "Foreign".to_owned(),
                problems: vec![long(); 2],
            }),
            Way::Inflates => Ok(Prepared::new(long().into(), Vec::new(), |_| {
                Box::pin(async { said("ran") })
            })),
        }
    }
}

const ID: FeatureId = FeatureId::builtin("odd");

fn foreign(way: Way) -> Arc<dyn FeatureModule> {
    let schema = r#"{"type":"object"}"#.into();
    let name = "Foreign".to_owned();
    let description = "From afar.".to_owned();
    let definition = ToolDefinition {
        name,
        description,
        schema,
        effect: ToolEffect::ReadOnly,
    };
    let declared = ToolDeclaration::of(definition.clone());
    let descriptor = FeatureDescriptor::builder(ID)
        .version("1.0.0")
        .foreign_tool(declared)
        .build();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let tool =
            ToolContribution::new(ID, Arc::new(Foreign(definition.clone(), way)), Vec::new());
        ctx.tools().register(tool).map(drop)
    };
    feature(descriptor, install)
}

const ARGUMENTS: HookKey<ToolArguments> = HookKey::new("arguments");
const OUTCOME: HookKey<ToolOutcome> = HookKey::new("outcome");

/// Its transforms say what these do.
fn transforms(
    arguments: fn() -> Change<serde_json::Value>,
    outcome: fn() -> Change<llm_worker::ToolOutput>,
) -> Arc<dyn FeatureModule> {
    let descriptor = FeatureDescriptor::builder(ID)
        .version("1.0.0")
        .transform(&ARGUMENTS)
        .transform(&OUTCOME)
        .build();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let live = Arc::new(());
        ctx.hooks()
            .transform(&ARGUMENTS, &live, move |(): &(), _: &ToolCallView| {
                arguments()
            })?;
        ctx.hooks()
            .transform(&OUTCOME, &live, move |(): &(), _: &ToolOutcomeView| {
                outcome()
            })
            .map(drop)
    };
    feature(descriptor, install)
}

fn run(odd: Option<Arc<dyn FeatureModule>>, tools: Vec<FnTool>, call: &str) -> PodUnderTest {
    let mut pod = pod(
        vec![
            ScriptedAnswer::calls(&[(call, "{}")]),
            ScriptedAnswer::text("went on"),
        ],
        tools,
    );
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::hook::<ToolArguments>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_ARGUMENTS,
        HostCapability::ANY_RESULT,
    ];
    pod.features = odd.into_iter().map(|odd| (odd, grants.clone())).collect();
    pod.paused = false;
    assert_eq!(
        pod.run("go").end().answer.as_deref(),
        Some("went on"),
        "{call}"
    );
    sound(&pod, call);
    assert_eq!(verified(&pod).wrong, None);
    pod
}

fn finished(pod: &PodUnderTest) -> ToolFinished {
    let finished = |(_, record)| {
        if let Record::ToolFinished(finished) = record {
            Some(finished)
        } else {
            None
        }
    };
    pod.records().into_iter().find_map(finished).unwrap()
}

fn verdict(pod: &PodUnderTest) -> VerdictGiven {
    let verdict = |(_, record)| {
        if let Record::VerdictGiven(verdict) = record {
            Some(verdict)
        } else {
            None
        }
    };
    pod.records().into_iter().find_map(verdict).unwrap()
}

#[test]
fn the_last_words_of_a_tool_are_cut() {
    let panics = FnTool::new("Panics", ToolEffect::ReadOnly, |_, _| async { dies() });
    let result = finished(&run(None, vec![panics], "Panics"));
    assert_eq!(result.outcome.status, ResultStatus::Error);
    let text = result.outcome.text();
    assert!(
        text.contains("it panicked: xxx") && (2000..3000).contains(&text.len()),
        "{} bytes",
        text.len()
    );
}

#[test]
fn what_a_tool_makes_of_its_arguments_is_bounded() {
    let cases = [
        (Way::Panics, "host:judge", "it panicked: xxx"),
        (Way::Refuses, "host:arguments", "xxx"),
        (
            Way::Inflates,
            "host:arguments",
            "at most 163840 are allowed",
        ),
    ];
    for (way, rule, words) in cases {
        let verdict = verdict(&run(Some(foreign(way)), Vec::new(), "Foreign"));
        assert_eq!(verdict.rule, rule, "{way:?}");
        let reason = verdict.decision.reason();
        assert!(
            reason.contains(words) && reason.len() < 5000,
            "{way:?}: {reason:.200}"
        );
    }
}

#[test]
fn what_transforms_answer_or_panic_with_is_bounded() {
    type Says = fn() -> Change<serde_json::Value>;
    let echo = || crate::fixtures::echo("Echo", ToolEffect::ReadOnly);
    let cases: [(Says, &str); 3] = [
        (
            || Change::Replaced(json!({ "a": long() })),
            "at most 163840 are allowed",
        ),
        (|| dies(), "it panicked"),
        (|| Change::Replaced(json!({"a": "b"})), ""),
    ];
    let problems = |notes: &[TransformNote]| {
        notes
            .iter()
            .map(|note| note.problem.clone())
            .collect::<Vec<_>>()
    };
    for (says, words) in cases {
        let pod = run(
            Some(transforms(says, || Change::Unchanged)),
            vec![echo()],
            "Echo",
        );
        let verdict = verdict(&pod);
        match problems(&verdict.transforms).remove(0) {
            Some(problem) => assert!(
                problem.contains(words) && problem.len() < 700,
                "{words}: {problem:.200}"
            ),
            None => assert_eq!(words, ""),
        }
        let ran = if words.is_empty() {
            r#"{"a":"b"}"#
        } else {
            "{}"
        };
        assert_eq!(finished(&pod).outcome.summary, ran);
    }
    let pod = run(
        Some(transforms(|| Change::Unchanged, || dies())),
        vec![echo()],
        "Echo",
    );
    let problem = problems(&finished(&pod).transforms).remove(0).unwrap();
    assert!(
        problem.contains("it panicked") && problem.len() < 700,
        "{problem:.200}"
    );
}
