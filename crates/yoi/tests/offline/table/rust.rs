//! A crate of Rust.

use super::{Row, acts, all, changes, fails, fixed, largest, n, not, row, undone, unread};
use crate::oracle::{distinct, files, files_where, has_word, lines, places, text, times};
use std::path::Path;

pub(super) fn rows(root: &Path) -> Vec<Row> {
    let parts = [
        rust_looks(root),
        rust_reads(root),
        rust_counts(root),
        rust_changes(root),
        more(root),
    ];
    parts
        .into_iter()
        .flatten()
        .chain(unread(super::unread::RUST))
        .collect()
}

fn rs(path: &str) -> bool {
    path.ends_with(".rs")
}

fn rust_looks(root: &Path) -> Vec<Row> {
    let todo = |line: &str| has_word(line, "TODO");
    let import = |line: &str| line.starts_with("use ") && has_word(line, "parse_book");
    let used = places(root, all, |line| has_word(line, "parse_book"));
    let def = |line: &str| line.contains("fn parse_line(");
    let functions = |line: &str| {
        line.trim_start()
            .trim_start_matches("pub ")
            .starts_with("fn ")
    };
    let report = places(root, |p| p == "src/report.rs", functions);
    vec![
        not(
            fixed("list the files", &["src/", "Cargo.toml", "README.md"]),
            &["target/"],
        ),
        fixed("ls src", &["lib.rs", "parse/", "report.rs"]),
        fixed("what files are in src/parse?", &["line.rs", "mod.rs"]),
        fixed(
            "show me the directory tree",
            &["parse/", "line.rs", "notes.md"],
        ),
        row("list the largest files", [largest(root)]),
        row("What are the 3 biggest files here?", [largest(root)]),
        row(
            "find all rust files",
            files_where(root, rs)
                .into_iter()
                .chain([n(files_where(root, rs).len(), "files")]),
        ),
        fixed("find files named line", &["1 file", "src/parse/line.rs"]),
        fixed("find *.toml", &["Cargo.toml", "1 file"]),
        fixed("where is the file report.rs?", &["src/report.rs"]),
        fixed("is there a file called notes.md", &["docs/notes.md"]),
        fixed("does Makefile exist?", &["No file matches"]),
        fixed(
            "find files ending in .md",
            &["2 files", "README.md", "docs/notes.md"],
        ),
        row("where is parse_line defined?", places(root, rs, def)),
        row("find the definition of `parse_line`", places(root, rs, def)),
        row(
            "where is the struct Book defined",
            places(root, rs, |l| l.starts_with("pub struct Book")),
        ),
        row(
            "where is parse_book used?",
            used.clone().into_iter().chain([n(used.len(), "lines")]),
        ),
        row("find all references to parse_book", used),
        row(
            "which files import parse_book",
            places(root, rs, import)
                .iter()
                .map(|p| p.rsplit_once(':').unwrap().0.to_owned()),
        ),
        row("find all TODOs", places(root, all, todo)),
        not(
            row(
                "search for 'entry.cents'",
                places(root, all, |l| l.contains("entry.cents")),
            ),
            &["target"],
        ),
        row(
            "grep \"Vec<Entry>\" in *.rs",
            places(root, rs, |l| l.contains("Vec<Entry>")),
        ),
        row("list all functions in src/report.rs", report.clone()),
        row("what functions does report.rs define?", report),
        row(
            "list the tests",
            places(root, rs, |l| l.trim() == "#[test]"),
        ),
    ]
}

fn rust_reads(root: &Path) -> Vec<Row> {
    vec![
        row("which file has the most lines?", [largest(root)]),
        fixed("what is the version in Cargo.toml?", &["0.3.1"]),
        fixed("what version is this project", &["0.3.1"]),
        row(
            "show lines 4-6 of src/main.rs",
            text(root, "src/main.rs")
                .lines()
                .skip(3)
                .take(3)
                .map(|l| l.trim().to_owned()),
        ),
        not(
            fixed("print the first 2 lines of docs/notes.md", &["# Notes"]),
            &["Entries"],
        ),
        not(
            fixed("last 2 lines of docs/notes.md", &["TODO write more"]),
            &["# Notes"],
        ),
        row(
            "show the README",
            text(root, "README.md")
                .lines()
                .map(str::to_owned)
                .filter(|l| !l.is_empty()),
        ),
        fixed(
            "cat src/parse/line.rs",
            &["pub fn parse_line(line: &str) -> Option<Entry> {"],
        ),
        row(
            "summarise src/lib.rs",
            [
                n(text(root, "src/lib.rs").lines().count(), "lines"),
                "pub fn total(&self) -> i64".into(),
                "Accounts in plain text".into(),
            ],
        ),
        row(
            "what does this project do?",
            [
                "Ledger keeps accounts in plain text and prints balances.".into(),
                "src/main.rs".into(),
                "3 tests in 2 files".into(),
                n(lines(root, all), "lines"),
            ],
        ),
        row(
            "what languages is this written in",
            [format!(
                "Rust {} in {}",
                n(lines(root, rs), "lines"),
                n(files_where(root, rs).len(), "files")
            )],
        ),
        fixed("what are the entry points", &["src/main.rs", "src/lib.rs"]),
    ]
}

fn rust_counts(root: &Path) -> Vec<Row> {
    let todo = places(root, all, |line| has_word(line, "TODO"));
    let functions = |line: &str| {
        line.trim_start()
            .trim_start_matches("pub ")
            .starts_with("fn ")
    };
    let structs = places(root, rs, |l| l.starts_with("pub struct ")).len();
    let import = places(root, rs, |l| l.starts_with("use ") && has_word(l, "Book"));
    vec![
        row(
            "how many lines of code are there?",
            [n(lines(root, all), "lines")],
        ),
        row(
            "how many lines of rust code are there?",
            [n(lines(root, rs), "lines")],
        ),
        row(
            "how many lines are in src/lib.rs",
            [n(text(root, "src/lib.rs").lines().count(), "lines")],
        ),
        row(
            "count the lines in src",
            [n(lines(root, |p| p.starts_with("src/")), "lines")],
        ),
        row(
            "how long is report.rs?",
            [n(text(root, "src/report.rs").lines().count(), "lines")],
        ),
        row(
            "how many files are in this repository?",
            [n(files(root).len(), "files")],
        ),
        row(
            "count rust files",
            [n(files_where(root, rs).len(), "files")],
        ),
        row(
            "how many *.md files are there",
            [n(files_where(root, |p| p.ends_with(".md")).len(), "files")],
        ),
        row(
            "how many functions are there in src?",
            [n(
                places(root, |p| p.starts_with("src/"), functions).len(),
                "functions",
            )],
        ),
        row(
            "count the functions in src/lib.rs",
            [n(
                places(root, |p| p == "src/lib.rs", functions).len(),
                "functions",
            )],
        ),
        row(
            "in src/parse, how many functions are there?",
            [n(
                places(root, |p| p.starts_with("src/parse/"), functions).len(),
                "functions",
            )],
        ),
        fixed("how many traits are there", &["1 trait"]),
        row("how many structs are defined?", [n(structs, "structs")]),
        row(
            "how many tests are there",
            [n(
                places(root, rs, |l| l.trim() == "#[test]").len(),
                "tests",
            )],
        ),
        row(
            "how many TODOs are there?",
            [n(todo.len(), "lines"), n(distinct(&todo), "files")],
        ),
        row(
            "how many times does 'entry' appear in *.rs",
            [n(places(root, rs, |l| l.contains("entry")).len(), "lines")],
        ),
        row(
            "count occurrences of \"book\" in src/report.rs",
            [n(
                places(root, |p| p == "src/report.rs", |l| l.contains("book")).len(),
                "lines",
            )],
        ),
        row(
            "how many files import Book?",
            [n(distinct(&import), "files")],
        ),
        fails("show nothing_here.rs", &["does not exist"]),
        fails("how many lines are in src/gone.rs", &["does not exist"]),
    ]
}

fn rust_changes(root: &Path) -> Vec<Row> {
    let calls = places(root, rs, |l| has_word(l, "parse_book"));
    let replaced = [
        n(calls.len(), "places"),
        n(distinct(&calls), "files"),
        "The tests pass".into(),
        "3 passed".into(),
        "0 failed".into(),
    ];
    let book = text(root, "src/report.rs")
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|w| *w == "book")
        .count();
    vec![
        Row {
            // docs/notes.md is not in *.rs
            after: |root| {
                places(root, rs, |l| has_word(l, "parse_book")).is_empty()
                    && times(root, all, "parse_book") == 1
            },
            ..acts(row(
                "Replace parse_book with read_book in *.rs, then run the tests",
                replaced,
            ))
        },
        // `book` is also part of parse_book and book_total.
        acts(undone(
            "rename the variable book to ledger_book in tests",
            &["Nothing replaced"],
            |root| text(root, "tests/ledger.rs").contains("let book_total = parse_book"),
        )),
        Row {
            after: |root| text(root, "src/report.rs").contains("tome.total()"),
            ..acts(row(
                "rename the variable book to tome in src/report.rs",
                [n(book, "places"), "1 file".into()],
            ))
        },
        changes(
            "change `MAX_LINES` to `LINE_LIMIT` everywhere",
            &["2 places", "matches in 0 files"],
            |root| times(root, all, "LINE_LIMIT") == 2,
        ),
        undone(
            "replace absent_name with present_name in src",
            &["Nothing replaced"],
            |_| true,
        ),
        changes(
            "create docs/todo.txt with \"buy milk\"",
            &["docs/todo.txt", "1 line"],
            |root| text(root, "docs/todo.txt") == "buy milk\n",
        ),
        undone(
            "create README.md with 'gone'",
            &["already exists"],
            |root| text(root, "README.md").contains("# Ledger"),
        ),
        changes(
            "overwrite docs/notes.md with 'short'",
            &["docs/notes.md"],
            |root| text(root, "docs/notes.md") == "short\n",
        ),
        acts(fixed(
            "run `echo one && echo two`",
            &["exit 0", "one", "two"],
        )),
        acts(fixed(
            "does it compile?",
            &["cargo build --offline", "exit 0"],
        )),
    ]
}

/// The same things said in other words, and what is easily said wrongly.
fn more(root: &Path) -> Vec<Row> {
    let word = |word: &'static str| move |line: &str| has_word(line, word);
    let todo = places(root, all, word("TODO"));
    let fixme = places(root, all, word("FIXME"));
    let either = places(root, all, |line| {
        has_word(line, "TODO") || has_word(line, "FIXME")
    });
    let with = |text: &'static str| places(root, all, move |line| line.contains(text));
    let matching = |found: &[String]| [n(found.len(), "lines"), n(distinct(found), "files")];
    let tests = places(root, rs, |line| line.trim() == "#[test]");
    let enums = places(root, rs, |line| line.starts_with("pub enum "));
    vec![
        fixed(
            "help",
            &[
                "list the files in",
                "search for",
                "run the tests",
                "not a language model",
            ],
        ),
        fixed(
            "What can you do?",
            &["list the files in", "replace `old_name`", "yoi models"],
        ),
        row(
            "Hey, could you please count the TODOs for me?",
            matching(&todo),
        ),
        row("how many FIXMEs are there?", matching(&fixme)),
        row("count TODOs and FIXMEs", matching(&either)),
        not(
            row(
                "count the TODO comments in src",
                [n(
                    places(root, |p| p.starts_with("src/"), word("TODO")).len(),
                    "lines",
                )],
            ),
            &["FIXME"],
        ),
        row(
            "which files contain TODOs",
            todo.iter()
                .map(|p| p.rsplit_once(':').unwrap().0.to_owned()),
        ),
        row(
            "search for total()",
            with("total()")
                .into_iter()
                .chain([n(with("total()").len(), "lines")]),
        ),
        row(
            "search for print!",
            with("print!")
                .into_iter()
                .chain([n(with("print!").len(), "lines")]),
        ),
        row(
            "search for ok()?",
            with("ok()?")
                .into_iter()
                .chain([n(with("ok()?").len(), "lines")]),
        ),
        row(
            "can you search for `.parse().ok()?`?",
            with(".parse().ok()?"),
        ),
        row("search for \"println!(\"", with("println!(")),
        row("grep for 'a.*b'", ["Nothing found for `a.*b`".to_owned()]),
        row("search for \"TODO: use\"", with("TODO: use")),
        row("search for \"don't\"", ["Nothing found".to_owned()]),
        row(
            "find mentions of Book in docs",
            ["Nothing found".to_owned()],
        ),
        row(
            "which files mention Entry?",
            with("Entry")
                .iter()
                .map(|p| p.rsplit_once(':').unwrap().0.to_owned()),
        ),
        row(
            "how many files contain 'use crate'",
            [n(distinct(&with("use crate")), "files")],
        ),
        row(
            "how many lines contain `->`",
            [n(with("->").len(), "lines")],
        ),
        row(
            "how often does `book` occur in src/report.rs",
            [n(
                places(root, |p| p == "src/report.rs", |l| l.contains("book")).len(),
                "lines",
            )],
        ),
        row("show me all tests", tests.clone()),
        row("how many tests do we have?", [n(tests.len(), "tests")]),
        row("number of enums", [n(enums.len(), "enums")]),
        row(
            "list all files",
            files(root)
                .into_iter()
                .chain([n(files(root).len(), "files")]),
        ),
        row(
            "what rust files are there in src/parse",
            files_where(root, |p| p.starts_with("src/parse/")),
        ),
        row("line count", [n(lines(root, all), "lines")]),
        row(
            "how many files are there and how many tests are there?",
            [n(files(root).len(), "files"), n(tests.len(), "tests")],
        ),
        row(
            "list the files. Then count the rust files.",
            [
                "Cargo.toml".to_owned(),
                n(files_where(root, rs).len(), "files"),
            ],
        ),
        fixed("is there a readme?", &["1 file", "README.md"]),
        row(
            "count the lines in the readme",
            [n(text(root, "README.md").lines().count(), "lines")],
        ),
        not(
            row(
                "show the largest file",
                ["1 largest file by lines".to_owned(), largest(root)],
            ),
            &["Cargo.toml"],
        ),
        fixed("is there a LICENSE", &["No file matches"]),
        row(
            "how many times is \"book\" used in src/report.rs",
            [
                n(
                    places(root, |p| p == "src/report.rs", |l| l.contains("book")).len(),
                    "lines",
                ),
                "A line counts once".into(),
            ],
        ),
        fixed("what's in src", &["lib.rs", "report.rs"]),
        // `yoi ls` suggests the first of them.
        fixed("what is in this directory?", &["Cargo.toml", "src"]),
        fixed("what's in the current folder", &["Cargo.toml", "src"]),
        fixed("show src/parse", &["line.rs", "mod.rs"]),
        fixed("print line 2 of Cargo.toml", &["name = \"ledger\""]),
        not(
            fixed("show lines 1 to 2 of README.md", &["# Ledger"]),
            &["Ledger keeps"],
        ),
        fixed(
            "read src/main.rs and docs/notes.md",
            &["print_totals(&book)", "TODO write more"],
        ),
        fixed(
            "what does src/parse/mod.rs do?",
            &["From text to a book.", "pub fn parse_book"],
        ),
        not(
            fixed("summarise src/main.rs", &["fn main()"]),
            &["use ledger"],
        ),
        fixed(
            "who calls parse_line",
            &["src/parse/line.rs:15", "src/parse/mod.rs"],
        ),
        fixed("what is the edition in Cargo.toml", &["2021"]),
        fails("show docs/gone.md", &["does not exist"]),
        acts(fails("run `false`", &["The command failed", "exit 1"])),
        acts(fails(
            "run `exit 7`, then list the files",
            &["exit 7", "not done"],
        )),
        acts(fails(
            "run the command `nonexistent-program-x`",
            &["failed", "exit 127"],
        )),
        changes(
            "create a file called docs/new.md with \"don't panic\"",
            &["docs/new.md"],
            |root| text(root, "docs/new.md") == "don't panic\n",
        ),
        changes(
            "create an empty file docs/empty.txt",
            &["docs/empty.txt"],
            |root| text(root, "docs/empty.txt").is_empty(),
        ),
        changes(
            "rename Style to Look in src",
            &["matches in 0 files"],
            |root| times(root, rs, "Style") == 0,
        ),
        changes(
            "replace \"cents\" with \"pence\" in src/report.rs",
            &["1 place"],
            |root| times(root, |p| p == "src/report.rs", "cents") == 0,
        ),
        undone(
            "replace `Ghost` with `Spirit`",
            &["Nothing replaced"],
            |_| true,
        ),
    ]
}
