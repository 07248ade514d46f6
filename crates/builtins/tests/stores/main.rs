//! The features that keep records of their own, each alone through the public door.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

mod choices;
mod json_forms;
mod memory;
mod notes_router;
mod read_first;
mod rig;
mod tickets_script;
mod work_items;
