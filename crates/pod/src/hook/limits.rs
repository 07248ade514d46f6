//! Deadlines of hooks, and how many failures in a row suspend one. It knows no hook.

use std::time::Duration;

/// How long one hook may take when its key does not say.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(2);
/// The longest deadline a key may ask for.
pub const MAX_DEADLINE: Duration = Duration::from_secs(10);
/// How long one pass over a chain may take, whatever its hooks declare.
pub const CHAIN_BUDGET: Duration = Duration::from_secs(10);
/// After this many failures in a row a transform or an observer is not called again in this generation. A gate always is.
pub const MAX_CONSECUTIVE_FAILURES: u32 = 3;
