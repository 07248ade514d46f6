//! Named points of a run, for tests that stop there.

use std::sync::Arc;

/// Called at named points of a run, so that a test can stop the process exactly there.
#[derive(Clone)]
pub struct Points(Arc<dyn Fn(&str) + Send + Sync>);

impl Points {
    /// What the program runs with.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(|_| {}))
    }

    /// Calls `reached` with the name of each point.
    pub fn new(reached: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(reached))
    }

    /// The run is at this point.
    pub fn reached(&self, point: &str) {
        (self.0)(point);
    }
}
