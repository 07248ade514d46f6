//! The rooms inside of crates: how large a circle of files may be, and which room may name which.

#![allow(
    clippy::unwrap_used,
    reason = "tests: a scratch directory that fails is a failed test"
)]

use std::collections::BTreeSet;
use std::path::Path;
use tidy::finding::Finding;
use tidy::modules::{Room, arrows, circles};
use tidy::source::{crate_folder, sources};

/// The most files of a crate that may know each other; of a crate without a row, no two.
const CIRCLES: &[(&str, usize)] = &[
    ("authority", 3),
    ("builtins", 2),
    ("host", 2),
    ("llm-worker", 2),
    ("plugins/package", 2),
    ("pod", 6),
    ("protocol", 2),
    ("offline", 2),
    ("session-store", 3),
    ("shell", 2),
    ("testkit", 9),
    ("tools", 2),
    ("tui", 4),
    ("yoi", 2),
];

/// What the rooms of a crate may name of each other. A new arrow fails the build until this table, and so a reader, agrees.
#[rustfmt::skip]
const ROOMS: &[(&str, &[Room])] = &[
    ("pod", &[
        // cron expressions and intervals; knows nothing that runs
        Room { name: "pod::schedule", may: &[] },
        // JSON Schemas that the host enforces; knows not whose they are
        Room { name: "pod::schema", may: &[] },
        // bodies of records; knows no one who writes them
        Room { name: "pod::record", may: &[] },
        // what records mean; knows no feature, no driver
        Room { name: "pod::session", may: &["record"] },
        // taking back file changes; knows no driver
        Room { name: "pod::undo", may: &["record", "session"] },
        // what may run; knows no driver, no flag
        Room { name: "pod::permission", may: &["feature::decide", "feature::declare", "record"] },
        // where others are asked; knows no driver
        Room { name: "pod::hook", may: &["feature::declare", "foreign", "record"] },
        // threads for code of others; knows no registry
        Room { name: "pod::foreign", may: &["feature::declare", "mailbox"] },
        // requests in, events out; knows no driver
        Room { name: "pod::mailbox", may: &["feature::declare", "feature::live", "record", "session"] },
        Room { name: "pod::feature", may: &[] },
        Room { name: "pod::feature::author", may: &["feature::live"] },
        // what a feature says
        Room { name: "pod::feature::declare", may: &["hook", "permission", "record", "schedule", "schema"] },
        // what the host makes of it; installs nothing
        Room { name: "pod::feature::decide", may: &["feature::declare", "hook", "permission", "record"] },
        Room { name: "pod::feature::install", may: &["feature::decide", "feature::declare", "feature::live", "foreign", "hook"] },
        // what is installed; knows nothing of installing
        Room { name: "pod::feature::live", may: &["feature::decide", "feature::declare", "foreign", "hook", "mailbox", "record", "schema", "session"] },
        // the driver; knows no host
        Room { name: "pod::control", may: &["feature::decide", "feature::declare", "feature::install", "feature::live", "foreign", "hook", "mailbox", "permission", "record", "schedule", "session"] },
        // clients at the pod's socket; knows no turn and no host
        Room { name: "pod::ipc", may: &["control", "mailbox", "record", "session"] },
        // opens, runs and closes a pod
        Room { name: "pod::host", may: &["control", "feature::decide", "feature::declare", "feature::live", "foreign", "mailbox", "record", "session"] },
    ]),
    ("host", &[
        Room { name: "host::exit", may: &[] },
        Room { name: "host::nearest", may: &[] },
        Room { name: "host::plain_file", may: &[] },
        Room { name: "host::points", may: &[] },
        // features that a composed program has besides the built-in ones
        Room { name: "host::added", may: &[] },
        Room { name: "host::env", may: &["added", "exit", "words"] },
        Room { name: "host::project", may: &["env", "plain_file"] },
        Room { name: "host::pods", may: &["env", "exit"] },
        // what people debug with; knows no pod and no run
        Room { name: "host::host_log", may: &["env", "exit"] },
        Room { name: "host::instructions", may: &["env", "exit", "plain_file", "project"] },
        Room { name: "host::bad_value", may: &["exit"] },
        // the table of limits; knows no file and no command line
        Room { name: "host::limits", may: &["bad_value"] },
        Room { name: "host::attachment", may: &["bad_value", "exit"] },
        Room { name: "host::allow", may: &["bad_value", "exit", "nearest"] },
        // what a person can do about a refusal, in words
        Room { name: "host::words", may: &["exit"] },
        // packages on this machine and the person's grants of them; knows no configuration
        Room { name: "host::plugins", may: &["env", "exit", "plain_file", "pods"] },
        // MCP servers that the person added; knows no configuration
        Room { name: "host::mcp", may: &["env", "exit", "plain_file", "pods"] },
        // skills and commands that are found; knows no configuration
        Room { name: "host::skills", may: &["env", "plain_file", "plugins", "project"] },
        // what is configured; knows no option
        Room { name: "host::config", may: &["compose", "env", "exit", "host_log", "limits", "mcp", "nearest", "plain_file", "plugins", "pods", "project", "skills"] },
        // the composition root
        Room { name: "host::compose", may: &["config", "env", "exit", "instructions", "mcp", "nearest", "plain_file", "plugins", "pods", "project", "skills", "words"] },
        // a file that describes an agent
        Room { name: "host::agent", may: &["compose", "config", "env", "exit", "limits", "plain_file", "plugins"] },
        // agents by their names
        Room { name: "host::agents", may: &["agent", "config", "env", "exit", "nearest", "plain_file", "plugins", "skills"] },
        // in words, for a command and for a live pod
        Room { name: "host::undo", may: &["exit", "hosting", "pods"] },
        Room { name: "host::launch", may: &["agent", "allow", "attachment", "config", "env", "exit", "limits"] },
        // a pod in this process
        Room { name: "host::hosting", may: &["agent", "compose", "config", "env", "exit", "host_log", "instructions", "launch", "points", "pods", "project", "undo", "words"] },
    ]),
    ("yoi", &[
        // a terminal: its width and theme
        Room { name: "yoi::look", may: &[] },
        // next steps in words
        Room { name: "yoi::remedy", may: &[] },
        // errors on standard error
        Room { name: "yoi::report", may: &["look", "remedy"] },
        // scripts of plugins that this program runs itself; knows no host of them
        Room { name: "yoi::scripts", may: &[] },
        Room { name: "yoi::program", may: &["scripts"] },
        Room { name: "yoi::usage", may: &["remedy"] },
        Room { name: "yoi::candidates", may: &["remedy"] },
        // flags; runs nothing
        Room { name: "yoi::cli", may: &["candidates"] },
        // what people see; knows no command
        Room { name: "yoi::show", may: &["look", "remedy"] },
        // the control channel; knows no command and no configuration
        Room { name: "yoi::past_turn", may: &[] },
        Room { name: "yoi::socket", may: &["past_turn"] },
        // the terminal of the full screen: keys in, frames out, given back; knows no pod
        Room { name: "yoi::terminal", may: &[] },
        Room { name: "yoi::commands", may: &["cli", "look", "past_turn", "remedy", "report", "show", "socket", "terminal"] },
    ]),
    ("session-store", &[
        Room { name: "session-store::disk", may: &[] },
        Room { name: "session-store::error", may: &["disk"] },
        Room { name: "session-store::ops", may: &["disk", "error"] },
        // one line; knows no file
        Room { name: "session-store::frame", may: &["error"] },
        Room { name: "session-store::damage", may: &["error", "frame"] },
        Room { name: "session-store::blob", may: &["disk", "error", "ops", "session"] },
        Room { name: "session-store::checkpoint", may: &["blob", "error", "frame", "ops"] },
        // the writer
        Room { name: "session-store::journal", may: &["checkpoint", "disk", "error", "frame", "ops", "session"] },
        Room { name: "session-store::reader", may: &["blob", "checkpoint", "damage", "disk", "error", "frame", "ops", "session"] },
        Room { name: "session-store::session", may: &["blob", "checkpoint", "damage", "disk", "error", "frame", "journal", "ops", "reader"] },
    ]),
    ("llm-worker", &[
        Room { name: "llm-worker::tool", may: &[] },
        // what files are; knows no item
        Room { name: "llm-worker::attachment", may: &[] },
        // history to request; knows no turn
        Room { name: "llm-worker::sendable", may: &["tool"] },
        Room { name: "llm-worker::projection", may: &["tool"] },
        Room { name: "llm-worker::model", may: &["projection"] },
        Room { name: "llm-worker::effect", may: &["model", "payload", "projection"] },
        // what hosts attach and make durable; knows no turn
        Room { name: "llm-worker::payload", may: &["effect"] },
        Room { name: "llm-worker::history", may: &["effect", "payload", "projection"] },
        // the machine; knows no host
        Room { name: "llm-worker::turn", may: &["effect", "history", "model", "payload", "projection", "sendable"] },
    ]),
];

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn none(findings: &[Finding]) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn circles_of_files_are_small() {
    let (sources, bad) = sources(&root());
    none(&bad);
    let crates: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| crate_folder(&source.path).strip_prefix("crates/"))
        .collect();
    for (name, _) in CIRCLES {
        assert!(crates.contains(name), "{name} is no crate");
    }
    for name in crates {
        let row = CIRCLES.iter().find(|(of, _)| *of == name);
        none(&circles(&root(), name, row.map_or(1, |(_, most)| *most)));
    }
}

#[test]
fn rooms_name_what_their_rows_have() {
    for (name, rows) in ROOMS {
        none(&arrows(&root(), name, rows));
    }
}

mod seen_to_fail {
    use super::*;

    /// What is wrong with a crate `c` of these files.
    fn found(files: &[(&str, &str)], check: impl Fn(&Path) -> Vec<Finding>) -> String {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("crates/c/src").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(dir.path())
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect()
    }

    fn circle(files: &[(&str, &str)]) -> String {
        found(files, |root| circles(root, "c", 1))
    }

    #[test]
    fn two_files_that_name_each_other() {
        let a = (
            "a.rs",
            "use crate::b::{B, other::{self as o}};\nstruct A(B);",
        );
        for b in [
            "use super::a::A;\nstruct B(A);",
            "struct B(crate::a::A);",
            "use crate::{a};\nfn f() { a::new() }",
        ] {
            let said = circle(&[("lib.rs", "mod a;\nmod b;"), a, ("b.rs", b)]);
            assert!(
                said.contains("a circle of 2 files, 1 are the bound"),
                "{b}: {said}"
            );
        }
        let unused = "use crate::a;\n// a::new()\nconst T: &str = \"a::new()\";\n#[cfg(test)]\nmod tests { use crate::a::A; }";
        assert_eq!(circle(&[("lib.rs", ""), a, ("b.rs", unused)]), "");
        assert_eq!(
            circle(&[
                ("lib.rs", ""),
                a,
                ("b/tests.rs", "use crate::a::A; struct T(A);")
            ]),
            ""
        );
    }

    /// What is handed on belongs to the file it comes from; what the facade itself uses is its own.
    #[test]
    fn a_facade_is_no_circle() {
        let facade = "mod x;\nmod y;\npub use x::X;\npub(crate) use y::{Y as Z};";
        let x = ("r/x.rs", "pub struct X;");
        let y = ("r/y.rs", "use super::X;\npub struct Y(X);");
        assert_eq!(
            circle(&[("lib.rs", "mod r;"), ("r/mod.rs", facade), x, y]),
            ""
        );
        let used = format!("{facade}\npub fn f(_: Z) {{}}");
        let y = ("r/y.rs", "pub struct Y;\npub fn g() { super::f(Y) }");
        assert!(
            circle(&[("lib.rs", "mod r;"), ("r/mod.rs", &used), x, y])
                .contains("r/mod.rs\n  crates/c/src/r/y.rs")
        );
        let through = ("r/x.rs", "use crate::r::Z;\npub struct X(Z);");
        let y = ("r/y.rs", "use crate::r::X;\npub struct Y(X);");
        assert!(
            circle(&[("lib.rs", ""), ("r/mod.rs", facade), through, y]).contains("circle of 2")
        );
    }

    #[test]
    fn arrows_that_no_row_has_and_rows_without_an_arrow() {
        let files: &[(&str, &str)] = &[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
            ("a/mod.rs", "mod deep;\npub struct A(crate::b::B);"),
            ("a/deep.rs", "pub struct D(super::A);"),
            ("b.rs", "pub struct B;"),
        ];
        let with = |rows: &'static [Room]| found(files, |root| arrows(root, "c", rows));
        assert_eq!(
            with(&[
                Room {
                    name: "c::a",
                    may: &["b"]
                },
                Room {
                    name: "c::b",
                    may: &[]
                }
            ]),
            ""
        );
        let none = with(&[
            Room {
                name: "c::a",
                may: &[],
            },
            Room {
                name: "c::b",
                may: &["a"],
            },
        ]);
        assert!(
            none.contains("`a` must not name `b`") && none.contains("does not name `a` any more"),
            "{none}"
        );
        let deep = with(&[
            Room {
                name: "c::a",
                may: &["b"],
            },
            Room {
                name: "c::a::deep",
                may: &[],
            },
            Room {
                name: "c::b",
                may: &[],
            },
        ]);
        assert!(deep.contains("`a::deep` must not name `a`"), "{deep}");
        assert!(
            with(&[Room {
                name: "c::a",
                may: &["b"]
            }])
            .contains("is in no room of `c`")
        );
    }
}
