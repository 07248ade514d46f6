//! Time as the composition root hands it in.

use std::sync::Arc;
use std::time::SystemTime;

/// What a calendar says: for dates, and for waits that outlive the process.
pub type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;
