//! `step-tracer`: a line for each step, in files that are bounded.

use crate::rig::{play, pod};
use authority::{Access, Workspace};
use builtins::step_tracer::{ID, MAX_FILE, MAX_FILES, ROOT, WRITE};
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput};
use pod::feature::HostCapability;
use pod::hook::Event;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use testkit::{FnTool, PodUnderTest, ScriptedAnswer};

fn traced(tools: Vec<FnTool>) -> (PodUnderTest, PathBuf) {
    let (mut pod, _) = pod(&ID, json!({}), tools);
    let dir = pod.project.join("traces-of-the-test");
    std::fs::create_dir(&dir).unwrap();
    pod.features[0]
        .1
        .extend([HostCapability::hook::<Event>(), WRITE]);
    let traces = Workspace::open(&ambient::claim(), &dir, &dir, Access::ReadWrite).unwrap();
    pod.offer = Arc::new(move |services| services.root(ROOT, traces.clone()));
    pod.paused = false;
    (pod, dir)
}

fn files(dir: &PathBuf) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn steps(dir: &PathBuf) -> Vec<Value> {
    let texts = files(dir)
        .into_iter()
        .map(|file| std::fs::read_to_string(file).unwrap());
    texts
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn each_step_is_a_line_without_texts() {
    let works = FnTool::new("Works", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "a secret word".into(),
            ..ToolOutput::default()
        })
    });
    let fails = FnTool::new("Fails", ToolEffect::ReadOnly, |_, _| async {
        Err(ToolError::new(ErrorKind::Unavailable, "a secret word"))
    });
    let (pod, dir) = traced(vec![works, fails]);
    play(&pod, &[&[("Works", "{}")], &[("Fails", "{}")]]).end();
    let steps = steps(&dir);
    let kinds: Vec<_> = steps
        .iter()
        .map(|step| step["step"].as_str().unwrap())
        .collect();
    let expected = [
        "run_start",
        "input_validated",
        "turn_start",
        "llm_call",
        "usage",
        "tool",
        "llm_call",
        "usage",
        "tool_error",
        "llm_call",
        "usage",
    ];
    assert_eq!(kinds[..expected.len()], expected, "{steps:#?}");
    assert_eq!(
        (&steps[5]["tool"], &steps[8]["tool"]),
        (&json!("Works"), &json!("Fails"))
    );
    assert!(!format!("{steps:?}").contains("secret word"), "{steps:?}");
    pod.script.add(ScriptedAnswer::text("again"));
    pod.run("go on").end();
    assert_eq!(files(&dir).len(), 2, "a start writes a file of its own");
}

#[test]
fn files_are_bounded_and_the_oldest_goes() {
    let calls = vec![("Nothing", "{}"); 64];
    let (pod, dir) = traced(Vec::new());
    for number in 1..=MAX_FILES {
        std::fs::write(dir.join(format!("steps-{number:06}.jsonl")), "{}\n").unwrap();
    }
    let steps: Vec<&[(&str, &str)]> = vec![&calls; 30];
    play(&pod, &steps).end();
    let left = files(&dir);
    assert!(left.len() as u64 <= MAX_FILES, "{left:?}");
    assert!(
        !left.iter().any(|file| file.ends_with("steps-000001.jsonl")),
        "{left:?}"
    );
    assert!(
        left.iter()
            .all(|file| file.metadata().unwrap().len() <= MAX_FILE as u64)
    );
}
