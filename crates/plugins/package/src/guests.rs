//! Guests: confined children that answer the requests of a feature, one at a time. A deadline is a kill, and what a guest
//! has to remember is a state of the host.
//!
//! ```text
//! tool, hook ─▶ Guests (lanes) ─▶ Guest ─ one line ─▶ child
//!                                   ◀─ what it asks of the host, each with an answer (HostSide); then its result
//! ```

mod host_side;
mod one;
mod pool;
mod reach;
mod wire;
mod within;

pub(crate) use host_side::HostSide;
pub(crate) use pool::{Asking, Fault, Guests};
pub(crate) use within::Within;

/// The contract between a host and its guests, as `initialize` names it on both sides.
pub(crate) const CONTRACT: u64 = 1;
