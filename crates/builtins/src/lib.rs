//! The built-in features: one file each, through the door that every feature uses.
//!
//! A feature here names its tools, asks for what they need and hands its handles to implementations in `tools`. It
//! knows no socket, no store file and nothing of the pod but `pod::feature`; it opens, starts and waits for nothing
//! by itself.

pub mod files;
pub mod search;
pub mod shell;

use pod::feature::FeatureModule;
use std::sync::Arc;

/// Every built-in of this build.
#[must_use]
pub fn all() -> Vec<Arc<dyn FeatureModule>> {
    vec![Arc::new(files::Files), Arc::new(search::Search), Arc::new(shell::Shell)]
}
