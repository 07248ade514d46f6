//! How runs begin and end when something is in the way: nothing is lost, nothing is left, and it is said.

use crate::scene::{Done, Scene, fifo, finish, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn bash(command: &str) -> Value {
    json!({ "name": "Bash", "arguments": { "command": command, "timeout_s": 3600 } })
}

fn hello(scene: &Scene) -> String {
    scene.script("hello.jsonl", &[json!({ "text": "hello" })])
}

/// The program with no file over this many blocks of 512 bytes.
fn limited(scene: &Scene, blocks: u64, args: &[&str]) -> Done {
    let plain = scene.command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f \"$0\"; exec \"$@\"", &blocks.to_string()]);
    shell
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear();
    shell.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell
        .current_dir(scene.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

fn ephemeral_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.to_string_lossy().contains("yoi-ephemeral-"))
        .collect()
}

/// A run that has begun a command which does not end.
fn endless(scene: &Scene, flags: &[&str], vars: &[(&str, PathBuf)]) -> (Child, String) {
    fifo(&scene.file("started"));
    let model = scene.script(
        "endless.jsonl",
        &[json!({ "calls": [bash("echo $$ > started; while :; do sleep 600; done")] })],
    );
    let mut command = scene.command(&[&["run", "-m", &model][..], flags, &["go"]].concat());
    command.envs(vars.iter().map(|(name, value)| (name, value)));
    let run = command.spawn().unwrap();
    let pid = reached(&scene.file("started"));
    fs::remove_file(scene.file("started")).unwrap();
    (run, pid)
}

#[test]
fn json_is_json_whatever_is_in_it() {
    let scene = Scene::new();
    let odd = "a\u{202e}txt\u{9b}31m\u{7f}";
    let write =
        json!({ "name": "Write", "arguments": { "path": odd, "content": format!("{odd}\n") } });
    let model = scene.script(
        "odd.jsonl",
        &[
            json!({ "calls": [write, bash(&format!("echo '{odd}'"))] }),
            json!({ "text": odd }),
        ],
    );
    let done = scene
        .yoi(&["run", "--json", "--pod", "p", "-m", &model, odd])
        .ends(0);
    let result = done.out.lines().last().unwrap();
    assert!(
        !result.contains(['\u{202e}', '\u{9b}', '\u{7f}']),
        "{result}"
    );
    assert_eq!(done.lines().last().unwrap()["answer"], odd);
    let diff = scene.yoi(&["diff", "p", "--json"]).ends(0);
    assert!(
        !diff.out.contains(['\u{202e}', '\u{9b}', '\u{7f}']),
        "{}",
        diff.out
    );
    assert!(
        diff.json()["files"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with(odd)
    );
    // The records are given as they are: what checks them needs every byte.
    let log = scene.yoi(&["log", "p", "--json"]).ends(0);
    assert!(log.out.contains(odd.trim_end_matches('\u{7f}')) && !log.lines().is_empty());
    for args in [
        &["ls", "--json"][..],
        &["features", "p", "--json"],
        &["verify", "p", "--json"],
        &["doctor", "--json"],
    ] {
        scene.yoi(args).json();
    }
    assert_eq!(scene.sound("p"), 2);
}

#[test]
fn an_answer_is_printed_though_its_directory_cannot_be_removed() {
    let scene = Scene::new();
    let aside = scene.path("aside");
    scene.config("[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n");
    let command = format!(
        "cd {} && for d in yoi-ephemeral-*; do mv $d {} && echo > $d; done",
        scene.path("tmp").display(),
        aside.display()
    );
    let model = scene.script(
        "s.jsonl",
        &[
            json!({ "calls": [bash(&command)] }),
            json!({ "text": "the answer" }),
        ],
    );
    let run = ["run", "--ephemeral", "--sandbox", "off", "-m", &model, "go"];
    let done = scene
        .yoi(&run)
        .ends(69)
        .says(&["error: remove ", "yoi-ephemeral-"]);
    assert_eq!(done.out, "the answer\n");
    fs::remove_dir_all(&aside).unwrap();
    ephemeral_in(&scene.path("tmp"))
        .iter()
        .for_each(|file| fs::remove_file(file).unwrap());
    let result = scene
        .yoi(&[&run[..], &["--json"]].concat())
        .ends(69)
        .lines()
        .pop()
        .unwrap();
    assert_eq!(
        (&result["answer"], &result["exit"]),
        (&json!("the answer"), &json!(69))
    );
    assert!(
        result["error"].as_str().unwrap().contains("remove "),
        "{result}"
    );
}

#[test]
fn an_answer_is_printed_though_the_farewell_is_not_written() {
    const FAREWELL: u64 = 60;
    let scene = Scene::new();
    let model = hello(&scene);
    let size = |pad: usize, pod: &str| {
        scene
            .yoi(&["run", "--pod", pod, "-m", &model, &"x".repeat(pad)])
            .ends(0);
        let log = fs::read_to_string(scene.log_file(pod)).unwrap();
        let last = log.lines().last().unwrap();
        assert!(
            last.contains("host_stopped") && last.len() as u64 > FAREWELL,
            "{last}"
        );
        log.len() as u64
    };
    // The limit comes in blocks, so the prompt is made as long as puts the last record, and no other, over one.
    let base = size(1, "one");
    let each = size(2, "two") - base;
    let pad = (0..1000)
        .find(|pad| (base + each * pad - FAREWELL) % 512 < FAREWELL / 2)
        .unwrap();
    let blocks = (base + each * pad - FAREWELL) / 512;
    let pad = usize::try_from(pad).unwrap() + 1;
    let done = limited(
        &scene,
        blocks,
        &["run", "--pod", "cut", "-m", &model, &"x".repeat(pad)],
    );
    let done = done.ends(74).says(&["error: ", "help: "]);
    assert_eq!(done.out, "hello\n");
    let records = scene.records("cut");
    assert_eq!(records.last().unwrap()["k"], "turn_finished", "{records:?}");
}

#[test]
fn the_time_limit_covers_what_is_waited_for_before_the_run() {
    let scene = Scene::new();
    let model = hello(&scene);
    let mut waiting = scene
        .command(&["run", "--timeout", "1s", "-m", &model])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let held = waiting.stdin.take();
    finish(waiting)
        .ends(4)
        .says(&["the time limit was reached before the run started"]);
    drop(held);
    let started = scene.path("started");
    let keys = format!(
        "command = [\"sh\", \"-c\", \"echo $$ > {}; exec sleep 600\"]",
        started.display()
    );
    scene.config(&format!(
        "[providers.slow]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkey = {{ {keys} }}\n"
    ));
    fifo(&started);
    let run = scene
        .command(&["run", "--json", "--timeout", "1s", "-m", "slow/x", "go"])
        .spawn()
        .unwrap();
    let pid = reached(&started);
    let done = finish(run).ends(4);
    assert_eq!(done.lines()[0]["exit"], 4);
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "the key's program is ended too"
    );
    let run = scene
        .command(&["run", "--timeout", "1h", "-m", "slow/x", "go"])
        .spawn()
        .unwrap();
    reached(&started);
    signal(run.id(), Signal::TERM);
    finish(run)
        .ends(143)
        .says(&["cancelled before the run started"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn a_start_that_fails_leaves_no_pod_and_moves_nothing() {
    let scene = Scene::new();
    let model = hello(&scene);
    scene
        .yoi(&["run", "--pod", "good", "-m", &model, "x"])
        .ends(0);
    let last = || {
        fs::read_dir(scene.path("state/yoi/last"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    assert_eq!(fs::read_to_string(last()).unwrap(), "good");
    for flags in [&["--pod", "new"][..], &[]] {
        limited(
            &scene,
            0,
            &[&["run", "-m", &model][..], flags, &["x"]].concat(),
        )
        .ends(74);
        assert_eq!(scene.pods(), ["good"]);
        assert_eq!(fs::read_to_string(last()).unwrap(), "good");
    }
    // A directory that was there before stays.
    fs::create_dir(scene.pod("empty")).unwrap();
    limited(&scene, 0, &["run", "--pod", "empty", "-m", &model, "x"]).ends(74);
    assert_eq!(scene.pods(), ["empty", "good"]);
    fs::remove_dir_all(scene.path("state/yoi/last")).unwrap();
    fs::write(scene.path("state/yoi/last"), "").unwrap();
    let done = scene
        .yoi(&["run", "--pod", "other", "-m", &model, "x"])
        .ends(0);
    assert_eq!(done.out, "hello\n");
    done.says(&["warning: -c will not find this run", "use --pod other"]);
}

#[test]
fn a_pod_that_lacks_what_is_required_is_not_begun() {
    let scene = Scene::new();
    let model = hello(&scene);
    // No shell is confined around the state of other pods.
    let state = scene.file("state");
    let run = |pod: &str| {
        let mut command = scene.command(&["run", "--pod", pod, "-m", &model, "x"]);
        command.env("XDG_STATE_HOME", &state);
        finish(command.spawn().unwrap())
    };
    run("good").ends(0);
    scene.config("[features.\"builtin:shell\"]\nrequired = true\n");
    run("bad").ends(78).says(&["builtin:shell is required"]);
    assert!(!state.join("yoi/pods/bad").exists());
    let last = fs::read_dir(state.join("yoi/last"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(fs::read_to_string(last.path()).unwrap(), "good");
}

#[test]
fn c_goes_on_with_a_run_that_was_killed() {
    let scene = Scene::new();
    let (run, _) = endless(&scene, &["--pod", "killed"], &[]);
    signal(run.id(), Signal::KILL);
    finish(run);
    scene
        .yoi(&["run", "-c", "-m", "offline", "list the files"])
        .ends(0)
        .says(&["restored after a crash", "killed"]);
}

#[test]
fn what_a_killed_ephemeral_run_left_goes_with_the_next_run() {
    let scene = Scene::new();
    let model = hello(&scene);
    let (killed, _) = endless(&scene, &["--ephemeral"], &[]);
    let (alive, _) = endless(&scene, &["--ephemeral"], &[]);
    assert_eq!(ephemeral_in(&scene.path("tmp")).len(), 2);
    signal(killed.id(), Signal::KILL);
    finish(killed);
    scene
        .yoi(&["run", "--ephemeral", "-m", &model, "x"])
        .ends(0);
    assert_eq!(
        ephemeral_in(&scene.path("tmp")).len(),
        1,
        "the one that is alive"
    );
    signal(alive.id(), Signal::TERM);
    finish(alive).ends(143);
    assert_eq!(ephemeral_in(&scene.path("tmp")), Vec::<PathBuf>::new());
}

#[test]
fn what_is_not_kept_is_outside_of_where_the_run_works() {
    let scene = Scene::new();
    fs::create_dir(scene.path("runtime")).unwrap();
    fs::create_dir(scene.file("tmp")).unwrap();
    let inside = ("TMPDIR", scene.file("tmp"));
    let runtime = ("XDG_RUNTIME_DIR", scene.path("runtime"));
    for (vars, expected) in [
        (vec![inside.clone(), runtime], "runtime"),
        (vec![inside], "state/yoi/ephemeral"),
    ] {
        let (run, _) = endless(&scene, &["--ephemeral"], &vars);
        assert_eq!(ephemeral_in(&scene.file("tmp")), Vec::<PathBuf>::new());
        assert_eq!(ephemeral_in(&scene.path(expected)).len(), 1);
        signal(run.id(), Signal::TERM);
        finish(run).ends(143);
        assert_eq!(ephemeral_in(&scene.path(expected)), Vec::<PathBuf>::new());
    }
}

#[test]
fn leaving_at_once_takes_strangers_along() {
    if Command::new("setsid").arg("true").status().is_err() {
        println!(
            "skipped: there is no setsid here; crates/authority/tests/strangers.rs asserts the same below"
        );
        return;
    }
    let scene = Scene::new();
    fifo(&scene.file("started"));
    let command = "trap '' TERM INT HUP; env -i setsid sleep 999 >/dev/null 2>&1 & echo $! > started; while :; do sleep 600; done";
    let model = scene.script(
        "s.jsonl",
        &[json!({ "calls": [bash(&format!("trap '' TERM INT HUP; {command}"))] })],
    );
    let run = scene
        .command(&["run", "--pod", "p", "-m", &model, "go"])
        .spawn()
        .unwrap();
    let pid = reached(&scene.file("started"));
    signal(run.id(), Signal::TERM);
    signal(run.id(), Signal::INT);
    assert!(matches!(finish(run).code(), Some(130 | 143)));
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "nobody could say whose it was"
    );
}

#[test]
fn a_run_that_cannot_go_on_leaves_no_process() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    // Away from the group that is killed with the call, where there is a program for that.
    let endless =
        "setsid sh -c 'echo $$ > started; exec sleep 600' || echo $$ > started; sleep 600";
    let endless = endless.replacen("||", "& command -v setsid >/dev/null ||", 1);
    let model = scene.script(
        "s.jsonl",
        &[
            json!({ "calls": [bash(&endless)] }),
            json!({ "text": "never" }),
        ],
    );
    let around = scene.path("project");
    let run = std::thread::scope(|threads| {
        let run =
            threads.spawn(|| limited(&scene, 120, &["run", "--pod", "p", "-m", &model, "go"]));
        let pid = reached(&around.join("started"));
        // It does not fit into the journal any more.
        assert_ne!(
            scene.yoi(&["send", "p", &"more ".repeat(10_000)]).code(),
            Some(0)
        );
        (run.join().unwrap(), pid)
    });
    run.0.ends(74);
    assert!(!Path::new("/proc").join(run.1.trim()).exists());
}

#[test]
fn a_vendors_numbers_do_not_overflow() {
    let scene = Scene::new();
    let usage = json!({ "input": u64::MAX, "output": 9 });
    let model = scene.script("s.jsonl", &[json!({ "text": "done", "usage": usage })]);
    scene.yoi(&["run", "--pod", "p", "-m", &model, "x"]).ends(0);
    scene
        .yoi(&["ls", "--json"])
        .ends(0)
        .prints(&[&u64::MAX.to_string()]);
}

#[test]
fn an_answer_that_fits_no_record_is_no_disks_fault() {
    let scene = Scene::new();
    let long = scene.script(
        "long.jsonl",
        &[
            json!({ "text": "\u{1}".repeat(300 * 1024) }),
            json!({ "text": "short" }),
        ],
    );
    let done = scene.yoi(&["run", "--pod", "p", "-m", &long, "go"]).ends(3);
    assert!(
        done.err
            .contains("error: the journal cannot store the model's answer"),
        "{}",
        done.err
    );
    let short = scene.script("short.jsonl", &[json!({ "text": "short" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &short, "again"])
        .ends(0);
    scene.yoi(&["verify", "p"]).ends(0);
}

/// An answer that nothing checked, because the check is missing or was killed, ended with 0.
#[test]
fn an_answer_that_nothing_checked_is_not_accepted() {
    for (command, says) in [
        (r#"["no-such-program"]"#, "no-such-program"),
        (r#"["sh", "-c", "kill -9 $$"]"#, "did not end by itself"),
    ] {
        let scene = Scene::new();
        scene.config(&format!(
            "[features.\"builtin:output-validate\"]\ncommand = {command}\n"
        ));
        let model = scene.script("s.jsonl", &[json!({ "text": "unchecked" })]);
        scene
            .yoi(&["run", "-m", &model, "go"])
            .ends(1)
            .says(&["the answer was not accepted", says]);
    }
}
