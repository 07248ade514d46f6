//! Damage: the first bad record, what is lost, and a copy of the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use session_store::{OpenError, Options, OwnedFrame, Reader, Salvaged, Session};

use crate::disks::{EIO, ENOSPC, Fault, Nth, Quick};
use crate::scene::{Scene, append, files, options, texts};

fn small(disk: Arc<dyn session_store::Disk>) -> Options {
    Options {
        segment_bytes: 900,
        ..options(disk)
    }
}

/// Batches of three notes in several segments, of several writers.
fn scene() -> Scene {
    let scene = Scene::new();
    let mut opened = Session::create(&scene.dir, small(Arc::new(Quick))).unwrap();
    for n in 0..12 {
        if n % 5 == 4 {
            opened.journal.close();
            opened = Session::open(&scene.dir, small(Arc::new(Quick))).unwrap();
        }
        append(
            &opened,
            &[&format!("{n}.0"), &format!("{n}.1"), &format!("{n}.2")],
        )
        .unwrap();
    }
    opened.journal.close();
    scene
}

fn frames(dir: &Path) -> Vec<OwnedFrame> {
    Reader::open(dir)
        .unwrap()
        .frames()
        .map(Result::unwrap)
        .collect()
}

fn copy(scene: &Scene) -> PathBuf {
    scene.dir.with_extension("salvaged")
}

fn salvage(scene: &Scene) -> Salvaged {
    Session::salvage(&scene.dir, &copy(scene), options(Arc::new(Quick))).unwrap()
}

/// Replaces a file, which may be protected.
fn put(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).ok();
    std::fs::write(path, bytes).unwrap();
}

/// Flips a bit in the line of this seq.
fn spoil(scene: &Scene, seq: u64) {
    for path in files(&scene.dir.join("log")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line[61..73].trim().parse::<u64>().unwrap() == seq {
                let mut bytes = text.clone().into_bytes();
                bytes[at + 130] ^= 1;
                return put(&path, &bytes);
            }
            at += line.len();
        }
    }
    panic!("there is no record {seq}");
}

/// The copy is whole, has what is left under the old seqs and a gap for each that is lost, and goes on.
fn check(scene: &Scene, before: &[OwnedFrame], lost: &[u64], salvaged: &Salvaged) {
    let dir = copy(scene);
    let after = frames(&dir);
    assert_eq!(after.len(), before.len());
    let mut same = true;
    for (old, new) in before.iter().zip(&after) {
        assert_eq!(old.seq, new.seq);
        if lost.contains(&old.seq) {
            // A lost opening is made again, so that the files stay what they were.
            let expected = if old.kind == "segment" {
                "segment"
            } else {
                "gap"
            };
            assert_eq!(new.kind, expected, "{}: {}", old.seq, new.line);
            same = false;
        } else if old.kind == "segment" {
            assert_eq!((&new.kind, new.epoch), (&old.kind, old.epoch));
        } else {
            assert_eq!(
                new.line[44..],
                old.line[44..],
                "epoch, body and all between"
            );
            assert!(
                !same || new.line == old.line,
                "before the first gap nothing changes"
            );
        }
    }
    let told: Vec<u64> = salvaged
        .lost
        .iter()
        .flat_map(|damage| damage.lost.clone())
        .collect();
    assert_eq!(told, lost);
    assert_eq!(salvaged.kept as usize, before.len() - lost.len());
    let opened = Session::open(&dir, small(Arc::new(Quick))).unwrap();
    assert_eq!(
        (opened.recovered.last, opened.recovered.class),
        (before.len() as u64, None)
    );
    append(&opened, &["goes on"]).unwrap();
    opened.journal.close();
    assert_eq!(texts(&dir).last().unwrap(), "goes on");
}

/// The seqs of the batch that `seq` is in, and for a segment's opening only itself.
fn batch(frames: &[OwnedFrame], seq: u64) -> Vec<u64> {
    let at = seq as usize - 1;
    let from = (0..at)
        .rev()
        .find(|n| frames[*n].batch_left == 0)
        .map_or(0, |n| n + 1);
    let to = (at..).find(|n| frames[*n].batch_left == 0).unwrap();
    (from..=to).map(|n| frames[n].seq).collect()
}

/// What is lost with a record: its batch, and the next one unless that opens a segment, because nobody can say where
/// it begins.
fn lost_with(frames: &[OwnedFrame], seq: u64) -> Vec<u64> {
    let mut lost = batch(frames, seq);
    let last = *lost.last().unwrap() as usize;
    // Where a batch ends that can be read to its end, the next one begins.
    if seq as usize == last && frames.get(last).is_some_and(|next| next.kind != "segment") {
        lost.extend(batch(frames, last as u64 + 1));
    }
    lost
}

#[test]
fn each_record_lost_leaves_a_gap_and_nothing_else() {
    let before = frames(&scene().dir);
    assert!(
        before
            .iter()
            .filter(|frame| frame.kind == "segment")
            .count()
            > 4
    );
    for seq in 1..=before.len() as u64 {
        let scene = scene();
        spoil(&scene, seq);
        let lost = lost_with(&before, seq);
        let losses = Reader::open(&scene.dir).unwrap().losses().unwrap();
        assert_eq!(losses.len(), 1, "{seq}: {losses:?}");
        assert_eq!(
            (losses[0].seq, losses[0].lost.clone().collect::<Vec<_>>()),
            (seq, lost.clone())
        );
        let log: Vec<_> = files(&scene.dir.join("log"))
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        let salvaged = salvage(&scene);
        assert_eq!(salvaged.lost, losses);
        let after: Vec<_> = files(&scene.dir.join("log"))
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert!(log == after, "the damaged session is not touched");
        check(&scene, &before, &lost, &salvaged);
        let first = frames(&copy(&scene))
            .into_iter()
            .find(|frame| frame.kind == "gap");
        assert!(first.is_none_or(|gap| gap.line.contains(&format!("\"first\":{},", lost[0]))));
    }
}

#[test]
fn several_kinds_of_damage_at_once() {
    let whole = scene();
    let before = frames(&whole.dir);
    let firsts: Vec<u64> = before
        .iter()
        .filter(|frame| frame.kind == "segment")
        .map(|frame| frame.seq)
        .collect();
    let scene = scene();
    let paths = files(&scene.dir.join("log"));
    // A segment is gone, another one ends early, the newest one has noise in its middle.
    std::fs::remove_file(&paths[1]).unwrap();
    let short = std::fs::read(&paths[3]).unwrap();
    put(&paths[3], &short[..300]);
    let newest = paths.last().unwrap();
    let mut bytes = std::fs::read(newest).unwrap();
    bytes[280..300].fill(b'\n');
    put(newest, &bytes);
    let salvaged = salvage(&scene);
    assert_eq!(salvaged.lost.len(), 3, "{:?}", salvaged.lost);
    let lost: Vec<u64> = salvaged
        .lost
        .iter()
        .flat_map(|damage| damage.lost.clone())
        .collect();
    let gone: Vec<u64> = (firsts[1]..firsts[2]).collect();
    assert!(
        lost.starts_with(&gone) && lost.contains(&(firsts[3] + 1)),
        "{lost:?}"
    );
    assert!(
        !lost.contains(&firsts[2]) && !lost.contains(&firsts[3]),
        "{lost:?}"
    );
    check(&scene, &before, &lost, &salvaged);
}

/// The lines of a file, each with its line break.
fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap()
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect()
}

/// Whole lines that are not in their place, behind a line that is bad.
#[test]
fn lines_of_another_place_are_not_taken() {
    let whole = scene();
    let before = frames(&whole.dir);
    for strange in ["of before", "the opening again", "of behind"] {
        let scene = scene();
        let paths = files(&scene.dir.join("log"));
        let [.., first, second, newest] = &paths[..] else {
            panic!("{paths:?}")
        };
        let there = lines(second);
        let next = lines(newest);
        let opening = before
            .iter()
            .find(|frame| there[0].starts_with(&frame.line))
            .unwrap();
        let (at, stray) = match strange {
            "of before" => (1, lines(first).concat()),
            "the opening again" => (1, there[0].clone()),
            _ => (there.len(), next[0].clone()),
        };
        let (kept, rest) = there.split_at(at);
        put(
            second,
            [&kept.concat(), "noise\n", &stray, &rest.concat()]
                .concat()
                .as_bytes(),
        );
        // Nobody says any more where that file ends.
        put(newest, ["noise\n", &next.concat()].concat().as_bytes());
        // Behind the noise it is not known where a batch begins.
        let lost = if at == 1 {
            batch(&before, opening.seq + 1)
        } else {
            Vec::new()
        };
        check(&scene, &before, &lost, &salvage(&scene));
    }
}

/// A block of a writer that was fenced off, in the place of a later one's.
#[test]
fn an_older_epoch_does_not_go_on() {
    let scene = Scene::with(&[&["a"], &["b"]]);
    let other = Scene::with(&[&["a"], &["b"], &["c"], &["old"], &["old"]]);
    let opened = scene.open().unwrap();
    ["c", "d", "e", "f", "g"]
        .iter()
        .for_each(|text| append(&opened, &[text]).map(drop).unwrap());
    opened.journal.close();
    let before = frames(&scene.dir);
    let mut log = lines(&scene.log());
    log[4] = format!("noise\n{}", lines(&other.log())[4]);
    put(&scene.log(), log.concat().as_bytes());
    check(&scene, &before, &[5, 6], &salvage(&scene));
}

/// Without HEAD a later line still says what had been durable.
#[test]
fn what_a_line_says_was_durable_is_lost() {
    let scene = Scene::with(&[&["a"], &["b"], &["c"]]);
    spoil(&scene, 3);
    std::fs::remove_file(scene.head()).unwrap();
    let losses = Reader::open(&scene.dir).unwrap().losses().unwrap();
    assert_eq!(
        losses
            .iter()
            .map(|damage| damage.lost.clone())
            .collect::<Vec<_>>(),
        [3..=3]
    );
}

/// HEAD knows of records that are in no file.
#[test]
fn a_lost_end_is_a_gap_too() {
    let scene = Scene::with(&[&["one"], &["two"], &["three"]]);
    let before = frames(&scene.dir);
    let bytes = std::fs::read(scene.log()).unwrap();
    put(&scene.log(), &bytes[..bytes.len() - 200]);
    let salvaged = salvage(&scene);
    check(&scene, &before, &[3, 4], &salvaged);
    std::fs::remove_file(scene.log()).unwrap();
    std::fs::remove_dir_all(copy(&scene)).unwrap();
    let salvaged = salvage(&scene);
    assert_eq!(salvaged.kept, 0);
    check(&scene, &before, &[1, 2, 3, 4], &salvaged);
}

#[test]
fn a_whole_session_is_copied_as_it_is() {
    let scene = scene();
    let before = frames(&scene.dir);
    let opened = scene.open().unwrap();
    let good = opened.blobs.put(b"good").unwrap();
    let bad = opened.blobs.put(b"bad").unwrap();
    put(&opened.blobs.view().path(&bad.digest), b"rot");
    assert!(matches!(
        Session::salvage(&scene.dir, &copy(&scene), options(Arc::new(Quick))),
        Err(OpenError::Busy { .. })
    ));
    opened.journal.close();
    assert_eq!(Reader::open(&scene.dir).unwrap().losses().unwrap(), []);
    let salvaged = salvage(&scene);
    assert_eq!(
        (salvaged.blobs, &salvaged.damaged_blobs),
        (1, &vec![bad.digest])
    );
    assert_eq!(
        Reader::open(&copy(&scene))
            .unwrap()
            .blobs()
            .verify(&good.digest),
        Ok(4)
    );
    for (old, new) in files(&scene.dir.join("log"))
        .iter()
        .zip(files(&copy(&scene).join("log")))
    {
        assert_eq!(std::fs::read(old).unwrap(), std::fs::read(&new).unwrap());
        assert_eq!(old.file_name(), new.file_name());
    }
    check(&scene, &before, &[], &salvaged);
    let again = Session::salvage(&scene.dir, &copy(&scene), options(Arc::new(Quick)));
    assert!(matches!(again, Err(OpenError::Exists(_))));
    let none = Session::salvage(
        &copy(&scene).with_extension("none"),
        &copy(&scene),
        options(Arc::new(Quick)),
    );
    assert!(matches!(none, Err(OpenError::NoSuch(_))));
}

/// Whatever operation fails, there is no half a copy that looks like a session, and it can be done again.
#[test]
fn a_salvage_that_fails_is_done_again() {
    let scene = scene();
    let before = frames(&scene.dir);
    let opened = scene.open().unwrap();
    let blob = opened.blobs.put(b"kept").unwrap();
    opened.journal.close();
    spoil(&scene, 7);
    for fault in [Fault::Once(EIO), Fault::Ever(EIO), Fault::Half(ENOSPC)] {
        for n in 0..200 {
            let disk = Arc::new(Nth::disk(n, fault));
            let done = Session::salvage(&scene.dir, &copy(&scene), options(disk.clone()));
            let there = matches!(scene_at(&copy(&scene)), Ok(()));
            let done = match done {
                Ok(_) => {
                    assert!(there);
                    true
                }
                Err(_) if there => false,
                Err(_) => {
                    drop(salvage(&scene));
                    true
                }
            };
            assert_eq!(
                frames(&copy(&scene)).len(),
                before.len(),
                "{fault:?} at {n}"
            );
            let kept = Reader::open(&copy(&scene))
                .unwrap()
                .blobs()
                .verify(&blob.digest);
            assert!(kept == Ok(4) || !done, "{fault:?} at {n}: {kept:?}");
            std::fs::remove_dir_all(copy(&scene)).unwrap();
            if !disk.0.reached() {
                assert!(n > 20);
                break;
            }
        }
    }
}

fn scene_at(dir: &Path) -> Result<(), OpenError> {
    Session::open(dir, options(Arc::new(Quick))).map(drop)
}

/// A record of another kind where a segment has to be opened is lost; the copy opens it.
#[test]
fn a_segment_that_is_not_opened_is_opened_in_the_copy() {
    for n in [0, 2] {
        let scene = scene();
        let before = frames(&scene.dir);
        let paths = files(&scene.dir.join("log"));
        let log = lines(&paths[n]);
        let other = log[0].replace("\"k\":\"segment\"", "\"k\":\"sagment\"");
        let crc = format!("{:08x}", crc32c::crc32c(&other.trim_end().as_bytes()[15..]));
        put(
            &paths[n],
            [&other[..6], &crc, &other[14..], &log[1..].concat()]
                .concat()
                .as_bytes(),
        );
        let salvaged = salvage(&scene);
        let opening = before
            .iter()
            .find(|frame| log[0].starts_with(&frame.line))
            .unwrap()
            .seq;
        check(&scene, &before, &lost_with(&before, opening), &salvaged);
    }
}
