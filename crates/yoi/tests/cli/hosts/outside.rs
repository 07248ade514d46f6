//! What happens around a pod while it works: it loses its terminal, its program file, its project for a while, or time. It
//! goes on, and answers afterwards.

use super::lives::stat;
use super::{Host, newest, until};
use crate::scene::{Scene, fifo, finish, reached, signal, terminal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A pod whose first turn has a command that waits at a gate.
struct Around {
    scene: Scene,
    model: String,
}

impl Around {
    fn new() -> Self {
        let scene = Scene::new();
        fifo(&scene.file("started"));
        fifo(&scene.file("gate"));
        let bash = |command: &str| json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } }] });
        let waits = bash("echo $$ > started; read line < gate; echo through");
        let more = bash("echo more");
        let model = scene.script(
            "s.jsonl",
            &[
                waits,
                json!({ "text": "one" }),
                more,
                json!({ "text": "two" }),
            ],
        );
        Self { scene, model }
    }

    /// The copy of a program with the arguments and the environment of this scene.
    fn copy(&self, program: &Path, args: &[&str]) -> Command {
        let plain = self.scene.command(args);
        let mut copy = Command::new(program);
        copy.args(args).env_clear().envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        copy.current_dir(self.scene.path("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        copy
    }

    /// The waiting command goes on, and so does the turn; then there is another one with a command.
    fn goes_on(&self, host: Host) {
        fs::write(self.scene.file("gate"), "on\n").unwrap();
        until("the turn has ended", || {
            newest(&self.scene, "turn_finished").is_some()
        });
        let send = self
            .scene
            .command(&["send", "p", "--wait", "more"])
            .current_dir(self.scene.path("home"))
            .spawn();
        assert_eq!(finish(send.unwrap()).ends(0).out, "two\n");
        let results: Vec<Value> = self
            .scene
            .records("p")
            .into_iter()
            .filter(|r| r["k"] == "tool_finished")
            .collect();
        assert_eq!(results.len(), 2);
        for result in results {
            assert_eq!(result["outcome"]["status"], "ok", "{result}");
        }
        host.end(Signal::TERM);
        self.scene.sound("p");
    }
}

#[test]
fn a_terminal_that_closes_is_nothing_to_the_pod_that_was_started_there() {
    let around = Around::new();
    let (shows, end) = terminal();
    let answer = around.scene.path("answer");
    // The shell has the terminal, as one that a person opens; it dies with it.
    let yoi = PathBuf::from(env!("CARGO_BIN_EXE_yoi"));
    let start = format!(
        "{} start p go -m {} --json > {}; read line",
        yoi.display(),
        around.model,
        answer.display()
    );
    let mut shell = around.copy(Path::new("setsid"), &["--ctty", "sh", "-c", &start]);
    shell
        .stdin(end.try_clone().unwrap())
        .stdout(end.try_clone().unwrap())
        .stderr(end);
    let mut running = shell.spawn().unwrap();
    drop(shell);
    reached(&around.scene.file("started"));
    until("the start has ended", || {
        fs::read_to_string(&answer).is_ok_and(|text| text.ends_with('\n'))
    });
    let started: Value = serde_json::from_str(&fs::read_to_string(&answer).unwrap()).unwrap();
    let host = Host {
        pid: u32::try_from(started["pid"].as_u64().unwrap()).unwrap(),
    };
    until("the shell has the terminal alone", || {
        stat(running.id())[5] == running.id().to_string()
    });
    drop(shows);
    assert_eq!(running.wait().unwrap().signal(), Some(Signal::HUP.as_raw()));
    around.goes_on(host);
    let log = fs::read_to_string(around.scene.pod("p").join("host.log")).unwrap();
    assert!(
        !log.contains("read again"),
        "the signal reached the pod, too: {log}"
    );
}

#[test]
fn a_program_file_that_is_replaced_is_still_the_program_of_a_live_pod() {
    let around = Around::new();
    let copy = around.scene.own_program();
    let mut start = around.copy(&copy, &["start", "p", "go", "-m", &around.model, "--json"]);
    let host = Host::of(&finish(start.spawn().unwrap()).ends(0));
    reached(&around.scene.file("started"));
    fs::write(around.scene.path("new"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::rename(around.scene.path("new"), &copy).unwrap();
    assert!(
        fs::read_link(host.proc("exe"))
            .unwrap()
            .display()
            .to_string()
            .ends_with("(deleted)")
    );
    around.goes_on(host);
}

#[test]
fn a_pod_that_is_stopped_for_a_while_goes_on() {
    let around = Around::new();
    let host = Host::start(&around.scene, &["go", "-m", &around.model]);
    reached(&around.scene.file("started"));
    signal(host.pid, Signal::STOP);
    until("it is stopped", || stat(host.pid)[0] == "T");
    thread::sleep(Duration::from_millis(super::pause()));
    signal(host.pid, Signal::CONT);
    around.goes_on(host);
}

#[test]
fn a_project_that_was_away_for_a_while_is_worked_in_again() {
    let around = Around::new();
    let host = Host::start(&around.scene, &["go", "-m", &around.model]);
    reached(&around.scene.file("started"));
    let here = around.scene.path("project");
    let away = around.scene.path("away");
    fs::rename(&here, &away).unwrap();
    let elsewhere = |args: &[&str]| {
        finish(
            around
                .scene
                .command(args)
                .current_dir(around.scene.path("home"))
                .spawn()
                .unwrap(),
        )
    };
    elsewhere(&["start", "p"])
        .ends(0)
        .prints(&["p is already running"]);
    assert_eq!(
        elsewhere(&["status", "p", "--json"]).ends(0).json()["state"],
        "working"
    );
    fs::rename(&away, &here).unwrap();
    around.goes_on(host);
}
