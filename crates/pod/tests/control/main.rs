//! The control loop, the log it writes and what is restored from it, over a scripted model and a disk that fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a scene that fails is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests stand at the composition root")]

mod actor;
mod blame;
mod bounds;
mod callbacks;
mod cancel;
mod checkpoints;
mod disks;
mod fold;
mod gaps;
mod kills;
mod legal;
mod outbox;
mod parallel;
mod replay;
mod restore;
mod room;
mod scene;
mod staged;
mod sums;
mod unclean;
mod words;
