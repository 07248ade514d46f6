//! One task: when it is due, what waits, and its open run. Does not depend on other tasks.

use super::restarts::{self, Failures};
use super::spec::{Schedule, TaskSpec};
use super::{EVENT_PAUSE_MS, REFUSED_PAUSE_MS, RequestTime, SupervisorEffect, TaskOutlook};
use crate::record::{BackgroundTask, TaskRunState, TriggerKind};
use crate::schedule::MAX_STEP_BACK_MS;
use crate::session::tasks::TaskState;
use llm_worker::ToolEffect;

/// A task and its state.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) spec: TaskSpec,
    /// When each schedule is due next; as many as the task has schedules.
    scheduled: Vec<Option<u64>>,
    /// When a schedule was last due.
    last_due: Option<u64>,
    requested: Option<u64>,
    /// An event that came, and when its run is due.
    event: Option<(TriggerKind, u64)>,
    /// When a run by an event may be due again.
    events_from: u64,
    restart: Option<PendingRestart>,
    /// What is due, merged; it waits for a place or for the end of the open run.
    waiting: Option<Cause>,
    /// The place among the tasks that wait; none until [`Supervisor`](super::Supervisor) gives one.
    pub(super) order: Option<u64>,
    /// No run begins before this time: a commit was refused.
    blocked: Option<u64>,
    pub(super) open: Option<OpenRun>,
    failures: Failures,
    /// Why no run begins any more.
    off: Option<String>,
}

/// Why a run is due.
#[derive(Clone, Copy, Debug)]
struct Cause {
    trigger: TriggerKind,
    due_ms: u64,
    attempt: u32,
}

#[derive(Clone, Copy, Debug)]
struct PendingRestart {
    at: u64,
    pause_ms: u64,
    attempt: u32,
}

/// A run without a terminal record.
#[derive(Debug)]
pub(super) struct OpenRun {
    /// Its `running` record.
    pub(super) record: BackgroundTask,
    pub(super) progress: Progress,
    /// Why it was asked to stop.
    pub(super) stop: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The `running` record is not durable yet, and the body must not begin before.
    Committing,
    Running,
}

impl Slot {
    /// A task at the start of the host, and what people are told of it.
    pub(super) fn new(
        spec: TaskSpec,
        state: Option<&TaskState>,
        now: u64,
    ) -> (Self, Option<SupervisorEffect>) {
        let mut slot = Self {
            scheduled: Vec::new(),
            last_due: state.and_then(|state| state.last_due_ms),
            requested: None,
            event: None,
            events_from: 0,
            restart: None,
            waiting: None,
            order: None,
            blocked: None,
            open: None,
            failures: Failures::default(),
            off: None,
            spec,
        };
        let rule = slot.spec.restart;
        match state.map(|state| Failures::recover(state, rule, now)) {
            Some(Err(count)) => {
                let alert = slot.exceed(count);
                return (slot, Some(alert));
            }
            Some(Ok(failures)) => slot.failures = failures,
            None => {}
        }
        slot.scheduled = slot
            .spec
            .schedules
            .iter()
            .map(|schedule| schedule.first(slot.last_due, now))
            .collect();
        if slot.spec.at_start {
            slot.add(Cause {
                trigger: TriggerKind::Start,
                due_ms: now,
                attempt: 1,
            });
        }
        if let Some(last) = state.and_then(|state| state.last.as_ref())
            && restarts::is_repeated(last.state, slot.spec.effect, rule)
            && let Some(pause_ms) = slot.failures.pause(last.state, rule)
        {
            slot.restart_after(last.at_ms.min(now), pause_ms, last.attempt);
        }
        (slot, None)
    }

    /// A request of the feature; none if the task takes no requests.
    pub(super) fn request(&mut self, time: RequestTime, now: u64) {
        if !self.spec.on_request || self.off.is_some() {
            return;
        }
        match time {
            RequestTime::Now => self.add(Cause {
                trigger: TriggerKind::Request,
                due_ms: now,
                attempt: 1,
            }),
            RequestTime::At(time) => self.requested = Some(time),
            RequestTime::Clear => self.requested = None,
        }
    }

    /// An event came. Those that come before its run is due are one run.
    pub(super) fn trigger(&mut self, trigger: TriggerKind, now: u64) {
        if self.off.is_none() {
            self.event
                .get_or_insert((trigger, now.max(self.events_from)));
        }
    }

    /// Moves what is due by now to what waits. Returns whether the task waits and has no place yet.
    pub(super) fn notice(&mut self, now: u64) -> bool {
        if self.off.is_some() {
            return false;
        }
        self.notice_schedules(now);
        if let Some(due_ms) = self.requested.take_if(|time| *time <= now) {
            self.add(Cause {
                trigger: TriggerKind::Request,
                due_ms,
                attempt: 1,
            });
        }
        if let Some((trigger, due_ms)) = self.event.take_if(|(_, due)| *due <= now) {
            self.events_from = now.saturating_add(EVENT_PAUSE_MS);
            self.add(Cause {
                trigger,
                due_ms,
                attempt: 1,
            });
        }
        if let Some(PendingRestart { at, attempt, .. }) =
            self.restart.take_if(|restart| restart.at <= now)
        {
            self.add(Cause {
                trigger: TriggerKind::Restart,
                due_ms: at,
                attempt,
            });
        }
        self.blocked.take_if(|until| *until <= now);
        self.waiting.is_some() && self.order.is_none()
    }

    /// Of all times of all schedules that have passed, the newest counts, and all schedules follow from it.
    fn notice_schedules(&mut self, now: u64) {
        let due = self.spec.schedules.iter().zip(&self.scheduled);
        let passed = due.filter_map(|(schedule, due)| {
            schedule
                .newest((*due)?, now)
                .map(|due| (due, schedule.trigger()))
        });
        let Some((due_ms, trigger)) = passed.max_by_key(|(due, _)| *due) else {
            return;
        };
        self.last_due = Some(due_ms);
        self.scheduled = self
            .spec
            .schedules
            .iter()
            .map(|schedule| schedule.first(self.last_due, now))
            .collect();
        self.add(Cause {
            trigger,
            due_ms,
            attempt: 1,
        });
    }

    /// What waits already is one run with this cause. A schedule is the cause before anything else, because its next time
    /// follows from the record of the run; else the first cause is.
    fn add(&mut self, new: Cause) {
        if self.waiting.is_none() || new.trigger.is_scheduled() {
            self.waiting = Some(new);
        }
    }

    pub(super) fn waiting_since(&self) -> Option<u64> {
        self.waiting.as_ref().map(|cause| cause.due_ms)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.waiting.is_some() && self.open.is_none() && self.blocked.is_none()
    }

    /// Begins the run that waits. Returns its `running` record. It is a pending restart, too.
    pub(super) fn begin(&mut self, run: u64, now: u64) -> Option<BackgroundTask> {
        let Cause {
            trigger,
            due_ms,
            attempt,
        } = self.waiting.take()?;
        (self.order, self.restart) = (None, None);
        let record = BackgroundTask {
            run,
            feature: self.spec.feature.clone(),
            task: self.spec.task.clone(),
            trigger,
            attempt,
            due_ms,
            at_ms: now,
            effect: self.spec.effect,
            state: TaskRunState::Running,
            reason: None,
            ms: None,
            jobs: Vec::new(),
        };
        let awaited = self.spec.effect == ToolEffect::Effectful;
        let progress = if awaited {
            Progress::Committing
        } else {
            Progress::Running
        };
        self.open = Some(OpenRun {
            record: record.clone(),
            progress,
            stop: None,
        });
        Some(record)
    }

    /// The run could not begin: its cause waits again, for a pause. That of a task that is off has no end.
    pub(super) fn put_back(&mut self, open: &OpenRun, now: u64) {
        let BackgroundTask {
            trigger,
            due_ms,
            attempt,
            ..
        } = open.record;
        let newer = self.waiting.replace(Cause {
            trigger,
            due_ms,
            attempt,
        });
        if let Some(newer) = newer {
            self.add(newer);
        }
        self.blocked = Some(now.saturating_add(REFUSED_PAUSE_MS));
    }

    /// Follows the restart rule after a run ended. Returns what people are told.
    pub(super) fn after_end(
        &mut self,
        state: TaskRunState,
        attempt: u32,
        now: u64,
    ) -> Option<SupervisorEffect> {
        if self.off.is_some() {
            return None;
        }
        match self.failures.after(state, self.spec.restart, now) {
            Ok(Some(pause_ms)) => self.restart_after(now, pause_ms, attempt),
            Ok(None) => {}
            Err(count) => return Some(self.exceed(count)),
        }
        None
    }

    fn restart_after(&mut self, ended: u64, pause_ms: u64, attempt: u32) {
        let at = ended.saturating_add(pause_ms);
        let attempt = attempt.saturating_add(1);
        self.restart = Some(PendingRestart {
            at,
            pause_ms,
            attempt,
        });
    }

    /// No run begins any more, and the open one ends. Returns what that needs.
    pub(super) fn stop(&mut self, reason: &'static str) -> Option<SupervisorEffect> {
        self.turn_off(reason.to_owned());
        self.stop_run(reason)
    }

    /// The open run ends. Returns what that needs.
    pub(super) fn stop_run(&mut self, reason: &'static str) -> Option<SupervisorEffect> {
        let open = self.open.as_mut().filter(|open| open.stop.is_none())?;
        open.stop = Some(reason);
        match open.progress {
            Progress::Committing => None,
            Progress::Running => Some(SupervisorEffect::Cancel {
                run: open.record.run,
            }),
        }
    }

    /// The first reason stays.
    fn turn_off(&mut self, reason: String) {
        self.off.get_or_insert(reason);
        (
            self.waiting,
            self.order,
            self.requested,
            self.restart,
            self.blocked,
        ) = (None, None, None, None, None);
        self.event = None;
    }

    /// The clock was set back: nothing that counts from now is due later than it would be after a start.
    pub(super) fn set_back(&mut self, before: u64, now: u64) {
        // The feature may have computed the time from the wrong clock; in the run it can request another one.
        if let Some(time) = self
            .requested
            .as_mut()
            .filter(|_| before - now > MAX_STEP_BACK_MS)
        {
            *time = (*time).min(now);
        }
        for (schedule, due) in self.spec.schedules.iter().zip(&mut self.scheduled) {
            *due = schedule.bounded(*due, self.last_due, now);
        }
        if let Some(restart) = &mut self.restart {
            restart.at = restart.at.min(now.saturating_add(restart.pause_ms));
        }
        self.events_from = self.events_from.min(now.saturating_add(EVENT_PAUSE_MS));
        if let Some((_, due)) = &mut self.event {
            *due = (*due).min(self.events_from);
        }
        if let Some(until) = &mut self.blocked {
            *until = (*until).min(now.saturating_add(REFUSED_PAUSE_MS));
        }
    }

    /// When a look at the clock changes something. While a task waits or runs, its due times do not.
    pub(super) fn next_due(&self) -> Option<u64> {
        if self.off.is_some() || self.open.is_some() {
            return None;
        }
        if self.waiting.is_some() {
            return self.blocked;
        }
        self.next_time()
    }

    fn next_time(&self) -> Option<u64> {
        let restart = self.restart.as_ref().map(|restart| restart.at);
        let event = self.event.map(|(_, due)| due);
        self.scheduled
            .iter()
            .copied()
            .chain([self.requested, restart, event])
            .flatten()
            .min()
    }

    /// What people may know of the task.
    pub(super) fn outlook(&self) -> TaskOutlook<'_> {
        TaskOutlook {
            feature: &self.spec.feature,
            task: &self.spec.task,
            off: self.off.as_deref(),
            next_due_ms: self
                .waiting_since()
                .or_else(|| self.next_time())
                .filter(|_| self.off.is_none()),
            open: self.open.as_ref().map(|open| &open.record),
        }
    }

    /// The task failed too often. Returns what people are told.
    fn exceed(&mut self, count: usize) -> SupervisorEffect {
        let why = restarts::limit_text(count, self.spec.restart);
        let text = format!(
            "background task `{}` {why}; it does not run until the pod is started again",
            self.spec.task
        );
        self.turn_off(why);
        SupervisorEffect::Alert {
            feature: self.spec.feature.clone(),
            text,
        }
    }
}

impl Schedule {
    fn trigger(&self) -> TriggerKind {
        match self {
            Self::Interval(_) => TriggerKind::Interval,
            Self::Cron(_) => TriggerKind::Cron,
        }
    }

    /// The first due time after the last one of the task, or after now if it had none. May have passed at a start.
    fn first(&self, last_due: Option<u64>, now: u64) -> Option<u64> {
        match self {
            Self::Interval(interval) => Some(interval.next_after(last_due, now)),
            Self::Cron(cron) => cron.next_due(last_due, now),
        }
    }

    /// The due time after the clock was set back.
    fn bounded(&self, due: Option<u64>, last_due: Option<u64>, now: u64) -> Option<u64> {
        match self {
            Self::Interval(interval) => due.map(|due| interval.bounded(due, now)),
            Self::Cron(cron) => cron.next_due(last_due, now),
        }
    }

    /// The newest time from the due one on that has passed.
    fn newest(&self, due: u64, now: u64) -> Option<u64> {
        match self {
            _ if due > now => None,
            Self::Interval(interval) => Some(interval.newest(due, now)),
            Self::Cron(cron) => cron.newest(due, now).or(Some(due)),
        }
    }
}
