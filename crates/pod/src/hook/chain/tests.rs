//! How the answers of gates and transforms combine, without a pod.

use super::{Change, Hook, HookRegistryBuilder, InstalledHook, MAX_REASON, Recheck, Transformed};
use crate::feature::FeatureId;
use crate::foreign::Callbacks;
use crate::hook::{Gate, PreRequest, RequestView, ToolArguments, ToolCallView, Verdict};
use crate::record::Decision;
use llm_worker::{CallId, ToolEffect};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn callbacks(runtime: &tokio::runtime::Runtime) -> Callbacks {
    Callbacks::new(runtime.handle().clone())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

type Verdicts<'a> = &'a [(&'static str, fn() -> Verdict<PreRequest>)];

type Asked = Arc<Mutex<Vec<&'static str>>>;

/// A gate that notes that it was asked.
fn gate(
    asked: &Asked,
    name: &'static str,
    says: fn() -> Verdict<PreRequest>,
) -> InstalledHook<PreRequest> {
    let asked = Arc::clone(asked);
    let hook = move |_: &RequestView| {
        asked.lock().unwrap().push(name);
        says()
    };
    InstalledHook::new(
        FeatureId::builtin(name),
        name,
        Arc::new(hook) as Arc<dyn Hook<PreRequest>>,
    )
}

/// What these gates decide, and which of them were asked.
fn decided(gates: Verdicts<'_>) -> (super::GateOutcome, Vec<&'static str>) {
    let runtime = runtime();
    let asked = Asked::default();
    let mut hooks = HookRegistryBuilder::new();
    for (name, says) in gates {
        hooks.add(gate(&asked, name, *says));
    }
    let view = || RequestView {
        turn: 1,
        number: 1,
        items: 0,
    };
    let outcome = runtime.block_on(
        hooks
            .build()
            .decide::<PreRequest>(&callbacks(&runtime), view),
    );
    let asked = asked.lock().unwrap().clone();
    (outcome, asked)
}

#[test]
fn gates_are_asked_in_install_order_until_one_refuses() {
    let (outcome, asked) = decided(&[
        ("b", Verdict::allow),
        ("a", || Verdict::abort("enough")),
        ("c", Verdict::allow),
    ]);
    assert_eq!(asked, ["b", "a"]);
    let reason = "builtin:a (gate `a`): enough".to_owned();
    assert_eq!(outcome.decision, Decision::Abort { reason });
    assert_eq!(
        outcome
            .runs
            .iter()
            .map(|run| run.hook.as_str())
            .collect::<Vec<_>>(),
        ["b", "a"]
    );
}

#[test]
fn a_gate_that_panics_refuses_as_its_point_does() {
    let (outcome, asked) = decided(&[("a", || panic!("boom")), ("b", Verdict::allow)]);
    assert_eq!(asked, ["a"], "the chain ends there");
    assert_eq!(
        std::mem::discriminant(&outcome.decision),
        std::mem::discriminant(&PreRequest::refusal(String::new()))
    );
    assert!(
        outcome.runs[0].failed && outcome.decision.reason().contains("boom"),
        "{outcome:?}"
    );
}

#[test]
fn a_reason_is_one_bounded_line_that_names_its_gate() {
    let (outcome, _) = decided(&[("a", || {
        Verdict::abort(format!("one\ntwo\u{1b}[2J{}", "x".repeat(2 * MAX_REASON)))
    })]);
    let reason = outcome.decision.reason();
    assert!(
        reason.starts_with("builtin:a (gate `a`): one two"),
        "{reason}"
    );
    assert!(
        !reason.contains(['\n', '\u{1b}']) && reason.len() <= MAX_REASON + 64,
        "{} bytes",
        reason.len()
    );
}

#[test]
fn without_gates_the_view_is_not_built() {
    let runtime = runtime();
    let hooks = HookRegistryBuilder::new().build();
    let outcome =
        runtime.block_on(hooks.decide::<PreRequest>(&callbacks(&runtime), || panic!("built")));
    assert!(outcome.decision.allows() && outcome.runs.is_empty());
}

type Says = dyn Fn(&Value) -> Change<Value> + Send + Sync;

/// The arguments behind these transforms of `{"n":1}`, and what is noted of them. Values over 9 do not fit.
fn transformed(says: Vec<(&'static str, Box<Says>)>, times: usize) -> (Value, Vec<Transformed>) {
    let runtime = runtime();
    let callbacks = callbacks(&runtime);
    let mut hooks = HookRegistryBuilder::new();
    for (name, says) in says {
        let hook = move |view: &ToolCallView| says(&serde_json::from_str(&view.arguments).unwrap());
        let hook = Arc::new(hook) as Arc<dyn Hook<ToolArguments>>;
        hooks.add(InstalledHook::new(FeatureId::builtin(name), name, hook));
    }
    let hooks = hooks.build();
    let recheck: Recheck<ToolCallView> = Arc::new(|view| {
        let value: Value = serde_json::from_str(&view.arguments).unwrap();
        if value["n"].as_u64().is_some_and(|n| n <= 9) {
            Ok(view)
        } else {
            Err("n is over 9".to_owned())
        }
    });
    let mut last = Value::Null;
    let mut notes = Vec::new();
    for _ in 0..times {
        let view = ToolCallView {
            call: CallId::new(1).unwrap(),
            tool: "T".to_owned(),
            feature: FeatureId::builtin("t"),
            effect: ToolEffect::ReadOnly,
            arguments: json!({ "n": 1 }).to_string().into(),
            touches: Vec::new(),
            input: None,
            turn: 1,
            by_person: false,
        };
        let done = hooks.transform::<ToolArguments>(&callbacks, "T", view, Arc::clone(&recheck));
        let (view, new) = runtime.block_on(done);
        last = serde_json::from_str(&view.arguments).unwrap();
        notes.extend(new);
    }
    (last, notes)
}

fn to(n: u64) -> Box<Says> {
    Box::new(move |_| Change::Replaced(json!({ "n": n })))
}

#[test]
fn each_transform_sees_the_value_of_the_one_before() {
    let double = Box::new(|value: &Value| {
        Change::Replaced(json!({ "n": value["n"].as_u64().unwrap() * 2 }))
    });
    let same = Box::new(|_: &Value| Change::Unchanged);
    let (value, notes) = transformed(vec![("a", to(3)), ("b", same), ("c", double)], 1);
    assert_eq!(value, json!({ "n": 6 }));
    let noted: Vec<_> = notes.iter().map(|note| note.hook.as_str()).collect();
    assert_eq!(
        noted,
        ["a", "c"],
        "one that leaves the value alone is not mentioned"
    );
    assert_eq!(
        notes[0].after.as_ref(),
        Ok(&notes[1].before),
        "the digests are a chain"
    );
}

#[test]
fn a_replacement_that_does_not_fit_leaves_the_value_before() {
    let (value, notes) = transformed(vec![("a", to(3)), ("b", to(10))], 1);
    assert_eq!(value, json!({ "n": 3 }));
    assert!(
        notes[1]
            .after
            .as_ref()
            .is_err_and(|problem| problem.contains("n is over 9")),
        "{notes:?}"
    );
}

#[test]
fn a_transform_is_suspended_after_three_failures_in_a_row() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let fails = Box::new(move |_: &Value| {
        counts.fetch_add(1, Ordering::Relaxed);
        panic!("again")
    });
    let (value, notes) = transformed(vec![("a", fails)], 5);
    assert_eq!(
        (value, asked.load(Ordering::Relaxed), notes.len()),
        (json!({ "n": 1 }), 3, 3)
    );
    assert!(
        notes[2]
            .after
            .as_ref()
            .is_err_and(|problem| problem.contains("not asked again")),
        "{notes:?}"
    );
}
