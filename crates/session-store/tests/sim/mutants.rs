//! The simulation has to be able to fail: each habit of the store left out is found out, by some seed.

use crate::lying_store::{Dirs, Files, Lie, When};
use crate::world::World;

const MUTANTS: [(&str, Lie); 21] = [
    (
        "the log is not flushed",
        Lie::Sync(Files::Segment, When::Running),
    ),
    ("acknowledged before it is flushed", Lie::LateSync),
    (
        "a new segment is not flushed",
        Lie::Sync(Files::NextSegment, When::Running),
    ),
    (
        "a new segment's name is not flushed",
        Lie::Dir(Dirs::Log, When::Running),
    ),
    (
        "the first segment's name is not flushed",
        Lie::Dir(Dirs::Log, When::Opening),
    ),
    (
        "names in the session's directory are not flushed",
        Lie::Dir(Dirs::Session, When::Opening),
    ),
    (
        "the session's name is not flushed",
        Lie::Dir(Dirs::Parent, When::Opening),
    ),
    (
        "what recovery keeps is not flushed",
        Lie::Sync(Files::Segment, When::Opening),
    ),
    (
        "what recovery keeps is not written again",
        Lie::Unwritten(Files::Segment),
    ),
    (
        "bytes cut off are not flushed",
        Lie::Sync(Files::Cut, When::Opening),
    ),
    (
        "the reason of a cut is not flushed",
        Lie::Sync(Files::Reason, When::Opening),
    ),
    (
        "names in quarantine are not flushed",
        Lie::Dir(Dirs::Quarantine, When::Opening),
    ),
    (
        "bytes are cut off without a copy",
        Lie::Unwritten(Files::Cut),
    ),
    (
        "a blob is not flushed",
        Lie::Sync(Files::Blob, When::Running),
    ),
    (
        "a blob's name is not flushed",
        Lie::Dir(Dirs::Shard, When::Running),
    ),
    (
        "the directory of a blob is not flushed",
        Lie::Dir(Dirs::Blobs, When::Running),
    ),
    (
        "the directory of blobs is not flushed",
        Lie::Dir(Dirs::Session, When::Running),
    ),
    ("HEAD is not written", Lie::NoHead),
    ("records do not say what was durable", Lie::NoWatermark),
    ("the lock is skipped", Lie::NoLock),
    ("the epoch is ignored", Lie::NoEpoch),
];

/// Seeds that each of them is given.
const PATIENCE: u64 = 2000;

#[test]
fn each_mutant_is_found_out() {
    let mut survivors = Vec::new();
    for (name, lie) in MUTANTS {
        let found = (0..PATIENCE)
            .find_map(|seed| World::new(seed, lie).live().err().map(|what| (seed, what)));
        match found {
            Some((seed, what)) => println!("{name:<50} | seed {seed:>4} | {what}"),
            None => {
                println!("{name:<50} | SURVIVED {PATIENCE} seeds");
                survivors.push(name);
            }
        }
    }
    assert!(survivors.is_empty(), "{survivors:?}");
}
