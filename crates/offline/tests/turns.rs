//! The offline planner over results made up here. What it finds with real tools is a test of the whole program.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests through and through"
)]

use llm_worker::{
    CallId, Item, ModelEvent, ResultStatus, StopReason, ToolDefinition, ToolEffect, ToolOutcome,
};
use offline::next;

const TOOLS: &[&str] = &[
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "List",
    "Read",
    "ReadOutput",
    "Write",
];

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
    Item::user(text.to_owned())
}

/// The calls of one answer, or its text.
fn answer(items: &[Item], tools: &[ToolDefinition]) -> Result<String, Vec<(String, String)>> {
    let mut text = String::new();
    let mut calls = Vec::new();
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
            ModelEvent::Shortfall(_) => {}
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
                    items.push(Item::ToolCall {
                        id,
                        name,
                        arguments,
                    });
                    results.push(Item::ToolResult { id, outcome });
                }
                items.extend(results.into_iter().rev());
            }
        }
    }
    panic!("no answer after 41 steps");
}

fn ok(summary: impl Into<String>, content: impl Into<String>) -> ToolOutcome {
    ToolOutcome {
        status: ResultStatus::Ok,
        summary: summary.into(),
        content: content.into(),
        attachments: Vec::new(),
    }
}

/// Asks about a project of one file, whose README is all it says.
fn small_project(name: &str, arguments: &str) -> ToolOutcome {
    match name {
        "List" => ok(
            "1 file, 3 lines",
            "extension  files  lines  bytes\nrs  1  3  30\n\nlargest files\nlines  bytes  path",
        ),
        "Glob" if arguments.contains("[Rr]") => ok("1 file", "README.md"),
        "Glob" => ok("0 files", ""),
        "Read" => ok(
            "README.md: lines 1-3 of 3",
            "     1\t# Ledger\n     2\t\n     3\tLedger keeps accounts.",
        ),
        _ => ok("0 matches in 0 files (1 searched)", ""),
    }
}

#[test]
fn the_same_history_gives_the_same_events() {
    let surface = surface(TOOLS);
    let mut items = vec![
        user("an earlier prompt"),
        Item::Assistant {
            text: "an earlier answer".into(),
        },
    ];
    items.extend([
        user("what does this project do, then list the tests"),
        Item::System {
            source: "host".into(),
            text: "cwd: x".into(),
        },
    ]);
    let (steps, text) = turn(&mut items, &surface, small_project);
    assert!(
        steps >= 3 && text.contains("Ledger keeps accounts"),
        "{steps} {text}"
    );
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
    let ended = |status, summary: &str| ToolOutcome {
        status,
        summary: summary.to_owned(),
        content: String::new(),
        attachments: Vec::new(),
    };
    let table = [
        (ResultStatus::Refused, "search for 'x'", "Not done"),
        (
            ResultStatus::Error,
            "list the largest files",
            "because of a rule",
        ),
        (
            ResultStatus::Cancelled,
            "how many TODOs are there",
            "cancelled",
        ),
        (ResultStatus::Refused, "run `ls`", "refused"),
        (
            ResultStatus::Interrupted,
            "create a.txt with \"x\"",
            "interrupted",
        ),
        (
            ResultStatus::Error,
            "replace `aa` with `bb` in *.rs then run the tests",
            "not done",
        ),
    ];
    for (status, prompt, want) in table {
        let mut items = vec![user(prompt)];
        let act = |name: &str, _: &str| match name {
            // looking first is allowed
            "Glob" => ended(ResultStatus::Ok, "0 files"),
            _ => ended(status, "because of a rule"),
        };
        let (_, text) = turn(&mut items, &surface(TOOLS), act);
        assert!(
            text.contains(want) && text.contains("because of a rule"),
            "{prompt}: {text}"
        );
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
    let outcome = ToolOutcome {
        status: ResultStatus::Ok,
        summary: "5 files".into(),
        content: String::new(),
        attachments: Vec::new(),
    };
    let call = Item::ToolCall {
        id,
        name: "Grep".into(),
        arguments: "{\"pattern\":\"other\"}".into(),
    };
    let history = [
        user("how many TODOs"),
        call,
        Item::ToolResult { id, outcome },
    ];
    let text = answer(&history, &surface(TOOLS)).unwrap();
    assert!(text.contains("Ask again"), "{text}");
}

// The sum of a part would be a wrong number.
#[test]
fn passed_tests_are_summed_only_where_all_are_there() {
    let sum = "test result: ok. 7 passed; 0 failed; 1 ignored";
    let cut = "[… 9 of 99 bytes left out; ReadOutput {\"handle\":\"o-1\"} reads the rest]";
    for (output, summed) in [
        (format!("{sum}\nmore\n{sum}"), true),
        (format!("{sum}\n{cut}\n{sum}"), false),
    ] {
        let (_, text) = turn(
            &mut vec![user("run the tests")],
            &surface(TOOLS),
            |name, _| match name {
                "Glob" => ok("1 file", "Cargo.toml"),
                _ => ok("exit 0 in 9.0 s", output.as_str()),
            },
        );
        assert!(
            text.contains("The tests pass") && text.contains("14 passed, 0 failed") == summed,
            "{text}"
        );
    }
}

#[test]
fn a_turn_ends_after_its_steps() {
    let mut items = vec![user(&vec!["run `ls`"; 50].join(" then "))];
    let (steps, text) = turn(&mut items, &surface(TOOLS), |_, _| {
        ok("exit 0 in 1.0 s", "a")
    });
    assert!(
        steps == 40 && text.contains("Stopped after 40 steps"),
        "{steps} {text}"
    );
}

#[test]
fn many_files_are_replaced_within_the_steps() {
    for (files, want) in [(384, "384 places in 384 files"), (385, "Nothing replaced")] {
        let paths: Vec<String> = (0..files).map(|n| format!("f{n}.txt")).collect();
        let mut items = vec![user("replace `old_name` with `new_name` everywhere")];
        let (steps, text) = turn(&mut items, &surface(TOOLS), |name, arguments| match name {
            // longer words
            "Grep" if arguments.contains(r"\w") => ok("matches in 0 files", ""),
            "Grep" if arguments.contains("\"files\"") => {
                ok(format!("matches in {files} files"), paths.join("\n"))
            }
            "Grep" => ok("1 match in 1 file", "f.txt:1:old_name"),
            "Edit" => ok("f.txt: 1 replacement", "(diff)"),
            _ => ok("f.txt: lines 1-1 of 1", "     1\told_name"),
        });
        assert!(steps <= 40 && text.contains(want), "{steps} {text}");
    }
}

// What it offers instead must be understood, whatever it was asked and whatever lies in the directory.
#[test]
fn the_examples_of_the_fallback_are_understood() {
    let mut seen = std::collections::BTreeSet::new();
    let content = "extension  files  lines  bytes\npy  1  3  30\n\nlargest files\nlines  bytes  path\n  3  30  app/deep/a.py";
    let list = |_: &str, _: &str| ok("1 file, 3 lines", content);
    for prompt in [
        "paint lines code functions",
        "sing the largest timeout",
        "sing import todo songs",
        "tests hello git old_name",
        "used defined version project config",
    ] {
        let (steps, text) = turn(&mut vec![user(prompt)], &surface(TOOLS), list);
        assert!(
            steps == 1 && text.contains("not a language model") && text.contains("yoi models"),
            "{text}"
        );
        let examples: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .collect();
        assert_eq!(examples.len(), 3, "{text}");
        seen.extend(examples.into_iter().map(str::to_owned));
    }
    let (_, help) = turn(&mut vec![user("help")], &surface(TOOLS), list);
    seen.extend(
        help.lines()
            .filter_map(|line| line.strip_prefix("  "))
            .map(str::to_owned),
    );
    assert!(
        seen.iter().any(|example| example.contains("app/deep/a.py")),
        "{seen:?}"
    );
    for example in &seen {
        let (_, text) = turn(&mut vec![user(example)], &surface(TOOLS), list);
        assert!(!text.starts_with("Not understood"), "{example}: {text}");
    }
    assert!(seen.len() >= 20, "{seen:?}");
}

/// The help offered `show LICENSE-MIT` where that was the largest file, and refused it.
#[test]
fn the_help_offers_only_what_is_understood_whatever_the_files_are() {
    for files in [
        "txt  3  30  LICENSE-MIT",
        "rs  3  30  total/a.rs",
        "-  3  30  notes",
        "py  3  30  a b/c.py",
        "md  3  30  and/or.md",
    ] {
        let (ext, row) = files.split_once("  ").unwrap();
        let content = format!(
            "extension  files  lines  bytes\n{ext}  1  3  30\n\nlargest files\nlines  bytes  path\n  {row}"
        );
        let list = |_: &str, _: &str| ok("1 file, 3 lines", content.as_str());
        let (_, help) = turn(&mut vec![user("help")], &surface(TOOLS), list);
        let examples: Vec<&str> = help
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .collect();
        assert!(examples.len() >= 12, "{help}");
        for example in examples {
            let (_, text) = turn(&mut vec![user(example)], &surface(TOOLS), list);
            assert!(
                !text.starts_with("Not understood"),
                "{files}: {example}: {text}"
            );
        }
    }
}

/// Sentences of a person with simple English: each is understood, or the part that is not understood is named.
#[test]
fn simple_sentences_are_understood_or_the_odd_part_is_named() {
    for row in include_str!("sentences.txt").lines() {
        let (sentence, odd) = row.split_once(" | ").unwrap();
        let (_, text) = turn(&mut vec![user(sentence)], &surface(TOOLS), small_project);
        let said = text
            .strip_prefix("Not understood: `")
            .and_then(|rest| rest.split("`. ").next())
            .unwrap_or("+");
        let said = said.split_once("` (").map_or(said, |(part, _)| part);
        assert_eq!(said, odd, "{sentence}: {text}");
    }
}
