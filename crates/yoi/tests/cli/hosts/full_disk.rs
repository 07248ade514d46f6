//! A start and a stop that the disk does not take. A bound on the size of files stands for a disk without room: it is
//! there for one process, and needs no rights.

use super::{Host, until};
use crate::scene::{Scene, finish};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A start that fails may take this long. One that waits for the disk takes half a minute.
const SOON: Duration = Duration::from_secs(10);

/// Lets a process write no byte to its journal, which is longer.
fn fill(pid: u32) {
    let limit = Rlimit {
        current: Some(4096),
        maximum: None,
    };
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

#[test]
fn a_start_that_cannot_be_recorded_fails_soon_and_says_why() {
    let scene = Scene::new();
    Host::start(&scene, &["-m", "offline"]).end(Signal::TERM);
    let log = scene.log_file("p");
    // Less than the journal has, more than any other file of a start.
    let blocks = std::fs::metadata(&log).unwrap().len() / 1024;
    assert!(blocks > 0);
    let start = scene.command(&["start", "p"]);
    let mut limited = std::process::Command::new("/bin/sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\""))
        .arg(start.get_program());
    limited
        .args(start.get_args())
        .env_clear()
        .current_dir(scene.path("project"));
    limited.envs(
        start
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let began = Instant::now();
    let limited = limited
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let done = finish(limited).ends(74);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let log = log.display().to_string();
    done.says(&[
        "error: p cannot start: ",
        &log,
        "help: nothing was started; ",
        "`yoi start p` again",
    ]);
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["state     stopped"]);
    Host::start(&scene, &[]).end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_stop_that_cannot_be_recorded_says_so() {
    let scene = Scene::new();
    let host = Host::start(&scene, &["-m", "offline"]);
    scene
        .yoi(&["send", "p", "--wait", "list the files"])
        .ends(0);
    fill(host.pid);
    scene
        .yoi(&["send", "p", "list the files"])
        .ends(74)
        .says(&["nothing was accepted"]);
    scene.yoi(&["stop", "p"]).ends(74).says(&[
        "error: p is stopped, but its end could not be recorded: ",
        "help: accepted inputs are kept; ",
        "`yoi start p` recovers it",
    ]);
    until("the process has ended", || host.is_gone());
    // Nothing said how the process had ended.
    let end = " ago with exit code 74: ";
    scene.yoi(&["status", "p"]).ends(0).prints(&[
        "state     crashed",
        "crash     its process ended ",
        end,
    ]);
    let list = scene.yoi(&["ls"]).ends(0);
    list.prints(&[end, "`yoi start p` starts it again"]);
    let again = Host::start(&scene, &[]);
    scene
        .yoi(&["stop", "p"])
        .ends(0)
        .prints(&["p is stopped\n"]);
    until("the process has ended", || again.is_gone());
    scene.sound("p");
}
