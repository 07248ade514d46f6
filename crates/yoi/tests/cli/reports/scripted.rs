//! Rows whose calls a script makes: what their results say, and what is on disk afterwards.

use super::row::{Row, says};
use crate::scene::{Done, Scene};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// A package with the row's schema.
fn package(scene: &Scene, schema: &str, word: &str) -> String {
    let dir = scene.path("config/yoi/plugins/acme");
    fs::create_dir_all(&dir).unwrap();
    let manifest = format!(
        "[package]\nname = \"acme\"\nversion = \"0.1.0\"\n[features.f]\n[[features.f.tools]]\nname = \"acme_t\"\n\
         about = \"Echo.\"\neffect = \"read_only\"\nschema = '''{schema}'''\n[features.f.run.acme_t]\n\
         program = \"sh\"\nargs = [\"-c\", \"echo \\\"$1\\\"; cat\", \"--\", \"{word}\"]\n"
    );
    fs::write(dir.join("plugin.toml"), manifest).unwrap();
    dir.display().to_string()
}

/// The texts of a value, one after the other.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(texts).collect(),
        Value::Object(values) => values.values().map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// What the model reads of each call, in the order of the calls.
fn results(done: &Done) -> Vec<String> {
    let mut finished: Vec<Value> = done
        .lines()
        .into_iter()
        .filter(|line| line["k"] == "tool_finished")
        .collect();
    finished.sort_by_key(|line| line["call"].as_str().unwrap().to_owned());
    finished
        .iter()
        .map(|line| texts(&line["outcome"]))
        .collect()
}

/// A model that makes the row's calls. Their arguments are kept as they are written: `3.0` is not `3`.
fn script(scene: &Scene, row: &Row) -> String {
    let call = |text: &String| {
        let (name, arguments) = text.split_once(' ').unwrap();
        format!(
            "{{\"name\":\"{name}\",\"arguments\":{}}}",
            Row::placed(scene, arguments)
        )
    };
    let step = |calls: &[String]| calls.iter().map(call).collect::<Vec<_>>().join(",");
    let mut lines: Vec<String> = row
        .calls
        .iter()
        .map(|calls| format!("{{\"calls\":[{}]}}", step(calls.all())))
        .collect();
    lines.push("{\"text\":\"done\"}".to_owned());
    fs::write(scene.path("calls.jsonl"), lines.join("\n")).unwrap();
    format!("scripted:{}", scene.path("calls.jsonl").display())
}

/// Whether git takes back what `yoi diff` shows.
fn check_diff(scene: &Scene, problems: &mut Vec<String>) {
    let diff = scene.yoi(&["diff", "p"]).out;
    let mut git = Command::new("git");
    git.args(["apply", "-R", "--check", "-"])
        .current_dir(scene.file(""))
        .env("HOME", scene.path("home"));
    let mut git = git
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(git.stdin.take().unwrap().write_all(diff.as_bytes()));
    let git = git.wait_with_output().unwrap();
    if !git.status.success() {
        problems.push(format!(
            "git refuses the diff: {:?}\n{diff}",
            String::from_utf8_lossy(&git.stderr)
        ));
    }
}

pub(super) fn run(row: &Row) -> Vec<String> {
    let scene = row.scene();
    let mut problems = Vec::new();
    if let Some(schema) = &row.plugin {
        let dir = package(&scene, schema, row.word.as_deref().unwrap_or("x"));
        if let Some(words) = &row.check {
            let done = scene.yoi(&["plugin", "check", &dir]);
            let said = format!("{}{}", done.out, done.err);
            if done.code() == Some(0) || !words.iter().all(|words| says(&said, words)) {
                problems.push(format!(
                    "`plugin check` ends with {:?} and says {said:?}",
                    done.code()
                ));
            }
            return problems;
        }
        scene.yoi(&["grant", "plugin:acme"]).ends(0);
    }
    if !row.deny.is_empty() {
        let (program, subcommand) = row.deny.split_once(' ').unwrap_or((&row.deny, ""));
        let subcommand = if subcommand.is_empty() {
            String::new()
        } else {
            format!("subcommand = [\"{subcommand}\"]\n")
        };
        scene.config(&format!(
            "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"{program}\"\n{subcommand}decision = \"deny\"\n"
        ));
    }
    let done = scene.yoi(&[
        "run",
        "--json",
        "--pod",
        "p",
        "-m",
        &script(&scene, row),
        "go",
    ]);
    let results = results(&done);
    let calls: usize = row.calls.iter().map(|step| step.all().len()).sum();
    if results.len() != calls {
        problems.push(format!(
            "{} results of {calls} calls: {:?}",
            results.len(),
            done.err
        ));
    }
    for (result, expected) in results.iter().zip(&row.results) {
        for words in expected.all() {
            let words = Row::placed(&scene, words);
            if !says(result, &words) {
                problems.push(format!("a result does not say {words:?}: {result:?}"));
            }
        }
    }
    row.check_hidden(&results.concat(), &mut problems);
    row.check_files(&scene, &mut problems);
    if row.diff {
        check_diff(&scene, &mut problems);
    }
    problems
}
