//! Formats of segments: a batch that asks for a higher one starts a segment, and nothing is lost on the way there.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use session_store::{
    EncodeError, ErrorKind, Frames, OpenError, Opened, Options, Reader, Records, Refusal, Session,
    Tail,
};

use crate::disks::{ENOSPC, Judge, Judged, Quick};
use crate::scene::{
    Asking, Notes, Scene, append, files, formats, notes, options, root, shown, text, texts,
};

fn asking(texts: &[&str]) -> Asking {
    Asking(2, notes(texts))
}

fn ask(opened: &Opened, texts: &[&str]) {
    opened.journal.append(asking(texts)).wait().unwrap();
}

/// A closed session: two notes of format 1, two of format 2, over small segments if asked.
fn mixed(segment_bytes: u64) -> Scene {
    let scene = Scene::new();
    let opened = Session::create(
        &scene.dir,
        Options {
            segment_bytes,
            ..options(Arc::new(Quick))
        },
    )
    .unwrap();
    append(&opened, &["a"]).unwrap();
    append(&opened, &["b"]).unwrap();
    ask(&opened, &["c"]);
    append(&opened, &["d"]).unwrap();
    opened.journal.close();
    scene
}

const LARGE: u64 = 16 << 20;

#[test]
fn a_batch_that_asks_starts_a_segment_of_its_format() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["a"]).unwrap();
    append(&opened, &["b"]).unwrap();
    let flushes = opened.journal.flushes();
    let before = fs::read(scene.log()).unwrap();
    let done = opened.journal.append(asking(&["c", "c+"])).wait().unwrap();
    assert_eq!((done.seqs(), done.seal()), (5..=6, None));
    assert_eq!(
        opened.journal.flushes() - flushes,
        2,
        "the file and its name"
    );
    append(&opened, &["d"]).unwrap();
    assert_eq!(opened.journal.flushes() - flushes, 3);
    ask(&opened, &["e"]);
    opened.journal.close();
    let paths = files(&scene.dir.join("log"));
    assert_eq!((paths.len(), formats(&scene.dir)), (2, vec![1, 2]));
    assert!(
        fs::read(&paths[0]).unwrap() == before,
        "nothing more is written to the segment before"
    );
    assert_eq!(
        fs::metadata(&paths[0]).unwrap().permissions().mode() & 0o777,
        0o400
    );
    let opening = &shown(&scene.dir)[3];
    let crc = u32::from_str_radix(&shown(&scene.dir)[2][6..14], 16).unwrap();
    let previous = format!(
        "\"previous\":{{\"first\":1,\"offset\":{},\"seq\":3,\"crc\":{crc}}}",
        before.len()
    );
    assert!(
        opening.ends_with(&format!("\"format\":2,\"session\":\"s-1\",{previous}}}")),
        "{opening}"
    );
    // Opened again, it stays where it is, also in the segments after this one.
    let opened = Session::open(
        &scene.dir,
        Options {
            segment_bytes: 600,
            ..options(Arc::new(Quick))
        },
    )
    .unwrap();
    (0..8).for_each(|n| drop(append(&opened, &[&format!("f{n}")]).unwrap()));
    ask(&opened, &["g"]);
    let formats = formats(&scene.dir);
    assert!(
        formats.len() > 3 && formats[0] == 1 && formats[1..].iter().all(|format| *format == 2),
        "{formats:?}"
    );
    let seqs: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap().seq)
        .collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64));
    assert_eq!(texts(&scene.dir).len(), 15);
}

#[test]
fn the_first_batch_needs_no_second_segment() {
    let scene = Scene::new();
    let opened = scene.create();
    ask(&opened, &["a"]);
    append(&opened, &["b"]).unwrap();
    assert_eq!(
        (formats(&scene.dir), opened.journal.flushes()),
        (vec![2], 5)
    );
    assert_eq!(files(&scene.dir.join("log")).len(), 1);
}

/// Holds the writer until everything behind it is queued.
struct Gate(Mutex<Receiver<()>>);

impl Records for Gate {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.0.lock().unwrap().recv().ok();
        notes(&["gate"]).encode(frames)
    }
}

/// Asks, and cannot be encoded.
struct Broken;

impl Records for Broken {
    fn encode(&self, _: &mut Frames<'_>) -> Result<(), EncodeError> {
        Err(EncodeError::Own("broken".to_owned()))
    }

    fn format(&self) -> u32 {
        2
    }
}

#[test]
fn batches_of_several_formats_keep_their_order() {
    let scene = Scene::new();
    let opened = scene.create();
    let (go, gate) = channel();
    let first = opened.journal.append(Gate(Mutex::new(gate)));
    let commits: Vec<_> = [1, 1, 2, 1, 2]
        .iter()
        .enumerate()
        .map(|(n, format)| {
            opened
                .journal
                .append(Asking(*format, notes(&[&n.to_string()])))
        })
        .collect();
    drop(go);
    first.wait().unwrap();
    let seqs: Vec<_> = commits
        .into_iter()
        .map(|commit| *commit.wait().unwrap().seqs().end())
        .collect();
    // Two groups: the second begins with the record that opens its segment.
    assert_eq!(seqs, [3, 4, 6, 7, 8]);
    assert_eq!(
        (formats(&scene.dir), texts(&scene.dir)),
        (
            vec![1, 2],
            ["gate", "0", "1", "2", "3", "4"]
                .map(str::to_owned)
                .to_vec()
        )
    );
}

/// Neither the batch that is refused nor those queued behind it change the format.
#[test]
fn a_batch_that_cannot_be_stored_starts_no_segment() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["a"]).unwrap();
    let (go, gate) = channel();
    let first = opened.journal.append(Gate(Mutex::new(gate)));
    let broken = opened.journal.append(Broken);
    let behind = opened.journal.append(notes(&["b"]));
    drop(go);
    first.wait().unwrap();
    assert!(matches!(broken.wait().unwrap_err().why, Refusal::Encode(_)));
    behind.wait().unwrap();
    let refused = opened
        .journal
        .append(Asking(3, notes(&["c"])))
        .wait()
        .unwrap_err();
    assert_eq!(
        (refused.why.clone(), refused.kind()),
        (Refusal::Encode(EncodeError::Format(3)), ErrorKind::Bug)
    );
    assert!(refused.batch.is_some() && !opened.journal.suspended());
    append(&opened, &["d"]).unwrap();
    assert_eq!(
        (formats(&scene.dir), texts(&scene.dir)),
        (vec![1], ["a", "gate", "b", "d"].map(str::to_owned).to_vec())
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in files(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target)
        } else {
            fs::copy(&path, &target).map(drop).unwrap()
        }
    }
}

/// A process that is killed leaves the files as they are: each copy is what the next one finds.
#[test]
fn a_kill_at_each_point_of_a_switch_loses_nothing() {
    let scene = Scene::new();
    let copies = root();
    let on = Arc::new(AtomicBool::new(false));
    let reached = Arc::new(Mutex::new(Vec::new()));
    let probe = {
        let on = Arc::clone(&on);
        let reached = Arc::clone(&reached);
        let dir = scene.dir.clone();
        let into = copies.path().to_path_buf();
        move |point: &'static str| {
            if on.load(Ordering::SeqCst) {
                let mut reached = reached.lock().unwrap();
                copy(&dir, &into.join(reached.len().to_string()));
                reached.push(point);
            }
        }
    };
    let given = Options {
        probe: Arc::new(probe),
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, given).unwrap();
    append(&opened, &["a", "a+"]).unwrap();
    on.store(true, Ordering::SeqCst);
    ask(&opened, &["b", "b+"]);
    on.store(false, Ordering::SeqCst);
    let points =
        ["encoded", "written", "renamed", "synced", "head"].map(|point| format!("journal:{point}"));
    assert_eq!(*reached.lock().unwrap(), points);
    for (n, point) in points.iter().enumerate() {
        let dir = copies.path().join(n.to_string());
        let there = n >= 2;
        for round in 0..2 {
            let opened = Session::open(&dir, options(Arc::new(Quick)))
                .unwrap_or_else(|e| panic!("{point}: {e}"));
            assert_eq!(
                (opened.recovered.class, opened.recovered.cut),
                (None, 0),
                "{point} {round}"
            );
            assert_eq!(
                opened.recovered.last,
                if there { 6 } else { 3 },
                "{point} {round}"
            );
            opened.journal.close();
        }
        assert!(
            files(&dir.join("log"))
                .iter()
                .all(|path| path.extension().unwrap() == "jsonl"),
            "{point}"
        );
        let opened = Session::open(&dir, options(Arc::new(Quick))).unwrap();
        append(&opened, &["c"]).unwrap();
        assert_eq!(
            formats(&dir),
            if there { vec![1, 2] } else { vec![1] },
            "{point}"
        );
        ask(&opened, &["d"]);
        assert_eq!(formats(&dir), [1, 2], "{point}");
        let expected = if there { "a a+ b b+ c d" } else { "a a+ c d" };
        assert_eq!(texts(&dir).join(" "), expected, "{point}");
    }
}

/// Unnamed segments find no room until there is some.
struct NoRoom(Arc<AtomicBool>);

impl Judge for NoRoom {
    fn before(&self, _: session_store::Op, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn writable(&self, path: &Path, len: usize) -> io::Result<usize> {
        let full = self.0.load(Ordering::SeqCst) && path.extension().is_some_and(|e| e == "tmp");
        if full {
            Err(io::Error::from_raw_os_error(ENOSPC))
        } else {
            Ok(len)
        }
    }
}

#[test]
fn without_room_for_a_segment_the_one_before_goes_on() {
    let scene = Scene::new();
    let full = Arc::new(AtomicBool::new(false));
    let opened = Session::create(
        &scene.dir,
        options(Arc::new(Judged(NoRoom(Arc::clone(&full))))),
    )
    .unwrap();
    append(&opened, &["a"]).unwrap();
    full.store(true, Ordering::SeqCst);
    let refused = opened.journal.append(asking(&["b"])).wait().unwrap_err();
    assert!(matches!(refused.why, Refusal::Full(_)) && opened.journal.suspended());
    assert_eq!(
        files(&scene.dir.join("log")).len(),
        1,
        "what did not become a segment takes no room"
    );
    opened
        .journal
        .append_reserved(notes(&["suspended"]))
        .wait()
        .unwrap();
    append(&opened, &["c"]).unwrap();
    assert_eq!(formats(&scene.dir), [1]);
    let again = opened
        .journal
        .append(refused.batch.unwrap())
        .wait()
        .unwrap_err();
    full.store(false, Ordering::SeqCst);
    opened.journal.append(again.batch.unwrap()).wait().unwrap();
    opened.journal.close();
    assert_eq!(
        (formats(&scene.dir), texts(&scene.dir).join(" ")),
        (vec![1, 2], "a suspended c b".to_owned())
    );
    let opened = scene.open().unwrap();
    assert_eq!((opened.recovered.last, opened.recovered.class), (6, None));
}

/// One flush of a directory fails.
struct NameLost(AtomicUsize);

impl Judge for NameLost {
    fn before(&self, op: session_store::Op, path: &Path) -> io::Result<()> {
        let named = op == session_store::Op::SyncDir && path.ends_with("log");
        // Opening makes the name of the log durable.
        let lost = named && self.0.fetch_add(1, Ordering::SeqCst) == 1;
        if lost {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }
}

/// A crash may leave the refused segment under its name: what was acknowledged after it must not be in the file before.
#[test]
fn once_a_segment_may_have_its_name_the_one_before_is_over() {
    let scene = Scene::new();
    let opened = Session::create(
        &scene.dir,
        options(Arc::new(Judged(NameLost(AtomicUsize::new(0))))),
    )
    .unwrap();
    append(&opened, &["a"]).unwrap();
    let before = fs::read(scene.log()).unwrap();
    let refused = opened.journal.append(asking(&["b"])).wait().unwrap_err();
    assert!(matches!(refused.why, Refusal::Disk(_)));
    append(&opened, &["c"]).unwrap();
    assert!(fs::read(scene.log()).unwrap() == before);
    // It was not committed, so the format is the old one.
    assert_eq!(
        (formats(&scene.dir), texts(&scene.dir).join(" ")),
        (vec![1, 1], "a c".to_owned())
    );
    opened
        .journal
        .append(refused.batch.unwrap())
        .wait()
        .unwrap();
    opened.journal.close();
    drop(scene.open().unwrap());
    assert_eq!(
        (formats(&scene.dir), texts(&scene.dir).join(" ")),
        (vec![1, 1, 2], "a c b".to_owned())
    );
}

/// Every way to read goes across.
#[test]
fn readers_of_a_log_of_two_formats() {
    for segment_bytes in [600, LARGE] {
        let scene = mixed(segment_bytes);
        let lines = shown(&scene.dir);
        let reader = Reader::open(&scene.dir).unwrap();
        assert_eq!(
            (reader.tail().unwrap(), reader.losses().unwrap()),
            (Tail::Clean, vec![])
        );
        for seq in 1..=reader.durable() {
            let found: Vec<_> = reader
                .from(seq)
                .unwrap()
                .map(|frame| frame.unwrap().line)
                .collect();
            assert_eq!(found, lines[seq as usize - 1..], "{seq}");
            let page: Vec<_> = reader
                .page(seq + 1, 2, 1 << 20)
                .unwrap()
                .into_iter()
                .map(|frame| frame.line)
                .collect();
            assert_eq!(
                page,
                lines[(seq as usize).saturating_sub(2)..seq as usize],
                "{seq}"
            );
        }
        let (opened, past) = Session::resume(&scene.dir, options(Arc::new(Quick))).unwrap();
        assert_eq!(
            past.all()
                .map(|frame| frame.unwrap().line)
                .collect::<Vec<_>>(),
            lines
        );
        // A checkpoint in one format serves in the other.
        let second = session_store::RecordId::of(&reader.frames().nth(1).unwrap().unwrap());
        opened.journal.checkpoint(second, 1, b"a".to_vec());
        opened.journal.close();
        let (_opened, past) = Session::resume(&scene.dir, options(Arc::new(Quick))).unwrap();
        assert_eq!(past.checkpoint().unwrap().seq(), 2);
        let behind: Vec<_> = past
            .behind_checkpoint()
            .map(|frame| frame.unwrap().line)
            .collect();
        assert_eq!(behind, lines[2..]);
    }
}

#[test]
fn a_follower_goes_across_a_switch() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["a"]).unwrap();
    let mut following = Reader::open(&scene.dir).unwrap().follow();
    assert_eq!(
        following
            .by_ref()
            .filter(|frame| frame.as_ref().unwrap().kind == "note")
            .count(),
        1
    );
    ask(&opened, &["b"]);
    append(&opened, &["c"]).unwrap();
    assert!(following.look().unwrap());
    let notes: Vec<_> = following
        .map(Result::unwrap)
        .filter(|f| f.kind == "note")
        .map(|f| text(&f.line))
        .collect();
    assert_eq!(notes, ["b", "c"]);
}

/// The same log with another format in the last segment's first record.
fn relabelled(scene: &Scene, format: u64) -> std::path::PathBuf {
    let path = files(&scene.dir.join("log")).pop().unwrap();
    let log = fs::read_to_string(&path).unwrap();
    let (first, rest) = log.split_once('\n').unwrap();
    let changed = first.replace("\"format\":2", &format!("\"format\":{format}"));
    let crc = format!("{:08x}", crc32c::crc32c(&changed.as_bytes()[15..]));
    // The lines behind it do not continue it, and do not have to: a later format may be of other lines.
    fs::write(
        &path,
        format!("{}{crc}{}\n{rest}", &changed[..6], &changed[14..]),
    )
    .unwrap();
    path
}

#[test]
fn a_later_format_is_refused_and_not_touched() {
    let scene = mixed(LARGE);
    let mut following = Reader::open(&scene.dir).unwrap().from(2).unwrap();
    following.next().unwrap().unwrap();
    let path = relabelled(&scene, 3);
    let bytes = fs::read(&path).unwrap();
    let Err(error @ OpenError::Format { found: 3, .. }) = scene.open() else {
        panic!("it is opened")
    };
    let message = format!(
        "{} has journal format 3; this build reads formats 1 and 2",
        scene.dir.display()
    );
    assert_eq!(
        (error.to_string(), error.kind()),
        (message.clone(), ErrorKind::FixInput)
    );
    let error = Reader::open(&scene.dir).unwrap_err();
    assert_eq!(
        (error.to_string(), error.kind()),
        (message, ErrorKind::FixInput)
    );
    let into = scene.dir.with_extension("salvaged");
    let salvaged = Session::salvage(&scene.dir, &into, options(Arc::new(Quick)));
    assert!(matches!(salvaged, Err(OpenError::Format { found: 3, .. })) && !into.exists());
    assert!(fs::read(&path).unwrap() == bytes && files(&scene.dir.join("quarantine")).is_empty());
    // Without HEAD, and without the damage behind the first record.
    fs::remove_file(scene.head()).unwrap();
    assert!(matches!(
        Reader::open(&scene.dir),
        Err(session_store::ReadError::Format { found: 3, .. })
    ));
    fs::write(
        &path,
        bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap(),
    )
    .unwrap();
    assert!(matches!(
        scene.open(),
        Err(OpenError::Format { found: 3, .. })
    ));
}

/// A follower that was there before a newer program took over says why it ends.
#[test]
fn a_follower_refuses_a_later_format() {
    let scene = Scene::new();
    let opened = scene.create();
    append(&opened, &["a"]).unwrap();
    let mut following = Reader::open(&scene.dir).unwrap().follow();
    assert_eq!(following.by_ref().count(), 2);
    ask(&opened, &["b"]);
    opened.journal.close();
    relabelled(&scene, 3);
    assert!(matches!(
        following.look(),
        Err(session_store::ReadError::Format { found: 3, .. })
    ));
}

/// A copy is never of a lower format than what it is a copy of.
#[test]
fn salvage_keeps_formats() {
    // The segment whose opening is lost, and the formats of the copy.
    let cases: [(&[usize], &[u64]); 4] = [
        (&[], &[1, 1, 2, 2]),
        (&[1], &[1, 2, 2, 2]),
        (&[2], &[1, 1, 2, 2]),
        (&[3], &[1, 1, 2, 2]),
    ];
    for (lost, expected) in cases {
        let scene = mixed(300);
        let paths = files(&scene.dir.join("log"));
        assert_eq!(paths.len(), 4, "{paths:?}");
        for n in lost {
            let mut bytes = fs::read(&paths[*n]).unwrap();
            bytes[130] ^= 1;
            fs::remove_file(&paths[*n]).unwrap();
            fs::write(&paths[*n], bytes).unwrap();
        }
        let into = scene.dir.with_extension("salvaged");
        Session::salvage(&scene.dir, &into, options(Arc::new(Quick))).unwrap();
        assert_eq!(formats(&into), expected, "{lost:?}");
        drop(Session::open(&into, options(Arc::new(Quick))).unwrap());
    }
    // The content of the only segment is unknown.
    let scene = Scene::with(&[&["a"], &["b"]]);
    let mut bytes = fs::read(scene.log()).unwrap();
    bytes[130] ^= 1;
    fs::write(scene.log(), bytes).unwrap();
    let into = scene.dir.with_extension("salvaged");
    Session::salvage(&scene.dir, &into, options(Arc::new(Quick))).unwrap();
    assert_eq!(formats(&into), [2]);
}

/// Appends whatever comes and reads it back: order, texts, formats.
#[test]
fn random_asks_over_random_segments() {
    let mut dice = 7_u64;
    let mut roll = |below: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % below
    };
    for round in 0..60 {
        let scene = Scene::new();
        let given = || Options {
            segment_bytes: 500 + 100 * round,
            ..options(Arc::new(Quick))
        };
        let mut opened = Session::create(&scene.dir, given()).unwrap();
        let mut expected = Vec::new();
        let mut asked = false;
        for n in 0..20 {
            if roll(6) == 0 {
                opened.journal.close();
                opened = Session::open(&scene.dir, given()).unwrap();
            }
            let asks = roll(8) == 0;
            asked |= asks;
            let batch = Notes((0..=roll(3)).map(|m| format!("{n}.{m}")).collect());
            expected.extend(batch.0.clone());
            opened
                .journal
                .append(Asking(1 + u32::from(asks), batch))
                .wait()
                .unwrap();
            assert_eq!(
                *formats(&scene.dir).last().unwrap(),
                1 + u64::from(asked),
                "{round}"
            );
        }
        assert!(
            formats(&scene.dir).is_sorted() && texts(&scene.dir) == expected,
            "{round}"
        );
    }
}
