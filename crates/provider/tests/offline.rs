//! The offline planner against three trees, with every number checked by the standard library.

#[path = "offline_table/exec.rs"]
mod exec;
#[path = "offline_table/mod.rs"]
mod offline_table;

use exec::Tools;
use llm_worker::{CallId, Item, ModelEvent, ResultStatus, StopReason, ToolDefinition, ToolEffect, ToolOutcome};
use offline_table::{rows, trees};
use provider::offline::next;
use std::path::Path;

fn surface(names: &[&str]) -> Vec<ToolDefinition> {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        schema: "{}".into(),
        effect: ToolEffect::ReadOnly,
    };
    names.iter().map(tool).collect()
}

fn user(text: &str) -> Item {
    Item::User { text: text.to_owned() }
}

/// The calls of one answer, or its text.
fn answer(items: &[Item], tools: &[ToolDefinition]) -> Result<String, Vec<(String, String)>> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    let mut events = next(items, tools);
    let stop = events.pop().unwrap();
    for event in events {
        match event {
            ModelEvent::Text(more) => text.push_str(&more),
            ModelEvent::CallStarted { index, name } => {
                assert_eq!(index, calls.len());
                calls.push((name, String::new()));
            }
            ModelEvent::CallArguments { index, fragment } => calls[index].1.push_str(&fragment),
            other => panic!("{other:?}"),
        }
    }
    match stop {
        ModelEvent::Stop(StopReason::EndTurn) => Ok(text),
        ModelEvent::Stop(StopReason::ToolUse) => Err(calls),
        other => panic!("{other:?}"),
    }
}

/// Runs a turn to its end; the number of steps and the answer. Results are recorded in reverse order of the calls.
fn turn(
    items: &mut Vec<Item>,
    tools: &[ToolDefinition],
    mut act: impl FnMut(&str, &str) -> ToolOutcome,
) -> (usize, String) {
    let mut number = items.len() as u64;
    for step in 0..=41 {
        match answer(items, tools) {
            Ok(text) => return (step, text),
            Err(calls) => {
                let mut results = Vec::new();
                for (name, arguments) in calls {
                    number += 1;
                    let id = CallId::new(number).unwrap();
                    let outcome = act(&name, &arguments);
                    items.push(Item::ToolCall { id, name, arguments });
                    results.push(Item::ToolResult { id, outcome });
                }
                items.extend(results.into_iter().rev());
            }
        }
    }
    panic!("no answer after 41 steps");
}

fn ask(root: &Path, prompt: &str) -> String {
    let mut tools = Tools::new(root);
    let mut items = vec![user("an earlier prompt"), Item::Assistant { text: "an earlier answer".into() }, user(prompt)];
    items.push(Item::System { source: "host".into(), text: "cwd: somewhere".into() });
    turn(&mut items, &surface(exec::TOOLS), |name, arguments| tools.call(name, arguments)).1
}

#[test]
fn every_phrasing_is_answered_right() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for tree in trees::NAMES {
        let shared = tempfile::tempdir().unwrap();
        trees::build(tree, shared.path());
        for row in rows(tree, shared.path()) {
            let own = tempfile::tempdir().unwrap();
            trees::build(tree, own.path());
            let text = ask(own.path(), row.prompt);
            wrong.extend(row.check(&text));
            if !(row.after)(own.path()) {
                wrong.push(format!("{}\nthe files are wrong after:\n{text}\n", row.prompt));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n\n{}", wrong.len(), wrong.join("\n----\n"));
    assert!(count >= 60, "{count}");
}
