//! The one task that owns a pod's state.

mod actor;
mod authorize;
mod bounds;
mod budget;
mod call_output;
mod calls;
mod client;
mod commit;
pub mod core;
mod gates;
mod limits;
mod pipeline;
mod stream;
mod submission;
mod turn;
mod turn_end;

pub use crate::foreign::{CallbackFailure, Callbacks};
pub use crate::mailbox::events::{Alert, Event, Outbox};
pub use crate::mailbox::requests::AlertLevel;
pub(crate) use actor::Preamble;
pub use actor::{Actor, ActorEnd};
pub use authorize::Permission;
pub use bounds::{gates, limits};
pub use client::{Client, SubmitError};
pub use commit::Batch;
pub use core::{Core, Fatal, OpenSession};
pub use limits::RunLimits;
pub(crate) use pipeline::Pipeline;
pub use submission::MAX_INLINE_INPUT;
pub use turn_end::TurnEnd;
