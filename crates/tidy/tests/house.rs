//! This repository against the house rules. A failure lists every finding with its place and what to do.

#![allow(
    clippy::unwrap_used,
    reason = "tests: a repository that cannot be read is a failed test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tidy::finding::{Exception, Finding, except};
use tidy::homonyms::Homonym;
use tidy::{
    budget, dependencies, documents, homonyms, ignorance, invariants, layout, public_docs, words,
};

/// Where a budget does not apply. A place is a path, with the function or module behind it: `crates/a/src/b.rs route`.
const EXCEPTIONS: &[Exception] = &[Exception {
    place: "crates/pod/src/session/fold.rs follow",
    reason: "one exhaustive match over the kinds of record; parted, it would hide whether all are there",
    work_item: "20261121-022123-routing-matches",
}];

/// Names that several types have: idioms, with a reason each.
const HOMONYMS: &[Homonym] = &[
    Homonym {
        name: "Error",
        reason: "the error of a crate, by Rust's custom",
    },
    Homonym {
        name: "ErrorKind",
        reason: "what the caller of a crate does next, by Rust's custom",
    },
    Homonym {
        name: "Args",
        reason: "a tool's arguments, one type for each tool's module",
    },
    Homonym {
        name: "Event",
        reason: "what a pod tells: its own watcher in memory, and clients over the socket",
    },
    Homonym {
        name: "Settings",
        reason: "a feature's settings, one type for each feature's module",
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

#[track_caller]
fn none(findings: Vec<Finding>) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn budgets_of_size() {
    none(except(&root(), budget::sizes(&root()), EXCEPTIONS));
}

#[test]
fn modules_say_what_they_are() {
    none(budget::module_docs(&root()));
}

#[test]
fn modules_have_names_that_mean_something() {
    none(budget::module_names(&root()));
}

#[test]
fn invariants_and_tests_are_pairs() {
    none(invariants::pairs(&root()));
}

#[test]
fn the_host_knows_no_flag_and_no_tool() {
    none(ignorance::host(&root()));
}

#[test]
fn one_proof_of_a_commit() {
    none(invariants::one_acknowledged(&root()));
}

#[test]
fn documents_name_what_exists() {
    none(documents::check(&root()));
}

#[test]
fn dependencies_have_reasons() {
    none(dependencies::reasons(&root()));
}

#[test]
fn the_binary_has_few_packages() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = [
        "tree",
        "--package",
        "yoi",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
        "--offline",
    ];
    let out = Command::new(cargo)
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    none(dependencies::count(
        &String::from_utf8_lossy(&out.stdout),
        dependencies::NORMAL_PACKAGES,
    ));
}

#[test]
fn no_test_is_ignored_and_nothing_is_left_to_do() {
    none(words::in_code(&root()));
}

#[test]
fn exceptions_from_lints_have_reasons() {
    none(words::lint_exceptions(&root()));
}

#[test]
fn no_path_of_one_machine() {
    none(words::machine_paths(&root()));
}

#[test]
fn the_top_level_is_as_described() {
    none(layout::top_level(&root()));
}

#[test]
fn a_type_name_stands_for_one_idea() {
    none(homonyms::check(&root(), HOMONYMS));
}

#[test]
fn public_items_are_documented() {
    none(public_docs::check(&root()));
}
