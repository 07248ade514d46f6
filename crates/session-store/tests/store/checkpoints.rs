//! Checkpoints: the newest one and what follows it, or everything.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use session_store::{
    Checkpoint, Digest, MAX_CHECKPOINT_BYTES, Op, Options, OwnedFrame, ReadError, Reader, Session,
    SessionRecords,
};

use crate::disks::{ENOSPC, Judge, Judged, Quick};
use crate::scene::{Scene, append, files, options, text, texts};

fn small() -> Options {
    Options {
        segment_bytes: 600,
        ..options(Arc::new(Quick))
    }
}

fn place(scene: &Scene) -> PathBuf {
    scene.dir.join("idx/fold.ckpt")
}

/// A session of `count` notes. At each seal the texts so far are handed in.
fn folded(count: usize) -> Scene {
    let scene = Scene::new();
    let opened = Session::create(&scene.dir, small()).unwrap();
    let mut all = Vec::new();
    for n in 0..count {
        all.push(format!("note number {n}"));
        if let Some(seal) = append(&opened, &[all.last().unwrap()]).unwrap().seal() {
            opened
                .journal
                .checkpoint(seal, 7, all.join("\n").into_bytes());
        }
    }
    opened.journal.close();
    scene
}

fn notes_of(frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>) -> Vec<String> {
    frames
        .map(Result::unwrap)
        .filter(|frame| frame.kind == "note")
        .map(|frame| text(&frame.line))
        .collect()
}

fn unfold(checkpoint: Option<&Checkpoint>) -> Vec<String> {
    let bytes = checkpoint.map_or(&[][..], Checkpoint::bytes);
    std::str::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// What a past comes to, with the help of its checkpoint.
fn fold(past: SessionRecords) -> Vec<String> {
    let mut all = unfold(past.checkpoint());
    all.extend(notes_of(past.behind_checkpoint()));
    all
}

fn resume(scene: &Scene) -> SessionRecords {
    let (opened, past) = Session::resume(&scene.dir, small()).unwrap();
    opened.journal.close();
    past
}

#[test]
fn a_checkpoint_and_what_is_behind_it_is_everything() {
    for count in 1..30 {
        let scene = folded(count);
        let all = texts(&scene.dir);
        let past = resume(&scene);
        assert_eq!(past.checkpoint().is_some(), count >= 3, "{count}");
        assert!(past.checkpoint().is_none_or(|found| found.version() == 7));
        let seq = past.checkpoint().map_or(0, Checkpoint::seq);
        assert!(
            past.behind_checkpoint()
                .all(|frame| frame.unwrap().seq > seq),
            "{count}"
        );
        assert_eq!(fold(resume(&scene)), all, "{count}");
        assert_eq!(notes_of(resume(&scene).all()), all, "{count}");
        let reader = Reader::open(&scene.dir).unwrap();
        let (found, tail) = reader
            .checkpoint()
            .map_or((None, reader.frames()), |(found, tail)| (Some(found), tail));
        assert_eq!(
            [unfold(found.as_ref()), notes_of(tail)].concat(),
            all,
            "{count}"
        );
    }
}

/// Behind it only: nothing of a sealed segment is read again.
#[test]
fn the_tail_begins_behind_the_checkpoint() {
    let scene = folded(25);
    let past = resume(&scene);
    let seq = past.checkpoint().unwrap().seq();
    let frames: Vec<_> = past.behind_checkpoint().map(Result::unwrap).collect();
    assert_eq!(
        (frames[0].seq, frames[0].kind.as_str()),
        (seq + 1, "segment")
    );
}

#[test]
fn one_that_is_damaged_or_gone_is_not_there() {
    let scene = folded(25);
    let all = texts(&scene.dir);
    let good = std::fs::read(place(&scene)).unwrap();
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 1 << (byte % 8);
        std::fs::write(place(&scene), bad).unwrap();
        assert!(resume(&scene).checkpoint().is_none(), "byte {byte}");
    }
    for cut in 0..good.len() {
        std::fs::write(place(&scene), &good[..cut]).unwrap();
        assert!(resume(&scene).checkpoint().is_none(), "cut at {cut}");
    }
    assert_eq!(fold(resume(&scene)), all);
    std::fs::write(place(&scene), &good).unwrap();
    assert!(resume(&scene).checkpoint().is_some());
    std::fs::remove_dir_all(place(&scene).parent().unwrap()).unwrap();
    assert_eq!(fold(resume(&scene)), all);
}

/// Its digest is right and its length is not: nobody wrote that.
#[test]
fn one_that_says_another_length_is_not_there() {
    let scene = folded(25);
    let good = std::fs::read_to_string(place(&scene)).unwrap();
    let (_, covered) = good.split_at("{\"digest\":\"".len() + 64 + "\",".len());
    for (more, there) in ["", "more"].into_iter().zip([true, false]) {
        let covered = format!("{covered}{more}");
        let digest = Digest::of(covered.as_bytes());
        std::fs::write(
            place(&scene),
            format!("{{\"digest\":\"{digest}\",{covered}"),
        )
        .unwrap();
        assert_eq!(resume(&scene).checkpoint().is_some(), there, "{more}");
    }
}

/// Whole, but of a log that was cut since, or of another session.
#[test]
fn one_of_another_log_is_not_there() {
    let scene = folded(25);
    let other = Scene::new();
    let opened = Session::create(
        &other.dir,
        Options {
            session: "s-2".to_owned(),
            ..small()
        },
    )
    .unwrap();
    (0..25).for_each(|n| {
        append(&opened, &[&format!("note number {n}")])
            .map(drop)
            .unwrap()
    });
    opened.journal.close();
    std::fs::create_dir(place(&other).parent().unwrap()).unwrap();
    std::fs::copy(place(&scene), place(&other)).unwrap();
    assert!(resume(&other).checkpoint().is_none());
    assert!(Reader::open(&other.dir).unwrap().checkpoint().is_none());
}

/// An older one is as good: more is behind it.
#[test]
fn an_older_one_serves() {
    let long = folded(25);
    let short = folded(8);
    std::fs::copy(place(&short), place(&long)).unwrap();
    let past = resume(&long);
    assert!(past.checkpoint().unwrap().seq() < 12);
    assert_eq!(fold(past), texts(&long.dir));
}

#[test]
fn one_that_is_too_long_is_not_kept() {
    let scene = Scene::new();
    let opened = Session::create(&scene.dir, small()).unwrap();
    let seal = (0..)
        .find_map(|n: u32| append(&opened, &[&n.to_string()]).unwrap().seal())
        .unwrap();
    opened.journal.checkpoint(seal, 1, b"good".to_vec());
    opened
        .journal
        .checkpoint(seal, 1, vec![0; MAX_CHECKPOINT_BYTES + 1]);
    opened.journal.close();
    assert_eq!(resume(&scene).checkpoint().unwrap().bytes(), b"good");
}

/// A disk that is full where a checkpoint is written.
struct NoRoom;

impl Judge for NoRoom {
    fn before(&self, _: Op, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn writable(&self, path: &Path, len: usize) -> io::Result<usize> {
        if path.ends_with("fold.tmp") {
            Err(io::Error::from_raw_os_error(ENOSPC))
        } else {
            Ok(len)
        }
    }
}

#[test]
fn one_that_cannot_be_written_leaves_nothing() {
    let scene = Scene::new();
    let opened = Session::create(
        &scene.dir,
        Options {
            disk: Arc::new(Judged(NoRoom)),
            ..small()
        },
    )
    .unwrap();
    let seal = (0..)
        .find_map(|n: u32| append(&opened, &[&n.to_string()]).unwrap().seal())
        .unwrap();
    opened.journal.checkpoint(seal, 1, b"good".to_vec());
    opened.journal.close();
    assert_eq!(files(&scene.dir.join("idx")), Vec::<PathBuf>::new());
}

/// Half a batch at the end is no part of the past.
#[test]
fn what_was_cut_off_is_not_handed_on() {
    let scene = Scene::with(&[&["one"], &["two", "three", "four"]]);
    let bytes = std::fs::read(scene.log()).unwrap();
    std::fs::write(scene.log(), &bytes[..bytes.len() - 10]).unwrap();
    std::fs::remove_file(scene.head()).unwrap();
    let (opened, past) = Session::resume(&scene.dir, options(Arc::new(Quick))).unwrap();
    assert!(opened.recovered.cut > 0);
    assert_eq!(notes_of(past.all()), ["one"]);
}

/// HEAD is older than the checkpoint: a reader goes by HEAD.
#[test]
fn a_reader_is_not_ahead_of_head() {
    let scene = folded(3);
    let head = std::fs::read(scene.head()).unwrap();
    let opened = Session::open(&scene.dir, small()).unwrap();
    let all = texts(&scene.dir);
    let mut more = all.clone();
    for n in 0.. {
        more.push(format!("more {n}"));
        if let Some(seal) = append(&opened, &[more.last().unwrap()]).unwrap().seal() {
            opened
                .journal
                .checkpoint(seal, 7, more.join("\n").into_bytes());
            break;
        }
    }
    append(&opened, &["last"]).unwrap();
    opened.journal.close();
    assert!(Reader::open(&scene.dir).unwrap().checkpoint().is_some());
    std::fs::write(scene.head(), head).unwrap();
    let reader = Reader::open(&scene.dir).unwrap();
    assert_eq!(
        (reader.checkpoint().is_none(), notes_of(reader.frames())),
        (true, all)
    );
}

/// At any record: in the newest segment, in one before it, at its last record, behind a reopening, and under a writer.
#[test]
fn one_of_any_record_serves() {
    let scene = Scene::new();
    let mut opened = Session::create(&scene.dir, small()).unwrap();
    let mut all = Vec::new();
    let mut marks = Vec::new();
    for n in 0..25 {
        all.push(format!("note number {n}"));
        marks.push((
            append(&opened, &[all.last().unwrap()]).unwrap().mark(),
            all.join("\n").into_bytes(),
        ));
        if n % 10 == 9 {
            opened.journal.close();
            opened = Session::open(&scene.dir, small()).unwrap();
        }
    }
    assert!(files(&scene.dir.join("log")).len() > 3);
    for (mark, bytes) in marks {
        opened.journal.checkpoint(mark, 7, bytes);
        opened.journal.close();
        let past = resume(&scene);
        assert_eq!(past.checkpoint().map(Checkpoint::seq), Some(mark.seq()));
        let behind: Vec<_> = past
            .behind_checkpoint()
            .map(|frame| frame.unwrap().seq)
            .collect();
        let last = Reader::open(&scene.dir).unwrap().durable();
        assert_eq!(behind, (mark.seq() + 1..=last).collect::<Vec<_>>());
        assert_eq!(fold(resume(&scene)), all, "{}", mark.seq());
        let (found, tail) = Reader::open(&scene.dir).unwrap().checkpoint().unwrap();
        assert_eq!(
            [unfold(Some(&found)), notes_of(tail)].concat(),
            all,
            "{}",
            mark.seq()
        );
        opened = Session::open(&scene.dir, small()).unwrap();
    }
}

/// The record that it names was committed in another log, or is behind the end of this one.
#[test]
fn one_whose_record_is_not_in_the_log_is_not_there() {
    for at in [4, 20] {
        let scene = folded(25);
        let other = Scene::new();
        let opened = Session::create(
            &other.dir,
            Options {
                session: "s-2".to_owned(),
                ..small()
            },
        )
        .unwrap();
        let marks: Vec<_> = (0..30)
            .map(|n| {
                append(&opened, &[&format!("note number {n}")])
                    .unwrap()
                    .mark()
            })
            .collect();
        opened.journal.close();
        let end = Reader::open(&scene.dir).unwrap().durable();
        let beyond = *marks.iter().find(|mark| mark.seq() > end).unwrap();
        for mark in [marks[at], beyond] {
            let opened = Session::open(&scene.dir, small()).unwrap();
            opened.journal.checkpoint(mark, 7, b"of another".to_vec());
            opened.journal.close();
            assert!(
                resume(&scene).checkpoint().is_none() && place(&scene).exists(),
                "{}",
                mark.seq()
            );
            assert!(
                Reader::open(&scene.dir).unwrap().checkpoint().is_none(),
                "{}",
                mark.seq()
            );
        }
    }
}
