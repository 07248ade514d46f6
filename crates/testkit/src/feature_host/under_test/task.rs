//! Single runs of a feature's background tasks, in an open pod and without a schedule.

use super::{FeatureUnderTest, Open, watched};
use crate::points::Killed;
use pod::feature::{BackgroundTaskContext, TaskFailure, TriggerKind};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

impl FeatureUnderTest {
    /// Runs a background task of the feature once, as on request, within its declared deadline. The run is no run of the
    /// host's schedule and has no record; what it sends and changes is recorded as always.
    ///
    /// # Panics
    /// The feature has no such task, or the pod cannot go on.
    pub fn run_task(&mut self, task: &str) -> Result<(), TaskFailure> {
        self.run_task_within(task, Duration::MAX, None)
    }

    /// As [`FeatureUnderTest::run_task`], with an earlier deadline, and cancelled after a time.
    pub(crate) fn run_task_within(
        &mut self,
        task: &str,
        most: Duration,
        cancelled: Option<Duration>,
    ) -> Result<(), TaskFailure> {
        let mine = self
            .registry
            .tasks()
            .iter()
            .find(|other| other.feature == self.id && other.name == task);
        let found = mine
            .unwrap_or_else(|| panic!("{} has no background task {task}", self.id))
            .clone();
        let deadline = Duration::from_millis(found.declaration.deadline_ms).min(most);
        let due = SystemTime::UNIX_EPOCH + Duration::from_micros(self.pod.clock.now());
        let start = (TriggerKind::Request, 1);
        let cancel = CancellationToken::new();
        let cx = BackgroundTaskContext::new(1, start, due, deadline, cancel.clone());
        let Some(Open {
            actor: slot,
            runtime,
            callbacks,
            events,
            ..
        }) = &mut self.open
        else {
            self.dead()
        };
        let Some(mut actor) = slot.take() else {
            self.dead()
        };
        let told = &mut self.events;
        let gone = self.pod.points.gone();
        let run = async {
            if let Some(after) = cancelled {
                // Spawned, because the task may hold its thread.
                drop(tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    cancel.cancel();
                }));
            }
            tokio::select! {
                biased;
                () = gone.cancelled() => None,
                done = found.run(callbacks, cx) => Some(Ok(done)),
                end = &mut actor => Some(Err(end.result.expect_err("a pod that nobody closed"))),
            }
        };
        match catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(watched(run, events, told))
        })) {
            Ok(None) => self.dead(),
            Ok(Some(Ok(done))) => {
                *slot = Some(actor);
                done
            }
            Ok(Some(Err(error))) => panic!("the pod cannot go on: {error}"),
            Err(panic) if panic.is::<Killed>() => self.dead(),
            Err(panic) => resume_unwind(panic),
        }
    }
}
