//! The tools as a host runs them: real files and processes below a temporary directory, a host that only takes note.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "helpers of tests are tests"
)]

mod bash;
mod grep_and_glob;
mod host;
mod list;
mod read;
mod read_output;
mod tool_definitions;
mod write_and_edit;
