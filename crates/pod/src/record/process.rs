//! The record of a child process that outlives the call that started it. Does not depend on how it is run.

use llm_worker::CallId;
use serde::{Deserialize, Serialize};

/// Most bytes of [`ChildProcess::command`] and of [`JobEnd::reason`].
pub const MAX_JOB_TEXT: usize = 512;

/// Body of `process`: a job is to start, or ended. A job is a command that outlives the call that started it. Its first record
/// is durable before it has a process, and it has exactly one with `ended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildProcess {
    /// Its number in the session. That of a job without a record may be given again by the next start.
    pub job: u64,
    /// The feature that started it.
    pub feature: String,
    pub starter: JobStarter,
    /// The main process: its number, and when it started in ticks since boot. 0 in the first record.
    pub pid: u32,
    pub start: u64,
    /// For people: one line, redacted by the writer, at most [`MAX_JOB_TEXT`] bytes.
    pub command: String,
    /// How long it may run.
    pub deadline_ms: u64,
    /// When it was to start or ended by the wall clock, in milliseconds since 1970.
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<JobEnd>,
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

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    pub how: JobEndKind,
    /// The exit status, or the number of the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// For people, redacted by the writer, at most [`MAX_JOB_TEXT`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Milliseconds that it ran; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// What ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEndKind {
    Exited,
    /// A signal that the host did not send.
    Signalled,
    TimedOut,
    /// The feature asked for it.
    Stopped,
    /// The pod ended in good order.
    PodStopped,
    /// The grant was revoked, or the process could not be waited for.
    Failed,
    /// The host was killed: recovery ended what was left, if it had started. Only recovery writes this.
    Lost,
    /// It could not be started, or nobody waited for it any more: it had no process.
    NotStarted,
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
