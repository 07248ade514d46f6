//! What a pod costs that has nothing to do.

use super::{Host, newest, until};
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::thread;
use std::time::Duration;

/// How long it is watched; `.ci/long` sets a minute.
fn watched() -> Duration {
    let seconds = std::env::var("YOI_TEST_IDLE_S")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// Threads, and how often they went to sleep.
fn threads(host: &Host) -> (usize, u64) {
    let tasks = fs::read_dir(host.proc("task")).unwrap();
    let switches = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .unwrap()
            .trim()
            .to_owned();
        line.parse::<u64>().unwrap()
    };
    let each: Vec<u64> = tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
        .map(switches)
        .collect();
    (each.len(), each.iter().sum())
}

fn private_kib(host: &Host) -> u64 {
    let rollup = fs::read_to_string(host.proc("smaps_rollup")).unwrap();
    // The pages of the program itself are private, too, while nothing else runs it.
    let private = rollup
        .lines()
        .filter_map(|line| line.strip_prefix("Anonymous:")?.split_whitespace().next());
    private.map(|kib| kib.parse::<u64>().unwrap()).sum()
}

#[test]
fn an_idle_pod_does_not_wake_up() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "hello" })]);
    let host = Host::start(&scene, &["-m", &model, "go"]);
    until("the turn has ended", || {
        newest(&scene, "turn_finished").is_some()
    });
    // One of them waits for callbacks.
    until("few threads are left", || threads(&host).0 <= 6);
    let mut before = (0, 0);
    while before != threads(&host) {
        before = threads(&host);
        thread::sleep(Duration::from_millis(200));
    }
    thread::sleep(watched());
    assert_eq!(
        threads(&host),
        before,
        "threads, and how often they went to sleep"
    );
    println!(
        "idle for {:?}: {} threads, {} KiB private",
        watched(),
        before.0,
        private_kib(&host)
    );
    assert!(private_kib(&host) <= 8 << 10);
    host.end(Signal::TERM);
}
