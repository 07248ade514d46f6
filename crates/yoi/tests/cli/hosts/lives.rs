//! From a start to its end, and the next start after any end.

use super::{Host, newest, until};
use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use crate::wrong_clocks::library;
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts, ends and kills in the test of what is left; `.ci/long` sets more.
const ROUNDS: usize = 4;

fn rounds() -> usize {
    std::env::var("YOI_TEST_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS)
}

/// A model whose every call runs this command.
fn runs(scene: &Scene, command: &str) -> String {
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } }] });
    scene.script("runs.jsonl", &vec![call; 40 * rounds()])
}

pub(super) fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_pod_stays_until_it_is_asked_to_end() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "hello" })]);
    let done = scene
        .yoi(&["start", "p", "go", "-m", &model, "--json"])
        .ends(0)
        .says(&["model: scripted:", "p is a new pod\n"]);
    let host = Host::of(&done);
    let answer = done.json();
    assert_eq!(
        (answer["pod"].as_str(), answer["state"].as_str()),
        (Some("p"), Some("running"))
    );
    // A session of its own, without a terminal, and nothing of the starter's pipes.
    let session = &stat(host.pid)[3];
    let terminal = &stat(host.pid)[4];
    assert_eq!(
        (session.as_str(), terminal.as_str()),
        (host.pid.to_string().as_str(), "0")
    );
    let log = scene.pod("p").join("host.log");
    for (number, leads) in [
        (0, Path::new("/dev/null")),
        (1, Path::new("/dev/null")),
        (2, &log),
    ] {
        until("standard streams are let go", || {
            fs::read_link(host.proc(&format!("fd/{number}"))).unwrap() == leads
        });
    }
    assert_eq!(fs::read_to_string(host.proc("comm")).unwrap(), "yoi\n");
    assert_eq!(
        fs::read_link(host.proc("cwd")).unwrap(),
        scene.path("project")
    );
    until("the prompt was worked on", || {
        newest(&scene, "turn_finished").is_some()
    });

    scene
        .yoi(&["start", "p"])
        .ends(0)
        .prints(&["p is already running (process "]);
    let running = scene.yoi(&["start", "p", "--json"]).ends(0).json();
    assert_eq!(
        (running["started"].as_bool(), running["pid"].as_u64()),
        (Some(false), Some(host.pid.into()))
    );
    scene
        .yoi(&["start", "p", "more"])
        .ends(75)
        .says(&["p is already running", "`yoi send p \"INPUT\"`"]);
    scene
        .yoi(&["start", "p", "-m", "offline", "--max-steps", "3"])
        .ends(75)
        .says(&["--model and --max-steps can change only while the pod is stopped"]);
    scene
        .yoi(&["start", "p", "--foreground"])
        .ends(75)
        .says(&["p is already running"]);

    // Neither is for a pod without a terminal.
    signal(host.pid, Signal::INT);
    signal(host.pid, Signal::HUP);
    scene.yoi(&["start", "p"]).ends(0);
    host.end(Signal::TERM);
    assert_eq!(newest(&scene, "host_stopped").unwrap()["k"], "host_stopped");
    scene.sound("p");
    assert!(
        !scene
            .yoi(&["start", "p", "--json"])
            .ends(0)
            .err
            .contains("restored")
    );
    Host {
        pid: u32::try_from(
            newest(&scene, "host_started").unwrap()["pid"]
                .as_u64()
                .unwrap(),
        )
        .unwrap(),
    }
    .end(Signal::TERM);
}

/// What runs already is a success, also for a start that found it stopped.
#[test]
fn starts_at_once_start_one_pod_and_all_succeed() {
    let scene = Scene::new();
    Host::start(&scene, &[]).end(Signal::TERM);
    let starts: Vec<_> = (0..4)
        .map(|_| scene.command(&["start", "p", "--json"]).spawn().unwrap())
        .collect();
    let done: Vec<_> = starts.into_iter().map(finish).collect();
    let (won, lost): (Vec<_>, Vec<_>) = done
        .into_iter()
        .partition(|done| done.out.contains("\"started\":true"));
    let [won] = &won[..] else {
        panic!("{won:?} {lost:?}")
    };
    let host = Host::of(won);
    for done in lost {
        let answer = done.ends(0).json();
        assert_eq!(
            (&answer["started"], &answer["pid"]),
            (&json!(false), &json!(host.pid))
        );
    }
    host.end(Signal::TERM);
    scene.sound("p");
}

/// It may be the list that a loop reads, or a pipe that is never closed.
#[test]
fn a_start_leaves_standard_input_alone() {
    let scene = Scene::new();
    scene.write("list", "one\ntwo\n");
    let mut list = fs::File::open(scene.file("list")).unwrap();
    let mut start = scene.command(&["start", "p", "go", "--json"]);
    let done = finish(start.stdin(list.try_clone().unwrap()).spawn().unwrap()).ends(0);
    Host::of(&done).end(Signal::TERM);
    assert_eq!(list.stream_position().unwrap(), 0);
    // Unless it is asked for.
    Host::of(
        &scene
            .fed(&["start", "p", "-", "--json"], b"from a pipe\n")
            .ends(0),
    )
    .end(Signal::TERM);
    assert_eq!(
        newest(&scene, "input_queued").unwrap()["text"],
        "from a pipe\n"
    );
}

#[test]
fn whoever_waits_for_a_turn_that_is_stopped_is_told_what_continues_it() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    let host = Host::start(
        &scene,
        &["-m", &runs(&scene, "echo $$ > started; sleep 600")],
    );
    let waits = scene
        .command(&["send", "p", "--wait", "go"])
        .spawn()
        .unwrap();
    reached(&scene.file("started"));
    host.end(Signal::TERM);
    finish(waits).ends(1).says(&[
        "the run was interrupted",
        "help: `yoi start p` continues it",
    ]);
}

#[test]
fn a_killed_pod_starts_again_as_it_was() {
    let scene = Scene::new();
    scene.write("deep/file", "");
    fs::create_dir(scene.path("more")).unwrap();
    let more = scene.path("more").display().to_string();
    let model = scene.script("s.jsonl", &[json!({ "text": "hello" })]);
    let deep = scene.file("deep").display().to_string();
    let flags = [
        "-m",
        &model,
        "--read-only",
        "--allow",
        "Bash ls",
        "--max-steps",
        "7",
        "--add-dir",
        &more,
    ];
    let first = scene
        .yoi(&[&["-C", &deep, "start", "p", "--json"][..], &flags].concat())
        .ends(0);
    let first = Host::of(&first);
    let was = newest(&scene, "host_started").unwrap();
    assert_eq!(
        was["launch"],
        json!({ "model": model, "sandbox": "read-only", "allow": ["Bash ls"], "max_steps": 7 })
    );
    first.end(Signal::KILL);

    let again = scene
        .command(&["start", "p", "--json"])
        .current_dir(scene.path("home"))
        .spawn()
        .unwrap();
    let again = Host::of(
        &finish(again)
            .ends(0)
            .says(&["model: scripted:", "(from the pod's last start"]),
    );
    let is = newest(&scene, "host_started").unwrap();
    for same in ["launch", "cwd", "project", "sandbox", "add_dirs"] {
        assert_eq!(is[same], was[same], "{same}");
    }
    assert_ne!(is["pid"], was["pid"]);
    again.end(Signal::TERM);

    // One flag of this start changes one option.
    let other = Host::start(&scene, &["-m", "offline"]);
    let mut launch = was["launch"].clone();
    launch["model"] = json!("offline");
    assert_eq!(newest(&scene, "host_started").unwrap()["launch"], launch);
    other.end(Signal::TERM);
    fs::rename(scene.file("deep"), scene.file("away")).unwrap();
    scene
        .yoi(&["start", "p"])
        .ends(2)
        .says(&["deep does not exist", "yoi -C DIR start p"]);
    fs::rename(scene.file("away"), scene.file("deep")).unwrap();
    Host::start(&scene, &[]).end(Signal::TERM);
}

#[test]
fn a_start_that_fails_says_why_and_leaves_nothing() {
    let scene = Scene::new();
    scene
        .yoi(&["start", "p", "-m", "no-such/model"])
        .ends(78)
        .says(&["no provider called `no-such`"])
        .lines_with("error", 1);
    scene.yoi(&["start", "-bad"]).ends(2);
    let script = scene.path("missing.jsonl").display().to_string();
    scene
        .yoi(&["start", "p", "-m", &format!("scripted:{script}")])
        .ends(65)
        .says(&["does not exist"])
        .lines_with("error", 1);
    assert_eq!(scene.pods(), Vec::<String>::new());
    // What reaches the hidden command in another way is no start message.
    let done = scene.fed(&["__host"], b"{}").ends(2);
    assert!(
        done.out
            .contains("standard input contains no start message"),
        "{}",
        done.out
    );
}

#[test]
fn a_second_signal_leaves_at_once() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    fifo(&scene.file("asked"));
    let stubborn = "trap 'echo asked > asked' TERM; echo $$ > started; while :; do :; done";
    let host = Host::start(&scene, &["-m", &runs(&scene, stubborn), "go"]);
    let child = reached(&scene.file("started"));
    signal(host.pid, Signal::TERM);
    reached(&scene.file("asked"));
    signal(host.pid, Signal::TERM);
    until("both have ended", || host.is_gone() && gone(child.trim()));
}

#[test]
fn a_program_that_is_replaced_meanwhile_still_starts_its_pod() {
    let scene = Scene::new();
    let copy = scene.own_program();
    let file = copy.display();
    scene.config(&format!(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         key = {{ command = [\"sh\", \"-c\", \"rm {file}; echo none > {file}; echo key\"] }}\n"
    ));
    let plain = scene.command(&["start", "p", "-m", "x/y", "--json"]);
    let mut start = Command::new(&copy);
    start.args(plain.get_args()).env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    start
        .current_dir(scene.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let host = Host::of(&finish(start.spawn().unwrap()).ends(0));
    assert!(
        fs::read_link(host.proc("exe"))
            .unwrap()
            .display()
            .to_string()
            .ends_with("(deleted)")
    );
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn starts_and_ends_of_every_kind_leave_nothing() {
    let scene = Scene::new();
    let model = runs(&scene, "echo $$ > started; sleep 600");
    for round in 0..rounds() {
        let working = round % 2 == 1;
        let prompt: &[&str] = if working { &["go"] } else { &[] };
        let file = scene.file("started");
        drop(fs::remove_file(&file));
        if working {
            fifo(&file);
        }
        let host = Host::start(&scene, &[&["-m", &model], prompt].concat());
        let child = working.then(|| reached(&file));
        host.end(if round % 4 < 2 {
            Signal::TERM
        } else {
            Signal::KILL
        });
        // What a kill left is ended by the next start.
        Host::start(&scene, &["-m", "offline"]).end(Signal::TERM);
        if let Some(child) = child {
            until("the command has ended", || gone(child.trim()));
        }
    }
    scene.sound("p");
    let left: Vec<_> = scene
        .left_behind()
        .into_iter()
        .filter(|path| !path.ends_with(".lock"))
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    let mut names: Vec<String> = fs::read_dir(scene.pod("p"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(
        names
            .iter()
            .all(|name| !name.contains("sock") && !name.contains("tmp")),
        "{names:?}"
    );
    scene.yoi(&["rm", "p", "--purge"]).ends(0);
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn a_pod_in_the_foreground_ends_with_its_signal() {
    let scene = Scene::new();
    let mut run = scene
        .command(&["start", "p", "--foreground"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let ready = lines.find(|line| {
        line.as_ref()
            .is_ok_and(|line| line.contains("p is ready (process "))
    });
    assert!(ready.is_some());
    signal(run.id(), Signal::HUP);
    signal(run.id(), Signal::INT);
    finish(run).ends(0);
    scene.sound("p");
}

/// The clock was set back while the pod was down, and jumps while it runs.
#[test]
fn a_clock_that_goes_back_costs_dates_only() {
    let scene = Scene::new();
    let clock = library(&scene.path("tmp"));
    let model = scene.script(
        "s.jsonl",
        &[json!({ "text": "one" }), json!({ "text": "two" })],
    );
    for (at, turns) in [("1795000000", 1), ("1700000000", 2)] {
        let mut start = scene.command(&["start", "p", "go", "-m", &model, "--json", "-q"]);
        start
            .env("LD_PRELOAD", &clock)
            .env("CLOCK_AT", at)
            .env("CLOCK_JUMP", "-3600");
        let host = Host::of(&finish(start.spawn().unwrap()).ends(0));
        until("the turn has ended", || {
            newest(&scene, "turn_finished").is_some_and(|r| r["turn"] == turns || turns == 1)
        });
        host.end(Signal::TERM);
    }
    scene.sound("p");
}

/// What was allowed once, for one prompt, is not allowed for weeks.
#[test]
fn the_options_of_a_run_are_no_options_of_a_later_start() {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", &[json!({ "text": "hello" })]);
    scene
        .yoi(&[
            "run",
            "--pod",
            "p",
            "-m",
            &model,
            "--sandbox",
            "off",
            "--allow",
            "Bash",
            "once",
        ])
        .ends(0);
    let done = scene.yoi(&["start", "p", "--json"]).ends(0);
    assert!(
        !done.err.contains("the options of its last start"),
        "{}",
        done.err
    );
    let started = newest(&scene, "host_started").unwrap();
    assert_eq!(
        (started["sandbox"].as_str(), started["launch"].get("allow")),
        (Some("workspace-write"), None)
    );
    Host::of(&done).end(Signal::TERM);
    // What a start was given is said when it applies again, also when a run came in between.
    Host::of(
        &scene
            .yoi(&["start", "p", "--max-steps", "7", "--json"])
            .ends(0),
    )
    .end(Signal::TERM);
    scene
        .yoi(&[
            "run",
            "--pod",
            "p",
            "-m",
            "offline",
            "--sandbox",
            "off",
            "list the files",
        ])
        .ends(0);
    let done = scene.yoi(&["start", "p", "--json"]).ends(0);
    done.says(&["p uses the options of its last start: --max-steps 7; options on the command line override them"]);
    let host = Host {
        pid: u32::try_from(
            newest(&scene, "host_started").unwrap()["pid"]
                .as_u64()
                .unwrap(),
        )
        .unwrap(),
    };
    assert_eq!(
        newest(&scene, "host_started").unwrap()["sandbox"],
        "workspace-write"
    );
    host.end(Signal::TERM);
}

#[test]
fn what_a_pod_started_starts_and_removes_no_pod() {
    let scene = Scene::new();
    scene
        .yoi(&["run", "--pod", "p", "-m", "offline", "list the files"])
        .ends(0);
    for args in [["start", "q"], ["start", "p"], ["rm", "p"]] {
        let child = scene
            .command(&args)
            .env("YOI_CALL", "a/1/c00000001")
            .spawn()
            .unwrap();
        finish(child).ends(3).says(&[
            "error: a run cannot ",
            "help: run this command in your own terminal",
        ]);
    }
    assert!(scene.pod("p").exists() && !scene.pod("q").exists());
}
