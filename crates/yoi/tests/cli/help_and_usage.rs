//! What is said without any state: help, usage errors, and every command on nothing.

use crate::scene::Scene;
use std::fs;
use std::process::Stdio;

#[test]
fn yoi_alone_says_what_it_can_do() {
    let scene = Scene::new();
    let alone = scene.yoi(&[]).ends(0).prints(&["Usage: yoi", "run", "verify", "Exit codes:"]);
    assert!(alone.err.is_empty());
    let long = scene.yoi(&["--help"]).ends(0);
    let commands =
        ["run", "ls", "log", "verify", "diff", "undo", "rm", "features", "feature", "doctor", "config", "models"];
    for command in commands {
        assert!(long.out.contains(&format!("\n  {command} ")), "{command} is not in\n{}", long.out);
        scene.yoi(&[command, "--help"]).ends(0).prints(&["Usage: yoi", command]);
    }
    for code in
        ["0 done", "1 the run failed", "4 step", "65 damaged", "74 journal", "75 busy", "78 configuration", "143"]
    {
        assert!(long.out.contains(code), "{code}");
    }
    scene.yoi(&["--version"]).ends(0).prints(&["yoi "]);
    assert_eq!(fs::read_dir(scene.path("state")).unwrap().count(), 0, "help writes nothing");
}

#[test]
fn a_wrong_command_line_is_two() {
    let scene = Scene::new();
    let wrong: [(&[&str], &str); 14] = [
        (&["rnu"], "unrecognized subcommand"),
        (&["run", "--max-steps", "0", "x"], "--max-steps"),
        (&["run", "--timeout", "soon", "x"], "90s, 10m or 2h"),
        (&["run", "--timeout", "0", "x"], "90s, 10m or 2h"),
        (&["run", "--sandbox", "maybe", "x"], "read-only, workspace-write, off"),
        (&["run", "-c", "--pod", "a", "x"], "cannot be used with"),
        (&["run", "--ephemeral", "--pod", "a", "x"], "cannot be used with"),
        (&["run", "--read-only", "--sandbox", "off", "x"], "cannot be used with"),
        (&["run", "list", "files"], "unexpected argument"),
        (&["run", "--pod", "../a", "x"], "not a pod name"),
        (&["run", "--pod", "-a", "x"], "unexpected argument"),
        (&["run", "--add-dir", "nowhere", "x"], "--add-dir takes a directory"),
        (&["run", "-C", "/nonexistent", "x"], "name a directory that exists"),
        (&["log"], "<NAME>"),
    ];
    for (args, says) in wrong {
        let done = scene.yoi(args).ends(2).says(&[says]);
        assert!(done.out.is_empty(), "{args:?}");
    }
    assert_eq!(scene.pods(), Vec::<String>::new());
}

#[test]
fn every_command_on_nothing() {
    let scene = Scene::new();
    scene.yoi(&["ls"]).ends(0).prints(&["no pods yet; yoi run"]);
    assert_eq!(scene.yoi(&["ls", "--json"]).ends(0).json(), serde_json::json!([]));
    for command in ["log", "verify", "diff", "undo", "rm", "features"] {
        scene.yoi(&[command, "nobody"]).ends(2).says(&["there is no pod called `nobody`", "help: `yoi ls --all`"]);
    }
    for command in ["log", "verify", "diff", "undo"] {
        scene.yoi(&[command, ""]).ends(2).says(&["there is no pod"]);
    }
    scene.yoi(&["rm", "../home"]).ends(2).says(&["not a pod name"]);
    scene.yoi(&["run", "-c", "go on"]).ends(2).says(&["no run in", "leave out -c"]);
    scene.yoi(&["features"]).ends(0).prints(&["builtin:files", "builtin:search", "builtin:shell"]);
    scene.yoi(&["features", "--plan"]).ends(0).prints(&["installed"]);
    assert!(scene.yoi(&["features", "--json"]).ends(0).json()["features"].is_array());
    scene.yoi(&["config", "path"]).ends(0).prints(&["/etc/yoi/config.toml", "config/yoi/config.toml"]);
    scene.yoi(&["config", "check"]).ends(0).prints(&["not there"]);
    scene.yoi(&["config", "show"]).ends(0).prints(&["limits.max_steps", "500", "built-in"]);
    assert!(scene.yoi(&["config", "show", "--json"]).ends(0).json().is_array());
    let written = scene.yoi(&["config", "init"]).ends(0).prints(&["wrote "]);
    assert!(written.out.contains("config.toml"));
    scene.yoi(&["config", "init"]).ends(2).says(&["exists already"]);
    scene.yoi(&["config", "check"]).ends(0).prints(&["good"]);
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let scene = Scene::new();
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for args in [&["ls"][..], &["config", "show"], &["run", "how many files are here?"]] {
        let child = scene.command(args).stdout(full()).spawn().unwrap();
        crate::scene::finish(child).ends(74).says(&["standard output cannot be written"]);
    }
}

#[test]
fn a_home_that_is_not_there_is_said() {
    let scene = Scene::new();
    let bare = |args: &[&str]| {
        let mut command = scene.command(args);
        command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        crate::scene::finish(command.spawn().unwrap())
    };
    bare(&["run", "x"]).ends(78).says(&["HOME is not set", "XDG_STATE_HOME"]);
    bare(&["ls"]).ends(78).says(&["HOME is not set"]);
}
