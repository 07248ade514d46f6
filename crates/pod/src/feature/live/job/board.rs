//! The jobs of a pod: shared by the actor, which writes, and the handles of features, which read.

use super::log::JobLog;
use crate::feature::declare::id::FeatureId;
use crate::record::ChildProcess;
use crate::session::fold::SessionState;
use authority::ChildMemory;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most ended jobs whose output is kept.
const MAX_KEPT_LOGS: usize = 8;

/// All jobs that start or run, and those that ended and that the session remembers, by number.
#[derive(Clone, Default)]
pub(crate) struct JobBoard(Arc<Mutex<BTreeMap<u64, JobEntry>>>);

struct JobEntry {
    job: ChildProcess,
    /// Features see it: it has, or had, a process.
    began: bool,
    log: JobLog,
    control: JobControl,
    /// Of one that has a process.
    memory: Option<ChildMemory>,
    /// The client of a person who stopped it.
    stopped_by: Option<String>,
}

/// Ends a job, and tells that its end is durable.
#[derive(Clone, Default)]
pub(crate) struct JobControl {
    pub(crate) stop: CancellationToken,
    pub(crate) over: CancellationToken,
}

impl JobEntry {
    fn new(job: ChildProcess, began: bool) -> Self {
        let log = JobLog::default();
        let control = JobControl::default();
        Self {
            job,
            began,
            log,
            control,
            memory: None,
            stopped_by: None,
        }
    }

    fn is_of(&self, feature: &str) -> bool {
        self.job.feature == feature
    }

    fn has_ended(&self) -> bool {
        self.job.ended.is_some()
    }
}

impl JobBoard {
    /// The jobs that an earlier host left; each has ended.
    pub(crate) fn of(ended: impl Iterator<Item = ChildProcess>) -> Self {
        let entries = ended.map(|job| (job.job, JobEntry::new(job, true)));
        Self(Arc::new(Mutex::new(entries.collect())))
    }

    /// A job is to start.
    pub(crate) fn add(&self, job: ChildProcess) -> JobControl {
        self.lock()
            .entry(job.job)
            .or_insert_with(|| JobEntry::new(job, false))
            .control
            .clone()
    }

    /// A job has a process.
    pub(crate) fn begin(&self, job: ChildProcess, log: JobLog, memory: Option<ChildMemory>) {
        if let Some(entry) = self.lock().get_mut(&job.job) {
            (entry.job, entry.log, entry.memory, entry.began) = (job, log, memory, true);
        }
    }

    /// Ends a job of any feature for a person. None if no such job runs.
    pub(crate) fn stop(&self, job: u64, by: &str) -> Option<JobControl> {
        let mut jobs = self.lock();
        let entry = jobs
            .get_mut(&job)
            .filter(|entry| entry.began && !entry.has_ended())?;
        entry.stopped_by.get_or_insert_with(|| by.to_owned());
        entry.control.stop.cancel();
        Some(entry.control.clone())
    }

    /// The client of the person who stopped a job, if one did.
    pub(crate) fn stopped_by(&self, job: u64) -> Option<String> {
        self.lock().get(&job)?.stopped_by.clone()
    }

    /// What reads the memory of the jobs that run.
    pub(crate) fn memory(&self) -> Vec<(u64, ChildMemory)> {
        let jobs = self.lock();
        jobs.iter()
            .filter(|(_, entry)| !entry.has_ended())
            .filter_map(|(job, entry)| Some((*job, entry.memory?)))
            .collect()
    }

    /// A job is over. What the session remembers of it, and of others, stays.
    pub(crate) fn end(&self, job: u64, session: &SessionState) {
        let mut jobs = self.lock();
        let ended = session.jobs.get(&job).filter(|job| job.ended.is_some());
        if let (Some(entry), Some(ended)) = (jobs.get_mut(&job), ended) {
            entry.job = ended.clone();
        }
        let control = jobs.get(&job).map(|entry| entry.control.clone());
        jobs.retain(|number, entry| {
            session.ended_jobs.contains(number) || !(entry.has_ended() || *number == job)
        });
        for old in session.ended_jobs.iter().rev().skip(MAX_KEPT_LOGS) {
            jobs.entry(*old)
                .and_modify(|entry| entry.log = JobLog::default());
        }
        drop(jobs);
        control.inspect(|control| control.over.cancel());
    }

    /// How many jobs of this feature, and of all, start or run.
    pub(crate) fn running(&self, feature: &FeatureId) -> (usize, usize) {
        let jobs = self.lock();
        let feature = feature.to_string();
        let running = || jobs.values().filter(|entry| !entry.has_ended());
        (
            running().filter(|entry| entry.is_of(&feature)).count(),
            running().count(),
        )
    }

    /// Ends all jobs. Returns whether none runs.
    pub(crate) fn stop_all(&self) -> bool {
        let jobs = self.lock();
        jobs.values().for_each(|entry| entry.control.stop.cancel());
        jobs.values().all(JobEntry::has_ended)
    }

    pub(super) fn list(&self, feature: &FeatureId) -> Vec<ChildProcess> {
        let jobs = self.lock();
        let feature = feature.to_string();
        jobs.values()
            .filter(|entry| entry.began && entry.is_of(&feature))
            .map(|entry| entry.job.clone())
            .collect()
    }

    pub(super) fn find(
        &self,
        feature: &FeatureId,
        job: u64,
    ) -> Option<(ChildProcess, JobLog, JobControl)> {
        let jobs = self.lock();
        let entry = jobs
            .get(&job)
            .filter(|entry| entry.began && entry.is_of(&feature.to_string()))?;
        Some((entry.job.clone(), entry.log.clone(), entry.control.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, JobEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
