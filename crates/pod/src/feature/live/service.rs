//! Services: what one feature offers to others, typed, versioned and mediated. Do not depend on the policy.
//!
//! ```text
//! provider: provides(declaration) ──▶ provide(KEY, Arc) ──committed with the whole feature──▶ service
//! consumer: requires(requirement) ──▶ require(KEY) ──▶ handle ──▶ call / with, through the door of its grant
//! ```
//!
//! A consumer gets a trait, never the type behind it, and holds nothing across a wait: its door is entered at each use
//! and each time a call continues. When the provider leaves, the doors of its consumers shut with that reason.

mod handle;
mod json;
mod offer;

pub use handle::{ServiceError, ServiceFuture, ServiceHandle};
pub use json::{JsonCall, JsonService, ServiceFault};
pub(crate) use offer::{Service, Services};
