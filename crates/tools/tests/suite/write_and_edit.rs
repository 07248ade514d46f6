//! Write and Edit.

use crate::host::{FakeHost, Project, args, block_on, cancelled, context, failed, ok, words};
use authority::Access;
use llm_worker::tool::DirectoryMove;
use llm_worker::{ErrorKind, ToolOutput, ToolResult};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use tools::{Files, edit, glob, grep, list, read, write};

struct Session {
    project: Project,
    host: Arc<FakeHost>,
    live: Arc<Files>,
}

impl Session {
    fn new(files: &[(&str, &[u8])]) -> Self {
        Self::with(files, FakeHost::default(), Access::ReadWrite)
    }

    fn with(files: &[(&str, &[u8])], host: FakeHost, access: Access) -> Self {
        let project = Project::new(files);
        let live = Arc::new(Files::new(project.workspace(access)).with_remedies(words));
        Self {
            project,
            host: Arc::new(host),
            live,
        }
    }

    fn read(&self, path: &str) {
        ok(block_on(read::run(
            self.live.clone(),
            args(json!({"path": path})),
            context(&self.host),
        )));
    }

    fn write(&self, path: &str, content: &str) -> ToolResult {
        block_on(write::run(
            self.live.clone(),
            args(json!({"path": path, "content": content})),
            context(&self.host),
        ))
    }

    fn edit(&self, path: &str, edits: Value) -> ToolResult {
        block_on(edit::run(
            self.live.clone(),
            args(json!({"path": path, "edits": edits})),
            context(&self.host),
        ))
    }

    fn replace(&self, path: &str, old: &str, new: &str) -> ToolResult {
        self.edit(path, json!([{"old": old, "new": new}]))
    }

    fn told(&self) -> usize {
        self.host.told.lock().unwrap().len()
    }
}

const FIX: ErrorKind = ErrorKind::FixInput;

#[test]
fn a_file_is_created_with_its_directories() {
    let s = Session::new(&[]);
    let got = ok(s.write("a/b/c.txt", "one\ntwo"));
    assert_eq!(
        (got.summary.as_str(), s.project.get("a/b/c.txt").as_str()),
        ("a/b/c.txt: created, 2 lines", "one\\ntwo")
    );
    let told = s.host.told.lock().unwrap();
    let change = &told[0].change;
    assert_eq!(change.path, s.project.root().join("a/b/c.txt"));
    assert_eq!(
        (&change.before, change.mode, &told[0].held),
        (&None, None, &None)
    );
    assert_eq!(
        change.after,
        Some(blake3::hash(b"one\ntwo").to_hex().to_string())
    );
}

#[test]
fn a_directory_is_moved_with_all_it_holds_and_made_known_first() {
    let s = Session::new(&[("a/x/f", b"f"), ("a/x/deep/g", b"g"), ("b/taken/h", b"h")]);
    symlink("f", s.project.root().join("a/x/link")).unwrap();
    s.read("a/x/f");
    let at = |path: &str| {
        s.live
            .workspace()
            .inside(&s.project.root().join(path))
            .unwrap()
    };
    let go = |from: &str, to: &str, host: &Arc<FakeHost>| {
        block_on(tools::move_dir(&s.live, &at(from), &at(to), &context(host)))
    };
    ok(go("a/x", "b/x", &s.host).map(|()| ToolOutput::default()));
    let names = ["b/x/f", "b/x/deep/g", "b/x/link"];
    assert!(
        names
            .iter()
            .all(|name| s.project.root().join(name).exists())
            && !s.project.root().join("a/x").exists()
    );
    let moved = |from: &str, to: &str| {
        let path = |path: &str| s.project.root().join(path);
        DirectoryMove {
            from: path(from),
            to: path(to),
            made: None,
        }
    };
    assert_eq!(*s.host.moved.lock().unwrap(), [moved("a/x", "b/x")]);
    // A file that comes to the old place is another one.
    s.project.put("a/x/f", b"f");
    assert!(failed(s.write("a/x/f", "new"), FIX).contains("not been read since this pod started"));
    // What cannot be is told to nobody; what fails nevertheless is told back.
    for (from, to) in [("b/none", "b/y"), ("b/x", "b/taken")] {
        assert_eq!(go(from, to, &s.host).unwrap_err().kind, FIX, "{from}");
    }
    assert_eq!(s.host.moved.lock().unwrap().len(), 1);
    let racing = FakeHost {
        meanwhile: Some(|to| drop(std::fs::create_dir(to))),
        ..FakeHost::default()
    };
    let racing = Arc::new(racing);
    assert!(
        go("b/x", "b/y", &racing)
            .unwrap_err()
            .message
            .contains("it already exists")
    );
    assert_eq!(
        *racing.moved.lock().unwrap(),
        [moved("b/x", "b/y"), moved("b/y", "b/x")]
    );
    let refusing = Arc::new(FakeHost {
        refuses_changes: true,
        ..FakeHost::default()
    });
    assert_eq!(
        go("b/x", "b/z", &refusing).unwrap_err().message,
        "the journal is suspended"
    );
    assert!(s.project.root().join("b/x/f").exists());
}

// The host hears of the change while the file still is as it was.
#[test]
fn the_host_is_told_before_the_file_changes() {
    let s = Session::new(&[("f", b"old\n")]);
    std::fs::set_permissions(
        s.project.root().join("f"),
        std::fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    s.read("f");
    ok(s.write("f", "new\n"));
    ok(s.replace("f", "new", "newer"));
    assert_eq!(s.project.get("f"), "newer\\n");
    for (told, before) in s.host.told.lock().unwrap().iter().zip(["old\n", "new\n"]) {
        assert_eq!(told.held.as_deref(), Some(before.as_bytes()));
        assert_eq!(told.change.before.as_deref(), Some(before.as_bytes()));
        assert_eq!(told.change.mode, Some(0o640));
    }
    assert_eq!(s.told(), 2);
}

#[test]
fn what_was_not_seen_is_not_overwritten() {
    let s = Session::new(&[("f", b"old\n"), ("bin", b"a\0b")]);
    assert!(failed(s.write("f", "new"), FIX).contains("not been read since this pod started"));
    assert!(
        failed(s.replace("f", "old", "new"), FIX).contains("not been read since this pod started")
    );
    s.read("f");
    // Somebody else's change, of the same length and in the same instant.
    s.project.put("f", b"OLD\n");
    assert!(failed(s.write("f", "new"), FIX).contains("has changed"));
    assert!(failed(s.replace("f", "OLD", "new"), FIX).contains("has changed"));
    assert_eq!((s.project.get("f").as_str(), s.told()), ("OLD\\n", 0));
    s.read("f");
    ok(s.replace("f", "OLD", "new"));
    // What it wrote itself, it knows; and a touched file is the same file.
    s.project.put("f", b"new\n");
    ok(s.write("f", "newest\n"));
    failed(s.write("bin", "text"), FIX);
}

#[test]
fn an_unchanged_file_is_left_alone() {
    let s = Session::new(&[("f", b"same\n")]);
    assert!(ok(s.write("f", "same\n")).summary.contains("unchanged"));
    assert_eq!(s.told(), 0);
    ok(s.write("f", "other\n"));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let s = Session::new(&[("dir/x", b"x"), ("big", &vec![b'x'; 11 << 20])]);
    symlink("/nonexistent-for-tests/x", s.project.root().join("out")).unwrap();
    let huge = "x".repeat((10 << 20) + 1);
    let table = [
        ("dir", "x", FIX, "directory"),
        ("dir/x/y", "x", FIX, "not a directory"),
        ("big", "x", FIX, "too large"),
        ("new", &huge, FIX, "more than"),
        ("../f", "x", ErrorKind::Denied, "; try AddWriteDir("),
        (
            "out",
            "x",
            ErrorKind::Denied,
            "/nonexistent-for-tests/x is outside",
        ),
    ];
    for (path, content, kind, says) in table {
        let message = failed(s.write(path, content), kind);
        assert!(message.contains(says), "{path}: {message}");
    }
    let names = s.project.names();
    assert_eq!(names, ["big", "dir", "out", "x"]);

    let s = Session::with(&[("f", b"x")], FakeHost::default(), Access::Read);
    assert!(
        failed(s.write("f", "y"), ErrorKind::Denied).ends_with("in this run; try LeaveReadOnly")
    );
    assert!(
        failed(s.replace("f", "x", "y"), ErrorKind::Denied)
            .ends_with("in this run; try LeaveReadOnly")
    );
}

// The journal refuses: nothing changes, nothing is left behind, and the file may be tried again.
#[test]
fn a_refused_record_leaves_no_trace() {
    let s = Session::with(
        &[("f", b"old\n")],
        FakeHost {
            refuses_changes: true,
            ..FakeHost::default()
        },
        Access::ReadWrite,
    );
    s.read("f");
    failed(s.replace("f", "old", "new"), ErrorKind::Unavailable);
    failed(s.write("f", "new"), ErrorKind::Unavailable);
    failed(s.write("g", "new"), ErrorKind::Unavailable);
    assert_eq!(
        (s.project.get("f").as_str(), s.project.names()),
        ("old\\n", vec!["f".to_owned()])
    );
}

// Somebody saves the file while the change is recorded: written in place, renamed over it, removed, or created.
#[test]
fn what_somebody_saves_meanwhile_survives() {
    type Theirs = (fn(&Path), &'static [&'static str]);
    let theirs: [Theirs; 3] = [
        (|path| std::fs::write(path, "theirs\n").unwrap(), &["f"]),
        (
            |path| {
                // As long as it was, and as old.
                let modified = std::fs::metadata(path).unwrap().modified().unwrap();
                let beside = path.with_extension("theirs");
                std::fs::write(&beside, "OLD\n").unwrap();
                std::fs::File::open(&beside)
                    .unwrap()
                    .set_modified(modified)
                    .unwrap();
                std::fs::rename(beside, path).unwrap();
            },
            &["f"],
        ),
        (|path| std::fs::remove_file(path).unwrap(), &[]),
    ];
    for (n, (meanwhile, names)) in theirs.into_iter().enumerate() {
        for edits in [true, false] {
            let host = FakeHost {
                meanwhile: Some(meanwhile),
                ..FakeHost::default()
            };
            let s = Session::with(&[("f", b"old\n")], host, Access::ReadWrite);
            s.read("f");
            let message = failed(
                if edits {
                    s.replace("f", "old", "new")
                } else {
                    s.write("f", "new\n")
                },
                FIX,
            );
            assert!(
                message.contains("has changed meanwhile; read it again"),
                "{n}: {message}"
            );
            assert_eq!(
                (s.project.names(), s.told()),
                (names.iter().map(ToString::to_string).collect(), 1),
                "{n}"
            );
            if !names.is_empty() {
                assert_eq!(s.project.get("f"), ["theirs\\n", "OLD\\n"][n]);
                assert!(
                    failed(s.write("f", "new\n"), FIX).contains("has changed since it was read"),
                    "{n}"
                );
            }
        }
    }
    let host = FakeHost {
        meanwhile: Some(|path| std::fs::write(path, "theirs\n").unwrap()),
        ..FakeHost::default()
    };
    let s = Session::with(&[], host, Access::ReadWrite);
    assert!(
        failed(s.write("f", "mine\n"), FIX).contains("it has changed meanwhile; read it again")
    );
    assert_eq!(
        (s.project.get("f").as_str(), s.project.names()),
        ("theirs\\n", vec!["f".to_owned()])
    );
}

// For features with files of their own: told like any change, and what somebody saves at that moment stays.
#[test]
fn a_file_is_removed_as_it_was_read() {
    let removed = |s: &Session| {
        let at = s.live.workspace().inside(Path::new("f")).unwrap();
        let cx = context(&s.host);
        let before = s.live.before(&at, &cx).unwrap().unwrap();
        block_on(tools::remove(&s.live, &at, before, &cx))
    };
    let s = Session::new(&[("f", b"old\n")]);
    removed(&s).unwrap();
    assert_eq!((s.project.names(), s.told()), (Vec::new(), 1));
    let told = s.host.told.lock().unwrap();
    let change = &told[0].change;
    let held = &told[0].held;
    assert_eq!(
        (change.before.as_deref(), &change.after, held.as_deref()),
        (Some(&b"old\n"[..]), &None, Some(&b"old\n"[..]))
    );
    let host = FakeHost {
        meanwhile: Some(|path| std::fs::write(path, "theirs\n").unwrap()),
        ..FakeHost::default()
    };
    let s = Session::with(&[("f", b"old\n")], host, Access::ReadWrite);
    assert_eq!(removed(&s).unwrap_err().kind, FIX);
    assert_eq!(s.project.get("f"), "theirs\\n");
    let host = FakeHost {
        refuses_changes: true,
        ..FakeHost::default()
    };
    let s = Session::with(&[("f", b"old\n")], host, Access::ReadWrite);
    assert_eq!(removed(&s).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(s.project.names(), ["f"]);
}

#[test]
fn a_cancelled_change_does_not_happen() {
    let s = Session::new(&[("f", b"old\n")]);
    s.read("f");
    let edit = edit::run(
        s.live.clone(),
        args(json!({"path": "f", "edits": [{"old": "old", "new": "new"}]})),
        cancelled(),
    );
    failed(block_on(edit), ErrorKind::Cancelled);
    failed(
        block_on(write::run(
            s.live.clone(),
            args(json!({"path": "g", "content": ""})),
            cancelled(),
        )),
        ErrorKind::Cancelled,
    );
    assert_eq!(s.project.names(), ["f"]);
}

/// A person is asked about a call and sees its change first: what is shown is what the call then does, or why it fails.
#[test]
fn a_preview_shows_what_the_call_does() {
    let s = Session::new(&[("f", b"a\r\nb\r\n"), ("unread", b"x\n")]);
    s.read("f");
    let cancel = tokio_util::sync::CancellationToken::new();
    let edit = |path: &str, old: &str| {
        let edits = json!([{"old": old, "new": "c\nd"}]);
        edit::preview(
            &s.live,
            &args(json!({"path": path, "edits": edits})),
            &cancel,
        )
    };
    let write = |path: &str, content: &str| {
        write::preview(
            &s.live,
            &args(json!({"path": path, "content": content})),
            &cancel,
        )
    };
    assert_eq!(
        edit("f", "b").unwrap().diff,
        "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n"
    );
    assert_eq!(write("new", "x\n").unwrap().diff, "@@ -0,0 +1,1 @@\n+x\n");
    assert_eq!(write("f", "a\n").unwrap().diff, "@@ -1,2 +1,1 @@\n a\n-b\n");
    assert_eq!(write("unread", "x\n").unwrap().diff, "");
    for refused in [
        edit("f", "absent"),
        edit("unread", "x"),
        edit("none", "x"),
        write("unread", "y"),
        write("/etc/passwd", "y"),
    ] {
        refused.unwrap_err();
    }
    assert_eq!(s.project.names(), ["f", "unread"]);
    let before = write("f", "z\n").unwrap();
    ok(s.write("f", "z\n"));
    assert_eq!(before.diff, "@@ -1,2 +1,1 @@\n-a\n-b\n+z\n");
}

#[test]
fn mode_and_links_are_kept() {
    let s = Session::new(&[("run.sh", b"#!/bin/sh\r\necho 1\r\n"), ("real/f", b"old\n")]);
    let script = s.project.root().join("run.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("real/f", s.project.root().join("link")).unwrap();
    s.read("run.sh");
    s.read("link");
    ok(s.edit(
        "run.sh",
        json!([{"old": "#!/bin/sh\necho 1", "new": "#!/bin/sh\nset -e\necho 2"}]),
    ));
    assert_eq!(
        s.project.get("run.sh"),
        "#!/bin/sh\\r\\nset -e\\r\\necho 2\\r\\n"
    );
    assert_eq!(std::fs::metadata(&script).unwrap().mode() & 0o7777, 0o4751);
    // By one name it was read, by the other it is changed.
    ok(s.replace("real/f", "old", "new"));
    let got = ok(s.replace("link", "new", "newer"));
    assert_eq!(
        (got.summary.as_str(), s.project.get("real/f").as_str()),
        ("real/f: 1 replacement", "newer\\n")
    );
    assert!(s.project.root().join("link").is_symlink());
}

#[test]
fn edits_are_all_or_nothing() {
    let s = Session::new(&[("f", b"a\nb\nc\n")]);
    s.read("f");
    let edits = json!([{"old": "a", "new": "A"}, {"old": "zzz", "new": "Z"}]);
    assert!(failed(s.edit("f", edits), FIX).contains("edit 2 of 2"));
    assert_eq!(s.project.get("f"), "a\\nb\\nc\\n");
    for (edits, says) in [
        (json!([]), "0 given"),
        (json!([{"old": "b", "new": "b"}]), "the same"),
        (json!([{"old": "", "new": "b"}]), "empty"),
        (
            json!(vec![json!({"old": "a", "new": "b"}); 101]),
            "101 given",
        ),
    ] {
        let message = failed(s.edit("f", edits), FIX);
        assert!(message.contains(says), "{message}");
    }
    failed(s.replace("absent", "a", "b"), FIX);
    failed(s.replace(".", "a", "b"), FIX);
    assert_eq!(s.told(), 0);

    let edits = json!([{"old": "a", "new": "x x"}, {"old": "x", "new": "y", "replace_all": true}]);
    let got = ok(s.edit("f", edits));
    assert_eq!(got.summary, "f: 3 replacements");
    assert_eq!(got.content, "@@ -1,3 +1,3 @@\n-a\n+y y\n b\n c");
}

// Calls of one answer run together: without taking turns, the later rename would undo the earlier one.
#[test]
fn two_edits_of_one_file_at_once_both_hold() {
    let s = Session::new(&[("f", b"a\nb\n")]);
    s.read("f");
    block_on(async {
        let edit = |old: &str| {
            let call =
                args(json!({"path": "f", "edits": [{"old": old, "new": old.to_uppercase()}]}));
            edit::run(s.live.clone(), call, context(&s.host))
        };
        let (one, two) = tokio::join!(edit("a"), edit("b"));
        ok(one);
        ok(two);
    });
    assert_eq!(s.project.get("f"), "A\\nB\\n");
}

// kimi-cli#2191, hermes#35278: Write took the byte order mark and CRLF away without a word, as Read shows neither.
#[test]
fn write_keeps_what_read_does_not_show_or_says_what_it_changes() {
    let table: [(&[u8], &str, &[u8], &str); 10] = [
        (
            b"\xef\xbb\xbfa\n",
            "b\n",
            b"\xef\xbb\xbfb\n",
            "1 line, byte order mark kept",
        ),
        (
            b"\xef\xbb\xbfa\n",
            "\u{feff}b\n",
            b"\xef\xbb\xbfb\n",
            "1 line",
        ),
        (
            b"a\r\nb\r\n",
            "a\nc\n",
            b"a\r\nc\r\n",
            "2 lines, CRLF line ends kept",
        ),
        (
            b"\xef\xbb\xbfa\r\n",
            "b\n",
            b"\xef\xbb\xbfb\r\n",
            "1 line, byte order mark kept, CRLF line ends kept",
        ),
        (b"a\r\nb\r\n", "c", b"c", "1 line"),
        (
            b"a\r\nb\n",
            "a\nc\n",
            b"a\nc\n",
            "2 lines, LF line ends instead of mixed",
        ),
        (
            b"a\n",
            "b\r\n",
            b"b\r\n",
            "1 line, CRLF line ends instead of LF",
        ),
        (b"a\rb\r", "a\nc\n", b"a\rc\r", "2 lines, CR line ends kept"),
        (b"caf\xe9 is here\n", "tea\n", b"tea\n", "1 line"),
        (
            b"caf\xe9 is here\n",
            "\u{e9}\n",
            b"\xc3\xa9\n",
            "1 line, in UTF-8, which the file was not before",
        ),
    ];
    for (before, content, after, said) in table {
        let s = Session::new(&[("f", before)]);
        s.read("f");
        assert_eq!(
            ok(s.write("f", content)).summary,
            format!("f: replaced, {said}")
        );
        assert_eq!(
            std::fs::read(s.project.root().join("f")).unwrap(),
            after,
            "{said}"
        );
        // What undo restores are the bytes.
        assert_eq!(
            s.host.told.lock().unwrap()[0].change.before.as_deref(),
            Some(before),
            "{said}"
        );
    }
    let s = Session::new(&[("f", b"caf\xe9 is here\n"), ("g", b"a\r\n")]);
    s.read("f");
    s.read("g");
    assert!(
        failed(s.write("f", "caf\u{fffd} was here\n"), FIX)
            .contains("bytes of the file that are not UTF-8")
    );
    assert!(ok(s.write("g", "a\n")).summary.contains("unchanged"));
    assert_eq!(s.told(), 0);
    // What Read cannot show is named here, too.
    s.project.put("u", b"\xff\xfea\0\n\0");
    for refused in [s.replace("u", "a", "b"), s.write("u", "b")] {
        assert!(failed(refused, FIX).contains("u is UTF-16 text (Bash: iconv -f UTF-16)"));
    }
    s.project.put("u", b"\xff\xfe\0\0a\0\0\0");
    assert!(failed(s.write("u", "b"), FIX).contains("u is UTF-32 text"));
}

/// The second byte of a character of Shift-JIS, GBK or Big5 may be that of a letter: an edit of this letter changed the
/// character. In a text of Latin-1 a letter stands behind one with an accent.
#[test]
fn an_edit_changes_whole_characters_of_any_encoding() {
    type Row<'a> = (&'a [u8], &'a str, &'a str, Result<&'a [u8], &'a str>);
    let table: [Row<'_>; 8] = [
        // Shift-JIS: 0x83 0x58 is one character, 0x95 0x5c another one.
        (b"\x83\x58 = X\n", "X", "Y", Ok(b"\x83\x58 = Y\n")),
        (b"\x83\x58\n", "X", "Y", Err("does not occur")),
        (b"\x95\x5c \\n", "\\n", "Y", Ok(b"\x95\x5c Y")),
        (b"a\x95\x5c\n", "a", "b", Ok(b"b\x95\x5c\n")),
        // GBK, in lines that end in CRLF.
        (
            b"a\r\n\x88\x41\r\nA\r\n",
            "A\n",
            "B\n",
            Ok(b"a\r\n\x88\x41\r\nB\r\n"),
        ),
        // Latin-1.
        (b"caf\xe9 \xe9t\xe9\n", "t", "T", Ok(b"caf\xe9 \xe9T\xe9\n")),
        // Lines that end as on old Macs.
        (b"a\rb\rc\r", "b\nc", "x\ny", Ok(b"a\rx\ry\r")),
        (b"a\rb\r", "a\r\n", "x\r\n", Ok(b"x\rb\r")),
    ];
    for (before, old, new, after) in table {
        let s = Session::new(&[("f", before)]);
        s.read("f");
        let done = s.replace("f", old, new);
        let name = String::from_utf8_lossy(before);
        match after {
            Ok(after) => {
                ok(done);
                assert_eq!(
                    std::fs::read(s.project.root().join("f")).unwrap(),
                    after,
                    "{name}"
                );
            }
            Err(says) => assert!(failed(done, FIX).contains(says), "{name}"),
        }
    }
}

// zeph#5410, opencode#32223: Write created a directory called `~` in the project.
#[test]
fn a_path_in_another_notation_is_refused_with_the_one_that_was_meant() {
    let s = Session::new(&[
        ("src/f", b"x"),
        ("'really'", b"x"),
        ("a\\b", b"x"),
        ("~/there", b"x"),
    ]);
    let home = s
        .project
        .workspace(Access::ReadWrite)
        .with_home(Some("/h/ann".into()));
    let root = home.cwd().display().to_string();
    let live = Arc::new(Files::new(home.clone()));
    let search = Arc::new(tools::Search::new(home));
    let table = [
        ("~/notes.txt", "/h/ann/notes.txt"),
        ("~", "/h/ann"),
        ("$HOME/x", "/h/ann/x"),
        ("${HOME}/x", "/h/ann/x"),
        ("~bob/x", &format!("/{}/bob/x", "home")),
        ("$PWD/x", &format!("{root}/x")),
        ("file:///x/y%20z", "/x/y z"),
        ("file://localhost/x", "/x"),
        ("\"src/f\"", "src/f"),
        ("'src/new'", "src/new"),
        ("`src/f`", "src/f"),
        (" src/f\n", "src/f"),
        ("src/f/", "src/f"),
        ("new/", "new"),
        ("C:\\x\\y", "/x/y"),
        ("src\\f", "src/f"),
        ("my\\ file", "my file"),
        ("\"~/x\"", "/h/ann/x"),
        ("local://x.log", "x.log"),
        ("@src/f", "src/f"),
    ];
    let before = s.project.names();
    for (path, meant) in table {
        let run = |tool: &str| {
            let cx = context(&s.host);
            match tool {
                "Read" => block_on(read::run(live.clone(), args(json!({"path": path})), cx)),
                "Write" => block_on(write::run(
                    live.clone(),
                    args(json!({"path": path, "content": "x"})),
                    cx,
                )),
                "Edit" => {
                    let edits = json!([{"old": "x", "new": "y"}]);
                    block_on(edit::run(
                        live.clone(),
                        args(json!({"path": path, "edits": edits})),
                        cx,
                    ))
                }
                "Glob" => block_on(glob::run(
                    search.clone(),
                    args(json!({"path": path, "pattern": "*"})),
                    cx,
                )),
                "Grep" => block_on(grep::run(
                    search.clone(),
                    args(json!({"path": path, "pattern": "x"})),
                    cx,
                )),
                _ => block_on(list::run(search.clone(), args(json!({"path": path})), cx)),
            }
        };
        for tool in ["Read", "Write", "Edit", "Glob", "Grep", "List"] {
            // What is there under this very name, is meant.
            if path == "~" && tool != "Write" && tool != "Edit" && tool != "Read" {
                ok(run(tool));
                continue;
            }
            let message = failed(run(tool), FIX);
            let says = path == "~" && message.contains("is a directory");
            assert!(
                says || message.contains(&format!("did you mean `{meant}`?")),
                "{tool} {path}: {message}"
            );
        }
    }
    assert_eq!(s.project.names(), before);
    for path in ["'really'", "a\\b", "~/there"] {
        ok(block_on(read::run(
            live.clone(),
            args(json!({"path": path})),
            context(&s.host),
        )));
        ok(block_on(write::run(
            live.clone(),
            args(json!({"path": path, "content": "y"})),
            context(&s.host),
        )));
    }
    for path in ["src/", "./", "/", "src//"] {
        let listed = block_on(list::run(
            search.clone(),
            args(json!({"path": path})),
            context(&s.host),
        ));
        assert!(
            !listed.is_err_and(|error| error.message.contains("did you mean")),
            "{path}"
        );
    }
}
