//! A pod goes on behind lost records: whatever is lost, it says so and is whole again.

use crate::fixtures::{Changed, changer, echo, pod, printer, results, verified};
use crate::record_strategy;
use llm_worker::{CallId, Item, ToolEffect};
use pod::record::{Gap, Record, Stored, SystemItem, TurnStarted};
use pod::session::LostRecords;
use pod::session::changes::Changes;
use pod::session::fold::SessionState;
use pod::session::restore::decode;
use session_store::{Digest, Options, Reader, Session};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Two runs of three calls each; one changes a file.
fn told() -> (PodUnderTest, Vec<FnTool>) {
    let tools = vec![
        changer("Change", &Changed::default()),
        echo("Echo", ToolEffect::Effectful),
        printer("Print", 3000),
    ];
    let mut pod = pod(Vec::new(), tools.clone());
    pod.segment_bytes = 6000;
    for run in 0..2 {
        let calls = [("Change", "{}"), ("Echo", "{}"), ("Print", "{}")];
        pod.script = ModelScript::new(vec![
            ScriptedAnswer::calls(&calls),
            ScriptedAnswer::text(&format!("answer {run}")),
        ]);
        pod.run(&format!("input {run}")).end();
    }
    (pod, tools)
}

/// Where each record stands: file, offset, kind.
fn places(dir: &Path) -> Vec<(PathBuf, usize, String)> {
    let mut files: Vec<_> = fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut places = Vec::new();
    for file in files {
        let mut at = 0;
        let text = fs::read_to_string(&file).unwrap();
        for line in text.split_inclusive('\n') {
            let kind = line[127..].split('"').next().unwrap().to_owned();
            places.push((file.clone(), at, kind));
            at += line.len();
        }
    }
    places
}

/// Damages the records at these places and has the pod work on a copy of what is left.
fn salvaged(pod: &mut PodUnderTest, places: &[&(PathBuf, usize, String)]) {
    for (file, at, _) in places {
        let mut bytes = fs::read(file).unwrap();
        bytes[at + 125] ^= 1;
        fs::remove_file(file).unwrap();
        fs::write(file, bytes).unwrap();
    }
    let copy = pod.root().join("copy");
    let salvaged =
        Session::salvage(&pod.dir, &copy, Options::new("s-1", pod.clock.clock())).unwrap();
    assert!(!salvaged.lost.is_empty());
    pod.dir = copy;
}

fn went_on(pod: &mut PodUnderTest, what: &str) {
    pod.script = ModelScript::new(vec![ScriptedAnswer::text("went on")]);
    let ran = pod.run("go on");
    assert_eq!(ran.end().answer.as_deref(), Some("went on"), "{what}");
    assert!(ran.found.as_ref().unwrap().lost.is_some(), "{what}");
    let restored = pod.restored();
    for (call, results) in results(&restored.items) {
        assert_eq!(results.len(), 1, "{what}: {call} has {results:?}");
    }
    let notes = |item: &&Item| matches!(item, Item::System { text, .. } if text.contains("damaged journal"));
    assert_eq!(
        restored.items.iter().filter(notes).count(),
        1,
        "{what}: {:?}",
        restored.items
    );
    let found = verified(pod);
    assert_eq!(found.wrong, None, "{what}");
    assert!(
        found.notes.iter().any(|note| note.contains(" lost")),
        "{what}: {:?}",
        found.notes
    );
    assert_eq!(restored.state.lost, None, "{what}");
    // From here on it is a session like any other.
    pod.script = ModelScript::new(vec![
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::text("on and on"),
    ]);
    let ran = pod.run("and on");
    assert_eq!(
        (
            ran.end().answer.as_deref(),
            ran.found.as_ref().unwrap().lost
        ),
        (Some("on and on"), None),
        "{what}"
    );
    let again = verified(pod);
    assert_eq!(
        (again.wrong, again.beyond, again.requests),
        (None, found.beyond, found.requests + 2),
        "{what}"
    );
}

#[test]
fn whichever_record_is_lost_the_pod_goes_on() {
    let (reference, _) = told();
    let count = places(&reference.dir).len();
    assert!(count > 40, "{count}");
    for n in 0..count {
        let (mut pod, tools) = told();
        let ran: Vec<_> = tools.iter().flat_map(FnTool::ran).collect();
        // How long a call took stands in the log, so that a segment may end a record earlier or later.
        let mut all = places(&pod.dir);
        let place = all.remove(n.min(all.len() - 1));
        salvaged(&mut pod, &[&place]);
        went_on(&mut pod, &format!("without record {} ({})", n + 1, place.2));
        let after: Vec<_> = tools.iter().flat_map(FnTool::ran).collect();
        assert!(
            after.iter().filter(|call| ran.contains(call)).count() == ran.len(),
            "{n}: a call ran again"
        );
    }
}

#[test]
fn two_losses_and_a_loss_of_a_copy() {
    let (mut pod, _) = told();
    let all = places(&pod.dir);
    let of = |all: &[(PathBuf, usize, String)], kind: &str, nth: usize| {
        all.iter()
            .filter(|(_, _, k)| k == kind)
            .nth(nth)
            .unwrap()
            .clone()
    };
    salvaged(
        &mut pod,
        &[&of(&all, "tool_finished", 0), &of(&all, "turn_started", 1)],
    );
    went_on(&mut pod, "two losses");
    let all = places(&pod.dir);
    let recovery = of(&all, "recovery", 0);
    let copy = pod.root().join("second");
    fs::rename(&pod.dir, &copy).unwrap();
    let moved = |place: (PathBuf, usize, String)| {
        (
            copy.join("log").join(place.0.file_name().unwrap()),
            place.1,
            place.2,
        )
    };
    pod.dir = copy.clone();
    salvaged(&mut pod, &[&moved(recovery)]);
    pod.script = ModelScript::new(vec![ScriptedAnswer::text("once more")]);
    assert_eq!(
        pod.run("once more").end().answer.as_deref(),
        Some("once more")
    );
    assert_eq!(verified(&pod).wrong, None);
}

/// The model reads it where the result would stand, before anything else is said.
#[test]
fn a_call_whose_result_is_lost_is_told_so_in_its_place() {
    let (mut pod, _) = told();
    let finished = places(&pod.dir)
        .into_iter()
        .rfind(|(_, _, kind)| kind == "tool_finished")
        .unwrap();
    salvaged(&mut pod, &[&finished]);
    went_on(&mut pod, "a result");
    let items = pod.restored().items;
    let lost = |item: &Item| matches!(item, Item::ToolResult { outcome, .. } if outcome.summary.starts_with("lost: "));
    let at = items.iter().position(lost).unwrap();
    assert!(
        matches!(
            items[at - 1],
            Item::ToolResult { .. } | Item::ToolCall { .. }
        ),
        "{:?}",
        items[at - 1]
    );
    assert!(
        matches!(
            items[at + 1],
            Item::ToolResult { .. } | Item::Assistant { .. }
        ),
        "{:?}",
        items[at + 1]
    );
}

/// An input that was waiting may have been answered in what is lost: nobody is asked twice.
#[test]
fn an_input_that_may_have_been_taken_is_not_taken_again() {
    let (mut pod, _) = told();
    let all = places(&pod.dir);
    let taken: Vec<_> = all
        .iter()
        .skip_while(|(_, _, kind)| kind != "input_queued")
        .skip(1)
        .collect();
    salvaged(&mut pod, &taken);
    pod.script = ModelScript::new(vec![ScriptedAnswer::text("went on")]);
    let ran = pod.run("go on");
    assert_eq!(ran.found.as_ref().unwrap().waiting, 0);
    let request = pod.script.requests().pop().unwrap();
    let users = request
        .items
        .iter()
        .filter(|item| matches!(item, Item::User { .. }))
        .count();
    assert_eq!(users, 1, "{:?}", request.items);
    let notes = |(_, record): &(u64, Record)| {
        matches!(record, Record::SystemItem(SystemItem::Recovery { .. }))
    };
    assert_eq!(
        pod.records().iter().filter(|record| notes(record)).count(),
        1
    );
}

#[test]
fn losses_are_added_up_until_a_recovery_speaks_of_them() {
    let gap = |first, last| {
        Record::from(Gap {
            first,
            last,
            reason: None,
        })
    };
    let mut state = SessionState::default();
    let mut take = |record: &Record| {
        state.apply(record).unwrap();
        state.lost
    };
    take(&record_strategy::surface(1).into());
    take(&record_strategy::queued(1, None));
    let one = take(&gap(5, 5)).unwrap();
    assert_eq!(
        (one, one.to_string().as_str()),
        (
            LostRecords {
                first: 5,
                last: 5,
                records: 1,
                inputs: 1
            },
            "record 5 is lost"
        )
    );
    take(&record_strategy::queued(3, None));
    let two = take(&gap(8, 9)).unwrap();
    assert_eq!(
        two,
        LostRecords {
            first: 5,
            last: 9,
            records: 2,
            inputs: 3
        }
    );
    assert_eq!(two.to_string(), "2 of the records 5 to 9 are lost");
    assert_eq!(
        take(&record_strategy::recovered(0)),
        Some(two),
        "a recovery that knew nothing of it"
    );
    assert_eq!(take(&record_strategy::recovered(2)), None);
}

/// A state with one turn begun and a call open in it, behind a gap.
fn with_lost_records() -> SessionState {
    let mut state = SessionState::default();
    let call = CallId::new(1).unwrap();
    let gap = Gap {
        first: 5,
        last: 5,
        reason: None,
    };
    let begun = [
        record_strategy::surface(1).into(),
        TurnStarted { turn: 1 }.into(),
        record_strategy::asked(call),
        gap.into(),
    ];
    begun
        .iter()
        .for_each(|record| drop(state.apply(record).unwrap()));
    state
}

#[test]
fn a_turn_that_ends_or_begins_behind_a_loss_closes_its_calls() {
    for (record, open) in [
        (record_strategy::turn_finished(1), false),
        (TurnStarted { turn: 2 }.into(), true),
    ] {
        let mut state = with_lost_records();
        let items = state.apply(&record).unwrap();
        let lost = |item: &Item| matches!(item, Item::ToolResult { outcome, .. } if outcome.summary.starts_with("lost: "));
        assert!(items.len() == 1 && items.iter().all(lost), "{items:?}");
        assert_eq!(
            (state.open_calls.len(), state.turn_open),
            (0, open),
            "{record:?}"
        );
    }
}

#[test]
fn what_came_of_lost_calls_and_turns() {
    let mut state = with_lost_records();
    let stored = Stored {
        digest: Digest::of(b"x"),
        bytes: 1,
        gap: None,
        whole: None,
    };
    state
        .apply(&record_strategy::finished(
            CallId::new(7).unwrap(),
            Some(stored.into()),
        ))
        .unwrap();
    assert_eq!(
        state.outputs.len(),
        1,
        "the output of a call that is lost itself is there"
    );
    state
        .apply(&record_strategy::item(Item::Assistant {
            text: "of the first turn".to_owned(),
        }))
        .unwrap();
    state.apply(&record_strategy::turn_finished(1)).unwrap();
    state
        .apply(&record_strategy::note("of a turn whose beginning is lost"))
        .unwrap();
    assert_eq!((state.turns, state.last_answer.as_deref()), (2, None));
    // Numbers can be counted on, whatever a record says.
    state
        .apply(&record_strategy::request(u64::MAX, 1, 0))
        .unwrap();
    assert_eq!(state.requests, u64::MAX >> 1);
}

/// Registry and surface are counted apart: words that a later registry accepted say nothing of the surface.
#[test]
fn a_notification_behind_a_loss_leaves_the_surface_generation() {
    let mut state = with_lost_records();
    let before = state.surface_generation;
    let feature = "builtin:x".to_owned();
    let text = "words".to_owned();
    state
        .apply(
            &SystemItem::Notification {
                number: 1,
                feature,
                registry_generation: 7,
                text,
            }
            .into(),
        )
        .unwrap();
    assert_eq!((state.surface_generation, state.notified), (before, 1));
}

/// Where and when may have changed in what is lost: the model is told anew.
#[test]
fn the_environment_is_not_known_behind_a_loss() {
    let mut state = SessionState::default();
    let begun = [
        record_strategy::surface(1).into(),
        TurnStarted { turn: 1 }.into(),
        record_strategy::note("here"),
    ];
    begun
        .iter()
        .for_each(|record| drop(state.apply(record).unwrap()));
    assert_eq!(state.environment.as_deref(), Some("here"));
    state
        .apply(
            &Gap {
                first: 5,
                last: 5,
                reason: None,
            }
            .into(),
        )
        .unwrap();
    assert_eq!(state.environment, None);
}

#[test]
fn what_a_file_was_before_is_not_known_behind_a_loss() {
    for (lost, doubtful) in [("features", [true, true]), ("host_stopped", [false, true])] {
        let (mut pod, _) = told();
        let place = places(&pod.dir)
            .into_iter()
            .find(|(_, _, kind)| kind == lost)
            .unwrap();
        salvaged(&mut pod, &[&place]);
        let mut changes = Changes::default();
        for frame in Reader::open(&pod.dir).unwrap().frames() {
            let frame = frame.unwrap();
            changes.take(frame.seq, 0, &decode(&frame).unwrap());
        }
        assert_eq!(
            changes
                .files()
                .map(|file| file.doubtful)
                .collect::<Vec<_>>(),
            doubtful,
            "{lost}"
        );
        assert_eq!(changes.lost.len(), 1, "{lost}: {:?}", changes.lost);
    }
}
