//! The policy features under a pod: what each refuses, by which rule, and what it lets through.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a rig that fails is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests stand at the composition root")]

use authority::Ambient;
use builtins::Clocks;
use builtins::policies::{self, OPT_IN, Settings};
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ResultStatus, ToolEffect, ToolError, ToolOutput};
use pod::feature::{FeatureId, HostCapability};
use pod::hook::{PreToolCall, ToolOutcome};
use pod::session::record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use testkit::{Answer, FnTool, PodUnderTest, Script};

fn settings(value: Value) -> Settings {
    value.as_object().unwrap().clone()
}

/// A pod with one policy feature, and the seconds on its clock.
fn pod(id: &FeatureId, keys: Value, calls: &[(&str, &str)], tools: Vec<FnTool>) -> (PodUnderTest, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&seconds);
    let elapsed = Arc::new(move || Duration::from_secs(now.load(Ordering::Relaxed)));
    let clocks = Clocks { elapsed, now: Arc::new(|| UNIX_EPOCH) };
    let all = BTreeMap::from([(id.clone(), settings(keys))]);
    let module = policies::with_settings(&all, |other| other == id, clocks).unwrap().remove(0);
    let answers = calls.iter().map(|call| Answer::calls(&[*call])).chain([Answer::text("done")]);
    let mut pod = PodUnderTest::new(&Ambient::claim(), Script::new(answers), tools);
    let grants = vec![
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_RESULT,
        HostCapability::READ_WORKSPACE,
    ];
    pod.features = vec![(module, grants)];
    (pod, seconds)
}

/// How each call ended; a refusal as its words.
fn run(pod: &PodUnderTest) -> Vec<(ResultStatus, String)> {
    assert_eq!(pod.run("go").end().outcome, Outcome::Done);
    let ended = |(_, record)| match record {
        Record::ToolFinished(finished) => Some((finished.outcome.status, finished.outcome.summary)),
        _ => None,
    };
    pod.records().into_iter().filter_map(ended).collect()
}

fn refused(ended: &[(ResultStatus, String)]) -> Vec<usize> {
    let refused = ended.iter().enumerate().filter(|(_, (status, _))| *status == ResultStatus::Refused);
    refused.map(|(at, _)| at).collect()
}

fn same(name: &str) -> FnTool {
    FnTool::new(name, ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput { summary: "same".into(), ..Default::default() })
    })
}

fn counting(name: &str) -> FnTool {
    let count = Arc::new(AtomicUsize::new(0));
    FnTool::new(name, ToolEffect::ReadOnly, move |_, _| {
        let summary = count.fetch_add(1, Ordering::Relaxed).to_string();
        async { Ok(ToolOutput { summary, ..Default::default() }) }
    })
}

#[test]
fn loop_detect_refuses_the_call_that_reaches_the_window() {
    const A: (&str, &str) = ("A", "{}");
    const B: (&str, &str) = ("B", "{}");
    const A1: (&str, &str) = ("A", r#"{"x":1}"#);
    let id = builtins::loop_detect::ID;
    type Case = (&'static str, Value, Vec<(&'static str, &'static str)>, bool, &'static [usize], &'static str);
    let cases: [Case; 7] = [
        ("two are a second look", json!({}), vec![A, A], true, &[], ""),
        ("three", json!({}), vec![A, A, A, A], true, &[2, 3], "rule `repeat`"),
        ("others in between", json!({}), vec![A, A, B, A, A], true, &[], ""),
        ("other arguments", json!({}), vec![A, A, A1, A, A], true, &[], ""),
        ("a wider window", json!({"window": 4}), vec![A, A, A, A], true, &[3], "rule `repeat`"),
        ("a cycle of two", json!({}), vec![A, B, A, B, A, B], true, &[5], "rule `cycle`"),
        ("a cycle that brings news", json!({}), vec![A, B, A, B, A, B], false, &[], ""),
    ];
    for (what, keys, calls, still, expected, rule) in cases {
        let tools = if still { vec![same("A"), same("B")] } else { vec![counting("A"), counting("B")] };
        let ended = run(&pod(&id, keys, &calls, tools).0);
        assert_eq!(refused(&ended), expected, "{what}: {ended:?}");
        for at in expected {
            let words = &ended[*at].1;
            assert!(words.contains("builtin:loop-detect") && words.contains(rule), "{what}: {words}");
        }
    }
}

#[test]
fn the_breaker_opens_rests_and_tries_exactly_one() {
    let script =
        Arc::new(Mutex::new([false; 5].into_iter().chain([false, true, true]).collect::<Vec<_>>().into_iter()));
    let (pod, seconds) = {
        let ticks: Arc<Mutex<Option<Arc<AtomicU64>>>> = Arc::default();
        let (answers, clock) = (Arc::clone(&script), Arc::clone(&ticks));
        let flaky = FnTool::new("Flaky", ToolEffect::ReadOnly, move |_, _| {
            let good = answers.lock().unwrap().next().unwrap();
            async move {
                if good { Ok(ToolOutput::default()) } else { Err(ToolError::new(ErrorKind::Unavailable, "broken")) }
            }
        });
        let wait = FnTool::new("Wait", ToolEffect::ReadOnly, move |_, _| {
            clock.lock().unwrap().as_ref().unwrap().fetch_add(30, Ordering::Relaxed);
            async { Ok(ToolOutput::default()) }
        });
        let (f, w) = (("Flaky", "{}"), ("Wait", "{}"));
        let calls = [f, f, f, f, f, f, w, f, f, w, f, f];
        let (pod, seconds) = self::pod(&builtins::circuit_breaker::ID, json!({}), &calls, vec![flaky, wait]);
        *ticks.lock().unwrap() = Some(Arc::clone(&seconds));
        (pod, seconds)
    };
    let ended = run(&pod);
    // Five errors open it; after the rest one trial fails and opens it again; after the next, one succeeds.
    assert_eq!(refused(&ended), [5, 8], "{ended:?}");
    assert!(ended[5].1.contains("builtin:circuit-breaker") && ended[5].1.contains("rule `open`"), "{ended:?}");
    assert_eq!((ended[10].0, ended[11].0), (ResultStatus::Ok, ResultStatus::Ok));
    assert_eq!(seconds.load(Ordering::Relaxed), 60);
}

#[test]
fn write_policy_follows_paths_to_where_they_lead() {
    let id = builtins::write_policy::ID;
    let write = |path: &str| {
        let touches = vec![Touch::Write(path.into())];
        FnTool::new("W", ToolEffect::Effectful, |_, _| async { Ok(ToolOutput::default()) }).touching(touches)
    };
    let cases = [
        ("src/new.rs", false),
        ("src/deep/new.rs", false),
        ("src/../docs/x", true),
        ("docs/x", true),
        ("srcs/x", true),
        ("src/out/x", true),
    ];
    for (path, refuse) in cases {
        let (pod, _) = pod(&id, json!({"scopes": ["./src"]}), &[("W", "{}")], vec![write(path)]);
        std::fs::create_dir_all(pod.project.join("src/deep")).unwrap();
        std::fs::create_dir(pod.project.join("docs")).unwrap();
        std::os::unix::fs::symlink("../docs", pod.project.join("src/out")).unwrap();
        let ended = run(&pod);
        assert_eq!(refused(&ended) == [0], refuse, "`{path}`: {ended:?}");
        assert!(!refuse || ended[0].1.contains("builtin:write-policy"), "`{path}`: {ended:?}");
    }
}

#[test]
fn write_policy_refuses_commands_unless_told_otherwise() {
    let shell = || {
        let touches = vec![Touch::Shell("echo x > docs/x".to_owned())];
        FnTool::new("Bash", ToolEffect::Effectful, |_, _| async { Ok(ToolOutput::default()) }).touching(touches)
    };
    for (commands, expected) in [(false, vec![0]), (true, vec![])] {
        let keys = json!({"scopes": ["src"], "commands": commands});
        let (pod, _) = pod(&builtins::write_policy::ID, keys, &[("Bash", "{}")], vec![shell()]);
        assert_eq!(refused(&run(&pod)), expected);
    }
}

/// Clocks that nobody looks at.
fn still() -> Clocks {
    Clocks { elapsed: Arc::new(|| Duration::ZERO), now: Arc::new(|| UNIX_EPOCH) }
}

#[test]
fn settings_out_of_bounds_and_unknown_keys_are_errors() {
    let [loops, breaker, writes, items, memory] = OPT_IN;
    let cases = [
        (items.clone(), json!({"author": ""}), "author"),
        (items, json!({"name": "x"}), "name"),
        (memory, json!({"author": "x"}), "author"),
        (loops.clone(), json!({"window": 1}), "window"),
        (loops.clone(), json!({"windw": 3}), "windw"),
        (breaker.clone(), json!({"errors": 0}), "errors"),
        (breaker, json!({"rest_s": 4000}), "rest_s"),
        (writes.clone(), json!({}), "scopes"),
        (writes, json!({"scopes": ["../x"]}), "scopes"),
        (builtins::files::ID, json!({"speed": 3}), "speed"),
    ];
    for (id, keys, named) in cases {
        let all = BTreeMap::from([(id.clone(), settings(keys))]);
        let bad = policies::with_settings(&all, |other| *other == id, still()).err().unwrap();
        assert!(bad.feature == id && bad.problem.contains(named), "{bad}");
    }
    let none = policies::with_settings(&BTreeMap::new(), |_| false, still()).unwrap();
    assert!(none.is_empty());
}
