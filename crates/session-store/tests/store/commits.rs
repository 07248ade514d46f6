//! Group commit, refusals, and who may write.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

use session_store::{ErrorKind, MAX_QUEUE, Op, OpenError, Opened, Options, Refusal, Session};

use crate::disks::{ENOSPC, Judge, Judged, Quick};
use crate::scene::{Scene, append, notes, options, texts};

/// A session whose writer stops once before its first flush; calling the function lets it go on.
fn held(scene: &Scene) -> (Opened, std::sync::mpsc::Receiver<()>, impl Fn()) {
    let (reached, arrived) = channel();
    let (go, wait) = sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let first = AtomicBool::new(true);
    let probe = Arc::new(move |point: &'static str| {
        if point == "journal:written" && first.swap(false, Ordering::SeqCst) {
            reached.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
    });
    let options = Options {
        probe,
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, options).unwrap();
    (opened, arrived, move || go.send(()).unwrap())
}

#[test]
fn sixty_four_waiters_share_one_flush() {
    let scene = Scene::new();
    let (opened, arrived, go) = held(&scene);
    let before = opened.journal.flushes();
    let first = opened.journal.append(notes(&["0"]));
    arrived.recv().unwrap();
    let others: Vec<_> = (1..=64)
        .map(|n| opened.journal.append(notes(&[&n.to_string()])))
        .collect();
    assert_eq!(opened.journal.durable(), 0);
    go();
    assert_eq!(first.wait().unwrap().seqs(), 2..=2);
    for (n, commit) in (3..).zip(others) {
        assert_eq!(commit.wait().unwrap().seqs(), n..=n);
    }
    assert_eq!(opened.journal.flushes() - before, 2);
    assert_eq!(opened.journal.durable(), 66);
    assert_eq!(
        texts(&scene.dir),
        (0..=64).map(|n| n.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn flushes_of_creating_opening_and_committing() {
    let scene = Scene::new();
    let opened = scene.create();
    assert_eq!(opened.journal.flushes(), 3);
    append(&opened, &["one"]).unwrap();
    append(&opened, &["two", "three"]).unwrap();
    assert_eq!(opened.journal.flushes(), 5);
    opened.journal.close();
    let opened = scene.open().unwrap();
    assert_eq!(opened.journal.flushes(), 0);
    append(&opened, &["four"]).unwrap();
    assert_eq!(opened.journal.flushes(), 1);
    opened
        .blobs
        .put(b"the first makes two directories")
        .unwrap();
    assert_eq!(opened.journal.flushes(), 5);
    opened
        .blobs
        .put(b"the first makes two directories")
        .unwrap();
    assert_eq!(opened.journal.flushes(), 5);
}

#[test]
fn a_commit_is_queued_by_the_call() {
    let scene = Scene::new();
    let opened = scene.create();
    drop(opened.journal.append(notes(&["nobody waits"])));
    append(&opened, &["after"]).unwrap();
    assert_eq!(texts(&scene.dir), ["nobody waits", "after"]);
}

#[test]
fn a_commit_is_a_future() {
    let scene = Scene::new();
    let opened = scene.create();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let done = runtime
        .block_on(opened.journal.append(notes(&["awaited"])))
        .unwrap();
    assert_eq!(
        (done.seqs(), done.get().0.len(), done.into_inner()),
        (2..=2, 1, notes(&["awaited"]))
    );
}

#[test]
fn a_second_writer_is_told_who_the_first_is() {
    let scene = Scene::new();
    let opened = scene.create();
    let owner = Session::owner(&scene.dir).unwrap().unwrap();
    assert_eq!(owner.pid, std::process::id());
    for second in [
        scene.open(),
        Session::create(&scene.dir, options(Arc::new(Quick))),
    ] {
        let error = second.unwrap_err();
        assert!(
            matches!(&error, OpenError::Busy { owner: Some(o), .. } if *o == owner),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    opened.journal.close();
    assert_eq!(Session::owner(&scene.dir).unwrap(), None);
    let next = scene.open().unwrap();
    assert_eq!(append(&opened, &["late"]).unwrap_err().why, Refusal::Closed);
    assert!(matches!(
        opened.blobs.put(b"late"),
        Err(session_store::BlobError::Closed)
    ));
    drop(next);
    scene.open().unwrap();
}

/// A lock on a file that is not there any more keeps nobody out.
#[test]
fn a_lock_file_that_was_replaced_is_taken_anew() {
    let scene = Scene::with(&[&["one"]]);
    std::fs::remove_file(scene.dir.join("LOCK")).unwrap();
    let opened = scene.open().unwrap();
    assert!(matches!(scene.open(), Err(OpenError::Busy { .. })));
    drop(opened);
}

#[test]
fn a_full_queue_is_busy() {
    let scene = Scene::new();
    let (opened, arrived, go) = held(&scene);
    let first = opened.journal.append(notes(&["first"]));
    arrived.recv().unwrap();
    let waiting: Vec<_> = (0..MAX_QUEUE)
        .map(|_| opened.journal.append(notes(&["waits"])))
        .collect();
    let refused = opened.journal.append(notes(&["too much"]));
    let behind = opened.journal.append(notes(&["behind"]));
    go();
    first.wait().unwrap();
    assert!(waiting.into_iter().all(|commit| commit.wait().is_ok()));
    assert_eq!(behind.wait().unwrap_err().why, Refusal::Behind);
    let refused = refused.wait().unwrap_err();
    assert_eq!(
        (refused.why.clone(), refused.kind(), refused.batch),
        (Refusal::Busy, ErrorKind::Retry, Some(notes(&["too much"])))
    );
    append(&opened, &["fits now"]).unwrap();
}

/// Lets through so many bytes of log, and those again that the reserve gives back.
struct FullDisk {
    full: Arc<AtomicBool>,
}

impl Judge for FullDisk {
    fn before(&self, op: Op, path: &Path) -> io::Result<()> {
        let reserve = path.ends_with("RESERVE");
        if op == Op::Truncate && reserve {
            self.full.store(false, Ordering::SeqCst);
        }
        let takes = matches!(op, Op::Write | Op::Allocate);
        if takes && !path.ends_with("HEAD") && self.full.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        Ok(())
    }
}

#[test]
fn on_a_full_disk_the_reserve_holds_one_more_record() {
    let scene = Scene::new();
    let full = Arc::new(AtomicBool::new(false));
    let disk = Judged(FullDisk {
        full: Arc::clone(&full),
    });
    let opened = Session::create(&scene.dir, options(Arc::new(disk))).unwrap();
    append(&opened, &["one"]).unwrap();
    let reserve = scene.dir.join("RESERVE");
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 64 << 10);
    full.store(true, Ordering::SeqCst);
    let refused = append(&opened, &["two"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exhausted);
    assert!(matches!(refused.why, Refusal::Full(_)));
    assert!(opened.journal.suspended());
    assert_eq!(texts(&scene.dir), ["one"]);
    opened
        .journal
        .append_reserved(notes(&["suspended"]))
        .wait()
        .unwrap();
    assert!(opened.journal.suspended());
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 0);
    opened
        .journal
        .append(refused.batch.unwrap())
        .wait()
        .unwrap();
    assert!(!opened.journal.suspended());
    assert_eq!(texts(&scene.dir), ["one", "suspended", "two"]);
    opened.journal.close();
    assert_eq!(std::fs::metadata(&reserve).unwrap().len(), 64 << 10);
}
