//! What a feature declares about itself and requests, as data. Does not depend on the policy, the plan or running code.

pub(super) mod about;
pub(super) mod capability;
pub(super) mod category;
pub(super) mod command;
pub(super) mod contribution;
pub(super) mod descriptor;
pub(super) mod diagnostic;
pub(super) mod enricher;
pub(super) mod grants;
pub(super) mod hook;
pub(super) mod id;
pub(super) mod service;
pub(super) mod settings;
pub(super) mod state;
pub(super) mod task;
pub(super) mod text;
pub(super) mod tool;
pub(super) mod tool_schema;
pub(super) mod touch;
