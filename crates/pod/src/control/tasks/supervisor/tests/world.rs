//! A host, a log and a clock around the supervisor. Every effect is checked against what must hold.

use super::journal::{Journal, Start};
use super::{
    MAX_OPEN, MAX_SLEEP_MS, RequestTime, Supervisor, SupervisorEffect, SupervisorInput, TaskRunEnd,
    TaskSpec,
};
use crate::control::tasks::supervisor::spec::Schedule;
use crate::feature::Restart;
use crate::record::{BackgroundTask, TaskRunState};
use crate::schedule::MAX_STEP_BACK_MS;
use llm_worker::ToolEffect;
use std::collections::{BTreeMap, BTreeSet};

/// What a task is owed.
#[derive(Clone, Debug, Default)]
pub(super) struct Owed {
    /// Due times after these must have their run: the one for intervals, the other for cron.
    interval_from: u64,
    cron_from: u64,
    /// A run that was requested, or that each start has.
    run: bool,
    at: Option<u64>,
    is_off: bool,
}

pub(super) struct World {
    pub(super) now: u64,
    pub(super) specs: Vec<TaskSpec>,
    pub(super) supervisor: Supervisor,
    pub(super) journal: Journal,
    /// Runs without a terminal record, and their tasks.
    open: BTreeMap<u64, usize>,
    /// Runs whose body runs.
    pub(super) bodies: BTreeMap<u64, usize>,
    pub(super) over: Vec<u64>,
    cancelled: BTreeSet<u64>,
    pub(super) owed: Vec<Owed>,
    pub(super) closed: bool,
    pub(super) due_times: Vec<(usize, u64)>,
}

impl World {
    pub(super) fn new(now: u64, specs: Vec<TaskSpec>) -> Self {
        let supervisor = Supervisor::start(now, Vec::new(), &BTreeMap::new(), 0);
        let open = BTreeMap::new();
        let bodies = BTreeMap::new();
        let over = Vec::new();
        let cancelled = BTreeSet::new();
        let owed = Vec::new();
        let due_times = Vec::new();
        let journal = Journal::default();
        let mut world = Self {
            now,
            specs,
            supervisor,
            journal,
            open,
            bodies,
            over,
            cancelled,
            owed,
            closed: false,
            due_times,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        let now = self.now;
        (self.open, self.bodies, self.over, self.cancelled) = Default::default();
        self.closed = false;
        let owed = |spec: &TaskSpec| {
            let known = self
                .journal
                .state
                .tasks
                .get(&(spec.feature.clone(), spec.task.clone()));
            let from = known.and_then(|task| task.last_due_ms).unwrap_or(now);
            let mut owed = Owed {
                interval_from: from,
                cron_from: from,
                run: spec.at_start,
                ..Owed::default()
            };
            owed.set_back(now);
            owed
        };
        self.owed = self.specs.iter().map(owed).collect();
        self.supervisor = Supervisor::start(
            now,
            self.specs.clone(),
            &self.journal.state.tasks,
            self.journal.state.task_runs,
        );
        self.drain();
    }

    pub(super) fn kill(&mut self, durable: usize, down: u64) {
        self.now += down;
        self.journal.kill(durable, self.now);
        self.start();
    }

    /// The clock moves, by as much as a jump.
    pub(super) fn set_clock(&mut self, now: u64) {
        if now < self.now {
            let far = self.now - now > MAX_STEP_BACK_MS;
            for owed in &mut self.owed {
                owed.set_back(now);
                owed.run |= far && owed.at.take_if(|_| far).is_some();
            }
        }
        self.now = now;
        self.handle(SupervisorInput::Woke);
    }

    pub(super) fn request(&mut self, task: usize, time: RequestTime) {
        let spec = &self.specs[task];
        let owed = &mut self.owed[task];
        if spec.on_request && !owed.is_off {
            match time {
                RequestTime::Now => owed.run = true,
                RequestTime::At(at) => owed.at = Some(at),
                RequestTime::Clear => owed.at = None,
            }
        }
        let feature = spec.feature.clone();
        let task = spec.task.clone();
        self.handle(SupervisorInput::Requested {
            feature,
            task,
            time,
        });
    }

    pub(super) fn disable(&mut self, feature: &str) {
        for (spec, owed) in self.specs.iter().zip(&mut self.owed) {
            owed.is_off |= spec.feature == feature;
        }
        self.handle(SupervisorInput::Disabled {
            feature: feature.to_owned(),
        });
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.owed.iter_mut().for_each(|owed| owed.is_off = true);
        self.handle(SupervisorInput::Close);
    }

    pub(super) fn end(&mut self, run: u64, end: TaskRunEnd) {
        self.bodies.remove(&run);
        self.over.push(run);
        self.handle(SupervisorInput::Ended { run, end, ms: 3 });
    }

    pub(super) fn flush(&mut self) {
        match self.journal.flush() {
            Some(Start::Durable(run)) => self.handle(SupervisorInput::Committed { run }),
            Some(Start::Refused(run)) => {
                self.open.remove(&run);
                self.handle(SupervisorInput::Refused { run });
            }
            None => {}
        }
    }

    /// The disk takes everything, and has it.
    pub(super) fn sync(&mut self) {
        self.journal.is_full = false;
        self.journal.write_out();
        while !self.journal.is_idle() {
            self.flush();
            if self.journal.is_written() {
                self.journal.retry();
            }
        }
    }

    pub(super) fn handle(&mut self, input: SupervisorInput) {
        // A requested time that has come stays so when the clock is set back before the run begins.
        for owed in &mut self.owed {
            owed.run |= owed.at.take_if(|at| *at <= self.now).is_some();
        }
        self.supervisor.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.supervisor.poll() {
            self.perform(effect);
        }
        if let Some(look) = self.supervisor.next_look(self.now) {
            assert!(
                look > self.now && look <= self.now + MAX_SLEEP_MS,
                "a look at {look}, now is {}",
                self.now
            );
        }
        assert_eq!(
            self.supervisor.is_done(),
            self.closed && self.open.is_empty()
        );
        assert_eq!(self.supervisor.slots.len(), self.specs.len());
    }

    fn perform(&mut self, effect: SupervisorEffect) {
        match effect {
            SupervisorEffect::Commit { record, awaited } => self.commit(record, awaited),
            SupervisorEffect::Run(run) => {
                assert!(!self.owed[run.task].is_off, "a run of a task that is off");
                assert!(
                    self.bodies.values().all(|task| *task != run.task),
                    "two runs of one task"
                );
                let effectful = self.specs[run.task].effect == ToolEffect::Effectful;
                assert!(
                    !effectful || self.journal.is_durable(&run.record),
                    "it began too early: {run:?}"
                );
                assert_eq!(self.open.get(&run.record.run), Some(&run.task));
                assert_eq!(
                    self.bodies.insert(run.record.run, run.task),
                    None,
                    "a run began twice"
                );
                assert!(self.open.len() <= MAX_OPEN);
            }
            SupervisorEffect::Cancel { run } => {
                assert!(self.bodies.contains_key(&run), "nothing to cancel");
                assert!(self.cancelled.insert(run), "cancelled twice");
            }
            SupervisorEffect::Alert { feature, text } => {
                let named = |spec: &TaskSpec| {
                    spec.feature == feature && text.contains(&format!("`{}`", spec.task))
                };
                let task = self.specs.iter().position(named).unwrap();
                assert!(matches!(
                    self.specs[task].restart,
                    Restart::OnFailure { .. }
                ));
                self.owed[task].is_off = true;
            }
        }
    }

    fn commit(&mut self, record: BackgroundTask, awaited: bool) {
        let task = self
            .specs
            .iter()
            .position(|spec| spec.feature == record.feature && spec.task == record.task);
        let task = task.unwrap();
        if record.state == TaskRunState::Running {
            assert_eq!(awaited, record.effect == ToolEffect::Effectful);
            assert_eq!(
                self.open.insert(record.run, task),
                None,
                "a number was given twice"
            );
            assert!(!self.owed[task].is_off, "a run of a task that is off");
            self.owed[task].begins(&record, self.now);
            if record.trigger.is_scheduled() {
                self.due_times.push((task, record.due_ms));
            }
        } else {
            assert!(!awaited);
            assert_eq!(
                self.open.remove(&record.run),
                Some(task),
                "a second end: {record:?}"
            );
            assert!(
                !self.bodies.contains_key(&record.run),
                "its body runs: {record:?}"
            );
        }
        self.journal.add(record);
    }

    /// Ends all that is open. Then everything that was owed has its run.
    pub(super) fn settle(&mut self) {
        self.sync();
        // Refused starts are tried again after a minute.
        self.now += 61_000;
        self.handle(SupervisorInput::Woke);
        while !self.open.is_empty() {
            self.flush();
            let running: Vec<u64> = self.bodies.keys().copied().collect();
            running
                .iter()
                .for_each(|run| self.end(*run, TaskRunEnd::Completed));
        }
        self.check_owed();
    }

    fn check_owed(&self) {
        let mut looks = Vec::new();
        for (spec, owed) in self
            .specs
            .iter()
            .zip(&self.owed)
            .filter(|(_, owed)| !owed.is_off)
        {
            assert!(!owed.run, "no run: {spec:?} {owed:?}");
            assert!(
                owed.at.is_none_or(|at| at > self.now),
                "no run at the requested time: {spec:?}"
            );
            looks.extend(owed.at);
            for schedule in &spec.schedules {
                let due = owed.next(schedule, self.now);
                assert!(
                    due.is_none_or(|due| due > self.now),
                    "a due time has no run: {spec:?} {owed:?}"
                );
                looks.extend(due);
            }
        }
        let look = self.supervisor.next_look(self.now);
        if let Some(first) = looks.iter().min() {
            assert!(
                look.is_some_and(|look| look <= *first),
                "a look at {look:?}, {first} is due"
            );
        } else if self.specs.iter().all(|spec| spec.restart == Restart::Never) {
            assert_eq!(look, None, "nothing will be due");
        }
    }
}

impl Owed {
    fn set_back(&mut self, now: u64) {
        self.interval_from = self.interval_from.min(now);
        if self.cron_from > now {
            self.cron_from = now + MAX_STEP_BACK_MS;
        }
    }

    /// A run begins: it is what was owed up to its due time.
    fn begins(&mut self, record: &BackgroundTask, now: u64) {
        self.run = false;
        if record.trigger.is_scheduled() {
            (self.interval_from, self.cron_from) = (record.due_ms, record.due_ms);
            self.set_back(now);
        }
    }

    fn next(&self, schedule: &Schedule, now: u64) -> Option<u64> {
        match schedule {
            Schedule::Interval(interval) => {
                Some(interval.next_after(Some(self.interval_from), now))
            }
            Schedule::Cron(cron) => cron.next_after(self.cron_from),
        }
    }
}
