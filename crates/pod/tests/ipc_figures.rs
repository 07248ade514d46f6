//! What clients cost a pod, counted: what the first attach reads of a long session, and the memory of many clients. Times
//! are printed and decide nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a scene that fails is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests stand at the composition root")]

#[path = "ipc/rig.rs"]
#[allow(dead_code, reason = "shared with the tests of the socket")]
mod rig;

use authority::Ambient;
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::HostMode;
use rig::{Raw, Scene};
use serde_json::json;
use std::fs;
use std::time::Instant;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Bytes that an attach may read of a session of any length.
const MAX_READ: u64 = 2 << 20;

/// Bytes of memory that 64 clients may cost.
const MAX_MEMORY: u64 = 4 << 20;

/// Steps of one turn of the session before, of about six records each.
const TURN: usize = 250;

/// Turns of [`TURN`] steps before the first attach; `.ci/long` sets more.
fn past() -> usize {
    std::env::var("YOI_TEST_TURNS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// A number of a file in `/proc/self`.
fn counter(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn give(raw: &mut Raw, number: usize) {
    let input = raw.ask("input", json!({ "text": "go", "cmd_id": number.to_string() })).unwrap()["input"].clone();
    raw.ask("wait", json!({ "input": input })).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A pod that has taken many steps, and takes more.
fn scene() -> Scene {
    let echo = FnTool::new("Echo", ToolEffect::ReadOnly, |_, arguments| async move {
        Ok(ToolOutput { summary: arguments, content: "x".repeat(200) })
    });
    let turn = |steps: usize| {
        let step = || ScriptedAnswer::calls(&[("Echo", "{}")]);
        (0..steps).map(move |_| step()).chain([ScriptedAnswer::text("done")])
    };
    let answers = (0..past()).flat_map(|_| turn(TURN));
    let mut pod = PodUnderTest::new(&Ambient::claim(), ModelScript::new(answers), vec![echo]);
    pod.mode = HostMode::Stay { missing: None };
    pod.limits.max_steps = u32::MAX;
    Scene::of(pod)
}

#[test]
fn what_clients_cost() {
    let scene = scene();
    let mut driver = scene.driver();
    (0..past()).for_each(|turn| give(&mut driver, turn));
    let records = *scene.live.client().folded().borrow();

    let (mut times, mut most) = (Vec::new(), 0);
    for _ in 0..11 {
        let mut client = scene.driver();
        let (read, began) = (counter("io", "rchar:"), Instant::now());
        client.send("attach", json!({})).unwrap();
        let answer = client.line().unwrap();
        times.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(answer.contains("\"page\""));
        most = most.max(counter("io", "rchar:") - read);
    }
    println!("attach to {records} records: {:.1} ms, {most} bytes read", median(times));
    assert!(most <= MAX_READ, "{most} bytes");

    let before = counter("status", "RssAnon:");
    let mut clients: Vec<Raw> = (0..63).map(|_| scene.driver()).collect();
    for client in clients.iter_mut().take(48) {
        client.ask("attach", json!({ "limit": 50 })).unwrap();
    }
    let after = counter("status", "RssAnon:");
    let memory = after.saturating_sub(before) * 1024;
    println!("64 clients, 48 of them attached: {memory} bytes, with their own ends");
    assert!(memory <= MAX_MEMORY, "{memory} bytes");
    drop(clients);

    scene.close();
}
