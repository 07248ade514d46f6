//! Four small projects to ask about.

use std::fs;
use std::path::Path;

/// Writes a tree below an empty directory.
pub(crate) fn build(name: &str, root: &Path) {
    let files = match name {
        "rust" => RUST,
        "python" => PYTHON,
        "javascript" => JAVASCRIPT,
        _ => MIXED,
    };
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const RUST: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"ledger\"\nversion = \"0.3.1\"\nedition = \"2021\"\ndescription = \"Plain-text accounts\"\n\n[dependencies]\n",
    ),
    (".gitignore", "target/\n*.log\n"),
    (
        "README.md",
        "# Ledger\n\nLedger keeps accounts in plain text\nand prints balances.\n\n## Usage\n\nRun `ledger FILE`. See docs/notes.md.\n",
    ),
    (
        "src/lib.rs",
        "//! Accounts in plain text: parsing entries and adding them up.\n\npub mod parse;\npub mod report;\n\n/// One movement of money.\n#[derive(Clone, Debug, PartialEq)]\npub struct Entry {\n    pub account: String,\n    pub cents: i64,\n}\n\n/// All movements.\npub struct Book {\n    pub entries: Vec<Entry>,\n}\n\nimpl Book {\n    pub fn new() -> Self {\n        Book { entries: Vec::new() }\n    }\n\n    pub fn push(&mut self, entry: Entry) {\n        self.entries.push(entry);\n    }\n\n    // TODO: cache this\n    pub fn total(&self) -> i64 {\n        self.entries.iter().map(|entry| entry.cents).sum()\n    }\n}\n\nimpl Default for Book {\n    fn default() -> Self {\n        Self::new()\n    }\n}\n",
    ),
    (
        "src/main.rs",
        "use ledger::parse::parse_book;\nuse ledger::report::print_totals;\n\nfn main() {\n    let text = \"cash 100\\nbank 250\\n\";\n    let book = parse_book(text);\n    print_totals(&book);\n}\n",
    ),
    (
        "src/parse/mod.rs",
        "//! From text to a book.\n\nmod line;\n\nuse crate::Book;\npub use line::parse_line;\n\npub const MAX_LINES: usize = 1000;\n\n/// Reads every line. FIXME: report bad lines\npub fn parse_book(text: &str) -> Book {\n    let mut book = Book::new();\n    for entry in text.lines().take(MAX_LINES).filter_map(parse_line) {\n        book.push(entry);\n    }\n    book\n}\n",
    ),
    (
        "src/parse/line.rs",
        "use crate::Entry;\n\n/// `account cents`.\npub fn parse_line(line: &str) -> Option<Entry> {\n    let (account, cents) = line.rsplit_once(' ')?;\n    Some(Entry { account: account.to_string(), cents: cents.parse().ok()? })\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn a_line_parses() {\n        assert_eq!(parse_line(\"cash 5\").unwrap().cents, 5);\n    }\n\n    #[test]\n    fn a_bad_line_does_not() {\n        assert!(parse_line(\"cash\").is_none());\n    }\n}\n",
    ),
    (
        "src/report.rs",
        "use crate::Book;\nuse std::fmt::Write;\n\npub trait Report {\n    fn render(&self) -> String;\n}\n\n#[derive(Clone, Copy)]\npub enum Style {\n    Short,\n    Long,\n}\n\nimpl Report for Book {\n    fn render(&self) -> String {\n        let mut out = String::new();\n        for entry in &self.entries {\n            writeln!(out, \"{} {}\", entry.account, entry.cents).unwrap();\n        }\n        out\n    }\n}\n\npub fn print_totals(book: &Book) {\n    // TODO: use Style\n    print!(\"{}\", book.render());\n    println!(\"total {}\", book.total());\n}\n",
    ),
    (
        "tests/ledger.rs",
        "use ledger::parse::parse_book;\n\n#[test]\nfn totals_add_up() {\n    let book_total = parse_book(\"cash 5\\nbank 7\\n\").total();\n    assert_eq!(book_total, 12);\n}\n",
    ),
    (
        "docs/notes.md",
        "# Notes\n\nEntries are lines. parse_book reads them.\n\nTODO write more\n",
    ),
    ("target/junk.rs", "pub fn junk() {}\n// TODO never seen\n"),
    ("debug.log", "TODO noise\n"),
];

const PYTHON: &[(&str, &str)] = &[
    (
        "pyproject.toml",
        "[project]\nname = \"shop\"\nversion = \"1.4.0\"\ndescription = \"A small shop\"\n",
    ),
    (".gitignore", "__pycache__/\nbuild/\n"),
    ("README.md", "# Shop\n\nShop adds up carts and taxes.\n"),
    ("shop/__init__.py", "\"\"\"A small shop.\"\"\"\n"),
    (
        "shop/cart.py",
        "\"\"\"What a customer wants to buy.\"\"\"\n\nimport json\nfrom shop.tax import add_tax\n\nLIMIT = 50\n\n\nclass Cart:\n    def __init__(self):\n        self.items = []\n\n    def add(self, name, price):\n        self.items.append((name, price))\n\n    def total(self):\n        # TODO: discounts\n        return add_tax(sum(price for _, price in self.items))\n\n    def dump(self):\n        return json.dumps(self.items)\n\n\ndef empty_cart():\n    return Cart()\n",
    ),
    (
        "shop/tax.py",
        "\"\"\"Taxes.\"\"\"\n\nRATE = 20\n\n\ndef add_tax(price):\n    return price + price * RATE // 100\n\n\ndef old_rate():\n    return RATE  # FIXME: remove old_rate_table too\n\n\ndef old_rate_table():\n    return [old_rate(), old_rate()]\n",
    ),
    (
        "shop/cli/__main__.py",
        "import json\nimport sys\n\nfrom shop.cart import empty_cart\n\n\ndef main():\n    cart = empty_cart()\n    cart.add(\"pen\", 100)\n    json.dump(cart.items, sys.stdout)\n\n\nmain()\n",
    ),
    ("shop/cli/__init__.py", ""),
    ("tests/__init__.py", ""),
    (
        "tests/test_cart.py",
        "import unittest\n\nfrom shop.cart import Cart\n\n\nclass CartTest(unittest.TestCase):\n    def test_total(self):\n        cart = Cart()\n        cart.add(\"pen\", 100)\n        self.assertEqual(cart.total(), 120)\n\n    def test_dump(self):\n        self.assertEqual(Cart().dump(), \"[]\")\n",
    ),
    (
        "tests/test_tax.py",
        "import unittest\n\nfrom shop import tax\n\n\nclass TaxTest(unittest.TestCase):\n    def test_rate(self):\n        self.assertEqual(tax.old_rate(), 20)\n        self.assertEqual(tax.old_rate_table(), [20, 20])\n",
    ),
    ("scripts/hello.py", "print(\"hello from a script\")\n"),
    ("build/copy.py", "import json\n"),
];

const JAVASCRIPT: &[(&str, &str)] = &[
    (
        "package.json",
        "{\n  \"name\": \"tick-tock\",\n  \"version\": \"0.9.1\",\n  \"type\": \"module\",\n  \"scripts\": {\n    \"test\": \"echo \\\"Error: no test specified\\\" && exit 1\"\n  }\n}\n",
    ),
    (".gitignore", "node_modules/\ndist/\n"),
    (
        "README.md",
        "# Tick-tock\n\n[![badge](https://example.org/b.svg)](https://example.org)\n\n**Tick-tock** measures how long [things](docs/things.md) take, in `ms`.\n\n- fast\n- small\n",
    ),
    (
        "src/clock.js",
        "/**\n * A clock that can be stopped.\n */\nimport { parse } from './parse.js';\n\nexport class Clock {\n  constructor(text) {\n    this.left = parse(text);\n  }\n}\n\n// TODO: pause\nexport function formatDuration(ms) {\n  return ms + ' ms';\n}\n",
    ),
    (
        "src/parse.js",
        "export function parse(text) {\n  const n = Number(text);\n  if (Number.isNaN(n)) {\n    throw new Error('no number');\n  }\n  return n;\n}\n",
    ),
    (
        "src/main.mjs",
        "import { Clock, formatDuration } from './clock.js';\nimport { parse } from './parse.js';\n\nconst show = (text) => console.log(formatDuration(parse(text)));\nshow(new Clock('5').left);\n",
    ),
    (
        "docs/things.md",
        "# Things\n\nEverything that takes time.\n",
    ),
    (
        "node_modules/left/index.js",
        "export function hidden() {}\n",
    ),
];

const MIXED: &[(&str, &str)] = &[
    (
        "package.json",
        "{\n  \"name\": \"board\",\n  \"version\": \"2.0.5\",\n  \"scripts\": {\n    \"test\": \"node web/test/run.js\"\n  }\n}\n",
    ),
    (".gitignore", "node_modules/\ndist\n"),
    (
        "README.md",
        "Board\n=====\n\n[![badge](x.svg)](x)\n\nBoard shows notes on a wall.\n",
    ),
    (
        "web/index.js",
        "const { formatNote } = require('./lib/format');\n\nfunction main() {\n  console.log(formatNote('hello'));\n}\n\nmain();\n",
    ),
    (
        "web/lib/format.js",
        "const WIDTH = 10;\n\nfunction formatNote(text) {\n  return pad(text);\n}\n\nconst pad = (text) => text.padEnd(WIDTH);\n\nclass Wall {\n  add(note) {}\n}\n\nmodule.exports = { formatNote, pad, Wall };\n",
    ),
    (
        "web/test/run.js",
        "const { formatNote } = require('../lib/format');\n\nif (formatNote('a').length !== 10) {\n  console.log('FAILED: width');\n  process.exit(1);\n}\nconsole.log('1 passed');\n",
    ),
    ("server/go.mod", "module example.org/board\n\ngo 1.21\n"),
    (
        "server/main.go",
        "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/board/store\"\n)\n\nfunc main() {\n\ts := store.Open()\n\tfmt.Println(s.Len())\n}\n",
    ),
    (
        "server/store/store.go",
        "package store\n\n// Store keeps notes. TODO: persist\ntype Store struct {\n\tnotes []string\n}\n\nfunc Open() *Store {\n\treturn &Store{}\n}\n\nfunc (s *Store) Len() int {\n\treturn len(s.notes)\n}\n",
    ),
    ("scripts/fail.sh", "echo first\necho broken\nexit 3\n"),
    (
        "notes/colours.txt",
        "colour one\ncolours two\nthe colour colour\n",
    ),
    ("node_modules/x/index.js", "function hidden() {}\n"),
    ("dist/out.js", "function built() {}\n"),
];
