//! A log of task records as the actor writes it, over a disk that refuses for a while: the start of an effectful run is
//! appended at once, and refused once; its end is appended until it is durable, before any later record of a task; the
//! end of another run goes with the next commit or is lost. What is durable is folded, which refuses what is illegal.

use crate::record::{BackgroundTask, Record, TaskRunState};
use crate::session::fold::SessionState;
use llm_worker::ToolEffect;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Journal {
    /// Ends of runs without effects, for the next commit.
    pending: Vec<BackgroundTask>,
    /// Commits in order; those at the front that the disk has refused already.
    flights: VecDeque<Flight>,
    refused: usize,
    /// Ends of effectful runs that the disk refused, in order.
    held: Vec<BackgroundTask>,
    pub(super) is_full: bool,
    pub(super) state: SessionState,
    /// Effectful runs by their durable records, and durable ends of others.
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) others: u64,
    /// How often an end was refused.
    pub(super) kept: u64,
}

/// A commit: of one record of an effectful run, or of ends of others.
enum Flight {
    Task(Box<BackgroundTask>),
    Others(Vec<BackgroundTask>),
}

/// What the actor is told of a start.
pub(super) enum Start {
    Durable(u64),
    Refused(u64),
}

impl Journal {
    pub(super) fn add(&mut self, record: BackgroundTask) {
        match (record.effect, record.state) {
            (ToolEffect::Effectful, _) => {
                self.retry();
                self.write_out();
                self.append(Flight::Task(Box::new(record)));
            }
            (_, TaskRunState::Running) => {}
            _ => self.pending.push(record),
        }
    }

    /// A commit of something else.
    pub(super) fn write_out(&mut self) {
        if !self.pending.is_empty() {
            let others = std::mem::take(&mut self.pending);
            self.append(Flight::Others(others));
        }
    }

    /// The time of the retry has come.
    pub(super) fn retry(&mut self) {
        for record in std::mem::take(&mut self.held) {
            self.append(Flight::Task(Box::new(record)));
        }
    }

    /// Behind a refusal that was not read yet everything is refused.
    fn append(&mut self, flight: Flight) {
        self.flights.push_back(flight);
        self.refused += usize::from(self.refused > 0);
    }

    /// The result of the oldest commit is read.
    pub(super) fn flush(&mut self) -> Option<Start> {
        if self.is_full && self.refused == 0 {
            self.refused = self.flights.len();
        }
        let flight = self.flights.pop_front()?;
        let is_refused = self.refused > 0;
        self.refused = self.refused.saturating_sub(1);
        match flight {
            Flight::Task(record) if record.state == TaskRunState::Running => {
                if is_refused {
                    return Some(Start::Refused(record.run));
                }
                self.commit(&record);
                return Some(Start::Durable(record.run));
            }
            Flight::Task(record) if is_refused => {
                self.kept += 1;
                self.held.push(*record);
            }
            Flight::Task(record) => self.commit(&record),
            Flight::Others(others) if !is_refused => {
                others.iter().for_each(|record| self.commit(record))
            }
            Flight::Others(_) => {}
        }
        None
    }

    pub(super) fn is_written(&self) -> bool {
        self.flights.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_written() && self.held.is_empty()
    }

    /// The runs whose start is in flight.
    pub(super) fn starting(&self) -> Vec<u64> {
        let start = |flight: &Flight| match flight {
            Flight::Task(record) if record.state == TaskRunState::Running => Some(record.run),
            Flight::Task(_) | Flight::Others(_) => None,
        };
        self.flights.iter().filter_map(start).collect()
    }

    /// The host is killed: the first commits are durable, everything else is lost, and recovery closes what is open.
    pub(super) fn kill(&mut self, durable: usize, now: u64) {
        for _ in 0..durable {
            self.flush();
        }
        self.pending.clear();
        self.flights.clear();
        self.held.clear();
        (self.refused, self.is_full) = (0, false);
        let open = self
            .state
            .open_tasks()
            .map(|((feature, task), open)| BackgroundTask {
                run: open.run,
                feature: feature.clone(),
                task: task.clone(),
                trigger: open.trigger,
                attempt: open.attempt,
                due_ms: open.due_ms,
                at_ms: now,
                effect: open.effect,
                state: TaskRunState::Orphaned,
                reason: None,
                ms: None,
                jobs: Vec::new(),
            });
        let open: Vec<BackgroundTask> = open.collect();
        open.iter().for_each(|record| self.commit(record));
    }

    pub(super) fn is_durable(&self, record: &BackgroundTask) -> bool {
        self.state
            .open_tasks()
            .any(|(_, open)| open.run == record.run)
    }

    fn commit(&mut self, record: &BackgroundTask) {
        if let Err(why) = self.state.apply(&Record::from(record.clone())) {
            panic!("{why}: {record:?}");
        }
        match (record.effect, record.state) {
            (ToolEffect::Effectful, TaskRunState::Running) => self.begun += 1,
            (ToolEffect::Effectful, _) => self.ended += 1,
            _ => self.others += 1,
        }
    }
}
