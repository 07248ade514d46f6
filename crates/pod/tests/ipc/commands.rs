//! What clients ask of a pod, each once, and who may ask.

use crate::rig::{Raw, Scene, answers, held_answers};
use protocol::method::Method;
use serde_json::{Value, json};
use testkit::Latch;

#[test]
fn nothing_is_said_before_hello_and_versions_must_meet() {
    let scene = Scene::new(answers(1));
    let mut raw = scene.stranger();
    assert_eq!(Raw::kind(raw.ask("status", json!({}))), "request");
    assert_eq!(
        Raw::kind(raw.ask("hello", json!({ "versions": [2, 3], "client": "later" }))),
        "version"
    );
    let welcome = raw
        .ask(
            "hello",
            json!({ "versions": [3, 1], "client": "later\u{1b}[0m" }),
        )
        .unwrap();
    assert_eq!(
        (&welcome["version"], &welcome["role"], &welcome["pod"]),
        (&json!(1), &json!("viewer"), &json!("p"))
    );
    assert_eq!(welcome["methods"], json!(Method::NAMES));
    assert_eq!(
        Raw::kind(raw.ask("hello", json!({ "versions": [1], "client": "again" }))),
        "request"
    );
    assert_eq!(raw.ask("status", json!({})).unwrap()["state"], "idle");
    scene.close();
}

#[test]
fn a_viewer_changes_nothing() {
    let scene = Scene::new(answers(1));
    let mut viewer = scene.stranger();
    viewer
        .ask("hello", json!({ "versions": [1], "client": "page" }))
        .unwrap();
    let id = json!("x");
    for (method, params) in [
        ("input", json!({ "text": "t", "cmd_id": id })),
        ("file", json!({ "data": "", "cmd_id": id })),
        ("call", json!({ "tool": "t", "cmd_id": id })),
        (
            "edit_input",
            json!({ "input": 1, "text": "t", "cmd_id": id }),
        ),
        ("withdraw", json!({ "input": 1, "cmd_id": id })),
        ("move_input", json!({ "input": 1, "cmd_id": id })),
        ("notify", json!({ "text": "t", "cmd_id": id })),
        ("call_tool", json!({ "tool": "t", "cmd_id": id })),
        ("draft", json!({ "text": "t", "cmd_id": id })),
        ("cancel", json!({ "cmd_id": id })),
        ("pause", json!({ "cmd_id": id })),
        ("resume", json!({ "cmd_id": id })),
        ("undo", json!({ "to": 1, "cmd_id": id })),
        ("shutdown", json!({ "cmd_id": id })),
    ] {
        assert_eq!(
            Raw::kind(viewer.ask(method, params)),
            "not_allowed",
            "{method}"
        );
    }
    let before = scene.journal().len();
    for (method, params) in [
        ("page", json!({ "before": 9, "limit": 3 })),
        ("features", json!({})),
        ("attach", json!({ "after": 0 })),
    ] {
        viewer.ask(method, params).unwrap();
    }
    assert_eq!(scene.journal().len(), before);
    assert_eq!(
        (
            scene.actions.shut_down.lock().unwrap().len(),
            scene.actions.undone.lock().unwrap().len()
        ),
        (0, 0)
    );
    scene.close();
}

#[test]
fn the_queue_is_edited_by_any_driver_and_the_journal_says_by_whom() {
    let latches = [Latch::new("one"), Latch::new("two"), Latch::new("three")];
    let scene = Scene::new(held_answers(&latches));
    let mut one = scene.driver();
    let mut two = scene.stranger();
    two.ask(
        "hello",
        json!({ "versions": [1], "client": "phone", "name": "Ada", "role": "driver" }),
    )
    .unwrap();
    let input = |raw: &mut Raw, text: &str| {
        raw.ask("input", json!({ "text": text, "cmd_id": text }))
            .unwrap()["input"]
            .clone()
    };
    assert_eq!(
        (
            input(&mut one, "a"),
            input(&mut one, "b"),
            input(&mut one, "c"),
            input(&mut one, "d")
        ),
        (json!(1), json!(2), json!(3), json!(4))
    );
    two.ask(
        "edit_input",
        json!({ "input": 3, "text": "c2", "cmd_id": "e" }),
    )
    .unwrap();
    two.ask(
        "move_input",
        json!({ "input": 4, "before": 2, "cmd_id": "m" }),
    )
    .unwrap();
    two.ask("withdraw", json!({ "input": 2, "cmd_id": "w" }))
        .unwrap();
    assert_eq!(
        Raw::kind(two.ask("withdraw", json!({ "input": 2, "cmd_id": "w2" }))),
        "not_waiting"
    );
    let queued = one.ask("status", json!({})).unwrap()["queued"].clone();
    assert_eq!(
        queued,
        json!([{ "input": 4, "mode": "queue", "text": "d" }, { "input": 3, "mode": "queue", "text": "c2" }])
    );
    latches.iter().for_each(Latch::open);
    scene.settled();
    let edited = scene
        .journal()
        .into_iter()
        .find(|line| line.contains("\"input_edited\""))
        .unwrap();
    let by = serde_json::from_str::<Value>(&edited).unwrap()["by"].clone();
    assert_eq!(
        (&by["client"], &by["name"], &by["role"]),
        (&json!("phone"), &json!("Ada"), &json!("driver"))
    );
    scene.close();
}

#[test]
fn the_end_of_a_turn_names_the_client_that_cancelled_it() {
    let latches = [Latch::new("one"), Latch::new("two"), Latch::new("three")];
    let scene = Scene::new(held_answers(&latches));
    let mut phone = scene.stranger();
    phone
        .ask(
            "hello",
            json!({ "versions": [1], "client": "phone", "name": "Ada", "role": "driver" }),
        )
        .unwrap();
    let mut other = scene.driver();
    for (n, cancel) in [
        json!({ "cmd_id": "c" }),
        json!({ "input": 2, "cmd_id": "d" }),
    ]
    .into_iter()
    .enumerate()
    {
        let input = phone
            .ask(
                "input",
                json!({ "text": n.to_string(), "cmd_id": n.to_string() }),
            )
            .unwrap();
        while phone.ask("status", json!({})).unwrap()["step"] != 1 {}
        phone.ask("cancel", cancel).unwrap();
        // The first is recorded.
        other
            .ask("cancel", json!({ "cmd_id": format!("later {n}") }))
            .unwrap();
        assert_eq!(
            phone.ask("wait", input).unwrap()["outcome"]["outcome"],
            "cancelled"
        );
    }
    let input = phone
        .ask("input", json!({ "text": "more", "cmd_id": "more" }))
        .unwrap();
    latches.iter().for_each(Latch::open);
    assert_eq!(
        phone.ask("wait", input).unwrap()["outcome"]["outcome"],
        "done"
    );
    let finished = scene
        .journal()
        .into_iter()
        .filter(|line| line.contains("\"k\":\"turn_finished\""));
    let by: Vec<Value> = finished
        .map(|line| serde_json::from_str::<Value>(&line).unwrap()["by"]["name"].clone())
        .collect();
    assert_eq!(by, [json!("Ada"), json!("Ada"), Value::Null]);
    scene.close();
}

#[test]
fn a_repeated_command_is_not_carried_out_again() {
    let scene = Scene::new(answers(2));
    let mut raw = scene.driver();
    let pause = json!({ "cmd_id": "p" });
    raw.ask("pause", pause.clone()).unwrap();
    raw.ask("resume", json!({ "cmd_id": "r" })).unwrap();
    // The pod is not paused again, also when another connection says it.
    scene.driver().ask("pause", pause.clone()).unwrap();
    assert_eq!(raw.ask("status", json!({})).unwrap()["state"], "idle");
    assert_eq!(Raw::kind(raw.ask("resume", pause)), "params");
    let input = json!({ "text": "one", "cmd_id": "i" });
    assert_eq!(
        raw.ask("input", input.clone()).unwrap(),
        json!({ "input": 1 })
    );
    assert_eq!(
        scene.driver().ask("input", input).unwrap(),
        json!({ "input": 1 })
    );
    assert_eq!(
        Raw::kind(raw.ask("cancel", json!({ "cmd_id": "" }))),
        "params"
    );
    scene.close();
}

#[test]
fn a_note_of_a_client_reaches_the_model_once_and_may_wake_the_pod() {
    let scene = Scene::new(answers(2));
    let mut raw = scene.driver();
    raw.ask(
        "notify",
        json!({ "text": "the build is red", "cmd_id": "1" }),
    )
    .unwrap();
    assert_eq!(raw.ask("status", json!({})).unwrap()["notices"], 1);
    raw.ask(
        "notify",
        json!({ "text": "now look", "wake": true, "cmd_id": "2" }),
    )
    .unwrap();
    scene.settled();
    let journal = scene.journal();
    let count = |kind: &str, text: &str| {
        journal
            .iter()
            .filter(|line| line.contains(kind) && line.contains(text))
            .count()
    };
    for text in ["the build is red", "now look"] {
        assert_eq!(
            (
                count("\"notification_queued\"", text),
                count("\"system_item\"", text)
            ),
            (1, 1),
            "{text}"
        );
    }
    let queued = journal
        .iter()
        .find(|line| line.contains("\"notification_queued\""))
        .unwrap();
    let queued: Value = serde_json::from_str(queued).unwrap();
    assert_eq!(
        (&queued["feature"], &queued["by"]["client"]),
        (&json!("client"), &json!("test"))
    );
    assert_eq!(
        journal
            .iter()
            .filter(|line| line.contains("\"turn_started\""))
            .count(),
        1
    );
    for (text, kind) in [("", "too_long"), ("bell\u{7}", "too_long")] {
        assert_eq!(
            Raw::kind(raw.ask("notify", json!({ "text": text, "cmd_id": text }))),
            if text.is_empty() { "params" } else { kind }
        );
    }
    scene.close();
}

#[test]
fn what_only_the_host_can_do_is_asked_of_it() {
    let scene = Scene::new(answers(1));
    let mut raw = scene.driver();
    let undone = raw.ask("undo", json!({ "to": 3, "cmd_id": "u" })).unwrap();
    assert_eq!(undone, json!({ "lines": ["undone to 3"] }));
    raw.ask("shutdown", json!({ "now": true, "cmd_id": "s" }))
        .unwrap();
    raw.ask("shutdown", json!({ "now": true, "cmd_id": "s" }))
        .unwrap();
    assert_eq!(*scene.actions.shut_down.lock().unwrap(), [true]);
    assert_eq!(*scene.actions.undone.lock().unwrap(), [3]);
    scene.close();
}

#[test]
fn the_end_of_a_turn_can_be_waited_for_by_anybody() {
    let latches = [Latch::new("one"), Latch::new("two")];
    let scene = Scene::new(held_answers(&latches));
    let mut driver = scene.driver();
    for text in ["a", "b", "c"] {
        driver
            .ask("input", json!({ "text": text, "cmd_id": text }))
            .unwrap();
    }
    let mut viewers: Vec<Raw> = (0..3).map(|_| scene.stranger()).collect();
    for (viewer, input) in viewers.iter_mut().zip(1..) {
        viewer
            .ask("hello", json!({ "versions": [1], "client": "page" }))
            .unwrap();
        viewer.send("wait", json!({ "input": input })).unwrap();
        // Its answer is no event, and it comes after this one.
        assert_eq!(viewer.ask("status", json!({})).unwrap()["state"], "working");
    }
    driver
        .ask("withdraw", json!({ "input": 3, "cmd_id": "w" }))
        .unwrap();
    latches.iter().for_each(Latch::open);
    let ends: Vec<Value> = viewers
        .iter_mut()
        .map(|viewer| serde_json::from_str(&viewer.line().unwrap()).unwrap())
        .collect();
    assert_eq!(
        (
            &ends[0]["result"]["answer"],
            &ends[0]["result"]["outcome"]["outcome"]
        ),
        (&json!("answer 0"), &json!("done"))
    );
    assert_eq!(
        (&ends[1]["result"]["answer"], &ends[1]["result"]["steps"]),
        (&json!("answer 1"), &json!(1))
    );
    assert_eq!(ends[2]["error"]["data"]["kind"], "not_waiting");
    // A client that asks late is told, too.
    let late = driver.ask("wait", json!({ "input": 1 })).unwrap();
    assert_eq!(
        (&late["answer"], &late["outcome"]),
        (&ends[0]["result"]["answer"], &ends[0]["result"]["outcome"])
    );
    assert_eq!(Raw::kind(driver.ask("wait", json!({ "input": 3 }))), "over");
    assert_eq!(
        Raw::kind(driver.ask("wait", json!({ "input": 9 }))),
        "not_waiting"
    );
    scene.close();
}
