//! JavaScript and Go.

use super::{Row, acts, all, changes, fails, fixed, largest, n, not, row, undone, unread};
use crate::oracle::{files_where, has_word, lines, places, text};
use std::path::Path;

pub(super) fn rows(root: &Path) -> Vec<Row> {
    let js = |p: &str| p.ends_with(".js");
    vec![
        row(
            "how many javascript files are there",
            [n(files_where(root, js).len(), "files")],
        ),
        row(
            "count the go files",
            [n(files_where(root, |p| p.ends_with(".go")).len(), "files")],
        ),
        fixed(
            "how many functions are in web/lib/format.js",
            &["2 functions"],
        ),
        fixed("how many functions are there in server", &["3 functions"]),
        fixed("where is formatNote defined?", &["web/lib/format.js:3"]),
        fixed("where is Store defined", &["server/store/store.go:4"]),
        fixed(
            "which files import format",
            &["web/index.js", "web/test/run.js"],
        ),
        not(
            fixed(
                "what is this project?",
                &[
                    "Board shows notes on a wall.",
                    "web/index.js",
                    "server/main.go",
                ],
            ),
            &["badge"],
        ),
        fixed("what is the version in package.json?", &["2.0.5"]),
        fixed("summarise the server folder", &["Go", "server/main.go"]),
        acts(fixed(
            "run the tests",
            &["The tests pass", "npm test", "1 passed"],
        )),
        acts(fails(
            "run scripts/fail.sh",
            &["failed", "exit 3", "broken"],
        )),
        acts(not(
            fails(
                "run scripts/fail.sh, then show the README",
                &["exit 3", "not done"],
            ),
            &["Board shows"],
        )),
        acts(fails(
            "run scripts/fail.sh and show the README",
            &["exit 3", "Board shows notes on a wall."],
        )),
        changes(
            "replace 'colour' with 'color' in *.txt",
            &["4 places", "1 file"],
            |root| text(root, "notes/colours.txt") == "color one\ncolors two\nthe color color\n",
        ),
        row(
            "list the go files",
            files_where(root, |p| p.ends_with(".go")),
        ),
        row(
            "how many files are in web",
            [n(
                files_where(root, |p| p.starts_with("web/")).len(),
                "files",
            )],
        ),
        row(
            "how many lines are in server",
            [n(lines(root, |p| p.starts_with("server/")), "lines")],
        ),
        row(
            "search for colour",
            places(root, all, |l| l.contains("colour")),
        ),
        row(
            "how many times does \"colour\" appear?",
            [n(
                places(root, all, |l| l.contains("colour")).len(),
                "lines",
            )],
        ),
        row(
            "find TODOs in server",
            places(root, |p| p.starts_with("server/"), |l| has_word(l, "TODO")),
        ),
        fixed(
            "where is formatNote used",
            &["web/index.js:4", "web/test/run.js:3"],
        ),
        fixed(
            "show server/main.go",
            &["package main", "s := store.Open()"],
        ),
        fixed("what languages are used here?", &["JavaScript", "Go"]),
        fixed("tail notes/colours.txt", &["the colour colour"]),
        not(
            fixed("summarise web/index.js", &["function main()"]),
            &["require"],
        ),
        fails("run the tests in notes", &["the command is unknown"]),
        undone(
            "replace \"purple\" with \"green\"",
            &["Nothing replaced"],
            |_| true,
        ),
        row("which file has the most lines?", [largest(root)]),
    ]
    .into_iter()
    .chain(unread(UNREAD))
    .collect()
}

const UNREAD: &[(&str, &str)] = &[
    ("replace colour with color", "replace colour with color"),
    ("list the files in web that use notes", "that use notes"),
    ("run the tests of both projects", "both"),
    (
        "which of these files is the most important?",
        "files is the most important",
    ),
    ("deploy it", "deploy it"),
    ("start the server", "start the server"),
    ("npm install", "npm install"),
    ("search for colour or color", "or color"),
    ("count go files larger than 1 kB", "larger than 1 kB"),
    ("run scripts/fail.sh again if it fails", "again if it fails"),
];
