//! Jobs: commands that outlive the call or run that started them. A feature starts, reads and stops its own; the actor
//! numbers, records and ends them. Does not depend on the actor.

mod board;
mod log;
mod new;

pub(crate) use board::{JobBoard, JobControl};
pub(crate) use log::JobLog;
pub use log::MAX_JOB_TAIL;
pub use new::{JobError, MAX_JOB_DEADLINE, MAX_JOBS_OF_FEATURE, NewJob};

use super::presence::Absent;
use super::sink::SinkLink;
use crate::feature::live::task::BackgroundTaskContext;
use crate::mailbox::requests::{DriverRequest, JobRequest, NotTaken};
use crate::record::{ChildProcess, JobStarter};
use authority::{Redactor, Shut, Spawner};
use llm_worker::ToolContext;
use std::fmt;
use tokio::sync::oneshot;

/// Starts, reads and stops the jobs of one feature; see
/// [`FeatureServiceProvider::jobs`](crate::feature::FeatureServiceProvider::jobs). A job is confined as any child process
/// of the feature is. It ends with the pod, and with the grant.
#[derive(Clone)]
pub struct JobHandle {
    pub(crate) link: SinkLink,
    pub(crate) spawner: Spawner,
    pub(crate) redactor: Redactor,
    pub(crate) board: JobBoard,
}

/// The last output of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobTail {
    pub job: ChildProcess,
    /// Whole lines where possible, without secrets and control characters. Empty for a job of an earlier start of the pod,
    /// and for all but the newest jobs that ended.
    pub text: String,
    /// The bytes of its output so far.
    pub bytes: u64,
}

impl From<Absent> for JobError {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::Early => Self::Early,
            Absent::Gone => Self::Revoked,
        }
    }
}

impl From<NotTaken> for JobError {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::Full => Self::Busy,
            NotTaken::Closed => Self::Closed,
        }
    }
}

impl From<Shut> for JobError {
    fn from(_: Shut) -> Self {
        Self::Revoked
    }
}

/// What names the code that starts a job: its context, or the starter itself.
pub trait StartsJobs {
    /// The code that the job belongs to.
    fn starter(self) -> JobStarter;
}

impl StartsJobs for JobStarter {
    fn starter(self) -> JobStarter {
        self
    }
}

impl StartsJobs for &ToolContext {
    fn starter(self) -> JobStarter {
        JobStarter::Call(self.call)
    }
}

impl StartsJobs for &BackgroundTaskContext {
    fn starter(self) -> JobStarter {
        JobStarter::Run(self.run)
    }
}

impl JobHandle {
    /// Starts a job and returns its number. It is in the log before it runs. `starter` is the context of the call or run.
    /// When this future is dropped, the job is stopped.
    ///
    /// # Errors
    /// With each of them nothing runs. `Exhausted` while too many jobs run; `Unavailable` in a pod that does not stay, or
    /// if the log refuses; `Spawn`; `Early` in an install; `Revoked`; `Busy`; `Closed`.
    pub async fn start(&self, new: NewJob, starter: impl StartsJobs) -> Result<u64, JobError> {
        drop(self.link.enter::<JobError>()?);
        let feature = self.link.feature.clone();
        let spawner = self.spawner.clone();
        let redactor = self.redactor.clone();
        let new = NewJob {
            deadline: new.deadline.min(MAX_JOB_DEADLINE),
            ..new
        };
        let (reply, answer) = oneshot::channel();
        let request = JobRequest {
            feature,
            spawner,
            redactor,
            new,
            starter: starter.starter(),
            reply,
        };
        self.link
            .mailbox
            .try_send(DriverRequest::StartJob(Box::new(request)))?;
        self.link
            .mailbox
            .answered(answer)
            .await
            .unwrap_or(Err(JobError::Closed))
    }

    /// The feature's jobs, oldest first: all that run, and the newest that ended, those of earlier starts of the pod
    /// included.
    ///
    /// # Errors
    /// `Early` in an install; `Revoked`.
    pub fn list(&self) -> Result<Vec<ChildProcess>, JobError> {
        let _use = self.link.enter::<JobError>()?;
        Ok(self.board.list(&self.link.feature))
    }

    /// The last output of a job, at most `bytes` and [`MAX_JOB_TAIL`].
    ///
    /// # Errors
    /// `Unknown`; as [`Self::list`].
    pub fn tail(&self, job: u64, bytes: usize) -> Result<JobTail, JobError> {
        let _use = self.link.enter::<JobError>()?;
        let (job, log, _) = self
            .board
            .find(&self.link.feature, job)
            .ok_or(JobError::Unknown(job))?;
        let (text, written) = log.tail(bytes.min(MAX_JOB_TAIL), &self.redactor);
        Ok(JobTail {
            job,
            text,
            bytes: written,
        })
    }

    /// Ends a job with all of its processes, and waits until that is durable. A job that has ended stays as it is.
    ///
    /// # Errors
    /// `Unknown`; as [`Self::list`].
    pub async fn stop(&self, job: u64) -> Result<ChildProcess, JobError> {
        drop(self.link.enter::<JobError>()?);
        let (_, _, control) = self
            .board
            .find(&self.link.feature, job)
            .ok_or(JobError::Unknown(job))?;
        control.stop.cancel();
        control.over.cancelled().await;
        self.board
            .find(&self.link.feature, job)
            .map(|(job, ..)| job)
            .ok_or(JobError::Unknown(job))
    }
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "jobs of {}", self.link.feature)
    }
}

#[cfg(test)]
mod tests;
