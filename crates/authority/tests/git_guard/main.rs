//! What git runs is the same after a command as before it: real git, real commands, through the public API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod bounds;
mod hostile;
mod linked;
mod planted;
mod scene;
mod stays;
