//! What `pod` does not know: flags, tools, features and their stores. It decides; the program above it finds the words.
//! What `host` does not know: flags and commands of the command line.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source, is_ident};

/// Where nothing of that may be named.
const HOST: &str = "crates/pod/src/";

/// Where tools are named, and what stands before a name.
const TOOLS: [(&str, &str); 3] = [
    ("crates/tools/src/", "const NAME: &str ="),
    ("crates/builtins/src/", "const NAME: &str ="),
    ("crates/builtins/src/", "ToolKey::new("),
];

/// The stores it has words for: its own, and those of the fixed capabilities.
const STORES: [&str; 4] = ["Store", "StateStore", "WorkItemStore", "MemoryStore"];

/// Names in the shipped code of `pod`, outside of comments, that belong to the program or to a feature.
pub fn host(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    let tools = tools(&sources);
    if tools.is_empty() {
        bad.push(Finding::new(
            "crates/builtins/src",
            0,
            "no tool was found: look for them where they are named now",
        ));
    }
    for file in sources
        .iter()
        .filter(|file| file.path.starts_with(HOST) && !file.is_test_file())
    {
        let texts = file.shipped_literals();
        let code = file.shipped_code();
        let mut found = |at: usize, what: String| {
            bad.push(Finding::new(&file.path, source::line_of(&code, at), what))
        };
        for at in flags(&texts) {
            found(
                at,
                format!(
                    "`{}` is a flag: give a `permission::Remedy`",
                    word(&texts, at)
                ),
            );
        }
        for tool in &tools {
            source::words(&texts, tool)
                .for_each(|at| found(at, format!("`{tool}` is a tool of a feature")));
        }
        for (at, id) in texts.match_indices("builtin:") {
            if texts
                .get(at + id.len()..)
                .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
            {
                found(at, format!("`{}` is a feature", word(&texts, at)));
            }
        }
        for (at, _) in code.match_indices("Store") {
            let start = code
                .get(..at)
                .unwrap_or_default()
                .trim_end_matches(is_name)
                .len();
            let name = code
                .get(start..)
                .unwrap_or_default()
                .split(|c| !is_name(c))
                .next()
                .unwrap_or_default();
            if name.ends_with("Store") && !STORES.contains(&name) {
                found(at, format!("`{name}` is a store of a feature"));
            }
        }
    }
    bad
}

/// Flags and commands of the command line in literals of the shipped code of `host`; a finding's place is the file.
pub fn command_line(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    let host = |file: &&Source| file.path.starts_with("crates/host/src/") && file.ships();
    for file in sources.iter().filter(host) {
        let texts = file.shipped_literals();
        let flags = flags(&texts).map(|at| (at, word(&texts, at)));
        let commands = texts.match_indices("`yoi ");
        for (at, what) in flags.chain(commands) {
            let what = format!("{what:?} is of the command line: give an `exit::Help`");
            bad.push(Finding::new(&file.path, source::line_of(&texts, at), what));
        }
    }
    bad
}

/// The names of the tools that this tree has.
fn tools(sources: &[Source]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (place, mark) in TOOLS {
        for file in sources
            .iter()
            .filter(|file| file.path.starts_with(place) && !file.is_test_file())
        {
            let code = file.shipped_code();
            for (at, _) in code.match_indices(mark) {
                let literal = file
                    .text
                    .get(at + mark.len()..)
                    .unwrap_or_default()
                    .trim_start()
                    .strip_prefix('"');
                names.extend(literal.and_then(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    names
}

/// Where `--word` stands, by itself.
fn flags(texts: &str) -> impl Iterator<Item = usize> {
    texts.match_indices("--").map(|(at, _)| at).filter(|at| {
        let before = at
            .checked_sub(1)
            .and_then(|before| texts.as_bytes().get(before));
        let after = texts.as_bytes().get(at + 2);
        after.is_some_and(u8::is_ascii_lowercase)
            && !before.is_some_and(|b| is_ident(*b) || *b == b'-')
    })
}

/// What begins there, up to a space or a quote.
fn word(texts: &str, at: usize) -> &str {
    texts
        .get(at..)
        .and_then(|rest| rest.split([' ', '\'', '"', '`', '\n']).next())
        .unwrap_or_default()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
