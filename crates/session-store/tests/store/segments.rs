//! Full segments: sealed, continued, read across, and what may be found instead of the next one after a crash.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use session_store::{
    FrameError, Op, OpenError, Opened, Options, ReadError, Reader, RecordId, Refusal, Session,
};

use crate::disks::{ENOSPC, Judge, Judged, Quick};
use crate::scene::{Scene, append, files, notes, options, texts};

/// A batch of one note fills more than half of it.
const SMALL: u64 = 600;

fn small(disk: Arc<dyn session_store::Disk>) -> Options {
    Options {
        segment_bytes: SMALL,
        ..options(disk)
    }
}

fn word(n: usize) -> String {
    format!("note number {n}")
}

/// A closed session of `count` notes over several segments, and the seals that were told.
fn rotated(count: usize) -> (Scene, Vec<RecordId>) {
    let scene = Scene::new();
    let opened = Session::create(&scene.dir, small(Arc::new(Quick))).unwrap();
    let seals = (0..count)
        .filter_map(|n| append(&opened, &[&word(n)]).unwrap().seal())
        .collect();
    opened.journal.close();
    (scene, seals)
}

fn words(count: usize) -> Vec<String> {
    (0..count).map(word).collect()
}

fn segments(scene: &Scene) -> Vec<PathBuf> {
    files(&scene.dir.join("log"))
}

fn first(path: &Path) -> u64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_full_segment_is_sealed_and_the_next_one_names_its_end() {
    let (scene, seals) = rotated(20);
    let paths = segments(&scene);
    assert!(
        paths.len() > 4 && seals.len() + 1 == paths.len(),
        "{paths:?} {seals:?}"
    );
    let mut last = None;
    for (n, path) in paths.iter().enumerate() {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let opening = &lines[0];
        let end = &lines[lines.len() - 1];
        assert_eq!(
            (&opening["k"], &opening["b"]),
            (&"segment".into(), &0.into())
        );
        assert_eq!(opening.get("previous"), last.as_ref(), "{path:?}");
        let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        if n + 1 < paths.len() {
            assert_eq!(
                (&end["k"], &end["first"], &end["b"]),
                (&"seal".into(), &first(path).into(), &0.into())
            );
            assert_eq!(
                end["bytes"],
                text.len() as u64 - end.to_string().len() as u64 - 1 - spaces(&text)
            );
            assert_eq!((end["q"].as_u64(), mode), (Some(seals[n].seq()), 0o400));
            let crc = u32::from_str_radix(end["c"].as_str().unwrap(), 16).unwrap();
            last = Some(serde_json::json!({
                "first": first(path), "offset": text.len(), "seq": seals[n].seq(), "crc": crc
            }));
        } else {
            assert_eq!(mode, 0o600);
        }
    }
    assert_eq!(texts(&scene.dir), words(20));
    let seqs: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(|f| f.unwrap().seq)
        .collect();
    assert!(seqs.iter().copied().eq(1..=20 + 2 * seals.len() as u64 + 1));
}

/// In the last line, what `Value` prints without.
fn spaces(text: &str) -> u64 {
    text.lines()
        .last()
        .unwrap()
        .bytes()
        .filter(|byte| *byte == b' ')
        .count() as u64
}

/// A rotation costs one flush: the seal rides with the group before, the opening with the one behind.
#[test]
fn a_rotation_costs_one_flush() {
    let scene = Scene::new();
    let opened = Session::create(&scene.dir, small(Arc::new(Quick))).unwrap();
    let mut costs = BTreeMap::new();
    let mut behind_seal = false;
    for n in 0..20 {
        let before = opened.journal.flushes();
        let done = append(&opened, &[&word(n)]).unwrap();
        *costs
            .entry((behind_seal, opened.journal.flushes() - before))
            .or_insert(0) += 1;
        behind_seal = done.seal().is_some();
    }
    assert_eq!(
        costs.keys().copied().collect::<Vec<_>>(),
        [(false, 1), (true, 2)],
        "{costs:?}"
    );
}

#[test]
fn a_session_is_opened_again_at_every_length() {
    for count in 1..20 {
        let (scene, seals) = rotated(count);
        for _ in 0..2 {
            let opened = Session::open(&scene.dir, small(Arc::new(Quick))).unwrap();
            assert_eq!(opened.recovered.class, None);
            assert_eq!(opened.recovered.session, "s-1");
            opened.journal.close();
        }
        let opened = Session::open(&scene.dir, small(Arc::new(Quick))).unwrap();
        let epoch = opened.recovered.epoch;
        append(&opened, &[&word(count)]).unwrap();
        assert_eq!(
            texts(&scene.dir),
            words(count + 1),
            "{count} notes, {seals:?}"
        );
        let last = Reader::open(&scene.dir)
            .unwrap()
            .frames()
            .last()
            .unwrap()
            .unwrap();
        assert_eq!(last.epoch, epoch);
    }
}

#[test]
fn what_a_crash_left_unprotected_is_protected_when_it_is_opened() {
    let (scene, _) = rotated(20);
    let paths = segments(&scene);
    let before = &paths[paths.len() - 2];
    std::fs::set_permissions(before, std::fs::Permissions::from_mode(0o600)).unwrap();
    drop(Session::open(&scene.dir, small(Arc::new(Quick))).unwrap());
    assert_eq!(
        std::fs::metadata(before).unwrap().permissions().mode() & 0o777,
        0o400
    );
}

/// What a crash may leave where the next segment was to be: nothing, or a file without its name.
#[test]
fn a_sealed_log_without_a_next_segment_goes_on() {
    let whole = rotated(20).0;
    let next = std::fs::read(&segments(&whole)[3]).unwrap();
    let leftovers: [Option<&[u8]>; 4] = [None, Some(b""), Some(&next[..100]), Some(&next)];
    for (n, left) in leftovers.iter().enumerate() {
        let (scene, seals) = rotated(20);
        let paths = segments(&scene);
        for path in &paths[3..] {
            std::fs::remove_file(path).unwrap();
        }
        std::fs::remove_file(scene.head()).unwrap();
        let unnamed = paths[3].with_extension("tmp");
        left.iter()
            .for_each(|bytes| std::fs::write(&unnamed, bytes).unwrap());
        let strange = paths[4].with_extension("tmp");
        std::fs::write(&strange, "x").unwrap();
        // Before it had a successor, nobody had protected it.
        std::fs::set_permissions(&paths[2], std::fs::Permissions::from_mode(0o600)).unwrap();
        let opened = Session::open(&scene.dir, small(Arc::new(Quick))).unwrap();
        assert_eq!(
            (opened.recovered.last, opened.recovered.class),
            (seals[2].seq(), None),
            "{n}"
        );
        assert!(!unnamed.exists() && !strange.exists(), "{n}");
        let kept = texts(&scene.dir);
        append(&opened, &["next"]).unwrap();
        assert_eq!(segments(&scene), paths[..4]);
        assert_eq!(
            texts(&scene.dir),
            [kept.as_slice(), &["next".to_owned()]].concat(),
            "{n}"
        );
    }
}

/// A segment gets its name when it is durable. Where a named one is empty, torn or gone, something is lost.
#[test]
fn a_named_segment_that_is_not_whole_is_damage() {
    type Harm = fn(&[PathBuf]);
    let harms: [(&str, Harm); 5] = [
        ("the newest is empty", |paths| {
            std::fs::write(&paths[5], "").unwrap()
        }),
        ("the newest is half an opening", |paths| {
            std::fs::write(&paths[5], "{\"c\":\"00").unwrap()
        }),
        ("one in the middle is gone", |paths| {
            std::fs::remove_file(&paths[3]).unwrap()
        }),
        ("the first is gone", |paths| {
            std::fs::remove_file(&paths[0]).unwrap()
        }),
        ("one in the middle is shorter", |paths| {
            let bytes = std::fs::read(&paths[2]).unwrap();
            std::fs::remove_file(&paths[2]).unwrap();
            std::fs::write(&paths[2], &bytes[..bytes.len() - 1]).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let (scene, _) = rotated(18);
        let paths = segments(&scene);
        assert_eq!(paths.len(), 6);
        std::fs::remove_file(scene.head()).unwrap();
        harm(&paths);
        let left: Vec<_> = segments(&scene)
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        let error = Session::open(&scene.dir, small(Arc::new(Quick))).unwrap_err();
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "{name}: {error}"
        );
        let after: Vec<_> = segments(&scene)
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert!(
            left == after && files(&scene.dir.join("quarantine")).is_empty(),
            "{name}"
        );
    }
}

/// A reader that was opened before a rotation shows what was durable then, and one opened later goes across.
#[test]
fn readers_beside_a_writer_that_rotates() {
    let scene = Scene::new();
    let opened = Session::create(&scene.dir, small(Arc::new(Quick))).unwrap();
    let mut readers = Vec::new();
    for n in 0..20 {
        append(&opened, &[&word(n)]).unwrap();
        readers.push(Reader::open(&scene.dir).unwrap());
    }
    for (n, reader) in readers.iter().enumerate() {
        let found: Vec<_> = reader.frames().map(Result::unwrap).collect();
        let shown: Vec<_> = found
            .iter()
            .filter(|frame| frame.kind == "note")
            .map(|frame| crate::scene::text(&frame.line))
            .collect();
        assert_eq!(shown, words(n + 1));
        assert_eq!(found.last().unwrap().seq, reader.durable());
    }
}

/// Counts the bytes that are read of each file of the log.
#[derive(Default)]
struct Reads(Mutex<BTreeMap<PathBuf, usize>>);

struct Counting(Arc<Reads>);

impl Judge for Counting {
    fn before(&self, op: Op, path: &Path) -> io::Result<()> {
        if op == Op::Read && path.extension().is_some_and(|e| e == "jsonl") {
            *self
                .0
                .0
                .lock()
                .unwrap()
                .entry(path.to_path_buf())
                .or_default() += 1;
        }
        Ok(())
    }
}

/// Of older segments only the opening is looked at; what it takes to open does not grow with the log.
#[test]
fn opening_reads_the_newest_segment_only() {
    let (scene, _) = rotated(100);
    let paths = segments(&scene);
    let reads = Arc::new(Reads::default());
    let given = small(Arc::new(Judged(Counting(Arc::clone(&reads)))));
    let (opened, past) = Session::resume(&scene.dir, given).unwrap();
    let counted = std::mem::take(&mut *reads.0.lock().unwrap());
    let (newest, older) = paths.split_last().unwrap();
    // The opening, and the end of file behind it.
    assert!(older.iter().all(|path| counted[path] == 2), "{counted:?}");
    assert!(counted[newest] <= 4, "{counted:?}");
    assert_eq!(
        past.all()
            .filter(|frame| frame.as_ref().unwrap().kind == "note")
            .count(),
        100
    );
    drop(opened);
    // A bit in a sealed segment is found by whoever reads it.
    let mut bytes = std::fs::read(&paths[3]).unwrap();
    bytes[500] ^= 1;
    std::fs::remove_file(&paths[3]).unwrap();
    std::fs::write(&paths[3], bytes).unwrap();
    let (_opened, past) = Session::resume(&scene.dir, small(Arc::new(Quick))).unwrap();
    let read: Vec<_> = past.all().collect();
    let Some(Err(ReadError::Damaged(damage))) = read.last() else {
        panic!("{:?}", read.last())
    };
    assert_eq!(
        (damage.seq, &damage.segment),
        (first(&paths[3]) + 2, &paths[3])
    );
    assert!(read[..read.len() - 1].iter().all(Result::is_ok));
}

/// New files of the log find no room until the reserve is given back.
struct NoRoom {
    now: Arc<AtomicBool>,
}

impl Judge for NoRoom {
    fn before(&self, op: Op, path: &Path) -> io::Result<()> {
        if op == Op::Truncate && path.ends_with("RESERVE") {
            self.now.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    fn writable(&self, path: &Path, len: usize) -> io::Result<usize> {
        let full = self.now.load(Ordering::SeqCst) && path.extension().is_some_and(|e| e == "tmp");
        if full {
            Err(io::Error::from_raw_os_error(ENOSPC))
        } else {
            Ok(len)
        }
    }
}

/// A log whose newest segment is sealed, on a disk that is full now.
fn full() -> (Scene, Opened, Arc<AtomicBool>, Vec<String>) {
    let scene = Scene::new();
    let now = Arc::new(AtomicBool::new(false));
    let disk = Arc::new(Judged(NoRoom {
        now: Arc::clone(&now),
    }));
    let opened = Session::create(&scene.dir, small(disk)).unwrap();
    let mut count = 0;
    while append(&opened, &[&word(count)]).unwrap().seal().is_none() {
        count += 1;
    }
    now.store(true, Ordering::SeqCst);
    (scene, opened, now, words(count + 1))
}

#[test]
fn on_a_full_disk_the_last_word_still_opens_a_segment() {
    let (scene, opened, now, before) = full();
    for _ in 0..2 {
        let refused = append(&opened, &["no room"]).unwrap_err();
        assert!(matches!(refused.why, Refusal::Full(_)), "{refused}");
        assert_eq!(
            segments(&scene).len(),
            1,
            "what did not become a segment takes no room"
        );
    }
    let last = opened
        .journal
        .append_reserved(notes(&["suspended"]))
        .wait()
        .unwrap();
    assert_eq!(last.seal(), None);
    assert!(!now.load(Ordering::SeqCst), "the reserve was needed");
    append(&opened, &["room"]).unwrap();
    assert_eq!(
        segments(&scene).len(),
        2,
        "the last word does not end a segment"
    );
    let expected = [
        before.as_slice(),
        &["suspended".to_owned(), "room".to_owned()],
    ]
    .concat();
    assert_eq!(texts(&scene.dir), expected);
    opened.journal.close();
    Session::open(&scene.dir, small(Arc::new(Quick))).unwrap();
    assert_eq!(texts(&scene.dir), expected);
}

/// A write whose flush failed is made again in the next segment: what follows the named end is no part of the log.
#[test]
fn what_stands_behind_a_named_end_is_not_read() {
    let (scene, _) = rotated(18);
    let paths = segments(&scene);
    let mut bytes = std::fs::read(&paths[2]).unwrap();
    bytes.extend_from_slice(b"noise\n");
    std::fs::remove_file(&paths[2]).unwrap();
    std::fs::write(&paths[2], bytes).unwrap();
    assert_eq!(texts(&scene.dir), words(18));
    assert_eq!(Reader::open(&scene.dir).unwrap().losses().unwrap(), []);
}

/// What is missing is named where it should stand.
#[test]
fn a_missing_segment_and_a_missing_end_are_named() {
    let damage = |scene: &Scene| {
        let OpenError::Damaged { damage, .. } = scene.open().unwrap_err() else {
            panic!("something is gone")
        };
        assert_eq!(damage.bad, FrameError::Missing);
        (damage.seq, damage.segment, damage.offset)
    };
    let (scene, _) = rotated(18);
    let paths = segments(&scene);
    let text = std::fs::read_to_string(&paths[2]).unwrap();
    let whole = text.len();
    let end = text.trim_end().rfind('\n').unwrap() + 1;
    let fourth = first(&paths[3]);
    std::fs::remove_file(&paths[3]).unwrap();
    assert_eq!(damage(&scene), (fourth, paths[2].clone(), whole as u64));
    std::fs::remove_file(&paths[0]).unwrap();
    assert_eq!(damage(&scene), (1, paths[1].clone(), 0));
    let (scene, _) = rotated(18);
    let paths = segments(&scene);
    std::fs::remove_file(&paths[2]).unwrap();
    std::fs::write(&paths[2], &text[..end]).unwrap();
    assert_eq!(damage(&scene), (fourth - 1, paths[2].clone(), end as u64));
}

/// The first bad record is named where it stands, not where the segment before it ends.
#[test]
fn a_damaged_opening_is_named_itself() {
    let (scene, _) = rotated(20);
    let paths = segments(&scene);
    let mut bytes = std::fs::read(&paths[2]).unwrap();
    bytes[200] ^= 1;
    std::fs::remove_file(&paths[2]).unwrap();
    std::fs::write(&paths[2], bytes).unwrap();
    let OpenError::Damaged { damage, .. } = scene.open().unwrap_err() else {
        panic!("a bit was flipped")
    };
    assert_eq!(
        (damage.seq, &damage.segment, damage.offset),
        (first(&paths[2]), &paths[2], 0)
    );
}
