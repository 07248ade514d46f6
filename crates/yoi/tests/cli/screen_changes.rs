//! What a person reads in a question, and changes in panels of the full screen: jobs, switches and grants.

use crate::approvals::bash;
use crate::at_screen::AtScreen;
use crate::hosts::{Host, until};
use crate::person::AtTerminal;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

const DETACH: &str = "\u{1c}";
const F2: &str = "\u{1b}OQ";
const F3: &str = "\u{1b}OR";
const UP: &str = "\u{1b}[A";

fn leave(mut person: AtScreen, scene: &Scene, host: Host) {
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_question_shows_the_parts_of_its_command() {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    let answers = [
        json!({ "calls": [bash("cd . && touch \"$(echo made)\"")] }),
        json!({ "text": "done" }),
    ];
    let host = Host::start(&scene, &["go", "-m", &scene.script("s.jsonl", &answers)]);
    let asked = |record: &Value| record["k"] == "approval_requested";
    until("a question", || scene.records("p").iter().any(asked));
    let record = scene.records("p").into_iter().find(asked).unwrap();
    let parts = json!({ "field": "command", "parts": [
        { "text": "cd .", "at": [0, 2] },
        { "text": "echo made", "at": [17, 21] },
        { "text": "touch \"$(echo made)\"", "at": [8, 13], "asks": true },
    ] });
    assert_eq!(record["command"], parts);
    let listed = "parts: `cd .`, `echo made`, `touch \"$(echo made)\"` (asked about)";
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&["    command: cd . && touch \"$(echo made)\"", listed]);
    // With colours, the program that is asked about stands out from the others.
    let mut terminal = AtTerminal::start_drawing(&scene, 100, true, &["approve"]);
    terminal.sees(
        "\u{1b}[1mcd\u{1b}[0m . && \u{1b}[1;35mtouch\u{1b}[0m \"$(\u{1b}[1mecho\u{1b}[0m made)\"",
    );
    terminal.sees("s: not now: ");
    terminal.types("s\n");
    terminal.ends(0);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("`touch \"$(echo made)\"`");
    person.sees("y allow once");
    // After the time in which no key answers.
    thread::sleep(Duration::from_millis(400));
    person.types("n");
    person.sees("turn 1: done");
    leave(person, &scene, host);
}

/// What is piped stays one line.
#[test]
fn plain_lines_break_between_words_on_a_terminal() {
    let scene = Scene::new();
    let host = Host::start(
        &scene,
        &["-m", &scene.script("s.jsonl", &[json!({ "text": "done" })])],
    );
    let mut person = AtTerminal::start_drawing(&scene, 40, false, &["attach", "--plain", "p"]);
    person.sees("[attached to p, which is idle; /help\r\n  lists the commands]\r\n");
    person.types("\u{4}");
    person.ends(0);
    host.end(Signal::TERM);
    let mut verified = AtTerminal::start_drawing(&scene, 30, false, &["verify", "p"]);
    verified.sees(" records intact; 0 of 0\r\n  requests rebuilt byte for\r\n  byte\r\n");
    verified.ends(0);
    let piped = scene.yoi(&["verify", "p"]).ends(0).out;
    assert_eq!(piped.lines().count(), 1, "{piped}");
}

#[test]
fn a_job_is_stopped_on_the_screen() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:jobs\"]\nenabled = true\n");
    let start =
        json!({ "calls": [{ "name": "JobStart", "arguments": { "command": "sleep 600" } }] });
    let model = scene.script(
        "s.jsonl",
        &[
            start,
            json!({ "text": "started" }),
            json!({ "text": "told" }),
        ],
    );
    let host = Host::start(&scene, &["go", "-m", &model]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("started");
    person.types(F3);
    let shown = person.until("no memory", |screen| {
        screen.contents().contains("iB · of builtin:jobs")
    });
    assert!(shown.contains("job 1 · sleep 600"), "{shown}");
    person.types(UP);
    person.sees("x stop");
    person.types("x");
    person.sees("y stop · n back");
    person.types("y");
    person.sees("job 1 was stopped");
    person.misses("job 1 ·");
    let end = scene
        .records("p")
        .into_iter()
        .find(|record| record["ended"].is_object())
        .unwrap();
    let reason = "a person stopped it with `yoi attach`";
    assert_eq!(
        (&end["ended"]["how"], &end["ended"]["reason"]),
        (&json!("stopped"), &json!(reason))
    );
    person.types(F3);
    leave(person, &scene, host);
}

#[test]
fn a_feature_is_granted_and_switched_on_the_screen() {
    let scene = Scene::new();
    scene.config("# mine\nmodel = \"offline\"\n");
    scene.write("yoi.toml", "[features.\"builtin:jobs\"]\nenabled = true\n");
    let host = Host::start(&scene, &[]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    person.types(F2);
    person.sees("choose a feature");
    let chosen = |shown: &str| {
        shown
            .lines()
            .find(|line| line.starts_with('▶'))
            .map(str::to_owned)
    };
    let mut before = None;
    while before
        .as_ref()
        .is_none_or(|line: &String| !line.starts_with("▶ builtin:jobs"))
    {
        person.types(UP);
        let shown = person.until("nothing else is chosen", |screen| {
            let now = chosen(&screen.contents());
            now.is_some() && now != before
        });
        before = chosen(&shown);
    }
    person.sees("▶ builtin:jobs: e enable · g grant");
    person.types("g");
    person.sees("features.\"builtin:jobs\".enabled = true");
    person.sees("effect: switches builtin:jobs on");
    assert!(
        scene
            .yoi(&["revoke"])
            .ends(0)
            .out
            .contains("nothing is granted"),
        "it was only shown"
    );
    person.sees("y change it");
    person.types("y");
    person.sees("granted: ");
    scene
        .yoi(&["revoke"])
        .ends(0)
        .prints(&["features.\"builtin:jobs\".enabled"]);
    // The file of the project decides now, behind that of the person.
    person.sees("▶ builtin:jobs: x revoke");
    person.types("x");
    person.sees("y change it");
    person.types("y");
    person.sees("revoked: ");
    assert!(
        scene
            .yoi(&["revoke"])
            .ends(0)
            .out
            .contains("nothing is granted")
    );
    person.sees("e enable · g grant");
    person.types("e");
    person.sees("enabled = true");
    person.sees("counts from the next start of the pod");
    person.sees("y change it");
    person.types("y");
    person.sees("config.toml was changed");
    let config = scene.yoi(&["config", "show"]).ends(0).out;
    assert!(config.contains("builtin:jobs"), "{config}");
    person.types(F2);
    leave(person, &scene, host);
}
