//! Clients of a live pod that are hostile, slow, or not allowed to change anything.

use crate::live_pods::Held;
use crate::scene::{finish, gone, reached};
use protocol::method::Method;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A connection that speaks for itself.
struct Raw {
    stream: BufReader<UnixStream>,
    greeted: bool,
}

impl Raw {
    fn connect(held: &Held) -> Self {
        Self::at(&held.scene.pod("held").join("sock"))
    }

    fn at(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Self {
            stream: BufReader::new(stream),
            greeted: false,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stream
            .read_line(&mut line)
            .ok()
            .filter(|read| *read > 0)?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// A request, and its answer: the result, or the kind of the error.
    fn ask(&mut self, method: &str, params: Value) -> Option<Result<Value, String>> {
        if !self.greeted {
            self.greeted = true;
            self.ask(
                "hello",
                json!({ "versions": [1], "client": "test", "role": "driver" }),
            )?
            .unwrap();
        }
        let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
            .to_string()
            + "\n";
        self.write(line.as_bytes()).ok()?;
        let answer =
            std::iter::from_fn(|| self.hear()).find(|message| message.get("method").is_none())?;
        Some(match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["data"]["kind"].as_str().unwrap().to_owned()),
        })
    }

    fn state(&mut self) -> Option<String> {
        Some(
            self.ask("status", json!({}))?.ok()?["state"]
                .as_str()?
                .to_owned(),
        )
    }
}

fn ends(held: Held) {
    held.release();
    let done = finish(held.run).ends(0);
    assert_eq!(done.out, "done\n");
    held.scene.sound("held");
}

fn held() -> Held {
    Held::start(&[json!({ "text": "done" })])
}

#[test]
fn a_line_without_an_end_costs_its_own_connection() {
    let held = held();
    let mut flood = Raw::connect(&held);
    let piece = vec![b'x'; 64 * 1024];
    let written = (0..160).take_while(|_| flood.write(&piece).is_ok()).count();
    assert!(written < 160, "10 MB without a line end were taken");
    let mut garbage = Raw::connect(&held);
    garbage.write(b"\n\0\xff{\n").unwrap();
    assert_eq!(garbage.hear().unwrap()["error"]["data"]["kind"], "parse");
    assert_eq!(Raw::connect(&held).state().as_deref(), Some("working"));
    ends(held);
}

#[test]
fn idle_clients_give_way_to_new_ones() {
    let held = held();
    let mut idle: Vec<Raw> = (0..200).map(|_| Raw::connect(&held)).collect();
    assert_eq!(Raw::connect(&held).state().as_deref(), Some("working"));
    held.scene.yoi(&["status", "held"]).ends(0);
    let open = idle.iter_mut().rev().filter_map(Raw::state).count();
    assert!(
        (32..=64).contains(&open),
        "{open} of 200 connections are open"
    );
    ends(held);
}

#[test]
fn a_client_that_never_reads_costs_its_own_connection() {
    let held = held();
    let mut deaf = Raw::connect(&held);
    assert_eq!(deaf.state().as_deref(), Some("working"));
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "status" }).to_string() + "\n";
    // Answers fill its socket, then the pod stops reading from it.
    deaf.stream
        .get_mut()
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let taken = (0..200_000)
        .take_while(|_| deaf.write(line.as_bytes()).is_ok())
        .count();
    assert!(taken < 200_000);
    assert_eq!(Raw::connect(&held).state().as_deref(), Some("working"));
    ends(held);
}

fn input(id: usize) -> Value {
    json!({ "text": "x", "cmd_id": format!("input {id}") })
}

#[test]
fn cancelling_an_input_that_waits_withdraws_it() {
    let held = held();
    let mut client = Raw::connect(&held);
    for id in 2..=4 {
        assert_eq!(
            client.ask("input", input(id)).unwrap().unwrap()["input"],
            id
        );
    }
    let mut other = Raw::connect(&held);
    assert_eq!(
        other
            .ask("cancel", json!({ "input": 2, "cmd_id": "c" }))
            .unwrap(),
        Ok(json!({}))
    );
    let status = other.ask("status", json!({})).unwrap().unwrap();
    let queued: Vec<u64> = status["queued"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| q["input"].as_u64().unwrap())
        .collect();
    assert_eq!((queued, &status["state"]), (vec![3, 4], &json!("working")));
    ends(held);
}

#[test]
fn clients_that_wait_leave_room_for_others() {
    let held = held();
    let mut waiting: Vec<Raw> = (0..48).map(|_| Raw::connect(&held)).collect();
    for (id, client) in waiting.iter_mut().enumerate() {
        let input = client.ask("input", input(id)).unwrap().unwrap()["input"].clone();
        let wait =
            json!({ "jsonrpc": "2.0", "id": 8, "method": "wait", "params": { "input": input } });
        client.write((wait.to_string() + "\n").as_bytes()).unwrap();
        assert_eq!(client.state().as_deref(), Some("working"));
    }
    held.scene
        .yoi(&["send", "held", "--wait", "more"])
        .ends(75)
        .says(&["48 clients", "input 50"]);
    held.scene
        .yoi(&["status", "held"])
        .ends(0)
        .prints(&["49 inputs wait", "39 more; --json lists them"]);
    // A client that leaves gives its place back.
    waiting.pop();
    let mut next = Raw::connect(&held);
    while next.ask("attach", json!({})).unwrap() == Err("busy".to_owned()) {}
    held.scene.yoi(&["stop", "held", "--now"]).ends(0);
    finish(held.run).ends(143);
}

#[test]
fn a_client_whose_connection_is_closed_is_told_why() {
    let held = held();
    let path = held.scene.pod("held").join("sock");
    fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    let error = json!({ "code": -32003, "message": "all busy" });
    let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    let serving = thread::spawn(move || {
        let (mut full, _) = listener.accept().unwrap();
        full.write_all((answer.to_string() + "\n").as_bytes())
            .unwrap();
        drop(full);
        drop(listener.accept().unwrap());
    });
    held.scene
        .yoi(&["pause", "held"])
        .ends(75)
        .says(&["all busy"]);
    let still = format!(
        "the connection to held was closed; the process {} still runs",
        held.run.id()
    );
    held.scene
        .yoi(&["pause", "held"])
        .ends(75)
        .says(&[&still, "yoi status held"]);
    serving.join().unwrap();
    ends(held);
}

#[test]
fn a_process_that_a_pod_started_may_only_look() {
    let held = held();
    let with_mark = |args: &[&str]| {
        let mut command = held.scene.command(args);
        command.env("YOI_CALL", "another-pod/1/c1");
        finish(command.spawn().unwrap())
    };
    with_mark(&["status", "held"]).ends(0).prints(&["working"]);
    for args in [
        &["send", "held", "x"][..],
        &["stop", "held"],
        &["pause", "held"],
        &["cancel", "held"],
    ] {
        with_mark(args).ends(3).says(&[
            "can only read the status of pods: it was started by a pod",
            "in your own terminal",
        ]);
    }
    // Nor its descendants, which do not have the mark themselves.
    let plain = held.scene.command(&["stop", "held"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "env -u YOI_CALL \"$@\"; echo $?", "sh"])
        .arg(plain.get_program())
        .args(plain.get_args());
    shell
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("YOI_CALL", "another-pod/1/c1");
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    assert_eq!(finish(shell.spawn().unwrap()).ends(0).out, "3\n");
    ends(held);
}

#[test]
fn a_command_of_a_pod_does_not_stop_its_pod() {
    let scene = crate::scene::Scene::new();
    crate::scene::fifo(&scene.file("started"));
    let yoi = env!("CARGO_BIN_EXE_yoi");
    let state = scene.path("state");
    let command = format!(
        "unset YOI_CALL; XDG_STATE_HOME={} {yoi} stop p; echo code $?; echo $$ > started",
        state.display()
    );
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
    let model = scene.script("stops.jsonl", &[call, json!({ "text": "done" })]);
    let args = [
        "run",
        "--pod",
        "p",
        "-m",
        &model,
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "go",
    ];
    let run = scene.command(&args).spawn().unwrap();
    let pid = reached(&scene.file("started"));
    assert_eq!(finish(run).ends(0).out, "done\n");
    assert!(gone(pid.trim()));
    let output = fs::read_to_string(scene.log_file("p")).unwrap();
    assert!(
        output.contains("can only read the status of pods") && output.contains("code 3"),
        "{output}"
    );
}

/// Whatever a pod of another version answers, its commands say what to do, and it can be stopped.
#[test]
fn a_pod_whose_answers_cannot_be_read_is_stopped_by_a_signal() {
    let version =
        json!({ "code": -32002, "message": "version 9 only", "data": { "kind": "version" } });
    let another = json!({ "jsonrpc": "2.0", "id": 1, "error": version }).to_string();
    let later = json!({ "version": 9, "pod": "held", "session": "s", "program": "9", "role": "driver", "methods": [] });
    let later = json!({ "jsonrpc": "2.0", "id": 1, "result": later }).to_string();
    let runs = "held runs in another version of yoi";
    let cannot = "held sent data that this version of yoi cannot read: ";
    for (answer, why) in [
        (another.as_str(), runs),
        (later.as_str(), runs),
        ("{\"hello\":1}", cannot),
        ("\u{1b}[2J", cannot),
    ] {
        let held = held();
        let path = held.scene.pod("held").join("sock");
        fs::remove_file(&path).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        let line = answer.to_owned() + "\n";
        let serving = thread::spawn(move || {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = String::new();
                BufReader::new(&stream).read_line(&mut hello).unwrap();
                stream.write_all(line.as_bytes()).unwrap();
            }
        });
        let help = "help: `yoi stop held` ends its process; `yoi start held` then starts it in this version";
        held.scene
            .yoi(&["send", "held", "x"])
            .ends(69)
            .says(&[why, help]);
        let process = format!("process   {}: {why}", held.run.id());
        held.scene.yoi(&["status", "held"]).ends(0).prints(&[
            "state     working",
            &process,
            "`yoi stop held`",
        ]);
        held.scene
            .yoi(&["stop", "held"])
            .ends(0)
            .prints(&["held is stopped"]);
        serving.join().unwrap();
        finish(held.run).ends(143);
        held.scene.sound("held");
    }
}

#[test]
fn a_key_that_no_pod_takes_is_a_usage_error() {
    let held = held();
    for key in [String::new(), "k".repeat(129)] {
        let refused = held
            .scene
            .yoi(&["send", "held", "x", "--key", &key])
            .ends(2);
        refused.says(&["--key", "the value must have 1 to 128 bytes"]);
    }
    held.scene
        .yoi(&["send", "held", "x", "--key", &"k".repeat(128)])
        .ends(0);
    held.scene
        .yoi(&["status", "held"])
        .ends(0)
        .prints(&["1 input waits"]);
    ends(held);
}

/// The socket and the file for the results of a client that a command of a pod starts.
const SOCKET: &str = "YOI_TEST_SOCKET";
const RESULTS: &str = "YOI_TEST_RESULTS";

#[test]
fn a_command_of_a_pod_only_looks_whatever_it_asks_for() {
    let scene = crate::scene::Scene::new();
    let exe = std::env::current_exe().unwrap();
    let client = format!(
        "{SOCKET}={} {RESULTS}=$name {} --exact live_pod_clients::every_method > $name.out 2>&1",
        scene.pod("p").join("sock").display(),
        exe.display()
    );
    // With the mark, without it, and as an orphan that shed everything.
    let command = format!(
        "name=marked; {client}; unset YOI_CALL; name=bare; {client}; \
         name=orphan; ( ( {client} ) & ); for n in $(seq 300); do test -e orphan && break; sleep 0.1; done"
    );
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
    let model = scene.script("asks.jsonl", &[call, json!({ "text": "done" })]);
    let args = [
        "run",
        "--pod",
        "p",
        "-m",
        &model,
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "go",
    ];
    assert_eq!(scene.yoi(&args).ends(0).out, "done\n");
    let looks = [
        "hello",
        "attach",
        "page",
        "status",
        "features",
        "wait",
        "approvals",
        "past_calls",
        "preview_call",
        "tools",
    ];
    for name in ["marked", "bare", "orphan"] {
        let results: Value = serde_json::from_slice(&fs::read(scene.file(name)).unwrap()).unwrap();
        assert_eq!(results["role"], "viewer", "{name}");
        for method in Method::NAMES {
            let refused = results[method] == "not_allowed";
            assert_eq!(
                refused,
                !looks.contains(method),
                "{name} {method}: {}",
                results[method]
            );
        }
        assert_eq!(
            (&results["status"], &results["attach"]),
            (&json!("done"), &json!("done")),
            "{name}"
        );
    }
    let journal = fs::read_to_string(scene.log_file("p")).unwrap();
    let kinds = [
        "input_queued",
        "input_withdrawn",
        "notification_queued",
        "suspended",
        "resumed",
        "pinned",
    ];
    let count = |kind: &str| {
        journal
            .lines()
            .filter(|line| line.contains(&format!("\"k\":\"{kind}\"")))
            .count()
    };
    assert_eq!(kinds.map(count), [1, 0, 0, 0, 0, 0]);
}

/// Not a test of its own: the client that the test above has a command start.
#[test]
fn every_method() {
    let (Some(socket), Some(results)) = (std::env::var_os(SOCKET), std::env::var_os(RESULTS))
    else {
        return;
    };
    let mut client = Raw::at(Path::new(&socket));
    client.greeted = true;
    let hello = client.ask(
        "hello",
        json!({ "versions": [1], "client": "command", "role": "driver" }),
    );
    let mut told = serde_json::Map::new();
    told.insert("role".to_owned(), hello.unwrap().unwrap()["role"].clone());
    for method in Method::NAMES {
        let params = json!({
            "versions": [1], "client": "again", "text": "x", "input": 99, "to": 1, "before": 9, "limit": 3, "tool": "x",
            "cmd_id": method, "id": 1, "decision": "allow", "arguments_digest": "", "rules": [1],
            "pin": 1, "job": 1, "run": 1, "data": ""
        });
        let kind = client
            .ask(method, params)
            .unwrap()
            .map_or_else(|kind| kind, |_| "done".to_owned());
        told.insert((*method).to_owned(), kind.into());
    }
    // The command waits for the whole file.
    let part = Path::new(&results).with_extension("part");
    fs::write(&part, Value::Object(told).to_string()).unwrap();
    fs::rename(part, results).unwrap();
}
