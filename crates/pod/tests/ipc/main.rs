//! Clients at the socket of a live pod: what they are told, what they may do, and what they cannot do to it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a scene that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

mod agreeing;
mod attaching;
mod attacks;
mod bounds;
mod client_calls;
mod commands;
mod drivers;
mod half_closed;
mod hostile;
mod live_output;
mod rig;
