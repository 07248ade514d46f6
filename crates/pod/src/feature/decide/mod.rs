//! Turns declarations into a plan, as a pure function. It knows no feature's code and holds nothing.

pub(super) mod plan;
pub(super) mod policy;
pub(super) mod report;
