//! What a line looks like, and what may not become one.

use serde_json::value::RawValue;
use session_store::{ErrorKind, MAX_BATCH_RECORDS, MAX_LINE, Reader, Refusal};

use crate::scene::{Notes, Raw, Scene, append, notes, shown, texts};

const GOLDEN: &str = concat!(
    r#"{"c":"9aa24073","n":"000000aa","p":"00000000","e":     1,"q":           1,"d":           0,"b":    0,"t":1790000000000001,"k":"segment","v":1,"format":1,"session":"s-1"}"#,
    "\n",
    r#"{"c":"56a70269","n":"00000099","p":"9aa24073","e":     1,"q":           2,"d":           0,"b":    0,"t":1790000000000001,"k":"note","v":1,"text":"one"}"#,
    "\n",
    r#"{"c":"21c1cf37","n":"00000099","p":"56a70269","e":     1,"q":           3,"d":           2,"b":    1,"t":1790000000000002,"k":"note","v":1,"text":"two"}"#,
    "\n",
    r#"{"c":"8a607905","n":"0000009e","p":"21c1cf37","e":     1,"q":           4,"d":           2,"b":    0,"t":1790000000000002,"k":"note","v":1,"text":"three ü"}"#,
    "\n",
);

/// Readers in other languages are written against these bytes.
#[test]
fn the_bytes_of_a_log_are_pinned() {
    let scene = Scene::with(&[&["one"], &["two", "three ü"]]);
    let log = std::fs::read_to_string(scene.log()).unwrap();
    assert_eq!(log, GOLDEN);
}

#[test]
fn lines_are_plain_json_in_fixed_columns() {
    let scene = Scene::with(&[&["one"], &["two", "three"]]);
    for (line, (seq, left, durable)) in
        shown(&scene.dir)
            .iter()
            .zip([(1, 0, 0), (2, 0, 0), (3, 1, 2), (4, 0, 2)])
    {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["q"], seq);
        assert_eq!(value["b"], left);
        assert_eq!(value["d"], durable);
        assert_eq!(
            u32::from_str_radix(value["n"].as_str().unwrap(), 16).unwrap() as usize,
            line.len() + 1
        );
        assert_eq!(
            u32::from_str_radix(&line[6..14], 16).unwrap(),
            crc32c::crc32c(&line.as_bytes()[15..])
        );
        assert!(line[127..].starts_with("note\"") || line[127..].starts_with("segment\""));
    }
}

#[test]
fn what_cannot_be_a_line_is_refused_alone() {
    let scene = Scene::new();
    let opened = scene.create();
    let raw = |kind, body: &str| {
        let body = RawValue::from_string(body.to_owned()).unwrap();
        opened
            .journal
            .append(Raw(kind, body))
            .wait()
            .map(drop)
            .map_err(|refused| {
                assert!(refused.batch.is_some());
                refused.why
            })
    };
    let cases = [
        ("a line break", raw("note", "{\"x\":\n1}"), ErrorKind::Bug),
        ("no object", raw("note", "[1]"), ErrorKind::Bug),
        ("a kind in capitals", raw("Note", "{}"), ErrorKind::Bug),
        ("no kind", raw("", "{}"), ErrorKind::Bug),
    ];
    for (name, answer, kind) in cases {
        assert_eq!(answer.unwrap_err().kind(), kind, "{name}");
    }
    let many = |texts: Vec<String>| opened.journal.append(Notes(texts)).wait().unwrap_err().why;
    let cases = [
        ("no record", many(Vec::new()), ErrorKind::Bug),
        (
            "a line too long",
            many(vec!["x".repeat(MAX_LINE)]),
            ErrorKind::FixInput,
        ),
        (
            "too many records",
            many(vec![String::new(); MAX_BATCH_RECORDS + 1]),
            ErrorKind::FixInput,
        ),
        (
            "too many bytes",
            many(vec!["x".repeat(MAX_LINE / 2); 40]),
            ErrorKind::FixInput,
        ),
    ];
    for (name, why, kind) in cases {
        assert_eq!(why.kind(), kind, "{name}");
        assert!(
            matches!(why, Refusal::Encode(_) | Refusal::TooLarge(_)),
            "{name}: {why}"
        );
    }
    assert!(!opened.journal.suspended());
    assert_eq!(raw("note", "{\"text\":\"fits\"}"), Ok(()));
    append(&opened, &["and goes on"]).unwrap();
    assert_eq!(texts(&scene.dir), ["fits", "and goes on"]);
}

#[test]
fn one_letter_keys_belong_to_the_header() {
    struct Letter(&'static str);
    impl session_store::Records for Letter {
        fn encode(
            &self,
            f: &mut session_store::Frames<'_>,
        ) -> Result<(), session_store::EncodeError> {
            let inner = std::collections::BTreeMap::from([("q", 1)]);
            f.record(
                "note",
                1,
                &std::collections::BTreeMap::from([(self.0, inner)]),
            )
            .map(drop)
        }
    }
    let scene = Scene::new();
    let opened = scene.create();
    assert_eq!(
        opened
            .journal
            .append(Letter("q"))
            .wait()
            .unwrap_err()
            .kind(),
        ErrorKind::Bug
    );
    opened.journal.append(Letter("deep")).wait().unwrap();
}

/// An encoder that goes on after an error, or panics, must not leave half a batch.
#[test]
fn a_batch_whose_encoder_misbehaves_leaves_nothing() {
    struct Deaf;
    impl session_store::Records for Deaf {
        fn encode(
            &self,
            f: &mut session_store::Frames<'_>,
        ) -> Result<(), session_store::EncodeError> {
            let body = std::collections::BTreeMap::from([("text", "x")]);
            drop(f.record("note", 1, &body));
            drop(f.record("BAD", 1, &body));
            f.record("note", 1, &body).map(drop)
        }
    }
    struct Panics;
    impl session_store::Records for Panics {
        fn encode(
            &self,
            f: &mut session_store::Frames<'_>,
        ) -> Result<(), session_store::EncodeError> {
            f.record(
                "note",
                1,
                &std::collections::BTreeMap::from([("text", "x")]),
            )?;
            panic!("in an encoder");
        }
    }
    let scene = Scene::new();
    let opened = scene.create();
    assert_eq!(
        opened.journal.append(Deaf).wait().unwrap_err().kind(),
        ErrorKind::Bug
    );
    assert_eq!(
        opened.journal.append(Panics).wait().unwrap_err().kind(),
        ErrorKind::Bug
    );
    assert_eq!(append(&opened, &["next"]).unwrap().seqs(), 2..=2);
    assert_eq!(texts(&scene.dir), ["next"]);
}

/// Flipping bit 5 makes `E` of `e`: the number stays, the byte does not.
#[test]
fn upper_case_hexadecimal_is_refused() {
    let scene = Scene::with(&[&["one"], &["two"], &["three"]]);
    let bytes = std::fs::read(scene.log()).unwrap();
    let letters = (0..bytes.len()).filter(|at| {
        let column = at
            - bytes[..*at]
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |newline| newline + 1);
        (6..14).contains(&column) && bytes[*at].is_ascii_alphabetic()
    });
    let mut seen = 0;
    for at in letters {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        std::fs::write(scene.log(), &flipped).unwrap();
        assert!(
            Reader::open(&scene.dir)
                .unwrap()
                .frames()
                .any(|frame| frame.is_err()),
            "byte {at}"
        );
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_reader_shows_the_fields_of_the_header() {
    let scene = Scene::with(&[&["one", "two"]]);
    let frames: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(Result::unwrap)
        .collect();
    let fields: Vec<_> = frames
        .iter()
        .map(|f| (f.seq, f.epoch, f.batch_left, f.kind.as_str(), f.v))
        .collect();
    assert_eq!(
        fields,
        [
            (1, 1, 0, "segment", 1),
            (2, 1, 1, "note", 1),
            (3, 1, 0, "note", 1)
        ]
    );
    assert!(
        frames
            .iter()
            .all(|frame| frame.time >= 1_790_000_000_000_000)
    );
    assert_eq!(notes(&["one", "two"]).0, texts(&scene.dir));
}
