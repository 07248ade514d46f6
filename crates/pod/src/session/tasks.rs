//! What the journal knows of background tasks: the open run of each, its newest end, and when its schedule was last due.
//! Does not decide what runs: `control::tasks` does.

use super::fold::SessionState;
use crate::record::{
    BackgroundTask, MAX_TASK_REASON, MAX_TASK_RESTARTS, TaskRunState, TriggerKind,
};
use llm_worker::ToolEffect;
use protocol::status::{BackgroundTaskStatus, EndedRunStatus, OpenRunStatus};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most tasks that are remembered; of those without an open run the one that ran longest ago is forgotten first. Far more
/// than the tasks of a start, because tasks of features that left are among them.
pub const MAX_TASKS: usize = 1024;

/// Most failures of a task that are remembered, newest last: those that a restart rule allows, and the one that exceeds it.
pub const MAX_TASK_FAILURES: usize = MAX_TASK_RESTARTS as usize + 1;

/// A background task, as its records tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskState {
    /// The number of its newest run.
    pub run: u64,
    /// When its schedule was last due, in milliseconds since 1970: of the newest run with a scheduled trigger, not the
    /// highest, so that a clock that was set back heals.
    pub last_due_ms: Option<u64>,
    pub open: Option<OpenTaskRun>,
    pub last: Option<TaskEnd>,
    /// When it failed, in milliseconds since 1970, newest last.
    pub failures: VecDeque<u64>,
}

/// A run that began and has no end yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenTaskRun {
    pub run: u64,
    pub attempt: u32,
    pub trigger: TriggerKind,
    pub effect: ToolEffect,
    pub due_ms: u64,
    pub began_ms: u64,
}

/// The newest end of a task's run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEnd {
    pub run: u64,
    pub attempt: u32,
    pub trigger: TriggerKind,
    /// Not `running`.
    pub state: TaskRunState,
    pub reason: Option<String>,
    pub at_ms: u64,
}

impl OpenTaskRun {
    /// A run, by its `running` record.
    #[must_use]
    pub fn of(record: &BackgroundTask) -> Self {
        let BackgroundTask {
            run,
            attempt,
            trigger,
            effect,
            due_ms,
            at_ms,
            ..
        } = *record;
        Self {
            run,
            attempt,
            trigger,
            effect,
            due_ms,
            began_ms: at_ms,
        }
    }

    /// As a status shows it.
    #[must_use]
    pub fn status(&self) -> OpenRunStatus {
        OpenRunStatus {
            run: self.run,
            trigger: self.trigger.word().to_owned(),
            attempt: self.attempt,
            due_ms: self.due_ms,
            since_ms: self.began_ms,
        }
    }
}

impl TaskState {
    /// The task of this feature and name, as a status shows it. Only a live pod knows when its next run is due.
    #[must_use]
    pub fn status(&self, (feature, task): &(String, String)) -> BackgroundTaskStatus {
        let last = self.last.as_ref().map(|end| EndedRunStatus {
            run: end.run,
            trigger: end.trigger.word().to_owned(),
            attempt: end.attempt,
            state: end.state.word().to_owned(),
            reason: end.reason.clone(),
            at_ms: end.at_ms,
        });
        BackgroundTaskStatus {
            feature: feature.clone(),
            task: task.clone(),
            off: None,
            next_due_ms: None,
            run: self.open.as_ref().map(OpenTaskRun::status),
            last,
            failures_ms: self.failures.iter().copied().collect(),
        }
    }
}

/// The end of a run that was open when its host ended. Recovery writes it and runs nothing.
pub(super) fn orphaned(
    (feature, task): &(String, String),
    open: &OpenTaskRun,
    now_us: u64,
) -> BackgroundTask {
    let known = match open.effect {
        ToolEffect::ReadOnly | ToolEffect::Idempotent => "running it again is safe",
        ToolEffect::Effectful => {
            "its effects may have happened, and it is not run again for this cause"
        }
    };
    let OpenTaskRun {
        run,
        attempt,
        trigger,
        effect,
        due_ms,
        began_ms: _,
    } = *open;
    BackgroundTask {
        run,
        feature: feature.clone(),
        task: task.clone(),
        trigger,
        attempt,
        due_ms,
        at_ms: now_us / 1000,
        effect,
        state: TaskRunState::Orphaned,
        reason: Some(format!("the pod's process ended during the run; {known}")),
        ms: None,
        jobs: Vec::new(),
    }
}

impl SessionState {
    /// The open runs, by feature and task.
    pub fn open_tasks(&self) -> impl Iterator<Item = (&(String, String), &OpenTaskRun)> {
        self.tasks
            .iter()
            .filter_map(|(key, task)| Some((key, task.open.as_ref()?)))
    }

    /// Folds a record of a run. An error changes nothing.
    pub(super) fn task_run(&mut self, record: &BackgroundTask) -> Result<(), &'static str> {
        let key = (record.feature.clone(), record.task.clone());
        let known = self.tasks.get(&key);
        // The end of an open run, and the beginning of one that ends, may be among lost records.
        let fits =
            |open: &&OpenTaskRun| open.run == record.run && record.state != TaskRunState::Running;
        let open = known
            .and_then(|task| task.open.as_ref())
            .filter(|open| self.lost.is_none() || fits(open));
        match (record.state, open) {
            (TaskRunState::Running, Some(_)) => return Err("another run of that task is open"),
            (TaskRunState::Running, None) if record.run <= self.task_runs => {
                return Err("its run number was given before");
            }
            (TaskRunState::Running, None) => {}
            (_, Some(open)) if open.run != record.run => {
                return Err("another run of that task is open");
            }
            (_, Some(_)) => {}
            (_, None) if record.run <= known.map_or(0, |task| task.run) => {
                return Err("that run has ended, or a later one of that task has");
            }
            (_, None) if self.lost.is_some() => {}
            (TaskRunState::Orphaned, None) => return Err("that run never began"),
            (TaskRunState::Cancelled, None) if record.ms.is_none() => {}
            (_, None) if record.effect == ToolEffect::Effectful => {
                return Err("that effectful run never began");
            }
            (_, None) => {}
        }
        if known.is_none() && self.tasks.len() >= MAX_TASKS && !self.forget_a_task() {
            return Err("too many tasks have an open run");
        }
        self.task_runs = self.task_runs.max(record.run);
        self.tasks.entry(key).or_default().follow(record);
        Ok(())
    }

    /// Forgets the task that ran longest ago. Returns whether there is one without an open run.
    fn forget_a_task(&mut self) -> bool {
        let closed = self.tasks.iter().filter(|(_, task)| task.open.is_none());
        let oldest = closed
            .min_by_key(|(_, task)| task.run)
            .map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.tasks.remove(&key).is_some())
    }
}

impl TaskState {
    fn follow(&mut self, record: &BackgroundTask) {
        let BackgroundTask {
            run,
            trigger,
            attempt,
            due_ms,
            at_ms,
            state,
            ref reason,
            ..
        } = *record;
        let began = self.open.take().is_some_and(|open| open.run == run);
        if trigger.is_scheduled() && !began {
            self.last_due_ms = Some(due_ms);
        }
        self.run = run;
        if state == TaskRunState::Running {
            self.open = Some(OpenTaskRun::of(record));
            return;
        }
        if state.is_failure() {
            self.failures.push_back(at_ms);
            self.failures
                .drain(..self.failures.len().saturating_sub(MAX_TASK_FAILURES));
        }
        let clip = |text: &String| {
            text.get(..text.floor_char_boundary(MAX_TASK_REASON))
                .map(str::to_owned)
        };
        let reason = reason.as_ref().and_then(clip);
        self.last = Some(TaskEnd {
            run,
            attempt,
            trigger,
            state,
            reason,
            at_ms,
        });
    }
}

/// Tasks as a list: JSON has no keys of two parts.
pub(super) mod listed {
    use super::TaskState;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    type Tasks = BTreeMap<(String, String), TaskState>;

    pub(crate) fn serialize<S: Serializer>(tasks: &Tasks, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(tasks)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Tasks, D::Error> {
        Vec::<((String, String), TaskState)>::deserialize(from).map(|all| all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
