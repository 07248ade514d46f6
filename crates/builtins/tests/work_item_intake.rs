//! `builtin:work-item-intake` in a live pod: an item with the label of the pod begins one turn.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

use authority::{Access, Workspace};
use builtins::Now;
use builtins::policies::{self, Settings};
use builtins::work_item::{self, CHANGED};
use builtins::work_item_intake::{ID, Intake, NOTIFY};
use pod::control::{HostMode, NewInput};
use pod::feature::{HostCapability, HostServices};
use pod::record::{NotificationQueued, Record};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use testkit::{LivePod, ModelScript, PATIENCE, PodUnderTest, ScriptedAnswer};

const MINUTE: Duration = Duration::from_secs(60);

fn item(pod: &PodUnderTest, id: &str, labels: &str) {
    let dir = pod.project.join("work-items/open").join(id);
    fs::create_dir_all(&dir).unwrap();
    let front = format!(
        "---\nid: {id}\nslug: {}\ntitle: \"Item {id}\"\nstatus: open\nkind: task\npriority: normal\nlabels: [{labels}]\ncreated_at: \
         2026-01-31T12:00:00Z\nupdated_at: 2026-01-31T12:00:00Z\nassignee: \"\"\n---\n\nDo it.\n",
        id.splitn(3, '-').nth(2).unwrap()
    );
    fs::write(dir.join("item.md"), front).unwrap();
    fs::write(dir.join("thread.md"), "").unwrap();
}

fn pod(answers: Vec<ScriptedAnswer>) -> PodUnderTest {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    fs::create_dir_all(pod.project.join("work-items/open")).unwrap();
    let clock = pod.clock.clock();
    let now: Now = Arc::new(move || UNIX_EPOCH + Duration::from_micros(clock()));
    let none = |id: &pod::feature::FeatureId| (id.clone(), Settings::new());
    let settings = BTreeMap::from([none(&work_item::ID), none(&ID)]);
    let modules = policies::with_settings(&settings, |id| settings.contains_key(id), &now).unwrap();
    let any = vec![
        HostCapability::tool("*"),
        HostCapability::ANY_BACKGROUND_TASK,
        HostCapability::SESSION_STATE,
        HostCapability::WorkItemStore {
            read: true,
            write: true,
        },
        work_item::WRITE,
        work_item::PROVIDE,
        work_item::PROVIDE_TRACKER,
        work_item::ENRICH,
        NOTIFY,
    ];
    pod.features = modules
        .into_iter()
        .map(|module| (module, any.clone()))
        .collect();
    let root = pod.project.join("work-items");
    pod.offer = Arc::new(move |services: HostServices| {
        services.root(
            work_item::ROOT,
            Workspace::open(&ambient::claim(), &root, &root, Access::ReadWrite).unwrap(),
        )
    });
    pod
}

fn open(pod: PodUnderTest) -> LivePod {
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
    live.until(|status| live.folded(status.folded).hosted);
    live
}

fn notices(pod: &PodUnderTest) -> Vec<NotificationQueued> {
    let notice = |(_, record)| match record {
        Record::NotificationQueued(notice) => Some(notice),
        _ => None,
    };
    pod.records().into_iter().filter_map(notice).collect()
}

/// Waits until no run is under way and at least one has ended.
fn quiet(live: &LivePod) {
    let began = Instant::now();
    loop {
        let came = live.pod.points.came();
        let [running, ended] =
            ["task:running", "task:ended"].map(|point| came.iter().filter(|c| *c == point).count());
        if ended > 0 && running == ended {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{came:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Lets minutes pass, and what is due in them run.
fn minutes(live: &LivePod, count: usize) {
    for _ in 0..count {
        live.advance(MINUTE);
        std::thread::sleep(Duration::from_millis(2));
        quiet(live);
    }
}

/// Lets time pass until so many turns have ended.
fn turns(live: &LivePod, count: u64) {
    let began = Instant::now();
    while live.settled().turns < count {
        assert!(began.elapsed() < PATIENCE, "no turn {count}");
        minutes(live, 1);
    }
    assert_eq!(live.settled().turns, count);
}

#[test]
fn each_labelled_item_begins_one_turn() {
    let pod = pod((0..9)
        .map(|n| ScriptedAnswer::text(&format!("answer {n}")))
        .collect());
    item(&pod, "20260131-120000-one", "pod:session");
    item(&pod, "20260131-120001-other", "pod:other");
    item(&pod, "20260131-120002-two", "a, pod:session");
    let live = open(pod);
    turns(&live, 2);
    minutes(&live, 60);
    assert_eq!(live.settled().turns, 2, "each once");
    let over = live.close();
    let mut sent = notices(&over.pod);
    sent.sort_by(|a, b| a.key.cmp(&b.key));
    let keys: Vec<_> = sent
        .iter()
        .map(|notice| notice.key.as_deref().unwrap())
        .collect();
    assert_eq!(
        keys,
        ["item 20260131-120000-one", "item 20260131-120002-two"]
    );
    assert!(
        sent[0].wake
            && sent[0].text.contains("\"Item 20260131-120000-one\"")
            && sent[0].text.contains("WorkItemShow")
    );
    // Neither after a restart, nor when the state is behind the notice.
    let again = open(over.pod);
    minutes(&again, 30);
    assert_eq!(again.settled().turns, 2);
    item(&again.pod, "20260131-120003-three", "pod:session");
    turns(&again, 3);
    drop(again.close());
}

#[test]
fn a_held_pod_takes_its_item_once_it_goes_on() {
    let pod = pod(vec![ScriptedAnswer::text("done")]);
    let live = open(pod);
    live.ask(live.client().pause(None)).unwrap();
    // The look at the start may have begun before the pause.
    quiet(&live);
    item(&live.pod, "20260131-120000-one", "pod:session");
    minutes(&live, 30);
    assert_eq!(notices(&live.pod).len(), 0);
    live.ask(live.client().resume(None)).unwrap();
    turns(&live, 1);
    drop(live.close());
}

#[test]
fn an_item_that_a_turn_creates_is_taken_soon_after_it() {
    let create =
        json!({"title": "Next", "body": "Do more.", "labels": ["pod:session"]}).to_string();
    let answers = vec![
        ScriptedAnswer::calls(&[("WorkItemCreate", create.as_str())]),
        ScriptedAnswer::text("created"),
        ScriptedAnswer::text("done"),
    ];
    let pod = pod(answers);
    let live = open(pod);
    // The schedule is not due before 10 minutes.
    live.advance(MINUTE);
    let input = NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    };
    live.ask(async {
        live.client()
            .send(input)
            .await
            .unwrap()
            .end()
            .await
            .unwrap()
    });
    // The news of the new file comes in real time, on a busy machine behind some of these minutes.
    for look in 0..8 {
        if live.settled().turns == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20 << look));
        minutes(&live, 1);
    }
    assert_eq!(live.settled().turns, 2);
    drop(live.close());
}

#[test]
fn the_schedule_is_bounded() {
    let now: Now = Arc::new(|| UNIX_EPOCH);
    let every = |every_minutes| builtins::work_item_intake::Settings {
        every_minutes,
        label: None,
    };
    for (minutes, fits) in [(4, false), (5, true), (1440, true), (1441, false)] {
        assert_eq!(
            Intake::new(every(minutes), Arc::clone(&now)).is_ok(),
            fits,
            "{minutes}"
        );
    }
    assert!(format!("{CHANGED:?}").contains("changed"));
}
