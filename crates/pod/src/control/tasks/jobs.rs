//! The jobs of a pod: numbers, starts and ends them, and makes their records. Does not depend on what is run.
//!
//! ```text
//!   asked ──> record ══durable══> process ──> end ──> record ══durable══> told
//!               │ refused            │ not started ──────┘
//!               └──> no job
//! ```

use super::runner::Ended;
use crate::control::core::Core;
use crate::control::pipeline::{ActorCommit, TaskCommit};
use crate::feature::{
    JobBoard, JobControl, JobError, JobLog, MAX_JOBS_OF_FEATURE, NewJob, escape_line, millis,
};
use crate::mailbox::requests::JobRequest;
use crate::record::{ChildProcess, JobEnd, JobEndKind, MAX_JOB_TEXT};
use crate::session::jobs::MAX_JOBS;
use authority::{ChildExit, ChildResult, Redactor, SpawnedChild, Spawner};
use session_store::Clock;
use std::io;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Most output of a job that is read in [`OUTPUT_TIME`], which is shorter than the time after which a child is quiet: 8 MiB
/// in a second.
const MAX_OUTPUT: usize = 8 * 1024 * 1024 / 20;
const OUTPUT_TIME: Duration = Duration::from_millis(50);

/// The jobs of this start; the board has those that have not ended.
pub(super) struct Jobs {
    next: u64,
    board: JobBoard,
    /// Fires when the actor is gone: what still runs is killed then, also while the runtime goes down.
    gone: CancellationToken,
    _kills: DropGuard,
    is_closed: bool,
}

/// The end of a job: its record, unless its start has none.
pub(in crate::control) struct JobOver {
    job: u64,
    record: Option<ChildProcess>,
}

impl Jobs {
    pub(super) fn new(core: &Core) -> Self {
        let next = core.state.job_numbers.saturating_add(1);
        let gone = CancellationToken::new();
        Self {
            next,
            board: core.jobs.clone(),
            _kills: gone.clone().drop_guard(),
            gone,
            is_closed: false,
        }
    }

    /// Starts what features asked for.
    pub(super) fn advance(&mut self, core: &mut Core, runs: &mut JoinSet<Ended>) {
        while let Some(request) = core.pending.next_job_request() {
            if let Err(why) = self.may_start(core, &request) {
                // The caller may have gone.
                drop(request.reply.send(Err(why)));
                continue;
            }
            let job = self.next;
            self.next = self.next.saturating_add(1);
            let start = start(job, &request, &core.store.clock);
            let recorded = core.pending.add_awaited(start.clone());
            core.write_out();
            let control = self.board.add(start.clone());
            let board = self.board.clone();
            let gone = self.gone.clone();
            let host = JobHost {
                board,
                clock: core.store.clock.clone(),
                control,
                gone,
            };
            let work = host.work(start, *request, recorded);
            runs.spawn(async move {
                Ended::Job(JobOver {
                    job,
                    record: work.await,
                })
            });
        }
    }

    fn may_start(&self, core: &Core, request: &JobRequest) -> Result<(), JobError> {
        if !core.stays {
            let why = "this pod ends with its run, and a job would end with it; start the pod so that it stays";
            return Err(JobError::Unavailable(why.to_owned()));
        }
        if self.is_closed {
            return Err(JobError::Closed);
        }
        let (own, all) = self.board.running(&request.feature);
        if own >= request.new.most.clamp(1, MAX_JOBS_OF_FEATURE) {
            let run = if own == 1 {
                "1 job runs already; stop it first"
            } else {
                &format!("{own} jobs run already; stop one first")
            };
            return Err(JobError::Exhausted(run.to_owned()));
        }
        if all >= MAX_JOBS {
            return Err(JobError::Exhausted(format!(
                "{all} jobs of all features run already; wait until one has ended"
            )));
        }
        Ok(())
    }

    /// A job has ended: its record is appended until the disk takes it.
    pub(super) fn over(&mut self, core: &mut Core, over: JobOver) {
        let JobOver { job, record } = over;
        let Some(mut record) = record else {
            return self.board.end(job, &core.state);
        };
        if let Some(end) = record
            .ended
            .as_mut()
            .filter(|end| end.how == JobEndKind::Stopped)
        {
            match self.board.stopped_by(job) {
                Some(client) => drop(
                    end.reason
                        .get_or_insert_with(|| format!("a person stopped it with `{client}`")),
                ),
                None if self.is_closed => end.how = JobEndKind::PodStopped,
                None => {}
            }
        }
        core.append_actor_commit(
            ActorCommit::Task(TaskCommit::JobEnd(job)),
            vec![record.into()],
        );
    }

    /// The end of a job is in the log, or can never be stored.
    pub(super) fn committed(&mut self, core: &Core, job: u64) {
        self.board.end(job, &core.state);
    }

    /// Ends all jobs; none begins from now on. Returns whether that is done, and in the log.
    pub(super) fn close(&mut self) -> bool {
        self.is_closed = true;
        self.board.stop_all()
    }
}

/// What a job needs of its pod.
struct JobHost {
    board: JobBoard,
    clock: Clock,
    control: JobControl,
    gone: CancellationToken,
}

impl JobHost {
    /// Runs a job from its start to its end. Returns the record of the end; none if there is no record of the start.
    async fn work(
        self,
        start: ChildProcess,
        request: JobRequest,
        recorded: oneshot::Receiver<Result<(), String>>,
    ) -> Option<ChildProcess> {
        let JobRequest {
            spawner,
            redactor,
            new,
            reply,
            ..
        } = request;
        let stop = self.control.stop.clone();
        if let Err(why) = recorded
            .await
            .unwrap_or_else(|_| Err("the pod has ended".to_owned()))
        {
            let why =
                format!("the job was not started, because its start could not be recorded: {why}");
            drop(reply.send(Err(JobError::Unavailable(why))));
            return None;
        }
        if reply.is_closed() || stop.is_cancelled() {
            return Some(self.ended(start, not_started("nobody waits for it any more")));
        }
        let child = match spawn(spawner, start.job, new).await {
            Ok(child) => child,
            Err(error) => {
                let end = not_started(&line(&error.to_string(), &redactor));
                drop(reply.send(Err(error)));
                return Some(self.ended(start, end));
            }
        };
        let began = ChildProcess {
            pid: child.pid(),
            start: child.started(),
            ..start
        };
        let log = JobLog::default();
        self.board.begin(began.clone(), log.clone(), child.memory());
        if reply.send(Ok(began.job)).is_err() {
            // No caller knows its number.
            stop.cancel();
        }
        let keep = move |bytes: &[u8]| {
            log.write(bytes);
            Ok(())
        };
        let ended = read(
            child.paced(MAX_OUTPUT, OUTPUT_TIME),
            keep,
            stop,
            self.gone.clone(),
        )
        .await;
        let ended = ended.map_or_else(|error| failed(&line(&error, &redactor)), end);
        let ms = ended
            .ms
            .or_else(|| Some(self.now_ms().saturating_sub(began.at_ms)));
        Some(self.ended(began, JobEnd { ms, ..ended }))
    }

    fn ended(&self, job: ChildProcess, end: JobEnd) -> ChildProcess {
        ChildProcess {
            at_ms: self.now_ms(),
            ended: Some(end),
            ..job
        }
    }

    fn now_ms(&self) -> u64 {
        (self.clock)() / 1000
    }
}

/// The record of a start: what is to run, and for whom.
fn start(job: u64, request: &JobRequest, clock: &Clock) -> ChildProcess {
    let JobRequest {
        feature,
        redactor,
        new,
        starter,
        ..
    } = request;
    ChildProcess {
        job,
        feature: feature.to_string(),
        starter: *starter,
        pid: 0,
        start: 0,
        command: line(&new.command, redactor),
        deadline_ms: millis(new.deadline),
        at_ms: clock() / 1000,
        ended: None,
    }
}

/// On a thread of its own: what git would run is read before the start.
async fn spawn(spawner: Spawner, job: u64, new: NewJob) -> Result<SpawnedChild, JobError> {
    let NewJob {
        program,
        args,
        cwd,
        command: _,
        deadline,
        most: _,
    } = new;
    let job = authority::Job {
        program,
        args,
        cwd,
        call: format!("job-{job}"),
        deadline,
        input: Vec::new(),
    };
    let runtime = Handle::current();
    let started = tokio::task::spawn_blocking(move || runtime.block_on(spawner.spawn(job)));
    let lost = |error| JobError::Unavailable(format!("the start of the job failed: {error}"));
    Ok(started.await.map_err(lost)??)
}

/// Waits for the end of a child and keeps its output, on a thread of its own. When the actor is gone, it kills the child.
async fn read(
    child: SpawnedChild,
    keep: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    stop: CancellationToken,
    gone: CancellationToken,
) -> Result<ChildResult, String> {
    let runtime = Handle::current();
    let run = async move { child.run(keep, &stop).await };
    let thread =
        tokio::task::spawn_blocking(move || runtime.block_on(gone.run_until_cancelled_owned(run)));
    match thread.await {
        Ok(Some(ended)) => ended.map_err(|error| error.to_string()),
        Ok(None) => Err("the pod has ended".to_owned()),
        Err(error) => Err(format!("its thread failed: {error}")),
    }
}

fn end(result: ChildResult) -> JobEnd {
    let (how, code) = match result.how {
        ChildExit::Exit(code) => (JobEndKind::Exited, Some(code)),
        ChildExit::Signal(signal) => (JobEndKind::Signalled, Some(signal)),
        ChildExit::Deadline => (JobEndKind::TimedOut, None),
        ChildExit::Cancelled => (JobEndKind::Stopped, None),
    };
    let remaining =
        (result.remaining > 0).then(|| "some of its processes may still run".to_owned());
    let refused = result.refused.filter(|refused| *refused > 0);
    let refused =
        refused.map(|times| format!("the sandbox refused it the network, times: {times}"));
    JobEnd {
        how,
        code,
        reason: remaining.or(result.traffic.refused()).or(refused),
        ms: Some(millis(result.took)),
    }
}

fn failed(why: &str) -> JobEnd {
    JobEnd {
        reason: Some(why.to_owned()),
        ..JobEnd::of(JobEndKind::Failed)
    }
}

fn not_started(why: &str) -> JobEnd {
    JobEnd {
        reason: Some(why.to_owned()),
        ..JobEnd::of(JobEndKind::NotStarted)
    }
}

/// A text of one line for the journal.
fn line(text: &str, redactor: &Redactor) -> String {
    let flat = text.trim().replace(['\n', '\r', '\t'], " ");
    escape_line(&redactor.text(&flat), MAX_JOB_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::{Confinement, EnvPolicy, SandboxMode};
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    // It was read on the control thread, which a job that writes without end could keep busy.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "authority of a test")]
    fn output_is_read_on_another_thread() {
        let confinement = Confinement {
            mode: SandboxMode::Off,
            read: Vec::new(),
            write: Vec::new(),
        };
        let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
        let spawner =
            Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap();
        let (seen, threads) = mpsc::channel::<ThreadId>();
        let keep = move |_: &[u8]| seen.send(thread::current().id()).map_err(io::Error::other);
        let deadline = Duration::from_secs(60);
        let program = "sh".into();
        let args = vec!["-c".into(), "echo said".into()];
        let job = authority::Job {
            program,
            args,
            cwd: "/".into(),
            call: "job-1".to_owned(),
            deadline,
            input: Vec::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let child = spawner.spawn(job).await.unwrap();
            read(
                child,
                keep,
                CancellationToken::new(),
                CancellationToken::new(),
            )
            .await
            .unwrap();
        });
        let threads: Vec<_> = threads.iter().collect();
        assert!(!threads.is_empty() && !threads.contains(&thread::current().id()));
    }
}
