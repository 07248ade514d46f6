//! What the model is told, and what it costs.

use llm_worker::tool::{Touch, canonical_schema, parse_arguments};
use std::path::PathBuf;
use tools::{bash, edit, glob, grep, list, read, read_output, write};

/// Budget for the eight definitions as JSON, in bytes; a first request, system prompt included, has 8 kB.
const BUDGET: usize = 4350;

#[test]
fn the_definitions_fit_their_budget() {
    let tools = [
        (read::NAME, read::ABOUT, canonical_schema::<read::Args>()),
        (write::NAME, write::ABOUT, canonical_schema::<write::Args>()),
        (edit::NAME, edit::ABOUT, canonical_schema::<edit::Args>()),
        (glob::NAME, glob::ABOUT, canonical_schema::<glob::Args>()),
        (grep::NAME, grep::ABOUT, canonical_schema::<grep::Args>()),
        (list::NAME, list::ABOUT, canonical_schema::<list::Args>()),
        (bash::NAME, bash::ABOUT, canonical_schema::<bash::Args>()),
        (
            read_output::NAME,
            read_output::ABOUT,
            canonical_schema::<read_output::Args>(),
        ),
    ];
    let mut total = 0;
    for (name, about, schema) in &tools {
        let parsed: serde_json::Value = serde_json::from_str(schema).unwrap();
        assert_eq!(parsed["type"], "object", "{name}");
        let encoded = serde_json::json!({"name": name, "description": about, "parameters": parsed})
            .to_string();
        println!("{:>5} bytes  {encoded}", encoded.len());
        total += encoded.len();
    }
    println!("{total:>5} bytes in all");
    assert!(total <= BUDGET, "{total} bytes");
}

// What was judged is what runs: the canonical text has every default in it.
#[test]
fn defaults_are_filled_in() {
    let canonical = |tool: &str, raw: &str| match tool {
        "Read" => parse_arguments::<read::Args>(tool, raw).map(|(_, text)| text),
        "Grep" => parse_arguments::<grep::Args>(tool, raw).map(|(_, text)| text),
        "List" => parse_arguments::<list::Args>(tool, raw).map(|(_, text)| text),
        "Bash" => parse_arguments::<bash::Args>(tool, raw).map(|(_, text)| text),
        "Edit" => parse_arguments::<edit::Args>(tool, raw).map(|(_, text)| text),
        "ReadOutput" => parse_arguments::<read_output::Args>(tool, raw).map(|(_, text)| text),
        other => panic!("{other}"),
    };
    let table = [
        (
            "Read",
            r#"{"path":"a"}"#,
            r#"{"limit":400,"offset":1,"path":"a"}"#,
        ),
        (
            "Grep",
            r#"{"pattern":"x"}"#,
            r#"{"context":0,"ignore_case":false,"limit":200,"mode":"content","path":".","pattern":"x"}"#,
        ),
        ("List", "{}", r#"{"depth":2,"path":".","totals":false}"#),
        (
            "Bash",
            r#"{"command":"x"}"#,
            r#"{"command":"x","timeout_s":120}"#,
        ),
        (
            "Edit",
            r#"{"path":"a","edits":[{"old":"x","new":"y"}]}"#,
            r#"{"edits":[{"new":"y","old":"x","replace_all":false}],"path":"a"}"#,
        ),
        (
            "ReadOutput",
            r#"{"handle":"h"}"#,
            r#"{"handle":"h","lines":200,"offset":1,"tail":false}"#,
        ),
    ];
    for (tool, raw, want) in table {
        assert_eq!(&*canonical(tool, raw).unwrap(), want);
    }
    assert!(canonical("Read", r#"{"path":"a","line":3}"#).is_err());
    assert!(canonical("Grep", r#"{"pattern":"a","mode":"all"}"#).is_err());
}

#[test]
fn touches_name_what_the_arguments_name() {
    let path = || PathBuf::from("a/b");
    let read = read::Args {
        path: "a/b".into(),
        offset: 1,
        limit: 1,
    };
    assert_eq!(read::touches(&read), [Touch::Read(path())]);
    assert_eq!(
        write::touches(&write::Args {
            path: "a/b".into(),
            content: String::new()
        }),
        [Touch::Write(path())]
    );
    assert_eq!(
        edit::touches(&edit::Args {
            path: "a/b".into(),
            edits: Vec::new()
        }),
        [Touch::Write(path())]
    );
    assert_eq!(
        glob::touches(&glob::Args {
            path: "a/b".into(),
            pattern: "*".into()
        }),
        [Touch::Read(path())]
    );
    assert_eq!(
        list::touches(&list::Args {
            path: "a/b".into(),
            depth: 1,
            totals: false
        }),
        [Touch::Read(path())]
    );
    assert_eq!(
        bash::touches(&bash::Args {
            command: "ls".into(),
            description: None,
            timeout_s: 1,
            escalate: None
        }),
        [Touch::Shell("ls".into())]
    );
}
