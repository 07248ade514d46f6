//! The machine as tables and schedules, over a host that performs effects and watches every promise.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "tests pick out the one variant they look for"
)]

mod answer_limits;
mod early_end;
mod flushes_per_step;
mod hold;
mod illegal_inputs;
mod parked;
mod refused_commits;
mod rig;
mod schedules;
mod stories;
mod supplied_calls;
mod unstorable_commits;
