//! Clients that flood, stall, or send what is no request cost their own connection, and nothing else.

use crate::rig::{Raw, Scene, answers};
use llm_worker::ToolEffect;
use pod::ipc::background_tasks;
use pod::record::{TaskRunState, TriggerKind};
use pod::session::tasks::{OpenTaskRun, TaskEnd, TaskState};
use protocol::status::BackgroundTaskStatus;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The pod answers another client.
fn works(scene: &Scene) {
    assert_eq!(
        scene.driver().ask("status", json!({})).unwrap()["state"],
        "idle"
    );
}

#[test]
fn what_is_no_line_of_the_protocol_ends_its_connection_with_a_reason() {
    let scene = Scene::new(answers(1));
    for (bytes, kind) in [
        (&b"{\n"[..], "parse"),
        (b"\xff\xfe\n", "parse"),
        (b"{\"a\":\"\xc3\"}\n", "parse"),
    ] {
        let mut raw = scene.driver();
        raw.write(bytes).unwrap();
        let error: Value = serde_json::from_str(&raw.line().unwrap()).unwrap();
        assert_eq!(
            (&error["error"]["data"]["kind"], &error["id"]),
            (&json!(kind), &Value::Null),
            "{bytes:?}"
        );
        assert!(raw.is_ended());
    }
    let mut raw = scene.driver();
    assert_eq!(Raw::kind(raw.ask("dance", json!({}))), "method");
    assert_eq!(Raw::kind(raw.ask("input", json!({ "text": 1 }))), "params");
    assert_eq!(raw.ask("status", json!({})).unwrap()["state"], "idle");
    scene.close();
}

/// A request that is not completed ends its connection, however slowly more of it comes.
fn never_completes(mut raw: Raw) {
    raw.stream
        .get_mut()
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let began = Instant::now();
    raw.write(b"{\"jsonrpc\":\"2.0\"").unwrap();
    let told = loop {
        assert!(
            began.elapsed() < Duration::from_secs(25),
            "half a request is kept"
        );
        match raw.line() {
            Some(line) => break line,
            None => raw.write(b" ").unwrap(),
        }
    };
    let error: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&error["error"]["data"]["kind"], &error["id"]),
        (&json!("request"), &Value::Null)
    );
    assert!(
        told.contains("not complete within 10 s") && began.elapsed() > Duration::from_secs(9),
        "{told}"
    );
    assert!(raw.is_ended());
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let scene = Scene::new(answers(1));
    let mut raw = scene.driver();
    let piece = vec![b'x'; 64 * 1024];
    let taken = (0..1600).take_while(|_| raw.write(&piece).is_ok()).count();
    assert!(taken < 200, "{taken} pieces of 64 KiB were taken");
    works(&scene);
    scene.close();
}

#[test]
fn ten_thousand_requests_wait_and_others_do_not_notice() {
    let scene = Scene::new(answers(1));
    let mut flood = scene.driver();
    flood
        .stream
        .get_mut()
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "status" }).to_string() + "\n";
    let sent = (0..10_000)
        .take_while(|_| flood.write(line.as_bytes()).is_ok())
        .count();
    works(&scene);
    assert!(
        (201..10_000).contains(&sent),
        "{sent} requests were taken of a client that reads no answer"
    );
    scene.close();
}

#[test]
fn requests_beyond_the_rate_are_answered_later() {
    let scene = Scene::new(answers(1));
    let mut busy = scene.driver();
    let began = Instant::now();
    // Two seconds' worth, and those that are free at the start.
    for piece in 0..30 {
        for _ in 0..20 {
            busy.send("status", json!({})).unwrap();
        }
        if piece == 5 {
            works(&scene);
        }
        (0..20).for_each(|_| assert!(busy.line().unwrap().contains("\"result\"")));
    }
    assert!(
        began.elapsed() > Duration::from_millis(1900),
        "{:?}",
        began.elapsed()
    );
    scene.close();
}

#[test]
fn a_client_that_never_reads_costs_a_cursor() {
    // More than a socket holds, and less than takes the 10 s after which the client is cut off.
    let scene = Scene::new(answers(10));
    let mut deaf = scene.driver();
    deaf.ask("attach", json!({ "after": 0 })).unwrap();
    let mut driver = scene.driver();
    let big = "x".repeat(200 * 1024);
    for n in 0..10 {
        driver
            .ask(
                "input",
                json!({ "text": format!("{n}{big}"), "cmd_id": n.to_string() }),
            )
            .unwrap();
        scene.settled();
    }
    let newest = *scene.live.client().folded().borrow();
    // It begins to read: every record is there.
    let lines = deaf.records(newest);
    assert_eq!(lines, scene.journal());
    scene.close();
}

#[test]
fn a_client_that_takes_nothing_or_does_not_go_on_loses_its_connection() {
    let scene = Scene::new(answers(8));
    let mut driver = scene.driver();
    let big = "x".repeat(200 * 1024);
    for n in 0..8 {
        driver
            .ask(
                "input",
                json!({ "text": format!("{n}{big}"), "cmd_id": n.to_string() }),
            )
            .unwrap();
        scene.settled();
    }
    let mut deaf = scene.driver();
    deaf.send("attach", json!({ "after": 0 })).unwrap();
    let half = scene.driver();
    let half = std::thread::spawn(move || never_completes(half));
    // What it sends is not read either, until its connection has ended.
    let began = Instant::now();
    while deaf.write(b" ").is_ok() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it is still there"
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(
        began.elapsed() > Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    half.join().unwrap();
    works(&scene);
    scene.close();
}

#[test]
fn idle_clients_give_way_and_attached_ones_stay() {
    let scene = Scene::new(answers(1));
    let mut attached: Vec<Raw> = (0..48).map(|_| scene.driver()).collect();
    for client in &mut attached {
        client.ask("attach", json!({})).unwrap();
    }
    let mut further = scene.driver();
    assert_eq!(Raw::kind(further.ask("attach", json!({}))), "busy");
    let idle: Vec<Raw> = (0..100).map(|_| scene.stranger()).collect();
    works(&scene);
    drop(idle);
    for client in &mut attached {
        assert_eq!(client.ask("status", json!({})).unwrap()["state"], "idle");
    }
    scene.close();
}

#[test]
fn a_client_is_told_once_that_too_much_is_being_received() {
    let scene = Scene::new(answers(1));
    let part = vec![b'x'; 128 * 1024];
    let mut clients: Vec<Raw> = (0..8).map(|_| scene.driver()).collect();
    for client in &mut clients {
        client.write(&part).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    let mut refused = 0;
    for client in &mut clients {
        client
            .stream
            .get_mut()
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let Some(line) = client.line() else { continue };
        assert!(line.contains("too many large requests"), "{line}");
        assert!(client.is_ended());
        refused += 1;
    }
    assert_eq!(refused, 4);
    scene.close();
}

#[test]
fn a_status_lists_64_tasks_and_those_that_run_first() {
    let of = |name: &str| TaskState::default().status(&(format!("user:{name}"), "t".to_owned()));
    let last = |at_ms| {
        let trigger = TriggerKind::Start;
        let state = TaskRunState::Completed;
        let end = TaskEnd {
            run: 1,
            attempt: 1,
            trigger,
            state,
            reason: None,
            at_ms,
        };
        let task = TaskState {
            last: Some(end),
            ..TaskState::default()
        };
        task.status(&Default::default()).last
    };
    let run = 7;
    let attempt = 2;
    let trigger = TriggerKind::Cron;
    let effect = ToolEffect::ReadOnly;
    let open = OpenTaskRun {
        run,
        attempt,
        trigger,
        effect,
        due_ms: 3,
        began_ms: 4,
    };
    let mut all: Vec<_> = (0..70).map(|n| of(&n.to_string())).collect();
    all.extend([
        BackgroundTaskStatus {
            last: last(1),
            ..of("old")
        },
        BackgroundTaskStatus {
            last: last(2),
            ..of("new")
        },
        BackgroundTaskStatus {
            next_due_ms: Some(9),
            ..of("later")
        },
        BackgroundTaskStatus {
            next_due_ms: Some(8),
            ..of("next")
        },
        BackgroundTaskStatus {
            off: Some("why".to_owned()),
            ..of("off")
        },
        BackgroundTaskStatus {
            run: Some(open.status()),
            ..of("runs")
        },
    ]);
    let (listed, more) = background_tasks(all);
    assert_eq!((listed.len(), more), (protocol::MAX_TASKS, 12));
    let order: Vec<&str> = listed
        .iter()
        .take(6)
        .map(|task| task.feature.as_str())
        .collect();
    assert_eq!(
        order,
        [
            "user:runs",
            "user:off",
            "user:next",
            "user:later",
            "user:new",
            "user:old"
        ]
    );
    let shown = serde_json::to_value(&listed[0]).unwrap();
    assert_eq!(
        shown["run"],
        json!({ "run": 7, "trigger": "cron", "attempt": 2, "due_ms": 3, "since_ms": 4 })
    );
}
