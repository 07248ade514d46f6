//! Whether a file that a call writes lies where it was judged. Does not depend on how a call runs.

use llm_worker::tool::Landing;
use llm_worker::{ErrorKind, ToolError};
use std::time::Duration;

/// Where a call may write: where its paths led when they were judged.
#[derive(Debug, Default)]
pub(crate) struct Landings {
    pub(super) judged: Vec<Landing>,
    /// When they were judged, since 1970.
    pub(super) since: Duration,
}

/// By how much the clock of a file system may be behind.
const CLOCK_TICK: Duration = Duration::from_millis(20);

impl Landings {
    /// Allows a file where it was judged, and in a directory that was created since.
    pub(crate) fn check(&self, found: &Landing) -> Result<(), ToolError> {
        let judged = self
            .judged
            .iter()
            .filter(|judged| judged.path == found.path);
        let is_new = found
            .born
            .is_some_and(|born| born + CLOCK_TICK >= self.since);
        if judged
            .into_iter()
            .any(|judged| judged.dir == found.dir || is_new)
        {
            return Ok(());
        }
        let shown = authority::escape(&found.path);
        let message = format!(
            "{shown}: the path changed between the check and the write; nothing was written; call again"
        );
        Err(ToolError::new(ErrorKind::Denied, message))
    }
}
