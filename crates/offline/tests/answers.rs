//! What is said of a file and of a test run, over results made up here.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are tests through and through"
)]

use llm_worker::{
    CallId, Item, ModelEvent, ResultStatus, Shortfall, ToolDefinition, ToolEffect, ToolOutcome,
};

/// The answer to a prompt, and whether it was done, where every call is answered by `act`.
fn answer(prompt: &str, act: impl Fn(&str) -> ToolOutcome) -> (String, bool) {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        schema: "{}".into(),
        effect: ToolEffect::ReadOnly,
    };
    let tools: Vec<ToolDefinition> = ["Bash", "Glob", "Grep", "List", "Read"]
        .iter()
        .map(tool)
        .collect();
    let mut items = vec![Item::user(prompt.to_owned())];
    for _ in 0..10 {
        let events = offline::next(&items, &tools);
        let mut text = None;
        for event in &events {
            match event {
                ModelEvent::Text(said) => text = Some(said.clone()),
                ModelEvent::CallStarted { index, name } => {
                    let id = CallId::new((items.len() + 1) as u64).unwrap();
                    let arguments = events.iter().find_map(|event| match event {
                        ModelEvent::CallArguments {
                            index: at,
                            fragment,
                        } if at == index => Some(fragment.clone()),
                        _ => None,
                    });
                    let outcome = act(name);
                    items.push(Item::ToolCall {
                        id,
                        name: name.clone(),
                        arguments: arguments.unwrap(),
                    });
                    items.push(Item::ToolResult { id, outcome });
                }
                _ => {}
            }
        }
        if let Some(text) = text {
            return (
                text,
                !events.contains(&ModelEvent::Shortfall(Shortfall::NotDone)),
            );
        }
    }
    panic!("{prompt}: no answer");
}

fn ok(summary: &str, content: &str) -> ToolOutcome {
    ToolOutcome {
        status: ResultStatus::Ok,
        summary: summary.to_owned(),
        content: content.to_owned(),
        attachments: Vec::new(),
    }
}

#[test]
fn a_description_is_prose_or_nothing() {
    let table = [
        (
            "# T\n\n[![b](x.svg)](x)\n\n**Foo** is a [tool](http://x).\n",
            "md",
            "**Foo** is a [tool](http://x).",
        ),
        (
            "Title\n=====\n\n<p align=x>\n\n- one\n- two\n\nAll good here, 2 * 3.\n",
            "md",
            "All good here, 2 * 3.",
        ),
        (
            "---\ntitle: x y\n---\n\n```sh\nrun it now\n```\n\nTwo lines\nof words.\n\nMore.\n",
            "md",
            "Two lines of words.",
        ),
        ("# Only a title\n", "md", ""),
        (
            "import json\nimport os\n\n\"\"\"Not a docstring.\"\"\"\n",
            "py",
            "",
        ),
        (
            "#!/usr/bin/env python3\n\"\"\"Adds up.\n\nMore.\n\"\"\"\nimport os\n",
            "py",
            "Adds up.",
        ),
        ("use std::fs;\n\n/// A thing.\nfn f() {}\n", "rs", ""),
        (
            "//! Accounts\n//! in text.\n//!\n//! More.\nuse x;\n",
            "rs",
            "Accounts in text.",
        ),
        ("const a = require('a');\n", "js", ""),
        (
            "/**\n * Formats notes.\n * @module x\n */\n",
            "js",
            "Formats notes. @module x",
        ),
        ("/* Formats notes. */\nlet x;\n", "js", "Formats notes."),
        ("// Copyright 2020 A\n\nfunction main() {}\n", "js", ""),
        ("{\n  \"name\": \"x\"\n}\n", "json", ""),
    ];
    for (text, ext, want) in table {
        let rows: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(at, line)| format!("{:>6}\t{line}", at + 1))
            .collect();
        let (told, _) = answer(&format!("summarise a/b.{ext}"), |name| match name {
            "Read" => ok("a/b: lines 1-9 of 9", &rows.join("\n")),
            _ => ok("0 matches in 0 files (1 searched)", ""),
        });
        let said: Vec<&str> = told
            .lines()
            .skip(1)
            .take_while(|line| !line.ends_with(':'))
            .collect();
        assert_eq!(said.join("\n"), want, "{told}");
    }
}

#[test]
fn whether_tests_ran_is_a_part_of_the_answer() {
    let cargo = "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
    let table = [
        (true, cargo, "The tests pass", "7 passed, 0 failed."),
        (
            true,
            "test result: ok. 0 passed; 0 failed; 0 ignored",
            "No tests ran",
            "Nothing was tested",
        ),
        (
            false,
            "....\nRan 4 tests in 0.1s\n\nFAILED (failures=1, errors=1)",
            "The tests fail:",
            "2 passed, 2 failed.",
        ),
        (
            true,
            "Ran 4 tests in 0.1s\n\nOK (skipped=1)",
            "The tests pass",
            "3 passed, 0 failed.",
        ),
        (
            false,
            "Ran 0 tests in 0.0s\n\nNO TESTS RAN",
            "No tests ran",
            "Nothing was tested",
        ),
        (
            true,
            "==== 3 passed in 0.01s ====",
            "The tests pass",
            "3 passed, 0 failed.",
        ),
        (
            false,
            "1 failed, 2 passed in 0.03s",
            "The tests fail:",
            "2 passed, 1 failed.",
        ),
        (
            false,
            "no tests ran in 0.01s",
            "No tests ran",
            "Nothing was tested",
        ),
        (
            true,
            "# tests 2\n# pass 2\n# fail 0",
            "The tests pass",
            "2 passed, 0 failed.",
        ),
        (
            true,
            "Tests:       2 passed, 2 total",
            "The tests pass",
            "2 passed, 0 failed.",
        ),
        (
            false,
            "  2 passing (5ms)\n  1 failing",
            "The tests fail:",
            "2 passed, 1 failed.",
        ),
        (
            false,
            "sh: 1: npm: not found",
            "The tests did not run",
            "not installed",
        ),
        (
            false,
            "Error: Cannot find module 'x'",
            "The tests did not run",
            "npm install",
        ),
        (
            false,
            "npm error Missing script: \"test\"",
            "The tests did not run",
            "no such script",
        ),
        (
            false,
            "error: no matching package named `x` found",
            "The tests did not run",
            "cargo fetch",
        ),
        (
            true,
            "all fine",
            "does not say how many tests ran",
            "all fine",
        ),
        (
            false,
            "Segmentation fault",
            "or did not run",
            "Segmentation",
        ),
    ];
    for (good, content, verdict, says) in table {
        let (text, done) = answer("run the tests", |name| match (name, good) {
            ("Glob", _) => ok("1 file", "Cargo.toml"),
            (_, true) => ok("exit 0 in 1.0 s", content),
            (_, false) => ToolOutcome {
                status: ResultStatus::Error,
                ..ok("exit 1 in 1.0 s", content)
            },
        });
        assert!(
            text.contains(verdict) && text.contains(says),
            "{content}: {text}"
        );
        assert_eq!(
            done,
            verdict == "The tests pass" || verdict.starts_with("does not say"),
            "{content}: {text}"
        );
    }
}
