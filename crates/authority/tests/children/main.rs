//! Children: what they cannot do, what they can, and that none is left.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod apart;
mod beyond;
mod escapes;
mod hosts;
mod kernel;
mod limited;
mod outside;
mod planted;
mod programs;
mod run;
mod sandbox;
mod shared;
mod talk;
mod writable;
