//! `task`: the list, its bounds, and the reminder: when it comes, what it says, and that it comes once.

use crate::rig::{Call, play, same, turn, with};
use authority::{Redactor, Secret};
use builtins::phase_recorder::PhaseRecorder;
use builtins::task::{AGAIN, ID, MAX_DETAIL, MAX_TASKS, MAX_TITLE, NOTIFY, QUIET, TASKS, TaskList};
use llm_worker::ResultStatus;
use pod::feature::FeatureModule;
use pod::record::{Record, SystemItem};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{FeatureHost, FeatureUnderTest, PodUnderTest, killed_anywhere};

const LOOK: Call = ("Look", "{}");

fn host() -> FeatureUnderTest {
    FeatureHost::new().install(TaskList)
}

#[test]
fn one_line_says_what_became_of_it() {
    let mut host = host();
    let table = [
        ("TaskCreate", json!({"title": "Read"}), "1 created: Read"),
        (
            "TaskCreate",
            json!({"title": "Mend", "detail": "the parser\nfirst"}),
            "2 created: Mend",
        ),
        (
            "TaskCreate",
            json!({"title": "Mend"}),
            "2 is there already, open: Mend",
        ),
        (
            "TaskUpdate",
            json!({"id": 1, "status": "active"}),
            "1 active: Read (2 unfinished)",
        ),
        (
            "TaskList",
            json!({}),
            "2 of 2 tasks unfinished\n1 active: Read\n2 open: Mend",
        ),
        (
            "TaskUpdate",
            json!({"id": 1, "status": "done", "title": "Read it"}),
            "1 done: Read it (1 unfinished)",
        ),
        (
            "TaskList",
            json!({}),
            "1 of 2 tasks unfinished\n2 open: Mend",
        ),
        (
            "TaskList",
            json!({"all": true}),
            "1 of 2 tasks unfinished\n1 done: Read it\n2 open: Mend",
        ),
        (
            "TaskGet",
            json!({"id": 2}),
            "2 open: Mend\nthe parser\nfirst",
        ),
    ];
    for (tool, arguments, expected) in table {
        let said = host.call(tool, arguments.clone());
        assert_eq!(
            (said.status, said.text().as_ref()),
            (ResultStatus::Ok, expected),
            "{tool} {arguments}"
        );
    }
    host.restart();
    assert_eq!(
        host.call("TaskGet", json!({"id": 1})).text(),
        "1 done: Read it"
    );
    assert_eq!(
        host.call("TaskCreate", json!({"title": "Read it"})).text(),
        "3 created: Read it"
    );
}

#[test]
fn errors_say_the_next_step_and_change_nothing() {
    let mut host = host();
    host.call("TaskCreate", json!({"title": "Read"}));
    let before = host.state(&TASKS);
    let cases = [
        ("TaskGet", json!({"id": 7}), "TaskList lists the tasks"),
        (
            "TaskUpdate",
            json!({"id": 7, "status": "done"}),
            "TaskList lists the tasks",
        ),
        (
            "TaskUpdate",
            json!({"id": 1}),
            "give a status, a title or a detail",
        ),
        (
            "TaskUpdate",
            json!({"id": 1, "status": "finished"}),
            "dropped",
        ),
        (
            "TaskUpdate",
            json!({"id": 1, "title": "a\nb"}),
            "line break",
        ),
        ("TaskCreate", json!({"title": ""}), "the title is empty"),
        (
            "TaskCreate",
            json!({"title": "x".repeat(MAX_TITLE + 1)}),
            "at most 120",
        ),
        (
            "TaskCreate",
            json!({"title": "x", "detail": "x".repeat(MAX_DETAIL + 1)}),
            "at most 300",
        ),
    ];
    for (tool, arguments, why) in cases {
        let said = host.call(tool, arguments.clone());
        assert!(
            said.status == ResultStatus::Error && said.text().contains(why),
            "{tool} {arguments}: {said:?}"
        );
    }
    let after = host.state(&TASKS);
    assert!(before.all().eq(after.all()), "{after:?}");
}

/// A title of this number, as long as a title may be and twice as long as JSON.
fn title(n: usize) -> String {
    format!("{n:03}{}", "\"".repeat(MAX_TITLE - 3))
}

#[test]
fn finished_tasks_make_room_and_a_full_list_says_so() {
    let mut host = host();
    let create = |host: &mut FeatureUnderTest, n| {
        host.call(
            "TaskCreate",
            json!({"title": title(n), "detail": "\n".repeat(MAX_DETAIL)}),
        )
    };
    for n in 1..=MAX_TASKS {
        assert_eq!(create(&mut host, n).status, ResultStatus::Ok, "{n}");
    }
    let full = create(&mut host, 65);
    assert!(
        full.status == ResultStatus::Error
            && full.text().contains("done or dropped with TaskUpdate"),
        "{full:?}"
    );
    host.call("TaskUpdate", json!({"id": 5, "status": "dropped"}));
    host.call("TaskUpdate", json!({"id": 9, "status": "done"}));
    assert_eq!(create(&mut host, 65).status, ResultStatus::Ok);
    let kept: Vec<u32> = host.state(&TASKS).all().map(|(id, _)| id).collect();
    assert!(
        kept.len() == MAX_TASKS && !kept.contains(&5) && kept.contains(&9) && kept.contains(&65),
        "{kept:?}"
    );
}

#[test]
fn without_the_notify_grant_only_the_reminder_is_missing() {
    let mut host = FeatureHost::new().deny(NOTIFY).install(TaskList);
    assert!(host.report().installed_hooks.is_empty());
    assert_eq!(
        host.call("TaskCreate", json!({"title": "Read"})).text(),
        "1 created: Read"
    );
}

fn pod() -> PodUnderTest {
    with(Arc::new(TaskList), vec![same("Look")])
}

/// One step that creates tasks, then this many that look at something else.
fn work(tasks: usize, looks: u64) -> Vec<Vec<(String, String)>> {
    let created = (1..=tasks)
        .map(|n| {
            (
                "TaskCreate".to_owned(),
                json!({ "title": title(n) }).to_string(),
            )
        })
        .collect();
    let look = || vec![("Look".to_owned(), "{}".to_owned())];
    std::iter::once(created)
        .chain((0..looks).map(|_| look()))
        .collect()
}

fn played(pod: &PodUnderTest, work: &[Vec<(String, String)>]) {
    for calls in work {
        let calls: Vec<(&str, &str)> = calls
            .iter()
            .map(|(tool, arguments)| (tool.as_str(), arguments.as_str()))
            .collect();
        pod.script.add(testkit::ScriptedAnswer::calls(&calls));
    }
    play(pod, &[]).end();
}

/// The requests that brought a reminder first, counted from 1, with its words.
fn reminders(pod: &PodUnderTest) -> Vec<(u64, String)> {
    let mut request = 0;
    let mut reminders = Vec::new();
    for (_, record) in pod.records() {
        match record {
            Record::Request(sent) => request = sent.number,
            Record::SystemItem(SystemItem::Notification { feature, text, .. })
                if feature == ID.to_string() =>
            {
                reminders.push((request + 1, text));
            }
            _ => {}
        }
    }
    reminders
}

#[test]
fn the_reminder_comes_when_tasks_are_stale_and_names_them() {
    let pod = pod();
    played(&pod, &work(2, 2 * AGAIN));
    let (first, words) = reminders(&pod)[0].clone();
    let said = format!("untouched for {QUIET} requests");
    // Calls of one answer run together: which task is the first is a matter of time.
    let named = [1, 2]
        .iter()
        .all(|n| words.contains(&format!(" open: {}", title(*n))));
    assert!(words.contains(&said) && named, "{words}");
    let times: Vec<u64> = reminders(&pod)
        .iter()
        .map(|(request, _)| *request)
        .collect();
    // The list was changed after the first request.
    assert_eq!(
        (first, times),
        (1 + QUIET, vec![1 + QUIET, 1 + QUIET + AGAIN])
    );
}

#[test]
fn a_list_that_is_finished_or_looked_after_needs_no_reminder() {
    let pod = pod();
    let update = |status: &str| {
        vec![(
            "TaskUpdate".to_owned(),
            json!({"id": 1, "status": status}).to_string(),
        )]
    };
    let mut steps = work(1, QUIET - 2);
    steps.push(update("active"));
    steps.extend(work(0, QUIET - 2).split_off(1));
    steps.push(update("done"));
    steps.extend(work(0, 2 * QUIET).split_off(1));
    played(&pod, &steps);
    assert_eq!(reminders(&pod), []);
}

#[test]
fn the_longest_list_fits_its_reminder() {
    let mut host = FeatureHost::new().tool(same("Look")).install(TaskList);
    for n in 1..=MAX_TASKS {
        host.call(
            "TaskCreate",
            json!({"title": "ü".repeat(MAX_TITLE / 2 - 2) + &n.to_string()}),
        );
    }
    for _ in 0..QUIET {
        host.call("Look", Value::Object(Default::default()));
    }
    let told = host.notifications();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].delivered && told[0].text.ends_with("and 58 more"),
        "{told:?}"
    );
}

// Killed anywhere around the reminder, it comes exactly once: the mark and the words are one commit.
#[test]
fn killed_anywhere_the_reminder_comes_once() {
    let whole = pod();
    played(&whole, &work(1, QUIET));
    let points = whole.points.numbered();
    let near = points
        .iter()
        .position(|(name, nth)| name == "commit:request" && *nth as u64 == QUIET - 2)
        .unwrap();
    assert_eq!(reminders(&whole).len(), 1);
    for (name, nth) in &points[near..] {
        let pod = pod();
        pod.points.kill(name, *nth);
        for calls in work(1, QUIET) {
            let calls: Vec<(&str, &str)> = calls
                .iter()
                .map(|(tool, args)| (tool.as_str(), args.as_str()))
                .collect();
            pod.script.add(testkit::ScriptedAnswer::calls(&calls));
        }
        drop(play(&pod, &[]));
        pod.revive();
        pod.script.clear();
        drop(play(&pod, &[&[LOOK], &[LOOK], &[LOOK], &[LOOK]]));
        assert_eq!(reminders(&pod).len(), 1, "{name} {nth}");
        assert!(pod.state().notices.is_empty(), "{name} {nth}");
    }
}

#[test]
fn killed_anywhere_a_task_that_was_created_is_there() {
    let kills = killed_anywhere(
        host,
        |host| {
            host.call("TaskCreate", json!({"title": "one"}));
            host.call("TaskUpdate", json!({"id": 1, "status": "done"}));
        },
        |host, at| {
            let done = |(_, record): &(u64, Record)| matches!(record, Record::ToolFinished(ended) if ended.outcome.status == ResultStatus::Ok);
            let promised = host.records().iter().filter(|record| done(record)).count();
            let tasks = host.state(&TASKS);
            let all = tasks.all().count();
            let unfinished = tasks.unfinished().count();
            assert!(
                all + (all - unfinished) >= promised,
                "{at}: {promised} {tasks:?}"
            );
            let said = host.calls(&[("TaskList", "{}")]).pop().unwrap();
            assert!(
                said.text()
                    .starts_with(&format!("{unfinished} of {all} tasks")),
                "{at}: {said:?}"
            );
        },
    );
    assert!(kills > 10);
}

// The log refuses a state with a secret in it; then nothing is promised.
#[test]
fn what_was_not_kept_is_not_said_to_be() {
    let lists: [(Arc<dyn FeatureModule>, Call); 2] = [
        (
            Arc::new(TaskList),
            ("TaskCreate", r#"{"title":"canary-7c1f"}"#),
        ),
        (
            Arc::new(PhaseRecorder),
            ("record_phase", r#"{"name":"canary-7c1f","status":"done"}"#),
        ),
    ];
    for (list, call) in lists {
        let mut pod = with(list, Vec::new());
        pod.redactor = Redactor::new([&Secret::new(
            &ambient::claim(),
            "bird",
            "canary-7c1f".to_owned(),
        )])
        .unwrap();
        let ended = turn(&pod, &[call]);
        assert!(
            ended[0].0 == ResultStatus::Error && ended[0].1.contains("bird"),
            "{ended:?}"
        );
        assert!(pod.state().features.is_empty());
    }
}
