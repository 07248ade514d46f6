//! A client and a scripted pod, over a socket in a directory.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a scene that fails is a failed test"
)]

mod attachment;
mod connection;
mod lost_connections;
mod model;
mod scripted_pod;
