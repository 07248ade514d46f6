//! The built-in features: one module each, through the API that every feature uses.
//!
//! A feature here declares its tools, requests the capabilities that they need and passes the handles to
//! implementations in `tools`. It does not depend on sockets, files of the store or the pod except `pod::feature`; it
//! opens, starts and waits for nothing.

pub mod circuit_breaker;
mod clock;
pub mod command_blocklist;
pub mod commands;
pub mod confirm_gate;
pub mod context;
pub mod dedup;
pub mod files;
pub mod format;
pub mod front_matter;
pub mod jobs;
mod json_form;
pub mod list_features;
pub mod loop_detect;
pub mod memory;
pub mod notes_router;
pub mod notify_person;
pub mod output_validate;
mod patterns;
pub mod phase_recorder;
mod plain;
pub mod policies;
mod quote;
pub mod redact;
pub mod retry;
pub mod schedule;
pub mod search;
pub mod shell;
pub mod skills;
pub mod step_tracer;
mod store_error;
pub mod task;
pub mod tool_search;
pub mod watch;
pub mod web;
pub mod work_item;
pub mod work_item_intake;
pub mod write_policy;

pub use clock::Now;
pub use store_error::StoreError;

pub use tools::{PathRemedy, Remedies};

use pod::feature::{FeatureDescriptor, FeatureModule};
use std::sync::Arc;

/// Every built-in feature that is on by default, for `yoi` to install; [`policies`] has the others. `words` gives the
/// text about the setting that would allow a denied path.
#[must_use]
pub fn all(words: Remedies) -> Vec<Arc<dyn FeatureModule>> {
    vec![
        Arc::new(files::FilesFeature(words)),
        Arc::new(search::SearchFeature(words)),
        Arc::new(shell::ShellFeature),
        Arc::new(task::TaskList),
    ]
}

/// The descriptors of all built-in features, whether on or not.
#[must_use]
pub fn declared() -> Vec<FeatureDescriptor> {
    let unworded = |_: PathRemedy<'_>| String::new();
    all(unworded)
        .iter()
        .map(|module| module.descriptor())
        .chain([
            commands::declared(),
            skills::declared(),
            api_core::tools::declared(),
        ])
        .chain(policies::declared())
        .collect()
}
