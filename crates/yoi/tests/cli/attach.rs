//! `yoi attach`: typing, leaving, coming back, and what an attached client sees of a pod that is killed.

use crate::endpoint::{Endpoint, Reply, text};
use crate::hosts::{Host, until};
use crate::scene::{Done, Scene, fifo, finish, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use session_store::{EncodeError, Frames, Options, Records, Session};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How long a client may take for all that it does in a test.
const HANGS: Duration = Duration::from_secs(30);

/// An attached client.
struct Attached {
    child: Child,
    typing: ChildStdin,
    lines: BufReader<ChildStdout>,
    seen: Vec<String>,
    /// A client that hangs is killed, and its test fails.
    _watched: mpsc::Sender<()>,
}

impl Attached {
    fn start(scene: &Scene, args: &[&str]) -> Self {
        Self::spawn(&mut scene.command(&[&["attach", "--plain"], args].concat()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let typing = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let (pid, (_watched, told)) = (child.id(), mpsc::channel());
        thread::spawn(move || {
            if told.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
                signal(pid, Signal::KILL);
            }
        });
        let mut attached = Self {
            child,
            typing,
            lines,
            seen: Vec::new(),
            _watched,
        };
        attached.until("[attached to p");
        attached
    }

    fn types(&mut self, line: &str) -> &mut Self {
        writeln!(self.typing, "{line}").unwrap();
        self
    }

    /// Reads up to the next line that has these words.
    #[track_caller]
    fn until(&mut self, words: &str) -> &mut Self {
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "no `{words}` in {:#?}",
                self.seen
            );
            let found = line.contains(words);
            self.seen.push(line);
            if found {
                return self;
            }
        }
    }

    /// Ends standard input; gives the rest.
    fn leaves(mut self) -> (Vec<String>, Done) {
        drop(self.typing);
        self.seen
            .extend(self.lines.lines().map(|line| line.unwrap() + "\n"));
        (self.seen, finish(self.child))
    }
}

/// What is not in brackets.
fn transcript(seen: &[String]) -> Vec<&str> {
    seen.iter()
        .filter(|line| !line.starts_with('['))
        .map(|line| line.trim_end_matches('\n'))
        .collect()
}

/// A command that says that it runs, and waits at a gate.
fn waiting(scene: &Scene) -> Value {
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let command = "echo $$ > started; read line < gate; echo through";
    json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] })
}

#[test]
fn a_line_with_a_sign_runs_as_a_command() {
    let scene = Scene::new();
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &[])]);
    let mut client = Attached::start(&scene, &["p"]);
    client.types("!");
    client
        .types("! echo out")
        .until("[input 1 is accepted]")
        .until("> ! echo out")
        .until("• c00000001 Bash");
    client.until("out").until("── turn 1: done");
    let (_, done) = client.leaves();
    assert!(
        done.ends(2)
            .err
            .contains("`!` needs a command, as in `! ls`")
    );
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn typed_lines_are_inputs_and_leaving_changes_nothing() {
    let scene = Scene::new();
    let answers = [
        waiting(&scene),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
    ];
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &answers)]);
    let mut client = Attached::start(&scene, &["p"]);
    client
        .types("first")
        .until("[input 1 is accepted]")
        .until("> first")
        .until("• c00000001 Bash");
    reached(&scene.file("started"));
    client
        .types("/pause")
        .until("p will be held before its next request")
        .until("! held: ")
        .types(" /second");
    client
        .until("[input 2 is accepted]")
        .until("[p will be held before its next request: ")
        .types("/steer use less")
        .until("[input 3 is accepted]");
    client
        .types("/status")
        .until("state     working")
        .until("queue     2 inputs wait");
    client.types("/help").until("/steer INPUT").types("/detach");
    let (first, done) = client.leaves();
    assert_eq!(first.last().unwrap(), "[detached: p keeps running]\n");
    assert_eq!(done.ends(0).err, "");
    assert!(!host.is_gone());
    // The working directory names the pod.
    let mut client = Attached::start(&scene, &[]);
    client
        .until("[p is held: ")
        .types("/resume")
        .until("[p is resumed]");
    fs::write(scene.file("gate"), "on\n").unwrap();
    client
        .until("> use less")
        .until("one")
        .until("── turn 1: done")
        .until("> /second")
        .until("two")
        .until("── turn 2: done");
    client
        .types("/cancel")
        .until("[p has no running turn; nothing changed]");
    let (second, done) = client.leaves();
    assert_eq!(
        (second.last().unwrap().as_str(), done.ends(0).err),
        ("[detached: p keeps running]\n", String::new())
    );
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let log: Vec<&str> = log.lines().collect();
    assert_eq!(
        transcript(&second),
        log,
        "the page and what followed are the whole transcript"
    );
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_killed_pod_that_starts_again_leaves_no_gap() {
    let scene = Scene::new();
    let answers = [
        waiting(&scene),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
    ];
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &answers)]);
    let mut a = Attached::start(&scene, &["p"]);
    let mut b = Attached::start(&scene, &["p"]);
    a.types("first").until("• c00000001 Bash");
    b.until("• c00000001 Bash");
    reached(&scene.file("started"));
    host.end(Signal::KILL);
    for client in [&mut a, &mut b] {
        client.until("[the connection to p was lost; connecting again]");
        client.until("[p crashed: its process was killed");
    }
    a.types("second");
    let host = Host::start(&scene, &[]);
    for client in [&mut a, &mut b] {
        client
            .until(&format!("[p was started again (process {})]", host.pid))
            .until("restored after");
        client.until("> second").until("── turn 3: done");
    }
    let ((a, done_a), (b, done_b)) = (a.leaves(), b.leaves());
    assert!(a.contains(&"[input 2 is accepted]\n".to_owned()));
    done_a.ends(0);
    done_b.ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let log: Vec<&str> = log.lines().collect();
    assert_eq!((transcript(&a), transcript(&b)), (log.clone(), log));
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn the_end_of_the_pod_ends_it_and_ctrl_c_only_detaches() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &["-m", &scene.script("s.jsonl", &[json!({ "text": "one" })])],
    );
    let interrupted = Attached::start(&scene, &["p"]);
    signal(interrupted.child.id(), Signal::INT);
    let (seen, done) = interrupted.leaves();
    assert_eq!(seen.last().unwrap(), "[detached: p keeps running]\n");
    done.ends(0);
    let mut client = Attached::start(&scene, &["p"]);
    client.types("go").until("── turn 1: done");
    scene.yoi(&["stop", "p"]).ends(0);
    client.until("[p has ended; `yoi start p` starts it again]");
    client.leaves().1.ends(0);
    until("the host has ended", || host.is_gone());
    scene
        .yoi(&["attach", "p"])
        .ends(69)
        .says(&["p is not running", "yoi start p"]);
    scene
        .yoi(&["attach", "--plain"])
        .ends(69)
        .says(&["no pod of this directory is running"]);
}

/// Each of it meant another command, or the full screen.
#[test]
fn plain_lines_undo_change_the_model_and_go_to_a_new_pod() {
    let scene = Scene::new();
    let write = json!({ "name": "Write", "arguments": { "path": "made", "content": "one\n" } });
    let answers = [json!({ "calls": [write] }), json!({ "text": "made it" })];
    let model = scene.script("s.jsonl", &answers);
    let first = Host::start(&scene, &["-m", &model]);
    let mut client = Attached::start(&scene, &["p"]);
    client.types("/diff turn").until("p changed no file");
    client.types("/undo").until("[no turn here changed a file");
    client.types("go").until("── turn 1: done");
    client.types("/diff turn").until("+one");
    client.types("/undo").until("[a line with `y` does it");
    client
        .types("/resume")
        .until("[p was not held; nothing changed]");
    client.types("/undo").until("[a line with `y` does it");
    assert!(scene.file("made").exists());
    client.types("y").until("removed: ");
    assert!(!scene.file("made").exists());
    client.types("/model offline");
    client.until("[the pod starts again …]");
    client.until("[offline answers from now on]");
    client.until("[p was started again (process ");
    assert!(first.is_gone());
    // No list has it.
    client.types("/model").until(&format!("[{model}]"));
    client
        .types("/new")
        .until("[attached to project, which is idle");
    let (_, done) = client.leaves();
    done.ends(0);
    for pod in ["p", "project"] {
        scene.yoi(&["stop", pod]).ends(0);
    }
    scene.sound("p");
}

#[test]
fn a_script_is_told_what_was_not_done() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &[
            "-m",
            &scene.script("s.jsonl", &[json!({ "text": "\u{1b}[2Jone" })]),
        ],
    );
    let done = scene.fed(&["attach", "p"], b"/nonsense\n\ngo\n").ends(2);
    let done = done.says(&["there is no command `/nonsense`", "/steer INPUT"]);
    done.prints(&["[input 1 is accepted]", "[detached: p keeps running]"]);
    until("the input was worked on", || {
        scene.yoi(&["log", "p"]).out.contains("turn 1: done")
    });
    let done = scene
        .yoi(&["attach", "p"])
        .ends(0)
        .prints(&["> go", "── turn 1: done"]);
    assert!(!done.out.contains('\u{1b}'), "{}", done.out);
    assert_eq!(
        scene
            .records("p")
            .iter()
            .filter(|record| record["k"] == "input_queued")
            .count(),
        1
    );
    host.end(Signal::TERM);
}

/// An input of which the first page has no record.
#[test]
fn what_waited_before_the_first_page_is_shown_when_its_turn_comes() {
    let scene = Scene::new();
    let list = || json!({ "calls": [{ "name": "List", "arguments": {} }] });
    let waits = waiting(&scene);
    let mut answers = vec![waits.clone()];
    answers.extend((0..45).map(|_| list()));
    answers.extend([waits, json!({ "text": "one" }), json!({ "text": "two" })]);
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &answers)]);
    scene.yoi(&["send", "p", "first"]).ends(0);
    reached(&scene.file("started"));
    let long = format!("second {}", "é".repeat(300));
    scene.yoi(&["send", "p", &long]).ends(0);
    fs::write(scene.file("gate"), "on\n").unwrap();
    reached(&scene.file("started"));
    let mut client = Attached::start(&scene, &["p"]);
    fs::write(scene.file("gate"), "on\n").unwrap();
    client.until("── turn 1: done").until("> second éé");
    assert!(
        client.seen.last().unwrap().ends_with("é…\n"),
        "{:?}",
        client.seen.last()
    );
    client.until("── turn 2: done");
    client.leaves().1.ends(0);
    // Of one that a turn has taken, the pod tells no text.
    let later = Attached::start(&scene, &["p"]);
    assert!(
        later
            .seen
            .iter()
            .any(|line| line.ends_with("> (input 2)\n")),
        "{:#?}",
        later.seen
    );
    later.leaves().1.ends(0);
    host.end(Signal::TERM);
}

#[test]
fn a_request_that_is_sent_again_is_told() {
    let scene = Scene::new();
    let failed = || Reply::Status("503 Service Unavailable", "", "{}".to_owned());
    let endpoint = Endpoint::start(move |n, _| {
        if n == 0 {
            failed()
        } else {
            text("a whole answer")
        }
    });
    scene.config(&endpoint.config("attempts = 2\n"));
    let start = scene
        .command(&["start", "p", "--json", "-q"])
        .env("FAKE_KEY", "sk-canary-0123456789")
        .spawn();
    let host = Host::of(&finish(start.unwrap()).ends(0));
    let mut client = Attached::start(&scene, &["p"]);
    client
        .types("go")
        .until("503")
        .until("a whole answer")
        .until("── turn 1: done");
    let told = client
        .seen
        .iter()
        .filter(|line| line.contains("503"))
        .collect::<Vec<_>>();
    assert!(
        told.len() == 1 && told[0].starts_with('[') && told[0].contains("; attempt 2 in "),
        "{told:?}"
    );
    client.leaves().1.ends(0);
    host.end(Signal::TERM);
}

#[test]
fn a_pod_that_is_removed_ends_it_at_once() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &["-m", &scene.script("s.jsonl", &[json!({ "text": "one" })])],
    );
    let mut client = Attached::start(&scene, &["p"]);
    client.types("go").until("── turn 1: done");
    host.end(Signal::KILL);
    client.until("[the connection to p was lost; connecting again]");
    scene.yoi(&["rm", "p"]).ends(0);
    // Standard input stays open.
    let typing = client.typing;
    let done = finish(client.child);
    done.ends(69).says(&["p was removed", "trash"]);
    drop(typing);
}

#[test]
fn a_closed_standard_output_ends_it_quietly() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &["-m", &scene.script("s.jsonl", &[json!({ "text": "one" })])],
    );
    // The pod says nothing, and standard input stays open.
    let Attached {
        child,
        typing,
        lines,
        ..
    } = Attached::start(&scene, &["p"]);
    drop(lines);
    assert_eq!(finish(child).ends(0).err, "");
    drop(typing);
    assert!(!host.is_gone());
    host.end(Signal::TERM);
}

#[test]
fn a_viewer_that_types_changes_nothing() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &["-m", &scene.script("s.jsonl", &[json!({ "text": "one" })])],
    );
    let mut viewer = Attached::spawn(
        scene
            .command(&["attach", "--plain", "p"])
            .env("YOI_CALL", "another-pod/1/c1"),
    );
    viewer
        .until("but not change it]")
        .types("go")
        .types("/pause")
        .types("/status")
        .until("state     idle");
    let mut driver = Attached::start(&scene, &["p"]);
    driver.types("work").until("── turn 1: done");
    viewer.until("> work").until("── turn 1: done");
    let (seen, done) = viewer.leaves();
    assert!(
        !seen.iter().any(|line| line.contains("is accepted")),
        "{seen:#?}"
    );
    let done = done.ends(3).says(&[
        "this process can only read the status of pods",
        "in your own terminal",
    ]);
    done.lines_with("error: ", 2);
    driver.leaves().1.ends(0);
    let records = scene.records("p");
    let inputs: Vec<_> = records
        .iter()
        .filter(|record| record["k"] == "input_queued")
        .collect();
    assert!(
        inputs.len() == 1 && inputs[0]["text"] == "work",
        "{inputs:?}"
    );
    assert!(!records.iter().any(|record| record["k"] == "suspended"));
    host.end(Signal::TERM);
}

/// Runs of background tasks as a host wrote them that was killed during the last one.
struct TaskRuns;

impl Records for TaskRuns {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        let run = |run: u64, state: &str, more: Value| {
            let mut body = json!({ "run": run, "feature": "builtin:f", "task": "look", "trigger": "cron", "attempt": 1,
                "due_ms": 1, "at_ms": 2, "effect": "effectful", "state": state });
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            body
        };
        for (number, end, more) in [
            (1, "completed", json!({ "ms": 20 })),
            (2, "timed_out", json!({ "ms": 30, "reason": "too slow" })),
            (3, "cancelled", json!({})),
        ] {
            frames.record("background_task", 1, &run(number, "running", json!({})))?;
            frames.record("background_task", 1, &run(number, end, more))?;
        }
        frames
            .record("background_task", 1, &run(4, "running", json!({})))
            .map(drop)
    }
}

#[test]
fn a_person_sees_the_runs_of_tasks_that_failed() {
    let scene = Scene::new();
    let model = scene.script("answers", &[json!({ "text": "one" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "first"])
        .ends(0);
    let opened = Session::open(
        &scene.pod("p"),
        Options::new("s-1", Arc::new(|| 1_790_000_000_000_000)),
    )
    .unwrap();
    opened.journal.append(TaskRuns).wait().unwrap();
    opened.journal.close();
    let host = Host::start(&scene, &["-m", &model]);
    let client = Attached::start(&scene, &["p"]);
    let (seen, done) = client.leaves();
    done.ends(0);
    let tasks = |lines: &[&str]| -> Vec<String> {
        let of_tasks = lines
            .iter()
            .filter(|line| line.contains("task look of builtin:f"));
        of_tasks
            .map(|line| line.get(8..).unwrap_or_default().to_owned())
            .collect()
    };
    let orphaned = "… background task look of builtin:f, run 4: interrupted: the pod's process ended during the run; its effects may \
                    have happened, and it is not run again for this cause";
    let timed_out = "✗ background task look of builtin:f, run 2: timed out after 30 ms: too slow";
    assert_eq!(tasks(&transcript(&seen)), [timed_out, orphaned]);
    let log = scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["interrupted: 1 background task"])
        .out
        .clone();
    let log: Vec<&str> = log.lines().collect();
    let completed = "  background task look of builtin:f, run 1: completed after 20 ms";
    let cancelled = "… background task look of builtin:f, run 3: cancelled";
    assert_eq!(tasks(&log), [completed, timed_out, cancelled, orphaned]);
    host.end(Signal::TERM);
    scene.sound("p");
}
