//! The screen of a pod: its frames at three sizes, and what holds for all events, keys and sizes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod answers;
mod frames;
mod full_context;
mod inline;
mod laws;
mod panel_changes;
mod person_commands;
mod pod;
mod pod_is_gone;
mod recorded;
mod use_of_keys;
mod vi;
