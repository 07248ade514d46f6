//! Hooks of a change that takes old results out of the requests: a gate can refuse it, a transform can have results stay.

use crate::rig::*;
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, ToolEffect, ToolOutput};
use pod::feature::HookKey;
use pod::hook::{Change, Compaction, CompactionPlan, CompactionView, PreCompaction, Verdict};
use pod::record::{Pruned, Record, ViewLevel};
use std::sync::{Arc, Mutex};
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

const GATE: HookKey<PreCompaction> = HookKey::new("gate");
const KEEP: HookKey<Compaction> = HookKey::new("keep");
const WINDOW: u64 = 8_000;

/// A pod whose turn of twelve results of 2.5 kB needs one change.
fn scene(features: Vec<Installed>) -> PodUnderTest {
    let calls = (0..12).map(|_| ScriptedAnswer::calls(&[("Tell", "{}")]));
    let script = ModelScript::new(calls.chain([ScriptedAnswer::text("done")])).windowed(WINDOW);
    let tell = FnTool::new("Tell", ToolEffect::ReadOnly, |cx, _| async move {
        let content = format!("{} says this\n", cx.call).repeat(120);
        Ok(ToolOutput {
            summary: "told".to_owned(),
            content,
            data: None,
        })
    });
    let (mut pod, _) = pod(&[], features);
    pod.tools = vec![tell];
    pod.script = script;
    pod
}

fn changes(pod: &PodUnderTest) -> Vec<Pruned> {
    let pruned = |(_, record)| {
        if let Record::Pruned(pruned) = record {
            Some(pruned)
        } else {
            None
        }
    };
    pod.records().into_iter().filter_map(pruned).collect()
}

fn id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

#[test]
fn a_gate_sees_what_leaves_and_may_refuse() {
    let seen: Arc<Mutex<Vec<CompactionView>>> = Arc::default();
    for refuses in [false, true] {
        let seen = Arc::clone(&seen);
        let says = move |view: &CompactionView| {
            seen.lock().unwrap().push(view.clone());
            if refuses {
                Verdict::deny("not now")
            } else {
                Verdict::allow()
            }
        };
        let pod = scene(vec![gate("builtin:guard", GATE, says)]);
        let run = pod.run("go");
        assert_eq!(changes(&pod).is_empty(), refuses, "refuses: {refuses}");
        assert_eq!(
            run.end().outcome == Outcome::Done,
            !refuses,
            "without the change, a request does not fit in the end"
        );
        let mut verdicts = verdicts(&pod);
        verdicts.retain(|verdict| verdict.rule == "PreCompaction gate `gate` (builtin:guard)");
        assert_eq!(verdicts[0].decision.allows(), !refuses, "{verdicts:?}");
    }
    let seen = seen.lock().unwrap();
    let view = &seen[0];
    assert_eq!(
        (view.level, view.by_hand, view.window),
        (ViewLevel::Results, false, Some(WINDOW))
    );
    assert!(view.used > WINDOW * 3 / 4, "{}", view.used);
    assert_eq!(
        (view.results[0].call, view.results[0].tool.as_str()),
        (id(1), "Tell")
    );
    assert!(view.results[0].bytes > 2_000);
}

#[test]
fn a_gate_that_fails_keeps_the_context_as_it_is() {
    let pod = scene(vec![gate("builtin:guard", GATE, |_: &CompactionView| {
        panic!("boom")
    })]);
    assert_ne!(pod.run("go").end().outcome, Outcome::Done);
    assert!(changes(&pod).is_empty());
}

#[test]
fn a_transform_chooses_results_that_stay_and_nothing_else() {
    let plain = scene(Vec::new());
    plain.run("go").end();
    assert!(changes(&plain)[0].view.pruned >= 4, "{:?}", changes(&plain));
    let keeps = |view: &CompactionView| {
        assert!(view.keep.is_empty());
        Change::Replaced(CompactionPlan {
            keep: vec![view.results[0].call],
        })
    };
    let pod = scene(vec![transform("builtin:keeper", KEEP, keeps)]);
    pod.run("go").end();
    let change = &changes(&pod)[0];
    assert_eq!(change.keep, [id(1)]);
    assert_eq!(
        (
            change.transforms[0].hook.as_str(),
            change.transforms[0].problem.as_deref()
        ),
        ("keep", None)
    );
    let last = pod.script.requests().pop().unwrap();
    let content = |call: u64| {
        last.items.iter().find_map(|item| match item {
            Item::ToolResult { id: of, outcome } if *of == id(call) => Some(outcome.content.len()),
            _ => None,
        })
    };
    assert!(content(1).unwrap() > 2_000 && content(2).unwrap() < 200);
    // What does not leave cannot be kept, and a failure changes nothing.
    for bad in [
        (|_: &CompactionView| {
            Change::Replaced(CompactionPlan {
                keep: vec![CallId::new(12).unwrap()],
            })
        }) as fn(&CompactionView) -> Change<CompactionPlan>,
        |_| panic!("boom"),
    ] {
        let pod = scene(vec![transform("builtin:keeper", KEEP, bad)]);
        assert_eq!(pod.run("go").end().outcome, Outcome::Done);
        let change = &changes(&pod)[0];
        assert!(change.keep.is_empty());
        assert!(change.transforms[0].problem.is_some());
        assert_eq!(change.view, changes(&plain)[0].view);
    }
}
