//! Transforms around a call: replaced values are checked again and leave a trace; failures leave the original.

use crate::rig::*;
use llm_worker::ToolOutput;
use llm_worker::effect::Outcome;
use pod::feature::HookKey;
use pod::hook::{Change, ToolArguments, ToolCallView, ToolOutcome, ToolOutcomeView};
use pod::record::Record;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn arguments(says: impl Fn(&ToolCallView) -> Change<Value> + Send + Sync + 'static) -> Installed {
    transform(
        "builtin:t",
        HookKey::<ToolArguments>::new("t").deadline(Duration::from_millis(60)),
        says,
    )
}

/// As [`arguments`], with time to print a panic.
fn patient(says: impl Fn(&ToolCallView) -> Change<Value> + Send + Sync + 'static) -> Installed {
    transform(
        "builtin:t",
        HookKey::<ToolArguments>::new("t").deadline(Duration::from_millis(900)),
        says,
    )
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[test]
fn replaced_arguments_run_and_leave_a_trace() {
    let (pod, said) = pod(
        &["hello"],
        vec![arguments(|_| Change::Replaced(json!({"word": "bye"})))],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(said.words(), ["bye"]);
    let note = &verdicts(&pod)[0].transforms[0];
    assert_eq!(
        (note.hook.as_str(), note.feature.as_str()),
        ("t", "builtin:t")
    );
    assert_eq!(note.before, digest(r#"{"word":"hello"}"#));
    assert_eq!(note.after, Some(digest(r#"{"word":"bye"}"#)));
    let records = pod.records();
    let at = |kind: &str| {
        records
            .iter()
            .position(|(_, record)| record.kind() == kind)
            .unwrap()
    };
    assert!(at("verdict") < at("tool_started"));
    let started = records.iter().find_map(|(_, record)| match record {
        Record::ToolStarted(started) => Some(started.clone()),
        _ => None,
    });
    assert_eq!(&*started.unwrap().arguments, r#"{"word":"bye"}"#);
}

#[test]
fn what_fails_keeps_the_original_and_says_so() {
    type Says = fn(&ToolCallView) -> Change<Value>;
    let cases: [(&str, Says, &str); 4] = [
        (
            "unknown field",
            |_| Change::Replaced(json!({"word": "x", "evil": 1})),
            "invalid value",
        ),
        (
            "wrong type",
            |_| Change::Replaced(json!(["x"])),
            "invalid value",
        ),
        ("panic", |_| panic!("boom"), "panicked"),
        (
            "late",
            |_| {
                std::thread::sleep(Duration::from_millis(940));
                Change::Replaced(json!({"word": "late"}))
            },
            "later than its deadline of 900ms",
        ),
    ];
    for (what, says, expected) in cases {
        let (pod, said) = pod(&["hello"], vec![patient(says)]);
        assert_eq!(pod.run("go").end().outcome, Outcome::Done, "{what}");
        assert_eq!(said.words(), ["hello"], "{what}");
        let note = &verdicts(&pod)[0].transforms[0];
        assert_eq!(note.after, None, "{what}");
        assert!(
            note.problem
                .as_deref()
                .is_some_and(|problem| problem.contains(expected)),
            "{what}: {note:?}"
        );
    }
}

#[test]
fn three_failures_in_a_row_suspend_a_transform() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let says = move |_: &ToolCallView| -> Change<Value> {
        counts.fetch_add(1, Ordering::Relaxed);
        panic!("again")
    };
    let (pod, said) = pod(&["a", "b", "c", "d", "e"], vec![patient(says)]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!((asked.load(Ordering::Relaxed), said.words().len()), (3, 5));
    let notes: Vec<_> = verdicts(&pod)
        .into_iter()
        .flat_map(|verdict| verdict.transforms)
        .collect();
    assert!(
        notes[2]
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("not asked again")),
        "{notes:?}"
    );
}

#[test]
fn a_transform_that_hangs_does_not_cost_those_behind_it() {
    let hang = |_: &ToolCallView| {
        std::thread::sleep(Duration::from_millis(600));
        Change::Unchanged
    };
    let key = || HookKey::<ToolArguments>::new("t").deadline(Duration::from_millis(60));
    let second = transform("builtin:u", key(), |_| {
        Change::Replaced(json!({"word": "second"}))
    });
    let (pod, said) = pod(&["hello"], vec![arguments(hang), second]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(said.words(), ["second"]);
    let notes = &verdicts(&pod)[0].transforms;
    assert!(
        notes[0].problem.is_some() && notes[1].after.is_some(),
        "{notes:?}"
    );
}

#[test]
fn a_result_is_worded_anew_within_the_hosts_bounds() {
    let key = || HookKey::<ToolOutcome>::new("t");
    let reword = |view: &ToolOutcomeView| {
        let summary = view.outcome.summary.replace("hello", "[hidden]");
        Change::Replaced(ToolOutput {
            summary,
            content: String::new(),
            data: None,
        })
    };
    let (pod, _) = pod(&["hello"], vec![transform("builtin:t", key(), reword)]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    let result = &results(&pod)[0];
    assert_eq!(
        (result.outcome.summary.as_str(), result.transforms.len()),
        ("said [hidden]", 1)
    );
    assert_ne!(
        Some(&result.transforms[0].before),
        result.transforms[0].after.as_ref()
    );
    let flood = |_: &ToolOutcomeView| {
        Change::Replaced(ToolOutput {
            summary: "x".into(),
            content: "y".repeat(40_000),
            data: None,
        })
    };
    let (pod, _) = crate::rig::pod(&["hello"], vec![transform("builtin:t", key(), flood)]);
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    let result = &results(&pod)[0];
    assert_eq!(result.outcome.summary, "said hello");
    assert!(
        result.transforms[0]
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("40000 bytes"))
    );
}

#[test]
fn a_transform_is_asked_about_its_tools_alone() {
    let key = HookKey::<ToolArguments>::new("t").tools(&["Other"]);
    let (pod, said) = pod(
        &["hello"],
        vec![transform("builtin:t", key, |_| panic!("not mine"))],
    );
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    assert_eq!(
        (said.words(), verdicts(&pod)[0].transforms.len()),
        (vec!["hello".to_owned()], 0)
    );
}
