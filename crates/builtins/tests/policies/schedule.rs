//! `schedule`: what the tools answer, when prompts come, and that each due time comes once.

use crate::rig::settings;
use builtins::policies;
use builtins::schedule::{DELIVERS, ID, MAX_PROMPTS, MAX_TEXT, NOTIFY, PROMPTS};
use llm_worker::ResultStatus;
use pod::control::{Activity, HostMode, NewInput, PodStatus};
use pod::feature::{FeatureModule, HostCapability};
use pod::record::{Record, TaskRunState};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use testkit::{
    FeatureHost, FeatureUnderTest, LiveEnd, LivePod, ManualClock, ModelScript, Over, PodUnderTest,
    ScriptedAnswer, Shared,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const HOUR_US: u64 = 3_600_000_000;

fn module(keys: Value, clock: &ManualClock) -> Arc<dyn FeatureModule> {
    let clock = clock.clone();
    let now: builtins::Now = Arc::new(move || UNIX_EPOCH + Duration::from_micros(clock.now()));
    let all = BTreeMap::from([(ID, settings(keys))]);
    policies::with_settings(&all, |id| *id == ID, &now)
        .unwrap()
        .remove(0)
}

fn host(keys: Value) -> FeatureUnderTest {
    let host = FeatureHost::new();
    let module = module(keys, &host.clock());
    host.install(Shared(module))
}

/// A pod that stays. It begins on Monday, 2026-09-21 14:13:20 UTC.
fn stays(keys: Value, answers: &[ScriptedAnswer]) -> PodUnderTest {
    let mut pod = PodUnderTest::new(
        &ambient::claim(),
        ModelScript::new(answers.to_vec()),
        Vec::new(),
    );
    pod.mode = HostMode::Stay { missing: None };
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::SESSION_STATE,
        NOTIFY,
        DELIVERS,
    ];
    pod.features = vec![(module(keys, &pod.clock), grants)];
    pod
}

fn live(pod: PodUnderTest) -> LivePod {
    LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.failure()))
}

/// The answers of a model that sets one prompt, and of the turns after that.
fn sets(prompt: Value) -> Vec<ScriptedAnswer> {
    let set = ScriptedAnswer::calls(&[("ScheduleCreate", &prompt.to_string())]);
    std::iter::once(set)
        .chain((0..9).map(|_| ScriptedAnswer::text("well")))
        .collect()
}

/// Lets the model work; `None` once the pod is dead.
fn goes(live: &LivePod) -> Option<()> {
    let client = live.client();
    live.ask(client.send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .ok()?;
    let is_done =
        |status: &PodStatus| status.turns == 1 && is_quiet(live, status) && runs(&live.pod) == 1;
    live.try_until(is_done).map(drop)
}

/// The texts that the model got or will get.
fn notices(pod: &PodUnderTest) -> Vec<String> {
    let text = |(_, record)| match record {
        Record::NotificationQueued(queued) => Some(queued.text),
        _ => None,
    };
    pod.records().into_iter().filter_map(text).collect()
}

/// Whether no turn runs and none is due.
fn is_quiet(live: &LivePod, status: &PodStatus) -> bool {
    status.activity == Activity::Idle
        && status.queued.is_empty()
        && live.folded(status.folded).notices.is_empty()
}

/// Waits until this many runs are over and their notices are delivered. Returns the notices.
fn delivered(live: &LivePod, many: usize) -> Vec<String> {
    live.until(|status| is_quiet(live, status) && runs(&live.pod) >= many);
    notices(&live.pod)
}

fn runs(pod: &PodUnderTest) -> usize {
    let ended = |(_, record): &(u64, Record)| matches!(record, Record::BackgroundTask(run) if run.state != TaskRunState::Running);
    pod.records().iter().filter(|record| ended(record)).count()
}

#[test]
fn prompts_are_set_listed_and_cancelled() {
    let configured = json!([{"name": "stand-up", "cron": "0 9 * * 1-5", "text": "What is next?"}]);
    let mut host = host(json!({"time_zone": "Europe/Berlin", "prompts": configured}));
    let table = [
        (
            "ScheduleCreate",
            json!({"text": "Look.", "in_minutes": 30}),
            "1 set, due 2026-09-21 16:43:20 +02:00",
        ),
        (
            "ScheduleCreate",
            json!({"text": "a\nb", "at": "2026-11-24 09:00"}),
            "2 set, due 2026-11-24 09:00:00 +01:00",
        ),
        (
            "ScheduleCreate",
            json!({"text": "Noon", "cron": "0 12 * * *", "time_zone": "UTC"}),
            "3 set, due 2026-09-22 12:00:00 +00:00",
        ),
        ("ScheduleCancel", json!({"id": 1}), "1 cancelled\nLook."),
        // The number of a prompt is not given again.
        (
            "ScheduleCreate",
            json!({"text": "x", "in_minutes": 1}),
            "4 set, due 2026-09-21 16:14:20 +02:00",
        ),
        ("ScheduleCancel", json!({"id": 4}), "4 cancelled\nx"),
        (
            "ScheduleCreate",
            json!({"text": "y", "in_minutes": 1}),
            "5 set, due 2026-09-21 16:14:20 +02:00",
        ),
        ("ScheduleCancel", json!({"id": 5}), "5 cancelled\ny"),
        (
            "ScheduleCreate",
            json!({"text": "z", "in_seconds": 2}),
            "6 set, due 2026-09-21 16:13:22 +02:00",
        ),
        ("ScheduleCancel", json!({"id": 6}), "6 cancelled\nz"),
    ];
    for (tool, arguments, expected) in table {
        let answer = host.call(tool, arguments.clone());
        assert_eq!(
            (answer.status, answer.text().as_ref()),
            (ResultStatus::Ok, expected),
            "{tool} {arguments}"
        );
    }
    host.restart();
    host.run_task("deliver").unwrap();
    let list = "3 prompts; now 2026-09-21 16:13:20 +02:00\n\
        stand-up (cron 0 9 * * 1-5 Europe/Berlin), due 2026-09-22 09:00:00 +02:00: What is next?\n\
        2 (once), due 2026-11-24 09:00:00 +01:00: a\n\
        3 (cron 0 12 * * * UTC), due 2026-09-22 12:00:00 +00:00: Noon";
    assert_eq!(host.call("ScheduleList", json!({})).text(), list);
    assert_eq!(host.notifications().len(), 0);
}

#[test]
fn what_cannot_be_set_is_refused_with_the_next_step() {
    let mut host = host(json!({}));
    let before = host.state(&PROMPTS);
    let cases = [
        ("ScheduleCreate", json!({"text": "x"}), "give one of"),
        (
            "ScheduleCreate",
            json!({"text": "x", "in_minutes": 1, "cron": "* * * * *"}),
            "give one of",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "in_minutes": 1, "in_seconds": 1}),
            "give one of",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "in_minutes": 0}),
            "expected 1 to",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "in_seconds": 0}),
            "`in_seconds` is 0; expected 1 to",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "in_seconds": 31_622_401}),
            "expected 1 to 31622400",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "at": "2026-09-21 14:13"}),
            "has passed; it is 2026-09-21 14:13:20",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "at": "soon"}),
            "`soon` is not a time",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "cron": "0 0 30 2 *"}),
            "no month",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x", "at": "2027-01-01", "time_zone": "Mars"}),
            "not a time zone",
        ),
        (
            "ScheduleCreate",
            json!({"text": "\n", "in_minutes": 1}),
            "the text is empty",
        ),
        (
            "ScheduleCreate",
            json!({"text": "x".repeat(MAX_TEXT + 1), "in_minutes": 1}),
            "at most 1000",
        ),
        (
            "ScheduleCancel",
            json!({"id": 1}),
            "no prompt 1 is set; the list",
        ),
    ];
    for (tool, arguments, why) in cases {
        let answer = host.call(tool, arguments.clone());
        assert!(
            answer.status == ResultStatus::Error && answer.text().contains(why),
            "{tool} {arguments}: {answer:?}"
        );
    }
    assert_eq!(host.state(&PROMPTS), before);
    // All that may be set fits the state.
    let widest = "\"".repeat(MAX_TEXT);
    for _ in 0..MAX_PROMPTS {
        let cron = format!(
            "0 9 {} * *",
            (1..=31)
                .map(|day| day.to_string())
                .collect::<Vec<_>>()
                .join(",")
        );
        let answer = host.call("ScheduleCreate", json!({"text": widest, "cron": cron}));
        assert_eq!(answer.status, ResultStatus::Ok, "{answer:?}");
    }
    let answer = host.call("ScheduleCreate", json!({"text": "x", "in_minutes": 1}));
    assert!(
        answer.text().contains("20 prompts are set; cancel one"),
        "{answer:?}"
    );
    let denied = FeatureHost::new().deny(DELIVERS);
    let module = module(json!({}), &denied.clock());
    let answer = denied
        .install(Shared(module))
        .call("ScheduleCreate", json!({"text": "x", "in_minutes": 1}));
    assert!(
        answer.text().contains("may not run background tasks"),
        "{answer:?}"
    );
}

// A prompt in two seconds came after a minute.
#[test]
fn a_prompt_in_seconds_comes_after_them() {
    for seconds in [1, 2, 90] {
        let live = live(stays(
            json!({}),
            &sets(json!({"text": "Look.", "in_seconds": seconds})),
        ));
        goes(&live).unwrap();
        live.advance(Duration::from_secs(seconds - 1));
        assert_eq!(
            live.ask(live.client().status()).unwrap().turns,
            1,
            "{seconds}"
        );
        live.advance(Duration::from_secs(1));
        assert_eq!(delivered(&live, 2).len(), 1, "{seconds}");
    }
}

#[test]
fn a_prompt_wakes_an_idle_pod_at_its_time_and_not_again() {
    let live = live(stays(
        json!({}),
        &sets(json!({"text": "Look.", "in_minutes": 30})),
    ));
    goes(&live).unwrap();
    live.advance(29 * MINUTE);
    assert_eq!(live.ask(live.client().status()).unwrap().turns, 1);
    live.advance(MINUTE);
    let expected = ["Scheduled prompt 1, due 2026-09-21 14:43:20 +00:00:\nLook."];
    assert_eq!(delivered(&live, 2), expected);
    live.advance(24 * HOUR);
    let over = live.close();
    assert_eq!(over.state().turns, 2);
    assert_eq!(
        (notices(&over.pod).len(), runs(&over.pod)),
        (1, 2),
        "the start and one due time"
    );
}

#[test]
fn times_that_were_missed_while_the_pod_was_down_come_once() {
    let prompt = json!({"text": "Stand up.", "cron": "0 9 * * *", "time_zone": "Europe/Berlin"});
    let configured = json!([{"name": "monthly", "cron": "0 0 1 * *", "text": "Count."}]);
    let first = live(stays(json!({"prompts": configured}), &sets(prompt)));
    goes(&first).unwrap();
    let pod = first.close().pod;
    pod.clock.advance(3 * 24 * HOUR_US);
    let again = live(pod);
    let late = "Scheduled prompt 1, due 2026-09-24 09:00:00 +02:00, now 2026-09-24 16:13:20 +02:00:\nStand up.";
    assert_eq!(delivered(&again, 2), [late]);
    again.advance(17 * HOUR);
    let all = delivered(&again, 3);
    assert!(
        all[1].starts_with("Scheduled prompt 1, due 2026-09-25 09:00:00 +02:00"),
        "{all:?}"
    );
    let pod = again.close().pod;
    pod.clock.advance(10 * 24 * HOUR_US);
    let all = delivered(&live(pod), 4);
    assert!(
        all[2].starts_with("Scheduled prompt monthly, due 2026-10-01 00:00:00 +00:00, now"),
        "{all:?}"
    );
    assert!(
        all[3].starts_with("Scheduled prompt 1, due 2026-10-05 09:00:00 +02:00"),
        "{all:?}"
    );
}

#[test]
fn a_clock_that_jumps_stops_no_prompt() {
    let live = live(stays(
        json!({}),
        &sets(json!({"text": "x", "cron": "0 * * * *"})),
    ));
    goes(&live).unwrap();
    live.advance(47 * MINUTE);
    let due = |many: usize, after: usize| {
        let all = delivered(&live, after);
        assert_eq!(all.len(), many, "{all:?}");
        all.last()
            .unwrap()
            .split_once("due ")
            .unwrap()
            .1
            .get(..16)
            .unwrap()
            .to_owned()
    };
    assert_eq!(due(1, 2), "2026-09-21 15:00");
    // It is 13:00 again; the pod looks at the clock within an hour.
    live.pod.clock.set_back(2 * HOUR_US);
    live.advance(HOUR);
    delivered(&live, 3);
    live.advance(HOUR);
    assert_eq!(due(2, 4), "2026-09-21 15:00");
    live.advance(HOUR);
    assert_eq!(due(3, 5), "2026-09-21 16:00");
    // Set forward, it is noticed with the next thing that the pod does.
    live.pod.clock.advance(10 * 24 * HOUR_US);
    live.ask(live.client().status());
    assert_eq!(due(4, 6), "2026-10-01 16:00");
    live.advance(HOUR);
    assert_eq!(due(5, 7), "2026-10-01 17:00");
}

/// A prompt that is set, comes, and ends its turn.
fn story(pod: PodUnderTest) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let passed = || {
        goes(&live)?;
        live.advance(31 * MINUTE);
        live.try_until(|status| status.turns == 2 && status.activity == Activity::Idle)
    };
    match passed() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_a_prompt_comes_once() {
    let answers = sets(json!({"text": "Look.", "in_minutes": 30}));
    let points = story(stays(json!({}), &answers)).pod.points.numbered();
    assert!(
        points
            .iter()
            .any(|(name, _)| name == "commit:notification_queued"),
        "{points:?}"
    );
    let mut set = 0;
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let pod = stays(json!({}), &answers);
        pod.points.kill(&name, nth);
        let Over { mut pod, end, .. } = story(pod);
        assert!(
            matches!(
                end,
                LiveEnd::Killed | LiveEnd::Ended(_) | LiveEnd::NotOpened(_)
            ),
            "{what}"
        );
        pod.revive();
        pod.script = ModelScript::new((0..9).map(|_| ScriptedAnswer::text("went on")));
        let state = |pod: &PodUnderTest| crate::rig::state(pod, &ID, PROMPTS.name());
        let live = live(pod);
        let is_started = || {
            live.pod
                .points
                .came()
                .iter()
                .any(|point| point == "task:ended")
        };
        live.until(|status| is_quiet(&live, status) && is_started());
        // Also what was written and not acknowledged before the kill.
        let is_set = state(&live.pod)["last"] == 1;
        live.advance(31 * MINUTE);
        if is_set {
            live.until(|status| is_quiet(&live, status) && state(&live.pod)["set"] == json!({}));
            set += 1;
        }
        let over = live.close();
        assert_eq!(over.failure(), None, "{what}");
        assert_eq!(notices(&over.pod).len(), usize::from(is_set), "{what}");
        assert!(
            !is_set || state(&over.pod)["set"] == json!({}),
            "{what}: {}",
            state(&over.pod)
        );
    }
    assert!(set > 10, "{set} kills after it was set");
}
