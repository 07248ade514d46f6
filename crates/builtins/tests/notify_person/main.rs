//! `builtin:notify-person` in a live pod: when a message is sent, how often, and what is kept of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

mod rig;

use builtins::notify_person::{
    AttemptLimits, BodyFormat, DeliveryState, NotifyPerson, Settings, WaitKind,
};
use pod::record::{Record, TaskRunState};
use rig::{Server, TOKEN, begins, deliveries, heard, open, pass, passes, pod, settings, turn};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use testkit::{
    ENOSPC, Fault, LiveEnd, LivePod, ModelScript, Over, PATIENCE, PodUnderTest, ScriptedAnswer,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// All bytes below a directory, as text.
fn everything(dir: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.push_str(&everything(&entry.path())),
            false => all.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap())),
        }
    }
    all
}

#[test]
fn a_webhook_that_fails_once_is_called_again_and_its_url_is_kept_secret() {
    let server = Server::answering(&[500, 200]);
    let live = open(pod(settings(None), AttemptLimits::USUAL, Some(&server)));
    // The run at the start is over.
    live.run_due();
    turn(&live);
    heard(&live);
    for _ in 0..5 {
        live.advance(Duration::from_secs(10));
    }
    assert_eq!(server.requests().len(), 0, "before the delay");
    let failed = passes(&live, 0, DeliveryState::Waiting);
    assert!(
        failed.attempts == 1 && failed.reason.as_ref().unwrap().contains("answered 500"),
        "{failed:?}"
    );
    let sent = passes(&live, 0, DeliveryState::Sent);
    assert_eq!(
        (sent.attempts, sent.key.turn, sent.key.kind),
        (2, 1, WaitKind::Idle)
    );
    live.advance(HOUR);
    turn(&live);
    heard(&live);
    passes(&live, 1, DeliveryState::Sent);
    assert_eq!(
        server.keys(0),
        ["session-1-idle", "session-1-idle", "session-2-idle"]
    );
    let body = server.requests()[1]
        .split_once("\r\n\r\n")
        .unwrap()
        .1
        .to_owned();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        body["text"],
        "pod session is idle after turn 1; attach with `yoi attach session`"
    );
    assert_eq!((&body["state"], body.get("answer")), (&"idle".into(), None));
    let report = live.client().features().to_json().unwrap();
    let over = live.close();
    let ends: Vec<TaskRunState> = over
        .pod
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            Record::BackgroundTask(run) if run.state != TaskRunState::Running => Some(run.state),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends.iter()
            .filter(|state| **state == TaskRunState::Failed)
            .count(),
        1,
        "{ends:?}"
    );
    let written = everything(over.pod.root());
    assert!(written.contains("idle after turn 1: sent"), "a note");
    for (place, text) in [
        ("files", written),
        ("report", report),
        ("events", format!("{:?}", over.events)),
    ] {
        assert!(!text.contains(TOKEN), "the secret is in the {place}");
    }
}

#[test]
fn a_driver_who_is_or_was_attached_needs_no_message() {
    let server = Server::answering(&[200]);
    let live = open(pod(settings(None), AttemptLimits::USUAL, Some(&server)));
    let driver = live.client().driver();
    turn(&live);
    heard(&live);
    let suppressed = passes(&live, 0, DeliveryState::Suppressed);
    assert_eq!(
        suppressed.reason.as_deref(),
        Some("a client was attached that can send inputs")
    );
    drop(driver);
    live.advance(HOUR);
    turn(&live);
    heard(&live);
    // Attached and gone within the delay.
    live.advance(Duration::from_secs(30));
    drop(live.client().driver());
    passes(&live, 1, DeliveryState::Suppressed);
    live.advance(HOUR);
    turn(&live);
    heard(&live);
    passes(&live, 2, DeliveryState::Sent);
    drop(live.close());
    assert_eq!(server.keys(0), ["session-3-idle"]);
}

#[test]
fn a_command_is_run_for_a_hold_and_not_for_a_pause_of_a_person() {
    let mut pod = pod(
        settings(Some("printf '%s\\n' \"$0\" >> told.txt")),
        AttemptLimits::USUAL,
        None,
    );
    pod.limits.max_steps = 1;
    pod.script = ModelScript::new([
        ScriptedAnswer::calls(&[("Echo", "{}")]),
        ScriptedAnswer::text("done"),
    ]);
    let told = pod.project.join("told.txt");
    let live = open(pod);
    turn(&live);
    heard(&live);
    let sent = passes(&live, 0, DeliveryState::Sent);
    assert_eq!(sent.key.kind, WaitKind::Held);
    let text = fs::read_to_string(&told).unwrap();
    assert!(
        text.starts_with("pod session is held: ")
            && text.ends_with("; attach with `yoi attach session`\n"),
        "{text}"
    );
    live.ask(live.client().resume(None)).unwrap();
    live.ask(live.client().pause(None)).unwrap();
    let suppressed = passes(&live, 1, DeliveryState::Suppressed);
    assert_eq!(
        (suppressed.key.kind, suppressed.reason.as_deref()),
        (WaitKind::Held, Some("a person did it"))
    );
    assert_eq!(fs::read_to_string(&told).unwrap(), text);
    drop(live.close());
}

// A command got the text alone, whatever `format` said.
#[test]
fn a_command_gets_the_format_of_the_settings() {
    for (format, is_json) in [
        (None, false),
        (Some(BodyFormat::Text), false),
        (Some(BodyFormat::Json), true),
    ] {
        let command = settings(Some("printf '%s' \"$0\" > told.txt"));
        let pod = pod(Settings { format, ..command }, AttemptLimits::USUAL, None);
        let told = pod.project.join("told.txt");
        let live = open(pod);
        turn(&live);
        passes(&live, 0, DeliveryState::Sent);
        let told = fs::read_to_string(&told).unwrap();
        let text = "pod session is idle after turn 1; attach with `yoi attach session`";
        let json: Option<serde_json::Value> = serde_json::from_str(&told).ok();
        let parts = json.map(|json| {
            (
                json["text"].clone(),
                json["state"].clone(),
                json["turn"].clone(),
            )
        });
        assert_eq!(
            parts,
            is_json.then(|| (text.into(), "idle".into(), 1.into())),
            "{told}"
        );
        assert!(is_json || told == text, "{told}");
        drop(live.close());
    }
}

// A run whose state could not be stored ended without a look to come, and an idle pod has no later cause for one.
#[test]
fn a_disk_that_refuses_costs_no_message() {
    // The records of the attempt, and those of its end.
    for point in ["task:running", "sent"] {
        let script = if point == "sent" {
            "echo \"$0\" >> told.txt; while ! [ -e full ]; do sleep 0.01; done"
        } else {
            "echo \"$0\" >> told.txt"
        };
        let live = open(pod(settings(Some(script)), AttemptLimits::USUAL, None));
        let disk = live.pod.disk.clone();
        let full = move || disk.fail_at(0, Fault::Ever(ENOSPC));
        turn(&live);
        heard(&live);
        let told = live.pod.project.join("told.txt");
        if point == "task:running" {
            let came = live
                .pod
                .points
                .came()
                .iter()
                .filter(|came| *came == point)
                .count();
            live.pod.points.at(point, came, full);
        } else {
            begins(&live, &told);
            full();
            fs::write(live.pod.project.join("full"), "").unwrap();
        }
        let began = Instant::now();
        while live.ask(live.client().status()).unwrap().disk.is_none() {
            assert!(began.elapsed() < PATIENCE, "{point}: nothing was refused");
            if point == "task:running" {
                live.advance(Duration::from_secs(1));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        live.pod.disk.repair();
        let sent = passes(&live, 0, DeliveryState::Sent);
        assert_eq!(sent.attempts, 1, "{point}");
        assert_eq!(
            fs::read_to_string(&told).unwrap().lines().count(),
            1,
            "{point}"
        );
        drop(live.close());
    }
}

#[test]
fn a_command_that_fails_is_given_up_after_five_attempts() {
    let live = open(pod(settings(Some("exit 3")), AttemptLimits::USUAL, None));
    turn(&live);
    heard(&live);
    let given_up = passes(&live, 0, DeliveryState::GivenUp);
    assert_eq!(given_up.attempts, 5);
    assert_eq!(
        given_up.reason.as_deref(),
        Some("the command ended with exit status 3")
    );
    live.advance(HOUR);
    let over = live.close();
    let note = |(_, record): &(u64, Record)| matches!(record, Record::FeatureNote(note) if note.text.contains("given up after 5 attempts"));
    assert_eq!(
        over.pod
            .records()
            .iter()
            .filter(|record| note(record))
            .count(),
        1
    );
}

#[test]
fn a_command_that_hangs_is_stopped_and_costs_no_turn() {
    let waits = AttemptLimits {
        command: Duration::from_secs(5),
        ..AttemptLimits::USUAL
    };
    let live = open(pod(
        settings(Some("echo started >> told.txt; exec sleep 1000")),
        waits,
        None,
    ));
    turn(&live);
    let told = live.pod.project.join("told.txt");
    let status = || live.ask(live.client().status()).unwrap();
    begins(&live, &told);
    turn(&live);
    // Its deadline by the clock of the pod, which stands still between these steps.
    let failed = || {
        deliveries(&live, status().folded)
            .events
            .front()
            .is_some_and(|first| first.reason.is_some())
    };
    let began = Instant::now();
    while !failed() {
        assert!(began.elapsed() < PATIENCE, "the command was not stopped");
        live.advance(Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(50));
    }
    let first = deliveries(&live, status().folded).events[0].clone();
    assert!(
        matches!(
            first.state,
            DeliveryState::Waiting | DeliveryState::Suppressed
        ),
        "{first:?}"
    );
    assert_eq!(live.close().state().turns, 2);
}

#[test]
fn an_hour_has_few_messages_and_the_next_one_comes_later() {
    let server = Server::answering(&[200]);
    let limited = Settings {
        max_per_hour: 2,
        ..settings(None)
    };
    let live = open(pod(limited, AttemptLimits::USUAL, Some(&server)));
    for nth in 0..2 {
        turn(&live);
        passes(&live, nth, DeliveryState::Sent);
    }
    turn(&live);
    heard(&live);
    let waiting = passes(&live, 2, DeliveryState::Waiting);
    assert!(
        waiting.reason.as_ref().unwrap().contains("limit"),
        "{waiting:?}"
    );
    passes(&live, 2, DeliveryState::Sent);
    drop(live.close());
    assert_eq!(
        server.keys(0),
        ["session-1-idle", "session-2-idle", "session-3-idle"]
    );
}

#[test]
fn an_answer_is_in_the_message_only_if_it_is_configured() {
    let told = |include_answer| {
        let settings = Settings {
            include_answer,
            ..settings(Some("printf '%s' \"$0\" > told.txt"))
        };
        let live = open(pod(settings, AttemptLimits::USUAL, None));
        turn(&live);
        passes(&live, 0, DeliveryState::Sent);
        let text = fs::read_to_string(live.pod.project.join("told.txt")).unwrap();
        drop(live.close());
        text
    };
    let without = told(false);
    assert_eq!(
        without,
        "pod session is idle after turn 1; attach with `yoi attach session`"
    );
    assert_eq!(told(true), format!("{without}\n\nanswer 0"));
}

/// One turn, and time until its message is sent. Returns what is left if the pod was killed.
fn story(pod: PodUnderTest) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let told = || {
        live.try_until(|status| live.folded(status.folded).hosted)?;
        let input = pod::control::NewInput {
            text: "go".to_owned(),
            ..pod::control::NewInput::default()
        };
        live.ask(async { live.client().send(input).await.ok()?.end().await.ok() })?;
        let began = Instant::now();
        loop {
            if pass(&live)?
                .events
                .iter()
                .any(|event| event.state == DeliveryState::Sent)
            {
                return Some(());
            }
            assert!(began.elapsed() < PATIENCE, "nothing was sent");
        }
    };
    match told() {
        Some(()) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_a_message_is_sent_at_most_once() {
    let server = Server::answering(&[200]);
    let of = || pod(settings(None), AttemptLimits::USUAL, Some(&server));
    let reference = story(of());
    assert_eq!(server.keys(0).len(), 1);
    let mut once = 0;
    let mut unknown = 0;
    let points = reference.pod.points.numbered();
    for (name, nth) in &points {
        let what = format!("killed at {name} {nth}");
        let from = server.keys(0).len();
        let pod = of();
        pod.points.kill(name, *nth);
        let Over { mut pod, end, .. } = story(pod);
        assert!(
            matches!(
                end,
                LiveEnd::Killed | LiveEnd::Ended(_) | LiveEnd::NotOpened(_)
            ),
            "{what}"
        );
        pod.revive();
        pod.script = ModelScript::new(
            (0..9)
                .map(|_| ScriptedAnswer::text("went on"))
                .collect::<Vec<_>>(),
        );
        let live = open(pod);
        live.settled();
        let events = (0..30).map(|_| pass(&live).unwrap()).last().unwrap().events;
        assert_eq!(live.close().failure(), None, "{what}");
        let mut keys = server.keys(from);
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "{what}: sent twice: {keys:?}");
        assert!(
            events
                .iter()
                .all(|event| event.state != DeliveryState::Sending),
            "{what}: {events:?}"
        );
        unknown += usize::from(
            events
                .iter()
                .any(|event| event.state == DeliveryState::Unknown),
        );
        once += usize::from(!keys.is_empty());
    }
    assert!(
        unknown > 0 && once > points.len() / 2,
        "{unknown} unknown, {once} sent of {}",
        points.len()
    );
}

#[test]
fn settings_are_checked() {
    let now: builtins::Now = Arc::new(|| SystemTime::UNIX_EPOCH);
    let both = Settings {
        webhook_file: Some("/x".into()),
        ..settings(Some("true"))
    };
    let cases = [
        (Settings::default(), "set `command` or `webhook_file`"),
        (both, "not both"),
        (
            Settings {
                command: vec!["x".to_owned(); 65],
                ..Settings::default()
            },
            "`command` must have at most 64 words",
        ),
        (
            Settings {
                command: vec![String::new()],
                ..Settings::default()
            },
            "`command` must begin with a program",
        ),
        (
            Settings {
                webhook_file: Some("x/y".into()),
                ..Settings::default()
            },
            "`webhook_file` must be an absolute path",
        ),
        (
            Settings {
                delay_s: 0,
                ..settings(None)
            },
            "`delay_s` must be 1 to 86400, not 0",
        ),
        (
            Settings {
                max_per_hour: 61,
                ..settings(None)
            },
            "`max_per_hour` must be 1 to 60, not 61",
        ),
    ];
    for (settings, words) in cases {
        let error = NotifyPerson::new(settings, Arc::clone(&now)).err().unwrap();
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(NotifyPerson::new(settings(Some("true")), now).is_ok());
}
