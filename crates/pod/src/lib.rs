//! A pod is a named process with a durable session: its session, its control loop, its permissions, and its
//! features.
//!
//! A pod consists of records, turns, permissions and `feature`. It depends on no concrete tool, provider, terminal or
//! command line: the program that composes the pod supplies them.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod control;
pub mod feature;
pub mod foreign;
pub mod hook;
pub mod host;
pub mod ipc;
pub mod mailbox;
pub mod permission;
pub mod record;
pub mod schedule;
pub mod schema;
pub mod session;
pub mod undo;
