//! Background tasks: which run starts, ends and is repeated, and when; and the threads of the runs. Does not depend on
//! turns.

mod files;
mod jobs;
mod runner;
pub mod supervisor;

pub(super) use runner::{TaskEvent, Tasks};
