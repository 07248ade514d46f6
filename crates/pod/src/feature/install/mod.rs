//! From a plan to a registry: each feature stages what it declared, whole or not at all. It knows no turn and no model.

pub(super) mod context;
pub(super) mod installing;
pub(super) mod module;
pub(super) mod stage;
