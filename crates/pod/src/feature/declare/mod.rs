//! What a feature declares about itself and requests, as data. It knows no policy, no plan and nothing that runs.

pub(super) mod capability;
pub(super) mod descriptor;
pub(super) mod diagnostic;
pub(super) mod grants;
pub(super) mod hook;
pub(super) mod id;
pub(super) mod service;
pub(super) mod state;
pub(super) mod text;
pub(super) mod tool;
