//! Blobs: stored once, verified always, streamed in bounded space.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use session_store::{
    BlobError, BlobRef, Blobs, Digest, ErrorKind, LineWindow, Options, Reader, Session, StreamGap,
};

use crate::disks::Quick;
use crate::scene::{Scene, append, files, options};

const MIB: usize = 1 << 20;

#[test]
fn a_blob_is_named_by_its_bytes() {
    let scene = Scene::new();
    let opened = scene.create();
    let blob = opened.blobs.put(b"bytes").unwrap();
    assert_eq!((blob.digest, blob.len), (Digest::of(b"bytes"), 5));
    assert_eq!(opened.blobs.put(b"bytes").unwrap(), blob);
    let hex = blob.digest.to_string();
    assert_eq!(
        opened.blobs.view().path(&blob.digest),
        scene.dir.join("blobs").join(&hex[..2]).join(&hex)
    );
    let json = serde_json::to_string(&blob).unwrap();
    assert_eq!(
        serde_json::from_str::<session_store::BlobRef>(&json).unwrap(),
        blob
    );
    for wrong in [
        hex.to_uppercase(),
        hex[1..].to_owned(),
        format!("{hex}0"),
        "ü".repeat(32),
    ] {
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
    append(&opened, &["one"]).unwrap();
    let view = Reader::open(&scene.dir).unwrap().blobs();
    assert_eq!(view.read(&blob.digest, 5).unwrap(), b"bytes");
    assert_eq!(
        view.read(&blob.digest, 4),
        Err(BlobError::TooLarge { len: 5, limit: 4 })
    );
    assert_eq!(
        view.read(&Digest::of(b"other"), 5),
        Err(BlobError::Missing(Digest::of(b"other")))
    );
}

#[test]
fn a_damaged_blob_is_never_read_and_heals_when_stored_again() {
    let scene = Scene::new();
    let opened = scene.create();
    let blob = opened.blobs.put(b"line one\nline two\n").unwrap();
    opened.journal.close();
    let opened = scene.open().unwrap();
    let path = opened.blobs.view().path(&blob.digest);
    std::fs::write(&path, b"line one\nline 2\n").unwrap();
    let view = opened.blobs.view();
    let damaged = BlobError::Damaged(blob.digest);
    assert_eq!(damaged.kind(), ErrorKind::Corrupt);
    assert_eq!(view.read(&blob.digest, 100), Err(damaged.clone()));
    assert_eq!(
        view.lines(&blob.digest, None, LineWindow::Tail, 1, 100, <[u8]>::to_vec),
        Err(damaged.clone())
    );
    assert_eq!(view.verify(&blob.digest), Err(damaged));
    opened.blobs.put(b"line one\nline two\n").unwrap();
    assert_eq!(view.verify(&blob.digest), Ok(blob.len));
}

/// `n` bytes that differ everywhere, in lines of 16.
fn stream(n: usize) -> Vec<u8> {
    (0..n.div_ceil(16))
        .flat_map(|line| format!("{line:015}\n").into_bytes())
        .take(n)
        .collect()
}

#[test]
fn a_spool_keeps_both_ends() {
    let scene = Scene::new();
    let opened = scene.create();
    for (total, chunk) in [
        (0, 1),
        (1000, 7),
        (32 * MIB, MIB),
        (40 * MIB, 777_777),
        (64 * MIB, MIB),
        (70 * MIB + 5, 999_999),
    ] {
        let bytes = stream(total);
        let mut spool = opened.blobs.spool().unwrap();
        bytes
            .chunks(chunk)
            .for_each(|part| spool.write(part).unwrap());
        assert_eq!(spool.total(), total as u64);
        let end = spool.finish().unwrap();
        let stored = opened
            .blobs
            .view()
            .read(&end.blob.digest, u64::MAX)
            .unwrap();
        assert_eq!(
            (end.total, end.whole, end.blob.len),
            (total as u64, Digest::of(&bytes), stored.len() as u64)
        );
        if total <= 64 * MIB {
            assert_eq!((end.gap, end.blob.digest), (None, end.whole), "{total}");
            assert!(stored == bytes, "{total}");
        } else {
            let dropped = total - 64 * MIB;
            assert_eq!(
                end.gap,
                Some(StreamGap {
                    at: 32 * MIB as u64,
                    dropped: dropped as u64
                })
            );
            assert!(
                stored[..32 * MIB] == bytes[..32 * MIB]
                    && stored[32 * MIB..] == bytes[32 * MIB + dropped..]
            );
        }
    }
    let left = files(&scene.dir.join("blobs"));
    assert!(left.iter().all(|path| path.is_dir()), "{left:?}");
}

#[test]
fn a_spool_that_is_dropped_or_killed_leaves_nothing() {
    let scene = Scene::new();
    let opened = scene.create();
    let mut spool = opened.blobs.spool().unwrap();
    spool.write(b"some").unwrap();
    assert_eq!(files(&scene.dir.join("blobs")).len(), 1);
    drop(spool);
    assert!(files(&scene.dir.join("blobs")).is_empty());
    let mut spool = opened.blobs.spool().unwrap();
    spool.write(b"some").unwrap();
    std::mem::forget(spool);
    opened.journal.close();
    assert_eq!(files(&scene.dir.join("blobs")).len(), 1);
    let opened = scene.open().unwrap();
    assert!(files(&scene.dir.join("blobs")).is_empty());
    assert!(Arc::new(opened.blobs.clone()).put(b"x").is_ok());
}

#[test]
fn windows_of_lines() {
    let scene = Scene::new();
    let opened = scene.create();
    let view = opened.blobs.view();
    // bytes, gap, window, lines, max_bytes → first, lines, total, cut
    type Case<'a> = (
        &'a str,
        Option<u64>,
        LineWindow,
        usize,
        usize,
        u64,
        &'a [&'a str],
        u64,
        bool,
    );
    let cases: [Case<'_>; 16] = [
        (
            "a\nb\nc\n",
            None,
            LineWindow::From(1),
            9,
            99,
            1,
            &["a", "b", "c"],
            3,
            false,
        ),
        (
            "a\nb\nc",
            None,
            LineWindow::From(2),
            9,
            99,
            2,
            &["b", "c"],
            3,
            false,
        ),
        (
            "a\nb\nc",
            None,
            LineWindow::From(2),
            1,
            99,
            2,
            &["b"],
            3,
            false,
        ),
        (
            "a\nb\nc",
            None,
            LineWindow::From(4),
            1,
            99,
            4,
            &[],
            3,
            false,
        ),
        (
            "a\n\n\nc",
            None,
            LineWindow::From(1),
            3,
            99,
            1,
            &["a", "", ""],
            4,
            false,
        ),
        ("", None, LineWindow::From(1), 3, 99, 1, &[], 0, false),
        (
            "aaaa\nbbbb\ncccc",
            None,
            LineWindow::From(1),
            3,
            6,
            1,
            &["aaaa", "bb"],
            3,
            true,
        ),
        (
            "aaaa\nbbbb\ncccc",
            None,
            LineWindow::From(1),
            3,
            4,
            1,
            &["aaaa"],
            3,
            true,
        ),
        (
            "a\nb\nc\n",
            None,
            LineWindow::Tail,
            2,
            99,
            2,
            &["b", "c"],
            3,
            false,
        ),
        (
            "a\nb\nc",
            None,
            LineWindow::Tail,
            9,
            99,
            1,
            &["a", "b", "c"],
            3,
            false,
        ),
        (
            "aaaa\nbbbb\ncccc",
            None,
            LineWindow::Tail,
            3,
            8,
            2,
            &["bbbb", "cccc"],
            3,
            true,
        ),
        (
            "aaaa\nbbbb\ncccc",
            None,
            LineWindow::Tail,
            3,
            3,
            3,
            &["ccc"],
            3,
            true,
        ),
        (
            "aaaaaaaaaaaaaaa\nb",
            None,
            LineWindow::Tail,
            1,
            3,
            2,
            &["b"],
            2,
            false,
        ),
        ("", None, LineWindow::Tail, 3, 99, 1, &[], 0, false),
        (
            "a\nbbcc\nd",
            Some(4),
            LineWindow::From(1),
            9,
            99,
            1,
            &["a", "bb", "cc", "d"],
            4,
            false,
        ),
        (
            "a\nbb\nd",
            Some(5),
            LineWindow::From(1),
            9,
            99,
            1,
            &["a", "bb", "d"],
            3,
            false,
        ),
    ];
    for (bytes, gap, window, lines, max_bytes, first, shown, total, cut) in cases {
        let blob = opened.blobs.put(bytes.as_bytes()).unwrap();
        let gap = gap.map(|at| StreamGap { at, dropped: 1 });
        let got = view
            .lines(&blob.digest, gap, window, lines, max_bytes, <[u8]>::to_vec)
            .unwrap();
        let texts: Vec<_> = got
            .lines
            .iter()
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        assert_eq!(
            (got.first, texts.as_slice(), got.total, got.cut),
            (first, shown, total, cut),
            "{bytes:?} {window:?}"
        );
    }
    let blob = opened.blobs.put(&stream(MIB)).unwrap();
    let got = view
        .lines(
            &blob.digest,
            None,
            LineWindow::From(60_000),
            2,
            99,
            <[u8]>::to_vec,
        )
        .unwrap();
    assert_eq!(
        (got.lines.concat(), got.total),
        (b"000000000059999000000000060000".to_vec(), 65_536)
    );
}

/// A session with room for 1000 bytes, and blobs of 300 that are as old as they are in front.
fn bounded(scene: &Scene, count: u64) -> (session_store::Opened, Vec<BlobRef>) {
    let given = Options {
        blob_bytes: 1000,
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, given).unwrap();
    let stored = (0..count)
        .map(|n| opened.blobs.put(&[n as u8; 300]).unwrap())
        .collect::<Vec<_>>();
    for (n, blob) in stored.iter().enumerate() {
        let age = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + n as u64);
        let path = opened.blobs.view().path(&blob.digest);
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(age)
            .unwrap();
    }
    (opened, stored)
}

fn there(blobs: &Blobs, stored: &[BlobRef]) -> Vec<bool> {
    stored
        .iter()
        .map(|blob| blobs.view().verify(&blob.digest).is_ok())
        .collect()
}

#[test]
fn the_oldest_unreferenced_blobs_go_first() {
    let scene = Scene::new();
    let (opened, stored) = bounded(&scene, 3);
    let full = opened.blobs.put(&[9; 300]).unwrap_err();
    assert_eq!(
        (&full, full.kind()),
        (&BlobError::Full { bound: 1000 }, ErrorKind::Exhausted)
    );
    assert_eq!(
        there(&opened.blobs, &stored),
        [true; 3],
        "until it is told, everything is referred to"
    );
    opened.blobs.put(&[8; 100]).unwrap();
    // The oldest is referred to; the next one is stored again and kept by that.
    opened
        .blobs
        .refer(HashSet::from([stored[0].digest, Digest::of(&[8; 100])]))
        .unwrap();
    opened.blobs.put(&[1; 300]).unwrap();
    opened.blobs.put(&[9; 300]).unwrap();
    assert_eq!(there(&opened.blobs, &stored), [true, true, false]);
    assert!(matches!(
        opened.blobs.put(&[7; 300]),
        Err(BlobError::Full { .. })
    ));
    // What went is stored again, whatever this process remembers of it.
    opened.blobs.refer(HashSet::new()).unwrap();
    opened.blobs.put(&[2; 300]).unwrap();
    assert_eq!(there(&opened.blobs, &stored), [false, true, true]);
    assert!(
        matches!(opened.blobs.put(&[0; 1001]), Err(BlobError::Full { .. })),
        "no room for it at all"
    );
    let left = files(&scene.dir.join("blobs"));
    assert!(left.iter().all(|path| path.is_dir()), "{left:?}");
}

/// As many as are needed, in the order of their age.
#[test]
fn a_large_blob_displaces_several() {
    let scene = Scene::new();
    let (opened, stored) = bounded(&scene, 3);
    opened.blobs.refer(HashSet::new()).unwrap();
    let mut spool = opened.blobs.spool().unwrap();
    spool.write(&[5; 500]).unwrap();
    let end = spool.finish().unwrap();
    assert_eq!(there(&opened.blobs, &stored), [false, false, true]);
    // A damaged one that is replaced takes its own room.
    std::fs::write(opened.blobs.view().path(&end.blob.digest), [1; 500]).unwrap();
    opened.journal.close();
    let opened = Session::open(
        &scene.dir,
        Options {
            blob_bytes: 1000,
            ..options(Arc::new(Quick))
        },
    )
    .unwrap();
    assert_eq!(opened.blobs.put(&[5; 500]).unwrap(), end.blob);
    assert_eq!(opened.blobs.put(&[6; 200]).unwrap().len, 200);
    assert!(matches!(
        opened.blobs.put(&[4; 1]),
        Err(BlobError::Full { .. })
    ));
}

/// What comes in as a stream and was there already is kept by that, too.
#[test]
fn a_stream_of_what_is_there_keeps_it() {
    let scene = Scene::new();
    let (opened, stored) = bounded(&scene, 3);
    opened.blobs.refer(HashSet::new()).unwrap();
    let mut spool = opened.blobs.spool().unwrap();
    spool.write(&[0; 300]).unwrap();
    assert_eq!(spool.finish().unwrap().blob, stored[0]);
    opened.blobs.put(&[9; 300]).unwrap();
    assert_eq!(there(&opened.blobs, &stored), [true, false, true]);
}

/// What another process stored may have its name only in memory.
#[test]
fn the_name_of_a_blob_that_is_there_is_flushed_once() {
    let scene = Scene::new();
    let opened = scene.create();
    opened.blobs.put(b"bytes").unwrap();
    opened.journal.close();
    let opened = scene.open().unwrap();
    let before = opened.journal.flushes();
    for _ in 0..2 {
        opened.blobs.put(b"bytes").unwrap();
        assert_eq!(opened.journal.flushes(), before + 1);
    }
}

/// What a refused blob would have replaced still takes its room.
#[test]
fn a_refusal_changes_no_count() {
    let scene = Scene::new();
    let opened = scene.create();
    let stored = [(1, 400), (2, 400), (3, 500)]
        .map(|(byte, len)| opened.blobs.put(&vec![byte; len]).unwrap());
    std::fs::write(opened.blobs.view().path(&stored[2].digest), [0; 100]).unwrap();
    opened.journal.close();
    let opened = Session::open(
        &scene.dir,
        Options {
            blob_bytes: 1000,
            ..options(Arc::new(Quick))
        },
    )
    .unwrap();
    for (byte, len) in [(3, 500), (4, 150)] {
        assert!(
            matches!(
                opened.blobs.put(&vec![byte; len]),
                Err(BlobError::Full { .. })
            ),
            "{len}"
        );
    }
    assert_eq!(opened.blobs.put(&[5; 100]).unwrap().len, 100);
}

/// The same bytes, stored by two at the same time, take their room once.
#[test]
fn equal_blobs_at_once_count_once() {
    let scene = Scene::new();
    let other = Arc::new(Mutex::new(None::<Blobs>));
    let first = AtomicBool::new(true);
    let handle = other.clone();
    let probe = Arc::new(move |point: &'static str| {
        let blobs = handle.lock().unwrap().clone();
        if let Some(blobs) =
            blobs.filter(|_| point == "blob:written" && first.swap(false, Ordering::SeqCst))
        {
            blobs.put(&[1; 300]).unwrap();
        }
    });
    let given = Options {
        blob_bytes: 1000,
        probe,
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, given).unwrap();
    *other.lock().unwrap() = Some(opened.blobs.clone());
    opened.blobs.put(&[1; 300]).unwrap();
    assert_eq!(opened.blobs.put(&[2; 700]).unwrap().len, 700);
    assert!(matches!(
        opened.blobs.put(&[3; 1]),
        Err(BlobError::Full { .. })
    ));
    *other.lock().unwrap() = None;
}
