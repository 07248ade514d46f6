//! The jobs of a pod, as its features see them: shared by the actor, which writes, and the handles, which read.

use super::log::JobLog;
use crate::feature::declare::id::FeatureId;
use crate::record::ChildProcess;
use crate::session::jobs::MAX_ENDED_JOBS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most ended jobs whose output is kept.
const MAX_KEPT_LOGS: usize = 8;

/// All jobs that run, and the newest that ended, by number.
#[derive(Clone, Default)]
pub(crate) struct JobBoard(Arc<Mutex<BTreeMap<u64, JobEntry>>>);

struct JobEntry {
    job: ChildProcess,
    log: JobLog,
    control: JobControl,
}

/// Ends a job, and tells that its end is durable.
#[derive(Clone, Default)]
pub(crate) struct JobControl {
    pub(crate) stop: CancellationToken,
    pub(crate) over: CancellationToken,
}

impl JobBoard {
    /// The jobs that an earlier host left; each has ended.
    pub(crate) fn of(ended: impl Iterator<Item = ChildProcess>) -> Self {
        let board = Self::default();
        ended.for_each(|job| board.end(job));
        board
    }

    /// A job runs, and its start is durable.
    pub(crate) fn begin(&self, job: ChildProcess, log: JobLog, control: JobControl) {
        self.lock().insert(job.job, JobEntry { job, log, control });
    }

    /// The end of a job is durable.
    pub(crate) fn end(&self, job: ChildProcess) {
        let mut jobs = self.lock();
        let (number, new) = (job.job, job.clone());
        let entry = jobs.entry(number);
        let entry =
            entry.or_insert_with(|| JobEntry { job: new, log: JobLog::default(), control: JobControl::default() });
        entry.job = job;
        entry.control.over.cancel();
        let ended: Vec<u64> = jobs.iter().filter(|(_, entry)| entry.job.ended.is_some()).map(|(job, _)| *job).collect();
        for old in ended.iter().rev().skip(MAX_KEPT_LOGS) {
            jobs.entry(*old).and_modify(|entry| entry.log = JobLog::default());
        }
        for old in ended.iter().rev().skip(MAX_ENDED_JOBS) {
            jobs.remove(old);
        }
    }

    pub(super) fn list(&self, feature: &FeatureId) -> Vec<ChildProcess> {
        let feature = feature.to_string();
        self.lock().values().map(|entry| &entry.job).filter(|job| job.feature == feature).cloned().collect()
    }

    pub(super) fn find(&self, feature: &FeatureId, job: u64) -> Option<(ChildProcess, JobLog, JobControl)> {
        let jobs = self.lock();
        let entry = jobs.get(&job).filter(|entry| entry.job.feature == feature.to_string())?;
        Some((entry.job.clone(), entry.log.clone(), entry.control.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, JobEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
