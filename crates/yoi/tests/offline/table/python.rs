//! A package of Python.

use super::{Row, acts, all, changes, fixed, largest, n, not, row, undone, unread};
use crate::oracle::{distinct, files_where, has_word, lines, places, text};
use std::path::Path;

pub(super) fn rows(root: &Path) -> Vec<Row> {
    let py = |p: &str| p.ends_with(".py");
    let def = |l: &str| l.trim_start().starts_with("def ");
    let defs = places(root, py, def);
    let json = places(root, py, |l| l == "import json");
    vec![
        row(
            "how many python files are there?",
            [n(files_where(root, py).len(), "files")],
        ),
        row(
            "How many functions are in shop/cart.py?",
            [n(
                places(root, |p| p == "shop/cart.py", def).len(),
                "functions",
            )],
        ),
        row(
            "how many classes are there",
            [n(
                places(root, py, |l| l.starts_with("class ")).len(),
                "classes",
            )],
        ),
        row(
            "which files import json?",
            json.iter()
                .map(|p| p.rsplit_once(':').unwrap().0.to_owned())
                .chain([n(json.len(), "files")]),
        ),
        row(
            "where is the class Cart defined?",
            ["shop/cart.py:9".to_owned()],
        ),
        row(
            "find usages of add_tax",
            places(root, py, |l| has_word(l, "add_tax") && !l.contains("def ")),
        ),
        row(
            "list all classes",
            places(root, py, |l| l.starts_with("class ")),
        ),
        row(
            "count the tests",
            [n(
                places(root, py, |l| l.trim_start().starts_with("def test")).len(),
                "tests",
            )],
        ),
        row(
            "summarize shop/tax.py",
            [
                "Taxes.".into(),
                "def add_tax(price)".into(),
                n(text(root, "shop/tax.py").lines().count(), "lines"),
            ],
        ),
        fixed(
            "Please give me an overview of this project.",
            &[
                "Shop adds up carts and taxes.",
                "shop/cli/__main__.py",
                "3 tests in 2 files",
            ],
        ),
        fixed("what is the name in pyproject.toml", &["shop"]),
        acts(fixed("run the tests", &["The tests pass", "exit 0"])),
        acts(fixed("do the tests pass?", &["The tests pass"])),
        acts(fixed(
            "run scripts/hello.py",
            &["hello from a script", "exit 0"],
        )),
        acts(changes(
            "create hello.py with print('hi there') and then run it",
            &["hello.py", "hi there", "exit 0"],
            |root| text(root, "hello.py") == "print('hi there')\n",
        )),
        // old_rate_table must stay as it is, and stands in the same files.
        undone(
            "rename the function old_rate to base_rate in *.py then run the tests",
            &["Nothing replaced", "shop/tax.py", "not done"],
            |root| !text(root, "shop/tax.py").contains("base_rate"),
        ),
        row(
            "list the functions in shop/tax.py",
            places(root, |p| p == "shop/tax.py", def),
        ),
        row(
            "how many functions are there?",
            [n(defs.len(), "functions"), n(distinct(&defs), "files")],
        ),
        row(
            "how many lines does shop/cart.py have?",
            [n(text(root, "shop/cart.py").lines().count(), "lines")],
        ),
        row(
            "count the lines of python code in shop",
            [n(lines(root, |p| p.starts_with("shop/") && py(p)), "lines")],
        ),
        row(
            "find all FIXMEs",
            places(root, all, |l| has_word(l, "FIXME")),
        ),
        row(
            "where is RATE used?",
            places(root, all, |l| has_word(l, "RATE")),
        ),
        row(
            "where is main() defined",
            places(root, py, |l| l.starts_with("def main(")),
        ),
        row(
            "search for \"self.items\" in shop",
            places(
                root,
                |p| p.starts_with("shop/"),
                |l| l.contains("self.items"),
            ),
        ),
        row(
            "which files mention Cart?",
            files_where(root, |p| text(root, p).contains("Cart")),
        ),
        row(
            "find *.py files in tests",
            files_where(root, |p| p.starts_with("tests/") && py(p)),
        ),
        row(
            "show me the first 3 lines of shop/tax.py",
            ["\"\"\"Taxes.\"\"\"".to_owned(), "RATE = 20".to_owned()],
        ),
        row(
            "how many python files are in shop/cli",
            [n(
                files_where(root, |p| p.starts_with("shop/cli/")).len(),
                "files",
            )],
        ),
        not(
            fixed("what does shop/cli/__main__.py do?", &["def main()"]),
            &["import json"],
        ),
        fixed("what is the version?", &["1.4.0"]),
        fixed(
            "what is the description in pyproject.toml?",
            &["A small shop"],
        ),
        fixed(
            "describe shop/cart.py",
            &[
                "What a customer wants to buy.",
                "class Cart",
                "def empty_cart()",
            ],
        ),
        row("which file is the largest?", [largest(root)]),
        acts(fixed(
            "test the project",
            &["The tests pass", "3 passed, 0 failed"],
        )),
        acts(fixed(
            "run python3 scripts/hello.py",
            &["hello from a script", "exit 0"],
        )),
        acts(fixed("execute `python3 -c 'print(6*7)'`", &["42"])),
    ]
    .into_iter()
    .chain(unread(UNREAD))
    .collect()
}

const UNREAD: &[(&str, &str)] = &[
    ("how many async functions are there", "async"),
    (
        "list the classes that inherit from TestCase",
        "that inherit",
    ),
    ("which tests are slow?", "slow"),
    ("run the tests with coverage", "with coverage"),
    ("install the dependencies", "install the dependencies"),
    ("lint the code", "lint the code"),
    ("is add_tax tested?", "is add_tax tested"),
    (
        "how many arguments does add_tax have",
        "arguments does add_tax have",
    ),
    ("make shop/tax.py faster", "faster"),
    (
        "convert the project to TypeScript",
        "convert the project to TypeScript",
    ),
    ("delete unused imports", "delete unused imports"),
    (
        "ich möchte alle Tests ausführen",
        "ich möchte alle Tests ausführen",
    ),
];
