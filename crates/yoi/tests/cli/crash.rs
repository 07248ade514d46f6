//! A run that is killed, and the one after it.

use crate::scene::{Scene, fifo, finish, gone, reached, signal};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn the_run_after_a_killed_one_restores_and_says_so() {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    let command = "echo $$ > started; sleep 600";
    let script = [
        json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] }),
        json!({ "text": "going on" }),
    ];
    let model = scene.script("script.jsonl", &script);
    let run = scene
        .command(&["run", "--pod", "p", "-m", &model, "go"])
        .spawn()
        .unwrap();
    let pid = reached(&scene.file("started"));
    signal(run.id(), Signal::KILL);
    assert_eq!(finish(run).code(), None);
    scene.yoi(&["ls"]).ends(0).prints(&["p ", "crashed"]);
    let done = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go on"])
        .ends(0);
    assert_eq!(done.out, "going on\n");
    done.says(&["restored after a crash: 1 call was interrupted"]);
    assert!(gone(pid.trim()), "no child survives");
    assert_eq!(scene.sound("p"), 1);
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["restored after", "interrupted: 1 call"]);
    assert_eq!(scene.left_behind(), Vec::<std::path::PathBuf>::new());
}
