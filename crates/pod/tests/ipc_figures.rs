//! What clients cost a pod, counted: what the first attach reads of a long session or of long records, the memory of many
//! clients, and what a step does for three of them. Times are printed and decide nothing.
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
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::HostMode;
use rig::{Raw, Scene};
use serde_json::json;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Bytes that an attach may read of a session of any length.
const MAX_READ: u64 = 2 << 20;

/// Bytes of memory that 64 clients may cost.
const MAX_MEMORY: u64 = 4 << 20;

/// The counters are those of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Reads and writes, and waits, that a step of the pod itself may have more with three clients. It wakes the thread for
/// clients, with eight bytes each time, and neither reads nor waits for it.
const MORE_CALLS: f64 = 12.0;
const MORE_WAITS: f64 = 3.0;

/// Reads and writes of the thread for clients for a step with three clients.
const CALLS_FOR_THREE: f64 = 10.0;

/// Steps of one turn of the session before, and calls of each of them, of about four records each.
const TURN: usize = 25;
const CALLS: usize = 32;

/// Turns of [`TURN`] steps before the first attach; `.ci/long` sets more.
fn past() -> usize {
    std::env::var("YOI_TEST_TURNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2)
}

/// A number of a file in `/proc/self`.
fn counter(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn give(raw: &mut Raw, number: usize) {
    let input = raw
        .ask(
            "input",
            json!({ "text": "go", "cmd_id": number.to_string() }),
        )
        .unwrap()["input"]
        .clone();
    raw.ask("wait", json!({ "input": input })).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A pod whose model takes so many turns of so many steps with so many calls.
fn scene(turns: usize, steps: usize, calls: usize) -> Scene {
    let echo = FnTool::new("Echo", ToolEffect::ReadOnly, |_, arguments| async move {
        Ok(ToolOutput {
            summary: arguments,
            content: "x".repeat(200),
            data: None,
        })
    });
    let step = || ScriptedAnswer::calls(&vec![("Echo", "{}"); calls]);
    let turn = |_| {
        (0..steps)
            .map(move |_| step())
            .chain([ScriptedAnswer::text("done")])
    };
    let answers = (0..turns).flat_map(turn);
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), vec![echo]);
    pod.mode = HostMode::Stay { missing: None };
    pod.limits.max_steps = u32::MAX;
    Scene::of(pod)
}

/// What threads of this process have used.
#[derive(Clone, Copy, Default)]
struct Used {
    /// Reads and writes of files and sockets.
    calls: f64,
    /// Waits for something.
    waits: f64,
    cpu_us: f64,
}

impl Used {
    /// By all threads whose names are wanted.
    fn by(wanted: impl Fn(&str) -> bool) -> Self {
        let mut sum = Self::default();
        for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
            // A thread may end meanwhile.
            let text = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let number = |file: &str, name: &str| {
                let text = text(file);
                let found = text
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .unwrap_or_default();
                found
                    .split_whitespace()
                    .next()
                    .and_then(|number| number.parse::<f64>().ok())
                    .unwrap_or_default()
            };
            if wanted(text("comm").trim()) {
                sum.calls += number("io", "syscr:") + number("io", "syscw:");
                sum.waits += number("status", "voluntary_ctxt_switches:");
                sum.cpu_us += number("schedstat", "") / 1e3;
            }
        }
        sum
    }

    /// Each step of a turn, since `before`.
    fn per_step(self, before: Self) -> Self {
        let each = |now: f64, then: f64| (now - then) / STEPS as f64;
        Self {
            calls: each(self.calls, before.calls),
            waits: each(self.waits, before.waits),
            cpu_us: each(self.cpu_us, before.cpu_us),
        }
    }
}

/// Steps of a pod's only turn, and pods without clients; as many have three.
const STEPS: usize = 100;
const ROUNDS: usize = 5;

const READER: &str = "reader";

fn is_clients(name: &str) -> bool {
    name == "clients"
}

/// The pod without its thread for clients, and the thread of the test, which waits for the end of a turn.
fn is_pod(name: &str) -> bool {
    !is_clients(name) && name != READER
}

/// A turn of a new pod with attached clients; what each step cost the pod and its thread for clients, and the
/// milliseconds that it took.
fn turn(clients: usize) -> (Used, Used, f64) {
    let scene = scene(1, STEPS, 1);
    let mut driver = scene.driver();
    let readers = readers(&scene, clients);
    let pod = Used::by(is_pod);
    let own = Used::by(is_clients);
    let began = Instant::now();
    give(&mut driver, 0);
    let took = began.elapsed().as_secs_f64() * 1e3 / STEPS as f64;
    let used = (
        Used::by(is_pod).per_step(pod),
        Used::by(is_clients).per_step(own),
        took,
    );
    for (stream, reading) in readers {
        stream.shutdown(Shutdown::Both).unwrap();
        reading.join().unwrap();
    }
    scene.close();
    used
}

/// Attached clients, each with a thread that reads everything.
fn readers(scene: &Scene, count: usize) -> Vec<(UnixStream, JoinHandle<()>)> {
    let reader = |_| {
        let mut client = scene.driver();
        client.ask("attach", json!({ "limit": 1 })).unwrap();
        let stream = client.stream.get_ref().try_clone().unwrap();
        let read = move || while client.line().is_some() {};
        (
            stream,
            thread::Builder::new()
                .name(READER.to_owned())
                .spawn(read)
                .unwrap(),
        )
    };
    (0..count).map(reader).collect()
}

#[test]
fn what_a_step_does_for_three_clients() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    turn(0);
    let (alone, watched): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (turn(0), turn(3))).unzip();
    let of = |turns: &[(Used, Used, f64)], what: fn(&(Used, Used, f64)) -> f64| {
        median(turns.iter().map(what).collect())
    };
    let both = |what| (of(&alone, what), of(&watched, what));
    let ((calls, calls_watched), (waits, waits_watched)) =
        (both(|t| t.0.calls), both(|t| t.0.waits));
    let (for_none, for_three) = both(|t| t.1.calls);
    println!("a step without clients, and with three:");
    println!(
        "the pod: {calls:.1} and {calls_watched:.1} reads and writes, {waits:.1} and {waits_watched:.1} waits"
    );
    println!("its thread for clients: {for_none:.1} and {for_three:.1} reads and writes");
    let ((cpu, cpu_watched), (own, own_watched)) = (both(|t| t.0.cpu_us), both(|t| t.1.cpu_us));
    println!("CPU: {cpu:.0} and {cpu_watched:.0} µs, for clients {own:.0} and {own_watched:.0} µs");
    let (took, took_watched) = both(|t| t.2);
    println!("time: {took:.3} and {took_watched:.3} ms, readers in this process included");
    assert!(
        calls_watched <= calls + MORE_CALLS,
        "{calls_watched} instead of {calls} reads and writes of the pod"
    );
    assert!(
        waits_watched <= waits + MORE_WAITS,
        "{waits_watched} instead of {waits} waits of the pod"
    );
    assert!(
        for_three <= CALLS_FOR_THREE,
        "{for_three} reads and writes for three clients"
    );
}

/// Records of 1 MB between short ones.
#[test]
fn what_a_page_of_long_records_reads() {
    const LONG: usize = 1_000_000;
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Two bytes each in a record.
    let answers = (0..12).map(|_| ScriptedAnswer::text(&"\"".repeat(LONG / 2)));
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let scene = Scene::of(pod);
    let mut driver = scene.driver();
    for turn in 0..12 {
        give(&mut driver, turn);
        let mut client = scene.driver();
        let read = counter("io", "rchar:");
        let attached = client.ask("attach", json!({})).unwrap();
        let read = counter("io", "rchar:") - read;
        let page = attached["page"]["records"].as_array().unwrap();
        let long = page
            .iter()
            .filter(|record| record.to_string().len() > LONG)
            .count();
        assert!(
            long == 1 && read <= MAX_READ,
            "turn {turn}: {long} of {} records, {read} bytes read",
            page.len()
        );
    }
    let mut before = *scene.live.client().folded().borrow();
    let mut pages = 0;
    let mut most = 0;
    while before > 1 {
        let read = counter("io", "rchar:");
        before = driver
            .ask("page", json!({ "before": before, "limit": 1000 }))
            .unwrap()["first"]
            .as_u64()
            .unwrap();
        (pages, most) = (pages + 1, most.max(counter("io", "rchar:") - read));
    }
    println!("{pages} pages with a record of 1 MB each, at most {most} bytes read");
    assert!(most <= MAX_READ, "{most} bytes");
    scene.close();
}

#[test]
fn what_clients_cost() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = scene(past(), TURN, CALLS);
    let mut driver = scene.driver();
    (0..past()).for_each(|turn| give(&mut driver, turn));
    let records = *scene.live.client().folded().borrow();

    let mut times = Vec::new();
    let mut most = 0;
    for _ in 0..11 {
        let mut client = scene.driver();
        let read = counter("io", "rchar:");
        let began = Instant::now();
        client.send("attach", json!({})).unwrap();
        let answer = client.line().unwrap();
        times.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(answer.contains("\"page\""));
        most = most.max(counter("io", "rchar:") - read);
    }
    println!(
        "attach to {records} records: {:.1} ms, {most} bytes read",
        median(times)
    );
    assert!(most <= MAX_READ, "{most} bytes");

    let mut late = scene.driver();
    let before = counter("io", "rchar:");
    let mut sent = 0;
    late.ask("attach", json!({ "after": 0 })).unwrap();
    loop {
        let line = late.line().unwrap();
        sent += line.len() as u64;
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        if event["params"]["q"] == records {
            break;
        }
    }
    // Without what this process receives: that is no read of a file.
    let read = counter("io", "rchar:") - before;
    println!("all records for one client: {sent} bytes sent, {read} bytes read");
    assert!(read <= sent / 4 * 5 + (1 << 20), "{read} bytes for {sent}");
    drop(late);

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
