//! Commands on a pod whose process runs: looking, sending, stopping.

use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Child;

/// A pod of this test, in a run whose command waits at a gate.
pub(crate) struct Held {
    pub(crate) scene: Scene,
    pub(crate) run: Child,
}

impl Held {
    /// The run's model asks for the waiting command, then gives these answers.
    pub(crate) fn start(answers: &[Value]) -> Self {
        let scene = Scene::new();
        fifo(&scene.file("started"));
        fifo(&scene.file("gate"));
        let command = "echo $$ > started; read line < gate; echo through";
        let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
        let model = scene.script("held.jsonl", &[&[call], answers].concat());
        let run = scene
            .command(&["run", "--pod", "held", "-m", &model, "go"])
            .spawn()
            .unwrap();
        reached(&scene.file("started"));
        Self { scene, run }
    }

    /// Lets the command go on.
    pub(crate) fn release(&self) {
        fs::write(self.scene.file("gate"), "on\n").unwrap();
    }

    fn status(&self) -> Value {
        self.scene.yoi(&["status", "held", "--json"]).ends(0).json()
    }
}

#[test]
fn the_socket_is_private_and_goes_with_its_pod() {
    let held = Held::start(&[json!({ "text": "done" })]);
    let dir = held.scene.pod("held");
    assert_eq!(
        fs::metadata(dir.join("sock")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
        0o700
    );
    held.release();
    finish(held.run).ends(0);
    assert!(!dir.join("sock").exists());
    assert!(!dir.join("sock.new").exists());
}

#[test]
fn a_socket_that_a_killed_process_left_is_replaced() {
    let held = Held::start(&[json!({ "text": "done" })]);
    let path = held.scene.pod("held").join("sock");
    let before = fs::metadata(&path).unwrap().ino();
    signal(held.run.id(), Signal::KILL);
    finish(held.run);
    assert!(path.exists());
    held.scene.yoi(&["status", "held"]).ends(0).prints(&[
        "crashed; `yoi start held` starts it again",
        "crash     its process was killed",
    ]);
    held.scene
        .yoi(&["send", "held", "x"])
        .ends(69)
        .says(&["held is not running", "yoi start held"]);
    let model = format!("scripted:{}", held.scene.path("held.jsonl").display());
    let run = held
        .scene
        .command(&["run", "--pod", "held", "-m", &model, "again"])
        .spawn()
        .unwrap();
    let held = Held {
        scene: held.scene,
        run,
    };
    // The script goes on with its last answer, so this run ends by itself.
    let done = finish(held.run).ends(0);
    assert_eq!(done.out, "done\n");
    assert!(!path.exists(), "inode {before} was replaced and removed");
}

#[test]
fn status_tells_what_a_pod_does_and_did() {
    let held = Held::start(&[json!({ "text": "done" })]);
    let status = held.status();
    assert_eq!(
        (&status["state"], &status["turn"]),
        (&json!("working"), &json!(1))
    );
    assert_eq!(status["pid"], held.run.id());
    assert_eq!(status["sandbox"], "workspace-write");
    assert!(
        status["calls"][0]
            .as_str()
            .unwrap()
            .starts_with("Bash echo"),
        "{status}"
    );
    let text = held.scene.yoi(&["status", "hel"]).ends(0);
    text.prints(&[
        "state     working (turn 1, step 1)",
        "Bash echo",
        "process   ",
        "usage     1 turn, 1 step",
    ]);
    held.scene.yoi(&["ls"]).ends(0).prints(&["working"]);
    held.scene.yoi(&["log", "held"]).ends(0).prints(&["> go"]);
    held.scene.yoi(&["diff", "held"]).ends(0);
    held.scene.yoi(&["verify", "held"]).ends(0);
    held.scene.yoi(&["features", "held"]).ends(0);
    held.release();
    let scene = held.scene;
    finish(held.run).ends(0);
    let status = scene.yoi(&["status", "held", "--json"]).ends(0).json();
    assert_eq!(
        (&status["state"], &status["pid"]),
        (&json!("stopped"), &Value::Null)
    );
    assert_eq!(status["last_outcome"]["outcome"], "done");
    scene.yoi(&["status", "nobody"]).ends(2);
}

#[test]
fn a_process_that_hangs_costs_the_commands_a_bounded_time() {
    let held = Held::start(&[json!({ "text": "done" })]);
    signal(held.run.id(), Signal::STOP);
    // What its files tell.
    held.scene.yoi(&["ls"]).ends(0).prints(&["held", "working"]);
    let help = format!("kill -CONT {}", held.run.id());
    let silent = format!("process   {} does not answer", held.run.id());
    held.scene
        .yoi(&["status", "held"])
        .ends(0)
        .prints(&["state     working", &silent, &help]);
    held.scene.yoi(&["pause", "held"]).ends(75).says(&[
        "held does not answer",
        &help,
        "yoi stop held --now",
    ]);
    held.scene
        .yoi(&["stop", "held"])
        .ends(0)
        .prints(&["held is stopped"]);
    finish(held.run).ends(143);
    assert_eq!(held.scene.sound("held"), 1);
}

#[test]
fn a_pod_without_a_socket_is_stopped_by_a_signal() {
    let held = Held::start(&[json!({ "text": "done" })]);
    fs::remove_file(held.scene.pod("held").join("sock")).unwrap();
    held.scene
        .yoi(&["stop", "held", "--now"])
        .ends(0)
        .prints(&["held is stopped"]);
    finish(held.run).ends(143);
}

#[test]
fn processes_are_listed_with_their_calls() {
    let held = Held::start(&[json!({ "text": "done" })]);
    let listed = held.scene.yoi(&["ps", "held", "--json"]).ends(0).json();
    let listed = listed.as_array().unwrap();
    assert_eq!(
        (&listed[0]["owner"], &listed[0]["pid"]),
        (&json!("host"), &json!(held.run.id()))
    );
    let shell = listed
        .iter()
        .find(|row| row["command"].as_str().unwrap().contains("read line"))
        .unwrap();
    assert_eq!(shell["owner"], "c00000001");
    assert!(shell["memory"].as_u64().unwrap() > 0);
    held.scene
        .yoi(&["ps"])
        .ends(0)
        .prints(&["POD", "held", "host", "c00000001"]);
    held.release();
    let scene = held.scene;
    finish(held.run).ends(0);
    scene.yoi(&["ps"]).ends(0).prints(&["no pod is running"]);
    assert_eq!(
        scene.yoi(&["ps", "held", "--json"]).ends(0).json(),
        json!([])
    );
}

#[test]
fn a_live_pod_is_not_removed_and_stop_ends_it() {
    let held = Held::start(&[json!({ "text": "done" })]);
    held.scene.yoi(&["rm", "held"]).ends(75).says(&[
        "in use by process",
        "`yoi stop held` stops the process that uses it",
    ]);
    held.scene
        .yoi(&["pin", "held", "--remove", "3"])
        .ends(2)
        .says(&["there is no pin 3", "`yoi pin held` lists the pins"]);
    held.scene
        .yoi(&["stop", "held"])
        .ends(0)
        .prints(&["held is stopped"]);
    finish(held.run).ends(143);
    let scene = held.scene;
    scene
        .yoi(&["stop", "held"])
        .ends(0)
        .prints(&["held is not running"]);
    scene.yoi(&["ls"]).ends(0).prints(&["cancelled"]);
    assert_eq!(scene.sound("held"), 1);
    scene.yoi(&["rm", "held"]).ends(0);
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn stopping_now_waits_for_no_tool() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    // Asked to end, it stays.
    let command = "trap '' TERM; echo $$ > started; while :; do :; done";
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } }] });
    let model = scene.script("endless.jsonl", &[call, json!({ "text": "x" })]);
    let run = scene
        .command(&["run", "--pod", "p", "-m", &model, "go"])
        .spawn()
        .unwrap();
    let pid = reached(&scene.file("started"));
    scene
        .yoi(&["stop", "p", "--now"])
        .ends(0)
        .prints(&["p is stopped"]);
    finish(run).ends(143);
    assert!(gone(pid.trim()), "no child survives");
}

#[test]
fn steered_inputs_join_the_running_turn() {
    let held = Held::start(&[json!({ "text": "done" })]);
    let sent = held
        .scene
        .yoi(&["send", "held", "--steer", "--key", "k1", "use less"])
        .ends(0);
    assert_eq!(sent.out, "2\n");
    // The same key is the same input.
    assert_eq!(
        held.scene
            .yoi(&["send", "held", "--steer", "--key", "k1", "use less"])
            .ends(0)
            .out,
        "2\n"
    );
    let queued = held.status()["queued"].clone();
    assert_eq!(
        queued,
        json!([{ "input": 2, "mode": "steer", "text": "use less" }])
    );
    held.release();
    let scene = held.scene;
    finish(held.run).ends(0);
    let consumed: Vec<_> = scene
        .records("held")
        .into_iter()
        .filter(|record| record["k"] == "input_consumed")
        .collect();
    assert_eq!(consumed.len(), 2);
    assert_eq!(
        scene
            .records("held")
            .iter()
            .filter(|record| record["k"] == "turn_started")
            .count(),
        1
    );
    scene.sound("held");
}

#[test]
fn an_input_of_stdin_and_one_that_is_too_long() {
    let held = Held::start(&[json!({ "text": "done" })]);
    assert_eq!(
        held.scene
            .fed(
                &["send", "held", "--steer", "-", "--json"],
                b"from a file\n"
            )
            .ends(0)
            .json()["input"],
        2
    );
    let long = "x".repeat(2 << 20);
    held.scene
        .fed(&["send", "held", "-"], long.as_bytes())
        .ends(65)
        .says(&["too long", "save it to a file"]);
    held.scene.yoi(&["send", "held", " "]).ends(2);
    assert_eq!(held.status()["queued"][0]["text"], "from a file\n");
    held.release();
    finish(held.run).ends(0);
}
