//! The tools as a host runs them: real files and processes below a temporary directory, a host that only takes note.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "helpers of tests are tests"
)]

mod change;
mod grep;
mod host;
mod list;
mod output;
mod read;
mod shell;
mod surface;
