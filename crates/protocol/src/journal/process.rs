//! The record of a child process that outlives the call that started it. Does not depend on how it is run.

use crate::item::CallId;
use serde::{Deserialize, Serialize};

/// Most bytes of [`ChildProcess::command`] and of [`JobEnd::reason`].
pub const MAX_JOB_TEXT: usize = 512;

bodies! {
    /// A child process that outlives the call that started it, a job, began or ended.
    ///
    /// Body of `process`: a job is to start, or ended. A job is a command that outlives the call that started it. Its first record
    /// is durable before it has a process, and it has exactly one with `ended`.
    ChildProcess: Eq {
        /// Its number.
        // Its number in the session. That of a job without a record may be given again by the next start.
        job: u64,
        // The feature that started it.
        feature: String,
        - starter: JobStarter,
        // The main process: its number, and when it started in ticks since boot. 0 in the first record.
        pid: u32,
        - start: u64,
        // For people: one line, redacted by the writer, at most [`MAX_JOB_TEXT`] bytes.
        command: String,
        /// How long it may run.
        deadline_ms: u64,
        /// When it began or ended: wall clock, milliseconds since 1970.
        at_ms: u64,
        ended ?: JobEnd,
    }
    /// How a job ended; part of [`ChildProcess`].
    JobEnd: Eq {
        /// `exited`, `signalled`, `timed_out`, `stopped`, `pod_stopped`, `failed`, `lost` or `not_started`.
        how: JobEndKind,
        /// The exit status, or the number of the signal.
        code ?: i32,
        // For people, redacted by the writer, at most [`MAX_JOB_TEXT`] bytes.
        reason ?: String,
        /// How long it ran.
        // Milliseconds that it ran; none if that is not known.
        ms ?: u64,
    }
}

/// The code that started a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStarter {
    /// A call of a tool.
    Call(CallId),
    /// A run of a background task.
    Run(u64),
}

words! {
    /// What ended a job.
    JobEndKind {
        Exited = "exited",
        /// A signal that the host did not send.
        Signalled = "signalled",
        TimedOut = "timed_out",
        /// The feature asked for it.
        Stopped = "stopped",
        /// The pod ended in good order.
        PodStopped = "pod_stopped",
        /// The grant was revoked, or the process could not be waited for.
        Failed = "failed",
        /// The host was killed: recovery ended what was left, if it had started. Only recovery writes this.
        Lost = "lost",
        /// It could not be started, or nobody waited for it any more: it had no process.
        NotStarted = "not_started",
    }
}

impl JobEnd {
    /// An end of this kind, with nothing else known.
    #[must_use]
    pub fn of(how: JobEndKind) -> Self {
        Self {
            how,
            code: None,
            reason: None,
            ms: None,
        }
    }
}

impl std::fmt::Display for JobEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.unwrap_or_default();
        match self.how {
            JobEndKind::Exited => write!(f, "exit {code}")?,
            JobEndKind::Signalled => write!(f, "killed by signal {code}")?,
            JobEndKind::TimedOut => f.write_str("stopped at its time limit")?,
            JobEndKind::Stopped => f.write_str("stopped on request")?,
            JobEndKind::PodStopped => f.write_str("stopped because the pod stopped")?,
            JobEndKind::Failed => f.write_str("failed")?,
            JobEndKind::NotStarted => f.write_str("not started")?,
            JobEndKind::Lost => {
                f.write_str("ended by recovery, because the pod's process was killed")?
            }
        }
        self.reason
            .as_ref()
            .map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
