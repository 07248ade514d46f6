//! A log of task records: what is queued may be lost, what is durable is folded, which refuses what is illegal.

use crate::record::{BackgroundTask, Record, TaskRunState};
use crate::session::fold::SessionState;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Journal {
    /// Records that are not durable yet, in order, and whether each is awaited.
    pub(super) queue: VecDeque<(BackgroundTask, bool)>,
    pub(super) state: SessionState,
    pub(super) begun: u64,
    pub(super) ended: u64,
}

impl Journal {
    /// Makes queued records durable, up to the first awaited one. Returns its run.
    pub(super) fn flush(&mut self) -> Option<u64> {
        while let Some((record, awaited)) = self.queue.pop_front() {
            self.commit(&record);
            if awaited {
                return Some(record.run);
            }
        }
        None
    }

    /// Refuses the first awaited record; those that ride along stay. Returns its run.
    pub(super) fn refuse(&mut self) -> Option<u64> {
        let at = self.queue.iter().position(|(_, awaited)| *awaited)?;
        self.queue.remove(at).map(|(record, _)| record.run)
    }

    /// The host is killed: the first records are durable, the others are lost, and recovery closes what is open.
    pub(super) fn kill(&mut self, durable: usize, now: u64) {
        let queued: Vec<(BackgroundTask, bool)> = self.queue.drain(..).collect();
        queued.iter().take(durable).for_each(|(record, _)| self.commit(record));
        let open = self.state.open_tasks().map(|((feature, task), open)| BackgroundTask {
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
        self.state.open_tasks().any(|(_, open)| open.run == record.run)
    }

    /// Every run has a `running` record before its end: the end of a lost one is lost, too.
    fn commit(&mut self, record: &BackgroundTask) {
        let begins = record.state == TaskRunState::Running;
        assert!(begins || self.is_durable(record), "the end of a run that is not open: {record:?}");
        if let Err(why) = self.state.apply(&Record::from(record.clone())) {
            panic!("{why}: {record:?}");
        }
        *if begins { &mut self.begun } else { &mut self.ended } += 1;
    }
}
