//! What is said without any state: help, usage errors, and every command on nothing.

use crate::scene::Scene;
use std::fs;
use std::process::Stdio;

#[test]
fn every_command_on_nothing() {
    let scene = Scene::new();
    assert_eq!(
        scene.yoi(&["ls", "--json"]).ends(0).json(),
        serde_json::json!([])
    );
    for command in ["verify", "diff", "undo", "features"] {
        scene.yoi(&[command, "nobody"]).ends(2);
    }
    scene
        .yoi(&["features"])
        .ends(0)
        .prints(&["builtin:files", "builtin:search", "builtin:shell"]);
    scene
        .yoi(&["features", "--plan"])
        .ends(0)
        .prints(&["installed"]);
    assert!(scene.yoi(&["features", "--json"]).ends(0).json()["features"].is_array());
    scene
        .yoi(&["config", "path"])
        .ends(0)
        .prints(&["/etc/yoi/config.toml", "config/yoi/config.toml"]);
    scene.yoi(&["config", "check"]).ends(0);
    scene
        .yoi(&["config", "show"])
        .ends(0)
        .prints(&["limits.max_steps", "500", "default"]);
    assert!(
        scene
            .yoi(&["config", "show", "--json"])
            .ends(0)
            .json()
            .is_array()
    );
    let written = scene.yoi(&["config", "init"]).ends(0).prints(&["wrote "]);
    assert!(written.out.contains("config.toml"));
    scene.yoi(&["config", "check"]).ends(0);
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let scene = Scene::new();
    let full = || {
        Stdio::from(
            fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
    };
    for args in [
        &["ls"][..],
        &["config", "show"],
        &["run", "how many files are here?"],
    ] {
        let child = scene.command(args).stdout(full()).spawn().unwrap();
        crate::scene::finish(child)
            .ends(74)
            .says(&["standard output cannot be written"]);
    }
}

#[test]
fn a_home_that_is_not_there_is_said() {
    let scene = Scene::new();
    let bare = |args: &[&str]| {
        let mut command = scene.command(args);
        command
            .env_remove("HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME");
        crate::scene::finish(command.spawn().unwrap())
    };
    bare(&["run", "x"])
        .ends(78)
        .says(&["HOME is not set", "XDG_STATE_HOME"]);
    bare(&["ls"]).ends(78).says(&["HOME is not set"]);
}

#[test]
fn an_option_of_a_pod_without_a_command_says_where_it_belongs() {
    let scene = Scene::new();
    for option in ["-m", "--model"] {
        let help = format!("write `yoi start NAME {option} …`, then `yoi attach NAME`");
        scene
            .yoi(&[option, "offline"])
            .ends(2)
            .says(&[&format!("`yoi` has no option `{option}`"), &help]);
    }
    scene
        .yoi(&["--modle", "offline"])
        .ends(2)
        .says(&["`yoi --help` lists the options"]);
}
