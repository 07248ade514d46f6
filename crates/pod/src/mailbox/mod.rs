//! What passes through the task that owns a pod: requests in, what waits for a commit, events out. It knows neither
//! turns nor models.

pub mod events;
pub(crate) mod pending;
pub(crate) mod requests;
