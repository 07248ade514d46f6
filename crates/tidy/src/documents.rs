//! Documents: the paths, links and modules they name must exist, or they describe another tree.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source, Text};

/// First parts of a path that is meant to be in this repository.
const ROOTED: [&str; 6] = ["crates", "docs", "findings", "work-items", ".ci", ".github"];
/// Files of the top level that documents call by name.
const TOP_FILES: [&str; 4] = ["tickets.sh", "flake.nix", "clippy.toml", "README.md"];

/// `docs/**/*.md`, `README.md` and `AGENTS.md`. What follows `Not yet` headings is judged too: a document names what is.
pub fn check(root: &Path) -> Vec<Finding> {
    let (documents, mut bad) = source::texts(root, "docs", |p| p.ends_with(".md"));
    let (readme, more) = source::texts(root, "", |p| p == "README.md" || p == "AGENTS.md");
    bad.extend(more);
    let (sources, more) = source::sources(root);
    bad.extend(more);
    for doc in documents.iter().chain(&readme) {
        for (line, kind) in named(doc) {
            let missing = match &kind {
                Named::Code(code) => {
                    missing_path(root, code).or_else(|| missing_module(&sources, code))
                }
                Named::Link(link) => missing_link(root, doc, link),
            };
            bad.extend(missing.map(|what| Finding::new(&doc.path, line, what)));
        }
    }
    bad
}

enum Named {
    Code(String),
    Link(String),
}

/// Inline code and link targets outside fenced blocks.
fn named(doc: &Text) -> Vec<(usize, Named)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in doc.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let code = line.split('`').skip(1).step_by(2);
            found.extend(code.map(|c| (number + 1, Named::Code(c.to_owned()))));
            let links = line.split("](").skip(1).filter_map(|l| l.split(')').next());
            found.extend(links.map(|l| (number + 1, Named::Link(l.to_owned()))));
        }
    }
    found
}

fn missing_path(root: &Path, code: &str) -> Option<String> {
    let path = code
        .split([' ', '#', ':'])
        .next()
        .unwrap_or_default()
        .trim_start_matches("./");
    let first = path.split('/').next().unwrap_or_default();
    let meant = (path.contains('/') && ROOTED.contains(&first)) || TOP_FILES.contains(&path);
    if !meant || path.contains(['<', '*', '…', '$']) {
        return None;
    }
    let gone = expand(path).into_iter().find(|p| !root.join(p).exists())?;
    Some(format!("`{gone}` does not exist"))
}

/// `a/{b,c}` names two paths.
fn expand(path: &str) -> Vec<String> {
    let parted = path
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    match parted {
        Some((head, (choices, tail))) => choices
            .split(',')
            .map(|c| format!("{head}{}{tail}", c.trim()))
            .collect(),
        None => vec![path.to_owned()],
    }
}

fn missing_link(root: &Path, doc: &Text, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let folder = Path::new(&doc.path).parent().unwrap_or(Path::new(""));
    let target = root.join(folder).join(path);
    let leads = match (path, anchor) {
        ("", anchor) => anchors(&doc.text).contains(anchor),
        (path, anchor) if path.ends_with(".md") && !anchor.is_empty() => {
            std::fs::read_to_string(target).is_ok_and(|text| anchors(&text).contains(anchor))
        }
        _ => target.exists(),
    };
    (!leads).then(|| format!("the link `{link}` leads nowhere"))
}

/// What links name the headings of a document by: small letters, `-` for spaces, no other signs; a number behind a repeated one.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !in_code) else {
            continue;
        };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name = heading.chars().filter(kept).collect::<String>();
        let name = name.replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered);
        found.extend(free.into_iter().find(|name| !found.contains(name)));
    }
    found
}

/// `pod::feature::plan` must be modules, `pod::feature::InstallPlan` a name within them.
fn missing_module(sources: &[Source], code: &str) -> Option<String> {
    let path = code.trim_end_matches("()");
    let (first, rest) = path.split_once("::")?;
    let is_name = |p: &str| !p.is_empty() && p.bytes().all(source::is_ident);
    if !path.split("::").all(is_name) {
        return None;
    }
    let name = match first.replace('_', "-") {
        // The crate of packages is called by what they are.
        plugin if plugin == "plugin" => "plugins/package".to_owned(),
        other => other,
    };
    let folder = format!("crates/{name}/src");
    let within = |s: &&Source| s.path.starts_with(&folder);
    if !sources.iter().any(|s| within(&s)) {
        return None;
    }
    let mut here = folder.clone();
    for name in rest.split("::") {
        let next = format!("{here}/{name}");
        let is_module = sources
            .iter()
            .any(|s| s.path == format!("{next}.rs") || s.path.starts_with(&format!("{next}/")));
        if is_module {
            here = next;
            continue;
        }
        let inside = |s: &&Source| s.path.starts_with(&here);
        if !sources
            .iter()
            .filter(within)
            .filter(inside)
            .any(|s| source::words(&s.code, name).next().is_some())
        {
            return Some(format!("`{code}`: there is no `{name}` in {here}"));
        }
    }
    None
}
