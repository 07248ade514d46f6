//! The exit code and standard output tell what came of a run: an answer is a whole answer, a refusal that nobody worked
//! round is one, and what a model said before a cut is neither.

use crate::hostile::terminal::shown;
use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn script(scene: &Scene, answers: &[Value]) -> String {
    scene.script("answers.jsonl", answers)
}

#[test]
fn a_refusal_is_named_unless_the_model_worked_round_it() {
    let scene = Scene::new();
    scene.write("a.txt", "a\n");
    let write = call("Write", json!({ "path": ".env", "content": "x\n" }));
    let read = call("Read", json!({ "path": "a.txt" }));
    let end = json!({ "text": "that is that" });
    // The calls of each answer, and how the run ends: results of one answer come in any order.
    let table: [(&[&[&Value]], i32); 6] = [
        (&[&[&write]], 3),
        (&[&[&read], &[&write]], 3),
        (&[&[&write], &[&read]], 0),
        (&[&[&write, &read]], 3),
        (&[&[&read, &write]], 3),
        (&[&[&write, &read], &[&read]], 0),
    ];
    for (at, (steps, code)) in table.into_iter().enumerate() {
        let mut answers: Vec<Value> = steps
            .iter()
            .map(|calls| json!({ "calls": calls }))
            .collect();
        answers.push(end.clone());
        let model = script(&scene, &answers);
        let done = scene.yoi(&["run", "-q", "-m", &model, "go"]).ends(code);
        assert_eq!(done.out, "that is that\n", "row {at}");
        assert_eq!(
            done.err.contains("error: Write .env requires approval"),
            code == 3,
            "row {at}: {}",
            done.err
        );
        let result = scene
            .yoi(&["run", "--json", "-m", &model, "go"])
            .ends(code)
            .lines()
            .pop()
            .unwrap();
        let error = result["error"].as_str().unwrap_or_default();
        assert_eq!(
            error.starts_with("Write .env requires approval"),
            code == 3,
            "row {at}: {result}"
        );
    }
}

#[test]
fn what_was_said_before_a_limit_or_a_cut_is_no_answer() {
    let scene = Scene::new();
    scene.write("a.txt", "a\n");
    let said =
        json!({ "text": "I will count", "calls": [call("Read", json!({ "path": "a.txt" }))] });
    let table: [(&str, Vec<Value>, &[&str], i32); 4] = [
        (
            "the step limit",
            vec![said.clone(), json!({ "text": "never" })],
            &["--max-steps", "1"],
            4,
        ),
        (
            "a cut",
            vec![json!({ "text": "half an ans", "stop": "max_tokens" })],
            &[],
            1,
        ),
        (
            "an empty end",
            vec![said.clone(), json!({ "text": " " })],
            &[],
            1,
        ),
        ("a model that is gone", vec![said], &[], 5),
    ];
    for (what, answers, flags, code) in table {
        let model = script(&scene, &answers);
        let args = [&["run", "-m", &model, "go"], flags].concat();
        let piped = scene.yoi(&args);
        assert_eq!(piped.out, "", "{what}: {}", piped.err);
        assert!(
            piped.code() != Some(0) && piped.err.contains("error: "),
            "{what}: {}",
            piped.err
        );
        let result = scene
            .yoi(&[&args[..], &["--json"]].concat())
            .lines()
            .pop()
            .unwrap();
        assert!(
            result["answer"].is_null() && result["error"].is_string(),
            "{what}: {result}"
        );
        assert!(code == 5 || result["exit"] == code, "{what}: {result}");
        let terminal = shown(&scene, &args);
        assert!(
            terminal.contains("the answer above is incomplete"),
            "{what}: {terminal}"
        );
    }
    let model = script(&scene, &[json!({ "text": "whole" })]);
    assert!(!shown(&scene, &["run", "-m", &model, "go"]).contains("incomplete"));
}

#[test]
fn the_date_that_a_model_is_told_has_a_zone() {
    let scene = Scene::new();
    let model = script(&scene, &[json!({ "text": "whole" })]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let told = scene
        .records("p")
        .into_iter()
        .find(|record| record["topic"] == "environment")
        .unwrap();
    let text = told["text"].as_str().unwrap();
    assert!(
        text.lines()
            .any(|line| line.starts_with("Date: ") && line.ends_with(" (UTC)")),
        "{text}"
    );
}

/// A user that runs nothing else, so that its limit on processes counts those of the test alone.
const NOBODY: u32 = 54_321;

// At a limit on processes a run ended with 101 and a panic of the runtime.
#[test]
fn a_limit_on_processes_is_an_error_of_its_own() {
    let scene = Scene::new();
    let model = script(
        &scene,
        &[
            json!({ "calls": [call("Bash", json!({ "command": "echo hi" }))] }),
            json!({ "text": "done" }),
        ],
    );
    let program = scene.own_program();
    let owner = format!("{NOBODY}:{NOBODY}");
    let given = Command::new("chown")
        .args(["-R", &owner])
        .arg(scene.path(""))
        .status();
    let can_limit = Command::new("prlimit")
        .arg("--version")
        .output()
        .is_ok_and(|done| done.status.success());
    if !given.is_ok_and(|done| done.success()) || !can_limit {
        eprintln!("skipped: another user, or `prlimit`, cannot be used here");
        return;
    }
    let mut ended = Vec::new();
    for limit in [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 28, 64] {
        let mut limited = Command::new("prlimit");
        limited
            .arg(format!("--nproc={limit}:{limit}"))
            .arg(&program)
            .args([
                "run",
                "-q",
                "-m",
                &model,
                "--sandbox",
                "off",
                "--allow",
                "Bash",
                "go",
            ]);
        limited
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir(scene.path("project"))
            .env_clear();
        for (name, value) in scene.command(&[]).get_envs() {
            limited.env(name, value.unwrap_or_default());
        }
        let run = finish(
            limited
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let code = run.code().expect("no signal");
        assert!(
            matches!(code, 0 | 1 | 69 | 74),
            "{limit}: {code}\n{}",
            run.err
        );
        assert!(!run.err.contains("panicked"), "{limit}: {}", run.err);
        assert!(
            code == 0 || run.err.contains("error: "),
            "{limit}: {}",
            run.err
        );
        ended.push((limit, code));
    }
    assert_eq!((ended[0].1, ended.last().unwrap().1), (69, 0), "{ended:?}");
}
