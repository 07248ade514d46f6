//! What a run leaves running that was killed: said by whoever is asked, and ended by any next start.

use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use rustix::process::Signal;
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A command that waits, and one that left its group, its session, its environment and its parents.
const LEAVING: &str = r#"setsid env -i /bin/sh -c '/bin/sh -c "echo \$\$ > bare; exec /bin/sleep 600" &' >/dev/null 2>&1 </dev/null
echo $$ > started; exec sleep 600"#;

/// A run of that, and what it started.
struct Begun {
    run: Child,
    command: String,
    bare: String,
}

impl Begun {
    fn in_scene(scene: &Scene, flags: &[&str], temp: &Path) -> Self {
        fifo(&scene.file("started"));
        fifo(&scene.file("bare"));
        // In the sandbox the kernel ends them, where it has namespaces.
        let off = ["--sandbox", "off", "--allow", "Bash"];
        let mut command =
            scene.command(&[&["run", "-m", &leaving(scene)][..], &off, flags, &["go"]].concat());
        let run = command.env("TMPDIR", temp).spawn().unwrap();
        let [bare, command] =
            ["bare", "started"].map(|name| reached(&scene.file(name)).trim().to_owned());
        Self { run, command, bare }
    }

    fn kill(self) -> [String; 2] {
        signal(self.run.id(), Signal::KILL);
        assert_eq!(finish(self.run).code(), None);
        let left = [self.command, self.bare];
        assert!(
            !left.iter().any(|pid| gone(pid)),
            "they ended with it; this shows nothing"
        );
        left
    }
}

fn leaving(scene: &Scene) -> String {
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": LEAVING, "timeout_s": 3600 } }] });
    scene.script("leaving.jsonl", &[call, json!({ "text": "done" })])
}

fn hello(scene: &Scene) -> String {
    scene.script("hello.jsonl", &[json!({ "text": "hello" })])
}

#[test]
fn any_next_start_ends_what_a_killed_run_left() {
    for flags in [&[][..], &["--ephemeral"], &["--pod", "p"]] {
        let scene = Scene::new();
        let left = Begun::in_scene(&scene, flags, &scene.path("tmp")).kill();
        let said = format!("2 processes still run ({}, {})", left[0], left[1]);
        let listed = scene.yoi(&["ls"]).ends(0);
        let doctor = scene.yoi(&["doctor"]);
        for text in [&listed.out, &doctor.out] {
            let swapped = format!("2 processes still run ({}, {})", left[1], left[0]);
            assert!(
                text.contains(&said) || text.contains(&swapped),
                "{flags:?}: {text}"
            );
            assert!(
                text.contains("the next `yoi run` or `yoi start` stops such processes"),
                "{text}"
            );
        }
        // Asking ends nothing.
        assert!(!left.iter().any(|pid| gone(pid)));
        let next = scene.yoi(&["run", "-m", &hello(&scene), "hello"]).ends(0);
        next.says(&["stopped 2 processes of a killed run"]);
        assert!(left.iter().all(|pid| gone(pid)), "{flags:?}");
        assert!(!scene.yoi(&["ls"]).ends(0).out.contains("still run"));
    }
}

#[test]
fn a_start_that_fails_ends_them_too_and_the_record_says_so() {
    let scene = Scene::new();
    let left = Begun::in_scene(&scene, &["--pod", "p"], &scene.path("tmp")).kill();
    scene
        .yoi(&["run", "--pod", "no/name", "-m", &hello(&scene), "hello"])
        .ends(2);
    assert!(left.iter().all(|pid| gone(pid)));
    let other = Scene::new();
    let left = Begun::in_scene(&other, &["--pod", "p"], &other.path("tmp")).kill();
    other
        .yoi(&["run", "--pod", "p", "-m", &leaving(&other), "hello"])
        .ends(0);
    assert!(left.iter().all(|pid| gone(pid)));
    let records = other.records("p");
    let recovery = records
        .iter()
        .find(|record| record["k"] == "recovery")
        .unwrap();
    assert_eq!(
        (&recovery["ended_processes"], &recovery["survivors"]),
        (&json!(2), &json!(null))
    );
}

/// Its own directory for temporary files is elsewhere now: the pod still finds them, by their labels.
#[test]
fn a_pod_ends_what_it_left_wherever_that_was() {
    let scene = Scene::new();
    fs::create_dir(scene.path("elsewhere")).unwrap();
    let elsewhere = scene.path("elsewhere");
    let left = Begun::in_scene(&scene, &["--pod", "p"], &elsewhere).kill();
    scene
        .yoi(&["run", "--pod", "p", "-m", &leaving(&scene), "hello"])
        .ends(0);
    assert!(left.iter().all(|pid| gone(pid)));
}

#[test]
fn rm_says_what_still_runs() {
    let scene = Scene::new();
    let left = Begun::in_scene(&scene, &["--pod", "p"], &scene.path("tmp")).kill();
    scene.yoi(&["rm", "p", "--purge"]).ends(0).prints(&[
        "deleted p",
        "p: 2 processes still run",
        "the next `yoi run`",
    ]);
    scene.yoi(&["run", "-m", &hello(&scene), "hello"]).ends(0);
    assert!(left.iter().all(|pid| gone(pid)));
}

/// Beside a killed run, one that lives: with the same directory for temporary files, and a state directory of its own.
#[test]
fn what_others_run_is_left_alone() {
    let scene = Scene::new();
    let other = Scene::new();
    let tmp = scene.path("tmp");
    let live = Begun::in_scene(&other, &["--pod", "p"], &tmp);
    let left = Begun::in_scene(&scene, &["--pod", "p"], &scene.path("tmp")).kill();
    scene.yoi(&["run", "-m", &hello(&scene), "hello"]).ends(0);
    assert!(left.iter().all(|pid| gone(pid)));
    assert!(!gone(&live.command) && !gone(&live.bare));
    signal(live.run.id(), Signal::TERM);
    finish(live.run).ends(143);
    assert!(gone(&live.command) && gone(&live.bare));
}

/// Whatever ends a process that does not handle it.
#[test]
fn no_signal_that_can_be_handled_leaves_anything() {
    // QUIT, ABRT, USR1, USR2, ALRM, XCPU, PWR, and the first and last real-time signal.
    for sent in [3, 6, 10, 12, 14, 24, 30, 34, 64] {
        let scene = Scene::new();
        let begun = Begun::in_scene(&scene, &["--ephemeral"], &scene.path("tmp"));
        let kill = Command::new("kill")
            .args([format!("-{sent}"), begun.run.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        finish(begun.run).ends(128 + sent);
        assert!(gone(&begun.command) && gone(&begun.bare), "{sent}");
    }
}

/// In a container without an init of its own, session and group began outside, and have the number 0 there. As its first
/// process, and as a later one.
#[test]
fn in_a_namespace_that_its_session_did_not_begin_in() {
    let apart = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    if !Command::new("unshare")
        .args(apart)
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("skipped: no namespace of processes can be made here");
        return;
    }
    for shell in ["exec \"$@\"", "\"$@\"; exit $?"] {
        let scene = Scene::new();
        let leaving = json!({ "command": "(setsid env -i sleep 600 >/dev/null 2>&1 &); sleep 600 & echo begun" });
        let call = json!({ "calls": [{ "name": "Bash", "arguments": leaving }] });
        let model = scene.script("s.jsonl", &[call, json!({ "text": "done" })]);
        let run = scene.command(&["run", "--pod", "p", "-m", &model, "go"]);
        let mut outside = Command::new("unshare");
        outside
            .args(apart)
            .args(["sh", "-c", shell, "sh"])
            .arg(run.get_program())
            .args(run.get_args());
        let vars = run
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        outside
            .env_clear()
            .envs(vars)
            .current_dir(run.get_current_dir().unwrap());
        assert_eq!(
            finish(
                outside
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            )
            .ends(0)
            .out,
            "done\n"
        );
        let records = scene.records("p");
        let ended = records
            .iter()
            .find(|record| record["k"] == "tool_finished")
            .unwrap();
        assert!(
            ended
                .to_string()
                .contains("ended with the call: 2 processes"),
            "{ended}"
        );
    }
}

/// A pod whose lock somebody has, and who that says it is.
fn locked(scene: &Scene, pid: u32) -> File {
    scene
        .yoi(&["run", "--pod", "p", "-m", &hello(scene), "hello"])
        .ends(0);
    let file = File::options()
        .read(true)
        .write(true)
        .open(scene.pod("p").join("LOCK"))
        .unwrap();
    file.lock().unwrap();
    let text = format!("{:<63}\n", json!({ "pid": pid, "since": 1 }).to_string());
    file.write_all_at(text.as_bytes(), 0).unwrap();
    file
}

/// A number that no process has: of one that ended and was waited for.
fn nobody() -> u32 {
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    ended.id()
}

/// A child that a killed run was just starting has its lock for a moment.
#[test]
fn a_lock_of_an_owner_that_is_dead_is_waited_for() {
    let scene = Scene::new();
    let lock = locked(&scene, nobody());
    let two = scene.script(
        "two.jsonl",
        &[json!({ "text": "hello" }), json!({ "text": "again" })],
    );
    let next = scene
        .command(&["run", "--pod", "p", "-m", &two, "hello"])
        .spawn()
        .unwrap();
    // Until it has tried.
    let tries = |fd: &Path| fs::read_link(fd).is_ok_and(|file| file == scene.pod("p").join("LOCK"));
    let fds = format!("/proc/{}/fd", next.id());
    while !fs::read_dir(&fds)
        .into_iter()
        .flatten()
        .flatten()
        .any(|fd| tries(&fd.path()))
        && !gone(&next.id().to_string())
    {}
    // Long enough to give up, and a tenth of what it waits.
    std::thread::sleep(Duration::from_millis(100));
    drop(lock);
    assert_eq!(finish(next).ends(0).out, "again\n");
}

#[test]
fn a_lock_is_not_waited_for_without_end() {
    for pid in [nobody(), std::process::id()] {
        let scene = Scene::new();
        let _lock = locked(&scene, pid);
        let next = scene.yoi(&["run", "--pod", "p", "-m", &hello(&scene), "hello"]);
        next.ends(75)
            .says(&[&format!("p is in use by process {pid}")]);
    }
}
