//! Features that are scripts in Lua: what this program runs itself, confined, from a grant to a run.

use crate::plugins::{SYSTEM_PATH, called_once, has_python};
use crate::scene::{Done, Scene, finish};
use serde_json::json;
use std::fs;

fn example(name: &str) -> String {
    format!("{}/../../docs/plugins/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(scene: &Scene, args: &[&str]) -> Done {
    let mut command = scene.command(args);
    finish(command.env("PATH", SYSTEM_PATH).spawn().unwrap())
}

/// The log of a run whose push is refused until its branch is reviewed, without times and the directory of the scene.
fn reviewed(package: &str) -> String {
    let scene = Scene::new();
    scene.yoi(&["plugin", "add", &example(package)]).ends(0);
    scene.yoi(&["grant", "plugin:review-first"]).ends(0);
    let push = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo git push origin fix" } }] });
    let review = json!({ "calls": [{ "name": "Reviewed", "arguments": { "branch": "fix" } }] });
    let script = [push.clone(), review, push, json!({ "text": "done" })];
    let model = scene.script("push.jsonl", &script);
    run(&scene, &["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    scene.yoi(&["verify", "p"]).ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let log = log.replace(scene.path("").to_str().unwrap(), "SCENE/");
    let without_times = log
        .lines()
        .map(|line| match line.split_once(" started in ") {
            Some((_, after)) => format!("started in {after}"),
            None => line.split(" in 0.").next().unwrap_or_default().to_owned(),
        });
    without_times.map(|line| line + "\n").collect()
}

#[test]
fn the_same_feature_in_lua_gives_the_same_transcript() {
    let lua = reviewed("review-first-lua");
    assert!(
        lua.contains("this branch was not reviewed") && lua.contains("1 reviewed"),
        "{lua}"
    );
    if has_python() {
        assert_eq!(lua, reviewed("review-first"));
    }
}

#[test]
fn a_new_package_in_lua_works_as_it_is() {
    let scene = Scene::new();
    scene.yoi(&["plugin", "new", "acme-first", "--lua"]).ends(0);
    let checked = scene.yoi(&["plugin", "check", "acme-first"]).ends(0);
    checked.prints(&["guests run `yoi __lua {package}/main.lua`", "valid"]);
    scene.yoi(&["plugin", "add", "acme-first"]).ends(0);
    scene.yoi(&["grant", "plugin:acme-first"]).ends(0);
    let (failed, said) = called_once(
        &scene,
        "p",
        "acme_first_reviewed",
        json!({ "branch": "fix" }),
    );
    assert!(!failed && said.contains("1 reviewed"), "{said}");
    // A script that is not in the package.
    fs::remove_file(scene.file("acme-first/main.lua")).unwrap();
    let checked = scene.yoi(&["plugin", "check", "acme-first"]).ends(65);
    checked.prints(&["the file `main.lua` of guest is not in the package"]);
}
