//! The embedded model through the real program and its real tools: phrasings over three trees, with every number
//! checked by the standard library alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests through and through")]

mod oracle;
mod table;
mod trees;

use std::path::Path;
use std::process::Command;

/// One prompt in a process of its own; the answer.
fn ask(root: &Path, home: &Path, prompt: &str) -> String {
    let mut yoi = Command::new(env!("CARGO_BIN_EXE_yoi"));
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
        yoi.env(name, home);
    }
    // What cargo tells a test of itself is none of the tree's business.
    yoi.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = yoi.args(["run", "-q", "-m", "offline", prompt]).current_dir(root).output().unwrap();
    let answer = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{prompt}: {:?}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr));
    answer
}

/// Asks everything the table has for a tree, what changes files in a tree of its own; how many phrasings that were.
fn answered_right(tree: &str) -> usize {
    let (shared, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    trees::build(tree, shared.path());
    let table = table::rows(tree, shared.path());
    let mut wrong = Vec::new();
    for row in &table {
        let own = tempfile::tempdir().unwrap();
        if row.acts {
            trees::build(tree, own.path());
        }
        let root = if row.acts { own.path() } else { shared.path() };
        let answer = ask(root, home.path(), row.prompt);
        wrong.extend(row.check(&answer));
        if !(row.after)(root) {
            wrong.push(format!("{}\nthe files are wrong after:\n{answer}\n", row.prompt));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n\n{}", wrong.len(), table.len(), wrong.join("\n----\n"));
    table.len()
}

#[test]
fn a_rust_crate_is_asked_about() {
    assert!(answered_right("rust") >= 60);
}

#[test]
fn a_python_package_is_asked_about() {
    assert!(answered_right("python") >= 12);
}

#[test]
fn a_tree_of_two_languages_is_asked_about() {
    assert!(answered_right("mixed") >= 12);
}
