//! One snapshot: commands in a scene, with their exit codes and all they print, the same on every machine.

use crate::scene::{Done, Scene, finish};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// Behind each of these stands a number or a digest that no two runs share.
const VARYING: &[&str] = &[
    "127.0.0.1:",
    "process ",
    "process   ",
    "running for ",
    "active    ",
    "run-",
    "at byte ",
    "attempt 2 in ",
    "the stored checksum is ",
    "the computed checksum is ",
    "start 1 (",
    "start 2 (",
    "1 of 1 (",
    "Date: ",
    // The context by contributor.
    "context   about ",
    "schema ",
    "instructions ",
    "system ",
    "notes ",
    "inputs ",
    "results ",
    "answers ",
    "calls ",
    "── ",
];
/// Keys of JSON whose values no two runs share, or that another snapshot shows.
const HIDDEN: &[&str] = &[
    "at_us",
    "ms",
    "pid",
    "last_use_ms",
    "idempotency_key",
    "config_digest",
    "content_digest",
    "body_digest",
    "neutral_digest",
    "arguments_digest",
    "digest",
    "args_digest",
    "after",
    "bytes",
    "surface",
    "report",
    "session",
    "last_us",
    "changed_us",
    "started_us",
    "version",
];

pub(crate) struct Page {
    pub(crate) scene: Scene,
    text: String,
    code: Option<i32>,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self {
            scene: Scene::new(),
            text: String::new(),
            code: None,
        }
    }

    /// What the next commands meet.
    pub(crate) fn given(&mut self, words: &str) -> &mut Self {
        let lines: Vec<String> = words
            .trim_end()
            .lines()
            .map(|line| format!("# {line}\n"))
            .collect();
        self.text.push_str(&format!("\n{}", lines.concat()));
        self
    }

    pub(crate) fn yoi(&mut self, args: &[&str]) -> &mut Self {
        let done = self.scene.yoi(args);
        self.add("", args, &done)
    }

    /// The same with a variable.
    pub(crate) fn var(&mut self, name: &str, value: &str, args: &[&str]) -> &mut Self {
        let done = finish(self.scene.command(args).env(name, value).spawn().unwrap());
        self.add(&format!("{name}='{value}' "), args, &done)
    }

    /// The same behind words of a shell.
    pub(crate) fn limited(&mut self, words: &str, args: &[&str]) -> &mut Self {
        let plain = self.scene.command(args);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{words}; exec \"$@\""), "sh"])
            .arg(plain.get_program())
            .args(plain.get_args());
        shell.env_clear().envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell.current_dir(self.scene.path("project"));
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let done = finish(shell.spawn().unwrap());
        self.add(&format!("{words}; "), args, &done)
    }

    /// Output as JSON, a line for each document, without what varies.
    pub(crate) fn json(&mut self, args: &[&str]) -> &mut Self {
        let mut done = self.scene.yoi(args);
        let shown = |line: &str| format!("{}\n", read(line));
        let single = done.out.lines().count() == 1;
        done.out = done
            .out
            .lines()
            .map(|line| if single { laid_out(line) } else { shown(line) })
            .collect();
        self.add("", args, &done)
    }

    /// A run of a new pod that makes these calls, one after the other: what the model is told of each.
    pub(crate) fn calls(&mut self, calls: &[Value], flags: &[&str]) -> &mut Self {
        let mut answers: Vec<Value> = calls
            .iter()
            .map(|call| json!({ "calls": [call] }))
            .collect();
        answers.push(json!({ "text": "done" }));
        let model = self.scene.script("calls.jsonl", &answers);
        let lines = self
            .scene
            .yoi(&[&["run", "--json", "-m", &model, "go"][..], flags].concat())
            .lines();
        let told: Vec<&Value> = lines
            .iter()
            .filter(|line| line["k"] == "tool_finished")
            .collect();
        assert_eq!(told.len(), calls.len());
        for (call, told) in calls.iter().zip(told) {
            let outcome = &told["outcome"];
            let text = |key: &str| {
                outcome[key]
                    .as_str()
                    .map(|text| format!("{text}\n"))
                    .unwrap_or_default()
            };
            let status = text("status");
            let summary = text("summary");
            let content = text("content");
            let call = format!("{} {}", call["name"].as_str().unwrap(), call["arguments"]);
            let told = self.stable(&format!(
                "\n> {call}\n{}: {summary}{content}",
                status.trim_end()
            ));
            self.text.push_str(&told);
        }
        let result = lines.last().unwrap();
        let why = result["error"]
            .as_str()
            .map(|why| format!(": {why}"))
            .unwrap_or_default();
        let end = self.stable(&format!(
            "\nthe run ends with exit code {}{why}\n",
            result["exit"]
        ));
        self.text.push_str(&end);
        self
    }

    /// Standard output of a command that stands in no file.
    pub(crate) fn output(&self, args: &[&str]) -> String {
        self.scene.yoi(args).out
    }

    /// No line so far is longer than this.
    #[track_caller]
    pub(crate) fn fits(&self, columns: usize) {
        let long = self
            .text
            .lines()
            .find(|line| line.chars().count() > columns);
        assert_eq!(long, None, "a line over {columns} columns");
    }

    pub(crate) fn last_code(&self) -> Option<i32> {
        self.code
    }

    /// Compares all of it with its file.
    #[track_caller]
    pub(crate) fn keep(self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, self.text.trim_start()));
    }

    fn add(&mut self, before: &str, args: &[&str], done: &Done) -> &mut Self {
        self.code = done.code();
        let words: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        let code = done
            .code()
            .map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        // Standard error is marked, so that a text that moves from one stream to the other is a difference.
        let err: String = done
            .err
            .lines()
            .map(|line| format!("2> {line}\n"))
            .collect();
        let text = format!(
            "\n$ {before}yoi {}\n{}{err}exit {code}\n",
            words.join(" "),
            done.out
        );
        let text = self.stable(&text);
        self.text.push_str(&text);
        self
    }

    fn stable(&self, text: &str) -> String {
        let dir = self.scene.path("");
        let mut text = text.replace(dir.to_str().unwrap().trim_end_matches('/'), "/scene");
        text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        for before in VARYING {
            text = masked(&text, before);
        }
        // How long a process has held a pod.
        let lines = text.lines().map(|line| {
            line.split_once(" by process X, which started")
                .map_or(line, |(before, _)| before)
        });
        let lines = lines.map(|line| {
            let parts: Vec<&str> = line
                .split(" · ")
                .map(|part| if took(part) { "0.0 s" } else { part })
                .collect();
            let line = parts.join(" · ").trim_end().to_owned();
            match line.rsplit_once(" in ") {
                Some((before, time)) if took(time) => format!("{before} in 0.0 s\n"),
                Some(_) | None => line + "\n",
            }
        });
        lines.collect()
    }
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && !word.contains([' ', '*', '\'']);
    if plain {
        word.to_owned()
    } else {
        format!("'{word}'")
    }
}

/// Whether this is a time such as `1.5 s`.
fn took(part: &str) -> bool {
    part.strip_suffix(" s")
        .is_some_and(|number| number.parse::<f64>().is_ok())
}

/// The text with `X` for what stands behind these words.
fn masked(text: &str, before: &str) -> String {
    let mut parts = text.split(before);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !(c.is_ascii_hexdigit() || "-.:TZ".contains(c)))
            .unwrap_or(part.len());
        // The name of a run can be four letters.
        let named = before == "run-" && end == 4;
        let varies = named
            || part
                .get(..end)
                .is_some_and(|found| found.contains(|c: char| c.is_ascii_digit()));
        all.push_str(before);
        all.push_str(if varies { "X" } else { "" });
        all.push_str(if varies { &part[end..] } else { part });
    }
    all
}

/// Of a record's header only kind and number stay.
fn read(line: &str) -> Value {
    let mut value: Value = serde_json::from_str(line).expect(line);
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| key.len() > 1 || ["k", "q"].contains(&key.as_str()));
    }
    hide(&mut value);
    value
}

/// A document with a line for each key, and for each element of a list there.
fn laid_out(line: &str) -> String {
    let Value::Object(map) = read(line) else {
        return format!("{}\n", read(line));
    };
    let rows = map.iter().map(|(key, value)| match value {
        Value::Array(values) if !values.is_empty() => {
            let values: String = values.iter().map(|value| format!("  {value}\n")).collect();
            format!("{key}:\n{values}")
        }
        value => format!("{key}: {value}\n"),
    });
    rows.collect()
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if HIDDEN.contains(&key.as_str()) && !value.is_null() {
                    *value = json!("…");
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
