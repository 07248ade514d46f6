//! The store from outside: through its public door, over disks that fail.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::let_underscore_must_use)]

mod disks;
mod scene;

mod blobs;
mod commits;
mod damage;
mod faults;
mod lines;
mod opening;
mod random;
