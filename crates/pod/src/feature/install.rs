//! Installs features: each feature stages what it declared and is merged whole or not at all. Does not depend on turns
//! or models.

pub(super) mod builder;
pub(super) mod context;
pub(super) mod contributions;
pub(super) mod host_services;
pub(super) mod installing;
pub(super) mod module;
pub(super) mod registrars;
mod slots;
pub(super) mod stage;
