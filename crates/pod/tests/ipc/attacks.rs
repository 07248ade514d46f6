//! What a client could do to the pod's process, to other clients, or to the process that has the pod next.

use crate::rig::{Raw, Scene, answers, held_answers};
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::Duration;
use testkit::Latch;

/// Clock ticks that the busiest thread for clients in this process has used.
fn ticks() -> u64 {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let used = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        name.ends_with("(clients").then_some(ticks)
    });
    used.max().unwrap()
}

#[test]
fn a_client_that_used_up_its_rate_and_its_requests_costs_no_time() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut client = scene.driver();
    let input = client.ask("input", json!({ "text": "t", "cmd_id": "a" })).unwrap()["input"].clone();
    for _ in 0..182 {
        client.send("status", json!({})).unwrap();
    }
    for _ in 0..40 {
        client.send("wait", json!({ "input": input })).unwrap();
    }
    thread::sleep(Duration::from_millis(1500));
    let before = ticks();
    thread::sleep(Duration::from_secs(2));
    let used = ticks() - before;
    assert!(used < 50, "{used} ticks in two seconds");
    latch.open();
    scene.close();
}

#[test]
fn a_command_is_carried_out_once_although_its_client_left() {
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut driver = scene.driver();
    driver.ask("input", json!({ "text": "t", "cmd_id": "a" })).unwrap();
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

/// MiB of this process in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn pages_that_are_not_read_are_not_made() {
    let scene = Scene::new(answers(5));
    let mut driver = scene.driver();
    let big = "x".repeat(200 * 1024);
    for n in 0..5 {
        driver.ask("input", json!({ "text": format!("{n}{big}"), "cmd_id": n.to_string() })).unwrap();
        scene.settled();
    }
    let before = resident();
    let mut deaf: Vec<Raw> = (0..24).map(|_| scene.driver()).collect();
    for client in &mut deaf {
        for _ in 0..16 {
            client.send("page", json!({ "before": u64::MAX, "limit": 1000 })).unwrap();
        }
    }
    thread::sleep(Duration::from_secs(3));
    let more = resident().saturating_sub(before);
    assert!(more < 150, "{more} MiB for 24 clients");
    let mut last = deaf.pop().unwrap();
    let pages = (0..16).filter_map(|_| last.line()).filter(|line| line.len() > 1 << 19).count();
    assert_eq!(pages, 16);
    scene.close();
}

#[test]
fn strange_cursors_are_answered() {
    let scene = Scene::new(answers(1));
    let mut driver = scene.driver();
    for before in [0, 1, u64::MAX] {
        let page = driver.ask("page", json!({ "before": before, "limit": 0 })).unwrap();
        let records = page["records"].as_array().unwrap().len();
        assert_eq!(records, usize::from(before > 1), "{before}: {page}");
    }
    assert_eq!(Raw::kind(driver.ask("attach", json!({ "after": u64::MAX }))), "params");
    assert_eq!(Raw::kind(driver.ask("wait", json!({ "input": u64::MAX }))), "not_waiting");
    let deep = "[".repeat(500_000);
    driver
        .write(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":{{\"a\":{deep}\n").as_bytes())
        .unwrap();
    let error: Value = serde_json::from_str(&driver.line().unwrap()).unwrap();
    assert_eq!(error["error"]["data"]["kind"], "parse");
    assert_eq!(scene.driver().ask("status", json!({})).unwrap()["state"], "idle");
    scene.close();
}
