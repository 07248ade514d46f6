//! A package of JavaScript: a program of node or nothing runs its tests.

use super::{Row, acts, all, changes, fails, fixed, largest, n, not, row, undone, unread};
use crate::oracle::{distinct, files, files_where, has_word, lines, places, text, times};
use std::path::Path;

fn js(path: &str) -> bool {
    path.ends_with(".js") || path.ends_with(".mjs")
}

pub(super) fn rows(root: &Path) -> Vec<Row> {
    let imports =
        |name: &'static str| places(root, js, move |l| l.contains("import") && l.contains(name));
    let functions = places(root, js, |l| {
        (l.contains("function ") || l.contains("= (text) =>")) && !l.trim_start().starts_with('*')
    });
    let with = |text: &'static str| places(root, all, move |line| line.contains(text));
    vec![
        row("how many files are there", [n(files(root).len(), "files")]),
        row("how many lines are there in total", [n(lines(root, all), "lines")]),
        row("count the javascript files", [n(files_where(root, js).len(), "files")]),
        row("list javascript files", files_where(root, js)),
        row("find files called parse", files_where(root, |p| p.contains("parse"))),
        row("find files ending in .json", files_where(root, |p| p.ends_with(".json"))),
        row("show me the 2 largest files", [largest(root)]),
        row("how many functions are there?", [n(functions.len(), "functions")]),
        row("list the classes", places(root, js, |l| l.contains("class Clock"))),
        row("where is formatDuration defined?", places(root, js, |l| l.contains("function formatDuration("))),
        row("where is class Clock defined", places(root, js, |l| l.contains("class Clock"))),
        row("where is parse used", places(root, all, |l| has_word(l, "parse"))),
        row("which files import parse", imports("parse").iter().map(|p| p.rsplit_once(':').unwrap().0.to_owned())),
        row("search for \"=>\"", with("=>").into_iter().chain([n(with("=>").len(), "lines")])),
        row("search for wall?", ["Nothing found for `wall?`".to_owned()]),
        row(
            "how many TODOs are in src?",
            [n(places(root, |p| p.starts_with("src/"), |l| has_word(l, "TODO")).len(), "lines")],
        ),
        row("does \"throw\" appear in src", with("throw")),
        row(
            "which lines contain \"return\" in src/parse.js",
            places(root, |p| p == "src/parse.js", |l| l.contains("return")),
        ),
        row("how many files contain \"export\"", [n(distinct(&with("export")), "files")]),
        fixed("what is the name in package.json", &["tick-tock"]),
        fixed("what is the version of this project?", &["0.9.1"]),
        not(
            fixed(
                "what does this project do?",
                &["**Tick-tock** measures how long [things](docs/things.md) take, in `ms`. (README.md)"],
            ),
            &["badge", "http"],
        ),
        not(fixed("what does src/clock.js do?", &["A clock that can be stopped.", "class Clock"]), &["import"]),
        not(fixed("summarise src/parse.js", &["function parse"]), &["require"]),
        fixed("show lines 1-2 of package.json", &["tick-tock"]),
        fixed("show the README", &["# Tick-tock"]),
        fixed("ls", &["package.json", "src/"]),
        acts(fails("run the tests", &["npm test"])),
        acts(fails("do the tests pass?", &["no tests", "npm test"])),
        acts(fixed("run `cat package.json`", &["tick-tock", "exit 0"])),
        changes("rename formatDuration to showDuration in src", &["matches in 0 files"], |root| {
            times(root, js, "formatDuration") == 0
        }),
        undone("create src/parse.js with \"x\"", &["already exists"], |root| {
            text(root, "src/parse.js").contains("parse")
        }),
    ]
    .into_iter()
    .chain(unread(UNREAD))
    .collect()
}

const UNREAD: &[(&str, &str)] = &[
    ("how many arrow functions are there", "arrow"),
    ("list exported functions", "exported"),
    ("find functions without tests", "without tests"),
    ("list the outdated dependencies", "outdated dependencies"),
    ("npm run build", "npm"),
    ("run the tests in watch mode", "mode"),
    ("explain how Clock works", "explain how Clock works"),
    ("where does parse throw an error?", "throw an error"),
    (
        "compare src/parse.js and src/clock.js",
        "compare src/parse.js",
    ),
    ("open package.json in my editor", "editor"),
    ("bump the version", "bump the version"),
    (
        "what's the best way to stop a clock?",
        "what's the best way to stop a clock",
    ),
];
