//! What features make durable: state and notifications, in a running pod, killed and refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

mod backpressure;
mod hooks;
mod installs;
mod kills;
mod notifications;
mod rig;
mod secrets;
mod sinks;
mod state;
mod state_files;
mod state_values;
mod unstorable_commits;
