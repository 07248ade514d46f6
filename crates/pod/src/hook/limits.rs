//! Deadlines of hooks, how many failures in a row suspend one, and bounds of what they see.

use std::time::Duration;

/// Deadline of a hook whose declaration names none.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(2);
/// The longest deadline that a hook's declaration may name.
pub const MAX_DEADLINE: Duration = Duration::from_secs(10);
/// Limit on one run of a whole chain, whatever deadlines its hooks declare.
pub const CHAIN_BUDGET: Duration = Duration::from_secs(10);
/// After this many failures in a row a transform or an observer is not called again in this generation. A gate always is.
pub const MAX_CONSECUTIVE_FAILURES: u32 = 3;
/// Bytes of the schema of an input that its answer has to fit.
pub const MAX_OUTPUT_SCHEMA: usize = 64 * 1024;
