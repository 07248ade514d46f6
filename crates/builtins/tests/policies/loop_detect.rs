//! `loop-detect`: which call is refused, by which rule, that an input of a person ends a row, and when the turn ends.

use crate::refused_updates::{Unheard, unheard};
use crate::rig::{
    BEGAN, Call, clock, counting, play, pod, points, refused, same, settings, state, steps_of,
    turn, with,
};
use builtins::loop_detect::ID;
use builtins::policies;
use llm_worker::CallId;
use llm_worker::effect::Outcome;
use pod::hook::{PreToolCall, ToolCallView};
use pod::permission::{Rule, RuleDecision};
use pod::record::{Decision, Record};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use testkit::{FnTool, ModelScript, PodUnderTest, shell_call, tool_call};

const A: Call = ("A", "{}");
const B: Call = ("B", "{}");
const C: Call = ("C", "{}");
const D: Call = ("D", "{}");
const A1: Call = ("A", r#"{"x":1}"#);

fn tools(still: bool) -> Vec<FnTool> {
    ["A", "B", "C", "D"]
        .into_iter()
        .map(if still { same } else { counting })
        .collect()
}

fn still() -> PodUnderTest {
    pod(&ID, json!({}), tools(true)).0
}

#[test]
fn the_call_that_reaches_the_window_is_refused() {
    type Case = (
        &'static str,
        Value,
        Vec<Call>,
        bool,
        &'static [usize],
        &'static str,
    );
    let cases: [Case; 12] = [
        (
            "two are a second look",
            json!({}),
            vec![A, A],
            true,
            &[],
            "",
        ),
        (
            "three",
            json!({}),
            vec![A, A, A, A],
            true,
            &[2, 3],
            "rule `repeat`",
        ),
        (
            "three that bring news",
            json!({}),
            vec![A, A, A],
            false,
            &[2],
            "rule `repeat`",
        ),
        (
            "others in between",
            json!({}),
            vec![A, A, B, A, A],
            true,
            &[],
            "",
        ),
        (
            "other arguments",
            json!({}),
            vec![A, A, A1, A, A],
            true,
            &[],
            "",
        ),
        (
            "a wider window",
            json!({"window": 4}),
            vec![A, A, A, A],
            true,
            &[3],
            "rule `repeat`",
        ),
        (
            "a cycle of two",
            json!({}),
            vec![A, B, A, B, A, B, A, B],
            true,
            &[5, 6, 7],
            "rule `cycle`",
        ),
        (
            "a cycle of three",
            json!({}),
            vec![A, B, C, A, B, C, A, B, C],
            true,
            &[8],
            "rule `cycle`",
        ),
        (
            "a cycle of four",
            json!({}),
            [A, B, C, D].repeat(3),
            true,
            &[11],
            "rule `cycle`",
        ),
        (
            "a way out",
            json!({}),
            vec![A, B, A, B, A, B, C, A],
            true,
            &[5],
            "rule `cycle`",
        ),
        (
            "a cycle that brings news",
            json!({}),
            vec![A, B, A, B, A, B],
            false,
            &[],
            "",
        ),
        (
            "a wider window for cycles",
            json!({"window": 4}),
            [A, B].repeat(4),
            true,
            &[7],
            "rule `cycle`",
        ),
    ];
    for (what, keys, calls, still, expected, rule) in cases {
        let ended = turn(&pod(&ID, keys, tools(still)).0, &calls);
        assert_eq!(refused(&ended), expected, "{what}: {ended:?}");
        for at in expected {
            let words = &ended[*at].1;
            assert!(
                words.contains("builtin:loop-detect") && words.contains(rule),
                "{what}: {words}"
            );
        }
    }
}

#[test]
fn calls_made_at_once_are_judged_one_after_another() {
    type Case = (
        &'static str,
        &'static [&'static [Call]],
        bool,
        &'static [usize],
    );
    let cases: [Case; 4] = [
        ("three at once", &[&[A, A, A]], true, &[2]),
        (
            "rounds, a step each",
            &[&[A, B], &[A, B], &[A, B]],
            true,
            &[5],
        ),
        (
            "rounds that bring news",
            &[&[A, B], &[A, B], &[A, B]],
            false,
            &[],
        ),
        (
            "nobody knows yet what they bring",
            &[&[A, B, A, B, A, B]],
            true,
            &[],
        ),
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
    pod.judge_by(vec![
        rule("*", RuleDecision::Allow),
        rule("D", RuleDecision::Deny),
    ]);
    assert_eq!(refused(&turn(&pod, &[A, D, A, A, D, A, A])), [1, 4]);
}

#[test]
fn arguments_are_the_same_when_they_mean_the_same() {
    let mut pod = still();
    pod.features
        .extend(with(Arc::new(builtins::task::TaskList), Vec::new()).features);
    let calls = [
        ("TaskList", "{}"),
        ("TaskList", r#"{"all":false}"#),
        ("TaskList", r#"{ "all" : false }"#),
    ];
    assert_eq!(refused(&turn(&pod, &calls)), [2]);
}

// The third of three inputs that asked for the same call was refused, which the person had asked for.
#[test]
fn an_input_of_a_person_ends_a_row() {
    let pod = still();
    assert!(refused(&turn(&pod, &[A, A])).is_empty());
    assert_eq!(refused(&turn(&pod, &[A, A, A])), [2]);
    assert!(refused(&turn(&pod, &[A, B, A, B, A])).is_empty());
    assert!(refused(&turn(&pod, &[B])).is_empty());
    // Steered into a turn, it ends one, too; without one, the row goes on.
    let ask = |asked: &Asked, inputs: &[Option<u64>]| -> Vec<bool> {
        inputs
            .iter()
            .map(|input| {
                asked.ask(ToolCallView {
                    input: *input,
                    ..tool_call("A", json!({}))
                })
            })
            .collect()
    };
    assert_eq!(
        ask(
            &Asked::new(),
            &[Some(1), Some(1), Some(2), Some(2), Some(2)]
        ),
        [true, true, true, true, false]
    );
    assert_eq!(
        ask(&Asked::new(), &[Some(1), None, None]),
        [true, true, false]
    );
    assert_eq!(
        ask(&Asked::new(), &[None, None, Some(1), Some(1)]),
        [true; 4]
    );
}

#[test]
fn a_command_of_a_person_is_never_refused_nor_counted() {
    let asked = Asked::new();
    let call = |by_person| ToolCallView {
        by_person,
        input: Some(1),
        ..shell_call("ls")
    };
    for (by_person, allowed) in [
        (true, true),
        (true, true),
        (true, true),
        (false, true),
        (true, true),
        (false, true),
    ] {
        assert_eq!(asked.ask(call(by_person)), allowed);
    }
    // What a model says about a command makes it no other one.
    let told = |words: &str| ToolCallView {
        arguments: json!({ "command": "ls", "description": words })
            .to_string()
            .into(),
        ..shell_call("ls")
    };
    let asked = Asked::new();
    assert_eq!(
        ["once", "twice", "a third time"].map(|words| asked.ask(told(words))),
        [true, true, false]
    );
}

// A model that repeated a refused call went on for 500 steps, and $41.
#[test]
fn the_tenth_refusal_ends_the_turn() {
    for (calls, most) in [
        (vec![A; 30], 12),
        ([A, A, A, B].repeat(20), 40),
        ([A, B].repeat(20), 15),
    ] {
        let pod = still();
        let steps: Vec<&[Call]> = calls.chunks(1).collect();
        let run = play(&pod, &steps);
        let Outcome::Aborted { reason } = &run.end().outcome else {
            panic!("{:?}", run.end())
        };
        assert!(
            reason.contains("builtin:loop-detect") && reason.contains("10 repeated calls"),
            "{reason}"
        );
        assert!(pod.script.requests().len() <= most, "{calls:?}");
        // Another input begins anew.
        pod.script.clear();
        assert!(refused(&turn(&pod, &[A, A])).is_empty());
    }
    // Rare refusals in a long turn do not add up.
    let asked = Asked::new();
    for _ in 0..12 {
        let others = [
            &["B", "C", "D", "E"].repeat(2)[..],
            &["B", "E", "C", "D", "B"],
        ]
        .concat();
        let calls: Vec<&str> = ["A"; 3].into_iter().chain(others).collect();
        let decided: Vec<_> = calls
            .iter()
            .map(|name| asked.decide(tool_call(name, json!({}))))
            .collect();
        let is_refused = |decision: &Decision| matches!(decision, Decision::Refuse { .. });
        assert_eq!(decided.iter().position(is_refused), Some(2));
        assert_eq!(
            decided
                .iter()
                .filter(|decision| **decision == Decision::Allow)
                .count(),
            calls.len() - 1
        );
    }
}

// The same unknown tool, or the same arguments that do not fit, went on to the step limit: none came to the gate.
#[test]
fn a_row_of_calls_that_fail_before_the_gate_ends_the_turn() {
    const NOPE: Call = ("Nope", "{}");
    const UNFIT: Call = ("A", "[1]");
    const TOLD: [Call; 2] = [
        ("Nope", r#"{"description":"a"}"#),
        ("Nope", r#"{"description":"b"}"#),
    ];
    type Case = (&'static str, Vec<&'static [Call]>, Option<usize>);
    let cases: [Case; 9] = [
        ("an unknown tool", vec![&[NOPE]; 30], Some(12)),
        ("arguments that do not fit", vec![&[UNFIT]; 30], Some(12)),
        ("refused by a rule", vec![&[D]; 30], Some(12)),
        (
            "other words about it",
            [&TOLD[..1], &TOLD[1..]].repeat(15),
            Some(12),
        ),
        (
            "two by turns",
            [&[NOPE][..], &[UNFIT][..]].repeat(15),
            Some(24),
        ),
        (
            "one that runs in between",
            [&[B][..], &[NOPE][..]].repeat(15),
            Some(24),
        ),
        ("beside one that runs", vec![&[B, NOPE]; 30], Some(12)),
        ("eleven", vec![&[NOPE]; 11], None),
        (
            "others in between",
            [vec![&[NOPE][..]; 11], vec![&[B][..]], vec![&[NOPE][..]; 11]].concat(),
            None,
        ),
    ];
    for (what, steps, expected) in cases {
        let mut pod = pod(&ID, json!({}), tools(false)).0;
        let rule = |tool: &str, decision| Rule::new(tool, decision);
        pod.judge_by(vec![
            rule("*", RuleDecision::Allow),
            rule("D", RuleDecision::Deny),
        ]);
        let run = play(&pod, &steps);
        let end = &run.end().outcome;
        let Some(requests) = expected else {
            assert_eq!(*end, Outcome::Done, "{what}");
            continue;
        };
        let Outcome::Aborted { reason } = end else {
            panic!("{what}: {end:?}")
        };
        assert!(
            reason.contains("made the same calls 12 times"),
            "{what}: {reason}"
        );
        assert_eq!(pod.script.requests().len(), requests, "{what}");
        // Another input begins anew.
        pod.script.clear();
        assert_eq!(
            play(&pod, &[&[NOPE][..]; 11]).end().outcome,
            Outcome::Done,
            "{what}"
        );
    }
}

/// The feature's gate, asked about calls that no pod runs.
struct Asked {
    host: Unheard,
    next: Cell<u64>,
}

impl Asked {
    fn new() -> Self {
        let all = BTreeMap::from([(ID, settings(json!({})))]);
        let clock = clock(&Arc::new(AtomicU64::new(BEGAN)));
        let module = policies::with_settings(&all, |other| *other == ID, &clock)
            .unwrap()
            .remove(0);
        let pod = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), Vec::new());
        Self {
            host: unheard(module, pod),
            next: Cell::new(1),
        }
    }

    fn ask(&self, view: ToolCallView) -> bool {
        self.decide(view) == Decision::Allow
    }

    fn decide(&self, view: ToolCallView) -> Decision {
        let call = CallId::new(self.next.replace(self.next.get() + 1)).unwrap();
        let Unheard {
            registry,
            runtime,
            callbacks,
            ..
        } = &self.host;
        let view = ToolCallView { call, ..view };
        let asked = registry.hooks().decide::<PreToolCall>(callbacks, || view);
        runtime.block_on(asked).decision
    }
}

#[test]
fn what_it_remembers_stays_small() {
    let pod = pod(&ID, json!({"window": 20}), tools(false)).0;
    let long: &'static str = Box::leak(
        json!({ "x": "y".repeat(20_000) })
            .to_string()
            .into_boxed_str(),
    );
    let calls: Vec<Call> = (0..45).flat_map(|_| [("A", long), B]).collect();
    turn(&pod, &calls);
    let past = state(&pod, &ID, "past");
    assert_eq!(past.as_object().unwrap().len(), 80);
    assert!(past.to_string().len() < 8_000, "{}", past.to_string().len());
}

// Whatever was started is remembered, and the next input begins anew.
#[test]
fn killed_anywhere_it_remembers_what_the_log_says() {
    let whole = still();
    play(&whole, &[&[A], &[A], &[B]]).end();
    for (name, nth) in points(&whole) {
        let pod = still();
        pod.points.kill(&name, nth);
        drop(play(&pod, &[&[A], &[A], &[B]]));
        pod.revive();
        pod.script.clear();
        // Opening it finds out how far the log goes.
        turn(&pod, &[]);
        let past = state(&pod, &ID, "past");
        let remembered = past.as_object().map_or(0, serde_json::Map::len);
        let started = pod
            .records()
            .iter()
            .filter(|(_, record)| matches!(record, Record::ToolStarted(_)))
            .count();
        assert!(
            remembered >= started,
            "{name} {nth}: {started} started, {past}"
        );
        assert_eq!(
            refused(&turn(&pod, &[A, A, A])),
            [2],
            "{name} {nth}: {past}"
        );
    }
}
