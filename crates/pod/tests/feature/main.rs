//! The door for tools, seen from both sides: what a feature can do wrong, and what the host makes of it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a rig that fails is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests stand at the composition root")]

mod bounds;
mod explain;
mod grants;
mod handles;
mod host;
mod install;
mod plan;
mod report;
mod rig;
mod services;
