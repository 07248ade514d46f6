//! Calls of tools whose schemas an enricher narrowed: the host enforces the new values, and what the enricher changes of
//! the arguments is in the journal before the call runs.

use crate::fixtures::{pod, sound};
use llm_worker::effect::Outcome;
use llm_worker::{ResultStatus, ToolContext, ToolEffect, ToolOutput, ToolResult};
use pod::feature::*;
use pod::record::{Record, ToolFinished, ToolStarted, TransformNote, VerdictGiven};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use testkit::{Latch, PodUnderTest, ScriptedAnswer, feature};

const OWNER: FeatureId = FeatureId::builtin("tracker");
const CHOOSER: FeatureId = FeatureId::builtin("chooser");
const CHOICES: EnrichKey = EnrichKey::new("choices", &["File"]);

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Args {
    kind: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    path: String,
}

const FILE: ToolKey<Args> = ToolKey::new("File", ToolEffect::ReadOnly, "File an issue.");

type Changes = Arc<dyn Fn(&mut Map<String, Value>) -> Result<(), String> + Send + Sync>;

struct Choices(Changes);

impl ToolEnricher for Choices {
    fn enrich(&self, _: &str, schema: &mut ToolSchema) -> Result<(), String> {
        schema.choices("kind", ["bug", "task"]);
        schema.choices("labels", ["ui", "core"]);
        Ok(())
    }

    fn arguments(&self, tool: &str, arguments: &mut Map<String, Value>) -> Result<(), String> {
        assert_eq!(tool, "File");
        (self.0)(arguments)
    }
}

struct Live;

impl Live {
    async fn file(self: Arc<Self>, args: Args, _: ToolContext) -> ToolResult {
        Ok(ToolOutput {
            summary: format!("{:?} {}", args.kind, args.path),
            content: String::new(),
            data: None,
        })
    }
}

fn features(changes: Changes) -> Vec<(Arc<dyn FeatureModule>, Vec<HostCapability>)> {
    let owner = FeatureDescriptor::builder(OWNER)
        .version("1.0.0")
        .tool(&FILE)
        .build();
    let owner = feature(owner, |ctx| {
        ctx.tools()
            .implement(&FILE, &Arc::new(Live), Live::file)
            .map(drop)
    });
    let chooser = FeatureDescriptor::builder(CHOOSER)
        .version("1.0.0")
        .enriches(&CHOICES)
        .build();
    let chooser = feature(chooser, move |ctx| {
        ctx.tools()
            .enrich(&CHOICES, Arc::new(Choices(Arc::clone(&changes))))
            .map(drop)
    });
    vec![
        (owner, vec![HostCapability::tool("*")]),
        (chooser, vec![HostCapability::ANY_ENRICHING]),
    ]
}

fn found<T>(pod: &PodUnderTest, of: fn(Record) -> Option<T>) -> Vec<T> {
    pod.records()
        .into_iter()
        .filter_map(|(_, record)| of(record))
        .collect()
}

fn ran(
    changes: impl Fn(&mut Map<String, Value>) -> Result<(), String> + Send + Sync + 'static,
    calls: &[&str],
) -> PodUnderTest {
    let mut answers: Vec<_> = calls
        .iter()
        .map(|arguments| ScriptedAnswer::calls(&[("File", *arguments)]))
        .collect();
    answers.push(ScriptedAnswer::text("went on"));
    let mut pod = pod(answers, Vec::new());
    pod.features = features(Arc::new(changes));
    (pod.grace, pod.paused) = (Duration::from_millis(20), false);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    sound(&pod, "enriched");
    pod
}

fn finished(pod: &PodUnderTest) -> Vec<ToolFinished> {
    found(pod, |record| {
        if let Record::ToolFinished(end) = record {
            Some(end)
        } else {
            None
        }
    })
}

fn transforms(pod: &PodUnderTest) -> Vec<TransformNote> {
    let given: Vec<VerdictGiven> = found(pod, |record| {
        if let Record::VerdictGiven(verdict) = record {
            Some(verdict)
        } else {
            None
        }
    });
    given
        .into_iter()
        .flat_map(|verdict| verdict.transforms)
        .collect()
}

#[test]
fn the_new_values_are_enforced_before_the_tool_parses() {
    let cases = [
        (r#"{"path":"a","kind":"bug","labels":["ui"]}"#, ""),
        (r#"{"path":"a"}"#, ""),
        (r#"{"path":"a","kind":null,"labels":[]}"#, ""),
        (r#"{"path":"a","kind":"epic"}"#, "/kind: "),
        (r#"{"path":"a","labels":["ui","new"]}"#, "/labels/1: "),
    ];
    let calls: Vec<&str> = cases.iter().map(|(arguments, _)| *arguments).collect();
    let ends = finished(&ran(|_| Ok(()), &calls));
    assert_eq!(ends.len(), cases.len());
    for ((arguments, says), end) in cases.iter().zip(ends) {
        let told = format!("{} {}", end.outcome.summary, end.outcome.content);
        assert_eq!(
            end.outcome.status == ResultStatus::Ok,
            says.is_empty(),
            "{arguments}: {told}"
        );
        assert!(told.contains(says), "{arguments}: {told}");
    }
}

#[test]
fn changed_arguments_are_in_the_journal_before_the_call() {
    let lower = |arguments: &mut Map<String, Value>| {
        assert!(
            !arguments.contains_key("path"),
            "an enricher gets only what it narrowed"
        );
        arguments.insert("kind".to_owned(), json!("bug"));
        Ok(())
    };
    let pod = ran(lower, &[r#"{"path":"A","kind":"BUG"}"#]);
    let [note] = &transforms(&pod)[..] else {
        panic!("{:?}", transforms(&pod))
    };
    assert_eq!(
        (note.hook.as_str(), note.feature.as_str(), &note.problem),
        ("choices", "builtin:chooser", &None)
    );
    assert!(
        note.after
            .as_ref()
            .is_some_and(|after| *after != note.before),
        "{note:?}"
    );
    let records = pod.records();
    let at = |of: fn(&Record) -> bool| records.iter().position(|(_, record)| of(record)).unwrap();
    let judged =
        at(|record| matches!(record, Record::VerdictGiven(given) if !given.transforms.is_empty()));
    assert!(judged < at(|record| matches!(record, Record::ToolFinished(_))));
    let started: Vec<ToolStarted> = found(&pod, |record| {
        if let Record::ToolStarted(started) = record {
            Some(started)
        } else {
            None
        }
    });
    assert_eq!(
        &*started[0].arguments,
        r#"{"kind":"bug","labels":[],"path":"A"}"#
    );
    assert_eq!(finished(&pod)[0].outcome.summary, r#"Some("bug") A"#);
}

#[test]
fn a_failure_keeps_the_arguments_and_three_end_the_asking() {
    type Changes = fn(&mut Map<String, Value>) -> Result<(), String>;
    let cases: [(&str, Changes); 3] = [
        ("it panicked: dropped it", |_| panic!("dropped it")),
        ("it failed: no", |arguments| {
            arguments.insert("kind".to_owned(), json!("task"));
            Err("no".to_owned())
        }),
        (
            "it added `path`, whose schema it did not change",
            |arguments| {
                arguments.insert("path".to_owned(), json!("/etc/passwd"));
                Ok(())
            },
        ),
    ];
    for (says, changes) in cases {
        let pod = ran(changes, &[r#"{"path":"a","kind":"bug"}"#; 5]);
        let notes = transforms(&pod);
        assert_eq!(notes.len(), 3, "{says}: {notes:?}");
        assert!(notes.iter().all(|note| note.after.is_none()), "{notes:?}");
        assert!(
            notes[0]
                .problem
                .as_ref()
                .is_some_and(|problem| problem.contains(says)),
            "{says}: {notes:?}"
        );
        for end in finished(&pod) {
            assert_eq!(end.outcome.summary, r#"Some("bug") a"#, "{says}");
        }
    }
}

// It has two seconds. Then its feature is off, as after other code that does not return, and the calls run.
#[test]
fn an_enricher_that_hangs_costs_its_feature_and_no_call() {
    let gate = Latch::new("an enricher hangs");
    let held = gate.clone();
    let hangs = move |_: &mut Map<String, Value>| {
        held.pass_blocking();
        Ok(())
    };
    let pod = ran(hangs, &[r#"{"path":"a","kind":"bug"}"#; 2]);
    gate.open();
    assert_eq!(
        finished(&pod)
            .iter()
            .filter(|end| end.outcome.status == ResultStatus::Ok)
            .count(),
        2
    );
    let [note] = &transforms(&pod)[..] else {
        panic!("asked again: {:?}", transforms(&pod))
    };
    assert!(
        note.problem
            .as_ref()
            .is_some_and(|problem| problem.contains("was abandoned")),
        "{note:?}"
    );
}
