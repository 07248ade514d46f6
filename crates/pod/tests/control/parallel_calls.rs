//! Calls of one answer run together, under a cap, and cost few flushes.

use crate::fixtures::{echo, pod, said, sound};
use llm_worker::{Item, ToolEffect};
use std::sync::{Arc, Barrier};
use testkit::{FnTool, ScriptedAnswer, within};

/// Calls that all wait for each other.
fn meeting(many: usize) -> FnTool {
    let barrier = Arc::new(Barrier::new(many));
    FnTool::new("Meet", ToolEffect::ReadOnly, move |_, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait();
            said("met")
        }
    })
}

#[test]
fn eight_calls_overlap() {
    let pod = pod(vec![ScriptedAnswer::calls(&[("Meet", "{}"); 8]), ScriptedAnswer::text("done")], vec![meeting(8)]);
    let pod = within("eight calls that wait for each other", move || {
        pod.run("first").end();
        pod
    });
    sound(&pod, "parallel");
    // Results stand in the order the calls ended, each once.
    let request = pod.script.requests().pop().unwrap();
    assert_eq!(request.items.iter().filter(|item| matches!(item, Item::ToolResult { .. })).count(), 8);
}

#[test]
fn no_more_run_at_once_than_the_cap() {
    for cap in [0, 1, 2, 3] {
        let (real, tool) = (usize::max(cap, 1), echo("Count", ToolEffect::ReadOnly));
        let mut pod =
            pod(vec![ScriptedAnswer::calls(&[("Count", "{}"); 6]), ScriptedAnswer::text("done")], vec![tool.clone()]);
        pod.limits.tool_concurrency = cap;
        let pod = within("six calls under a cap", move || {
            pod.run("first").end();
            pod
        });
        // As the control thread counts them, which starts as many at once as it may.
        let step = |point: String| match point.as_str() {
            "tool:running" => 1_isize,
            "tool:ended" => -1,
            _ => 0,
        };
        let running = pod.points.came().into_iter().scan(0, |now, point| {
            *now += step(point);
            Some(*now)
        });
        assert_eq!((running.max(), tool.ran().len()), (isize::try_from(real).ok(), 6), "cap {cap}");
        sound(&pod, "capped");
    }
}

/// Flushes of a run with these answers before the last.
fn flushes(steps: &[&[(&str, &str)]]) -> u64 {
    let mut answers: Vec<ScriptedAnswer> = steps.iter().map(|calls| ScriptedAnswer::calls(calls)).collect();
    answers.push(ScriptedAnswer::text("done"));
    let pod = pod(answers, vec![echo("Echo", ToolEffect::Effectful)]);
    let ran = pod.run("first");
    assert_eq!(ran.end().steps, steps.len() as u64 + 1);
    ran.flushes
}

/// Two flushes for a step with one call; at most k + 1 for k calls; none for what runs not at all but the two.
#[test]
fn a_step_costs_the_flushes_the_format_promises() {
    let one: &[(&str, &str)] = &[("Echo", "{}")];
    let none = flushes(&[]);
    assert_eq!(flushes(&[one]) - none, 2);
    assert_eq!(flushes(&[one, one, one]) - none, 6);
    assert_eq!(flushes(&[&[("None", "{}"), ("None", "{}")]]) - none, 2);
    for calls in [2_usize, 5, 8] {
        let many = vec![("Echo", "{}"); calls];
        let cost = flushes(&[&many]) - none;
        assert!((2..=calls as u64 + 1).contains(&cost), "{cost} flushes for {calls} calls");
    }
}
