//! The one task that owns a pod's state, and the threads it lends to tools and features.

mod call;
pub mod callbacks;
pub mod driver;
mod gates;
mod judge;
pub mod outbox;

pub use callbacks::{Callbacks, Lost};
pub use driver::{Core, Fatal, Limits, Pod, Store, TurnEnd};
pub(crate) use gates::{refusal, verdicts};
pub use judge::Permission;
pub use outbox::{Event, Outbox};
