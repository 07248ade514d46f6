//! What is refused, what comes after, and what is left of it on the disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};

use session_store::{Disk, ErrorKind, Op, OpenError, Options, Refusal, Session};

use crate::disks::{Judge, Judged, Power, Quick};
use crate::scene::{Scene, append, files, notes, options, root, texts};

/// Fails one operation on the log's named files while told to. With `half`, writes take half their bytes first.
struct Broken {
    now: Arc<AtomicBool>,
    ops: &'static [Op],
    half: bool,
    taken: AtomicBool,
}

impl Broken {
    fn disk(now: &Arc<AtomicBool>, ops: &'static [Op]) -> Arc<Judged<Self>> {
        Arc::new(Judged(Self {
            now: Arc::clone(now),
            ops,
            half: false,
            taken: AtomicBool::new(false),
        }))
    }

    fn concerns(&self, path: &Path) -> bool {
        self.now.load(Ordering::SeqCst) && path.extension().is_some_and(|e| e == "jsonl")
    }
}

impl Judge for Broken {
    fn before(&self, op: Op, path: &Path) -> io::Result<()> {
        let half = op == Op::Write && self.half && !self.taken.load(Ordering::SeqCst);
        if self.concerns(path) && self.ops.contains(&op) && !half {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }

    fn writable(&self, path: &Path, len: usize) -> io::Result<usize> {
        let half = self.half && self.concerns(path) && !self.taken.swap(true, Ordering::SeqCst);
        Ok(if half { len / 2 } else { len })
    }
}

/// The batch behind a refused one may have been built on it.
#[test]
fn nothing_overtakes_a_refusal_that_nobody_has_seen() {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(true));
    let disk = Broken::disk(&broken, &[Op::Write]);
    let opened = Session::create(&scene.dir, options(disk)).unwrap();
    let first = opened.journal.append(notes(&["first"]));
    while !opened.journal.suspended() {
        std::thread::yield_now();
    }
    broken.store(false, Ordering::SeqCst);
    let second = opened
        .journal
        .append(notes(&["second"]))
        .wait()
        .unwrap_err();
    assert_eq!(
        (second.why.clone(), second.kind()),
        (Refusal::Behind, ErrorKind::Retry)
    );
    let first = first.wait().unwrap_err();
    assert!(
        matches!(&first.why, Refusal::Disk(fault) if fault.op == Op::Write && fault.code == Some(5))
    );
    for batch in [first.batch.unwrap(), second.batch.unwrap()] {
        opened.journal.append(batch).wait().unwrap();
    }
    assert_eq!(texts(&scene.dir), ["first", "second"]);
}

#[test]
fn a_refusal_nobody_waits_for_does_not_stop_the_journal() {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(true));
    let disk = Broken::disk(&broken, &[Op::Write]);
    let opened = Session::create(&scene.dir, options(disk)).unwrap();
    drop(opened.journal.append(notes(&["dropped"])));
    while !opened.journal.suspended() {
        std::thread::yield_now();
    }
    broken.store(false, Ordering::SeqCst);
    // The writer drops the answer a moment after it has said so.
    while append(&opened, &["next"]).is_err() {}
    assert_eq!(texts(&scene.dir), ["next"]);
}

/// A descriptor whose flush has failed may say yes to the next one without having written anything.
#[test]
fn after_a_failed_flush_the_log_goes_on_in_a_new_segment() {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(false));
    let disk = Broken::disk(&broken, &[Op::Sync]);
    let opened = Session::create(&scene.dir, options(disk)).unwrap();
    append(&opened, &["one"]).unwrap();
    broken.store(true, Ordering::SeqCst);
    let refused = append(&opened, &["two"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    // `broken` stays: a flush of the old file would be refused again.
    opened
        .journal
        .append(refused.batch.unwrap())
        .wait()
        .unwrap();
    broken.store(false, Ordering::SeqCst);
    append(&opened, &["three"]).unwrap();
    opened.journal.close();
    let names: Vec<_> = files(&scene.dir.join("log"))
        .iter()
        .map(|p| p.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        ["00000000000000000001.jsonl", "00000000000000000003.jsonl"]
    );
    assert_eq!(texts(&scene.dir), ["one", "two", "three"]);
    let opened = scene.open().unwrap();
    assert_eq!((opened.recovered.last, opened.recovered.class), (5, None));
    append(&opened, &["four"]).unwrap();
    assert_eq!(texts(&scene.dir), ["one", "two", "three", "four"]);
}

/// A batch that waited while the one before it failed may have been built on it, too.
#[test]
fn what_was_queued_behind_a_refusal_is_refused() {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(true));
    let (reached, arrived) = channel();
    let (go, wait) = sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let first = AtomicBool::new(true);
    let mended = Arc::clone(&broken);
    let probe = Arc::new(move |point: &'static str| match point {
        "journal:written" if first.swap(false, Ordering::SeqCst) => {
            reached.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
        // The next group finds a disk that works.
        "journal:encoded" if !first.load(Ordering::SeqCst) => mended.store(false, Ordering::SeqCst),
        _ => {}
    });
    let given = Options {
        probe,
        ..options(Broken::disk(&broken, &[Op::Sync]))
    };
    let opened = Session::create(&scene.dir, given).unwrap();
    let first = opened.journal.append(notes(&["first"]));
    arrived.recv().unwrap();
    let second = opened.journal.append(notes(&["second"]));
    go.send(()).unwrap();
    assert!(matches!(first.wait().unwrap_err().why, Refusal::Disk(_)));
    assert_eq!(second.wait().unwrap_err().why, Refusal::Behind);
    append(&opened, &["third"]).unwrap();
    assert_eq!(texts(&scene.dir), ["third"]);
}

/// Half a batch is in the file and cannot be cut off at once: the next one does not go on top of it.
#[test]
fn what_a_refused_write_left_is_gone_before_the_next() {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(false));
    let ops = &[Op::Write, Op::Truncate];
    let taken = AtomicBool::new(false);
    let disk = Judged(Broken {
        now: Arc::clone(&broken),
        ops,
        half: true,
        taken,
    });
    let opened = Session::create(&scene.dir, options(Arc::new(disk))).unwrap();
    append(&opened, &["one"]).unwrap();
    broken.store(true, Ordering::SeqCst);
    append(&opened, &["long".repeat(200).as_str(); 4]).unwrap_err();
    let refused = append(&opened, &["two"]).unwrap_err();
    assert!(matches!(refused.why, Refusal::Disk(fault) if fault.op == Op::Truncate));
    broken.store(false, Ordering::SeqCst);
    append(&opened, &["two"]).unwrap();
    opened.journal.close();
    assert_eq!(scene.open().unwrap().recovered.class, None);
    assert_eq!(texts(&scene.dir), ["one", "two"]);
}

/// A session with a second segment, its first one as a failed flush has left it; HEAD as it was before.
fn two_segments(between: impl FnOnce(&Path)) -> Scene {
    let scene = Scene::new();
    let broken = Arc::new(AtomicBool::new(false));
    let disk = Broken::disk(&broken, &[Op::Sync, Op::Truncate]);
    let opened = Session::create(&scene.dir, options(disk)).unwrap();
    append(&opened, &["one"]).unwrap();
    let head = std::fs::read(scene.head()).unwrap();
    between(scene.dir.parent().unwrap());
    broken.store(true, Ordering::SeqCst);
    append(&opened, &["refused"]).unwrap_err();
    append(&opened, &["two"]).unwrap();
    opened.journal.close();
    assert!(
        std::fs::read_to_string(scene.log())
            .unwrap()
            .contains("refused")
    );
    std::fs::write(scene.head(), head).unwrap();
    scene
}

#[test]
fn what_stands_behind_the_end_of_a_segment_is_no_part_of_the_log() {
    let scene = two_segments(|_| {});
    let opened = scene.open().unwrap();
    assert_eq!((opened.recovered.last, opened.recovered.class), (4, None));
    assert_eq!(texts(&scene.dir), ["one", "two"]);
}

/// The writer was killed before it could make the new segment's name durable.
#[test]
fn a_segment_found_is_made_durable_with_its_name() {
    let disk = Arc::new(Power::default());
    let scene = two_segments(|root| disk.adopt(root));
    Session::open(&scene.dir, options(Arc::clone(&disk) as Arc<dyn Disk>))
        .unwrap()
        .journal
        .close();
    let after = root();
    disk.restart(scene.dir.parent().unwrap(), &after.path().join("r"));
    let dir = after.path().join("r").join("one");
    let opened = Session::open(&dir, options(Arc::new(Quick))).unwrap();
    assert_eq!(
        (opened.recovered.last, texts(&dir)),
        (4, vec!["one".to_owned(), "two".to_owned()])
    );
}

/// A later segment was whole before it had a name: a torn beginning is damage, and nothing is cut anywhere.
#[test]
fn a_torn_later_segment_is_damage() {
    let scene = two_segments(|_| {});
    std::fs::remove_file(scene.head()).unwrap();
    let second = scene.dir.join("log/00000000000000000003.jsonl");
    let whole = std::fs::read(&second).unwrap();
    for keep in [0, 10, 150] {
        std::fs::write(&second, &whole[..keep]).unwrap();
        let before = std::fs::read(scene.log()).unwrap();
        assert!(
            matches!(scene.open(), Err(OpenError::Damaged { .. })),
            "{keep}"
        );
        assert_eq!(std::fs::read(scene.log()).unwrap(), before);
        assert!(files(&scene.dir.join("quarantine")).is_empty());
    }
}

/// An empty later segment right behind a whole log is damage as well: a batch written into it would follow a hole.
#[test]
fn an_empty_later_segment_is_damage() {
    for head in [true, false] {
        let scene = Scene::with(&[&["one"], &["two"]]);
        if !head {
            std::fs::remove_file(scene.head()).unwrap();
        }
        let empty = scene.dir.join("log/00000000000000000004.jsonl");
        std::fs::write(&empty, "").unwrap();
        let before = std::fs::read(scene.log()).unwrap();
        assert!(
            matches!(scene.open(), Err(OpenError::Damaged { .. })),
            "HEAD: {head}"
        );
        assert_eq!(
            (
                std::fs::read(scene.log()).unwrap(),
                std::fs::read(&empty).unwrap()
            ),
            (before, Vec::new())
        );
    }
}

/// Replaces the lock file right after it was opened to be locked, which is the second time that it is opened.
#[derive(Default)]
struct Replacing(AtomicUsize);

impl Judge for Replacing {
    fn before(&self, _: Op, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn opened(&self, path: &Path) {
        if path.ends_with("LOCK") && self.0.fetch_add(1, Ordering::SeqCst) == 1 {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, "").unwrap();
        }
    }
}

/// A lock on a file that has lost its name keeps nobody out.
#[test]
fn the_lock_is_on_the_file_that_has_the_name() {
    let scene = Scene::with(&[&["one"]]);
    let first = Session::open(&scene.dir, options(Arc::new(Judged(Replacing::default())))).unwrap();
    assert!(matches!(scene.open(), Err(OpenError::Busy { .. })));
    drop(first);
}

/// A log whose beginning is missing has lost something, whatever its first file says.
#[test]
fn a_log_without_its_first_segment_is_damage() {
    let scene = Scene::with(&[&["one"]]);
    std::fs::remove_file(scene.head()).unwrap();
    let renamed = scene.dir.join("log/00000000000000000002.jsonl");
    std::fs::rename(scene.log(), &renamed).unwrap();
    assert!(matches!(scene.open(), Err(OpenError::Damaged { .. })));
    assert!(std::fs::metadata(&renamed).unwrap().len() > 0);
}
