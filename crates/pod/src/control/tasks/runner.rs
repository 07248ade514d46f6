//! Runs background tasks and jobs: performs the effects of the supervisor, and hands it what happened. Decides nothing.
//!
//! ```text
//!   Supervisor ──> effects ──> journal · callback threads
//!        ▲                            │
//!        └── one of: requested, committed, ended, the time has come
//! ```

use super::files::{ChangedFiles, FileReport};
use super::jobs::{JobOver, Jobs};
use super::supervisor::{
    RequestTime, Supervisor, SupervisorEffect, SupervisorInput, TaskOutlook, TaskRun, TaskRunEnd,
    TaskSpec,
};
use crate::control::core::{Core, Fatal};
use crate::control::pipeline::{ActorCommit, TaskCommit};
use crate::feature::{
    BackgroundTaskContext, FeatureId, PodActivity, PodAtRun, RegisteredTask, TaskFailure,
    TaskTrigger, millis, sanitize_lines,
};
use crate::mailbox::events::Event;
use crate::mailbox::requests::{RunTime, TaskRequest};
use crate::record::{
    BackgroundTask, ChildProcess, JobStarter, MAX_TASK_REASON, TaskRunState, TriggerKind,
};
use crate::session::fold::{Hold, SessionState};
use crate::session::jobs::MAX_ENDED_JOBS;
use crate::session::tasks::OpenTaskRun;
use authority::FileChanges;
use llm_worker::ToolEffect;
use protocol::status::BackgroundTaskStatus;
use session_store::Clock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, UNIX_EPOCH};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The background tasks and jobs of a pod.
pub(in crate::control) struct Tasks {
    /// In the order in which the supervisor knows them.
    tasks: Vec<RegisteredTask>,
    supervisor: Supervisor,
    runs: JoinSet<Ended>,
    /// The runs that have not ended, with what cancels them.
    running: BTreeMap<u64, CancellationToken>,
    files: ChangedFiles,
    /// Ends of runs that are on their way into the log.
    ending: usize,
    jobs: Jobs,
    /// Of each task with the trigger, by its position: the jobs that ended since its last run.
    ended_jobs: BTreeMap<usize, VecDeque<u64>>,
    is_closed: bool,
}

/// What the actor waits for here.
pub(in crate::control) enum TaskEvent {
    Ended(Result<Ended, JoinError>),
    Files(FileReport),
}

/// What ended: a run or a job.
pub(in crate::control) enum Ended {
    Run(RunOver),
    Job(JobOver),
}

/// The end of a run on its thread.
pub(in crate::control) struct RunOver {
    run: u64,
    end: TaskRunEnd,
    took: Duration,
    /// The feature whose tasks are off from now on.
    disabled: Option<FeatureId>,
}

impl Tasks {
    /// The tasks of this start. Their first effects are performed by [`Self::advance`].
    pub(in crate::control) fn new(core: &Core) -> Self {
        let mut specs = Vec::new();
        let mut tasks = Vec::new();
        for task in core.registry.tasks().iter().filter(|_| core.stays) {
            match TaskSpec::new(&task.feature.to_string(), &task.declaration) {
                Ok(spec) => {
                    specs.push(spec);
                    tasks.push(task.clone());
                }
                // The plan refuses what cannot be read.
                Err(why) => {
                    warn!(feature = %task.feature, task = task.name, why, "a schedule cannot be read")
                }
            }
        }
        let supervisor = Supervisor::start(
            wall_ms(&core.store.clock),
            specs,
            &core.state.tasks,
            core.state.task_runs,
        );
        let files = ChangedFiles::watch(&tasks, core.callbacks.runtime());
        Self {
            tasks,
            supervisor,
            runs: JoinSet::new(),
            running: BTreeMap::new(),
            files,
            ending: 0,
            jobs: Jobs::new(core),
            ended_jobs: BTreeMap::new(),
            is_closed: false,
        }
    }

    /// Performs what is to be done now, without waiting.
    pub(in crate::control) fn advance(&mut self, core: &mut Core) {
        while let Some(TaskRequest {
            feature,
            task,
            time,
        }) = core.pending.next_task_request()
        {
            let time = match time {
                RunTime::Now => RequestTime::Now,
                RunTime::At(Some(time)) => {
                    RequestTime::At(millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
                }
                RunTime::At(None) => RequestTime::Clear,
            };
            self.handle(
                core,
                SupervisorInput::Requested {
                    feature: feature.to_string(),
                    task,
                    time,
                },
            );
        }
        while let Some(event) = core.pending.next_service_event() {
            let runs = self.tasks.iter().filter(|task| task.runs_by(&event));
            let runs: Vec<_> = runs
                .map(|task| (task.feature.to_string(), task.name.clone()))
                .collect();
            for (feature, task) in runs {
                let trigger = TriggerKind::ServiceEvent;
                self.handle(
                    core,
                    SupervisorInput::Triggered {
                        feature,
                        task,
                        trigger,
                    },
                );
            }
        }
        self.jobs.advance(core, &mut self.runs);
        while let Some(effect) = self.supervisor.poll() {
            match effect {
                SupervisorEffect::Commit { record, awaited } => self.commit(core, record, awaited),
                SupervisorEffect::Run(run) => self.run(core, run),
                SupervisorEffect::Cancel { run } => {
                    self.running.get(&run).inspect(|cancel| cancel.cancel());
                }
                SupervisorEffect::Alert { feature, text } => {
                    core.outbox
                        .show(Event::warning(format!("{feature}: {text}")));
                }
            }
        }
    }

    /// The tasks of this start, for people.
    pub(in crate::control) fn views(&self, core: &Core) -> Vec<BackgroundTaskStatus> {
        let view = |outlook: TaskOutlook<'_>| {
            let TaskOutlook {
                feature,
                task,
                off,
                next_due_ms,
                open,
            } = outlook;
            let key = (feature.to_owned(), task.to_owned());
            let known = core.state.tasks.get(&key).cloned().unwrap_or_default();
            BackgroundTaskStatus {
                off: off.map(str::to_owned),
                next_due_ms,
                run: open.map(|open| OpenTaskRun::of(open).status()),
                ..known.status(&key)
            }
        };
        self.supervisor.outlook().map(view).collect()
    }

    /// Has a run end, if it is open.
    pub(in crate::control) fn stop(&mut self, core: &Core, run: u64) -> bool {
        let is_open = self
            .supervisor
            .outlook()
            .any(|task| task.open.is_some_and(|open| open.run == run));
        if is_open {
            self.handle(core, SupervisorInput::Stopped { run });
        }
        is_open
    }

    /// Ends all runs and jobs; none begins from now on. Returns whether that is done, and in the log.
    pub(in crate::control) fn close(&mut self, core: &mut Core) -> bool {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.files.close();
            self.handle(core, SupervisorInput::Close);
            self.advance(core);
        }
        self.jobs.close() && self.supervisor.is_done() && self.ending == 0
    }

    /// When [`Self::woke`] is to be called at the latest; none while nothing becomes due by itself.
    pub(in crate::control) fn look_at(&self, clock: &Clock) -> Option<Instant> {
        let now = wall_ms(clock);
        let look = self.supervisor.next_look(now)?;
        Instant::now().checked_add(Duration::from_millis(look.saturating_sub(now)))
    }

    /// Something may be due.
    pub(in crate::control) fn woke(&mut self, core: &Core) {
        self.handle(core, SupervisorInput::Woke);
    }

    /// The next event; pending while no run is open and no file changes. Cancel-safe.
    pub(in crate::control) async fn next(&mut self) -> TaskEvent {
        tokio::select! {
            biased;
            Some(ended) = self.runs.join_next() => TaskEvent::Ended(ended),
            Some(report) = self.files.next() => TaskEvent::Files(report),
            else => std::future::pending().await,
        }
    }

    /// Takes an event of [`Self::next`].
    pub(in crate::control) fn take(
        &mut self,
        core: &mut Core,
        event: TaskEvent,
    ) -> Result<(), Fatal> {
        match event {
            TaskEvent::Ended(ended) => self.ended(core, ended?),
            TaskEvent::Files(FileReport::Unwatched(text)) => self.unwatched(core, text),
            TaskEvent::Files(FileReport::Changed(changes)) => self.changed(core, &changes),
        }
        Ok(())
    }

    /// Tells who is attached, and leaves a note of each feature that waits for changes: nobody may be attached for weeks.
    fn unwatched(&self, core: &mut Core, text: String) {
        let features: BTreeSet<_> = self
            .tasks
            .iter()
            .filter(|task| task.files.is_some())
            .map(|task| &task.feature)
            .collect();
        features
            .into_iter()
            .for_each(|feature| core.callbacks.note(feature.clone(), text.clone()));
        core.outbox.show(Event::warning(text));
    }

    fn changed(&mut self, core: &Core, changes: &FileChanges) {
        (core.store.probe)("files:changed");
        let reads = |task: &RegisteredTask| {
            task.files
                .as_ref()
                .is_some_and(|project| project.door().enter().is_ok())
        };
        let named = |task: &RegisteredTask| (task.feature.to_string(), task.name.clone());
        let each = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| reads(task));
        for (at, (feature, task)) in each.map(|(at, task)| (at, named(task))).collect::<Vec<_>>() {
            self.files.add(at, changes.clone());
            self.handle(
                core,
                SupervisorInput::Triggered {
                    feature,
                    task,
                    trigger: TriggerKind::FileChange,
                },
            );
        }
    }

    fn ended(&mut self, core: &mut Core, ended: Ended) {
        let RunOver {
            run,
            end,
            took,
            disabled,
        } = match ended {
            Ended::Run(run) => run,
            Ended::Job(job) => return self.jobs.over(core, job),
        };
        self.running.remove(&run);
        self.files.end(run, end == TaskRunEnd::Completed);
        (core.store.probe)("task:ended");
        self.handle(
            core,
            SupervisorInput::Ended {
                run,
                end,
                ms: millis(took),
            },
        );
        if let Some(feature) = disabled {
            self.handle(
                core,
                SupervisorInput::Disabled {
                    feature: feature.to_string(),
                },
            );
        }
    }

    /// This commit is durable, or will not be appended again.
    pub(in crate::control) fn committed(
        &mut self,
        core: &Core,
        commit: TaskCommit,
        is_durable: bool,
    ) {
        match (commit, is_durable) {
            (TaskCommit::JobEnd(job), _) => {
                self.jobs.committed(core, job);
                core.state
                    .jobs
                    .get(&job)
                    .filter(|_| is_durable)
                    .inspect(|job| self.job_ended(core, job));
            }
            (TaskCommit::End, _) => self.ending = self.ending.saturating_sub(1),
            (TaskCommit::Start(run), true) => self.handle(core, SupervisorInput::Committed { run }),
            (TaskCommit::Start(run), false) => self.handle(core, SupervisorInput::Refused { run }),
        }
    }

    /// The end of a job is durable: the tasks of its feature that wait for that are due.
    fn job_ended(&mut self, core: &Core, job: &ChildProcess) {
        let waits = |task: &RegisteredTask| {
            task.declaration.triggers.contains(&TaskTrigger::ChildEnded)
                && task.feature.to_string() == job.feature
        };
        let mut due = Vec::new();
        for (at, task) in self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| waits(task))
        {
            let ended = self.ended_jobs.entry(at).or_default();
            ended.push_back(job.job);
            ended.drain(..ended.len().saturating_sub(MAX_ENDED_JOBS));
            due.push(task.name.clone());
        }
        for task in due {
            let feature = job.feature.clone();
            let trigger = TriggerKind::ChildEnded;
            self.handle(
                core,
                SupervisorInput::Triggered {
                    feature,
                    task,
                    trigger,
                },
            );
        }
    }

    fn handle(&mut self, core: &Core, input: SupervisorInput) {
        self.supervisor.handle(wall_ms(&core.store.clock), input);
    }

    /// The end of an effectful run is appended again until the disk takes it. Of any other run only the end is journaled,
    /// with the next commit: if that is refused, the run is as good as never begun, and is due again.
    fn commit(&mut self, core: &mut Core, mut record: BackgroundTask, awaited: bool) {
        if record.state != TaskRunState::Running {
            let own = |job: &&ChildProcess| job.starter == JobStarter::Run(record.run);
            record.jobs = core
                .state
                .open_jobs()
                .filter(own)
                .map(|job| job.job)
                .collect();
        }
        if awaited {
            core.append_actor_commit(
                ActorCommit::Task(TaskCommit::Start(record.run)),
                vec![record.into()],
            );
        } else if record.effect == ToolEffect::Effectful {
            self.ending += 1;
            core.append_actor_commit(ActorCommit::Task(TaskCommit::End), vec![record.into()]);
        } else if record.state != TaskRunState::Running {
            core.pending.add(record);
        }
    }

    fn run(&mut self, core: &Core, run: TaskRun) {
        let TaskRun {
            task: at,
            record,
            deadline_ms,
        } = run;
        let number = record.run;
        let jobs = self.ended_jobs.remove(&at).unwrap_or_default();
        let Some(task) = self.tasks.get(at) else {
            return;
        };
        let feature = task.feature.clone();
        if core.callbacks.is_disabled(&feature) {
            let why = TaskRunEnd::Failed(
                "not run: the feature is disabled because its code did not return".to_owned(),
            );
            self.handle(
                core,
                SupervisorInput::Ended {
                    run: number,
                    end: why,
                    ms: 0,
                },
            );
            return self.handle(
                core,
                SupervisorInput::Disabled {
                    feature: feature.to_string(),
                },
            );
        }
        // The task gets a token of its own, which fires at the deadline, too.
        let cancel = CancellationToken::new();
        let deadline = Duration::from_millis(deadline_ms);
        let token = cancel.child_token();
        let due = UNIX_EPOCH
            .checked_add(Duration::from_millis(record.due_ms))
            .unwrap_or(UNIX_EPOCH);
        let cx = BackgroundTaskContext::new(
            number,
            (record.trigger, record.attempt),
            due,
            deadline,
            token.clone(),
        );
        let cx = cx
            .with_pod(pod_now(core))
            .with_jobs(jobs.into_iter().collect());
        let cx = cx.with_changes(self.files.begin(at, number));
        (core.store.probe)("task:running");
        let work = task.run(&core.callbacks, cx);
        let began = Instant::now();
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        let cancelled = cancel.clone();
        self.running.insert(number, cancel);
        self.runs.spawn(async move {
            let done = work.await;
            let revoked = matches!(done, Err(TaskFailure::Revoked));
            let end = match done {
                Ok(()) => TaskRunEnd::Completed,
                Err(_) if cancelled.is_cancelled() => TaskRunEnd::Cancelled,
                Err(failure) => {
                    let why =
                        sanitize_lines(&failure.to_string(), MAX_TASK_REASON, registry.redactor());
                    if token.is_cancelled() && !revoked {
                        TaskRunEnd::TimedOut(why)
                    } else {
                        TaskRunEnd::Failed(why)
                    }
                }
            };
            let disabled = (revoked || callbacks.is_disabled(&feature)).then_some(feature);
            Ended::Run(RunOver {
                run: number,
                end,
                took: began.elapsed(),
                disabled,
            })
        });
    }
}

fn pod_now(core: &Core) -> PodAtRun {
    let SessionState {
        turns,
        turn_open,
        held,
        queued,
        approvals,
        ..
    } = &core.state;
    let shown = |text: &str| sanitize_lines(text, MAX_TASK_REASON, core.registry.redactor());
    let activity = match (approvals.open.values().next(), held) {
        (Some(open), _) => PodActivity::Waiting {
            approval: open.approval,
            question: shown(&open.question),
        },
        (
            None,
            Some(Hold {
                cause,
                reason,
                budget: _,
            }),
        ) => PodActivity::Held {
            cause: *cause,
            reason: shown(reason),
        },
        (None, None) if *turn_open || !queued.is_empty() => PodActivity::Working,
        (None, None) => PodActivity::Idle,
    };
    PodAtRun::new(*turns, activity, core.drivers.until())
}

fn wall_ms(clock: &Clock) -> u64 {
    clock() / 1000
}
