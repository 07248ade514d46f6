//! The one task that owns a pod's state, and the threads it lends to tools and features.

mod authorize;
mod bounds;
mod budget;
mod call_output;
mod calls;
mod commit;
pub mod core;
mod gates;
mod pipeline;
mod stream;
mod turn;

pub use crate::foreign::{Callbacks, Lost};
pub use crate::mailbox::events::{Alert, Event, Outbox};
pub use crate::mailbox::requests::AlertLevel;
pub use authorize::Permission;
pub use bounds::{gates, limits};
pub use commit::Batch;
pub use core::{Core, Fatal, Limits, Pod, Store, TurnEnd};
pub(crate) use gates::{refusal, verdicts};
pub(crate) use pipeline::Pipeline;
