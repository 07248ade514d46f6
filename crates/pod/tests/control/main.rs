//! The control loop, the log it writes and what is restored from it, over a scripted model and a disk that fails.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a scene that fails is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests stand at the composition root")]

mod bounds;
mod callbacks;
mod cancel;
mod disks;
mod fold;
mod kills;
mod legal;
mod outbox;
mod parallel;
mod replay;
mod restore;
mod scene;
mod unclean;
