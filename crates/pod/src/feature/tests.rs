//! Plan, install, grants, services and revocation through the public API: what a feature can do wrong, and how the host
//! reports it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests claim authority as the composition root does"
)]

mod bounds;
mod drift;
mod enrich;
mod events;
mod foreign;
mod grants;
mod handles;
mod hook_order;
mod host;
mod install;
mod plan;
mod report;
mod rig;
mod service_forms;
mod services;
mod settings;
mod tasks;
