//! Time as the composition root hands it in.

use std::sync::Arc;
use std::time::SystemTime;

/// What a calendar says.
pub type Now = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The clocks that features go by.
#[derive(Clone)]
pub struct Clocks {
    /// For dates, and for waits that outlive the process.
    pub now: Now,
}
