//! `yoi schedule`: a person lists, sets and cancels prompts, of a pod that runs and of one that does not.

use crate::hosts::{Host, newest, until};
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::json;

const CONFIG: &str = "[features.\"builtin:schedule\"]\nenabled = true\ntime_zone = \"Europe/Berlin\"\n\
    [[features.\"builtin:schedule\".prompts]]\nname = \"sweep\"\ncron = \"0 0 29 2 *\"\ntext = \"Sweep.\"\n";

#[test]
fn a_person_lists_sets_and_cancels_what_the_model_set_and_the_journal_says_who() {
    let scene = Scene::new();
    scene.config(CONFIG);
    let set = json!({ "calls": [{ "name": "ScheduleCreate", "arguments": {
        "text": "Look at the build.", "cron": "0 9 * * 1-5", "time_zone": "UTC" } }] });
    let model = scene.script("sets.jsonl", &[set, json!({ "text": "set" })]);
    let host = Host::start(&scene, &["-m", &model, "go"]);
    until("the model has set its prompt", || {
        newest(&scene, "turn_finished").is_some()
    });

    scene.yoi(&["schedule", "p"]).ends(0).prints(&[
        "2 prompts; now 20",
        "  sweep (cron 0 0 29 2 * Europe/Berlin), due ",
        "  1 (cron 0 9 * * 1-5 UTC), due ",
    ]);
    let added = scene
        .yoi(&[
            "schedule",
            "p",
            "add",
            "Call Ada.",
            "--at",
            "2299-01-02 09:00",
        ])
        .ends(0);
    assert_eq!(added.out, "prompt 2 set, due 2299-01-02 09:00:00 +01:00\n");
    scene
        .yoi(&["schedule", "p", "add", "In a while.", "--in", "90m"])
        .ends(0)
        .prints(&["prompt 3 set, due 20"]);
    assert_eq!(
        scene.yoi(&["schedule", "p", "cancel", "1"]).ends(0).out,
        "prompt 1 cancelled\n"
    );
    scene
        .yoi(&["schedule", "p", "cancel", "1"])
        .ends(1)
        .says(&["no prompt 1 is set"]);
    scene
        .yoi(&["schedule", "p", "add", "x", "--cron", "never"])
        .ends(1)
        .says(&["the expression has 1 field"]);
    scene.yoi(&["schedule", "p", "add", "x"]).ends(2);
    scene
        .yoi(&[
            "schedule",
            "p",
            "add",
            "x",
            "--in",
            "5m",
            "--cron",
            "* * * * *",
        ])
        .ends(2);
    let wanted = [
        "3 prompts",
        "2 (once), due 2299-01-02 09:00:00 +01:00: Call Ada.",
    ];
    let listed = scene
        .yoi(&["schedule", "p", "list"])
        .ends(0)
        .prints(&wanted);
    assert!(!listed.out.contains("build"), "{}", listed.out);

    let calls: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "client_call")
        .collect();
    let tools: Vec<_> = calls
        .iter()
        .map(|call| call["tool"].as_str().unwrap())
        .collect();
    assert_eq!(
        tools,
        [
            "ScheduleCreate",
            "ScheduleCreate",
            "ScheduleCancel",
            "ScheduleCancel",
            "ScheduleCreate"
        ]
    );
    assert!(
        calls
            .iter()
            .all(|call| call["by"]["client"] == "yoi schedule" && call["by"]["role"] == "driver"),
        "{calls:?}"
    );
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["yoi schedule calls ScheduleCancel id=1"]);

    // A command of a pod can look, and change nothing.
    let marked = |args: &[&str]| {
        scene
            .command(args)
            .env("YOI_CALL", "s/1/c00000001")
            .output()
            .unwrap()
    };
    assert!(marked(&["schedule", "p"]).status.success());
    let refused = marked(&["schedule", "p", "cancel", "2"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("only read"),
        "{refused:?}"
    );

    host.end(Signal::TERM);
    let stopped = scene.yoi(&["schedule", "p"]).ends(0);
    stopped.prints(&[
        "3 prompts; p is not running",
        "  sweep (configured)",
        "  2 (once), due 2299-01-02 09:00:00 +01:00: Call Ada.",
    ]);
    scene
        .yoi(&["schedule", "p", "cancel", "2"])
        .ends(69)
        .says(&["p is not running"]);
    scene.sound("p");
}

#[test]
fn a_pod_without_a_schedule_says_how_to_get_one() {
    let scene = Scene::new();
    let model = scene.script("one.jsonl", &[json!({ "text": "one" })]);
    let host = Host::start(&scene, &["-m", &model]);
    for args in [&["schedule", "p"][..], &["schedule", "p", "cancel", "1"]] {
        scene.yoi(args).ends(78).says(&[
            "p has no schedule: builtin:schedule is not installed",
            "enabled = true",
        ]);
    }
    host.end(Signal::TERM);
    assert_eq!(
        scene.yoi(&["schedule", "p"]).ends(0).out,
        "0 prompts; p is not running\n"
    );
}
