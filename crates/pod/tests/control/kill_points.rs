//! A run killed at every one of its points, and what the next one makes of it.

use crate::fixtures::{
    Changed, changer, echo, pod, printer, ran_once, sound, told_what_is_durable,
};
use llm_worker::{Item, ToolEffect};
use pod::record::Record;
use testkit::{FnTool, ModelScript, PodUnderTest, RunEnd, ScriptedAnswer};

fn scene(segment_bytes: u64) -> (PodUnderTest, Vec<FnTool>, Changed) {
    let changed = Changed::default();
    let tools = vec![
        changer("Change", &changed),
        echo("Echo", ToolEffect::Effectful),
        printer("Print", 3000),
    ];
    let answers = vec![
        ScriptedAnswer::calls(&[("Change", "{}"), ("Echo", "{}")]),
        ScriptedAnswer::calls(&[("Print", "{}")]),
        ScriptedAnswer::text("done"),
    ];
    let mut pod = pod(answers, tools.clone());
    pod.segment_bytes = segment_bytes;
    (pod, tools, changed)
}

fn users(pod: &PodUnderTest) -> Vec<String> {
    let request = pod.script.requests().pop().unwrap();
    let user = |item: Item| match item {
        Item::User { text, .. } => Some(text),
        _ => None,
    };
    request.items.into_iter().filter_map(user).collect()
}

/// One kill and the run behind it.
fn killed_at(name: &str, nth: usize, segment_bytes: u64) {
    let what = format!("killed at {name} {nth}, segments of {segment_bytes}");
    let (mut pod, tools, changed) = scene(segment_bytes);
    pod.points.kill(name, nth);
    let first = pod.run("first");
    // Behind the last commit nobody notices.
    assert!(
        matches!(
            first.how,
            RunEnd::Killed | RunEnd::Ended(_) | RunEnd::Failed(_)
        ),
        "{what}: {:?}",
        first.how
    );
    let ran: Vec<_> = tools.iter().flat_map(FnTool::ran).collect();
    pod.revive();
    pod.script = ModelScript::new([ScriptedAnswer::text("went on")]);
    let second = pod.run("second");
    assert_eq!(second.end().answer.as_deref(), Some("went on"), "{what}");
    let after: Vec<_> = tools.iter().flat_map(FnTool::ran).collect();
    assert_eq!(after, ran, "{what}: something ran that nobody asked for");
    ran_once(&tools, &what);
    let log = pod.records();
    for (seq, record) in first.records() {
        assert_eq!(
            log[usize::try_from(seq).unwrap() - 1],
            (seq, record),
            "{what}: told and lost"
        );
    }
    told_what_is_durable(&second, &log, second.records()[0].0 - 1, &what);
    let queued = log
        .iter()
        .any(|(_, record)| matches!(record, Record::InputQueued(i) if i.text == "first"));
    let expected: &[&str] = if queued {
        &["first", "second"]
    } else {
        &["second"]
    };
    assert_eq!(users(&pod), expected, "{what}");
    for path in changed.lock().unwrap().iter() {
        let recorded = |(_, record): &(u64, Record)| matches!(record, Record::FileChanged(f) if f.path == *path);
        assert!(
            log.iter().any(recorded),
            "{what}: {path} was changed and no record says so"
        );
    }
    sound(&pod, &what);
}

// covers: INV-13
#[test]
fn a_kill_at_any_point_loses_and_repeats_nothing() {
    every_point(
        16 << 20,
        &[
            "commit:tool_started",
            "tool:running",
            "file_changed",
            "blob:written",
            "stream",
        ],
    );
}

/// The same while segments are sealed and folds are kept beside the log.
#[test]
fn killed_around_a_seal_the_fold_is_that_of_the_log() {
    every_point(3000, &["journal:checkpoint", "journal:renamed"]);
}

fn every_point(segment_bytes: u64, expected: &[&str]) {
    let (reference, _, _) = scene(segment_bytes);
    reference.run("first").end();
    let points = reference.points.numbered();
    for expected in expected {
        assert!(
            points.iter().any(|(name, _)| name == expected),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        killed_at(&name, nth, segment_bytes);
    }
}
