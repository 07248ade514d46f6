//! A reader that goes on beside the writer: every durable record once, whatever was read before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use session_store::{ErrorKind, Following, OwnedFrame, ReadError, Reader, Session};

use crate::disks::Quick;
use crate::scene::{Scene, append, files, notes, options, text};

/// Some batches fill it.
const SMALL: u64 = 900;

fn start(scene: &Scene) -> session_store::Opened {
    let options = session_store::Options {
        segment_bytes: SMALL,
        ..options(Arc::new(Quick))
    };
    match scene.dir.exists() {
        false => Session::create(&scene.dir, options).unwrap(),
        true => Session::open(&scene.dir, options).unwrap(),
    }
}

/// All there is now.
fn drain(following: &mut Following) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    while following.look().unwrap() {
        frames.extend(following.by_ref().map(|frame| frame.unwrap()));
    }
    frames
}

fn words(frames: &[OwnedFrame]) -> Vec<String> {
    frames
        .iter()
        .filter(|frame| frame.kind == "note")
        .map(|frame| text(&frame.line))
        .collect()
}

#[test]
fn whatever_was_read_before_what_comes_is_read_once() {
    let scene = Scene::new();
    let mut opened = start(&scene);
    append(&opened, &["first"]).unwrap();
    let reader = Reader::open(&scene.dir).unwrap();
    // One that reads at once, one that reads at every seventh batch, one from the end, one that never finishes.
    let mut eager = reader.follow();
    let mut lazy = reader.follow();
    let mut late = reader.follow();
    let mut slow = reader.follow();
    let mut by_eager = Vec::new();
    let mut by_lazy = Vec::new();
    let mut by_slow = Vec::new();
    for n in 0..60 {
        let batch = [format!("a{n}"), format!("b{n}"), format!("c{n}")];
        opened
            .journal
            .append(notes(&batch.each_ref().map(String::as_str)))
            .wait()
            .unwrap();
        by_eager.extend(drain(&mut eager));
        if n % 7 == 0 {
            by_lazy.extend(drain(&mut lazy));
        }
        assert!(slow.look().unwrap());
        by_slow.extend(slow.by_ref().take(2).map(|frame| frame.unwrap()));
        if n == 30 {
            // Another writer, another epoch.
            opened.journal.close();
            opened = start(&scene);
        }
    }
    by_lazy.extend(drain(&mut lazy));
    by_slow.extend(slow.by_ref().map(|frame| frame.unwrap()));
    let all: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap())
        .collect();
    assert!(files(&scene.dir.join("log")).len() > 10);
    assert_eq!(
        all.iter().map(|frame| frame.seq).collect::<Vec<_>>(),
        (1..=all.len() as u64).collect::<Vec<_>>()
    );
    let seqs = |frames: &[OwnedFrame]| frames.iter().map(|frame| frame.seq).collect::<Vec<_>>();
    for (who, frames) in [
        ("eager", by_eager),
        ("lazy", by_lazy),
        ("late", drain(&mut late)),
        ("slow", by_slow),
    ] {
        assert_eq!(seqs(&frames), seqs(&all), "{who}");
    }
    assert!(!eager.look().unwrap() && eager.next().is_none());
}

#[test]
fn beside_a_writer_no_batch_is_seen_in_part() {
    const BATCHES: usize = 300;
    let scene = Scene::new();
    let opened = start(&scene);
    append(&opened, &["first"]).unwrap();
    let mut following = Reader::open(&scene.dir).unwrap().follow();
    let over = AtomicBool::new(false);
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let batch = |n: usize| [format!("a{n}"), format!("b{n}")];
            (0..BATCHES).for_each(|n| {
                drop(append(&opened, &batch(n).each_ref().map(String::as_str)).unwrap())
            });
            over.store(true, Ordering::SeqCst);
        });
        loop {
            // Asked before: what was written before it was set is there.
            let last = over.load(Ordering::SeqCst);
            let frames = drain(&mut following);
            assert!(
                frames.last().is_none_or(|frame| frame.batch_left == 0),
                "{frames:?}"
            );
            seen.extend(frames);
            if last {
                break;
            }
            thread::yield_now();
        }
    });
    let expected: Vec<String> = ["first".to_owned()]
        .into_iter()
        .chain((0..BATCHES).flat_map(|n| [format!("a{n}"), format!("b{n}")]))
        .collect();
    assert_eq!(words(&seen), expected);
    assert!(seen.iter().zip(1..).all(|(frame, seq)| frame.seq == seq));
}

#[test]
fn what_is_not_vouched_for_is_not_shown() {
    let scene = Scene::with(&[&["one"], &["two"]]);
    let mut following = Reader::open(&scene.dir).unwrap().follow();
    assert_eq!(words(&drain(&mut following)), ["one", "two"]);
    let head = std::fs::read(scene.head()).unwrap();
    let opened = scene.open().unwrap();
    append(&opened, &["three"]).unwrap();
    opened.journal.close();
    let newer = std::fs::read(scene.head()).unwrap();
    // As long as HEAD says nothing, is old or is half written, there is nothing new.
    for hint in [&head[..], &newer[..20], b""] {
        std::fs::write(scene.head(), hint).unwrap();
        assert!(!following.look().unwrap());
        assert!(following.next().is_none());
    }
    std::fs::write(scene.head(), &newer).unwrap();
    assert_eq!(words(&drain(&mut following)), ["three"]);
}

#[test]
fn damage_and_absence_end_it() {
    let scene = Scene::with(&[&["one"]]);
    let mut following = Reader::open(&scene.dir).unwrap().follow();
    assert_eq!(words(&drain(&mut following)), ["one"]);
    let opened = scene.open().unwrap();
    append(&opened, &["two"]).unwrap();
    opened.journal.close();
    let whole = std::fs::read(scene.log()).unwrap();
    let mut bytes = whole.clone();
    let at = bytes.windows(3).position(|w| w == b"two").unwrap();
    bytes[at] ^= 1;
    std::fs::write(scene.log(), &bytes).unwrap();
    assert!(following.look().unwrap());
    assert_eq!(
        following.next().unwrap().unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    assert!(following.next().is_none() && !following.look().unwrap());

    std::fs::write(scene.log(), &whole).unwrap();
    let mut moved = Reader::open(&scene.dir).unwrap().follow();
    assert_eq!(words(&drain(&mut moved)), ["one", "two"]);
    let opened = start(&scene);
    (0..20).for_each(|n| drop(append(&opened, &[&format!("{n}")]).unwrap()));
    std::fs::rename(scene.dir.join("log"), scene.dir.join("gone")).unwrap();
    assert!(matches!(moved.look(), Err(ReadError::NoSuch(_))));
}
