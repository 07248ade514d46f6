//! What a client could do to the pod's process, to other clients, or to the process that has the pod next.

use crate::rig::{Raw, Scene, answers, held_answers};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;
use testkit::Latch;

#[test]
fn a_command_is_carried_out_once_although_its_client_left() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut driver = scene.driver();
    driver
        .ask("input", json!({ "text": "t", "cmd_id": "a" }))
        .unwrap();
    for n in 0..20 {
        let note = json!({ "text": "note", "cmd_id": format!("note {n}") });
        let mut leaves = scene.driver();
        leaves.send("notify", note.clone()).unwrap();
        // While it is made durable.
        thread::sleep(Duration::from_micros(100 * n));
        drop(leaves);
        driver.ask("notify", note).unwrap();
    }
    // Those of clients that left are read by now.
    assert_eq!(driver.ask("status", json!({})).unwrap()["notices"], 20);
    latch.open();
    scene.close();
}

#[test]
fn strange_cursors_are_answered() {
    let scene = Scene::new(answers(1));
    let mut driver = scene.driver();
    for before in [0, 1, u64::MAX] {
        let page = driver
            .ask("page", json!({ "before": before, "limit": 0 }))
            .unwrap();
        let records = page["records"].as_array().unwrap().len();
        assert_eq!(records, usize::from(before > 1), "{before}: {page}");
    }
    assert_eq!(
        Raw::kind(driver.ask("attach", json!({ "after": u64::MAX }))),
        "params"
    );
    assert_eq!(
        Raw::kind(driver.ask("wait", json!({ "input": u64::MAX }))),
        "not_waiting"
    );
    let deep = "[".repeat(500_000);
    driver
        .write(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":{{\"a\":{deep}\n"
            )
            .as_bytes(),
        )
        .unwrap();
    let error: Value = serde_json::from_str(&driver.line().unwrap()).unwrap();
    assert_eq!(error["error"]["data"]["kind"], "parse");
    assert_eq!(
        scene.driver().ask("status", json!({})).unwrap()["state"],
        "idle"
    );
    scene.close();
}
