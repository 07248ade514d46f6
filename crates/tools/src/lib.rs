//! Tools a second host would reuse: reading, changing and searching files, running commands, paging outputs.
//!
//! Each tool is one module with the same members: `NAME`, `ABOUT` and `EFFECT` for the definition, `Args` (whose doc
//! comments are what the model reads), `touches` for permission, and `run`. State and authority come as a live handle
//! ([`Files`], [`Search`], [`Shell`]) that the host made.
//!
//! This crate does not depend on pods, features, policy or configuration, and opens nothing by itself: a path outside of
//! its [`authority::Workspace`] is refused, even if permission allowed it.

mod answer;
mod notation;
mod scope;

mod change;
pub mod edit;
mod encoding;
mod files;
mod lines;
pub mod read;
mod seen;
mod sniff;
pub mod write;

pub mod glob;
pub mod grep;
pub mod list;
mod pattern;
mod search;

pub mod bash;
pub mod read_output;
mod shell;

pub use answer::{CONTENT_MAX, SUMMARY_MAX, answer, counted, fail, refused};
pub use change::{move_dir, publish, remove};
pub use files::{Before, Files, MAX_FILE};
pub use scope::{PathRemedy, Remedies};
pub use search::{MAX_ENTRIES, Search};
pub use seen::MAX_SEEN;
pub use shell::Shell;
