//! The machine as tables and schedules, over a host that performs effects and watches every promise.
#![allow(clippy::wildcard_enum_match_arm, reason = "tests pick out the one variant they look for")]

mod cancel;
mod flushes;
mod illegal;
mod limits;
mod rig;
mod schedules;
mod stories;
mod suspend;
