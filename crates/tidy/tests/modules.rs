//! The rooms inside of crates: how large a circle of files may be, and which room may name which.

#![allow(clippy::unwrap_used, reason = "tests: a scratch directory that fails is a failed test")]

use std::path::Path;
use tidy::finding::Finding;
use tidy::modules::{Room, arrows, circles};

/// The most files of a crate that may know each other.
const CIRCLES: &[(&str, usize)] = &[
    ("authority", 3),
    ("builtins", 2),
    ("http-client", 1),
    ("llm-worker", 9),
    ("pod", 6),
    ("provider", 1),
    ("session-store", 4),
    ("shell", 14),
    ("tools", 2),
    ("yoi", 18),
];

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn none(findings: &[Finding]) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn circles_of_files_are_small() {
    for (name, most) in CIRCLES {
        none(&circles(&root(), name, *most));
    }
}

mod seen_to_fail {
    use super::*;

    /// What is wrong with a crate `c` of these files.
    fn found(files: &[(&str, &str)], check: impl Fn(&Path) -> Vec<Finding>) -> String {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("crates/c/src").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(dir.path()).iter().map(|finding| format!("{finding}\n")).collect()
    }

    fn circle(files: &[(&str, &str)]) -> String {
        found(files, |root| circles(root, "c", 1))
    }

    #[test]
    fn two_files_that_name_each_other() {
        let a = ("a.rs", "use crate::b::{B, other::{self as o}};\nstruct A(B);");
        for b in ["use super::a::A;\nstruct B(A);", "struct B(crate::a::A);", "use crate::{a};\nfn f() { a::new() }"] {
            let said = circle(&[("lib.rs", "mod a;\nmod b;"), a, ("b.rs", b)]);
            assert!(said.contains("a circle of 2 files, 1 are the bound"), "{b}: {said}");
        }
        let unused =
            "use crate::a;\n// a::new()\nconst T: &str = \"a::new()\";\n#[cfg(test)]\nmod tests { use crate::a::A; }";
        assert_eq!(circle(&[("lib.rs", ""), a, ("b.rs", unused)]), "");
        assert_eq!(circle(&[("lib.rs", ""), a, ("b/tests.rs", "use crate::a::A; struct T(A);")]), "");
    }

    /// What is handed on belongs to the file it comes from; what the facade itself uses is its own.
    #[test]
    fn a_facade_is_no_circle() {
        let facade = "mod x;\nmod y;\npub use x::X;\npub(crate) use y::{Y as Z};";
        let (x, y) = (("r/x.rs", "pub struct X;"), ("r/y.rs", "use super::X;\npub struct Y(X);"));
        assert_eq!(circle(&[("lib.rs", "mod r;"), ("r/mod.rs", facade), x, y]), "");
        let used = format!("{facade}\npub fn f(_: Z) {{}}");
        let y = ("r/y.rs", "pub struct Y;\npub fn g() { super::f(Y) }");
        assert!(circle(&[("lib.rs", "mod r;"), ("r/mod.rs", &used), x, y]).contains("r/mod.rs\n  crates/c/src/r/y.rs"));
        let through = ("r/x.rs", "use crate::r::Z;\npub struct X(Z);");
        let y = ("r/y.rs", "use crate::r::X;\npub struct Y(X);");
        assert!(circle(&[("lib.rs", ""), ("r/mod.rs", facade), through, y]).contains("circle of 2"));
    }

    #[test]
    fn arrows_that_no_row_has_and_rows_without_an_arrow() {
        let files: &[(&str, &str)] = &[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
            ("a/mod.rs", "mod deep;\npub struct A(crate::b::B);"),
            ("a/deep.rs", "pub struct D(super::A);"),
            ("b.rs", "pub struct B;"),
        ];
        let with = |rows: &'static [Room]| found(files, |root| arrows(root, "c", rows));
        assert_eq!(with(&[Room { name: "c::a", may: &["b"] }, Room { name: "c::b", may: &[] }]), "");
        let none = with(&[Room { name: "c::a", may: &[] }, Room { name: "c::b", may: &["a"] }]);
        assert!(none.contains("`a` must not name `b`") && none.contains("does not name `a` any more"), "{none}");
        let deep = with(&[
            Room { name: "c::a", may: &["b"] },
            Room { name: "c::a::deep", may: &[] },
            Room { name: "c::b", may: &[] },
        ]);
        assert!(deep.contains("`a::deep` must not name `a`"), "{deep}");
        assert!(with(&[Room { name: "c::a", may: &["b"] }]).contains("is in no room of `c`"));
    }
}
