//! Public items have a doc comment. Fields and variants need none: a better name says more.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source};

/// What introduces an item. A module in a file of its own says in its `//!` what it is.
const KEYWORDS: [&str; 8] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union",
];

/// What may stand before `fn`.
const QUALIFIERS: [&str; 3] = ["async", "const", "unsafe"];

/// One finding for each unrestricted `pub` item of a shipping crate, and each item of such a trait, without `///`. Whether
/// the item can be reached from outside is not asked.
pub fn check(root: &Path) -> Vec<Finding> {
    let (sources, mut bad) = source::sources(root);
    bad.extend(
        sources
            .iter()
            .filter(|source| source.ships())
            .flat_map(undocumented),
    );
    bad
}

fn undocumented(source: &Source) -> Vec<Finding> {
    let code = source.shipped_code();
    let lines: Vec<(&str, &str)> = code.lines().zip(source.comments.lines()).collect();
    let mut bad = Vec::new();
    // The indentation of the public trait that the line is in.
    let mut inside: Option<usize> = None;
    for (at, (line, _)) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if inside.is_some_and(|outer| indent == outer && line.trim_start().starts_with('}')) {
            inside = None;
        }
        let of_trait = inside
            .filter(|outer| indent == outer + 4)
            .and_then(|_| item(line.trim_start()));
        let public = line.trim_start().strip_prefix("pub ").and_then(item);
        if public.is_some_and(|(keyword, _)| keyword == "trait") && !line.trim_end().ends_with('}')
        {
            inside = Some(indent);
        }
        if let Some((keyword, name)) = public.or(of_trait).filter(|_| !documented(&lines, at)) {
            bad.push(Finding::new(
                format!("{} {name}", source.path),
                at + 1,
                format!("public `{keyword}` without `///`"),
            ));
        }
    }
    bad
}

/// The keyword and the name of the item that a line begins with.
fn item(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(' ')?;
    let end = rest
        .bytes()
        .position(|byte| !source::is_ident(byte))
        .unwrap_or(rest.len());
    let next = rest.get(..end)?;
    if QUALIFIERS.contains(&word) && (next == "fn" || QUALIFIERS.contains(&next)) {
        return item(rest);
    }
    KEYWORDS
        .contains(&word)
        .then_some((word, next))
        .filter(|(_, name)| !name.is_empty())
}

/// Whether `///` or `#[doc` stands above the line, with nothing but attributes between.
fn documented(lines: &[(&str, &str)], at: usize) -> bool {
    let mut above = at;
    while let Some((code, comment)) = above.checked_sub(1).and_then(|line| lines.get(line)) {
        above -= 1;
        let code = code.trim();
        if comment.trim().starts_with("///") || code.starts_with("#[doc") {
            return true;
        }
        if code.starts_with("#[") || (code.is_empty() && !comment.trim().is_empty()) {
            continue;
        }
        // The end of an attribute of several lines.
        if code.ends_with(")]") {
            while lines
                .get(above)
                .is_some_and(|(code, _)| !code.trim().starts_with("#["))
                && above > 0
            {
                above -= 1;
            }
            continue;
        }
        return false;
    }
    false
}
