//! What a log shows of long outputs and inputs, of an undo, and what verifying finds behind the last record shown.

use crate::scene::Scene;
use serde_json::{Value, json};
use std::fs;

#[test]
fn everything_of_an_output_and_an_input_is_shown_on_demand() {
    let scene = Scene::new();
    // Over 64 KiB in lines of an odd length, with characters of several bytes, so that pieces end within one.
    let lines: Vec<String> = (1..=6000).map(|n| format!("zeile {n} äöü…")).collect();
    scene.write("long.txt", lines.join("\n") + "\n");
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "cat long.txt" } }] });
    let model = scene.script("answers.jsonl", &[call, json!({ "text": "read" })]);
    // Without the sandbox a command needs consent, which a rule gives.
    scene.config("[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n");
    let input: Vec<String> = (1..=40_000).map(|n| format!("eingabe {n} é")).collect();
    let input = input.join("\n");
    scene
        .fed(
            &["run", "--pod", "p", "--sandbox", "off", "-m", &model, "-"],
            input.as_bytes(),
        )
        .ends(0);
    let short = scene.yoi(&["log", "p"]).ends(0);
    assert!(!short.out.contains("zeile 3000 ") && !short.out.contains("eingabe 20000 "));
    let full = scene.yoi(&["log", "p", "--full"]).ends(0);
    let shown: Vec<&str> = full.out.lines().map(str::trim_start).collect();
    for expected in [&lines, &input.lines().map(str::to_owned).collect()] {
        let at = shown
            .iter()
            .position(|line| line.ends_with(&expected[0]))
            .expect("its first line");
        let block: Vec<&str> = shown[at..at + expected.len()].to_vec();
        assert!(
            block
                .iter()
                .zip(expected)
                .all(|(shown, line)| shown == line),
            "whole, in order, nothing else"
        );
    }
    assert!(!full.out.contains('\u{fffd}'));
}

/// Each refusal stood twice in a log, with its rule a third time.
#[test]
fn a_refusal_stands_once_in_a_log() {
    let scene = Scene::new();
    scene
        .write(".env", "A=1\n")
        .config("[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"rm\"\ndecision = \"deny\"\n");
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let calls = [
        call("Read", json!({ "path": "/etc/passwd" })),
        call("Read", json!({ "path": ".env" })),
        call("Bash", json!({ "command": "rm x" })),
        call("Nothing", json!({})),
        call("Read", json!({ "pat": "x" })),
    ];
    let model = scene.script(
        "answers.jsonl",
        &[json!({ "calls": calls }), json!({ "text": "x" })],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "look"])
        .ends(3);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let reasons = [
        "reading outside the project",
        "reading a file that may hold secrets: ask",
        "deny Bash rm",
        "there is no tool called `Nothing`",
        "arguments do not fit Read",
    ];
    for reason in reasons {
        assert_eq!(log.matches(reason).count(), 1, "{reason}: {log}");
    }
    assert_eq!(log.matches("--add-dir /etc").count(), 1, "{log}");
}

#[test]
fn an_undo_is_called_so() {
    let scene = Scene::new();
    let call = json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.txt", "content": "x\n" } }] });
    let model = scene.script("answers.jsonl", &[call, json!({ "text": "written" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "write"])
        .ends(0);
    scene.yoi(&["undo", "p"]).ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0);
    let of = |word: &str| {
        log.out
            .lines()
            .filter(|l| l.contains(word) && l.ends_with("a.txt"))
            .count()
    };
    assert_eq!(
        (of("  c00000001 changes "), of("  undo: changes ")),
        (1, 1),
        "{}",
        log.out
    );
}

#[test]
fn records_say_their_projection_and_whose_tool_ran() {
    let scene = Scene::new();
    let call = |name: &str| json!({ "name": name, "arguments": {} });
    let model = scene.script(
        "answers.jsonl",
        &[
            json!({ "calls": [call("List"), call("Nothing")] }),
            json!({ "text": "x" }),
        ],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "look"])
        .ends(0);
    let records = scene.records("p");
    let of = |kind: &str| {
        records
            .iter()
            .filter(|r| r["k"] == kind)
            .cloned()
            .collect::<Vec<Value>>()
    };
    assert!(
        of("request")
            .iter()
            .all(|request| request["projection"] == 3),
        "{records:?}"
    );
    let features: Vec<Option<Value>> = of("tool_finished")
        .iter()
        .map(|r| r.get("feature").cloned())
        .collect();
    assert!(
        features.contains(&Some(json!("builtin:files"))) && features.contains(&None),
        "{features:?}"
    );
}

#[test]
fn damage_behind_a_head_that_is_too_old_is_damage() {
    let scene = Scene::new();
    let model = scene.script(
        "answers.jsonl",
        &[json!({ "text": "one" }), json!({ "text": "two" })],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "first"])
        .ends(0);
    let head = scene.pod("p").join("HEAD");
    let old = fs::read(&head).unwrap();
    let whole = fs::read_to_string(scene.log_file("p")).unwrap().len();
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "second"])
        .ends(0);
    let log = scene.log_file("p");
    let mut bytes = fs::read(&log).unwrap();
    let at = whole
        + String::from_utf8(bytes[whole..].to_vec())
            .unwrap()
            .find("\"k\":\"")
            .unwrap();
    bytes[at + 5] ^= 1;
    fs::write(&log, &bytes).unwrap();
    fs::write(&head, old).unwrap();
    scene
        .yoi(&["verify", "p"])
        .ends(65)
        .says(&["the pod `p` is damaged: "]);
    let found = scene.yoi(&["verify", "p", "--json"]).ends(65).json();
    assert_eq!(found["ok"], false);
    assert!(found["wrong"]["seq"].as_u64().is_some(), "{found}");
}

#[test]
fn a_damaged_pod_is_named_and_the_rest_of_it_copied() {
    let scene = Scene::new();
    let model = scene.script("answers.jsonl", &[json!({ "text": "one" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "first"])
        .ends(0);
    let log = scene.log_file("p");
    let records = scene.records("p");
    let mut text = fs::read_to_string(&log).unwrap();
    text = text.replacen("\"k\":\"surface\"", "\"k\":\"surfacE\"", 1);
    fs::write(&log, text).unwrap();
    let lost = records
        .iter()
        .position(|record| record["k"] == "surface")
        .unwrap() as u64
        + 1;
    scene
        .yoi(&["verify", "p"])
        .ends(65)
        .prints(&["lost: record", "the stored checksum is"])
        .says(&["--salvage NEW"]);
    let found = scene.yoi(&["verify", "p", "--json"]).ends(65).json();
    assert!(
        found["lost"][0][0].as_u64().unwrap() <= lost
            && lost <= found["lost"][0][1].as_u64().unwrap(),
        "{found}"
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "second"])
        .ends(65);
    let damaged = fs::read(&log).unwrap();
    scene
        .yoi(&["verify", "p", "--salvage", "q"])
        .ends(0)
        .prints(&[
            "lost: record",
            " of p to the new pod q; ",
            "p was not changed",
        ]);
    assert_eq!(fs::read(&log).unwrap(), damaged);
    let kinds: Vec<Value> = scene
        .records("q")
        .iter()
        .map(|record| record["k"].clone())
        .collect();
    assert_eq!(kinds.len(), records.len());
    assert!(
        kinds.contains(&json!("gap")) && kinds.contains(&json!("turn_finished")),
        "{kinds:?}"
    );
    scene
        .yoi(&["verify", "p", "--salvage", "q"])
        .ends(2)
        .says(&["already exists"]);
    scene.yoi(&["verify", "p", "--salvage", "../q"]).ends(2);
    let told = scene
        .yoi(&["verify", "p", "--salvage", "r", "--json"])
        .ends(0)
        .json();
    assert_eq!((&told["pod"], &told["lost"]), (&json!("r"), &found["lost"]));
}

#[test]
fn a_diff_for_another_program_is_the_text_itself() {
    let scene = Scene::new();
    let call = json!({ "calls": [{ "name": "Write", "arguments": { "path": "a.txt", "content": "one\r\ntwo \u{1b}[1m\n" } }] });
    let model = scene.script("answers.jsonl", &[call, json!({ "text": "written" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "write"])
        .ends(0);
    let diff = scene.yoi(&["diff", "p"]).ends(0);
    assert!(
        diff.out.contains("+one\r\n+two \u{1b}[1m\n"),
        "{:?}",
        diff.out
    );
}
