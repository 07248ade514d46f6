//! Pods by name: listing, looking, removing.

use crate::scene::Scene;
use serde_json::json;
use std::fs;

fn with_pods(names: &[&str]) -> Scene {
    let scene = Scene::new();
    let model = scene.script("script.jsonl", &[json!({ "text": "hello", "usage": { "input": 40, "output": 2 } })]);
    for name in names {
        scene.yoi(&["run", "--pod", name, "-m", &model, "say hello"]).ends(0);
    }
    scene
}

#[test]
fn a_unique_beginning_is_enough_for_reading() {
    let scene = with_pods(&["alpha", "alpine", "beta"]);
    scene.yoi(&["log", "be"]).ends(0).prints(&["> say hello", "hello"]);
    scene.yoi(&["verify", "b"]).ends(0).prints(&["beta: ", "records intact", "1 of 1 request rebuilt"]);
    scene.yoi(&["features", "bet"]).ends(0).prints(&["builtin:files"]);
    for command in ["log", "verify", "diff", "undo"] {
        let done = scene.yoi(&[command, "al"]).ends(2);
        done.says(&["`al` is ambiguous (2 pods: alpha, alpine)", "help: type more of the name"]);
    }
    scene.yoi(&["rm", "bet"]).ends(2).says(&["there is no pod called `bet`", "rm needs the full name"]);
    // For `run` a name is a name: it may be new.
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene.yoi(&["run", "--pod", "al", "-m", &model, "x"]).ends(0);
    scene.yoi(&["log", "al"]).ends(0).prints(&["> x"]);
    assert_eq!(scene.pods(), ["al", "alpha", "alpine", "beta"]);
}

#[test]
fn without_a_name_the_last_run_here_is_meant() {
    let scene = with_pods(&["alpha", "beta"]);
    scene.yoi(&["log"]).ends(0).prints(&["> say hello", "hello"]);
    scene.yoi(&["verify"]).ends(0).prints(&["beta: ", "records intact"]);
    scene.yoi(&["diff"]).ends(0).prints(&["beta changed no file"]);
    scene.yoi(&["features", "--unused"]).ends(0).prints(&["beta"]);
    scene.yoi(&["features", "--diff", "1"]).ends(0).prints(&["beta has only start 1"]);
    scene.yoi(&["features"]).ends(0).prints(&["the next start in this directory would install"]);
    scene.yoi(&["undo"]).ends(2).says(&["no terminal to ask at", "`yoi undo -y` undoes the changes of beta"]);
    scene.yoi(&["undo", "-y"]).ends(0).prints(&["beta: nothing to undo"]);
    let model = scene.script("script.jsonl", &vec![json!({ "text": "hello" }); 9]);
    scene.yoi(&["run", "--pod", "alpha", "-m", &model, "again"]).ends(0);
    scene.yoi(&["verify"]).ends(0).prints(&["alpha: "]);
    let elsewhere = scene.path("tmp").display().to_string();
    for command in ["log", "verify", "diff", "undo"] {
        let done = scene.yoi(&["-C", &elsewhere, command]).ends(2);
        done.says(&["there is no run in ", "help: name a pod; `yoi ls` lists the names"]);
    }
}

#[test]
fn ls_says_how_pods_stand() {
    let scene = with_pods(&["alpha", "beta"]);
    let listed = scene.yoi(&["ls"]).ends(0).prints(&["NAME", "alpha", "beta", "stopped", "42"]);
    assert!(!listed.out.contains(" 0s ago"), "{}", listed.out);
    fs::create_dir(scene.pod("empty")).unwrap();
    let listed = scene.yoi(&["ls"]).ends(0);
    assert!(listed.out.lines().any(|row| row.starts_with("empty  empty") && row.ends_with("never")), "{}", listed.out);
    let rows = scene.yoi(&["ls", "--json"]).ends(0).json();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["beta", "alpha", "empty"], "newest first");
    let runs = scene.script("script.jsonl", &[json!({ "text": "x" })]);
    (0..12).for_each(|_| drop(scene.yoi(&["run", "-m", &runs, "x"]).ends(0)));
    let shown = |args: &[&str]| scene.yoi(args).ends(0).json().as_array().unwrap().len();
    assert_eq!((shown(&["ls", "--json"]), shown(&["ls", "--json", "--all"])), (13, 15));
}

#[test]
fn the_log_in_its_forms() {
    let scene = with_pods(&["alpha"]);
    let all = scene.yoi(&["log", "alpha"]).ends(0);
    let last = all.out.lines().last().unwrap().trim_start();
    assert!(last.contains("turn 1: done"), "{last}");
    let seq = last.split(' ').next().unwrap();
    assert_eq!(scene.yoi(&["log", "alpha", "--from", seq]).ends(0).out.lines().count(), 1);
    assert_eq!(scene.yoi(&["log", "alpha", "--from", "999999"]).ends(0).out, "");
    let records = scene.yoi(&["log", "alpha", "--json"]).ends(0).lines();
    assert!(records.iter().all(|record| record["k"].is_string()));
    assert_eq!(records[0]["k"], "segment");
}

#[test]
fn a_directory_that_a_crash_left_empty_becomes_a_pod() {
    let scene = with_pods(&["alpha"]);
    fs::create_dir(scene.pod("empty")).unwrap();
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene.yoi(&["run", "--pod", "empty", "-m", &model, "x"]).ends(0);
    scene.sound("empty");
}

#[test]
fn removed_pods_go_to_the_trash_or_away() {
    let scene = with_pods(&["alpha", "beta"]);
    scene.yoi(&["rm", "alpha"]).ends(0).prints(&["moved alpha to ", "trash/alpha.1"]);
    assert!(scene.path("state/yoi/trash/alpha.1/log").is_dir());
    scene.yoi(&["log", "alpha"]).ends(2);
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene.yoi(&["run", "--pod", "alpha", "-m", &model, "x"]).ends(0);
    scene.yoi(&["rm", "alpha"]).ends(0).prints(&["trash/alpha.2"]);
    scene.yoi(&["rm", "beta", "--purge"]).ends(0).prints(&["deleted beta"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
    assert!(!scene.path("state/yoi/trash/beta.1").exists());
    scene.yoi(&["run", "-c", "x"]).ends(2).says(&["no run in"]);
}

#[test]
fn the_doctor_says_what_works() {
    let scene = with_pods(&["alpha"]);
    let checks = scene.yoi(&["doctor", "--json"]).json();
    let state = |about: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["about"] == about).unwrap();
        check["state"].as_str().unwrap().to_owned()
    };
    for about in ["state", "configuration", "model", "features", "journals"] {
        assert_eq!(state(about), "works", "{about}: {checks}");
    }
    let text = scene.yoi(&["doctor"]);
    assert!(text.out.contains("✓ state") && text.out.contains("1 journal intact"), "{}", text.out);
}
