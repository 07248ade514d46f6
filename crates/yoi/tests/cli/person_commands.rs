//! A person's commands: `!` on a screen, and `yoi send --run`.

use crate::at_screen::AtScreen;
use crate::hosts::Host;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};

const DETACH: &str = "\u{1c}";

fn scene(answers: &[Value], args: &[&str]) -> (Scene, Host) {
    let scene = Scene::new();
    let model = scene.script("s.jsonl", answers);
    let host = Host::start(&scene, &[&["-m", &model], args].concat());
    (scene, host)
}

#[test]
fn a_command_on_the_screen_runs_and_the_model_reads_of_it_later() {
    let (scene, host) = scene(&[json!({ "text": "it printed forty-two" })], &[]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("! echo $((6 * 7)) > made");
    person.sees("Enter runs the rest as a shell command of yours");
    person.types("\r");
    person.sees("turn 1: done");
    assert_eq!(scene.read("made"), "42\n");
    person.types("what did it print?\r");
    person.sees("it printed forty-two");
    person.types(DETACH);
    person.ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    let at = |text: &str| {
        log.find(text)
            .unwrap_or_else(|| panic!("no {text} in {log}"))
    };
    assert!(
        at("> ! echo") < at("• c00000001 Bash") && at("turn 1: done") < at("> what did it print?"),
        "{log}"
    );
    assert!(
        scene
            .yoi(&["ls"])
            .ends(0)
            .out
            .contains("! echo $((6 * 7)) > made")
    );
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_script_sends_one_and_a_pod_without_bash_says_what_to_do() {
    let (scene, host) = scene(&[], &[]);
    let made = scene
        .yoi(&["send", "p", "--run", "--wait", "echo made | tee made"])
        .ends(0);
    assert_eq!(
        (scene.read("made").as_str(), made.out.as_str()),
        ("made\n", "made\n")
    );
    let failed = scene
        .yoi(&["send", "p", "--run", "--wait", "echo why; exit 3"])
        .ends(1)
        .says(&["error: exit 3 in "]);
    assert_eq!(failed.out, "why\n");
    let told = scene
        .yoi(&["send", "p", "--run", "--wait", "--json", "exit 4"])
        .ends(1)
        .json();
    assert_eq!(
        (&told["status"], &told["input"]),
        (&json!("error"), &json!(3))
    );
    let both = scene.yoi(&["send", "p", "--run", "--steer", "ls"]).ends(2);
    assert!(
        both.err
            .contains("--run and --steer cannot be used together"),
        "{}",
        both.err
    );
    host.end(Signal::TERM);
    scene.sound("p");
    let (scene, host) = self::scene(&[], &["--without", "builtin:shell"]);
    let refused = scene.yoi(&["send", "p", "--run", "ls"]).ends(1);
    for words in [
        "this pod has no tool Bash, so it runs no commands",
        "`yoi features` shows what left out `builtin:shell`",
    ] {
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_script_calls_a_tool_and_gets_its_result() {
    let (scene, host) = scene(&[], &[]);
    scene.write("a.txt", "one\n");
    let read = scene
        .yoi(&["call", "p", "Read", r#"{"path":"a.txt"}"#])
        .ends(0);
    assert!(read.out.contains("one"), "{}", read.out);
    let lost = scene
        .yoi(&["call", "p", "Read", r#"{"path":"b.txt"}"#])
        .ends(1);
    assert!(lost.err.contains("b.txt"), "{}", lost.err);
    for (arguments, words) in [
        (vec!["call", "p", "Raed"], "there is no tool called `Raed`"),
        (vec!["call", "p", "Read", "[]"], "no JSON object"),
    ] {
        let refused = scene.yoi(&arguments);
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    let told = scene
        .yoi(&[
            "call",
            "p",
            "Read",
            r#"{"path":"a.txt"}"#,
            "--json",
            "--key",
            "k",
        ])
        .ends(0)
        .json();
    assert_eq!((&told["status"], &told["input"]), (&json!("ok"), &json!(3)));
    // A later start knows it, too.
    host.end(Signal::TERM);
    let host = Host::start(&scene, &[]);
    let again = scene
        .yoi(&[
            "call",
            "p",
            "Read",
            r#"{"path":"a.txt"}"#,
            "--json",
            "--key",
            "k",
        ])
        .ends(0)
        .json();
    assert_eq!(again, told);
    host.end(Signal::TERM);
    scene.sound("p");
}
