//! What the budget table and the counter tests measure with: a pod in this process whose disk and encoder count, the
//! program as a child process with a model server on loopback, and numbers from both.
//!
//! It decides nothing and ships nothing: figures are compared by `benches/budget`, counters by `tests/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made ends the program"
)]

pub mod clients;
pub mod counting;
pub mod features;
pub mod machine;
pub mod pods;
pub mod program;
pub mod ratio;
pub mod server;
pub mod terminal;
