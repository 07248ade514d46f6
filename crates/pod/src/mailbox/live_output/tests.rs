//! What followers get of outputs, at the bounds of what is kept.

use super::{CallOrigin, KEPT, LiveOutputs, OutputFollower};
use llm_worker::CallId;

fn call(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

/// The parts for one who has all records: the call's number, the text, and whether it is another text.
fn taken(follower: &mut OutputFollower) -> Vec<(CallId, String, bool)> {
    follower
        .take(u64::MAX)
        .into_iter()
        .map(|part| (part.call, part.text, part.anew))
        .collect()
}

#[test]
fn a_follower_gets_each_byte_once_and_the_end_of_what_it_missed() {
    let outputs = LiveOutputs::new();
    let mut early = outputs.follow();
    let live = outputs.begin(call(1), CallOrigin::default());
    assert_eq!(taken(&mut early), []);
    live.write(b"one\n", b"");
    assert_eq!(taken(&mut early), [(call(1), "one\n".to_owned(), true)]);
    live.write(b"two\n", b"");
    live.write(b"three\n", b"");
    assert_eq!(
        taken(&mut early),
        [(call(1), "two\nthree\n".to_owned(), false)]
    );
    assert_eq!(taken(&mut early), []);
    assert_eq!(
        taken(&mut outputs.follow()),
        [(call(1), "one\ntwo\nthree\n".to_owned(), true)]
    );
    live.write(&vec![b'x'; 3 * KEPT], b"");
    let missed = taken(&mut early);
    assert!(
        missed == [(call(1), "x".repeat(KEPT), true)],
        "{:.100}",
        missed[0].1
    );
    let other = outputs.begin(call(2), CallOrigin::default());
    other.write(b"other", b"");
    live.write(b"y", b"");
    assert_eq!(
        taken(&mut early),
        [
            (call(1), "y".to_owned(), false),
            (call(2), "other".to_owned(), true)
        ]
    );
    drop(live);
    other.begin_again();
    assert_eq!(taken(&mut early), [(call(2), String::new(), true)]);
    other.write(b"again", b"");
    assert_eq!(taken(&mut early), [(call(2), "again".to_owned(), false)]);
    drop(other);
    assert_eq!(taken(&mut early), []);
}

/// Whatever a call prints and however many clients look, it holds twice what is kept, and a write copies no more than that.
#[test]
fn a_flood_is_overwritten_and_not_queued() {
    let outputs = LiveOutputs::new();
    let mut follower = outputs.follow();
    let never = outputs.follow();
    let live = outputs.begin(call(1), CallOrigin::default());
    let piece = vec![b'.'; 64 << 10];
    for n in 0..1600_u32 {
        live.write(&piece, b"");
        live.write(format!("{n}\n").as_bytes(), b"");
        let ring = super::lock(&live.ring);
        assert!(
            ring.bytes.len() <= 2 * KEPT && ring.bytes.capacity() <= 4 * KEPT,
            "{}",
            ring.bytes.capacity()
        );
    }
    let parts = taken(&mut follower);
    assert!(
        parts.len() == 1 && parts[0].1.len() <= 2 * KEPT && parts[0].1.ends_with("1599\n"),
        "{}",
        parts.len()
    );
    drop(never);
}

#[test]
fn a_character_waits_for_its_rest_and_what_is_no_text_is_marked() {
    let outputs = LiveOutputs::new();
    let mut follower = outputs.follow();
    let live = outputs.begin(call(1), CallOrigin::default());
    // The pieces, and what is taken behind each.
    let table: &[(&[u8], Option<&str>)] = &[
        (b"caf\xc3", Some("caf")),
        (b"\xa9 ", Some("\u{e9} ")),
        (b"\xf0\x9f\x98", None),
        (b"\x80", Some("\u{1f600}")),
        (b"\xff\xfe", Some("\u{fffd}\u{fffd}")),
        (b"\xffabc\xc3", Some("\u{fffd}abc")),
        (b"(", Some("\u{fffd}(")),
    ];
    for (piece, shown) in table {
        live.write(piece, b"");
        let text = taken(&mut follower).pop().map(|(_, text, _)| text);
        assert_eq!(text.as_deref(), *shown, "{piece:?}");
    }
    // What is gone may end within a character.
    live.write(
        "\u{e9}"
            .repeat(KEPT)
            .get(..KEPT)
            .unwrap_or_default()
            .as_bytes(),
        b"",
    );
    live.write(
        &[&"\u{e9}".repeat(KEPT).as_bytes()[1..], b"."].concat(),
        b"",
    );
    let (_, text, anew) = taken(&mut follower).remove(0);
    assert!(
        anew && text.trim_end_matches('.').chars().all(|c| c == '\u{e9}'),
        "{text}"
    );
}

/// What stays of the bytes that the redactor keeps back is shown, and not once more when it is final.
#[test]
fn what_is_shown_before_it_is_final_is_shown_once() {
    let outputs = LiveOutputs::new();
    let mut follower = outputs.follow();
    let live = outputs.begin(call(1), CallOrigin::default());
    let mut shown = String::new();
    for (done, settled) in [
        ("", "abc"),
        ("ab", "cde"),
        ("", "cdefg"),
        ("cdefgh", ""),
        ("i", "j"),
        ("jk", ""),
    ] {
        live.write(done.as_bytes(), settled.as_bytes());
        taken(&mut follower)
            .iter()
            .for_each(|(_, text, _)| shown.push_str(text));
    }
    assert_eq!(shown, "abcdefghijk");
}

#[test]
fn a_call_whose_start_was_not_seen_waits() {
    let outputs = LiveOutputs::new();
    let mut follower = outputs.follow();
    let live = outputs.begin(
        call(1),
        CallOrigin {
            turn: 3,
            request: 4,
            seq: 9,
        },
    );
    assert!(follower.take(8).is_empty() && !follower.waits());
    live.write(b"now", b"");
    assert!(follower.take(8).is_empty() && follower.waits());
    let parts = follower.take(9);
    assert_eq!(
        parts
            .iter()
            .map(|part| (part.turn, part.request))
            .collect::<Vec<_>>(),
        [(3, 4)]
    );
    assert!(!follower.waits());
}

#[test]
fn writes_wake_a_follower_until_it_takes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let outputs = LiveOutputs::new();
    let mut follower = outputs.follow();
    let live = outputs.begin(call(1), CallOrigin::default());
    follower.take(u64::MAX);
    let is_changed = |follower: &mut OutputFollower| {
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = follower.changed() => true,
                () = std::future::ready(()) => false,
            }
        })
    };
    assert!(!is_changed(&mut follower));
    live.write(b"a", b"");
    assert!(
        is_changed(&mut follower) && is_changed(&mut follower),
        "a wake-up that is given up is not lost"
    );
    follower.take(u64::MAX);
    assert!(!is_changed(&mut follower));
}
