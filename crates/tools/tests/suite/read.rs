//! Read.

use crate::host::{Project, args, block_on, cancelled, context, failed, ok, words};
use authority::Access;
use llm_worker::{ErrorKind, ToolOutput, ToolResult};
use serde_json::json;
use std::sync::Arc;
use tools::{Files, read};

fn run(project: &Project, json: serde_json::Value) -> ToolResult {
    let live = Arc::new(Files::new(project.workspace(Access::Read)).with_remedies(words));
    block_on(read::run(
        live.clone(),
        args(json),
        context(&Arc::default()),
    ))
}

fn shown(project: &Project, json: serde_json::Value) -> ToolOutput {
    ok(run(project, json))
}

#[test]
fn a_window_is_shown_with_numbers() {
    let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    let long = format!("{}\nshort\n", "é".repeat(3000));
    let project = Project::new(&[
        ("ten", text.as_bytes()),
        ("empty", b""),
        ("newline", b"\n"),
        ("no-end", b"a\nb"),
        ("dos", b"\xef\xbb\xbfa\r\nb\r\n"),
        ("mixed", b"a\r\nb\n"),
        ("latin", b"sch\xf6n hier, und auch dort\n"),
        ("long", long.as_bytes()),
        ("bad\nname", b"x\n"),
    ]);
    let cut = format!(
        "     1\t{}… [cut: the line has 6000 bytes]\n     2\tshort",
        "é".repeat(2000)
    );
    let first_two = "     1\tline 1\n     2\tline 2\n(more lines follow; go on with offset=3)";
    let table = [
        (
            json!({"path": "ten", "limit": 2}),
            "ten: lines 1-2 of 10",
            first_two,
        ),
        (
            json!({"path": "ten", "offset": 10}),
            "ten: line 10 of 10",
            "    10\tline 10",
        ),
        (
            json!({"path": "ten", "offset": 9, "limit": 2}),
            "ten: lines 9-10 of 10",
            "     9\tline 9\n    10\tline 10",
        ),
        (json!({"path": "./x/../ten", "offset": 10}), "", ""),
        (json!({"path": "empty"}), "empty: empty file", ""),
        (
            json!({"path": "newline"}),
            "newline: line 1 of 1",
            "     1\t",
        ),
        (
            json!({"path": "no-end"}),
            "no-end: lines 1-2 of 2",
            "     1\ta\n     2\tb",
        ),
        (
            json!({"path": "dos"}),
            "dos: lines 1-2 of 2, CRLF line ends",
            "     1\ta\n     2\tb",
        ),
        (
            json!({"path": "mixed"}),
            "mixed: lines 1-2 of 2, mixed line ends",
            "     1\ta\n     2\tb",
        ),
        (
            json!({"path": "latin"}),
            "latin: line 1 of 1, not all UTF-8: � stands for other bytes",
            "     1\tsch�n hier, und auch dort",
        ),
        (json!({"path": "long"}), "long: lines 1-2 of 2", &cut),
        (
            json!({"path": "bad\nname"}),
            r"bad\nname: line 1 of 1",
            "     1\tx",
        ),
    ];
    for (call, summary, content) in table {
        if summary.is_empty() {
            // `x` does not exist, so `x/..` is nothing.
            failed(run(&project, call), ErrorKind::FixInput);
            continue;
        }
        let got = shown(&project, call);
        assert_eq!(
            (got.summary.as_str(), got.content.as_str()),
            (summary, content)
        );
    }
}

#[test]
fn what_cannot_be_shown_is_refused_with_the_next_step() {
    let project = Project::new(&[
        ("a.txt", b"a\n"),
        ("dir/x", b""),
        ("logo.png", b"\x89PNG\r\n\x1a\n0000"),
        ("blob", b"a\0b"),
        ("Main.rs", b"x\n"),
    ]);
    std::os::unix::fs::symlink("/etc/hostname", project.root().join("out")).unwrap();
    let fifo = project.root().join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let fix = ErrorKind::FixInput;
    let table = [
        (
            json!({"path": "a.txt", "offset": 3}),
            fix,
            "a.txt has 1 line; offset 3",
        ),
        (
            json!({"path": "a.txt", "offset": 0}),
            fix,
            "must be at least 1",
        ),
        (json!({"path": "dir"}), fix, "use List"),
        (json!({"path": "."}), fix, "use List"),
        (json!({"path": "logo.png"}), fix, "logo.png is "),
        (json!({"path": "blob"}), fix, "binary data, 3 bytes"),
        (json!({"path": "fifo"}), fix, "FIFO"),
        (json!({"path": ""}), fix, "empty"),
        (json!({"path": "a\0b"}), fix, "NUL"),
        (json!({"path": "main.rs"}), fix, "did you mean Main.rs?"),
        (json!({"path": "a.md"}), fix, "did you mean a.txt?"),
        (json!({"path": "gone/zzz"}), fix, "does not exist"),
        (json!({"path": "a.txt/x"}), fix, "not a directory"),
        (
            json!({"path": "/etc/hostname"}),
            ErrorKind::Denied,
            "); try AddDir(\"/etc\")",
        ),
        (json!({"path": "../x"}), ErrorKind::Denied, "; try AddDir("),
        (
            json!({"path": "out"}),
            ErrorKind::Denied,
            "/etc/hostname is outside",
        ),
    ];
    for (call, kind, says) in table {
        let message = failed(run(&project, call.clone()), kind);
        assert!(message.contains(says), "{call}: {message}");
    }
    let message = failed(run(&project, json!({"path": "fifo"})), fix);
    assert!(
        message.starts_with("fifo is a FIFO"),
        "paths in the project are said as it sees them: {message}"
    );
}

// 2,000 lines of 100 bytes: pages of whole lines that fit the bound, and together are the file.
#[test]
fn pages_join_to_the_whole_file() {
    let text: String = (0..2000).map(|n| format!("{n:>100}\n")).collect();
    let project = Project::new(&[("f", text.as_bytes())]);
    let mut offset = 1;
    let mut joined = String::new();
    let mut pages = 0;
    loop {
        let page = shown(
            &project,
            json!({"path": "f", "offset": offset, "limit": 5000}),
        );
        let mut lines = page
            .content
            .lines()
            .filter_map(|line| line.split_once('\t'));
        for (_, text) in lines.clone() {
            joined.push_str(text);
            joined.push('\n');
        }
        pages += 1;
        let last: u64 = lines.next_back().unwrap().0.trim().parse().unwrap();
        match page
            .content
            .lines()
            .last()
            .unwrap()
            .strip_prefix("(more lines follow; go on with offset=")
        {
            Some(next) => offset = next.trim_end_matches(')').parse().unwrap(),
            None => break,
        }
        assert_eq!(offset, last + 1);
    }
    assert!(joined == text && pages == 7, "{pages} pages");
}

// A sparse file of 100 MB after one line of text: only the beginning is read, and its end is not known.
#[test]
fn a_huge_file_is_read_only_as_far_as_needed() {
    let project = Project::new(&[("huge", "text\n".repeat(4000).as_bytes())]);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(project.root().join("huge"))
        .unwrap();
    file.set_len(100_000_000).unwrap();
    let got = shown(&project, json!({"path": "huge", "limit": 2}));
    assert_eq!(
        got.summary,
        "huge: lines 1-2; more lines follow (the file has 100000000 bytes)"
    );
    // One line of 100 MB, of which the beginning is kept.
    let got = shown(&project, json!({"path": "huge", "offset": 4001}));
    assert_eq!(got.summary, "huge: line 4001 of 4001");
    assert!(got.content.ends_with("[cut: the line has 99980000 bytes]"));
}

#[test]
fn a_cancelled_read_ends() {
    let project = Project::new(&[("f", b"x\n")]);
    let live = Arc::new(Files::new(project.workspace(Access::Read)));
    failed(
        block_on(read::run(
            live.clone(),
            args(json!({"path": "f"})),
            cancelled(),
        )),
        ErrorKind::Cancelled,
    );
}
