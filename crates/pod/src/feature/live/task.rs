//! Background tasks as installed, and what a run and its feature get from the host. Does not depend on schedules.

use super::sink::{SinkError, SinkLink};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::ServiceEvent;
use crate::feature::declare::task::BackgroundTaskDeclaration;
use crate::foreign::{Broke, CallbackFailure, Callbacks, contained};
use crate::mailbox::requests::{RunTime, TaskRequest};
use crate::record::HoldCause;
pub use crate::record::TriggerKind;
use authority::{Door, FileChanges, Workspace};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// What a run gets from the host. It reports and acts through the sinks, states and handles of its feature.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackgroundTaskContext {
    /// The number of this run in the session. The number of a run that left no record may be given again after a crash:
    /// a key of [`wake_model_once`](super::sink::FeatureNotifySink::wake_model_once) is better made of [`due`](Self::due).
    pub run: u64,
    /// What started the run.
    pub trigger: TriggerKind,
    /// The time for which the run was scheduled.
    pub due: SystemTime,
    /// 1, and one more for each restart in a row.
    pub attempt: u32,
    /// Fires at the deadline, and earlier when the run is cancelled or the pod stops. A run that does not end soon
    /// after that is abandoned.
    pub cancel: CancellationToken,
    /// How long this run may take.
    pub deadline: Duration,
    /// What the pod did when the run began.
    pub pod: PodAtRun,
    /// The jobs of the feature that ended since the last run of this task, for a task with the trigger `on_child_end`.
    pub jobs: Vec<u64>,
    /// For a task with the trigger [`on_file_change`](crate::feature::TaskKey::on_file_change): what changed since its last
    /// run that completed. Empty if another trigger started the run and nothing changed.
    pub changes: FileChanges,
}

/// What a pod did when a run of a background task began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodAtRun {
    /// The number of its newest turn; 0 before the first one.
    pub turns: u64,
    pub activity: PodActivity,
    /// Until when a client with the role `driver` was attached: the time of the run while one is; none if none was
    /// since the host started.
    pub driver_until: Option<SystemTime>,
}

/// Whether a pod works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodActivity {
    /// No turn runs, and no input waits.
    #[default]
    Idle,
    /// A turn runs or is due; also while the pod waits for a model that cannot be reached.
    Working,
    /// No turn begins, or the running one waits, until the pod is resumed.
    Held {
        cause: HoldCause,
        /// For people, sanitized.
        reason: String,
    },
    /// A call waits for a person.
    Waiting {
        /// The number of the first approval that waits.
        approval: u64,
        /// For people, sanitized.
        question: String,
    },
}

impl PodAtRun {
    /// What a pod does; the host and tests create it.
    #[must_use]
    pub fn new(turns: u64, activity: PodActivity, driver_until: Option<SystemTime>) -> Self {
        Self {
            turns,
            activity,
            driver_until,
        }
    }
}

impl BackgroundTaskContext {
    /// The context of one run; the host creates it.
    #[must_use]
    pub fn new(
        run: u64,
        (trigger, attempt): (TriggerKind, u32),
        due: SystemTime,
        deadline: Duration,
        cancel: CancellationToken,
    ) -> Self {
        let pod = PodAtRun::default();
        let jobs = Vec::new();
        let changes = FileChanges::default();
        Self {
            run,
            trigger,
            due,
            attempt,
            cancel,
            deadline,
            pod,
            jobs,
            changes,
        }
    }

    /// Sets the jobs that ended.
    #[must_use]
    pub fn with_jobs(self, jobs: Vec<u64>) -> Self {
        Self { jobs, ..self }
    }

    /// Sets what the pod does.
    #[must_use]
    pub fn with_pod(self, pod: PodAtRun) -> Self {
        Self { pod, ..self }
    }

    /// Sets what changed.
    #[must_use]
    pub fn with_changes(self, changes: FileChanges) -> Self {
        Self { changes, ..self }
    }
}

/// The reason why a run failed. Every standard error becomes one with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError(String);

impl TaskError {
    /// An error with this text for people.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The result of one run of a background task.
pub type TaskResult = Result<(), TaskError>;

/// The reason why a run did not complete. Its texts are the feature's, not sanitized yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskFailure {
    #[error("{0}")]
    Failed(TaskError),
    #[error("it panicked: {0}")]
    Panicked(String),
    #[error("its grant was revoked")]
    Revoked,
    /// Cancelled while it waited for a thread.
    #[error("it was cancelled before it started")]
    NotStarted,
    /// It did not end within this grace after its cancellation.
    #[error("it did not stop within {0:?} of being cancelled and was abandoned")]
    Stuck(Duration),
}

/// One run of a background task.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = TaskResult> + Send>>;

/// The code of a background task.
pub(crate) type TaskBody = Arc<dyn Fn(BackgroundTaskContext) -> TaskFuture + Send + Sync>;

/// An installed background task with its feature.
#[derive(Clone)]
#[non_exhaustive]
pub struct RegisteredTask {
    pub feature: FeatureId,
    pub name: String,
    pub declaration: BackgroundTaskDeclaration,
    /// The door of the task's grant: each step of a run enters it; shut when the grant is revoked.
    pub door: Arc<Door>,
    pub(crate) events: Vec<GrantedEvent>,
    /// The project as the feature may use it, for a task that runs when files change.
    pub(crate) files: Option<Workspace>,
    pub(crate) body: TaskBody,
}

/// An event that starts a task, while the door of the service's grant is open.
#[derive(Clone)]
pub(crate) struct GrantedEvent {
    pub(crate) event: ServiceEvent,
    pub(crate) door: Arc<Door>,
}

impl RegisteredTask {
    /// Whether this event starts a run now; counted as a use of the service.
    pub(crate) fn runs_by(&self, event: &ServiceEvent) -> bool {
        self.events
            .iter()
            .any(|granted| granted.event == *event && granted.door.enter().is_ok())
    }

    /// Starts a run at once, on a callback thread, within the deadline and under the cancellation of its context. A
    /// caller that tells a deadline from a cancellation cancels a parent of the context's token.
    pub fn run(
        &self,
        callbacks: &Callbacks,
        cx: BackgroundTaskContext,
    ) -> impl Future<Output = Result<(), TaskFailure>> + Send + 'static {
        let Self {
            feature,
            body,
            door,
            ..
        } = self.clone();
        let deadline = cx.deadline;
        let cancel = cx.cancel.clone();
        let work = async move {
            let stop = cx.cancel.clone();
            if stop.is_cancelled() {
                return Err(TaskFailure::NotStarted);
            }
            let ended = contained(&feature, std::slice::from_ref(&door), async move {
                body(cx).await
            })
            .await;
            ended.map_err(|broke| match broke {
                Broke::Panicked(words) => TaskFailure::Panicked(words),
                Broke::Revoked => {
                    // Work that it delegated ends as well.
                    stop.cancel();
                    TaskFailure::Revoked
                }
            })
        };
        let done = callbacks.run(deadline, cancel, work);
        async move {
            match done.await {
                Ok(ended) => ended?.map_err(TaskFailure::Failed),
                Err(CallbackFailure::Panicked(words)) => Err(TaskFailure::Panicked(words)),
                Err(CallbackFailure::Stuck(grace)) => Err(TaskFailure::Stuck(grace)),
            }
        }
    }
}

impl fmt::Debug for RegisteredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            feature,
            name,
            declaration,
            door: _,
            events: _,
            files: _,
            body: _,
        } = self;
        write!(f, "{name} of {feature}, {:?}", declaration.triggers)
    }
}

/// Requests runs of a task with the trigger [`on_request`](crate::feature::TaskKey::on_request).
///
/// A requested time is not durable: it ends with the host. A feature that needs it later keeps it in a
/// [`DurableState`](crate::feature::DurableState) and requests it again in a run
/// [`at_start`](crate::feature::TaskKey::at_start).
#[derive(Clone)]
pub struct TaskHandle {
    pub(crate) link: SinkLink,
    pub(crate) task: String,
}

impl TaskHandle {
    /// Requests a run as soon as possible; the time of [`Self::run_at`] stays. Requests made before the run starts are
    /// one run.
    ///
    /// # Errors
    /// `Early` in an install; `Revoked`; `Closed`.
    pub fn run_now(&self) -> Result<(), SinkError> {
        self.request(RunTime::Now)
    }

    /// Requests a run at a time, which replaces the earlier one. If the clock is set back by more than five minutes, the
    /// run comes at once: the time may have been computed from the wrong clock.
    ///
    /// # Errors
    /// As [`Self::run_now`].
    pub fn run_at(&self, time: SystemTime) -> Result<(), SinkError> {
        self.request(RunTime::At(Some(time)))
    }

    /// Withdraws the time of [`Self::run_at`], if it has not come yet.
    ///
    /// # Errors
    /// As [`Self::run_now`].
    pub fn clear(&self) -> Result<(), SinkError> {
        self.request(RunTime::At(None))
    }

    fn request(&self, time: RunTime) -> Result<(), SinkError> {
        let _pass = self.link.enter::<SinkError>()?;
        let request = TaskRequest {
            feature: self.link.feature.clone(),
            task: self.task.clone(),
            time,
        };
        Ok(self.link.mailbox.request_run(request)?)
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "background task {} of {}", self.task, self.link.feature)
    }
}
