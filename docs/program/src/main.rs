//! yoi with two more features: every command, `user:review-first` in each pod, and `user:tracker` for its issues.

mod tracker;

use api_core::provider::ISSUES;
use pod::feature::HostCapability;
use pod::hook::PreToolCall;
use review_first::ReviewFirst;
use std::process::ExitCode;
use std::sync::Arc;
use tracker::Tracker;

/// What the feature may do unless a person's configuration says otherwise.
const GRANTS: [HostCapability; 3] = [
    HostCapability::tool("Reviewed"),
    HostCapability::hook::<PreToolCall>(),
    HostCapability::SESSION_STATE,
];

/// The tracker's endpoint and secret are a person's to name.
const TRACKER_GRANTS: [HostCapability; 1] = [HostCapability::provide(ISSUES.name())];

fn main() -> ExitCode {
    yoi::Program::new()
        .feature(Arc::new(ReviewFirst), &GRANTS)
        .feature(Arc::new(Tracker), &TRACKER_GRANTS)
        .main(std::env::args_os())
}
