//! Clients of a live pod that are hostile, slow, or not allowed to change anything.

use crate::live_pods::Held;
use crate::scene::{finish, gone, reached};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
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
        let stream = UnixStream::connect(held.scene.pod("held").join("sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream: BufReader::new(stream), greeted: false }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// A request, and its answer: the result, or the kind of the error.
    fn ask(&mut self, method: &str, params: Value) -> Option<Result<Value, String>> {
        if !self.greeted {
            self.greeted = true;
            self.ask("hello", json!({ "versions": [1], "client": "test", "role": "driver" }))?.unwrap();
        }
        let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string() + "\n";
        self.write(line.as_bytes()).ok()?;
        self.hear().map(|answer| match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["data"]["kind"].as_str().unwrap().to_owned()),
        })
    }

    fn state(&mut self) -> Option<String> {
        Some(self.ask("status", json!({}))?.ok()?["state"].as_str()?.to_owned())
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
    assert!((32..=64).contains(&open), "{open} of 200 connections are open");
    ends(held);
}

#[test]
fn a_client_that_never_reads_costs_its_own_connection() {
    let held = held();
    let mut deaf = Raw::connect(&held);
    assert_eq!(deaf.state().as_deref(), Some("working"));
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "status" }).to_string() + "\n";
    // Answers fill its socket, then the pod stops reading from it.
    deaf.stream.get_mut().set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let taken = (0..200_000).take_while(|_| deaf.write(line.as_bytes()).is_ok()).count();
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
        assert_eq!(client.ask("input", input(id)).unwrap().unwrap()["input"], id);
    }
    let mut other = Raw::connect(&held);
    assert_eq!(other.ask("cancel", json!({ "input": 2, "cmd_id": "c" })).unwrap(), Ok(json!({})));
    let status = other.ask("status", json!({})).unwrap().unwrap();
    let queued: Vec<u64> = status["queued"].as_array().unwrap().iter().map(|q| q["input"].as_u64().unwrap()).collect();
    assert_eq!((queued, &status["state"]), (vec![3, 4], &json!("working")));
    ends(held);
}

#[test]
fn clients_that_wait_leave_room_for_others() {
    let held = held();
    let mut waiting: Vec<Raw> = (0..48).map(|_| Raw::connect(&held)).collect();
    for (id, client) in waiting.iter_mut().enumerate() {
        let input = client.ask("input", input(id)).unwrap().unwrap()["input"].clone();
        let wait = json!({ "jsonrpc": "2.0", "id": 8, "method": "wait", "params": { "input": input } });
        client.write((wait.to_string() + "\n").as_bytes()).unwrap();
        assert_eq!(client.state().as_deref(), Some("working"));
    }
    held.scene.yoi(&["send", "held", "--wait", "more"]).ends(75).says(&["48 clients", "input 50"]);
    held.scene.yoi(&["status", "held"]).ends(0).prints(&["49 inputs wait"]);
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
        full.write_all((answer.to_string() + "\n").as_bytes()).unwrap();
        drop(full);
        drop(listener.accept().unwrap());
    });
    held.scene.yoi(&["pause", "held"]).ends(75).says(&["all busy"]);
    let still = format!("the connection to held was closed; the process {} still runs", held.run.id());
    held.scene.yoi(&["pause", "held"]).ends(75).says(&[&still, "yoi status held"]);
    serving.join().unwrap();
    ends(held);
}

#[test]
fn a_process_that_a_pod_started_may_only_look() {
    let held = held();
    let with_mark = |args: &[&str]| {
        let mut command = held.scene.command(args);
        command.env("YOI_CALL", "s-1/1/c1");
        finish(command.spawn().unwrap())
    };
    with_mark(&["status", "held"]).ends(0).prints(&["working"]);
    for args in [&["send", "held", "x"][..], &["stop", "held"], &["pause", "held"], &["cancel", "held"]] {
        with_mark(args)
            .ends(3)
            .says(&["can only read the status of pods: it was started by a pod", "in your own terminal"]);
    }
    // Nor its descendants, which do not have the mark themselves.
    let plain = held.scene.command(&["stop", "held"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "env -u YOI_CALL \"$@\"; echo $?", "sh"]).arg(plain.get_program()).args(plain.get_args());
    shell
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("YOI_CALL", "s-1/1/c1");
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(finish(shell.spawn().unwrap()).ends(0).out, "3\n");
    ends(held);
}

#[test]
fn a_command_of_a_pod_does_not_stop_its_pod() {
    let scene = crate::scene::Scene::new();
    crate::scene::fifo(&scene.file("started"));
    let yoi = env!("CARGO_BIN_EXE_yoi");
    let state = scene.path("state");
    let command =
        format!("unset YOI_CALL; XDG_STATE_HOME={} {yoi} stop p; echo code $?; echo $$ > started", state.display());
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
    let model = scene.script("stops.jsonl", &[call, json!({ "text": "done" })]);
    let args = ["run", "--pod", "p", "-m", &model, "--sandbox", "off", "--allow", "Bash", "go"];
    let run = scene.command(&args).spawn().unwrap();
    let pid = reached(&scene.file("started"));
    assert_eq!(finish(run).ends(0).out, "done\n");
    assert!(gone(pid.trim()));
    let output = fs::read_to_string(scene.log_file("p")).unwrap();
    assert!(output.contains("can only read the status of pods") && output.contains("code 3"), "{output}");
}
