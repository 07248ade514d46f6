//! yoi with one more feature: every command, and `user:review-first` in each pod.

use pod::feature::HostCapability;
use pod::hook::PreToolCall;
use review_first::ReviewFirst;
use std::process::ExitCode;
use std::sync::Arc;

/// What the feature may do unless a person's configuration says otherwise.
const GRANTS: [HostCapability; 3] = [
    HostCapability::tool("Reviewed"),
    HostCapability::hook::<PreToolCall>(),
    HostCapability::SESSION_STATE,
];

fn main() -> ExitCode {
    yoi::Program::new()
        .feature(Arc::new(ReviewFirst), &GRANTS)
        .main(std::env::args_os())
}
