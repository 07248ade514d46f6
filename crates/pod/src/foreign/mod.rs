//! Code of others: the threads it runs on, what contains it, and whose it is. It knows no turn, no journal and no plan.
//!
//! Hooks and tools go the same way: [`Callbacks::run`] gives work a thread, a deadline, a cancellation and a grace, and
//! counts the threads that do not come back; within it [`contained`] runs a feature's code. Installs, which nobody can
//! tell to end, have threads and a deadline of their own in [`installs`].

pub(crate) mod attribution;
mod callbacks;
mod contained;
pub(crate) mod installs;

pub use callbacks::{CallbackFailure, Callbacks, GRACE, MAX_STUCK, MAX_THREADS};
pub(crate) use contained::{Broke, caught, contained, stepping};
