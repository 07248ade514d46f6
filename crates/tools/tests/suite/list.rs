//! List.

use crate::host::{Project, args, block_on, cancelled, context, failed, ok};
use authority::Access;
use llm_worker::{ErrorKind, ToolResult};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::{Search, list};

fn run(project: &Project, call: Value) -> ToolResult {
    let live = Arc::new(Search::new(project.workspace(Access::Read)));
    block_on(list::run(
        live.clone(),
        args(call),
        context(&Arc::default()),
    ))
}

fn project() -> Project {
    let p = Project::new(&[
        (".git/HEAD", b"x"),
        (".gitignore", b"/target\n"),
        ("Cargo.toml", b"a\nb\n"),
        ("src/deep/er/x.rs", b"1\n2\n3\n4\n5"),
        ("src/main.rs", b"1\n2\n"),
        ("src/tab\tname", b"z"),
        ("logo.png", b"\x89PNG\r\n\x1a\n\n\n\n"),
        ("target/big", b"1\n2\n"),
    ]);
    std::os::unix::fs::symlink("..", p.root().join("up")).unwrap();
    p
}

#[test]
fn a_tree_is_shown_to_its_depth() {
    let p = project();
    let two = ".gitignore  8\nCargo.toml  4\nlogo.png  11\nsrc/\n  deep/\n  main.rs  4\n  tab\\tname  1\nup  link";
    let deep = "deep/\n  er/\n    x.rs  9\nmain.rs  4\ntab\\tname  1";
    let table = [
        (json!({}), "2 directories, 6 files", two),
        (
            json!({"path": "src", "depth": 9}),
            "2 directories, 3 files",
            deep,
        ),
        (
            json!({"depth": 1}),
            "1 directory, 4 files",
            ".gitignore  8\nCargo.toml  4\nlogo.png  11\nsrc/\nup  link",
        ),
        (
            json!({"path": "src/deep/er", "depth": 1}),
            "0 directories, 1 file",
            "x.rs  9",
        ),
    ];
    for (call, summary, content) in table {
        let got = ok(run(&p, call.clone()));
        assert_eq!(
            (got.summary.as_str(), got.content.as_str()),
            (summary, content),
            "{call}"
        );
    }
    failed(run(&p, json!({"depth": 0})), ErrorKind::FixInput);
    failed(run(&p, json!({"depth": 33})), ErrorKind::FixInput);
    failed(run(&p, json!({"path": "Cargo.toml"})), ErrorKind::FixInput);
    failed(run(&p, json!({"path": "up"})), ErrorKind::Denied);
    let live = Arc::new(Search::new(p.workspace(Access::Read)));
    failed(
        block_on(list::run(
            live.clone(),
            args(json!({"totals": true})),
            cancelled(),
        )),
        ErrorKind::Cancelled,
    );
}

#[test]
fn a_large_tree_is_bounded_and_counted() {
    let p = Project::new(&[]);
    for n in 0..1100 {
        p.put(&format!("{n:04}"), b"");
    }
    let got = ok(run(&p, json!({})));
    assert_eq!(
        (got.summary.as_str(), got.content.lines().count()),
        ("0 directories, 1100 files", 1001)
    );
    assert!(
        got.content
            .ends_with("(the first 1000 of 1100 entries are shown; list a directory below)")
    );
}

// Lines as an editor counts them: an unfinished last line is one, binary files have none.
#[test]
fn totals_add_up() {
    let got = ok(run(&project(), json!({"totals": true})));
    assert_eq!(got.summary, "6 files, 11 lines");
    let rows: Vec<Vec<&str>> = got
        .content
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let want: Vec<Vec<&str>> = vec![
        vec!["extension", "files", "lines", "bytes"],
        vec!["rs", "2", "7", "13"],
        vec!["(none)", "2", "2", "9"],
        vec!["toml", "1", "2", "4"],
        vec!["png", "1", "0", "11"],
        vec![],
        vec!["largest", "files"],
        vec!["lines", "bytes", "path"],
        vec!["5", "9", "src/deep/er/x.rs"],
        vec!["2", "4", "Cargo.toml"],
        vec!["2", "4", "src/main.rs"],
        vec!["1", "8", ".gitignore"],
        vec!["1", "1", "src/tab\\tname"],
        vec!["0", "11", "logo.png"],
    ];
    assert_eq!(rows, want);
}

#[test]
fn many_extensions_are_joined_and_the_largest_files_are_right() {
    let p = Project::new(&[]);
    for n in 0..60_usize {
        p.put(&format!("f.e{n}"), "x\n".repeat(n * 7 % 60).as_bytes());
    }
    let got = ok(run(&p, json!({"totals": true})));
    assert_eq!(
        got.summary,
        format!("60 files, {} lines", (0..60).sum::<usize>())
    );
    let lines: Vec<_> = got.content.lines().collect();
    assert!(
        lines[41].starts_with("(other)") && lines[41].split_whitespace().nth(1) == Some("20"),
        "{}",
        lines[41]
    );
    let largest: Vec<usize> = lines[45..]
        .iter()
        .map(|row| row.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(largest, (50..60).rev().collect::<Vec<_>>());
}
