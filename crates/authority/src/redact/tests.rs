//! Secrets in whole texts, in streams cut anywhere, and secrets that come later.

use super::*;

fn secret(id: &str, words: &str) -> Secret {
    Secret::new(&ambient::claim(), id, words.to_owned())
}

/// One secret that begins, ends, holds or follows another: whatever the pieces, the stream says what the whole says,
/// and no beginning of a longer one is named for a shorter.
#[test]
fn every_cut_of_a_stream_gives_the_same_words() {
    let secrets = [
        secret("A", "abcdefghijkl"),
        secret("B", "abcdefgh"),
        secret("C", "ijklmnop"),
        secret("D", "xxxxxxxx"),
    ];
    let redactor = Redactor::new(&secrets).unwrap();
    let table = [
        ("abcdefghijkl", "\u{2039}secret A\u{203a}"),
        ("-abcdefgh-", "-\u{2039}secret B\u{203a}-"),
        ("abcdefghijklmnop", "\u{2039}secret A\u{203a}mnop"),
        (
            "abcdefghabcdefghijkl",
            "\u{2039}secret B\u{203a}\u{2039}secret A\u{203a}",
        ),
        ("abcdefghijk", "\u{2039}secret B\u{203a}ijk"),
        (
            "xxxxxxxxxxxxxxxxxx",
            "\u{2039}secret D\u{203a}\u{2039}secret D\u{203a}xx",
        ),
        ("nothing of it", "nothing of it"),
    ];
    for (text, clean) in table {
        assert_eq!(redactor.text(text), clean);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut stream = RedactedStream::new(redactor.clone());
                let mut out = Vec::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    out.extend_from_slice(&stream.push(piece.as_bytes()));
                }
                out.extend_from_slice(&stream.finish());
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    clean,
                    "{text} cut at {first} and {second}"
                );
            }
        }
    }
}

/// A key that arrives in the third week of a pod is redacted by everyone who got a redactor in the first.
#[test]
fn a_clone_made_before_a_secret_was_added_redacts_it() {
    let first = Redactor::default();
    let clone = first.clone();
    let mut stream = RedactedStream::new(first.clone());
    assert!(clone.is_idle());
    assert_eq!(stream.push(b"late-secret "), b"late-secret ".as_slice());
    first.add(&secret("A", "late-secret")).unwrap();
    assert_eq!(
        clone.text("a late-secret b"),
        "a \u{2039}secret A\u{203a} b"
    );
    assert_eq!(
        clone.finds(b"late-secret"),
        Some("\u{2039}secret A\u{203a}".to_owned())
    );
    let out = [
        stream.push(b"late-s").into_owned(),
        stream.push(b"ecret").into_owned(),
        stream.finish(),
    ]
    .concat();
    assert_eq!(String::from_utf8(out).unwrap(), "\u{2039}secret A\u{203a}");
    // One that is longer than those before, while its beginning is already held back.
    assert_eq!(stream.push(b"a longer "), b"".as_slice());
    clone.add(&secret("B", "a longer late-secret")).unwrap();
    let out = [stream.push(b"late-secret").into_owned(), stream.finish()].concat();
    assert_eq!(String::from_utf8(out).unwrap(), "\u{2039}secret B\u{203a}");
}

#[test]
fn a_secret_beyond_the_bound_is_refused_and_the_others_stay() {
    let redactor = Redactor::new(&[secret("A", "first-secret")]).unwrap();
    let rest = "x".repeat(MAX_REDACTED - "first-secret".len());
    let error = redactor.add(&secret("B", &format!("{rest}x"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    assert_eq!(redactor.text("first-secret"), "\u{2039}secret A\u{203a}");
    redactor.add(&secret("C", &rest)).unwrap();
    // What is known needs no room, and what is too short is not looked for.
    redactor.add(&secret("D", "first-secret")).unwrap();
    redactor.add(&secret("E", "short")).unwrap();
    assert_eq!(
        redactor.text(&format!("first-secret{rest}")),
        "\u{2039}secret A\u{203a}\u{2039}secret C\u{203a}"
    );
}

/// What is shown before it is final: everything up to the first byte that may begin a secret.
#[test]
fn what_cannot_begin_a_secret_is_settled() {
    let redactor = Redactor::new(&[secret("A", "abcdefghijkl"), secret("B", "abcdefgh")]).unwrap();
    let table = [
        ("plain", "plain"),
        ("plain abc", "plain "),
        ("xabcdefghi", "x"),
        ("abcdefgh-ab", "\u{2039}secret B\u{203a}-"),
        ("aab", "a"),
    ];
    for (piece, settled) in table {
        let mut stream = RedactedStream::new(redactor.clone());
        let done = stream.push(piece.as_bytes()).into_owned();
        assert_eq!(
            String::from_utf8([done, stream.settled()].concat()).unwrap(),
            settled,
            "{piece}"
        );
    }
    // Where that would take long, nothing is.
    let long = Redactor::new(&[secret("A", &"x".repeat(2 * MAX_SETTLING))]).unwrap();
    let mut stream = RedactedStream::new(long);
    drop(stream.push("y".repeat(MAX_SETTLING).as_bytes()));
    assert_eq!(stream.settled().len(), MAX_SETTLING);
    drop(stream.push(b"y"));
    assert_eq!(stream.settled().len(), 0);
}

#[test]
fn patterns_are_replaced_in_whole_texts_of_every_clone() {
    let key = secret("KEY", "k3y-of-a-provider");
    let redactor = Redactor::default();
    let clone = redactor.clone();
    let pattern = |text: &str| regex::Regex::new(text).unwrap();
    redactor.add_patterns(&[pattern("sk-[0-9]+"), pattern("(?s)BEGIN.*END")]);
    clone.add_patterns(&[pattern("sk-[0-9]+")]);
    redactor.add(&key).unwrap();
    for (text, clean) in [
        ("nothing", "nothing"),
        ("a sk-12 b sk-3", "a [redacted] b [redacted]"),
        (
            "x BEGIN\nk3y-of-a-provider END sk-1",
            "x [redacted] [redacted]",
        ),
        ("k3y-of-a-provider", "‹secret KEY›"),
        ("$0 sk-9", "$0 [redacted]"),
    ] {
        assert_eq!(clone.text(text), clean);
    }
    assert!(
        clone.finds(b"sk-12").is_none(),
        "a value of state is refused for secrets alone"
    );
}
