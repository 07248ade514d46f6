//! What the scripted model asks for: 50 calls in five rounds, every kind of tool, several calls at once.

use serde_json::{Value, json};

/// Calls in all.
pub(crate) const CALLS: usize = 50;
/// Rounds of ten calls.
const ROUNDS: usize = 5;
/// Answers behind the last one, for as many continued runs.
const SPARE: usize = 40;

/// Where every effectful call leaves its number, in the project.
pub(crate) const EFFECTS: &str = "effects.log";
/// What a shell command begins with that leaves number `n` there.
pub(crate) const MARK: &str = "echo effect-";

/// The script as JSON Lines.
pub(crate) fn text() -> String {
    let mut answers: Vec<Value> = Vec::new();
    let mut number = 0;
    let mut effect = |rest: &str| {
        number += 1;
        call(
            "Bash",
            &json!({"command": format!("{MARK}{number} >> {EFFECTS}{rest}")}),
        )
    };
    for round in 1..=ROUNDS {
        let file = format!("file-{round}.txt");
        answers.push(
            json!({"calls": [call("Write", &json!({"path": file, "content": "one\ntwo\n"}))]}),
        );
        answers.push(json!({"text": "Two at once.", "calls": [
            effect(""), effect("; sleep 0.02"), call("List", &json!({"path": "."})),
        ]}));
        let edit =
            json!({"path": file, "edits": [{"old": "one", "new": format!("edited {round}")}]});
        answers.push(json!({"calls": [call("Edit", &edit)]}));
        answers.push(json!({"calls": [
            call("Read", &json!({"path": file})), call("Grep", &json!({"pattern": "edited"})),
        ]}));
        // One that leaves a process behind in a session of its own, and one whose output is a blob.
        answers.push(json!({"calls": [effect("; setsid sleep 300 >/dev/null 2>&1 &"), effect("; seq 1 9000")]}));
        answers
            .push(json!({"calls": [call("Glob", &json!({"pattern": "*.txt"}))], "usage": {"input": 9, "output": 3}}));
    }
    answers.push(json!({"text": "done"}));
    answers.extend((0..SPARE).map(|_| json!({"text": "continued"})));
    answers.iter().map(|answer| format!("{answer}\n")).collect()
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// The effect number in a shell call's arguments.
pub(crate) fn effect_of(arguments: &str) -> Option<u32> {
    let (_, behind) = arguments.split_once(MARK)?;
    behind.split(' ').next()?.parse().ok()
}
