//! Hooks in a running pod: what they decide, what their failures mean, and what the log says of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root, and some hooks must misbehave"
)]

mod again;
mod answers;
mod approved;
mod around;
mod asks;
mod compaction;
mod gates;
mod install;
mod person_command;
mod points;
mod rig;
mod shape;
mod shorten;
mod transforms;
