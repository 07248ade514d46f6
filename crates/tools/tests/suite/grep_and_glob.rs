//! Grep and Glob.

use crate::host::{Project, args, block_on, cancelled, context, failed, ok, words};
use authority::Access;
use llm_worker::{ErrorKind, ToolResult};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tools::{Search, glob, grep};

fn run(project: &Project, call: Value) -> ToolResult {
    let live = Arc::new(Search::new(project.workspace(Access::Read)).with_remedies(words));
    block_on(grep::run(
        live.clone(),
        args(call),
        context(&Arc::default()),
    ))
}

fn paths(project: &Project, call: Value) -> ToolResult {
    let live = Arc::new(Search::new(project.workspace(Access::Read)));
    block_on(glob::run(
        live.clone(),
        args(call),
        context(&Arc::default()),
    ))
}

fn project() -> Project {
    Project::new(&[
        (".git/HEAD", b"needle\n"),
        (".gitignore", b"/target\n*.log\n"),
        (".hidden", b"needle\n"),
        ("a.rs", b"one\nneedle 1\nthree\nfour\nfive\nneedle 2\r\n"),
        ("bin", b"needle\0needle\n"),
        ("debug.log", b"needle\n"),
        (
            "late",
            &[b"x\n".repeat(20_000).as_slice(), b"needle\n"].concat(),
        ),
        ("src/b.rs", b"Needle\nlatin \xf6 needle\n"),
        ("src/odd\nname.rs", b"needle\n"),
        ("target/c.rs", b"needle\n"),
    ])
}

#[test]
fn matches_are_shown() {
    let p = project();
    let all = ".hidden:1:needle\na.rs:2:needle 1\na.rs:6:needle 2\nlate:20001:needle\nsrc/b.rs:2:latin � needle\nsrc/odd\\nname.rs:1:needle";
    let context = "a.rs-1-one\na.rs:2:needle 1\na.rs-3-three\n--\na.rs-5-five\na.rs:6:needle 2";
    let table = [
        (json!({"pattern": "needle"}), "6 matches in 5 files", all),
        (
            json!({"pattern": "needle", "path": "a.rs"}),
            "2 matches in 1 file",
            "a.rs:2:needle 1\na.rs:6:needle 2",
        ),
        (
            json!({"pattern": "needle", "path": "a.rs", "context": 1}),
            "2 matches in 1 file",
            context,
        ),
        (
            json!({"pattern": "needle", "glob": "*.md"}),
            "0 matches in 0 files (0 searched)",
            "",
        ),
        (
            json!({"pattern": "NEEDLE"}),
            "0 matches in 0 files (6 searched)",
            "",
        ),
        (
            json!({"pattern": "2$", "mode": "count"}),
            "1 match in 1 file",
            "a.rs:1",
        ),
        (
            json!({"pattern": "needle", "mode": "files", "path": "src"}),
            "matches in 2 files",
            "src/b.rs\nsrc/odd\\nname.rs",
        ),
        (
            json!({"pattern": "^needle", "glob": "src/", "ignore_case": true, "mode": "count"}),
            "2 matches in 2 files",
            "src/b.rs:1\nsrc/odd\\nname.rs:1",
        ),
        (
            json!({"pattern": "needle", "limit": 1}),
            "6 matches in 5 files",
            ".hidden:1:needle\n(1 of 6 matches are shown; give a narrower path, glob or pattern)",
        ),
        (
            json!({"pattern": "needle", "limit": 1, "mode": "files"}),
            "matches in 5 files",
            ".hidden\n(1 of 5 files are shown; give a narrower path, glob or pattern)",
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
}

#[test]
fn a_bad_search_is_explained() {
    let p = project();
    let fix = ErrorKind::FixInput;
    let table = [
        (json!({"pattern": "foo("}), fix, "put \\ before"),
        (json!({"pattern": "a\nb"}), fix, "within one line"),
        (json!({"pattern": ""}), fix, "empty"),
        (json!({"pattern": "x", "limit": 0}), fix, "limit"),
        (json!({"pattern": "x", "context": 21}), fix, "context"),
        (json!({"pattern": "x", "glob": "[a"}), fix, "glob"),
        (
            json!({"pattern": "x", "path": "gone"}),
            fix,
            "does not exist",
        ),
        (
            json!({"pattern": "x", "path": "/etc"}),
            ErrorKind::Denied,
            "; try AddDir(",
        ),
        (
            json!({"pattern": "((a{1000}){1000}){1000}"}),
            fix,
            "expression",
        ),
    ];
    for (call, kind, says) in table {
        let message = failed(run(&p, call.clone()), kind);
        assert!(message.contains(says), "{call}: {message}");
    }
    let error = run(&p, json!({"pattern": "foo("})).unwrap_err();
    assert!(
        error.content.contains("unclosed group"),
        "{}",
        error.content
    );
    let live = Arc::new(Search::new(p.workspace(Access::Read)));
    failed(
        block_on(grep::run(
            live.clone(),
            args(json!({"pattern": "x"})),
            cancelled(),
        )),
        ErrorKind::Cancelled,
    );
    failed(
        block_on(glob::run(
            live.clone(),
            args(json!({"pattern": "x"})),
            cancelled(),
        )),
        ErrorKind::Cancelled,
    );
}

// The match stands far inside of a line of a megabyte; the text around it is not ASCII.
#[test]
fn a_long_line_is_cut_around_its_match() {
    let line = format!("{}needle{}\n", "é".repeat(1 << 18), "é".repeat(1 << 18));
    let p = Project::new(&[("min.js", line.as_bytes())]);
    let got = ok(run(&p, json!({"pattern": "needle"})));
    assert!(
        got.content.contains("ééneedleéé") && got.content.len() < 450 && !got.content.contains('�'),
        "{}",
        got.content
    );
}

// More than fits: a bounded answer with the true total.
#[test]
fn many_matches_are_bounded_and_counted() {
    let p = Project::new(&[("f", "needle in a haystack of hay\n".repeat(5000).as_bytes())]);
    let got = ok(run(&p, json!({"pattern": "needle", "limit": 5000})));
    assert_eq!(got.summary, "5000 matches in 1 file");
    assert!(got.content.contains(" of 5000 matches are shown;"));
}

#[test]
fn globs_list_files() {
    let p = project();
    let table = [
        (
            json!({"pattern": "*.rs"}),
            "3 files",
            "a.rs\nsrc/b.rs\nsrc/odd\\nname.rs",
        ),
        (
            json!({"pattern": "b.rs", "path": "src"}),
            "1 file",
            "src/b.rs",
        ),
        (
            json!({"pattern": "src/*.rs"}),
            "2 files",
            "src/b.rs\nsrc/odd\\nname.rs",
        ),
        (json!({"pattern": "target/*"}), "0 files", ""),
        (json!({"pattern": ".*"}), "2 files", ".gitignore\n.hidden"),
    ];
    for (call, summary, content) in table {
        let got = ok(paths(&p, call.clone()));
        assert_eq!(
            (got.summary.as_str(), got.content.as_str()),
            (summary, content),
            "{call}"
        );
    }
    failed(
        paths(&p, json!({"pattern": "*", "path": "a.rs"})),
        ErrorKind::FixInput,
    );
    failed(paths(&p, json!({"pattern": "../*"})), ErrorKind::FixInput);
    failed(
        paths(&p, json!({"pattern": "*", "path": ".."})),
        ErrorKind::Denied,
    );
    let many = Project::new(&[]);
    for n in 0..1200 {
        many.put(&format!("{n:04}"), b"");
    }
    let got = ok(paths(&many, json!({"pattern": "*"})));
    assert_eq!(
        (got.summary.as_str(), got.content.lines().count()),
        ("1200 files", 1001)
    );
}

fn tree() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = prop::sample::select(vec!["a", "b", "src/a", "src/b", "src/deep/c", "z.txt"]);
    let line = prop::sample::select(vec![
        "", "foo", "bar foo", "foo\r", "oof", "FOO", "b\u{e4}r", "foofoo",
    ]);
    let text = (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, end)| {
        let mut text = lines.join("\n");
        text.push_str(if end { "\n" } else { "" });
        text.into_bytes()
    });
    prop::collection::btree_map(name.prop_map(str::to_owned), text, 0..6)
        .prop_map(|tree| tree.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // Over random trees, the lines found are those that contain the text, by the standard library.
    #[test]
    fn grep_agrees_with_the_standard_library(tree in tree(), needle in prop::sample::select(vec!["foo", "o", "oo$", "^b"])) {
        let files: Vec<_> = tree.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        let p = Project::new(&files);
        let fits = |line: &str| match needle {
            "oo$" => line.ends_with("oo"),
            "^b" => line.starts_with('b'),
            plain => line.contains(plain),
        };
        let mut want = Vec::new();
        for (path, bytes) in &files {
            for (index, line) in std::str::from_utf8(bytes).unwrap().lines().enumerate() {
                let line = line.trim_end_matches('\r');
                if fits(line) {
                    want.push(format!("{path}:{}:{line}", index + 1));
                }
            }
        }
        let got = ok(run(&p, json!({"pattern": needle})));
        let mut lines: Vec<_> = got.content.lines().map(str::to_owned).collect();
        lines.sort();
        want.sort();
        prop_assert_eq!(lines, want);
    }
}

// A tree that nobody walks to its end: what was left out is said, whatever was found.
#[test]
fn what_lies_too_deep_is_said() {
    let p = Project::new(&[]);
    let deep = p.root().join("d/".repeat(150));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("f"), "needle\n").unwrap();
    let list = || {
        let live = Arc::new(Search::new(p.workspace(Access::Read)));
        block_on(tools::list::run(
            live.clone(),
            args(json!({"totals": true})),
            context(&Arc::default()),
        ))
    };
    for found in [
        run(&p, json!({"pattern": "needle"})),
        paths(&p, json!({"pattern": "**/f"})),
        list(),
    ] {
        let found = ok(found);
        assert!(
            found.content.contains("more than 128 directories deep"),
            "{}\n{}",
            found.summary,
            found.content
        );
    }
}

// Names that are no text are found, links are not followed, and a directory that does not open is said.
#[test]
fn odd_names_links_and_closed_directories() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let p = Project::new(&[("closed/f", b"needle\n")]);
    std::fs::write(
        p.root().join(std::ffi::OsStr::from_bytes(b"odd-\xff.rs")),
        "needle\n",
    )
    .unwrap();
    symlink(".", p.root().join("loop")).unwrap();
    symlink("self", p.root().join("self")).unwrap();
    let closed = p.root().join("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let opens = std::fs::read_dir(&closed).is_ok();
    let list = || {
        let live = Arc::new(Search::new(p.workspace(Access::Read)));
        block_on(tools::list::run(
            live.clone(),
            args(json!({"totals": true})),
            context(&Arc::default()),
        ))
    };
    let found = [
        run(&p, json!({"pattern": "needle"})),
        paths(&p, json!({"pattern": "**/*"})),
        list(),
    ]
    .map(ok);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    for found in found {
        let all = format!("{}\n{}", found.summary, found.content);
        assert!(all.contains("odd-"), "{all}");
        assert!(!all.contains("loop/"), "{all}");
        // Permissions do not hold root back.
        assert_eq!(all.contains("1 place could not be read"), !opens, "{all}");
    }
}
