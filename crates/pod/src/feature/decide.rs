//! Turns declarations into a plan, as a pure function. Runs no code of features.

pub(super) mod drift;
pub(super) mod plan;
pub(super) mod policy;
pub(super) mod report;
