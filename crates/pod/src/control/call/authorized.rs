//! An allowed call, as it goes from the judging through the log to its run. Does not depend on either.

use crate::hook::ToolCallView;
use crate::record::ToolStarted;
use authority::Door;
use llm_worker::tool::{Landing, Prepared};
use llm_worker::{ErrorKind, ToolError};
use std::sync::Arc;
use std::time::Duration;

/// An allowed call: the parse that was judged, what hooks see of it, and the tool's own deadline.
#[derive(Debug)]
pub(crate) struct Authorized {
    /// Durable before the call runs.
    pub(crate) record: ToolStarted,
    pub(crate) view: Arc<ToolCallView>,
    pub(crate) prepared: Prepared,
    pub(crate) deadline: Duration,
    /// The door of the tool's grant: each step of the call enters it.
    pub(crate) door: Arc<Door>,
    pub(crate) landings: Landings,
}

/// Where a call may write: where its paths led when they were judged.
#[derive(Debug, Default)]
pub(crate) struct Landings {
    judged: Vec<Landing>,
    /// When they were judged, since 1970.
    since: Duration,
}

/// By how much the clock of a file system may be behind.
const CLOCK_TICK: Duration = Duration::from_millis(20);

impl Landings {
    pub(super) fn new(judged: Vec<Landing>, since: Duration) -> Self {
        Self { judged, since }
    }

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
