//! The jobs of a pod: numbers, starts and ends them, and makes their records. Does not depend on what is run.

use super::runner::Ended;
use crate::control::core::Core;
use crate::control::pipeline::{ActorCommit, TaskCommit};
use crate::feature::{JobBoard, JobControl, JobError, JobLog, NewJob, escape_line};
use crate::mailbox::requests::{DriverRequest, JobRequest, MailboxSender};
use crate::record::{ChildProcess, JobEnd, JobEndKind, MAX_JOB_TEXT};
use crate::session::jobs::MAX_JOBS;
use authority::{ChildExit, ChildResult, Redactor, SpawnedChild, Spawner};
use session_store::Clock;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Most jobs of one feature that run at once.
const MAX_OF_FEATURE: usize = 8;

/// The jobs of this start that have not ended.
pub(super) struct Jobs {
    next: u64,
    /// By number, with the feature.
    running: BTreeMap<u64, (String, JobControl)>,
    /// Ends that are on their way into the log.
    ending: Vec<ChildProcess>,
    board: JobBoard,
    is_closed: bool,
}

/// The end of a job: its record, if it began.
pub(in crate::control) struct JobOver {
    job: u64,
    record: Option<ChildProcess>,
}

impl Jobs {
    pub(super) fn new(core: &Core) -> Self {
        let board = core.jobs.clone();
        let next = core.state.job_numbers.saturating_add(1);
        Self { next, running: BTreeMap::new(), ending: Vec::new(), board, is_closed: false }
    }

    /// Starts what features asked for.
    pub(super) fn advance(&mut self, core: &mut Core, runs: &mut JoinSet<Ended>) {
        while let Some(request) = core.pending.next_job_request() {
            if let Err(why) = self.may_start(core, &request.feature.to_string()) {
                // The caller may have gone.
                drop(request.reply.send(Err(why)));
                continue;
            }
            let (number, control) = (self.next, JobControl::default());
            self.next = self.next.saturating_add(1);
            self.running.insert(number, (request.feature.to_string(), control.clone()));
            let host = JobHost {
                mailbox: core.pending.sender(),
                board: self.board.clone(),
                clock: core.store.clock.clone(),
                control,
            };
            runs.spawn(async move { Ended::Job(JobOver { job: number, record: host.work(number, *request).await }) });
        }
    }

    fn may_start(&self, core: &Core, feature: &str) -> Result<(), JobError> {
        let all = self.running.len() + self.ending.len();
        let own = self.running.values().filter(|(of, _)| of == feature).count();
        if !core.stays {
            let why = "this pod ends with its run, and a job would end with it; start the pod so that it stays";
            return Err(JobError::Unavailable(why.to_owned()));
        }
        if self.is_closed {
            return Err(JobError::Closed);
        }
        if own >= MAX_OF_FEATURE || all >= MAX_JOBS {
            return Err(JobError::Exhausted(format!("{} jobs run already; stop one first", own.max(1))));
        }
        Ok(())
    }

    /// A job has ended: its record is appended until the disk takes it.
    pub(super) fn over(&mut self, core: &mut Core, over: JobOver) {
        self.running.remove(&over.job);
        let Some(mut record) = over.record else { return };
        if let Some(end) = record.ended.as_mut().filter(|end| self.is_closed && end.how == JobEndKind::Stopped) {
            end.how = JobEndKind::PodStopped;
        }
        self.ending.push(record.clone());
        core.append_actor_commit(ActorCommit::Task(TaskCommit::JobEnd), vec![record.into()]);
    }

    /// The ends that the log has by now; all, if one can never be stored.
    pub(super) fn committed(&mut self, core: &Core, is_durable: bool) -> Vec<ChildProcess> {
        let open =
            |job: &ChildProcess| is_durable && core.state.jobs.get(&job.job).is_some_and(|known| known.ended.is_none());
        let (waiting, done) = std::mem::take(&mut self.ending).into_iter().partition::<Vec<_>, _>(open);
        self.ending = waiting;
        done.iter().for_each(|job| self.board.end(job.clone()));
        done
    }

    /// Ends all jobs; none begins from now on. Returns whether that is done, and in the log.
    pub(super) fn close(&mut self) -> bool {
        self.is_closed = true;
        self.running.values().for_each(|(_, control)| control.stop.cancel());
        self.running.is_empty() && self.ending.is_empty()
    }
}

/// What a job needs of its pod.
struct JobHost {
    mailbox: MailboxSender,
    board: JobBoard,
    clock: Clock,
    control: JobControl,
}

impl JobHost {
    /// Runs a job from its start to its end. Returns the record of the end; none if it never began.
    async fn work(self, job: u64, request: JobRequest) -> Option<ChildProcess> {
        let JobRequest { feature, spawner, redactor, new, starter, reply } = request;
        let command = line(&new.command, &redactor);
        let deadline_ms = u64::try_from(new.deadline.as_millis()).unwrap_or(u64::MAX);
        let child = match spawn(spawner, job, new).await {
            Ok(child) => child,
            Err(error) => {
                drop(reply.send(Err(error)));
                return None;
            }
        };
        let (pid, start, at_ms) = (child.pid(), child.started(), (self.clock)() / 1000);
        let feature = feature.to_string();
        let began = ChildProcess { job, feature, starter, pid, start, command, deadline_ms, at_ms, ended: None };
        if let Err(why) = self.record(began.clone()).await {
            drop(child);
            drop(reply.send(Err(why)));
            return None;
        }
        let log = JobLog::default();
        self.board.begin(began.clone(), log.clone(), self.control.clone());
        let (JobControl { stop, .. }, keep) = (self.control.clone(), log.clone());
        if reply.is_closed() || reply.send(Ok(job)).is_err() {
            // No caller knows its number.
            stop.cancel();
        }
        let keep = move |bytes: &[u8]| {
            keep.write(bytes);
            Ok(())
        };
        let ended = child.run(keep, &stop).await;
        let ended = ended.map_or_else(|error| failed(&error, &redactor), end);
        let ms = ended.ms.or_else(|| Some(((self.clock)() / 1000).saturating_sub(at_ms)));
        Some(ChildProcess { at_ms: (self.clock)() / 1000, ended: Some(JobEnd { ms, ..ended }), ..began })
    }

    /// Makes the start durable.
    async fn record(&self, began: ChildProcess) -> Result<(), JobError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(DriverRequest::JobStarted { job: Box::new(began), reply }).await?;
        let answer = self.mailbox.answered(answer).await.ok_or(JobError::Closed)?;
        answer.map_err(|why| JobError::Unavailable(format!("the start of the job could not be recorded: {why}")))
    }
}

/// On a thread of its own: what git would run is read before the start.
async fn spawn(spawner: Spawner, job: u64, new: NewJob) -> Result<SpawnedChild, JobError> {
    let NewJob { program, args, cwd, command: _, deadline } = new;
    let job = authority::Job { program, args, cwd, call: format!("job-{job}"), deadline };
    let runtime = Handle::current();
    let started = tokio::task::spawn_blocking(move || runtime.block_on(spawner.spawn(job)));
    let lost = |error| JobError::Unavailable(format!("the start of the job failed: {error}"));
    Ok(started.await.map_err(lost)??)
}

fn end(result: ChildResult) -> JobEnd {
    let (how, code) = match result.how {
        ChildExit::Exit(code) => (JobEndKind::Exited, Some(code)),
        ChildExit::Signal(signal) => (JobEndKind::Signalled, Some(signal)),
        ChildExit::Deadline => (JobEndKind::TimedOut, None),
        ChildExit::Cancelled => (JobEndKind::Stopped, None),
    };
    let remaining = (result.remaining > 0).then(|| "some of its processes may still run".to_owned());
    JobEnd { how, code, reason: remaining, ms: Some(millis(result.took)) }
}

fn failed(error: &authority::Error, redactor: &Redactor) -> JobEnd {
    JobEnd { reason: Some(line(&error.to_string(), redactor)), ..JobEnd::of(JobEndKind::Failed) }
}

/// A text of one line for the journal.
fn line(text: &str, redactor: &Redactor) -> String {
    let flat = text.trim().replace(['\n', '\r', '\t'], " ");
    escape_line(&redactor.text(&flat), MAX_JOB_TEXT)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
