//! A feature's durable state: a value that survives restarts. Does not depend on the actor.
//!
//! ```text
//! update(f) ── f on a copy of the newest value, now ──▶ newest ── record durable and folded ──▶ read()
//!                                                          └──── refused ──▶ newest = what read() shows
//! ```
//!
//! [`DurableState::update`] runs its closure at once and sends the record to the actor; program order is journal
//! order, whichever update is awaited first. An update that nobody awaits is piggybacked on the next commit. Each
//! value is read back from its JSON first: a value that would not read at the next start is refused now.

mod files;
mod link;
mod slot;

pub(crate) use files::Keeper;
pub use link::PodLink;
pub use slot::{DurableState, StateError, Update};

/// The longest value, as JSON, in bytes.
pub const MAX_STATE: usize = 64 * 1024;

/// Limit on the nesting of arrays and objects: well below what any reader of the log accepts.
const MAX_NESTING: usize = 64;
