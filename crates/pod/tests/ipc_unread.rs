//! Clients that ask for much and read nothing cost the pod neither time nor memory. Alone in its process, whose threads and
//! memory are counted, and one test after the other.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a scene that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

#[path = "ipc/rig.rs"]
#[allow(dead_code, reason = "shared with the tests of the socket")]
mod rig;

use rig::{Raw, Scene, answers, held_answers};
use serde_json::json;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use testkit::Latch;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

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
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let latch = Latch::new("answer");
    let scene = Scene::new(held_answers(std::slice::from_ref(&latch)));
    let mut client = scene.driver();
    let input = client
        .ask("input", json!({ "text": "t", "cmd_id": "a" }))
        .unwrap()["input"]
        .clone();
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

/// MiB of this process in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn pages_that_are_not_read_are_not_made() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new(answers(5));
    let mut driver = scene.driver();
    let big = "x".repeat(200 * 1024);
    for n in 0..5 {
        driver
            .ask(
                "input",
                json!({ "text": format!("{n}{big}"), "cmd_id": n.to_string() }),
            )
            .unwrap();
        scene.settled();
    }
    let before = resident();
    let mut deaf: Vec<Raw> = (0..24).map(|_| scene.driver()).collect();
    for client in &mut deaf {
        for _ in 0..16 {
            client
                .send("page", json!({ "before": u64::MAX, "limit": 1000 }))
                .unwrap();
        }
    }
    thread::sleep(Duration::from_secs(3));
    let more = resident().saturating_sub(before);
    assert!(more < 150, "{more} MiB for 24 clients");
    let mut last = deaf.pop().unwrap();
    let pages = (0..16)
        .filter_map(|_| last.line())
        .filter(|line| line.len() > 1 << 19)
        .count();
    assert_eq!(pages, 16);
    scene.close();
}
