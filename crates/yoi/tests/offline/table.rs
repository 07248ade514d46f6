//! The rows of the table, tree by tree.

use crate::oracle::{distinct, files, files_where, has_word, lines, places, text, times};
use std::path::Path;

pub(crate) struct Row {
    pub(crate) prompt: &'static str,
    /// Each stands in the answer, not inside a longer number or word.
    wants: Vec<String>,
    /// None of these stands in the answer.
    not: Vec<&'static str>,
    /// What must be true of the tree afterwards.
    pub(crate) after: fn(&Path) -> bool,
    /// The turn may change files or run programs.
    pub(crate) acts: bool,
}

impl Row {
    /// What is wrong with an answer, if anything.
    pub(crate) fn check(&self, answer: &str) -> Option<String> {
        let missing = self.wants.iter().find(|want| !stands(answer, want)).map(|want| format!("`{want}` is missing"));
        let extra = self.not.iter().find(|word| stands(answer, word)).map(|word| format!("`{word}` is there"));
        missing.or(extra).map(|why| format!("{}\n{why} in:\n{answer}\n", self.prompt))
    }
}

fn stands(text: &str, part: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (first, last) = (word(part.chars().next()), word(part.chars().next_back()));
    text.match_indices(part).any(|(at, _)| {
        let before = word(text[..at].chars().next_back());
        let after = word(text[at + part.len()..].chars().next());
        !(first && before || last && after)
    })
}

fn row(prompt: &'static str, wants: impl IntoIterator<Item = String>) -> Row {
    Row { prompt, wants: wants.into_iter().collect(), not: Vec::new(), after: |_| true, acts: false }
}

fn fixed(prompt: &'static str, wants: &[&str]) -> Row {
    row(prompt, wants.iter().map(|w| (*w).to_owned()))
}

fn changes(prompt: &'static str, wants: &[&str], after: fn(&Path) -> bool) -> Row {
    Row { after, acts: true, ..fixed(prompt, wants) }
}

fn acts(row: Row) -> Row {
    Row { acts: true, ..row }
}

fn not(row: Row, not: &[&'static str]) -> Row {
    Row { not: not.to_vec(), ..row }
}

/// The rows for a tree that is built at `root`.
pub(crate) fn rows(tree: &str, root: &Path) -> Vec<Row> {
    match tree {
        "rust" => rust_looks(root)
            .into_iter()
            .chain(rust_reads(root))
            .chain(rust_counts(root))
            .chain(rust_changes(root))
            .collect(),
        "python" => python(root),
        _ => mixed(root),
    }
}

fn rs(path: &str) -> bool {
    path.ends_with(".rs")
}

fn all(_: &str) -> bool {
    true
}

fn n(count: usize, noun: &str) -> String {
    format!("{count} {noun}")
}

/// The file with the most lines.
fn largest(root: &Path) -> String {
    let longer = |path: &String| (text(root, path).lines().count(), std::cmp::Reverse(path.clone()));
    files(root).into_iter().max_by_key(longer).unwrap()
}

fn rust_looks(root: &Path) -> Vec<Row> {
    let todo = |line: &str| has_word(line, "TODO") || has_word(line, "FIXME");
    let import = |line: &str| line.starts_with("use ") && has_word(line, "parse_book");
    let used = places(root, all, |line| has_word(line, "parse_book"));
    let def = |line: &str| line.contains("fn parse_line(");
    let functions = |line: &str| line.trim_start().trim_start_matches("pub ").starts_with("fn ");
    let report = places(root, |p| p == "src/report.rs", functions);
    vec![
        not(fixed("list the files", &["src/", "Cargo.toml", "README.md"]), &["target/"]),
        fixed("ls src", &["lib.rs", "parse/", "report.rs"]),
        fixed("what files are in src/parse?", &["line.rs", "mod.rs"]),
        fixed("show me the directory tree", &["parse/", "line.rs", "notes.md"]),
        row("list the largest files", [largest(root)]),
        row("What are the 3 biggest files here?", [largest(root)]),
        row("find all rust files", files_where(root, rs).into_iter().chain([n(files_where(root, rs).len(), "files")])),
        fixed("find files named line", &["1 file", "src/parse/line.rs"]),
        fixed("find *.toml", &["Cargo.toml", "1 file"]),
        fixed("where is the file report.rs?", &["src/report.rs"]),
        fixed("is there a file called notes.md", &["docs/notes.md"]),
        fixed("does Makefile exist?", &["No file matches"]),
        fixed("find files ending in .md", &["2 files", "README.md", "docs/notes.md"]),
        row("where is parse_line defined?", places(root, rs, def)),
        row("find the definition of `parse_line`", places(root, rs, def)),
        row("where is the struct Book defined", places(root, rs, |l| l.starts_with("pub struct Book"))),
        row("where is parse_book used?", used.clone().into_iter().chain([n(used.len(), "matching lines")])),
        row("find all references to parse_book", used),
        row(
            "which files import parse_book",
            places(root, rs, import).iter().map(|p| p.rsplit_once(':').unwrap().0.to_owned()),
        ),
        row("find all TODOs", places(root, all, todo)),
        not(row("search for 'entry.cents'", places(root, all, |l| l.contains("entry.cents"))), &["target"]),
        row("grep \"Vec<Entry>\" in *.rs", places(root, rs, |l| l.contains("Vec<Entry>"))),
        row("list all functions in src/report.rs", report.clone()),
        row("what functions does report.rs define?", report),
        row("list the tests", places(root, rs, |l| l.trim() == "#[test]")),
    ]
}

fn rust_reads(root: &Path) -> Vec<Row> {
    vec![
        fixed("find everything related to money", &["Not understood"]),
        row("which file has the most lines?", [largest(root)]),
        fixed("what is the version in Cargo.toml?", &["0.3.1"]),
        fixed("what version is this project", &["0.3.1"]),
        row(
            "show lines 4-6 of src/main.rs",
            text(root, "src/main.rs").lines().skip(3).take(3).map(|l| l.trim().to_owned()),
        ),
        not(fixed("print the first 2 lines of docs/notes.md", &["# Notes"]), &["Entries"]),
        not(fixed("last 2 lines of docs/notes.md", &["TODO write more"]), &["# Notes"]),
        row("show the README", text(root, "README.md").lines().map(str::to_owned).filter(|l| !l.is_empty())),
        fixed("cat src/parse/line.rs", &["pub fn parse_line(line: &str) -> Option<Entry> {"]),
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
            [format!("Rust {} in {}", n(lines(root, rs), "lines"), n(files_where(root, rs).len(), "files"))],
        ),
        fixed("what are the entry points", &["src/main.rs", "src/lib.rs"]),
    ]
}

fn rust_counts(root: &Path) -> Vec<Row> {
    let todo = places(root, all, |line| has_word(line, "TODO") || has_word(line, "FIXME"));
    let functions = |line: &str| line.trim_start().trim_start_matches("pub ").starts_with("fn ");
    let structs = places(root, rs, |l| l.starts_with("pub struct ")).len();
    let import = places(root, rs, |l| l.starts_with("use ") && has_word(l, "Book"));
    vec![
        row("how many lines of code are there?", [n(lines(root, all), "lines")]),
        row("how many lines of rust code are there?", [n(lines(root, rs), "lines")]),
        row("how many lines are in src/lib.rs", [n(text(root, "src/lib.rs").lines().count(), "lines")]),
        row("count the lines in src", [n(lines(root, |p| p.starts_with("src/")), "lines")]),
        row("how long is report.rs?", [n(text(root, "src/report.rs").lines().count(), "lines")]),
        row("how many files are in this repository?", [n(files(root).len(), "files")]),
        row("count rust files", [n(files_where(root, rs).len(), "files")]),
        row("how many *.md files are there", [n(files_where(root, |p| p.ends_with(".md")).len(), "files")]),
        row(
            "how many functions are there in src?",
            [n(places(root, |p| p.starts_with("src/"), functions).len(), "functions")],
        ),
        row(
            "count the functions in src/lib.rs",
            [n(places(root, |p| p == "src/lib.rs", functions).len(), "functions")],
        ),
        row(
            "in src/parse, how many functions are there?",
            [n(places(root, |p| p.starts_with("src/parse/"), functions).len(), "functions")],
        ),
        fixed("how many traits are there", &["1 traits"]),
        row("how many structs are defined?", [n(structs, "structs")]),
        row("how many tests are there", [n(places(root, rs, |l| l.trim() == "#[test]").len(), "tests")]),
        row(
            "how many TODOs are there?",
            [n(todo.len(), "times").replace("times", ""), n(distinct(&todo), "files")].map(|s| s.trim().to_owned()),
        ),
        row(
            "how many times does 'entry' appear in *.rs",
            [n(places(root, rs, |l| l.contains("entry")).len(), "matching lines")],
        ),
        row(
            "count occurrences of \"book\" in src/report.rs",
            [n(places(root, |p| p == "src/report.rs", |l| l.contains("book")).len(), "matching lines")],
        ),
        row("how many files import Book?", [n(distinct(&import), "files")]),
        fixed("translate the README to French", &["Not understood", "not a language model", "nothing was done"]),
        fixed("delete src/lib.rs", &["Not understood", "yoi models"]),
        fixed("list the files and paint the house", &["Not understood"]),
        fixed("how many widgets are there", &["Not understood"]),
        fixed("show nothing_here.rs", &["failed"]),
        fixed("how many lines are in src/gone.rs", &["failed"]),
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
                places(root, rs, |l| has_word(l, "parse_book")).is_empty() && times(root, all, "parse_book") == 1
            },
            ..acts(row("Replace parse_book with read_book in *.rs, then run the tests", replaced))
        },
        // `book` is also part of parse_book and book_total.
        acts(changes("rename the variable book to ledger_book in tests", &["Nothing replaced"], |root| {
            text(root, "tests/ledger.rs").contains("let book_total = parse_book")
        })),
        Row {
            after: |root| text(root, "src/report.rs").contains("tome.total()"),
            ..row("rename the variable book to tome in src/report.rs", [n(book, "places"), "1 file".into()])
        },
        changes("change `MAX_LINES` to `LINE_LIMIT` everywhere", &["2 places", "matches in 0 files"], |root| {
            times(root, all, "LINE_LIMIT") == 2
        }),
        changes("replace absent_name with other in src", &["Nothing replaced"], |_| true),
        changes("create docs/todo.txt with \"buy milk\"", &["docs/todo.txt", "1 line"], |root| {
            text(root, "docs/todo.txt") == "buy milk\n"
        }),
        changes("create README.md with 'gone'", &["exists already"], |root| {
            text(root, "README.md").contains("# Ledger")
        }),
        changes("overwrite docs/notes.md with 'short'", &["docs/notes.md"], |root| {
            text(root, "docs/notes.md") == "short\n"
        }),
        acts(fixed("run `echo one && echo two`", &["exit 0", "one", "two"])),
        acts(fixed("does it compile?", &["cargo build --offline", "exit 0"])),
        fixed("replace the logger with something better", &["Not understood"]),
    ]
}

fn python(root: &Path) -> Vec<Row> {
    let py = |p: &str| p.ends_with(".py");
    let def = |l: &str| l.trim_start().starts_with("def ");
    let json = places(root, py, |l| l == "import json");
    vec![
        row("how many python files are there?", [n(files_where(root, py).len(), "files")]),
        row(
            "How many functions are in shop/cart.py?",
            [n(places(root, |p| p == "shop/cart.py", def).len(), "functions")],
        ),
        row("how many classes are there", [n(places(root, py, |l| l.starts_with("class ")).len(), "classes")]),
        row(
            "which files import json?",
            json.iter().map(|p| p.rsplit_once(':').unwrap().0.to_owned()).chain([n(json.len(), "files")]),
        ),
        row("where is the class Cart defined?", ["shop/cart.py:9".to_owned()]),
        row("find usages of add_tax", places(root, py, |l| has_word(l, "add_tax") && !l.contains("def "))),
        row("list all classes", places(root, py, |l| l.starts_with("class "))),
        row("count the tests", [n(places(root, py, |l| l.trim_start().starts_with("def test")).len(), "tests")]),
        row(
            "summarize shop/tax.py",
            ["Taxes.".into(), "def add_tax(price)".into(), n(text(root, "shop/tax.py").lines().count(), "lines")],
        ),
        fixed(
            "Please give me an overview of this project.",
            &["Shop adds up carts and taxes.", "shop/cli/__main__.py", "3 tests in 2 files"],
        ),
        fixed("what is the name in pyproject.toml", &["shop"]),
        acts(fixed("run the tests", &["The tests pass", "exit 0"])),
        acts(fixed("do the tests pass?", &["The tests pass"])),
        acts(fixed("run scripts/hello.py", &["hello from a script", "exit 0"])),
        acts(changes(
            "create hello.py with print('hi there') and then run it",
            &["hello.py", "hi there", "exit 0"],
            |root| text(root, "hello.py") == "print('hi there')\n",
        )),
        acts(changes("create greet.py that prints \"good day\", then run it", &["Not understood"], |root| {
            !root.join("greet.py").exists()
        })),
        // old_rate_table must stay as it is, on the very lines where old_rate changes.
        acts(changes(
            "rename the function old_rate to base_rate in *.py then run the tests",
            &["Left alone", "old_rate_table", "The tests pass"],
            |root| {
                let tax = text(root, "shop/tax.py");
                tax.contains("def base_rate():")
                    && tax.contains("[base_rate(), base_rate()]")
                    && tax.contains("def old_rate_table():")
            },
        )),
    ]
}

fn mixed(root: &Path) -> Vec<Row> {
    let js = |p: &str| p.ends_with(".js");
    vec![
        row("how many javascript files are there", [n(files_where(root, js).len(), "files")]),
        row("count the go files", [n(files_where(root, |p| p.ends_with(".go")).len(), "files")]),
        fixed("how many functions are in web/lib/format.js", &["2 functions"]),
        fixed("how many functions are there in server", &["3 functions"]),
        fixed("where is formatNote defined?", &["web/lib/format.js:3"]),
        fixed("where is Store defined", &["server/store/store.go:4"]),
        fixed("which files import format", &["web/index.js", "web/test/run.js"]),
        not(
            fixed("what is this project?", &["Board shows notes on a wall.", "web/index.js", "server/main.go"]),
            &["badge"],
        ),
        fixed("what is the version in package.json?", &["2.0.5"]),
        fixed("summarise the server folder", &["Go", "server/main.go"]),
        acts(fixed("run the tests", &["The tests pass", "npm test", "1 passed"])),
        acts(fixed("run scripts/fail.sh", &["failed", "exit 3", "broken"])),
        acts(not(fixed("run scripts/fail.sh, then show the README", &["exit 3", "not done"]), &["Board shows"])),
        acts(fixed("run scripts/fail.sh and show the README", &["exit 3", "Board shows notes on a wall."])),
        changes("replace 'colour' with 'color' in *.txt", &["4 places", "1 file"], |root| {
            text(root, "notes/colours.txt") == "color one\ncolors two\nthe color color\n"
        }),
    ]
}
