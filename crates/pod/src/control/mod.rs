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
mod queue;
mod status;
mod stream;
mod submission;
mod submit_error;
mod turn;
mod turn_end;

pub use crate::foreign::{CallbackFailure, Callbacks};
pub use crate::mailbox::events::{Alert, Event, Outbox};
pub use crate::mailbox::requests::AlertLevel;
pub(crate) use actor::Preamble;
pub use actor::{Actor, ActorEnd, HostMode};
pub use authorize::Permission;
pub use bounds::{gates, limits};
pub use client::{Accepted, Client, MAX_INPUT, MAX_KEY, NewInput, Reload};
pub use commit::Batch;
pub use core::{Core, Fatal, OpenSession};
pub use limits::RunLimits;
pub(crate) use pipeline::Pipeline;
pub use queue::MAX_QUEUED;
pub use status::{Activity, PodStatus};
pub use submission::MAX_INLINE_INPUT;
pub use submit_error::SubmitError;
pub use turn_end::TurnEnd;
