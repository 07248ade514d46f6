//! The n-th operation fails, or the power goes at it, for every n: what was acknowledged is there afterwards.

use std::path::Path;
use std::sync::Arc;

use session_store::{BlobRef, Disk, Options, RealDisk, Recovered, Session};

use crate::disks::{EIO, ENOSPC, Fault, Nth, Power, Quick};
use crate::scene::{Asking, Notes, Scene, files, formats, notes, options, root, shown, texts};

/// More operations than any scene here has.
const PLENTY: usize = 400;

/// Small segments, so that each scene fills some.
fn given(disk: Arc<dyn Disk>) -> Options {
    Options {
        segment_bytes: 1000,
        ..options(disk)
    }
}

/// What a caller was told.
#[derive(Default, Debug)]
struct Told {
    acked: Vec<String>,
    /// Appended and not acknowledged.
    refused: Vec<String>,
    blobs: Vec<BlobRef>,
    /// The last append was acknowledged, so that the log is what the caller thinks.
    settled: bool,
}

/// Makes or opens a session and works in it; each refused batch is tried once more.
fn work(
    dir: &Path,
    options: Options,
    names: &[&str],
    fresh: bool,
    told: &mut Told,
) -> Option<Recovered> {
    let entered = if fresh {
        Session::create(dir, options)
    } else {
        Session::open(dir, options)
    };
    let opened = entered.ok()?;
    for (n, name) in names.iter().enumerate() {
        if n == 1
            && let Ok(blob) = opened.blobs.put(name.repeat(100).as_bytes())
        {
            told.blobs.push(blob);
        }
        let second = format!("{name}+");
        let mut batch = Asking(
            if name.ends_with('!') { 2 } else { 1 },
            notes(&[name, &second]),
        );
        told.settled = false;
        for _ in 0..2 {
            match opened.journal.append(batch).wait() {
                Ok(done) => {
                    told.acked.extend(done.into_inner().1.0);
                    told.settled = true;
                    break;
                }
                Err(refused) => batch = refused.batch.unwrap(),
            }
        }
        if !told.settled {
            told.refused.extend([(*name).to_owned(), second]);
        }
    }
    opened.journal.close();
    Some(opened.recovered)
}

/// Opens without faults and compares with what the caller was told.
fn check(dir: &Path, told: &Told, what: &str) {
    if told.acked.is_empty() && !dir.join("log").exists() {
        return;
    }
    let opened =
        Session::open(dir, options(Arc::new(Quick))).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = texts(dir);
    // Whatever else is there was handed over, and is whole.
    let mut acked = told.acked.iter().peekable();
    for text in &found {
        if acked.peek() == Some(&text) {
            acked.next();
        } else {
            assert!(
                told.refused.contains(text),
                "{what}: {text} in {found:?}, {told:?}"
            );
            assert!(
                !told.settled || acked.peek().is_some(),
                "{what}: {text} behind the end of {told:?}"
            );
        }
    }
    assert_eq!(
        acked.next(),
        None,
        "{what}: acknowledged and not in {found:?}"
    );
    for pair in found.chunks(2) {
        assert!(
            matches!(pair, [one, two] if *two == format!("{one}+")),
            "{what}: half a batch in {found:?}"
        );
    }
    assert!(
        found.iter().all(|text| !text.ends_with('!')) || formats(dir).last() == Some(&2),
        "{what}"
    );
    for blob in &told.blobs {
        assert_eq!(
            opened.blobs.view().verify(&blob.digest),
            Ok(blob.len),
            "{what}"
        );
    }
    opened
        .journal
        .append(Notes(vec!["after".to_owned()]))
        .wait()
        .unwrap();
    let seqs: Vec<_> = session_store::Reader::open(dir)
        .unwrap()
        .frames()
        .map(|f| f.unwrap().seq)
        .collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{what}");
}

#[test]
fn whatever_operation_fails_what_was_acknowledged_is_there() {
    let faults = [
        Fault::Once(EIO),
        Fault::Once(ENOSPC),
        Fault::Half(EIO),
        Fault::Half(ENOSPC),
        Fault::Ever(EIO),
        Fault::Ever(ENOSPC),
    ];
    for fault in faults {
        for n in 0.. {
            assert!(n < PLENTY);
            let scene = Scene::new();
            let disk = Arc::new(Nth::disk(n, fault));
            let given = given(Arc::clone(&disk) as Arc<dyn Disk>);
            let mut told = Told::default();
            let made = work(
                &scene.dir,
                given.clone(),
                &["a", "b!", "c"],
                true,
                &mut told,
            )
            .is_some();
            work(&scene.dir, given, &["d", "e"], !made, &mut told);
            check(&scene.dir, &told, &format!("{fault:?} at operation {n}"));
            if !disk.0.reached() {
                assert!(n > 40 && told.refused.is_empty(), "{n} operations");
                break;
            }
        }
    }
}

/// Works with a disk that loses its power, and gives back what the machine finds when it starts again.
fn powered(disk: Power, scene: &Scene, told: &mut Told) -> Arc<Power> {
    let root = scene.dir.parent().unwrap();
    disk.sync_dir(root).ok();
    let disk = Arc::new(disk);
    let given = given(Arc::clone(&disk) as Arc<dyn Disk>);
    let made = work(&scene.dir, given.clone(), &["a", "b!", "c"], true, told).is_some();
    work(&scene.dir, given, &["d", "e"], !made, told);
    disk
}

fn restarted(disk: &Power, scene: &Scene, told: &Told, what: &str) {
    let after = root();
    disk.restart(scene.dir.parent().unwrap(), &after.path().join("r"));
    let dir = after.path().join("r").join("one");
    // The last words of a machine without power are not settled.
    let told = Told {
        acked: told.acked.clone(),
        refused: told.refused.clone(),
        blobs: told.blobs.clone(),
        settled: false,
    };
    check(&dir, &told, what);
}

/// Removing any one flush makes this fail.
#[test]
fn whenever_the_power_goes_what_was_acknowledged_is_there() {
    for n in 1.. {
        assert!(n < PLENTY);
        let scene = Scene::new();
        let mut told = Told::default();
        let disk = powered(Power::failing(Some(n), None), &scene, &mut told);
        restarted(&disk, &scene, &told, &format!("power off at operation {n}"));
        if disk.operations() <= n {
            assert!(n > 40 && told.refused.is_empty());
            break;
        }
    }
}

/// A flush fails first, the power goes later: nothing that the failed flush left behind was counted on.
#[test]
fn a_failed_flush_is_never_believed_again() {
    let total = powered(Power::default(), &Scene::new(), &mut Told::default()).operations();
    for bad in 1..total {
        let scene = Scene::new();
        let mut told = Told::default();
        let disk = powered(Power::failing(None, Some(bad)), &scene, &mut told);
        restarted(&disk, &scene, &told, &format!("flush {bad} failed"));
        if bad % 3 > 0 {
            continue;
        }
        for off in (bad + 1..disk.operations()).step_by(5) {
            let scene = Scene::new();
            let mut told = Told::default();
            let disk = powered(Power::failing(Some(off), Some(bad)), &scene, &mut told);
            restarted(
                &disk,
                &scene,
                &told,
                &format!("flush {bad} failed, power off at {off}"),
            );
        }
    }
}

/// A log whose last group is torn: a whole batch, then half of one.
fn torn() -> (Scene, Vec<u8>, Vec<String>) {
    let scene = Scene::with(&[&["a", "a+"], &["b", "b+"], &["c", "c+"]]);
    std::fs::remove_file(scene.head()).unwrap();
    let lines = shown(&scene.dir);
    let bytes = std::fs::read(scene.log()).unwrap();
    let cut = bytes.len() - lines.last().unwrap().len() / 2;
    std::fs::write(scene.log(), &bytes[..cut]).unwrap();
    let tail = lines[5].len() + 1 + lines[6].len() + 1 - lines[6].len() / 2;
    (scene, bytes[cut - tail..cut].to_vec(), lines[..5].to_vec())
}

#[test]
fn recovery_that_fails_anywhere_can_be_done_again() {
    for fault in [
        Fault::Once(EIO),
        Fault::Ever(EIO),
        Fault::Ever(ENOSPC),
        Fault::Half(ENOSPC),
    ] {
        for n in 0.. {
            assert!(n < PLENTY);
            let (scene, tail, kept) = torn();
            let disk = Arc::new(Nth::disk(n, fault));
            let first = Session::open(&scene.dir, options(Arc::clone(&disk) as Arc<dyn Disk>));
            if let Ok(opened) = first {
                opened.journal.close();
            }
            for _ in 0..2 {
                let opened = scene
                    .open()
                    .unwrap_or_else(|e| panic!("{fault:?} at {n}: {e}"));
                assert_eq!(opened.recovered.last, 5, "{fault:?} at {n}");
                assert_eq!(shown(&scene.dir), kept, "{fault:?} at {n}");
                opened.journal.close();
            }
            let copies: Vec<_> = files(&scene.dir.join("quarantine"))
                .into_iter()
                .filter(|path| path.extension().is_some_and(|e| e == "bytes"))
                .collect();
            assert_eq!(copies.len(), 1, "{fault:?} at {n}: {copies:?}");
            assert_eq!(std::fs::read(&copies[0]).unwrap(), tail, "{fault:?} at {n}");
            if !disk.0.reached() {
                assert!(n > 15, "{n} operations");
                break;
            }
        }
    }
}

/// Recovery cuts; the power goes; whatever it was at, the bytes are in the log or in quarantine.
#[test]
fn no_byte_leaves_without_quarantine_whenever_the_power_goes() {
    for n in 1.. {
        assert!(n < PLENTY);
        let (scene, tail, kept) = torn();
        let disk = Arc::new(Power::failing(Some(n), None));
        // What a process left that was killed: in the page cache, and by now on the disk too.
        disk.adopt(scene.dir.parent().unwrap());
        if let Ok(opened) = Session::open(&scene.dir, options(Arc::clone(&disk) as Arc<dyn Disk>)) {
            opened
                .journal
                .append(notes(&["d", "d+"]))
                .wait()
                .map(drop)
                .ok();
            opened.journal.close();
        }
        let after = root();
        disk.restart(scene.dir.parent().unwrap(), &after.path().join("r"));
        let dir = after.path().join("r").join("one");
        let opened = Session::open(&dir, options(Arc::new(Quick))).unwrap();
        assert!(shown(&dir).starts_with(&kept), "power off at {n}");
        let copies = files(&dir.join("quarantine"));
        let copy = copies.iter().find(|path| {
            std::fs::read(path).unwrap() == tail && path.extension().unwrap() == "bytes"
        });
        let reason = copy.map(|copy| std::fs::read(copy.with_extension("json")).unwrap());
        let found =
            reason.is_some_and(|text| serde_json::from_slice::<serde_json::Value>(&text).is_ok());
        assert!(found, "power off at {n}: {:?}", opened.recovered);
        if disk.operations() <= n {
            assert!(n > 15);
            break;
        }
    }
}

/// A writer was killed between its write and its flush. What it left is whole and would be kept; before anybody is
/// shown it, it is on the disk, even if the flush had failed and the kernel calls those pages clean.
#[test]
fn what_recovery_keeps_it_first_makes_durable() {
    let scene = Scene::with(&[&["a", "a+"]]);
    let parent = scene.dir.parent().unwrap().to_path_buf();
    let disk = Arc::new(Power::default());
    disk.adopt(&parent);
    let vouched = std::fs::read(scene.head()).unwrap();
    let opened = scene.open().unwrap();
    opened.journal.append(notes(&["b", "b+"])).wait().unwrap();
    opened.journal.close();
    // The second batch is in the file, but neither on the model's disk nor vouched for.
    std::fs::write(scene.head(), vouched).unwrap();
    let opened = Session::open(&scene.dir, options(Arc::clone(&disk) as Arc<dyn Disk>)).unwrap();
    assert_eq!((opened.recovered.last, opened.recovered.class), (5, None));
    let after = root();
    disk.restart(&parent, &after.path().join("r"));
    let dir = after.path().join("r").join("one");
    assert_eq!(
        Session::open(&dir, options(Arc::new(Quick)))
            .unwrap()
            .recovered
            .last,
        5
    );
    assert_eq!(texts(&dir), ["a", "a+", "b", "b+"]);
}

/// The same door with nothing in front of it.
#[test]
fn the_real_disk_does_all_of_it() {
    let scene = Scene::new();
    let mut told = Told::default();
    work(
        &scene.dir,
        options(Arc::new(RealDisk)),
        &["a", "b"],
        true,
        &mut told,
    )
    .unwrap();
    let found = work(
        &scene.dir,
        options(Arc::new(RealDisk)),
        &["c"],
        false,
        &mut told,
    )
    .unwrap();
    assert_eq!((found.last, found.class), (5, None));
    check(&scene.dir, &told, "real disk");
}
