//! What people see of a run.

pub(crate) mod escape;
pub(crate) mod progress;
pub(crate) mod remedy;
