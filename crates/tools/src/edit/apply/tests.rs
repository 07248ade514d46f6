//! Replacements: what matches, what is refused, and what a file keeps.

use super::*;
use proptest::prelude::*;

fn edit(old: &str, new: &str) -> Replacement {
    Replacement {
        old: old.into(),
        new: new.into(),
        replace_all: false,
    }
}

fn all(old: &str, new: &str) -> Replacement {
    Replacement {
        replace_all: true,
        ..edit(old, new)
    }
}

fn applied(before: &[u8], edits: &[Replacement]) -> Result<String, EditProblemKind> {
    let done = apply(before, edits, &CancellationToken::new());
    done.map(|applied| applied.bytes.escape_ascii().to_string())
        .map_err(|problem| problem.why)
}

#[test]
fn edits_apply() {
    let table: &[(&str, &[u8], &[Replacement], &str)] = &[
        ("one", b"a b c", &[edit("b", "B")], "a B c"),
        ("to nothing", b"a b c", &[edit(" b", "")], "a c"),
        (
            "in order, on the result of the one before",
            b"a",
            &[edit("a", "b b"), all("b", "c")],
            "c c",
        ),
        (
            "all, from the left, without overlap",
            b"aaaaa",
            &[all("aa", "b")],
            "bba",
        ),
        ("not in what was put there", b"ab", &[all("a", "aa")], "aab"),
        (
            "latin-1 around",
            b"\xe4 x \xf6",
            &[edit("x", "y")],
            r"\xe4 y \xf6",
        ),
        (
            "shift-jis around",
            b"\x93\xfa\r\nx\r\n",
            &[edit("x", "y\nz")],
            r"\x93\xfa\r\ny\r\nz\r\n",
        ),
        (
            "utf-8 amid latin-1",
            "\u{e9} x".as_bytes(),
            &[edit("\u{e9} x", "y \u{e9}")],
            r"y \xc3\xa9",
        ),
        (
            "utf-8 that takes the latin-1 with it",
            b"x\xe4".trim_ascii(),
            &[edit("x", "y")],
            r"y\xe4",
        ),
        (
            "a real replacement character",
            "a\u{fffd}b".as_bytes(),
            &[edit("\u{fffd}", "\u{e9}")],
            r"a\xc3\xa9b",
        ),
        (
            "a byte order mark stays",
            b"\xef\xbb\xbfx",
            &[edit("x", "y")],
            r"\xef\xbb\xbfy",
        ),
        // Line ends: the file's, wherever the model wrote its own.
        (
            "crlf, match over lines",
            b"a\r\nb\r\nc\r\n",
            &[edit("a\nb", "x\ny\nz")],
            r"x\r\ny\r\nz\r\nc\r\n",
        ),
        (
            "crlf, new line ends only in new",
            b"a\r\nb\r\n",
            &[edit("a", "x\ny")],
            r"x\r\ny\r\nb\r\n",
        ),
        (
            "crlf, match ends before the line end",
            b"a\r\nb\r\n",
            &[edit("a", "x")],
            r"x\r\nb\r\n",
        ),
        (
            "crlf, match begins with a line end",
            b"a\r\nb\r\n",
            &[edit("\nb", "")],
            r"a\r\n",
        ),
        (
            "crlf, match ends with a line end",
            b"a\r\nb\r\n",
            &[edit("a\n", "")],
            r"b\r\n",
        ),
        (
            "crlf, only a line end",
            b"a\r\nb",
            &[edit("\n", "\n\n")],
            r"a\r\n\r\nb",
        ),
        (
            "crlf, written by the model too",
            b"a\r\nb\r\n",
            &[edit("a\r\nb", "x\r\ny")],
            r"x\r\ny\r\n",
        ),
        (
            "crlf, last line without end",
            b"a\r\nb",
            &[edit("b", "x\ny")],
            r"a\r\nx\r\ny",
        ),
        (
            "mixed ends, in the unix part",
            b"a\nb\r\nc\n",
            &[edit("c", "x\ny")],
            r"a\nb\r\nx\ny\n",
        ),
        (
            "mixed ends, in the dos part",
            b"a\nb\r\nc\n",
            &[edit("b", "x\ny")],
            r"a\nx\r\ny\r\nc\n",
        ),
        (
            "mixed ends, each its own",
            b"a\r\na\n",
            &[all("a", "x\ny")],
            r"x\r\ny\r\nx\ny\n",
        ),
        (
            "a lone carriage return is no line end",
            b"a\rb\r\n",
            &[edit("b", "c")],
            r"a\rc\r\n",
        ),
        (
            "unix file, the model writes crlf",
            b"a\nb\nc\n",
            &[edit("a\r\nb", "a\r\nB")],
            r"a\nB\nc\n",
        ),
        (
            "unix file, the model insists on crlf",
            b"a\n",
            &[edit("a", "b\r\nc")],
            r"b\r\nc\n",
        ),
    ];
    for (name, before, edits, want) in table {
        assert_eq!(applied(before, edits).as_deref(), Ok(*want), "{name}");
    }
}

#[test]
fn edits_that_do_not_fit_say_why() {
    let marked = |text: &str, wanted: &str| {
        EditProblemKind::Marked(Some(Nearest::Like {
            line: 1,
            text: text.into(),
            wanted: wanted.into(),
        }))
    };
    let ambiguous = |times, lines: &[usize]| EditProblemKind::Ambiguous {
        times,
        lines: lines.to_vec(),
    };
    let table: &[(&str, &[u8], Replacement, EditProblemKind)] = &[
        ("empty", b"a", edit("", "b"), EditProblemKind::Empty),
        ("same", b"a", edit("a", "a"), EditProblemKind::Same),
        (
            "absent",
            b"a",
            edit("zz", "b"),
            EditProblemKind::Absent(None),
        ),
        (
            "absent, with all",
            b"a",
            all("zz", "b"),
            EditProblemKind::Absent(None),
        ),
        // Bytes that are not UTF-8: neither matched by Read's mark nor joined by text in UTF-8.
        (
            "mark, latin-1",
            b"caf\xe9 note\n",
            edit("caf\u{fffd} note", "b"),
            marked("caf\\xe9 note", "caf\u{fffd} note"),
        ),
        (
            "mark, shift-jis",
            b"x\n\x93\xfa = 12;",
            edit("\u{fffd}\u{fffd} = 12;", "b"),
            {
                let near = Nearest::Like {
                    line: 2,
                    text: "\\x93\\xfa = 12;".into(),
                    wanted: "\u{fffd}\u{fffd} = 12;".into(),
                };
                EditProblemKind::Marked(Some(near))
            },
        ),
        (
            "latin-1, then utf-8",
            b"\xe4 x",
            edit("x", "\u{e4}"),
            EditProblemKind::Encoding,
        ),
        (
            "shift-jis, then utf-8",
            b"\x93\xfa x",
            edit("x", "\u{65e5}"),
            EditProblemKind::Encoding,
        ),
        (
            "utf-16, then utf-8",
            b"\xff\xfex\0",
            edit("x", "\u{65e5}"),
            EditProblemKind::Encoding,
        ),
        (
            "latin-1, then the mark",
            b"\xe4 x",
            edit("x", "\u{fffd}"),
            EditProblemKind::Encoding,
        ),
        ("twice", b"x\ny\nx\n", edit("x", "z"), ambiguous(2, &[1, 3])),
        (
            "twice, overlapping",
            b"\naaa",
            edit("aa", "b"),
            ambiguous(2, &[2, 2]),
        ),
        (
            "twice, crlf",
            b"x\r\ny\r\nx\r\n",
            edit("x\n", "z"),
            ambiguous(2, &[1, 3]),
        ),
    ];
    for (name, before, edit, want) in table {
        assert_eq!(
            applied(before, std::slice::from_ref(edit)).as_ref(),
            Err(want),
            "{name}"
        );
    }
    let many = "x\n".repeat(30);
    assert_eq!(
        applied(many.as_bytes(), &[edit("x", "y")]),
        Err(ambiguous(30, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    );
}

// One character to a megabyte, twenty times: refused before it is built.
#[test]
fn growth_is_bounded() {
    let edit = all("x", &"y\n".repeat(1 << 19));
    assert_eq!(
        applied("x".repeat(20).as_bytes(), std::slice::from_ref(&edit)),
        Err(EditProblemKind::TooLarge)
    );
    assert!(applied("x".repeat(9).as_bytes(), &[edit]).is_ok());
}

#[test]
fn a_later_edit_that_fails_is_named() {
    let problem = apply(
        b"a",
        &[edit("a", "b"), edit("a", "c")],
        &CancellationToken::new(),
    )
    .err()
    .unwrap();
    assert_eq!(
        (problem.edit, problem.of, problem.why.clone()),
        (2, 2, EditProblemKind::Absent(None))
    );
}

/// Few letters, so that matches and overlaps are frequent.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec!["a", "b", "\n", "\r\n", "\r", "ä"]),
        0..24,
    )
    .prop_map(|parts| parts.concat())
}

fn needle() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "\n", "ä"]), 1..4)
        .prop_map(|parts| parts.concat())
}

proptest! {
    // With one line end in the file, the standard library says what must come out.
    #[test]
    fn unix_files_agree_with_the_standard_library(before in text(), old in needle(), new in needle(), replace_all: bool) {
        let before = before.replace('\r', "");
        prop_assume!(old != new);
        let got = applied(before.as_bytes(), &[Replacement { old: old.clone(), new: new.clone(), replace_all }]);
        let times = (0..before.len()).filter(|at| before.as_bytes()[*at..].starts_with(old.as_bytes())).count();
        match got {
            Ok(after) => {
                prop_assert!(times == 1 || (times > 1 && replace_all));
                prop_assert_eq!(after, before.replace(&old, &new).as_bytes().escape_ascii().to_string());
            }
            Err(EditProblemKind::Absent(_)) => prop_assert_eq!(times, 0),
            Err(EditProblemKind::Ambiguous { .. }) => prop_assert!(times > 1 && !replace_all),
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    // Whatever the line ends are: what is before and after the one match comes out byte for byte, and the match
    // itself is `old` but for its line ends.
    #[test]
    fn nothing_outside_of_the_match_changes(before in text(), old in needle()) {
        let mark = "<<new>>";
        if let Ok(done) = apply(before.as_bytes(), &[edit(&old, mark)], &CancellationToken::new()) {
            let after = String::from_utf8(done.bytes).unwrap();
            let (head, tail) = after.split_once(mark).unwrap();
            prop_assert!(before.starts_with(head) && before.ends_with(tail));
            let gone = &before[head.len()..before.len() - tail.len()];
            let is_old_mac = !before.contains('\n');
            let gone = gone.replace("\r\n", "\n");
            prop_assert_eq!(if is_old_mac { gone.replace('\r', "\n") } else { gone }, old);
        }
    }

    // A file with CRLF throughout keeps it throughout.
    #[test]
    fn line_ends_are_kept(before in text(), old in needle(), new in needle()) {
        let before = before.replace('\r', "").replace('\n', "\r\n");
        prop_assume!(old != new && before.contains('\r'));
        if let Ok(done) = apply(before.as_bytes(), &[all(&old, &new)], &CancellationToken::new()) {
            let after = String::from_utf8(done.bytes).unwrap();
            let folded = before.replace("\r\n", "\n").replace(&old, &new);
            prop_assert_eq!(after, folded.replace('\n', "\r\n"));
        }
    }
}

// kimi-cli#2191, opencode#49600: the error showed the very text that had been searched for.
#[test]
fn what_only_looks_the_same_is_told_apart() {
    let table: &[(&str, &[u8], &str, &str)] = &[
        (
            "no-break space",
            "let\u{a0}b = 2;".as_bytes(),
            "let b = 2;",
            "U+00A0 U+0062 in the file, U+0020 U+0062 in `old`",
        ),
        (
            "quotes",
            "say(\u{201c}hello to all\u{201d})".as_bytes(),
            "say(\"hello to all\")",
            "U+201C U+0068 in the file, U+0022 U+0068 in `old`",
        ),
        (
            "decomposed",
            "cafe\u{301} au lait".as_bytes(),
            "caf\u{e9} au lait",
            "U+0065 U+0301 in the file, U+00E9 U+0020 in `old`",
        ),
        (
            "dash, second line",
            "a b\nc \u{2013} d".as_bytes(),
            "a b\nc - d",
            "U+2013 U+0020 in the file, U+002D U+0020 in `old`",
        ),
        (
            "latin-1",
            b"caf\xe9 au lait",
            "caf\u{fffd} au lait",
            "stands for bytes that are not UTF-8: no text matches them; line 1 is `caf\\xe9 au lait`",
        ),
    ];
    for (name, before, old, want) in table {
        let problem = apply(before, &[edit(old, "x")], &CancellationToken::new())
            .err()
            .unwrap();
        assert!(problem.to_string().contains(want), "{name}: {problem}");
    }
}
