//! Foreign tools in a pod: the host checks their arguments before code of the feature runs, and judges what they touch.

use crate::fixtures::{pod, sound};
use llm_worker::effect::Outcome;
use llm_worker::tool::{ArgumentError, Prepared, Touch};
use llm_worker::{ResultStatus, Tool, ToolDefinition, ToolEffect, ToolOutput};
use pod::feature::*;
use pod::hook::{Change, PreToolCall, ToolArguments, ToolCallView, Verdict};
use pod::record::{Record, ToolFinished, VerdictGiven};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use testkit::{PodUnderTest, ScriptedAnswer, feature};

const ID: FeatureId = FeatureId::builtin("far");
const SCHEMA: &str = concat!(
    r#"{"additionalProperties":false,"properties":{"count":{"maximum":3,"type":"integer"},"#,
    r#""path":{"type":"string"},"where":{}},"required":["count"],"type":"object"}"#
);
const SEES: HookKey<PreToolCall> = HookKey::new("sees");
const REWRITE: HookKey<ToolArguments> = HookKey::new("rewrite");

fn declared(effect: ToolEffect, rules: &[TouchRule]) -> ToolDeclaration {
    let name = "Far".to_owned();
    let description = "From afar.".to_owned();
    let schema = SCHEMA.into();
    let start = ToolDeclaration::of(ToolDefinition {
        name,
        description,
        schema,
        effect,
    });
    rules.iter().cloned().fold(start, ToolDeclaration::touching)
}

/// A tool whose feature parses its arguments with code of its own, and counts that.
struct Counted(ToolDefinition, Arc<AtomicUsize>, &'static str);

impl Tool for Counted {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let canonical = if self.2.is_empty() { raw } else { self.2 };
        let ran = async {
            Ok(ToolOutput {
                summary: "ran".to_owned(),
                content: String::new(),
                data: None,
            })
        };
        Ok(Prepared::new(canonical.into(), Vec::new(), |_| {
            Box::pin(ran)
        }))
    }
}

fn counted(
    tool: ToolDeclaration,
    canonical: &'static str,
    parses: &Arc<AtomicUsize>,
) -> Arc<dyn FeatureModule> {
    let counter = Arc::clone(parses);
    let declared = tool.clone();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let tool = Counted(declared.definition(), Arc::clone(&counter), canonical);
        ctx.tools()
            .register(ToolContribution::new(ID, Arc::new(tool), Vec::new()))
            .map(drop)
    };
    feature(
        FeatureDescriptor::builder(ID)
            .version("1.0.0")
            .foreign_tool(tool)
            .build(),
        install,
    )
}

/// The verdict about a call with these arguments, its result, and how often code of the feature parsed them.
fn called(
    tool: ToolDeclaration,
    canonical: &'static str,
    arguments: &str,
) -> (VerdictGiven, ToolFinished, usize) {
    let parses = Arc::new(AtomicUsize::new(0));
    let (verdict, finished) = run(vec![counted(tool, canonical, &parses)], arguments);
    (verdict, finished, parses.load(Ordering::SeqCst))
}

fn run(features: Vec<Arc<dyn FeatureModule>>, arguments: &str) -> (VerdictGiven, ToolFinished) {
    let mut pod = pod(
        vec![
            ScriptedAnswer::calls(&[("Far", arguments)]),
            ScriptedAnswer::text("went on"),
        ],
        Vec::new(),
    );
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::hook::<ToolArguments>(),
        HostCapability::ANY_ARGUMENTS,
        HostCapability::hook::<PreToolCall>(),
    ];
    pod.features = features
        .into_iter()
        .map(|feature| (feature, grants.clone()))
        .collect();
    pod.paused = false;
    assert_eq!(pod.run("go").end().outcome, Outcome::Done, "{arguments}");
    sound(&pod, arguments);
    let verdict = found(&pod, |record| {
        if let Record::VerdictGiven(verdict) = record {
            Some(verdict)
        } else {
            None
        }
    });
    let finished = found(&pod, |record| {
        if let Record::ToolFinished(end) = record {
            Some(end)
        } else {
            None
        }
    });
    (verdict, finished)
}

fn found<T>(pod: &PodUnderTest, of: fn(Record) -> Option<T>) -> T {
    pod.records()
        .into_iter()
        .find_map(|(_, record)| of(record))
        .unwrap()
}

#[test]
fn the_schema_is_enforced_before_code_of_the_feature_runs() {
    let cases = [
        (r#"{"count":3}"#, ""),
        (r#"{"count":4}"#, "/count: "),
        (r#"{"count":"3"}"#, "/count: want integer"),
        (r#"{}"#, "the property `count` is missing"),
        (r#"{"count":1,"other":1}"#, "other"),
        (r#"{"count":1,"count":2}"#, "the key occurs twice"),
        (r#"[1]"#, "expected an object"),
        (r#"{"count":1"#, "cut off"),
    ];
    for (arguments, says) in cases {
        let (verdict, finished, parses) =
            called(declared(ToolEffect::ReadOnly, &[]), "", arguments);
        let ran = says.is_empty();
        assert_eq!(
            finished.outcome.status == ResultStatus::Ok,
            ran,
            "{arguments}: {finished:?}"
        );
        assert_eq!(parses > 0, ran, "{arguments}");
        let told = format!("{} {}", finished.outcome.summary, finished.outcome.content);
        assert!(told.contains(says), "{arguments}: {told}");
        assert_eq!(
            verdict.rule == "host:arguments",
            !ran,
            "{arguments}: {verdict:?}"
        );
    }
}

// The arguments that the feature returns are judged and run.
#[test]
fn the_arguments_that_a_feature_returns_fit_too() {
    let (_, finished, parses) = called(
        declared(ToolEffect::ReadOnly, &[]),
        r#"{"count":9}"#,
        r#"{"count":1}"#,
    );
    assert_eq!((finished.outcome.status, parses), (ResultStatus::Error, 1));
    assert!(
        format!("{:?}", finished.outcome).contains("/count: "),
        "{finished:?}"
    );
}

// Gates and permission judge these.
#[test]
fn a_foreign_call_touches_what_its_arguments_name() {
    let path = |is| TouchRule::at(is, "/path");
    let write = |path: &str| Touch::Write(path.into());
    let unnamed = || Touch::RemoteWrite(ID.to_string());
    let anywhere = || vec![TouchRule::at(TouchKind::Write, "/where")];
    let cases = [
        (
            vec![path(TouchKind::Write)],
            r#"{"count":1,"path":"a.md"}"#,
            Some(vec![write("a.md")]),
        ),
        // A rule that means nothing here says nothing of what the call changes; nor does one about reading.
        (
            vec![path(TouchKind::Write)],
            r#"{"count":1}"#,
            Some(vec![unnamed()]),
        ),
        (
            vec![path(TouchKind::Read)],
            r#"{"count":1,"path":"a"}"#,
            Some(vec![Touch::Read("a".into()), unnamed()]),
        ),
        (Vec::new(), r#"{"count":1}"#, Some(vec![unnamed()])),
        (
            vec![TouchRule::session()],
            r#"{"count":1}"#,
            Some(vec![Touch::Session]),
        ),
        (
            anywhere(),
            r#"{"count":1,"where":["a","b"]}"#,
            Some(vec![write("a"), write("b")]),
        ),
        (anywhere(), r#"{"count":1,"where":{"path":"a"}}"#, None),
    ];
    for (rules, arguments, expected) in cases {
        let seen = Arc::new(Mutex::new(None));
        let sees = Arc::clone(&seen);
        let descriptor = FeatureDescriptor::builder(FeatureId::builtin("sees"))
            .version("1.0.0")
            .gate(&SEES)
            .build();
        let install = move |ctx: &mut FeatureInstallContext<'_>| {
            let sees = Arc::clone(&sees);
            let judge = move |(): &(), call: &ToolCallView| {
                *sees.lock().unwrap() = Some(call.touches.clone());
                Verdict::<PreToolCall>::allow()
            };
            ctx.hooks().gate(&SEES, &Arc::new(()), judge).map(drop)
        };
        let far = counted(declared(ToolEffect::Effectful, &rules), "", &Arc::default());
        run(vec![feature(descriptor, install), far], arguments);
        assert_eq!(*seen.lock().unwrap(), expected, "{rules:?} {arguments}");
    }
}

#[test]
fn arguments_of_a_transform_fit_the_schema_too() {
    let far = declared(ToolEffect::ReadOnly, &[]);
    let tool = far.clone();
    let descriptor = FeatureDescriptor::builder(ID)
        .version("1.0.0")
        .foreign_tool(far)
        .transform(&REWRITE)
        .build();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let ran = |arguments: serde_json::Value, _| async move {
            Ok(ToolOutput {
                summary: arguments.to_string(),
                content: String::new(),
                data: None,
            })
        };
        ctx.tools()
            .register(ToolContribution::declared(ID, &tool, ran))?;
        let rewrite = |(): &(), _: &ToolCallView| Change::Replaced(json!({ "count": 4 }));
        ctx.hooks()
            .transform(&REWRITE, &Arc::new(()), rewrite)
            .map(drop)
    };
    let (verdict, finished) = run(vec![feature(descriptor, install)], r#"{"count":1}"#);
    assert_eq!(finished.outcome.summary, r#"{"count":1}"#);
    assert!(
        verdict.transforms[0]
            .problem
            .as_ref()
            .is_some_and(|why| why.contains("/count: ")),
        "{:?}",
        verdict.transforms
    );
}
