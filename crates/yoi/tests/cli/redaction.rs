//! `builtin:redact`: what matches is on no screen and in no file of the pod, not in a page of the output either.

use crate::person::AtTerminal;
use crate::scene::{Scene, holding};
use serde_json::{Value, json};
use std::fs;

const CANARY: &str = "canary-77";

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "calls": [{ "name": name, "arguments": arguments }] })
}

#[test]
fn what_matches_is_on_no_screen_and_in_no_file() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:redact\"]\nenabled = true\npatterns = [\"canary-[0-9]+\"]\n");
    fs::write(
        scene.file("data.txt"),
        format!("{CANARY} and more\n").repeat(5_000),
    )
    .unwrap();
    let cat = call("Bash", &json!({ "command": "cat data.txt" }));
    // More than a hook can see whole.
    let flood = call(
        "Bash",
        &json!({ "command": "for i in $(seq 120); do cat data.txt; done" }),
    );
    let fails = call("Bash", &json!({ "command": "cat data.txt >&2; exit 3" }));
    let read = call("Read", &json!({ "path": "data.txt" }));
    let done = json!({ "text": "done" });
    let mut answers = vec![cat, flood, fails, read, done.clone()];
    let model = scene.script("s.jsonl", &answers);
    let json = scene
        .yoi(&["run", "--json", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let results: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "tool_finished")
        .collect();
    let texts: Vec<_> = results
        .iter()
        .map(|result| result["outcome"].to_string())
        .collect();
    assert!(
        texts[0].contains("[redacted] and more") && texts[3].contains("[redacted] and more"),
        "{texts:?}"
    );
    assert!(texts[1].contains("its result was withheld"), "{texts:?}");
    let page = json!({ "handle": results[0]["output"]["handle"], "offset": 2_000, "lines": 9 });
    answers.extend([call("ReadOutput", &page), done]);
    let model = scene.script("s.jsonl", &answers);
    let paged = scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let page = scene
        .records("p")
        .into_iter()
        .rfind(|record| record["k"] == "tool_finished")
        .unwrap();
    assert!(
        page["outcome"]["content"]
            .as_str()
            .unwrap()
            .contains("[redacted] and more"),
        "{page}"
    );
    let shown = AtTerminal::start(
        &scene,
        "",
        &["run", "--pod", "q", "-m", &model_of(&scene), "go"],
    )
    .ends(0);
    let logs = ["p", "q"].map(|pod| scene.yoi(&["log", pod]).ends(0));
    for text in [
        &json.out,
        &json.err,
        &paged.out,
        &paged.err,
        &shown,
        &logs[0].out,
        &logs[1].out,
    ] {
        assert!(!text.contains(CANARY), "{text}");
    }
    for pod in ["p", "q"] {
        assert_eq!(holding(&scene.pod(pod), CANARY), Vec::<String>::new());
        scene.sound(pod);
    }
}

/// What would be seen of a command while it runs is not looked at by the hook: it is on no screen.
#[test]
fn nothing_of_a_running_command_is_shown() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:redact\"]\nenabled = true\npatterns = [\"canary-[0-9]+\"]\n");
    // The command itself is shown.
    let runs = "echo canary-$((70 + 7)); while [ ! -e go ]; do sleep 0.1; done";
    let model = scene.script(
        "s.jsonl",
        &[
            call("Bash", &json!({ "command": runs })),
            json!({ "text": "done" }),
        ],
    );
    let mut person = AtTerminal::start_drawing(
        &scene,
        200,
        false,
        &["run", "--pod", "p", "-m", &model, "go"],
    );
    person.sees("◦ Bash");
    person.sees(" · 2 s");
    fs::write(scene.file("go"), "").unwrap();
    person.sees("[redacted]");
    let shown = person.ends(0);
    assert!(!shown.contains(CANARY), "{shown}");
}

fn model_of(scene: &Scene) -> String {
    let cat = call(
        "Bash",
        &json!({ "command": "cat data.txt; sleep 0.3; cat data.txt" }),
    );
    scene.script("t.jsonl", &[cat, json!({ "text": "done" })])
}
