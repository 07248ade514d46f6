//! The record of a background task's run. Does not depend on features or on timers.

use llm_worker::ToolEffect;
use serde::{Deserialize, Serialize};

/// Most bytes of [`BackgroundTask::reason`].
pub const MAX_TASK_REASON: usize = 512;

/// Most restarts of a task within the window of its rule. The journal remembers one failure more: the one that exceeds it.
pub const MAX_TASK_RESTARTS: u32 = 16;

/// Body of `background_task`: a run of a feature's background task began or ended. A run has at most one record with
/// `running` and exactly one with another state. The run of an effectful task has a durable `running` record before it
/// begins; without one its only other state is `cancelled`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Rises within a session, in the order in which runs begin. The number of a run without a record may be given again
    /// by the next start.
    pub run: u64,
    pub feature: String,
    /// The task's name within its feature.
    pub task: String,
    pub trigger: TriggerKind,
    /// 1 for the first run of a cause; each restart of that cause adds 1.
    pub attempt: u32,
    /// When the run was due by the wall clock, in milliseconds since 1970.
    pub due_ms: u64,
    /// When the run began or ended by the wall clock, in milliseconds since 1970.
    pub at_ms: u64,
    pub effect: ToolEffect,
    pub state: TaskRunState,
    /// For people: why it ended this way. At most [`MAX_TASK_REASON`] bytes, redacted by the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Milliseconds that the run took, by the monotonic clock; none at its beginning, and where nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The jobs that the run started and that still ran at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<u64>,
}

/// What made a run due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// The start of the host.
    Start,
    Interval,
    Cron,
    /// The feature, for now or for a later time.
    Request,
    /// An event of another feature's service.
    ServiceEvent,
    /// The end of a job of the feature.
    ChildEnded,
    /// Files of the project changed.
    FileChange,
    /// The end of the run before it, by the task's restart rule.
    Restart,
}

impl TriggerKind {
    /// Whether a schedule was due, so that the next time follows from this one.
    #[must_use]
    pub fn is_scheduled(self) -> bool {
        match self {
            Self::Interval | Self::Cron => true,
            Self::Start
            | Self::Request
            | Self::ServiceEvent
            | Self::ChildEnded
            | Self::FileChange
            | Self::Restart => false,
        }
    }
}

/// The state of a run; all but the first are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskRunState {
    Running,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    /// The host ended during the run. Only recovery writes this.
    Orphaned,
}

impl TaskRunState {
    /// The word of the journal.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Orphaned => "orphaned",
        }
    }

    /// Whether a restart rule counts it as a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::TimedOut | Self::Orphaned => true,
            Self::Running | Self::Completed | Self::Cancelled => false,
        }
    }
}
