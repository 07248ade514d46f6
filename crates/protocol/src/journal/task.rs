//! The record of a background task's run. Does not depend on features or on timers.

use crate::tool::ToolEffect;

/// Most bytes of [`BackgroundTask::reason`].
pub const MAX_TASK_REASON: usize = 512;

/// Most restarts of a task within the window of its rule. The journal remembers one failure more: the one that exceeds it.
pub const MAX_TASK_RESTARTS: u32 = 16;

bodies! {
    /// A run of a feature's background task began or ended.
    ///
    /// Body of `background_task`: a run of a feature's background task began or ended. A run has at most one record with
    /// `running` and exactly one with another state. The run of an effectful task has a durable `running` record before it
    /// begins; without one its only other state is `cancelled`.
    BackgroundTask: Eq {
        /// Its number.
        // Rises within a session, in the order in which runs begin. The number of a run without a record may be given again
        // by the next start.
        run: u64,
        feature: String,
        // The task's name within its feature.
        task: String,
        #[doc = "What made it due, such as `start`, `interval`, `cron`, `request`, `service_event`, `file_change`, `child_ended` or\n`restart`."]
        trigger: TriggerKind,
        /// 1 for the first run of a cause.
        attempt: u32,
        /// Wall clock, milliseconds since 1970.
        // When the run was due by the wall clock, in milliseconds since 1970.
        due_ms: u64,
        /// When it began or ended: wall clock, milliseconds since 1970.
        at_ms: u64,
        effect: ToolEffect,
        /// `running`, or how it ended.
        state: TaskRunState,
        // For people: why it ended this way. At most [`MAX_TASK_REASON`] bytes, redacted by the writer.
        reason ?: String,
        /// How long it ran.
        // Milliseconds that the run took, by the monotonic clock; none at its beginning, and where nothing ran.
        ms ?: u64,
        /// The jobs that it started and that still ran at its end.
        jobs =: Vec<u64>,
    }
}

words! {
    /// What made a run due.
    TriggerKind {
        /// The start of the host.
        Start = "start",
        Interval = "interval",
        Cron = "cron",
        /// The feature, for now or for a later time.
        Request = "request",
        /// An event of another feature's service.
        ServiceEvent = "service_event",
        /// The end of a job of the feature.
        ChildEnded = "child_ended",
        /// Files of the project changed.
        FileChange = "file_change",
        /// The end of the run before it, by the task's restart rule.
        Restart = "restart",
    }
    /// The state of a run; all but the first are final.
    TaskRunState {
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        TimedOut = "timed_out",
        /// The host ended during the run. Only recovery writes this.
        Orphaned = "orphaned",
    }
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

impl TaskRunState {
    /// Whether a restart rule counts it as a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::TimedOut | Self::Orphaned => true,
            Self::Running | Self::Completed | Self::Cancelled => false,
        }
    }
}
