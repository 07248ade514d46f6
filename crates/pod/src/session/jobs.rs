//! What the journal knows of jobs: those that run, and the newest that ended. Starts and ends none.

use super::fold::SessionState;
use crate::record::{ChildProcess, JobEnd, JobEndKind};

/// Most jobs of a session that run at once.
pub const MAX_JOBS: usize = 16;

/// Most ended jobs that are remembered; those that ended first are forgotten.
pub const MAX_ENDED_JOBS: usize = 64;

/// The end of a job of an earlier host: its own, or that of one that ran when the host ended. Recovery writes that and runs
/// nothing.
pub(crate) fn ended(job: &ChildProcess, now_us: u64) -> ChildProcess {
    match job.ended {
        Some(_) => job.clone(),
        None => ChildProcess {
            at_ms: now_us / 1000,
            ended: Some(JobEnd::of(JobEndKind::Lost)),
            ..job.clone()
        },
    }
}

impl SessionState {
    /// The jobs without an end, oldest first.
    pub fn open_jobs(&self) -> impl Iterator<Item = &ChildProcess> {
        self.jobs.values().filter(|job| job.ended.is_none())
    }

    /// Folds a record of a job. An error changes nothing.
    pub(super) fn job(&mut self, record: &ChildProcess) -> Result<(), &'static str> {
        let is_open = self
            .jobs
            .get(&record.job)
            .map(|known| known.ended.is_none());
        match (is_open, &record.ended) {
            (Some(true), Some(_)) => {}
            (Some(true), None) => return Err("that job runs already"),
            (Some(false), _) => return Err("that job has ended"),
            (None, None) if self.open_jobs().count() >= MAX_JOBS => {
                return Err("too many jobs run");
            }
            (None, None) => {}
            (None, Some(_)) if self.lost.is_some() => {}
            (None, Some(_)) => return Err("that job never began"),
        }
        self.job_numbers = self.job_numbers.max(record.job);
        self.jobs.insert(record.job, record.clone());
        match &record.ended {
            None => {}
            // It was no job: who asked for it was told.
            Some(end) if end.how == JobEndKind::NotStarted => drop(self.jobs.remove(&record.job)),
            Some(_) => self.ended_jobs.push_back(record.job),
        }
        if self.ended_jobs.len() > MAX_ENDED_JOBS
            && let Some(first) = self.ended_jobs.pop_front()
        {
            self.jobs.remove(&first);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
