//! The offline planner against three trees, with every number checked by the standard library.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the table is shared by path, and its helpers are tests through and through"
)]

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

/// Asks everything the table has for a tree, each in a tree of its own; how many phrasings that were.
fn answered_right(tree: &str) -> usize {
    let shared = tempfile::tempdir().unwrap();
    trees::build(tree, shared.path());
    let table = rows(tree, shared.path());
    let mut wrong = Vec::new();
    for row in &table {
        let own = tempfile::tempdir().unwrap();
        trees::build(tree, own.path());
        let text = ask(own.path(), row.prompt);
        wrong.extend(row.check(&text));
        if !(row.after)(own.path()) {
            wrong.push(format!("{}\nthe files are wrong after:\n{text}\n", row.prompt));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n\n{}", wrong.len(), table.len(), wrong.join("\n----\n"));
    table.len()
}

#[test]
fn a_rust_crate_is_asked_about() {
    assert!(answered_right("rust") >= 60);
}

#[test]
fn a_python_package_is_asked_about() {
    assert!(answered_right("python") >= 15);
}

#[test]
fn a_tree_of_two_languages_is_asked_about() {
    assert!(answered_right("mixed") >= 15);
}

#[test]
fn the_same_history_gives_the_same_events() {
    let root = tempfile::tempdir().unwrap();
    trees::build("rust", root.path());
    let surface = surface(exec::TOOLS);
    let mut tools = Tools::new(root.path());
    let mut items = vec![user("what does this project do, then list the tests")];
    let (steps, text) = turn(&mut items, &surface, |name, arguments| tools.call(name, arguments));
    assert!(steps >= 3 && text.contains("Ledger keeps accounts"), "{steps} {text}");
    for end in 1..=items.len() {
        assert_eq!(next(&items[..end], &surface), next(&items[..end], &surface));
    }
    // A later prompt begins anew, whatever came before it.
    items.push(Item::Assistant { text });
    items.push(user("show the README"));
    assert!(answer(&items, &surface).is_err());
}

#[test]
fn what_fails_is_said() {
    let ended = |status, summary: &str| ToolOutcome { status, summary: summary.to_owned(), content: String::new() };
    let table = [
        (ResultStatus::Refused, "search for 'x'", "refused"),
        (ResultStatus::Error, "list the largest files", "failed"),
        (ResultStatus::Cancelled, "how many TODOs are there", "cancelled"),
        (ResultStatus::Refused, "run `ls`", "refused"),
        (ResultStatus::Interrupted, "create a.txt with \"x\"", "interrupted"),
        (ResultStatus::Error, "replace aa with bb in *.rs then run the tests", "not done"),
    ];
    for (status, prompt, want) in table {
        let mut items = vec![user(prompt)];
        let act = |name: &str, _: &str| match name {
            // looking first is allowed
            "Glob" => ended(ResultStatus::Ok, "0 files"),
            _ => ended(status, "because of a rule"),
        };
        let (_, text) = turn(&mut items, &surface(exec::TOOLS), act);
        assert!(text.contains(want) && text.contains("because of a rule"), "{prompt}: {text}");
    }
}

#[test]
fn a_tool_that_is_not_there_is_named() {
    let text = answer(&[user("run `ls`")], &surface(&["Read", "Grep"])).unwrap();
    assert!(text.contains("Bash"), "{text}");
}

#[test]
fn a_history_of_another_planner_is_not_read_as_its_own() {
    let id = CallId::new(1).unwrap();
    let outcome = ToolOutcome { status: ResultStatus::Ok, summary: "5 files".into(), content: String::new() };
    let call = Item::ToolCall { id, name: "Grep".into(), arguments: "{\"pattern\":\"other\"}".into() };
    let history = [user("how many TODOs"), call, Item::ToolResult { id, outcome }];
    let text = answer(&history, &surface(exec::TOOLS)).unwrap();
    assert!(text.contains("Ask again"), "{text}");
}

#[test]
fn a_long_output_is_paged_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let mut tools = Tools::new(root.path());
    let mut pages = 0;
    let mut items = vec![user("run `seq 1 3000 | sed s/$/-and-some-more-text/; exit 4`")];
    let (_, text) = turn(&mut items, &surface(exec::TOOLS), |name, arguments| {
        pages += usize::from(name == "ReadOutput");
        tools.call(name, arguments)
    });
    assert!(text.contains("exit 4") && text.contains("3000-and") && pages == 10, "{pages} {text}");
}

// Every page says that more follows, for ever.
#[test]
fn pages_without_end_end() {
    let mut items = vec![user("run `yes` then run `yes` then run `yes` then run `yes` then run `yes`")];
    let (steps, text) = turn(&mut items, &surface(exec::TOOLS), |name, _| {
        let (summary, content) = match name {
            "ReadOutput" => ("o-1: lines 1-1 of 999999999", "y\n(more lines follow; go on with offset=2)"),
            _ => ("exit 0 in 1.0 s", "[… 9 of 99 bytes left out; ReadOutput {\"handle\":\"o-1\"} pages the whole]"),
        };
        ToolOutcome { status: ResultStatus::Ok, summary: summary.into(), content: content.into() }
    });
    assert!(steps <= 40 && text.contains("Stopped after 40 steps"), "{steps} {text}");
}

#[test]
fn many_files_are_replaced_within_the_steps() {
    for (files, want) in [(400, "400 places in 400 files"), (500, "Nothing replaced")] {
        let root = tempfile::tempdir().unwrap();
        for n in 0..files {
            std::fs::write(root.path().join(format!("f{n}.txt")), "old_name\n").unwrap();
        }
        let mut tools = Tools::new(root.path());
        let mut items = vec![user("replace `old_name` with `new_name` everywhere")];
        let (steps, text) = turn(&mut items, &surface(exec::TOOLS), |name, arguments| tools.call(name, arguments));
        assert!(steps <= 40 && text.contains(want), "{steps} {text}");
    }
}
