//! A proof of durability cannot be made up: each of these programs fails to compile, for its own reason.
//!
//! The error's code is what is compared; its words belong to the compiler's version.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest build of a library beside this test.
fn library(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = std::fs::read_dir(here.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap_or_default();
        file.starts_with(&format!("lib{name}-")) && file.ends_with(".rlib")
    };
    built
        .filter(named)
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .unwrap()
}

/// What the compiler says to one program.
fn compile(program: &Path) -> (bool, String) {
    let store = library("session_store");
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "--emit=metadata", "--out-dir"])
        .arg(out.path())
        .arg("-L")
        .arg(format!("dependency={}", store.parent().unwrap().display()))
        .arg("--extern")
        .arg(format!("session_store={}", store.display()))
        .arg("--extern")
        .arg(format!("serde_json={}", library("serde_json").display()))
        .arg(program)
        .output()
        .unwrap();
    (run.status.success(), String::from_utf8(run.stderr).unwrap())
}

#[test]
fn a_commit_cannot_be_forged() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let (compiled, said) = compile(&programs.join("honest.rs"));
    assert!(compiled, "the honest program must compile: {said}");
    let refused = [
        ("commit_dropped", "error: unused `Commit` that must be used"),
        ("committed_cloned", "error[E0599]"),
        ("committed_deserialized", "error[E0277]"),
        ("committed_forged", "error[E0451]"),
        ("committed_mapped", "error[E0599]"),
    ];
    for (name, error) in refused {
        let (compiled, said) = compile(&programs.join(format!("{name}.rs")));
        assert!(!compiled, "{name} compiled");
        let errors: Vec<_> = said
            .lines()
            .filter(|line| line.starts_with("error"))
            .collect();
        assert!(
            matches!(errors.as_slice(), [first, last] if first.starts_with(error) && last.contains("aborting")),
            "{name}: {said}"
        );
    }
    let cases = std::fs::read_dir(&programs).unwrap().count();
    assert_eq!(cases, refused.len() + 1);
}
