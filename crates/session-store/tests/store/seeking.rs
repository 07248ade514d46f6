//! A reader that begins at any record: what it shows is what a walk from the first record shows there.

use std::sync::Arc;

use proptest::prelude::*;
use session_store::{Damage, Options, OwnedFrame, ReadError, Reader, Session};

use crate::disks::Quick;
use crate::scene::{Notes, Scene, append, options};

/// A session of these batches, one letter repeated per record, sealed at `segment_bytes`.
fn session(batches: &[Vec<usize>], segment_bytes: u64) -> Scene {
    let scene = Scene::new();
    let opened = Session::create(
        &scene.dir,
        Options {
            segment_bytes,
            ..options(Arc::new(Quick))
        },
    )
    .unwrap();
    for batch in batches {
        let notes = batch.iter().map(|length| "x".repeat(*length)).collect();
        opened.journal.append(Notes(notes)).wait().unwrap();
    }
    opened.journal.close();
    scene
}

/// Every frame, and the damage where it ends.
fn read(
    frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
) -> (Vec<OwnedFrame>, Option<Damage>) {
    let mut good = Vec::new();
    let mut bad = None;
    for frame in frames {
        match frame {
            Ok(frame) => good.push(frame),
            Err(ReadError::Damaged(damage)) => bad = Some(*damage),
            Err(other) => panic!("{other}"),
        }
    }
    (good, bad)
}

fn from(reader: &Reader, seq: u64) -> (Vec<OwnedFrame>, Option<Damage>) {
    read(reader.from(seq).unwrap())
}

/// Some lines are longer than what is read at a time, some longer than what is read at the second try.
fn lengths() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let length = prop_oneof![8 => 0..200usize, 2 => 3_000..9_000usize, 1 => 60_000..150_000usize];
    prop::collection::vec(prop::collection::vec(length, 1..6), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn from_any_record_is_the_rest_of_the_walk(batches in lengths(), segment_bytes in 500..400_000u64) {
        let scene = session(&batches, segment_bytes);
        let reader = Reader::open(&scene.dir).unwrap();
        let (all, none) = read(reader.frames());
        prop_assert_eq!(none, None);
        for seq in 0..=all.len() as u64 + 3 {
            let want: Vec<u64> = all.iter().map(|frame| frame.seq).filter(|found| *found >= seq).collect();
            let (found, none) = from(&reader, seq);
            prop_assert_eq!(found.iter().map(|frame| frame.seq).collect::<Vec<_>>(), want);
            prop_assert!(found.iter().all(|frame| *frame == all[frame.seq as usize - 1]));
            prop_assert_eq!(none, None);
        }
    }

    #[test]
    fn a_page_is_what_stands_before(batches in lengths(), records in 0..20usize, bytes in 0..40_000usize) {
        let scene = session(&batches, 20_000);
        let reader = Reader::open(&scene.dir).unwrap();
        let (all, _) = read(reader.frames());
        for before in 0..=all.len() + 3 {
            let page = reader.page(before as u64, records, bytes).unwrap();
            let end = before.saturating_sub(1).min(all.len());
            let start = end - page.len();
            prop_assert_eq!(&page[..], &all[start..end]);
            let held: usize = page.iter().map(|frame| frame.line.len()).sum();
            prop_assert!(page.len() <= records && (held <= bytes || page.len() == 1));
            // One more would have been too many, or too long.
            let more = start.checked_sub(1).is_some_and(|at| page.len() < records && held + all[at].line.len() <= bytes);
            prop_assert!(!more && (!page.is_empty() || records == 0 || end == 0));
        }
    }

    /// Up to the damage it is the walk's suffix, with the walk's error; behind it, what is shown is what was written.
    #[test]
    fn damage_is_told_as_by_a_walk(batches in lengths(), place in any::<prop::sample::Index>(), bit in 0..8u32) {
        let scene = session(&batches, u64::MAX);
        let (all, _) = read(Reader::open(&scene.dir).unwrap().frames());
        let mut bytes = std::fs::read(scene.log()).unwrap();
        let hit = place.index(bytes.len());
        bytes[hit] ^= 1 << bit;
        std::fs::write(scene.log(), &bytes).unwrap();
        let reader = Reader::open(&scene.dir).unwrap();
        let (_, damage) = read(reader.frames());
        let damage = damage.unwrap();
        for seq in 1..=all.len() as u64 {
            let (found, bad) = from(&reader, seq);
            if seq <= damage.seq || bad.is_some() {
                let want: Vec<_> = all.iter().filter(|f| f.seq >= seq && f.seq < damage.seq).cloned().collect();
                prop_assert_eq!((found, bad.as_ref()), (want, Some(&damage)));
            } else {
                prop_assert_eq!(&found[..], &all[seq as usize - 1..]);
            }
        }
    }
}

/// The opening of a later segment is what tells its place; without it the search begins in the segment before.
#[test]
fn a_segment_without_its_opening_is_reached_from_before() {
    let batches: Vec<Vec<usize>> = (0..60).map(|_| vec![40, 40]).collect();
    let scene = session(&batches, 4_000);
    let (all, _) = read(Reader::open(&scene.dir).unwrap().frames());
    let segments = crate::scene::files(&scene.dir.join("log"));
    assert!(segments.len() > 3);
    let mut bytes = std::fs::read(&segments[2]).unwrap();
    bytes[130] ^= 1;
    std::fs::remove_file(&segments[2]).unwrap();
    std::fs::write(&segments[2], bytes).unwrap();
    let reader = Reader::open(&scene.dir).unwrap();
    let (good, damage) = read(reader.frames());
    for seq in 1..=good.len() as u64 + 5 {
        let want: Vec<_> = good
            .iter()
            .filter(|frame| frame.seq >= seq)
            .cloned()
            .collect();
        assert_eq!(from(&reader, seq), (want, damage.clone()), "{seq}");
    }
    let last = all.len() as u64;
    assert_eq!(from(&reader, last).0, all[last as usize - 1..]);
}

#[test]
fn from_the_end_on_what_comes_is_shown() {
    let scene = Scene::new();
    let options = Options {
        segment_bytes: 900,
        ..options(Arc::new(Quick))
    };
    let opened = Session::create(&scene.dir, options).unwrap();
    append(&opened, &["a", "b"]).unwrap();
    let reader = Reader::open(&scene.dir).unwrap();
    // Right behind the end, and further behind than there will soon be anything.
    let mut next = reader.from(4).unwrap();
    let mut later = reader.from(9).unwrap();
    let mut told = Reader::open(&scene.dir).unwrap().from(3).unwrap();
    assert!(
        !next.look().unwrap()
            && !later.look().unwrap()
            && next.next().is_none()
            && later.next().is_none()
    );
    let mut seqs = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..20 {
        let done = append(&opened, &[&n.to_string()]).unwrap();
        assert!(next.look().unwrap());
        seqs.0.extend(next.by_ref().map(|frame| frame.unwrap().seq));
        assert_eq!(later.look().unwrap(), *done.seqs().end() >= 9);
        seqs.1
            .extend(later.by_ref().map(|frame| frame.unwrap().seq));
        // It shows what it is told of, whatever HEAD says.
        assert!(told.upto(*done.seqs().start()).unwrap());
        seqs.2.extend(told.by_ref().map(|frame| frame.unwrap().seq));
        assert_eq!(seqs.2.last(), Some(done.seqs().start()));
        assert!(!told.upto(3).unwrap());
    }
    let last = *seqs.0.last().unwrap();
    assert_eq!(seqs.0, (4..=last).collect::<Vec<_>>());
    assert_eq!(seqs.1, (9..=last).collect::<Vec<_>>());
    assert_eq!(seqs.2, (3..=*seqs.2.last().unwrap()).collect::<Vec<_>>());
}
