//! Code of others: the threads it runs on, what contains it, and whose it is. It knows no turn, no journal and no plan.

pub(crate) mod attribution;
mod callbacks;
mod door;
pub(crate) mod installs;

pub(crate) use callbacks::words;
pub use callbacks::{Callbacks, GRACE, Lost, MAX_STUCK, MAX_THREADS};
pub(crate) use door::{stepping, under};
