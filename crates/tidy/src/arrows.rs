//! Arrows between crates: what each may depend on, read from the manifests.

use std::path::Path;

use crate::finding::Finding;
use crate::source;

/// One crate of the workspace.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// Crates of ours that it may depend on.
    pub ours: &'static [&'static str],
    /// Crates of others that would mean it knows what it must not know. Tests may use them.
    pub never: &'static [&'static str],
}

/// May stand among the dev-dependencies of every crate.
const TEST_CRATES: [&str; 3] = ["ambient", "client", "testkit"];

pub fn check(root: &Path, table: &[Row]) -> Vec<Finding> {
    let is_manifest = |p: &str| {
        p.strip_prefix(source::crate_folder(p)) == Some("/Cargo.toml") && !p.contains("/fuzz/")
    };
    let (manifests, mut bad) = source::texts(root, "crates", is_manifest);
    let mut seen = Vec::new();
    for file in &manifests {
        let manifest: toml::Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(e) => {
                bad.push(Finding::new(&file.path, 0, format!("is no TOML: {e}")));
                continue;
            }
        };
        let name = manifest
            .get("package")
            .and_then(|p| p.get("name"))
            .and_then(|n| n.as_str())
            .unwrap_or_default();
        seen.push(name.to_owned());
        match table.iter().find(|row| row.name == name) {
            Some(row) => bad.extend(one(&file.path, &manifest, row, table)),
            None => bad.push(Finding::new(
                &file.path,
                0,
                format!("`{name}` has no row in the arrow table"),
            )),
        }
    }
    for row in table
        .iter()
        .filter(|row| !seen.iter().any(|name| name == row.name))
    {
        bad.push(Finding::new(
            "crates",
            0,
            format!("the arrow table has `{}`, the workspace has not", row.name),
        ));
    }
    bad
}

fn one(path: &str, manifest: &toml::Table, row: &Row, table: &[Row]) -> Vec<Finding> {
    let mut bad = Vec::new();
    let is_ours = |name: &str| table.iter().any(|r| r.name == name);
    for (name, dev) in depended_on(manifest) {
        let allowed =
            row.ours.contains(&name.as_str()) || (dev && TEST_CRATES.contains(&name.as_str()));
        if is_ours(&name) && !allowed {
            bad.push(Finding::new(
                path,
                0,
                format!("`{}` must not depend on `{name}`", row.name),
            ));
        }
        if !dev && row.never.contains(&name.as_str()) {
            bad.push(Finding::new(
                path,
                0,
                format!("`{}` must not know what `{name}` is for", row.name),
            ));
        }
    }
    if manifest
        .get("lints")
        .and_then(|l| l.get("workspace"))
        .and_then(|w| w.as_bool())
        != Some(true)
    {
        bad.push(Finding::new(path, 0, "needs `[lints] workspace = true`"));
    }
    bad
}

/// Package names (behind renames) with whether they are dev-dependencies, of all targets.
fn depended_on(manifest: &toml::Table) -> Vec<(String, bool)> {
    let targets = manifest
        .get("target")
        .and_then(|t| t.as_table())
        .into_iter()
        .flatten();
    let tables = std::iter::once(manifest).chain(targets.filter_map(|(_, t)| t.as_table()));
    let mut found = Vec::new();
    for table in tables {
        for (section, dev) in [
            ("dependencies", false),
            ("build-dependencies", false),
            ("dev-dependencies", true),
        ] {
            for (key, value) in table
                .get(section)
                .and_then(|s| s.as_table())
                .into_iter()
                .flatten()
            {
                let package = value.get("package").and_then(|p| p.as_str()).unwrap_or(key);
                found.push((package.to_owned(), dev));
            }
        }
    }
    found
}
