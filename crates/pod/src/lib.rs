//! A pod is a named process with a durable session: its session, its control loop, its permissions, and its
//! features.
//!
//! A pod knows records, turns, permissions and `feature`. It knows no concrete tool, no provider, no terminal and
//! no command line: the program that composes it hands those over.
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
