//! Trees, files and indexes as nobody wants them: bounded, left out with a reason, or built again; never a panic.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a directory that fails is a failed test"
)]

mod support;

use knowledge::{ErrorKind, FilesystemLimits};
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use support::{Project, tables, with_secret};

#[test]
fn what_is_no_text_of_the_project_is_in_no_index() {
    let mut project = Project::new();
    project.limits = FilesystemLimits {
        file_bytes: 10_000,
        ..FilesystemLimits::USUAL
    };
    project.write("a.txt", "canary");
    project.write(".env", "canary");
    project.write("keys/server.pem", "canary");
    project.write(".gitignore", "secret/\n*.log\n");
    project.write("secret/a.txt", "canary");
    project.write("b.log", "canary");
    project.write(".git/config", "canary");
    project.write("latin1.txt", b"canary caf\xe9");
    project.write("binary", b"canary\0");
    project.write("long.txt", "canary ".repeat(2000));
    project.write("exact.txt", format!("{:10000}", "exactly"));
    project.write("bom.md", "\u{feff}# Titled\n\nordered");
    mknodat(
        CWD,
        project.root().join("fifo"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    fs::write(
        project.root().join(OsStr::from_bytes(b"n\xffame.txt")),
        "odd name",
    )
    .unwrap();
    let deep = format!("{}/x.txt", "d/".repeat(150));
    project.write(&deep, "canary");
    let report = project.sync();
    let skipped = [
        ("not_text", 2),
        ("secret", 2),
        ("too_long", 1),
        ("unreadable", 1),
    ];
    assert_eq!(report.skipped, BTreeMap::from(skipped));
    assert_eq!(project.found("canary"), ["a.txt"]);
    assert_eq!(project.found("odd"), ["n\\xffame.txt"]);
    assert_eq!(project.found("exactly"), ["exact.txt"]);
    let titled = project.found("titled");
    assert_eq!(titled, ["bom.md"]);
    // A name that is a secret only now hides what the index still has.
    let hidden = with_secret(project.index_dir(), "a.txt");
    let query = knowledge::SearchQuery {
        text: "canary".to_owned(),
        limit: 5,
        ..Default::default()
    };
    let shown = project.reader().search(&query).unwrap();
    assert_eq!(hidden.read().unwrap().search(&query).unwrap(), []);
    let refused = hidden.read().unwrap().get(&shown[0].document).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::FixInput);
}

#[test]
fn a_scan_has_bounds() {
    let mut project = Project::new();
    for n in 0..30 {
        project.write(&format!("{n:02}.txt"), format!("number{n} {:100}", ""));
    }
    project.limits.entries = 10;
    let report = project.sync();
    assert_eq!((report.added, report.skipped["too_many"]), (10, 1));
    project.limits = FilesystemLimits {
        total_bytes: 1000,
        ..FilesystemLimits::USUAL
    };
    let report = project.sync();
    assert_eq!((report.removed, report.skipped["too_many"]), (1, 21));
}

/// Files that are no text cost nothing of the bound of bytes: a tree of binary files was read without an end.
#[test]
fn what_is_no_text_counts_to_the_bytes_of_a_scan() {
    let mut project = Project::new();
    for n in 0..8 {
        project.write(&format!("{n}"), format!("{:300}\0", "binary"));
    }
    project.limits.total_bytes = 1000;
    let report = project.sync();
    let skipped = [("not_text", 3), ("too_many", 5)];
    assert_eq!(report.skipped, BTreeMap::from(skipped));
}

#[test]
fn one_long_line_is_found_in_pieces() {
    let project = Project::new();
    let line = "x".repeat(3_000_000) + " needle " + &"y".repeat(3_000_000);
    project.write("line.txt", &line);
    project.sync();
    let reader = project.reader();
    let query = knowledge::SearchQuery {
        text: "needle".to_owned(),
        limit: 5,
        ..Default::default()
    };
    let hits = reader.search(&query).unwrap();
    assert_eq!(hits.len(), 1);
    assert!(hits[0].text.len() < 3000);
    assert_eq!(reader.get(&hits[0].chunk).unwrap().0.text, line);
}

#[test]
fn an_index_that_cannot_be_used_is_built_again_and_said() {
    let project = Project::new();
    for n in 0..200 {
        project.write(
            &format!("{n}.md"),
            format!("# Page {n}\n\n{}", "some words of it\n".repeat(50)),
        );
    }
    project.sync();
    let whole = tables(&project.file());
    let edit = |sql: &str| {
        Connection::open(project.file())
            .unwrap()
            .execute_batch(sql)
            .unwrap()
    };
    let bytes = |at: u64, bytes: &[u8]| {
        let mut file = File::options().write(true).open(project.file()).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(bytes).unwrap();
    };
    let damage: [(&str, &dyn Fn()); 6] = [
        ("no database", &|| {
            fs::write(project.file(), "not a database at all").unwrap()
        }),
        ("empty", &|| fs::write(project.file(), "").unwrap()),
        ("another program's", &|| edit("PRAGMA application_id = 7")),
        ("another version", &|| edit("PRAGMA user_version = 900")),
        ("a table is gone", &|| edit("DROP TABLE terms")),
        ("zeros", &|| bytes(4096, &[0; 200_000])),
    ];
    for (what, damage) in damage {
        damage();
        let read = project.index().read();
        let searched = read.and_then(|reader| {
            reader.sources()?;
            reader.search(&knowledge::SearchQuery {
                text: "words".to_owned(),
                limit: 5,
                ..Default::default()
            })
        });
        assert_eq!(searched.unwrap_err().kind(), ErrorKind::Damaged, "{what}");
        assert_eq!(
            project.index().check().unwrap_err().kind(),
            ErrorKind::Damaged,
            "{what}"
        );
        assert!(project.sync().rebuilt.is_some(), "{what}");
        project.index().check().unwrap();
        assert_eq!(tables(&project.file()), whole, "{what}");
    }
    edit("UPDATE chunks SET text = text || '.' WHERE id = 3");
    let found = project.index().check().unwrap_err();
    assert!(found.to_string().contains("chunk 3"), "{found}");
    edit("DELETE FROM terms WHERE rowid = 3");
    assert!(project.index().check().is_err());
    fs::remove_file(project.file()).unwrap();
    assert_eq!(
        project.index().read().unwrap_err().kind(),
        ErrorKind::Missing
    );
}
