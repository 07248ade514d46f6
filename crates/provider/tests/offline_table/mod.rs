//! The table of phrasings: a tree, a prompt, and what the answer must contain.
//!
//! Only the standard library is used, so that the same table can be run against other executors with `#[path]`:
//! build the tree in an empty directory, compute [`rows`] for it *before* the prompt is run there, run the prompt, check
//! the answer with [`Row::check`], then the directory with `Row::after`.

#![allow(dead_code, reason = "each user of the table takes what it needs")]

pub mod oracle;
mod table;
pub mod trees;

use std::path::Path;

pub use table::rows;

pub struct Row {
    pub prompt: &'static str,
    /// Each stands in the answer, not inside a longer number or word.
    pub wants: Vec<String>,
    /// None of these stands in the answer.
    pub not: Vec<&'static str>,
    /// What must be true of the tree afterwards.
    pub after: fn(&Path) -> bool,
    /// The turn may run tests and programs.
    pub runs: bool,
}

impl Row {
    /// What is wrong with an answer, if anything.
    pub fn check(&self, answer: &str) -> Option<String> {
        let missing = self.wants.iter().find(|want| !stands(answer, want));
        let extra = self.not.iter().find(|word| stands(answer, word));
        missing
            .map(|want| format!("`{want}` is missing"))
            .or_else(|| extra.map(|word| format!("`{word}` is there")))
            .map(|why| format!("{}\n{why} in:\n{answer}\n", self.prompt))
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
