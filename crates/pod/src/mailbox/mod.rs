//! Queues around the task that owns a pod: requests in, records that wait for a commit, events out. It knows neither
//! turns nor models.

pub mod events;
pub(crate) mod pending;
pub(crate) mod requests;
