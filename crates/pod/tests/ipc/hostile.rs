//! Hostile clients in every place that there is, beside one that works; and a client of another user.

use crate::rig::{Raw, Scene, answers};
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The socket, for the child that acts as the other user.
const SOCKET: &str = "YOI_TEST_SOCKET";

/// An answer may take this long on a machine that is busy with other things.
const BOUND: Duration = Duration::from_secs(10);

fn greeted(path: &PathBuf) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(path).ok()?;
    let hello = json!({ "versions": [1], "client": "hostile", "role": "driver" });
    let line =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "hello", "params": hello }).to_string() + "\n";
    stream.write_all(line.as_bytes()).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// Floods with this, from new connections when the pod ends one. One in three reads what it is sent.
fn flood(path: &PathBuf, bytes: &[u8], over: &AtomicBool) {
    let connect = |_| greeted(path);
    let mut streams: Vec<Option<UnixStream>> = (0..12).map(connect).collect();
    let mut heard = vec![0; 1 << 20];
    while !over.load(Ordering::Relaxed) {
        for (n, slot) in streams.iter_mut().enumerate() {
            let Some(stream) = slot else {
                *slot = greeted(path);
                continue;
            };
            let read = if n % 3 == 0 {
                stream.read(&mut heard).map(drop)
            } else {
                Ok(())
            };
            let blocks = |error: &std::io::Error| error.kind() == ErrorKind::WouldBlock;
            if stream.write(bytes).is_err_and(|error| !blocks(&error))
                || read.is_err_and(|error| !blocks(&error))
            {
                *slot = None;
            }
        }
        // This process's own threads must not take the processor from the pod.
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_is_answered_beside_hostile_ones_in_every_place() {
    let scene = Scene::new(answers(100));
    let mut driver = scene.driver();
    driver.ask("attach", json!({})).unwrap();
    for n in 0..8 {
        let text = format!("{n}{}", "x".repeat(100 * 1024));
        driver
            .ask("input", json!({ "text": text, "cmd_id": n.to_string() }))
            .unwrap();
        scene.settled();
    }
    let mut deaf: Vec<Raw> = (0..15).map(|_| scene.driver()).collect();
    for client in &mut deaf {
        client.send("attach", json!({ "after": 0 })).unwrap();
    }
    let line = |method: &str, params: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params }).to_string() + "\n"
    };
    let pages = line("page", json!({ "before": 1000, "limit": 1000 })).repeat(50);
    let statuses = line("status", json!({})).repeat(100);
    let notes = line("notify", json!({ "text": "", "cmd_id": "n" })).repeat(100);
    let floods = [
        pages,
        statuses,
        notes,
        "{\"jsonrpc\":".to_owned() + &"[".repeat(70_000),
    ];
    let over = AtomicBool::new(false);
    let path = scene.socket();
    let mut times: Vec<Duration> = thread::scope(|scope| {
        for bytes in &floods {
            scope.spawn(|| flood(&path, bytes.as_bytes(), &over));
        }
        let asked = (0..50).map(|_| {
            let began = Instant::now();
            let answer = driver.ask("status", json!({}));
            (began.elapsed(), answer)
        });
        let asked: Vec<_> = asked.collect();
        let input = driver.ask("input", json!({ "text": "work", "cmd_id": "work" }));
        let end = input.and_then(|input| driver.ask("wait", input));
        over.store(true, Ordering::Relaxed);
        assert_eq!(end.unwrap()["outcome"]["outcome"], "done");
        asked
            .into_iter()
            .map(|(time, answer)| answer.map(|_| time).unwrap())
            .collect()
    });
    times.sort_unstable();
    println!(
        "beside 63 hostile clients a status takes {:?}, at most {:?}",
        times[25], times[49]
    );
    assert!(times[49] < BOUND, "{:?}", times[49]);
    scene.close();
}

#[test]
fn a_client_of_another_user_is_refused() {
    let scene = Scene::new(answers(1));
    // Only root can become another user, and only a socket without its protection is reached by one.
    let path = scene.socket();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    for dir in path.ancestors().skip(1).take(2) {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).unwrap();
    }
    let mut other = Command::new("/proc/self/exe");
    other
        .args(["--exact", "hostile::the_other_user", "--nocapture"])
        .env(SOCKET, scene.socket())
        .uid(65_534)
        .gid(65_534);
    match other.output() {
        Ok(done) => {
            let told = String::from_utf8_lossy(&done.stdout);
            assert!(
                told.contains("not_allowed") && told.contains("belongs to another user"),
                "{done:?}"
            );
        }
        Err(error) => println!("skipped: this user cannot become another one: {error}"),
    }
    assert_eq!(
        scene.driver().ask("status", json!({})).unwrap()["state"],
        "idle"
    );
    scene.close();
}

/// Not a test of its own: the other user of the test above.
#[test]
fn the_other_user() {
    let Some(path) = std::env::var_os(SOCKET) else {
        return;
    };
    let mut told = String::new();
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream.read_to_string(&mut told).unwrap();
    println!("{told}");
}
