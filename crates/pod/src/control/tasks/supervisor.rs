//! Which runs of background tasks begin and end, and when, as a state machine without I/O, threads and clocks.
//!
//! The driver calls [`Supervisor::handle`] with each event and the time, then [`Supervisor::poll`] until it returns
//! `None`, performs each effect in this order, and calls again at [`Supervisor::next_look`] at the latest.
//!
//! ```text
//!            due            a place among MAX_OPEN            committed
//!   idle ─────────> waiting ───────────┬─ effectful ═> committing ─────────> running
//!    ^                ^                └─ others ──────────────────────────>│
//!    │                └── refused, after a pause ─────────┘                 │ ended: the terminal record
//!    └─────────────────────────────────────────────────────────────────────┘ a restart is one more due time
//! ```
//!
//! Records:
//!
//! - `running` of an effectful task is durable before its body starts (`═`). That of another task may be left out: if the
//!   host is killed during the run, the log never had it.
//! - Each run has one terminal record, made by the first end that is reported. Ends that are reported
//!   again, late or for a run that never started change nothing. A run whose `running` record was refused has no record.
//! - A waiting task has no record. A schedule whose time passed while no host ran, or while it waited, is due once: its
//!   record has the newest of the times that passed.
//!
//! Times are milliseconds since 1970 by the wall clock, which may jump. Set forward, it makes what was skipped due, once.
//! Set back, schedules continue from the new time, but cron times at most [`MAX_STEP_BACK_MS`] back are not repeated; after
//! more than that, a task with a requested time is due at once, because the time may come from the wrong clock.

mod restarts;
mod slot;
mod spec;

pub use spec::TaskSpec;

use crate::record::{BackgroundTask, MAX_TASK_REASON, TaskRunState, TriggerKind};
#[cfg(doc)]
use crate::schedule::MAX_STEP_BACK_MS;
use crate::session::tasks::TaskState;
use llm_worker::ToolEffect;
use slot::{OpenRun, Progress, Slot};
use std::collections::{BTreeMap, VecDeque};

/// Most runs at once: each holds a thread.
pub const MAX_OPEN: usize = 8;

/// The longest time without a look at the clock while something is due later: the machine may sleep, and the clock may be
/// set.
pub const MAX_SLEEP_MS: u64 = 60 * 60 * 1000;

/// Runs of one task by events are at least this far apart.
const EVENT_PAUSE_MS: u64 = 1000;

/// The pause after a commit was refused: a full disk rarely has room again within seconds.
const REFUSED_PAUSE_MS: u64 = 60 * 1000;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SupervisorInput {
    /// A feature asks for a run of its task; of no effect if the task is unknown or takes no requests.
    Requested {
        feature: String,
        task: String,
        time: RequestTime,
    },
    /// An event that starts this task, beside the clock and requests; of no effect if the task is unknown.
    Triggered {
        feature: String,
        task: String,
        trigger: TriggerKind,
    },
    /// The `running` record of this run is durable.
    Committed { run: u64 },
    /// The `running` record of this run could not be committed.
    Refused { run: u64 },
    /// The run is over; `ms` is what it took, by the monotonic clock.
    Ended { run: u64, end: TaskRunEnd, ms: u64 },
    /// The grants of the feature were revoked, or its code did not return: its tasks are off until the next start.
    Disabled { feature: String },
    /// A person ends this run. The task goes on as after any cancelled run.
    Stopped { run: u64 },
    /// The pod ends: all runs are cancelled, none begins.
    Close,
    /// The time of [`Supervisor::next_look`] has come.
    Woke,
}

/// The time of a requested run. A request for now and one for a time do not replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTime {
    Now,
    /// Replaces the earlier time.
    At(u64),
    /// Withdraws the earlier time.
    Clear,
}

/// How a run ended, as the executor reports it. Reasons are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRunEnd {
    Completed,
    Failed(String),
    TimedOut(String),
    Cancelled,
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SupervisorEffect {
    /// Commit this record, after those of earlier effects. `awaited`: at once, and answer with
    /// [`SupervisorInput::Committed`] or [`SupervisorInput::Refused`].
    Commit {
        record: BackgroundTask,
        awaited: bool,
    },
    /// Run the body of the task at this position of the list given to [`Supervisor::start`]. Answered by
    /// [`SupervisorInput::Ended`], at the latest when deadline and grace are over.
    Run(TaskRun),
    /// End this run. Answered by [`SupervisorInput::Ended`].
    Cancel { run: u64 },
    /// Tell people: a task of this feature is off until the next start.
    Alert { feature: String, text: String },
}

/// A run that begins: its `running` record, and what the executor needs besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRun {
    /// The position of the task.
    pub task: usize,
    pub record: BackgroundTask,
    pub deadline_ms: u64,
}

/// What the supervisor knows of a task, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOutlook<'a> {
    pub feature: &'a str,
    pub task: &'a str,
    /// Why no run begins until the next start.
    pub off: Option<&'a str>,
    /// When the next run is due, by what is known now; in the past for one that waits.
    pub next_due_ms: Option<u64>,
    /// The `running` record of the open run.
    pub open: Option<&'a BackgroundTask>,
}

/// The background tasks of one start.
#[derive(Debug)]
pub struct Supervisor {
    slots: Vec<Slot>,
    effects: VecDeque<SupervisorEffect>,
    /// The time of the newest event.
    now: u64,
    next_run: u64,
    /// Counts noticed due times: tasks begin in this order.
    noticed: u64,
    closing: bool,
}

impl Supervisor {
    /// The tasks of this start, with what the journal knows of them: `known` by feature and task, and the highest run
    /// number. Recovery has closed open runs.
    #[must_use]
    pub fn start(
        now: u64,
        specs: Vec<TaskSpec>,
        known: &BTreeMap<(String, String), TaskState>,
        runs: u64,
    ) -> Self {
        let mut effects = VecDeque::new();
        let slots = specs.into_iter().map(|spec| {
            let state = known.get(&(spec.feature.clone(), spec.task.clone()));
            let (slot, alert) = Slot::new(spec, state, now);
            effects.extend(alert);
            slot
        });
        let slots = slots.collect();
        let mut new = Self {
            slots,
            effects,
            now,
            next_run: runs.saturating_add(1),
            noticed: 0,
            closing: false,
        };
        new.notice();
        new.begin_waiting();
        new
    }

    /// Takes an event at this time.
    pub fn handle(&mut self, now: u64, input: SupervisorInput) {
        let before = std::mem::replace(&mut self.now, now);
        if now < before {
            self.slots
                .iter_mut()
                .for_each(|slot| slot.set_back(before, now));
        }
        match input {
            SupervisorInput::Requested {
                feature,
                task,
                time,
            } => {
                let named =
                    |slot: &&mut Slot| slot.spec.feature == feature && slot.spec.task == task;
                if let Some(slot) = self.slots.iter_mut().find(named) {
                    slot.request(time, now);
                }
            }
            SupervisorInput::Triggered {
                feature,
                task,
                trigger,
            } => {
                let named =
                    |slot: &&mut Slot| slot.spec.feature == feature && slot.spec.task == task;
                if let Some(slot) = self.slots.iter_mut().find(named) {
                    slot.trigger(trigger, now);
                }
            }
            SupervisorInput::Committed { run } => self.committed(run),
            SupervisorInput::Refused { run } => self.refused(run),
            SupervisorInput::Ended { run, end, ms } => self.ended(run, end, ms),
            SupervisorInput::Disabled { feature } => {
                for slot in self
                    .slots
                    .iter_mut()
                    .filter(|slot| slot.spec.feature == feature)
                {
                    self.effects.extend(slot.stop("the feature was disabled"));
                }
            }
            SupervisorInput::Stopped { run } => {
                let effect = self
                    .slot_of(run)
                    .and_then(|(_, slot)| slot.stop_run("a person stopped it"));
                self.effects.extend(effect);
            }
            SupervisorInput::Close => {
                self.closing = true;
                for slot in &mut self.slots {
                    self.effects.extend(slot.stop("the pod ended"));
                }
            }
            SupervisorInput::Woke => {}
        }
        self.notice();
        self.begin_waiting();
    }

    /// The next effect; `None` until [`Self::handle`] is called again.
    pub fn poll(&mut self) -> Option<SupervisorEffect> {
        self.effects.pop_front()
    }

    /// When to call with [`SupervisorInput::Woke`] at the latest: at the next due time, and within [`MAX_SLEEP_MS`]. `None`
    /// if nothing will be due by itself.
    #[must_use]
    pub fn next_look(&self, now: u64) -> Option<u64> {
        let due = self.slots.iter().filter_map(Slot::next_due).min()?;
        Some(due.min(now.saturating_add(MAX_SLEEP_MS)))
    }

    /// Whether [`SupervisorInput::Close`] was handled and no run is open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.closing && self.open() == 0
    }

    /// All tasks of this start, in the order in which they were given.
    pub fn outlook(&self) -> impl Iterator<Item = TaskOutlook<'_>> {
        self.slots.iter().map(Slot::outlook)
    }

    fn open(&self) -> usize {
        self.slots.iter().filter(|slot| slot.open.is_some()).count()
    }

    /// Finds what is due. Tasks that are due together wait in the order of their due times.
    fn notice(&mut self) {
        let now = self.now;
        let mut due: Vec<&mut Slot> = self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.notice(now).then_some(slot))
            .collect();
        due.sort_by_key(|slot| slot.waiting_since());
        for slot in due {
            self.noticed += 1;
            slot.order = Some(self.noticed);
        }
    }

    /// Begins runs of waiting tasks while there are places.
    fn begin_waiting(&mut self) {
        while self.open() < MAX_OPEN {
            let ready = self
                .slots
                .iter_mut()
                .enumerate()
                .filter(|(_, slot)| slot.is_ready());
            let Some((task, slot)) = ready.min_by_key(|(_, slot)| slot.order) else {
                return;
            };
            let Some(record) = slot.begin(self.next_run, self.now) else {
                return;
            };
            self.next_run = self.next_run.saturating_add(1);
            let awaited = record.effect == ToolEffect::Effectful;
            let run = TaskRun {
                task,
                record: record.clone(),
                deadline_ms: slot.spec.deadline_ms,
            };
            self.effects
                .push_back(SupervisorEffect::Commit { record, awaited });
            if !awaited {
                self.effects.push_back(SupervisorEffect::Run(run));
            }
        }
    }

    fn slot_of(&mut self, run: u64) -> Option<(usize, &mut Slot)> {
        let of_run = |slot: &Slot| {
            slot.open
                .as_ref()
                .is_some_and(|open| open.record.run == run)
        };
        self.slots
            .iter_mut()
            .enumerate()
            .find(|(_, slot)| of_run(slot))
    }

    fn committed(&mut self, run: u64) {
        let now = self.now;
        let Some((task, slot)) = self.slot_of(run) else {
            return;
        };
        let deadline_ms = slot.spec.deadline_ms;
        let Some(open) = slot
            .open
            .as_mut()
            .filter(|open| open.progress == Progress::Committing)
        else {
            return;
        };
        let effect = if let Some(reason) = open.stop {
            let record = terminal(
                open,
                now,
                TaskRunState::Cancelled,
                Some(reason.to_owned()),
                None,
            );
            slot.open = None;
            SupervisorEffect::Commit {
                record,
                awaited: false,
            }
        } else {
            open.progress = Progress::Running;
            SupervisorEffect::Run(TaskRun {
                task,
                record: open.record.clone(),
                deadline_ms,
            })
        };
        self.effects.push_back(effect);
    }

    fn refused(&mut self, run: u64) {
        let now = self.now;
        let Some((_, slot)) = self.slot_of(run) else {
            return;
        };
        if let Some(open) = slot
            .open
            .take_if(|open| open.progress == Progress::Committing)
        {
            slot.put_back(&open, now);
        }
    }

    fn ended(&mut self, run: u64, end: TaskRunEnd, ms: u64) {
        let now = self.now;
        let Some((_, slot)) = self.slot_of(run) else {
            return;
        };
        let Some(open) = slot.open.take_if(|open| open.progress == Progress::Running) else {
            return;
        };
        let (state, reason) = match end {
            TaskRunEnd::Completed => (TaskRunState::Completed, None),
            TaskRunEnd::Failed(reason) => (TaskRunState::Failed, Some(reason)),
            TaskRunEnd::TimedOut(reason) => (TaskRunState::TimedOut, Some(reason)),
            TaskRunEnd::Cancelled => (TaskRunState::Cancelled, open.stop.map(str::to_owned)),
        };
        let alert = slot.after_end(state, open.record.attempt, now);
        let record = terminal(&open, now, state, reason, Some(ms));
        self.effects.push_back(SupervisorEffect::Commit {
            record,
            awaited: false,
        });
        self.effects.extend(alert);
    }
}

/// The last record of a run.
fn terminal(
    open: &OpenRun,
    now: u64,
    state: TaskRunState,
    reason: Option<String>,
    ms: Option<u64>,
) -> BackgroundTask {
    let reason = reason.map(|mut text| {
        text.truncate(text.floor_char_boundary(MAX_TASK_REASON));
        text
    });
    BackgroundTask {
        at_ms: now,
        state,
        reason,
        ms,
        ..open.record.clone()
    }
}

#[cfg(test)]
mod tests;
