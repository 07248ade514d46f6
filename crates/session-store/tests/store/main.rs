//! The store from outside: through its public door, over disks that fail.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    reason = "a test that cannot be set up has failed"
)]

mod disks;
mod scene;

mod beside;
mod blobs;
mod checkpoints;
mod commits;
mod damage;
mod faults;
mod following;
mod formats;
mod golden;
mod lines;
mod opening;
mod random;
mod refusals;
mod salvage;
mod seeking;
mod segments;
