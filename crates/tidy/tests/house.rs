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
    bindings, budget, dependencies, documents, homonyms, ignorance, invariants, layout, prose,
    public_docs, words,
};

/// Where a budget does not apply. A place is a path, with the function or module behind it: `crates/a/src/b.rs route`.
fn exceptions() -> Vec<Exception> {
    let mut all = vec![Exception {
        place: "crates/pod/src/session/fold.rs follow",
        reason: "one exhaustive match over the kinds of record; parted, it would hide whether all are there",
        work_item: "20261121-022123-routing-matches",
    }];
    all.extend(WIDE.iter().map(|place| Exception {
        place,
        reason: "within the limits of the format before 2026-11-27; who changes it parts it",
        work_item: "20261127-214032-house-part-three",
    }));
    all
}

/// What the change to Rust's default format made longer than the limits. The list only gets shorter.
const WIDE: &[&str] = &[
    "crates/authority/src/process/filter.rs compile",
    "crates/authority/src/process/spawner.rs start",
    "crates/client/src/model/tally.rs fold",
    "crates/pod/src/control/commit.rs add_record",
    "crates/pod/src/feature/declare/capability.rs problem",
    "crates/pod/src/feature/tests/grants.rs what_a_person_grants_stands_in_the_place_of_the_defaults",
    "crates/pod/src/host.rs open",
    "crates/pod/src/ipc/requests.rs perform",
    "crates/pod/src/permission/place.rs path_target",
    "crates/pod/src/session/restore.rs closing",
    "crates/pod/src/session/view/tests.rs",
    "crates/shell/src/walk.rs command",
    "crates/testkit/src/conformance/hooked.rs asked",
    "crates/tools/src/bash.rs run",
    "crates/tui/tests/screen/use_of_keys.rs",
    "crates/yoi/src/commands/attach/full/link.rs perform",
    "crates/yoi/src/commands/attach/full.rs run",
    "crates/yoi/src/commands/changes.rs diff",
    "crates/yoi/src/commands/config.rs rows",
    "crates/yoi/src/commands/ending.rs failure",
    "crates/yoi/src/commands/status.rs lines",
    "crates/yoi/src/commands/verify.rs run",
    "crates/host/src/config/fuzzing.rs narrows",
    "crates/host/src/config/layer.rs layer",
    "crates/host/src/hosting/open.rs open",
    "crates/yoi/src/usage.rs failure",
    "crates/yoi/tests/cli/plugin_attacks.rs",
];

/// Files of `host` that name the command line, and what for. The list only gets shorter.
const OF_COMMAND_LINE: [(&str, &str); 15] = [
    (
        "crates/host/src/agent.rs",
        "a missing argument, and a file that does not exist",
    ),
    (
        "crates/host/src/allow.rs",
        "the source of rules that a start gives",
    ),
    (
        "crates/host/src/compose.rs",
        "a note about the target directory",
    ),
    (
        "crates/host/src/compose/packages.rs",
        "how a plugin is granted",
    ),
    (
        "crates/host/src/compose/roots.rs",
        "the sources of added directories",
    ),
    (
        "crates/host/src/compose/servers.rs",
        "how a server is granted",
    ),
    (
        "crates/host/src/config/packages.rs",
        "the source of directories of plugins",
    ),
    (
        "crates/host/src/config/parser_text.rs",
        "help of errors in the configuration",
    ),
    (
        "crates/host/src/config/project.rs",
        "a note about entries without a grant",
    ),
    (
        "crates/host/src/hosting/open.rs",
        "notes about what changed, and the source of features",
    ),
    (
        "crates/host/src/hosting/session_location.rs",
        "a warning about the last run",
    ),
    (
        "crates/host/src/launch.rs",
        "the options of a start, each with its flag",
    ),
    (
        "crates/host/src/limits.rs",
        "the table of limits, each with its flag",
    ),
    (
        "crates/host/src/plugins/package.rs",
        "the standing of a plugin",
    ),
    ("crates/host/src/undo.rs", "what an undo skipped"),
];

/// Files that read what others write, and what that is.
const OF_OTHERS: &[(&str, &str)] = &[
    ("crates/host/src/allow.rs", "a rule as a person writes it"),
    (
        "crates/host/src/compose/model.rs",
        "errors of a parser of JSON",
    ),
    (
        "crates/host/src/compose/switches.rs",
        "errors of a parser of settings",
    ),
    (
        "crates/host/src/config/parser_text.rs",
        "errors of a parser of TOML",
    ),
    ("crates/host/src/project.rs", "the head of a repository"),
    (
        "crates/yoi/src/commands/changes.rs",
        "a diff as git writes it",
    ),
    ("crates/yoi/src/commands/man.rs", "a manual page"),
];

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
        name: "Failure",
        reason: "what failed and the next step: of a command, and as a pod tells it to its clients",
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
    none(except(&root(), budget::sizes(&root()), &exceptions()));
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
fn what_hosts_pods_knows_no_command_line() {
    none(except(
        &root(),
        ignorance::command_line(&root()),
        &OF_COMMAND_LINE.map(|(place, reason)| Exception {
            place,
            reason,
            work_item: "20261127-214032-house-part-three",
        }),
    ));
}

#[test]
fn no_code_reads_its_own_sentences() {
    none(prose::parsed(&root(), OF_OTHERS));
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
fn a_let_binds_one_thing() {
    none(bindings::several(&root()));
}

#[test]
fn modules_are_beside_their_directories() {
    none(layout::modules(&root()));
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
