//! What is told of files and directories that a session changed.

use super::*;

/// A change from one content to another; nothing stands for no file.
fn wrote(changes: &mut Changes, seq: u64, path: &str, before: &str, after: &str) {
    let digest = |text: &str| (!text.is_empty()).then(|| Digest::of(text.as_bytes()));
    let before = digest(before).map(|digest| Stored {
        digest,
        bytes: 1,
        gap: None,
        whole: None,
    });
    let path = path.to_owned();
    let after = digest(after).map(|digest| digest.to_string());
    changes.take(
        seq,
        0,
        &FileChanged {
            call: None,
            path,
            before,
            mode: None,
            after,
            made: None,
        }
        .into(),
    );
}

fn moved(changes: &mut Changes, from: &str, to: &str, made: Option<&str>) {
    let from = from.to_owned();
    let to = to.to_owned();
    let made = made.map(str::to_owned);
    changes.take(
        1,
        0,
        &DirectoryMoved {
            call: None,
            from,
            to,
            made,
        }
        .into(),
    );
}

fn files(changes: &Changes) -> Vec<(&str, usize)> {
    changes
        .files()
        .map(|file| (file.path.as_str(), file.steps.len()))
        .collect()
}

fn moves(changes: &Changes) -> Vec<(&str, &str)> {
    changes
        .moved()
        .iter()
        .map(|moved| (moved.from.as_str(), moved.to.as_str()))
        .collect()
}

#[test]
fn files_go_with_their_directory() {
    let mut changes = Changes::beside("Bash");
    for path in ["/w/open/x/f", "/w/open/x/deep/g", "/w/open/xy/h"] {
        wrote(&mut changes, 1, path, "", "1");
    }
    moved(
        &mut changes,
        "/w/open/x",
        "/w/pending/x",
        Some("/w/pending"),
    );
    moved(&mut changes, "/w/pending/x", "/w/closed/x", None);
    wrote(&mut changes, 2, "/w/closed/x/f", "1", "2");
    assert_eq!(
        files(&changes),
        [
            ("/w/closed/x/deep/g", 1),
            ("/w/closed/x/f", 2),
            ("/w/open/xy/h", 1)
        ]
    );
    assert_eq!(moves(&changes), [("/w/open/x", "/w/closed/x")]);
    assert_eq!(
        changes.moved()[0].made,
        [("/w/pending/x".to_owned(), "/w/pending".to_owned())]
    );
    // Back again, nothing is left of it but what was made; another time, it is a move like the first.
    moved(&mut changes, "/w/closed/x", "/w/open/x", None);
    assert_eq!(
        (moves(&changes), files(&changes)[1], changes.made().len()),
        (Vec::new(), ("/w/open/x/f", 2), 1)
    );
    moved(&mut changes, "/w/open/x", "/w/closed/x", None);
    assert_eq!(moves(&changes), [("/w/open/x", "/w/closed/x")]);
}

// Each case: what stands on the disk, and where files and moves are then.
#[test]
fn a_move_that_did_not_happen_is_none() {
    type Case<'a> = (&'a [&'a str], &'a str, &'a [(&'a str, &'a str)]);
    let cases: [Case<'_>; 4] = [
        (
            &["/w/closed/x"],
            "/w/closed/x/f",
            &[("/w/open/x", "/w/closed/x"), ("/w/open/y", "/w/pending/y")],
        ),
        // The newest of x, and the one before.
        (
            &["/w/pending/x"],
            "/w/closed/x/f",
            &[("/w/open/x", "/w/closed/x"), ("/w/open/y", "/w/pending/y")],
        ),
        (
            &["/w/open/x"],
            "/w/open/x/f",
            &[("/w/open/y", "/w/pending/y")],
        ),
        (
            &["/w/closed/x", "/w/open/y"],
            "/w/closed/x/f",
            &[("/w/open/x", "/w/closed/x")],
        ),
    ];
    for (disk, file, stand) in cases {
        let mut changes = Changes::beside("Bash");
        wrote(&mut changes, 1, "/w/open/x/f", "", "1");
        moved(&mut changes, "/w/open/x", "/w/pending/x", None);
        moved(&mut changes, "/w/pending/x", "/w/closed/x", None);
        moved(
            &mut changes,
            "/w/open/y",
            "/w/pending/y",
            Some("/w/pending"),
        );
        changes.settle(|path| disk.contains(&path));
        assert_eq!(
            (files(&changes)[0].0, &moves(&changes)[..]),
            (file, stand),
            "{disk:?}"
        );
    }
    // What goes on from where it stood says so, too.
    for other in [false, true] {
        let mut changes = Changes::beside("Bash");
        wrote(&mut changes, 1, "/w/open/x/f", "", "1");
        moved(
            &mut changes,
            "/w/open/x",
            "/w/pending/x",
            Some("/w/pending"),
        );
        match other {
            true => moved(&mut changes, "/w/open/x", "/w/closed/x", None),
            false => wrote(&mut changes, 2, "/w/open/x/f", "1", "2"),
        }
        let (file, steps) = if other {
            ("/w/closed/x/f", 1)
        } else {
            ("/w/open/x/f", 2)
        };
        assert_eq!(files(&changes), [(file, steps)]);
        assert_eq!(
            (moves(&changes).len(), changes.made().len()),
            (usize::from(other), 1)
        );
        assert_eq!(changes.files().next().unwrap().between, Between::Nothing);
    }
}

// A move that takes an earlier one back may itself be only meant.
#[test]
fn a_move_back_that_did_not_happen_leaves_the_first() {
    let mut changes = Changes::beside("Bash");
    wrote(&mut changes, 1, "/w/a/f", "", "1");
    moved(&mut changes, "/w/a", "/w/b", None);
    moved(&mut changes, "/w/b", "/w/a", None);
    assert_eq!(moves(&changes), []);
    changes.settle(|path| path == "/w/b");
    assert_eq!(
        (moves(&changes), files(&changes)),
        (vec![("/w/a", "/w/b")], vec![("/w/b/f", 1)])
    );
}

#[test]
fn what_something_else_changed_in_between_is_known() {
    let command = |changes: &mut Changes, seq: u64| changes.commands.push((seq, String::new()));
    type Case<'a> = (&'a [(u64, &'a str, &'a str)], Option<u64>, Between);
    let cases: [Case<'_>; 7] = [
        (&[(1, "", "1"), (5, "1", "2")], None, Between::Nothing),
        (&[(1, "", "1"), (5, "mine", "2")], None, Between::Other(5)),
        (&[(1, "", "1"), (5, "mine", "2")], Some(3), Between::Command),
        (
            &[(1, "", "1"), (5, "mine", "2")],
            Some(6),
            Between::Other(5),
        ),
        (
            &[(1, "", "1"), (5, "mine", "2"), (7, "other", "3")],
            Some(3),
            Between::Other(7),
        ),
        // An intent that was not relocated out: the file is as before it.
        (
            &[(1, "", "1"), (5, "1", "2"), (7, "1", "3")],
            None,
            Between::Nothing,
        ),
        (&[(1, "0", "1"), (5, "0", "2")], None, Between::Nothing),
    ];
    for (steps, ran, between) in cases {
        let mut changes = Changes::beside("Bash");
        for (seq, before, after) in steps {
            ran.filter(|ran| ran < seq && changes.commands.is_empty())
                .inspect(|ran| command(&mut changes, *ran));
            wrote(&mut changes, *seq, "/w/f", before, after);
        }
        assert_eq!(
            changes.files().next().unwrap().between,
            between,
            "{steps:?} {ran:?}"
        );
    }
}

// Somebody else moved it back in between, and both lives of a file are one.
#[test]
fn a_file_that_comes_to_a_place_it_had_been_to_is_one_file() {
    for (before, between) in [("1", Between::Nothing), ("mine", Between::Other(3))] {
        let mut changes = Changes::beside("Bash");
        wrote(&mut changes, 1, "/w/b/f", "", "1");
        wrote(&mut changes, 3, "/w/a/f", before, "2");
        moved(&mut changes, "/w/a", "/w/b", None);
        assert_eq!(files(&changes), [("/w/b/f", 2)]);
        assert_eq!(changes.files().next().unwrap().between, between);
    }
}

#[test]
fn what_was_made_goes_with_what_it_was_made_for() {
    let place = |path: &str| relocated(path, "/w/open/x", "/w/closed/x");
    assert_eq!(place("/w/open/x").as_deref(), Some("/w/closed/x"));
    assert_eq!(place("/w/open/x/a").as_deref(), Some("/w/closed/x/a"));
    assert_eq!(
        (place("/w/open"), place("/w/open/xy"), place("/w")),
        (None, None, None)
    );
    let made = |changes: &Changes| changes.files().next().unwrap().made.clone();
    let file = |before, after: Option<&str>, made: Option<&str>| {
        let after = after.map(str::to_owned);
        let made = made.map(str::to_owned);
        FileChanged {
            call: None,
            path: "/w/open/f".to_owned(),
            before,
            mode: None,
            after,
            made,
        }
    };
    let mut changes = Changes::beside("Bash");
    changes.take(1, 0, &file(None, Some("1"), Some("/w/open")).into());
    moved(&mut changes, "/w/open", "/w/was", None);
    assert_eq!(made(&changes).as_deref(), Some("/w/was"));
    // A file that was gone and comes again comes into what is there.
    let mut changes = Changes::beside("Bash");
    for (after, made) in [
        (Some("1"), Some("/w/open")),
        (None, None),
        (Some("2"), None),
    ] {
        changes.take(1, 0, &file(None, after, made).into());
    }
    assert_eq!(made(&changes), None);
}

// A full disk, or a kill between the record and the rename, left several intents in a row that changed nothing: the file
// was then said to be changed by somebody else, and undo skipped it.
#[test]
fn intents_that_changed_nothing_blame_nobody() {
    use FileStatus::{AsBefore, AsLeft, Changed as Other};
    // What each change found and wanted, what the file is now, and what that is.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, FileStatus, Between);
    let cases: [Case<'_>; 11] = [
        (&[("0", "1")], "1", AsLeft, Between::Nothing),
        (&[("0", "1")], "0", AsBefore, Between::Nothing),
        (
            &[("0", "1"), ("1", "2"), ("1", "3")],
            "1",
            AsLeft,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", "2"), ("1", "3"), ("1", "4"), ("1", "5")],
            "1",
            AsLeft,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", "2"), ("1", "3"), ("1", "4"), ("1", "5")],
            "5",
            AsLeft,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", ""), ("1", ""), ("1", "")],
            "1",
            AsLeft,
            Between::Nothing,
        ),
        (
            &[("", "1"), ("", "1"), ("", "2")],
            "",
            AsBefore,
            Between::Nothing,
        ),
        // Undos that were killed.
        (
            &[("0", "1"), ("1", "0"), ("1", "0"), ("1", "0")],
            "1",
            AsLeft,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", "2"), ("1", "3")],
            "2",
            Other,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", "2"), ("1", "3")],
            "9",
            Other,
            Between::Nothing,
        ),
        (
            &[("0", "1"), ("1", "2"), ("9", "3"), ("9", "4")],
            "9",
            AsLeft,
            Between::Other(3),
        ),
    ];
    for (steps, now, status, between) in cases {
        let mut changes = Changes::beside("Bash");
        for (seq, (found, after)) in (1..).zip(steps) {
            wrote(&mut changes, seq, "/w/f", found, after);
        }
        let file = changes.files().next().unwrap();
        let bytes = (!now.is_empty()).then_some(now.as_bytes());
        assert_eq!(
            (file.status(bytes), file.between),
            (status, between),
            "{steps:?}, now {now:?}"
        );
    }
}
