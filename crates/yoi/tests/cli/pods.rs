//! Pods by name: listing, looking, removing.

use crate::hosts::Host;
use crate::person::AtTerminal;
use crate::scene::Scene;
use serde_json::json;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

fn with_pods(names: &[&str]) -> Scene {
    let scene = Scene::new();
    let model = scene.script(
        "script.jsonl",
        &[json!({ "text": "hello", "usage": { "input": 40, "output": 2 } })],
    );
    for name in names {
        scene
            .yoi(&["run", "--pod", name, "-m", &model, "say hello"])
            .ends(0);
    }
    scene
}

#[test]
fn a_unique_beginning_is_enough_for_reading() {
    let scene = with_pods(&["alpha", "alpine", "beta"]);
    scene
        .yoi(&["log", "be"])
        .ends(0)
        .prints(&["> say hello", "hello"]);
    scene.yoi(&["verify", "b"]).ends(0).prints(&[
        "beta: ",
        "records intact",
        "1 of 1 request rebuilt",
    ]);
    scene
        .yoi(&["features", "bet"])
        .ends(0)
        .prints(&["builtin:files"]);
    for command in ["log", "verify", "diff", "undo"] {
        let done = scene.yoi(&[command, "al"]).ends(2);
        done.says(&[
            "`al` is ambiguous (2 pods: alpha, alpine)",
            "help: type more of the name",
        ]);
    }
    scene
        .yoi(&["rm", "bet"])
        .ends(2)
        .says(&["there is no pod called `bet`", "rm needs the full name"]);
    // For `run` a name is a name: it may be new.
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene
        .yoi(&["run", "--pod", "al", "-m", &model, "x"])
        .ends(0);
    scene.yoi(&["log", "al"]).ends(0).prints(&["> x"]);
    assert_eq!(scene.pods(), ["al", "alpha", "alpine", "beta"]);
}

#[test]
fn without_a_name_the_last_run_here_is_meant() {
    let scene = with_pods(&["alpha", "beta"]);
    scene
        .yoi(&["log"])
        .ends(0)
        .prints(&["> say hello", "hello"]);
    scene
        .yoi(&["verify"])
        .ends(0)
        .prints(&["beta: ", "records intact"]);
    scene
        .yoi(&["diff"])
        .ends(0)
        .prints(&["beta changed no file"]);
    scene
        .yoi(&["features", "--unused"])
        .ends(0)
        .prints(&["beta"]);
    scene
        .yoi(&["features", "--diff", "1"])
        .ends(0)
        .prints(&["beta has only start 1"]);
    scene
        .yoi(&["features"])
        .ends(0)
        .prints(&["the next start in this directory would install"]);
    scene.yoi(&["undo"]).ends(2).says(&[
        "no terminal to ask at",
        "`yoi undo -y` undoes the changes of beta",
    ]);
    scene
        .yoi(&["undo", "-y"])
        .ends(0)
        .prints(&["beta: nothing to undo"]);
    let model = scene.script("script.jsonl", &vec![json!({ "text": "hello" }); 9]);
    scene
        .yoi(&["run", "--pod", "alpha", "-m", &model, "again"])
        .ends(0);
    scene.yoi(&["verify"]).ends(0).prints(&["alpha: "]);
    let elsewhere = scene.path("tmp").display().to_string();
    for command in ["log", "verify", "diff", "undo"] {
        let done = scene.yoi(&["-C", &elsewhere, command]).ends(2);
        done.says(&[
            "there is no run in ",
            "help: name a pod; `yoi ls` lists the names",
        ]);
    }
}

#[test]
fn ls_says_how_pods_stand() {
    let scene = with_pods(&["alpha", "beta"]);
    let listed = scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["NAME", "alpha", "beta", "done", "say hello"]);
    assert!(!listed.out.contains(" 0s ago"), "{}", listed.out);
    fs::create_dir(scene.pod("empty")).unwrap();
    let listed = scene.yoi(&["ls"]).ends(0);
    assert!(
        listed
            .out
            .lines()
            .any(|row| row.starts_with("empty  empty  never") && row.ends_with(" -")),
        "{}",
        listed.out
    );
    let rows = scene.yoi(&["ls", "--json"]).ends(0).json();
    let names: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["beta", "alpha", "empty"], "newest first");
    let runs = scene.script("script.jsonl", &[json!({ "text": "x" })]);
    (0..12).for_each(|_| drop(scene.yoi(&["run", "-m", &runs, "x"]).ends(0)));
    let shown = |args: &[&str]| scene.yoi(args).ends(0).json().as_array().unwrap().len();
    assert_eq!(
        (shown(&["ls", "--json"]), shown(&["ls", "--json", "--all"])),
        (13, 15)
    );
    let more = "\nand 2 older runs: `yoi ls --all`\n";
    scene.yoi(&["ls"]).ends(0).prints(&[more]);
    assert!(
        !scene
            .yoi(&["ls", "--all"])
            .ends(0)
            .out
            .contains("older run")
    );
}

/// A pod of a run that was not understood, and one in another directory with a log that is not read whole.
fn with_other_pods() -> Scene {
    let scene = with_pods(&["alpha", "beta"]);
    scene
        .yoi(&["run", "--pod", "odd", "-m", "offline", "qwx\nzzz"])
        .ends(1);
    let read = json!({ "calls": [{ "name": "List", "arguments": { "path": "." } }] });
    let answers = [vec![read; 40], vec![json!({ "text": "done" })]].concat();
    let model = scene.script("long.jsonl", &answers);
    fs::create_dir_all(scene.path("home/other/.git")).unwrap();
    let other = scene.path("home/other").display().to_string();
    scene
        .yoi(&[
            "-C",
            &other,
            "run",
            "--pod",
            "long",
            "-m",
            &model,
            "look around, and then look again",
        ])
        .ends(0);
    assert!(scene.records("long").len() > 200);
    scene
}

#[test]
fn ls_says_what_pods_were_asked_and_where() {
    let scene = with_other_pods();
    let listed = scene.yoi(&["ls"]).ends(0);
    let row = |name: &str| {
        listed
            .out
            .lines()
            .find(|row| row.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(
        row("alpha").ends_with("  scripted  say hello"),
        "{}",
        listed.out
    );
    assert!(
        row("odd").contains("  failed  ") && row("odd").ends_with("  offline   qwx"),
        "{}",
        listed.out
    );
    assert!(
        row("long").ends_with("  ~/other: look around, and then look again"),
        "{}",
        listed.out
    );
    let rows = scene.yoi(&["ls", "--json"]).ends(0).json();
    let long = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "long")
        .unwrap();
    assert_eq!(
        (&long["state"], &long["outcome"]),
        (&json!("stopped"), &json!("done"))
    );
    assert_eq!(long["prompt"], "look around, and then look again");
    assert_eq!(
        long["directory"],
        scene.path("home/other").to_str().unwrap()
    );
    // A terminal gets as much as it has room for.
    for columns in [80, 60, 40] {
        let shown = AtTerminal::start_drawing(&scene, columns, false, &["ls"]).ends(0);
        assert!(
            shown
                .lines()
                .all(|line| line.chars().count() <= usize::from(columns)),
            "{columns}\n{shown}"
        );
        assert!(
            shown.contains("failed") && shown.contains("look aro"),
            "{columns}\n{shown}"
        );
    }
    let shown = AtTerminal::start_drawing(&scene, 80, true, &["ls"]).ends(0);
    assert!(
        shown.contains("\u{1b}[1;31mfailed\u{1b}[0m") && shown.contains("\u{1b}[32mdone\u{1b}[0m"),
        "{shown}"
    );
}

#[test]
fn many_pods_are_removed_after_a_count() {
    let scene = with_other_pods();
    scene
        .yoi(&["rm"])
        .ends(2)
        .says(&["the pod's name is missing"]);
    scene.yoi(&["rm", "--all", "alpha"]).ends(2);
    let asks = [
        "1 pod would be removed, and there is no terminal to ask at",
        "help: -y removes it without asking",
    ];
    scene.yoi(&["rm", "--failed"]).ends(2).says(&asks);
    scene
        .yoi(&["rm", "--older-than", "30d", "-y"])
        .ends(0)
        .prints(&["no pod to remove"]);
    assert_eq!(scene.pods(), ["alpha", "beta", "long", "odd"]);
    for path in [
        scene.pod("alpha"),
        scene.pod("alpha").join("HEAD"),
        scene.pod("odd").join("HEAD"),
    ] {
        let old = SystemTime::now() - Duration::from_secs(31 * 24 * 3600);
        File::open(path).unwrap().set_modified(old).unwrap();
    }
    scene
        .yoi(&["rm", "--older-than", "30d", "--failed", "-y"])
        .ends(0)
        .prints(&["no pod to remove"]);
    scene
        .yoi(&["rm", "--older-than", "30d", "-y"])
        .ends(0)
        .prints(&["moved 1 pod to ", "trash"]);
    assert!(scene.path("state/yoi/trash/alpha.1/log").is_dir());
    scene
        .yoi(&["rm", "--failed", "-y"])
        .ends(0)
        .prints(&["moved 1 pod to "]);
    assert_eq!(scene.pods(), ["beta", "long"]);
    let _running = Host::start(&scene, &["-m", "offline"]);
    for answer in ["n\n", "y\n"] {
        assert_eq!(scene.pods(), ["beta", "long", "p"]);
        let mut person = AtTerminal::start(&scene, "y\n", &["rm", "--all", "--purge"]);
        [
            "1 running pod is kept",
            "2 pods: beta, long",
            "delete them for good? y or n: ",
        ]
        .iter()
        .for_each(|shown| person.sees(shown));
        person.types(answer);
        let said = if answer == "y\n" {
            "deleted 2 pods"
        } else {
            "nothing was removed"
        };
        assert!(person.ends(i32::from(answer == "n\n")).contains(said));
    }
    assert_eq!(scene.pods(), ["p"]);
}

#[test]
fn a_word_for_a_model_leads_to_its_name() {
    let scene = Scene::new();
    scene.config("[providers.toy]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"toy/small\"]\nmax_output = 100\n");
    for (word, meant) in [
        ("gpt-4", "openai/gpt-4.1"),
        ("claude-sonet-5", "anthropic/claude-sonnet-5"),
        ("toy", "toy/small"),
        ("ollama", "ollama/MODEL"),
        ("offlin", "offline"),
    ] {
        let said = format!("help: did you mean `{meant}`? `yoi models` lists the models");
        scene
            .yoi(&["run", "-m", word, "x"])
            .ends(78)
            .says(&[&format!("`{word}` is not a model"), &said]);
    }
    scene
        .yoi(&["run", "-m", "xyz", "x"])
        .ends(78)
        .says(&["help: write PROVIDER/MODEL, such as "]);
}

#[test]
fn the_log_in_its_forms() {
    let scene = with_pods(&["alpha"]);
    let all = scene.yoi(&["log", "alpha"]).ends(0);
    let last = all.out.lines().last().unwrap().trim_start();
    assert!(last.contains("turn 1: done"), "{last}");
    let seq = last.split(' ').next().unwrap();
    assert_eq!(
        scene
            .yoi(&["log", "alpha", "--from", seq])
            .ends(0)
            .out
            .lines()
            .count(),
        1
    );
    assert_eq!(
        scene.yoi(&["log", "alpha", "--from", "999999"]).ends(0).out,
        ""
    );
    let records = scene.yoi(&["log", "alpha", "--json"]).ends(0).lines();
    assert!(records.iter().all(|record| record["k"].is_string()));
    assert_eq!(records[0]["k"], "segment");
}

#[test]
fn a_directory_that_a_crash_left_empty_becomes_a_pod() {
    let scene = with_pods(&["alpha"]);
    fs::create_dir(scene.pod("empty")).unwrap();
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene
        .yoi(&["run", "--pod", "empty", "-m", &model, "x"])
        .ends(0);
    scene.sound("empty");
}

/// `yoi rm a b` was refused: only one name was taken.
#[test]
fn several_pods_are_removed_and_each_is_reported() {
    let scene = with_pods(&["a", "b", "c", "d"]);
    let done = scene
        .yoi(&["rm", "a", "none", "b"])
        .ends(2)
        .says(&["there is no pod called `none`"]);
    done.prints(&["moved a to ", "moved b to "]);
    // A name that is not valid removes nothing.
    scene
        .yoi(&["rm", "c", "../d"])
        .ends(2)
        .says(&["`../d` is not a valid pod name"]);
    assert_eq!(scene.pods(), ["c", "d"]);
    scene
        .yoi(&["rm", "--purge", "c", "d"])
        .ends(0)
        .prints(&["deleted c\ndeleted d\n"]);
    scene.yoi(&["rm", "--all", "c", "d"]).ends(2);
}

#[test]
fn removed_pods_go_to_the_trash_or_away() {
    let scene = with_pods(&["alpha", "beta"]);
    scene
        .yoi(&["rm", "alpha"])
        .ends(0)
        .prints(&["moved alpha to ", "trash/alpha.1"]);
    assert!(scene.path("state/yoi/trash/alpha.1/log").is_dir());
    scene.yoi(&["log", "alpha"]).ends(2);
    let model = scene.script("script.jsonl", &[json!({ "text": "hello" })]);
    scene
        .yoi(&["run", "--pod", "alpha", "-m", &model, "x"])
        .ends(0);
    scene
        .yoi(&["rm", "alpha"])
        .ends(0)
        .prints(&["trash/alpha.2"]);
    scene
        .yoi(&["rm", "beta", "--purge"])
        .ends(0)
        .prints(&["deleted beta"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
    assert!(!scene.path("state/yoi/trash/beta.1").exists());
    scene.yoi(&["run", "-c", "x"]).ends(2).says(&["no run in"]);
}

#[test]
fn the_doctor_says_what_works() {
    let scene = with_pods(&["alpha"]);
    let checks = scene.yoi(&["doctor", "--json"]).json();
    let state = |about: &str| {
        let check = checks
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["about"] == about)
            .unwrap();
        check["state"].as_str().unwrap().to_owned()
    };
    for about in ["state", "configuration", "model", "features", "journals"] {
        assert_eq!(state(about), "works", "{about}: {checks}");
    }
    let text = scene.yoi(&["doctor"]);
    assert!(
        text.out.contains("✓ state") && text.out.contains("1 of 1 journal intact"),
        "{}",
        text.out
    );
    scene.config(
        "[providers.far]\napi = \"openai-chat\"\nbase_url = \"http://nohost.invalid/v1\"\n",
    );
    let text = scene.yoi(&["doctor"]).prints(&[
        "asked, but not running: ",
        "far",
        "in the plan for this directory",
    ]);
    assert!(
        text.out
            .contains("✓ configuration  $XDG_CONFIG_HOME/yoi/config.toml\n"),
        "{}",
        text.out
    );
    let models = scene
        .yoi(&["models"])
        .ends(0)
        .prints(&["- far          http://nohost.invalid/v1: the host name is not known\n"]);
    assert!(!models.out.contains("lookup"), "{}", models.out);
    let shown = AtTerminal::start_drawing(&scene, 50, true, &["doctor"]).ends(0);
    assert!(shown.contains("\u{1b}[32m✓\u{1b}[0m"), "{shown}");
    let plain = AtTerminal::start_drawing(&scene, 50, false, &["models"]).ends(0);
    assert!(
        plain
            .lines()
            .filter(|line| !line.contains("default"))
            .all(|line| line.chars().count() <= 50),
        "{plain}"
    );
}
