//! Readers that come and go while a writer appends, over rotations and a switch of formats. They take no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use session_store::{Journal, Options, OwnedFrame, Reader, Session, Tail};

use crate::disks::Quick;
use crate::scene::{Asking, Scene, files, notes, options, texts};

const BATCHES: usize = 300;
/// From this batch on, segments are of format 2.
const SWITCH: usize = 150;
/// A few batches fill it.
const SMALL: u64 = 1500;

fn notes_in(frames: &[OwnedFrame]) -> usize {
    frames.iter().filter(|frame| frame.kind == "note").count()
}

/// What a program does that looks at a live session once: `log`, `verify`, `ls`, `doctor`. Returns the durable seq.
fn look(scene: &Scene, before: u64, dice: usize) -> u64 {
    let reader = Reader::open(&scene.dir).unwrap();
    let durable = reader.durable();
    assert!(durable >= before, "{durable} after {before}");
    let frames: Vec<_> = reader.frames().map(|frame| frame.unwrap()).collect();
    assert!(frames.iter().map(|frame| frame.seq).eq(1..=durable));
    assert_eq!(frames.last().unwrap().batch_left, 0, "half a batch");
    // The bytes behind may be anything but damage: what lives is not called dead.
    assert!(matches!(
        reader.tail().unwrap(),
        Tail::Clean | Tail::BeingWritten(_)
    ));
    assert_eq!(reader.losses().unwrap(), []);
    // What was written since this reader was opened does not change what it shows.
    assert!(
        reader
            .frames()
            .map(|frame| frame.unwrap().crc)
            .eq(frames.iter().map(|frame| frame.crc))
    );
    if let Some((checkpoint, behind)) = reader.checkpoint() {
        let counted: usize = std::str::from_utf8(checkpoint.bytes())
            .unwrap()
            .parse()
            .unwrap();
        let behind: Vec<_> = behind.map(|frame| frame.unwrap()).collect();
        assert_eq!(counted + notes_in(&behind), notes_in(&frames));
    }
    let seq = 1 + dice as u64 % durable;
    let page = reader.page(seq + 1, 4, 1 << 20).unwrap();
    assert_eq!(page, frames[seq.saturating_sub(4) as usize..seq as usize]);
    assert_eq!(
        reader.from(seq).unwrap().next().unwrap().unwrap(),
        frames[seq as usize - 1]
    );
    durable
}

fn write(journal: &Journal) {
    for n in 0..BATCHES {
        let texts = [format!("{n}.0"), format!("{n}.1"), "x".repeat(n % 50 * 10)];
        let batch = notes(&texts.each_ref().map(String::as_str));
        let done = journal
            .append(Asking(1 + u32::from(n == SWITCH), batch))
            .wait()
            .unwrap();
        if let Some(seal) = done.seal() {
            journal.checkpoint(seal, 1, (3 * (n + 2)).to_string().into_bytes());
        }
    }
}

#[test]
fn readers_beside_a_writer_that_rotates_and_switches() {
    let scene = Scene::new();
    let given = Options {
        segment_bytes: SMALL,
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, given).unwrap();
    let over = AtomicBool::new(false);
    opened.journal.append(notes(&["", "", ""])).wait().unwrap();
    let lock = std::fs::read(scene.dir.join("LOCK")).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            write(&opened.journal);
            over.store(true, Ordering::SeqCst);
        });
        for dice in [0, 7, 91] {
            let scene = &scene;
            let over = &over;
            scope.spawn(move || {
                let mut durable = 0;
                let mut looks = dice;
                while !over.load(Ordering::SeqCst) {
                    durable = look(scene, durable, looks);
                    looks += 13;
                }
                assert!(looks > dice + 13, "it was not beside");
                look(scene, durable, looks);
            });
        }
        // Followers that begin anywhere.
        let mut followers = Vec::new();
        let mut last = false;
        while !last {
            last = over.load(Ordering::SeqCst);
            let reader = Reader::open(&scene.dir).unwrap();
            if followers.len() < 200 {
                let from = reader.durable();
                followers.push((from, reader.from(from).unwrap(), from - 1));
            }
            for (_, following, seen) in &mut followers {
                while following.look().unwrap() {
                    for frame in following.by_ref() {
                        let seq = frame.unwrap().seq;
                        assert_eq!(seq, *seen + 1);
                        *seen = seq;
                    }
                }
            }
        }
        let all = Reader::open(&scene.dir).unwrap().durable();
        assert!(followers.len() > 2 && followers.iter().all(|(_, _, seen)| *seen == all));
    });
    assert!(files(&scene.dir.join("log")).len() > 50);
    assert_eq!(texts(&scene.dir).len(), 3 * (BATCHES + 1));
    assert_eq!(std::fs::read(scene.dir.join("LOCK")).unwrap(), lock);
}
