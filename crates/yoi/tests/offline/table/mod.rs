//! The rows of the table, tree by tree.

mod javascript;
mod mixed;
mod python;
mod rust;
mod unread;

use crate::oracle::{files, text};
use std::path::Path;

/// How a prompt is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Exit code 0.
    Done,
    /// Understood and tried, and the answer says why it is not done: 1.
    NotDone,
    /// Not understood: 1, the words are named, nothing was changed or run.
    Unread,
}

pub(crate) struct Row {
    pub(crate) prompt: &'static str,
    pub(crate) end: End,
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
        let missing = self
            .wants
            .iter()
            .find(|want| !stands(answer, want))
            .map(|want| format!("`{want}` is missing"));
        let extra = self
            .not
            .iter()
            .find(|word| stands(answer, word))
            .map(|word| format!("`{word}` is there"));
        missing
            .or(extra)
            .map(|why| format!("{}\n{why} in:\n{answer}\n", self.prompt))
    }
}

fn stands(text: &str, part: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let first = word(part.chars().next());
    let last = word(part.chars().next_back());
    text.match_indices(part).any(|(at, _)| {
        let before = word(text[..at].chars().next_back());
        let after = word(text[at + part.len()..].chars().next());
        !(first && before || last && after)
    })
}

fn row(prompt: &'static str, wants: impl IntoIterator<Item = String>) -> Row {
    let wants = wants.into_iter().collect();
    Row {
        prompt,
        end: End::Done,
        wants,
        not: Vec::new(),
        after: |_| true,
        acts: false,
    }
}

fn fixed(prompt: &'static str, wants: &[&str]) -> Row {
    row(prompt, wants.iter().map(|w| (*w).to_owned()))
}

fn fails(prompt: &'static str, wants: &[&str]) -> Row {
    Row {
        end: End::NotDone,
        ..fixed(prompt, wants)
    }
}

fn changes(prompt: &'static str, wants: &[&str], after: fn(&Path) -> bool) -> Row {
    Row {
        after,
        acts: true,
        ..fixed(prompt, wants)
    }
}

fn undone(prompt: &'static str, wants: &[&str], after: fn(&Path) -> bool) -> Row {
    Row {
        end: End::NotDone,
        ..changes(prompt, wants, after)
    }
}

fn acts(row: Row) -> Row {
    Row { acts: true, ..row }
}

fn not(row: Row, not: &[&'static str]) -> Row {
    Row {
        not: not.to_vec(),
        ..row
    }
}

/// The prompt and the words of it that are named.
fn unread(rows: &[(&'static str, &'static str)]) -> Vec<Row> {
    let row = |(prompt, part): &(&'static str, &'static str)| {
        let wants = [
            format!("Not understood: `{part}`"),
            "not a language model".into(),
            "yoi models".into(),
        ];
        Row {
            end: End::Unread,
            ..row(prompt, wants)
        }
    };
    rows.iter().map(row).collect()
}

/// The rows for a tree that is built at `root`.
pub(crate) fn rows(tree: &str, root: &Path) -> Vec<Row> {
    match tree {
        "rust" => rust::rows(root),
        "python" => python::rows(root),
        "javascript" => javascript::rows(root),
        _ => mixed::rows(root),
    }
}

fn all(_: &str) -> bool {
    true
}

fn n(count: usize, noun: &str) -> String {
    format!(
        "{count} {}",
        if count == 1 {
            noun.trim_end_matches('s')
        } else {
            noun
        }
    )
}

/// The file with the most lines.
fn largest(root: &Path) -> String {
    let longer = |path: &String| {
        (
            text(root, path).lines().count(),
            std::cmp::Reverse(path.clone()),
        )
    };
    files(root).into_iter().max_by_key(longer).unwrap()
}
