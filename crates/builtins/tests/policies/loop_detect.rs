//! `loop-detect`: which call is refused, by which rule, and that a restored pod counts on.

use crate::rig::{Call, counting, play, pod, points, refused, same, state, steps_of, turn, with};
use builtins::loop_detect::ID;
use pod::permission::{Rule, RuleDecision};
use pod::record::Record;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{FnTool, PodUnderTest};

const A: Call = ("A", "{}");
const B: Call = ("B", "{}");
const C: Call = ("C", "{}");
const D: Call = ("D", "{}");
const A1: Call = ("A", r#"{"x":1}"#);

fn tools(still: bool) -> Vec<FnTool> {
    ["A", "B", "C", "D"].into_iter().map(if still { same } else { counting }).collect()
}

fn still() -> PodUnderTest {
    pod(&ID, json!({}), tools(true)).0
}

#[test]
fn the_call_that_reaches_the_window_is_refused() {
    type Case = (&'static str, Value, Vec<Call>, bool, &'static [usize], &'static str);
    let cases: [Case; 12] = [
        ("two are a second look", json!({}), vec![A, A], true, &[], ""),
        ("three", json!({}), vec![A, A, A, A], true, &[2, 3], "rule `repeat`"),
        ("three that bring news", json!({}), vec![A, A, A], false, &[2], "rule `repeat`"),
        ("others in between", json!({}), vec![A, A, B, A, A], true, &[], ""),
        ("other arguments", json!({}), vec![A, A, A1, A, A], true, &[], ""),
        ("a wider window", json!({"window": 4}), vec![A, A, A, A], true, &[3], "rule `repeat`"),
        ("a cycle of two", json!({}), vec![A, B, A, B, A, B, A, B], true, &[5, 6, 7], "rule `cycle`"),
        ("a cycle of three", json!({}), vec![A, B, C, A, B, C, A, B, C], true, &[8], "rule `cycle`"),
        ("a cycle of four", json!({}), [A, B, C, D].repeat(3), true, &[11], "rule `cycle`"),
        ("a way out", json!({}), vec![A, B, A, B, A, B, C, A], true, &[5], "rule `cycle`"),
        ("a cycle that brings news", json!({}), vec![A, B, A, B, A, B], false, &[], ""),
        ("a wider window for cycles", json!({"window": 4}), [A, B].repeat(4), true, &[7], "rule `cycle`"),
    ];
    for (what, keys, calls, still, expected, rule) in cases {
        let ended = turn(&pod(&ID, keys, tools(still)).0, &calls);
        assert_eq!(refused(&ended), expected, "{what}: {ended:?}");
        for at in expected {
            let words = &ended[*at].1;
            assert!(words.contains("builtin:loop-detect") && words.contains(rule), "{what}: {words}");
        }
    }
}

#[test]
fn calls_made_at_once_are_judged_one_after_another() {
    type Case = (&'static str, &'static [&'static [Call]], bool, &'static [usize]);
    let cases: [Case; 4] = [
        ("three at once", &[&[A, A, A]], true, &[2]),
        ("rounds, a step each", &[&[A, B], &[A, B], &[A, B]], true, &[5]),
        ("rounds that bring news", &[&[A, B], &[A, B], &[A, B]], false, &[]),
        ("nobody knows yet what they bring", &[&[A, B, A, B, A, B]], true, &[]),
    ];
    for (what, steps, still, expected) in cases {
        let ended = steps_of(&pod(&ID, json!({}), tools(still)).0, steps);
        assert_eq!(refused(&ended), expected, "{what}: {ended:?}");
    }
    let narrow = pod(&ID, json!({"window": 2}), tools(true)).0;
    assert!(refused(&steps_of(&narrow, &[&[A, B, A, B]])).is_empty());
}

// A call that the host refused never comes before a gate, but it was made.
#[test]
fn a_call_that_the_host_refused_stands_in_between() {
    let mut pod = still();
    let rule = |tool: &str, decision| Rule::new(tool, decision);
    pod.judge_by(vec![rule("*", RuleDecision::Allow), rule("D", RuleDecision::Deny)]);
    assert_eq!(refused(&turn(&pod, &[A, D, A, A, D, A, A])), [1, 4]);
}

#[test]
fn arguments_are_the_same_when_they_mean_the_same() {
    let mut pod = still();
    pod.features.extend(with(Arc::new(builtins::task::TaskList), Vec::new()).features);
    let calls = [("TaskList", "{}"), ("TaskList", r#"{"all":false}"#), ("TaskList", r#"{ "all" : false }"#)];
    assert_eq!(refused(&turn(&pod, &calls)), [2]);
}

#[test]
fn a_restored_pod_counts_on() {
    let pod = still();
    assert!(refused(&turn(&pod, &[A, A])).is_empty());
    assert_eq!(refused(&turn(&pod, &[A, B])), [0]);
    let pod = still();
    assert!(refused(&turn(&pod, &[A, B, A, B, A])).is_empty());
    assert_eq!(refused(&turn(&pod, &[B])), [0]);
}

#[test]
fn what_it_remembers_stays_small() {
    let pod = pod(&ID, json!({"window": 20}), tools(false)).0;
    let long: &'static str = Box::leak(json!({ "x": "y".repeat(20_000) }).to_string().into_boxed_str());
    let calls: Vec<Call> = (0..45).flat_map(|_| [("A", long), B]).collect();
    turn(&pod, &calls);
    let past = state(&pod, &ID, "past");
    assert_eq!(past.as_object().unwrap().len(), 80);
    assert!(past.to_string().len() < 8_000, "{}", past.to_string().len());
}

// Whatever was started is remembered, and the next call is judged by what the log says.
#[test]
fn killed_anywhere_it_judges_by_what_the_log_says() {
    let whole = still();
    play(&whole, &[&[A], &[A], &[B]]).end();
    let mut repeats = 0;
    for (name, nth) in points(&whole) {
        let pod = still();
        pod.points.kill(&name, nth);
        drop(play(&pod, &[&[A], &[A], &[B]]));
        pod.revive();
        pod.script.clear();
        // Opening it finds out how far the log goes.
        turn(&pod, &[]);
        let (past, calls) = (state(&pod, &ID, "past"), pod.state().calls);
        let remembered = past.as_object().map_or(0, serde_json::Map::len);
        let started = pod.records().iter().filter(|(_, record)| matches!(record, Record::ToolStarted(_))).count();
        assert!(remembered >= started, "{name} {nth}: {started} started, {past}");
        let repeat = remembered == 2 && calls == 2;
        assert_eq!(refused(&turn(&pod, &[A])) == [0], repeat, "{name} {nth}: {past}");
        repeats += usize::from(repeat);
    }
    assert!(repeats > 0);
}
