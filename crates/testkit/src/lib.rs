//! Parts for tests of a pod: a scripted model, tools made of closures, a disk that fails at chosen operations, a
//! manual clock, named points to wait or die at, and a pod built from them.
//!
//! For authors of features there is [`FeatureHost`], which runs one feature in a pod of its own, and [`conformance`],
//! which checks any feature against the contract of `pod::feature`.
//!
//! It uses pods and the crates below them through their public API. It does not depend on concrete tools, providers or
//! the command line. A test claims authority and passes it in; only `FeatureHost` claims it itself, for a temporary
//! directory. Every error panics: a testkit that does not work is a failed test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a kit that fails is a failed test"
)]

mod clock;
mod conformance;
mod disk;
mod feature;
mod feature_host;
mod latch;
mod live;
mod model;
mod mutations;
mod points;
mod rig;
mod ruling;
mod server;
mod sources;
mod tool;

pub use clock::ManualClock;
pub use conformance::{Check, CheckOutcome, CheckResult, Conformance, conformance};
pub use disk::{EIO, ENOSPC, FailingDisk, Fault};
pub use feature::feature;
pub use feature_host::{
    FeatureHost, FeatureUnderTest, Notification, Shared, killed_anywhere, shell_call, tool_call,
};
pub use latch::{Latch, PATIENCE, within};
pub use live::{LiveEnd, LivePod, Over};
pub use llm_worker::ResultStatus;
pub use model::{ModelScript, ScriptedAnswer};
pub use mutations::mutations;
pub use points::KillPoints;
pub use rig::{PodRun, PodUnderTest, RunEnd, TERMS, read};
pub use ruling::Ruling;
pub use server::{Expected, ScriptedServer, SeenRequest, ServerAnswer, on};
pub use sources::{answered, data, holds};
pub use tool::FnTool;
