//! Queues around the task that owns a pod: requests in, records that wait for a commit, events out. Do not depend on
//! turns or models.

pub mod events;
mod keyed;
pub(crate) mod live_output;
pub(crate) mod pending;
pub(crate) mod requests;
