//! One idea per type name: no two public types of one name in the workspace, no two visible types of one name in a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::finding::Finding;
use crate::source;

/// Keywords that define a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A name that several types may have, and why.
#[derive(Debug)]
pub struct Homonym {
    pub name: &'static str,
    pub reason: &'static str,
}

/// A type that its crate or others can name.
struct Definition {
    name: String,
    path: String,
    line: usize,
    /// `pub` without a restriction.
    public: bool,
}

/// One finding for each name with two definitions in different files: both unrestricted `pub`, or both visible (`pub` or
/// `pub(…)`) in one crate. Names in `accepted` are exempt; an entry that is no homonym, or has no reason, is a finding.
pub fn check(root: &Path, accepted: &[Homonym]) -> Vec<Finding> {
    let (definitions, mut bad) = definitions(root);
    let found = homonyms(&definitions);
    for homonym in accepted {
        let place = format!("type {}", homonym.name);
        if !found.contains_key(homonym.name) {
            bad.push(Finding::new(
                &place,
                0,
                "is on the list of homonyms but is none; take it off the list",
            ));
        }
        if homonym.reason.trim().is_empty() {
            bad.push(Finding::new(
                &place,
                0,
                "is on the list of homonyms without a reason",
            ));
        }
    }
    let left = found
        .into_iter()
        .filter(|(name, _)| accepted.iter().all(|homonym| homonym.name != *name));
    bad.extend(left.map(|(name, places)| {
        let places: Vec<String> = places.into_iter().collect();
        let what = format!(
            "has several definitions ({}); rename all but one",
            places.join(", ")
        );
        Finding::new(format!("type {name}"), 0, what)
    }));
    bad
}

/// The types of shipping crates, tests excepted.
fn definitions(root: &Path) -> (Vec<Definition>, Vec<Finding>) {
    let (sources, bad) = source::sources(root);
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.ships()) {
        for (at, line) in source.shipped_code().lines().enumerate() {
            if let Some((public, name)) = definition(line) {
                found.push(Definition {
                    name: name.to_owned(),
                    path: source.path.clone(),
                    line: at + 1,
                    public,
                });
            }
        }
    }
    (found, bad)
}

/// Whether a line defines a visible type: if so, whether it is unrestricted, and its name.
fn definition(line: &str) -> Option<(bool, &str)> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let (public, rest) = match rest.strip_prefix('(') {
        Some(restricted) => (false, restricted.split_once(')')?.1),
        None => (true, rest),
    };
    let rest = rest.strip_prefix(' ')?;
    let (keyword, rest) = rest
        .strip_prefix("unsafe ")
        .unwrap_or(rest)
        .split_once(' ')?;
    let end = rest
        .bytes()
        .position(|byte| !source::is_ident(byte))
        .unwrap_or(rest.len());
    let name = rest.get(..end).filter(|name| !name.is_empty())?;
    KEYWORDS.contains(&keyword).then_some((public, name))
}

/// The names with definitions that clash, and where those are. Twins for two platforms stand in one file and are one.
fn homonyms(definitions: &[Definition]) -> BTreeMap<&str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (at, one) in definitions.iter().enumerate() {
        let others = definitions
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, other)| other);
        let clashes = |other: &Definition| {
            let together = (one.public && other.public)
                || source::crate_folder(&one.path) == source::crate_folder(&other.path);
            one.name == other.name && one.path != other.path && together
        };
        if others.into_iter().any(clashes) {
            found
                .entry(&one.name)
                .or_default()
                .insert(format!("{}:{}", one.path, one.line));
        }
    }
    found
}
