//! What is live after an install: tools, grants, services, states and sinks. Does not depend on modules or the plan.

pub(super) mod command;
pub(super) mod enrich;
pub(super) mod foreign;
pub(super) mod grant;
pub(super) mod job;
pub(super) mod presence;
pub(super) mod registry;
pub(super) mod service;
pub(super) mod sink;
pub(super) mod state;
pub(super) mod task;
