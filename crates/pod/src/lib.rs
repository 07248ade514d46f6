//! The named process: its session, its control loop, what it permits, and the door for features.
//!
//! A pod knows records, turns, permissions and `feature`. It knows no concrete tool, no vendor, no terminal
//! and no argv: those are handed to it by the program that composes it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod control;
pub mod feature;
pub mod foreign;
pub mod hook;
pub mod host;
pub mod mailbox;
pub mod permission;
pub mod record;
pub mod session;
