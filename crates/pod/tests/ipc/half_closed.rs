//! Clients that end what they send and wait for the answers, as a script that pipes its requests does.

use crate::rig::{Raw, Scene, answers, held_answers};
use serde_json::{Value, json};
use std::net::Shutdown;
use std::time::{Duration, Instant};
use testkit::Latch;

fn end_sending(raw: &Raw) {
    raw.stream.get_ref().shutdown(Shutdown::Write).unwrap();
}

#[test]
fn every_request_before_the_end_is_answered() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut raw = scene.stranger();
    raw.ask(
        "hello",
        json!({ "versions": [1], "client": "pipe", "role": "driver" }),
    )
    .unwrap();
    // The request to wait for it depends on it, and requests are carried out side by side.
    raw.ask("input", json!({ "text": "go", "cmd_id": "1" }))
        .unwrap();
    // More than are carried out side by side, and long ones between them.
    for _ in 0..20 {
        raw.send("status", json!({})).unwrap();
        raw.send("page", json!({ "before": 100, "limit": 5 }))
            .unwrap();
    }
    let wait = raw.send("wait", json!({ "input": 1 })).unwrap();
    raw.write(b"{\"half").unwrap();
    end_sending(&raw);
    let mut answered = Vec::new();
    while let Some(line) = raw.line() {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer.get("result").is_some(), "{line}");
        answered.push(answer["id"].as_u64().unwrap());
        if answered.len() as u64 == wait - 3 {
            latch.open();
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (3..=wait).collect::<Vec<_>>());
    scene.close();
}

#[test]
fn an_attached_client_gets_its_answer_and_then_the_end() {
    let scene = Scene::new(answers(1));
    let mut raw = scene.driver();
    raw.send("attach", json!({})).unwrap();
    end_sending(&raw);
    assert!(raw.line().unwrap().contains("\"page\""));
    let answered = Instant::now();
    while raw.line().is_some() {}
    assert!(
        answered.elapsed() < Duration::from_secs(8),
        "it is not kept until the bound"
    );
    scene.close();
}

/// The end of a turn may be days away.
#[test]
fn an_answer_is_awaited_for_a_bounded_time() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut raw = scene.driver();
    raw.ask("input", json!({ "text": "go", "cmd_id": "1" }))
        .unwrap();
    raw.send("wait", json!({ "input": 1 })).unwrap();
    let ended = Instant::now();
    end_sending(&raw);
    assert!(raw.is_ended());
    assert!(
        ended.elapsed() < Duration::from_secs(25),
        "the pod did not end the connection"
    );
    latch.open();
    scene.close();
}

#[test]
fn a_client_that_leaves_gives_its_place_back_at_once() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut driver = scene.driver();
    driver
        .ask("input", json!({ "text": "go", "cmd_id": "1" }))
        .unwrap();
    let mut waiting: Vec<Raw> = (0..48).map(|_| scene.driver()).collect();
    for client in &mut waiting {
        client.send("wait", json!({ "input": 1 })).unwrap();
        client.ask("status", json!({})).unwrap();
    }
    assert_eq!(Raw::kind(driver.ask("attach", json!({}))), "busy");
    // Half of them say so first.
    waiting.iter().step_by(2).for_each(end_sending);
    drop(waiting);
    let left = Instant::now();
    let mut kept = vec![driver];
    while kept[0].ask("attach", json!({ "limit": 1 })).is_err() {
        assert!(
            left.elapsed() < Duration::from_secs(8),
            "no place was given back"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    // One by one: too many at once, beside those that leave, would make idle ones give way.
    while kept.len() < 47 {
        assert!(
            left.elapsed() < Duration::from_secs(8),
            "the places were not given back"
        );
        let mut client = scene.driver();
        if client.ask("attach", json!({ "limit": 1 })).is_ok() {
            kept.push(client);
        } else {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    latch.open();
    scene.close();
}
