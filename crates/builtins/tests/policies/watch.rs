//! `watch`: what the model is told of changed files, when, and that its own changes are not among it.

use crate::rig::settings;
use builtins::files::FilesFeature;
use builtins::policies;
use builtins::watch::{ID, LOOKS, NOTIFY};
use pod::control::{Activity, HostMode, NewInput, PodStatus};
use pod::feature::HostCapability;
use pod::hook::{Event, PreRequest};
use pod::record::{Record, SystemItem};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use testkit::{LivePod, ModelScript, PATIENCE, PodUnderTest, ScriptedAnswer};

const TICK: Duration = Duration::from_millis(500);
const HEAD: &str = "Files of the project changed since your last step, not by your file tools:";

fn stays(keys: Value, answers: Vec<ScriptedAnswer>) -> LivePod {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let now: builtins::Now = Arc::new(|| UNIX_EPOCH);
    let watch = policies::with_settings(
        &BTreeMap::from([(ID, settings(keys))]),
        |id| *id == ID,
        &now,
    )
    .unwrap()
    .remove(0);
    let hooks = [
        HostCapability::hook::<PreRequest>(),
        HostCapability::hook::<Event>(),
    ];
    let held = [HostCapability::READ_WORKSPACE, NOTIFY, LOOKS]
        .into_iter()
        .chain(hooks)
        .collect();
    let files = vec![HostCapability::tool("*"), HostCapability::WRITE_WORKSPACE];
    pod.features = vec![
        (watch, held),
        (Arc::new(FilesFeature(|_| String::new())), files),
    ];
    LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.failure()))
}

fn runs(live: &LivePod) -> usize {
    live.pod
        .records()
        .iter()
        .filter(|(_, record)| matches!(record, Record::BackgroundTask(_)))
        .count()
}

/// Lets time pass until one more run of the watch has ended, for a change that is made again and again until then.
fn noticed(live: &LivePod, change: impl Fn()) {
    let before = runs(live);
    let began = Instant::now();
    let mut passes = 0;
    while runs(live) == before {
        assert!(began.elapsed() < PATIENCE, "no change is noticed");
        // Only the first one while the watch begins may be missed.
        if passes % 10 == 0 {
            change();
        }
        passes += 1;
        live.advance(TICK);
        std::thread::sleep(Duration::from_millis(10));
    }
    settle(live);
}

/// What the last changes made is over, too.
fn settle(live: &LivePod) {
    for _ in 0..6 {
        live.advance(TICK);
        std::thread::sleep(Duration::from_millis(10));
    }
    live.until(|status| is_quiet(live, status));
}

fn is_quiet(live: &LivePod, status: &PodStatus) -> bool {
    status.activity == Activity::Idle
        && status.queued.is_empty()
        && live.folded(status.folded).notices.is_empty()
}

fn turn(live: &LivePod) {
    let turns = live.ask(live.client().status()).unwrap().turns;
    live.ask(live.client().send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    live.until(|status| status.turns > turns && is_quiet(live, status));
}

/// What the model was told so far.
fn told(live: &LivePod) -> Vec<String> {
    let text = |(_, record)| match record {
        Record::SystemItem(SystemItem::Notification { text, .. }) => Some(text),
        _ => None,
    };
    live.pod.records().into_iter().filter_map(text).collect()
}

#[test]
fn a_change_is_told_once_with_the_next_step() {
    let live = stays(
        json!({}),
        (0..9).map(|_| ScriptedAnswer::text("well")).collect(),
    );
    let file = live.pod.project.join("a");
    noticed(&live, || std::fs::write(&file, "").unwrap());
    assert_eq!(
        live.ask(live.client().status()).unwrap().turns,
        0,
        "it does not wake"
    );
    turn(&live);
    let expected = format!("{HEAD}\n- a");
    assert!(told(&live)[0].ends_with(&expected), "{:?}", told(&live));
    turn(&live);
    assert_eq!(told(&live).len(), 1);
    assert_eq!(live.close().failure(), None);
}

#[test]
fn with_wake_a_change_starts_a_turn() {
    let live = stays(
        json!({"wake": true}),
        (0..9).map(|_| ScriptedAnswer::text("well")).collect(),
    );
    let file = live.pod.project.join("a");
    noticed(&live, || std::fs::write(&file, "").unwrap());
    assert!(live.ask(live.client().status()).unwrap().turns > 0);
    assert!(
        told(&live)
            .iter()
            .all(|text| text.ends_with(&format!("{HEAD}\n- a"))),
        "{:?}",
        told(&live)
    );
    assert_eq!(live.close().failure(), None);
}

#[test]
fn what_its_own_tools_wrote_is_not_told_until_another_changes_it() {
    let write = |text: &str| {
        ScriptedAnswer::calls(&[(
            "Write",
            &json!({"path": "own", "content": text}).to_string(),
        )])
    };
    let well = || ScriptedAnswer::text("well");
    let live = stays(
        json!({}),
        vec![well(), write("mine\n"), well(), well(), well()],
    );
    let file = |name: &str| live.pod.project.join(name);
    noticed(&live, || std::fs::write(file("begin"), "").unwrap());
    turn(&live);
    let before = (told(&live).len(), runs(&live));
    turn(&live);
    settle(&live);
    assert!(runs(&live) > before.1, "its change was noticed");
    turn(&live);
    assert_eq!(told(&live).len(), before.0, "{:?}", told(&live));
    noticed(&live, || std::fs::write(file("own"), "not mine\n").unwrap());
    turn(&live);
    assert!(
        told(&live)
            .last()
            .unwrap()
            .ends_with(&format!("{HEAD}\n- own")),
        "{:?}",
        told(&live)
    );
    assert_eq!(live.close().failure(), None);
}
