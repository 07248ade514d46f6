//! The clock that the composition root passes to built-in features.

use std::sync::Arc;
use std::time::SystemTime;

/// The wall clock, for dates and for waits that outlive the process.
pub type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;
