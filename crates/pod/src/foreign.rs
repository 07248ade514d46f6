//! Runs code of features and tools: its threads, its containment, and its attribution to a feature. Does not depend on
//! turns, the journal or the plan.
//!
//! Hooks and tools use the same path: [`Callbacks::run`] gives work a thread, a deadline, a cancellation and a grace
//! period, and counts the threads that do not return; within it [`contained`] runs a feature's code. Installs cannot be
//! cancelled, so they have threads and a deadline of their own in [`installs`].

pub(crate) mod attribution;
mod callbacks;
mod contained;
pub(crate) mod installs;

pub use callbacks::{CallbackFailure, Callbacks, GRACE, MAX_STUCK, MAX_THREADS};
pub(crate) use contained::{Broke, caught, contained, stepping};
