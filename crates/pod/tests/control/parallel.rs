//! Calls of one answer run together, under a cap, and cost few flushes.

use crate::scene::{echo, pod, said, sound};
use llm_worker::{Item, ToolEffect};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use testkit::{Answer, FnTool, within};

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
    let pod = pod(vec![Answer::calls(&[("Meet", "{}"); 8]), Answer::text("done")], vec![meeting(8)]);
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
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (running, seen) = (Arc::clone(&now), Arc::clone(&most));
        let real = cap.max(1);
        let barrier = Arc::new(Barrier::new(real));
        let tool = FnTool::new("Count", ToolEffect::ReadOnly, move |_, _| {
            let (running, seen, barrier) = (Arc::clone(&running), Arc::clone(&seen), Arc::clone(&barrier));
            async move {
                seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait();
                running.fetch_sub(1, Ordering::SeqCst);
                said("counted")
            }
        });
        let mut pod = pod(vec![Answer::calls(&[("Count", "{}"); 6]), Answer::text("done")], vec![tool.clone()]);
        pod.limits.tool_concurrency = cap;
        let pod = within("six calls under a cap", move || {
            pod.run("first").end();
            pod
        });
        assert_eq!((most.load(Ordering::SeqCst), tool.ran().len()), (real, 6), "cap {cap}");
        sound(&pod, "capped");
    }
}

/// Flushes of a run with these answers before the last.
fn flushes(steps: &[&[(&str, &str)]]) -> u64 {
    let mut answers: Vec<Answer> = steps.iter().map(|calls| Answer::calls(calls)).collect();
    answers.push(Answer::text("done"));
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
