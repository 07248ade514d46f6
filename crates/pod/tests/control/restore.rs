//! What a crash left open is closed by one batch that says what is known and runs nothing.

use crate::fixtures::{echo, pod, results, sound};
use crate::record_strategy;
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, StopReason, ToolEffect, Usage};
use pod::control::Batch;
use pod::record::{HostStarted, InputConsumed, Record, Response, SystemItem, TurnStarted};
use testkit::{FnTool, ModelScript, PodUnderTest, RunEnd, ScriptedAnswer};

fn id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

/// A log that ends in the middle of a turn with one call, started or not, and a pod over it.
fn crashed(started: Option<ToolEffect>) -> (PodUnderTest, FnTool) {
    let tool = echo("T", started.unwrap_or(ToolEffect::Effectful));
    let pod = pod(vec![ScriptedAnswer::text("went on")], vec![tool.clone()]);
    let response = Response {
        stop: StopReason::ToolUse,
        usage: Usage::default(),
        cost: None,
        shortfall: None,
    };
    let started_host = HostStarted {
        version: "0".to_owned(),
        pid: 1,
        project: "/p".to_owned(),
        cwd: "/p".to_owned(),
        sandbox: "off".to_owned(),
        config_digest: String::new(),
        add_dirs: Vec::new(),
        add_write_dirs: Vec::new(),
        launch: None,
    };
    let mut records: Vec<Record> = vec![
        started_host.into(),
        record_strategy::surface(1).into(),
        record_strategy::queued(1, None),
        TurnStarted { turn: 1 }.into(),
        InputConsumed { input: 1 }.into(),
        record_strategy::request(1, 1, 1),
        record_strategy::asked(id(1)),
        response.into(),
    ];
    records.extend(started.map(|effect| record_strategy::started(id(1), effect)));
    let journal = pod.journal();
    journal.append(Batch::of(records)).wait().unwrap();
    journal.close();
    pod.clock.advance(90_000_000);
    (pod, tool)
}

/// The text the model was last given for a call.
fn shown(pod: &PodUnderTest) -> String {
    let request = pod.script.requests().pop().unwrap();
    let result = |item: &Item| match item {
        Item::ToolResult { outcome, .. } => Some(outcome.text()),
        _ => None,
    };
    request.items.iter().find_map(result).unwrap()
}

fn notes(pod: &PodUnderTest) -> Vec<String> {
    let note = |(_, record): &(u64, Record)| match record {
        Record::SystemItem(SystemItem::Recovery { text, .. }) => Some(text.clone()),
        _ => None,
    };
    pod.records().iter().filter_map(note).collect()
}

/// Each row of the recovery table of the journal's format.
#[test]
fn an_open_call_gets_the_result_its_effect_allows() {
    let rows = [
        (None, "not executed; safe to retry"),
        (Some(ToolEffect::ReadOnly), "interrupted; safe to run again"),
        (
            Some(ToolEffect::Idempotent),
            "interrupted; repeating is safe",
        ),
        (
            Some(ToolEffect::Effectful),
            "outcome unknown; verify before retrying\n\
             c00000001 T was started at 2026-09-21T14:13:20Z with: {\"a\":1}",
        ),
    ];
    for (started, text) in rows {
        let (pod, tool) = crashed(started);
        let ran = pod.run("go on");
        assert_eq!(ran.found.as_ref().unwrap().interrupted, 1);
        assert_eq!(ran.end().answer.as_deref(), Some("went on"));
        assert_eq!(shown(&pod), text, "{started:?}");
        assert_eq!(tool.ran(), [], "{started:?}: recovery ran it");
        let [note] = &notes(&pod)[..] else {
            panic!("{started:?}: not one note")
        };
        assert!(
            note.contains("down for 1m 30s") && note.contains("c00000001 T: "),
            "{note}"
        );
        assert!(!note.contains("child processes"), "{note}");
    }
}

#[test]
fn the_note_counts_what_else_was_found() {
    let (pod, _) = crashed(None);
    *pod.survivors.lock().unwrap() = Ok(2);
    pod.run("go on").end();
    assert!(
        notes(&pod)[0].ends_with("Child processes that were left running were ended: 2."),
        "{:?}",
        notes(&pod)
    );
    // Nothing is open any more: the next start has nothing to say.
    pod.script.add(ScriptedAnswer::text("again"));
    pod.run("again").end();
    assert_eq!(notes(&pod).len(), 1);
    assert_eq!(
        pod.records()
            .iter()
            .filter(|(_, record)| matches!(record, Record::Recovery(_)))
            .count(),
        1
    );
}

/// A log that ended in good order is opened without a word, whatever the clock says.
#[test]
fn a_session_that_was_closed_needs_no_recovery() {
    let pod = pod(
        vec![ScriptedAnswer::text("one"), ScriptedAnswer::text("two")],
        Vec::new(),
    );
    pod.run("first").end();
    let found = pod.run("second").found.unwrap();
    assert_eq!(
        (
            found.existed,
            found.interrupted,
            found.cut,
            found.new_surface
        ),
        (true, 0, 0, false)
    );
    assert!(
        !pod.records()
            .iter()
            .any(|(_, record)| matches!(record, Record::Recovery(_)))
    );
}

/// A turn may be held before a request for as long as people like: its log ends with what was pending then.
#[test]
fn a_turn_that_was_held_before_a_request_is_closed() {
    let first: Vec<Record> = vec![
        record_strategy::surface(1).into(),
        record_strategy::queued(1, None),
        TurnStarted { turn: 1 }.into(),
        InputConsumed { input: 1 }.into(),
    ];
    let later: Vec<Record> = vec![
        record_strategy::request(1, 1, 1),
        record_strategy::asked(id(1)),
        record_strategy::started(id(1), ToolEffect::Effectful),
        record_strategy::finished(id(1), None),
    ];
    for (held, records) in [
        ("the first", vec![first.clone()]),
        ("a later", vec![first, later]),
    ] {
        let pod = pod(vec![ScriptedAnswer::text("went on")], Vec::new());
        let journal = pod.journal();
        for batch in records {
            journal.append(Batch::of(batch)).wait().unwrap();
        }
        journal.close();
        let ran = pod.run("go on");
        assert_eq!(ran.end().answer.as_deref(), Some("went on"), "{held}");
        let finished = |(_, record): &(u64, Record)| match record {
            Record::TurnFinished(end) => Some((end.turn, end.outcome.clone())),
            _ => None,
        };
        let ends: Vec<_> = pod.records().iter().filter_map(finished).collect();
        assert_eq!(
            ends,
            [(1, Outcome::Interrupted), (2, Outcome::Done)],
            "{held}"
        );
        let state = pod.state();
        assert_eq!(
            (state.turns, state.queued.len(), notes(&pod).len()),
            (2, 0, 1),
            "{held}"
        );
    }
}

/// Killed at every point of a recovery, the next one comes to the same end.
#[test]
fn recovery_killed_at_any_point_is_done_again_once() {
    let points = |pod: &PodUnderTest| {
        let all = pod.points.numbered();
        let end = all
            .iter()
            .position(|(name, _)| name == "commit:input_queued")
            .unwrap();
        all[..end].to_vec()
    };
    let (reference, _) = crashed(Some(ToolEffect::Effectful));
    reference.run("go on").end();
    let points = points(&reference);
    assert!(points.len() > 8, "{points:?}");
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let (mut pod, tool) = crashed(Some(ToolEffect::Effectful));
        pod.points.kill(&name, nth);
        let how = pod.run("go on").how;
        assert!(matches!(how, RunEnd::Killed), "{what}: {how:?}");
        assert_eq!(tool.ran(), [], "{what}");
        pod.revive();
        pod.script = ModelScript::new([ScriptedAnswer::text("went on")]);
        assert_eq!(
            pod.run("go on").end().answer.as_deref(),
            Some("went on"),
            "{what}"
        );
        assert_eq!(tool.ran(), [], "{what}");
        assert_eq!(notes(&pod).len(), 1, "{what}: {:?}", notes(&pod));
        // The crafted log's request has no true digest: folded, but not verified.
        let all = results(&pod.restored().items);
        assert!(
            all.values().all(|results| results.len() == 1),
            "{what}: {all:?}"
        );
    }
}

#[test]
fn an_input_that_no_turn_took_is_taken_by_the_next() {
    let pod = pod(vec![ScriptedAnswer::text("both")], Vec::new());
    pod.points.kill("input_queued", 0);
    assert!(matches!(pod.run("first").how, RunEnd::Killed));
    pod.revive();
    pod.run("second").end();
    let request = pod.script.requests().pop().unwrap();
    let users = |item: &Item| match item {
        Item::User { text, .. } => Some(text.clone()),
        _ => None,
    };
    assert!(
        request
            .items
            .iter()
            .filter_map(users)
            .eq(["first", "second"]),
        "{:?}",
        request.items
    );
    sound(&pod, "a queued input");
}
