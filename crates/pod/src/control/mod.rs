//! The one task that owns a pod's state, and the threads it lends to tools and features.

pub(crate) mod blame;
mod bounds;
mod call;
pub mod callbacks;
mod calls;
pub(crate) mod desk;
mod driver;
mod gates;
pub(crate) mod inbox;
mod judge;
pub mod outbox;
pub mod pod;
mod stream;

pub use bounds::{gates, limits};
pub use callbacks::{Callbacks, Lost};
pub(crate) use gates::{refusal, verdicts};
pub use inbox::AlertLevel;
pub use judge::Permission;
pub use outbox::{Alert, Event, Outbox};
pub use pod::{Core, Fatal, Limits, Pod, Store, TurnEnd};
