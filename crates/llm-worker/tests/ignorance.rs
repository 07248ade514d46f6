//! What this crate knows of the world: of `std`, only what computes.
#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::fs;
use std::path::Path;

const COMPUTES: [&str; 12] = [
    "any",
    "borrow",
    "collections",
    "error",
    "fmt",
    "future",
    "marker",
    "mem",
    "path",
    "pin",
    "sync",
    "time",
];

// covers: INV-11
#[test]
fn no_clock_no_files_no_processes_no_sockets() {
    let mut seen = 0;
    visit(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut seen,
    );
    assert!(seen > 15, "only {seen} files");
}

fn visit(folder: &Path, seen: &mut usize) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            visit(&path, seen);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            *seen += 1;
            check(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

fn check(path: &Path, text: &str) {
    for part in text.split("std::").skip(1) {
        let module: String = part
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '_')
            .collect();
        assert!(
            COMPUTES.contains(&&*module),
            "{}: std::{module}",
            path.display()
        );
    }
    let in_turn = path.components().any(|part| part.as_os_str() == "turn");
    let worldly = ["Instant", "SystemTime", "spawn", "println!", "sleep"];
    let asynchronous = ["async ", ".await", "tokio"];
    let forbidden = worldly
        .iter()
        .chain(if in_turn { &asynchronous[..] } else { &[] });
    for word in forbidden {
        assert!(!text.contains(word), "{}: {word}", path.display());
    }
}
