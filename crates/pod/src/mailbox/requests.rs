//! Requests from running tools and from features to the actor, through one bounded channel.
//!
//! Only the actor appends to the log: a sender that wants something durable sends a request and learns when its record is
//! durable. A record without a waiter is piggybacked on the next commit; the first waiter starts a commit at once.

use crate::feature::{FeatureId, JobError, NewJob, ServiceEvent};
use crate::record::{FeatureState, JobStarter, Record, Who};
use authority::{Redactor, Spawner};
use llm_worker::CallId;
use protocol::event::AlertLevel;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::{Notify, mpsc, oneshot};

/// Requests that may wait for the actor.
pub(crate) const MAILBOX_CAPACITY: usize = 256;

/// A request to the actor.
pub(crate) enum DriverRequest {
    /// A running call is about to change files or directories; `change` must be durable first.
    AnnounceChange {
        call: CallId,
        change: Box<Record>,
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// A feature's session state has a new value; `bytes` is its size as JSON.
    UpdateState {
        state: FeatureState,
        bytes: usize,
        waiter: Box<dyn CommitWaiter>,
    },
    /// A feature or a client notifies the model.
    Notify {
        notification: Notification,
        reply: oneshot::Sender<Result<u64, Declined>>,
    },
    /// A feature alerts people; `text` is not sanitized yet.
    Alert {
        feature: FeatureId,
        level: AlertLevel,
        text: String,
    },
    /// A feature was disabled because its code did not return.
    FeatureDisabled { feature: FeatureId },
    /// A feature emits an event of its service.
    ServiceEvent(ServiceEvent),
    /// A feature starts a job.
    StartJob(Box<JobRequest>),
    /// A feature adds a note to the report; `text` is not sanitized yet.
    Note { feature: FeatureId, text: String },
}

/// A feature's request to run one of its background tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRequest {
    pub(crate) feature: FeatureId,
    pub(crate) task: String,
    pub(crate) time: RunTime,
}

/// A feature's request to start a job.
pub(crate) struct JobRequest {
    pub(crate) feature: FeatureId,
    pub(crate) spawner: Spawner,
    pub(crate) redactor: Redactor,
    pub(crate) new: NewJob,
    pub(crate) starter: JobStarter,
    pub(crate) reply: oneshot::Sender<Result<u64, JobError>>,
}

/// When a requested run is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunTime {
    Now,
    /// At this time instead of the one requested earlier; none withdraws that one.
    At(Option<SystemTime>),
}

/// A notification that waits for its commit; its size is within the grant.
pub(crate) struct Notification {
    /// The sender; none for a client of the pod.
    pub(crate) feature: Option<FeatureId>,
    pub(crate) by: Option<Who>,
    pub(crate) text: String,
    /// Whether an idle pod starts a turn for it.
    pub(crate) wake: bool,
    /// Of notifications of one feature with the same key only the first is delivered; at most 128 bytes.
    pub(crate) key: Option<String>,
    pub(crate) per_turn: u32,
}

/// The reason why a notification was not accepted.
pub(crate) enum Declined {
    /// Too many in this turn, or too many undelivered.
    TooMany(String),
    Refused(String),
}

/// A caller that waits for the commit of its record.
pub(crate) trait CommitWaiter: Send {
    /// Whether the record may still be written: a refused earlier update makes later ones invalid.
    fn is_valid(&self) -> bool;
    /// Called once: the record is durable and folded, or it is not in the log, with the reason.
    fn resolve(self: Box<Self>, done: Result<(), &str>);
}

impl CommitWaiter for oneshot::Sender<Result<(), String>> {
    fn is_valid(&self) -> bool {
        true
    }

    fn resolve(self: Box<Self>, done: Result<(), &str>) {
        // The caller may have been cancelled meanwhile; the record stays in the log.
        drop(self.send(done.map_err(str::to_owned)));
    }
}

/// The sending end of the mailbox; tools and features hold clones.
#[derive(Clone, Debug)]
pub(crate) struct MailboxSender {
    requests: mpsc::Sender<DriverRequest>,
    wanted: Arc<Notify>,
    runs: Arc<RequestedRuns>,
}

/// The receiving end of the mailbox; the actor owns it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    requests: mpsc::Receiver<DriverRequest>,
    wanted: Arc<Notify>,
    runs: Arc<RequestedRuns>,
}

/// Requested runs of background tasks, oldest first: at most one for now and one time for each task. So there is always room,
/// and no request is lost because others wait.
#[derive(Debug, Default)]
struct RequestedRuns {
    waiting: Mutex<VecDeque<TaskRequest>>,
    added: Notify,
}

/// Creates the mailbox: the actor's end and the sending end.
pub(crate) fn mailbox() -> (Mailbox, MailboxSender) {
    let (sender, requests) = mpsc::channel(MAILBOX_CAPACITY);
    let wanted = Arc::new(Notify::new());
    let runs = Arc::<RequestedRuns>::default();
    let mailbox = Mailbox {
        requests,
        wanted: Arc::clone(&wanted),
        runs: Arc::clone(&runs),
    };
    (
        mailbox,
        MailboxSender {
            requests: sender,
            wanted,
            runs,
        },
    )
}

/// Waits for the answer to a message; none once the receiving end is gone. A message that is sent while that end goes may
/// stay in the channel, unread, for as long as a sender lives: its answer alone would never come.
pub(crate) async fn answered<M, T>(
    sent: &mpsc::Sender<M>,
    mut answer: oneshot::Receiver<T>,
) -> Option<T> {
    tokio::select! {
        biased;
        answered = &mut answer => answered.ok(),
        () = sent.closed() => answer.try_recv().ok(),
    }
}

/// The reason for waking the actor.
pub(crate) enum Wakeup {
    Request(DriverRequest),
    /// A caller waits for a record that was sent earlier without a waiter.
    CommitWanted,
    /// A run of a background task was requested.
    RunRequested,
}

/// The reason why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    Full,
    Closed,
}

impl MailboxSender {
    /// Sends without waiting.
    pub(crate) fn try_send(&self, request: DriverRequest) -> Result<(), NotTaken> {
        self.requests
            .try_send(request)
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => NotTaken::Full,
                mpsc::error::TrySendError::Closed(_) => NotTaken::Closed,
            })
    }

    /// Sends as soon as the channel has room.
    pub(crate) async fn send(&self, request: DriverRequest) -> Result<(), NotTaken> {
        self.requests
            .send(request)
            .await
            .map_err(|_closed| NotTaken::Closed)
    }

    /// Waits for the answer to a request; none if the pod ends first.
    pub(crate) async fn answered<T>(&self, answer: oneshot::Receiver<T>) -> Option<T> {
        answered(&self.requests, answer).await
    }

    /// Resolves when the pod has ended.
    pub(crate) async fn closed(&self) {
        self.requests.closed().await;
    }

    /// Requests a run. A newer request of the same kind for the same task replaces the older one.
    pub(crate) fn request_run(&self, new: TaskRequest) -> Result<(), NotTaken> {
        if self.requests.is_closed() {
            return Err(NotTaken::Closed);
        }
        let same = |old: &TaskRequest| {
            let same_time = (old.time == RunTime::Now) == (new.time == RunTime::Now);
            same_time && old.feature == new.feature && old.task == new.task
        };
        let mut waiting = self
            .runs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|old| !same(old));
        waiting.push_back(new);
        self.runs.added.notify_one();
        Ok(())
    }

    /// Asks for a commit at once: a caller waits for a record that was sent without a waiter.
    pub(crate) fn want_commit(&self) {
        self.wanted.notify_one();
    }
}

impl Mailbox {
    /// The next event. Cancel-safe; pending while there is none.
    pub(crate) async fn next(&mut self) -> Wakeup {
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => Wakeup::Request(request),
            () = self.wanted.notified() => Wakeup::CommitWanted,
            () = self.runs.added.notified() => Wakeup::RunRequested,
        }
    }

    /// The next request, without waiting.
    pub(crate) fn now(&mut self) -> Option<DriverRequest> {
        self.requests.try_recv().ok()
    }

    /// The oldest requested run that was not taken yet.
    pub(crate) fn next_run(&mut self) -> Option<TaskRequest> {
        self.runs
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    /// Refuses further requests; those in the channel can still be read.
    pub(crate) fn close(&mut self) {
        self.requests.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_message_that_nobody_reads_any_more_has_no_answer() {
        let (sender, mut receiver) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel::<()>();
        sender.send(reply).await.unwrap();
        receiver.close();
        let told = tokio::time::timeout(Duration::from_secs(60), answered(&sender, answer)).await;
        assert_eq!(told, Ok(None), "it stays in the channel");
    }

    fn run(task: &str, time: RunTime) -> TaskRequest {
        TaskRequest {
            feature: FeatureId::builtin("f"),
            task: task.to_owned(),
            time,
        }
    }

    #[tokio::test]
    async fn the_newest_request_of_a_kind_for_a_task_counts() {
        let (mut mailbox, sender) = mailbox();
        let at = RunTime::At(Some(SystemTime::UNIX_EPOCH));
        for time in [RunTime::Now, at, RunTime::Now, RunTime::At(None)] {
            sender.request_run(run("one", time)).unwrap();
        }
        sender.request_run(run("two", at)).unwrap();
        assert!(matches!(mailbox.next().await, Wakeup::RunRequested));
        let left: Vec<_> = std::iter::from_fn(|| mailbox.next_run()).collect();
        assert_eq!(
            left,
            [
                run("one", RunTime::Now),
                run("one", RunTime::At(None)),
                run("two", at)
            ]
        );
    }

    // The time of the next look was lost, for as long as the pod was idle.
    #[tokio::test]
    async fn a_full_mailbox_refuses_no_run() {
        let (mut mailbox, sender) = mailbox();
        let note = || DriverRequest::Note {
            feature: FeatureId::builtin("f"),
            text: "full".to_owned(),
        };
        while sender.try_send(note()).is_ok() {}
        sender.request_run(run("one", RunTime::Now)).unwrap();
        assert_eq!(mailbox.next_run(), Some(run("one", RunTime::Now)));
        drop(mailbox);
        assert_eq!(
            sender.request_run(run("one", RunTime::Now)),
            Err(NotTaken::Closed)
        );
    }

    #[tokio::test]
    async fn an_answer_counts_after_the_end() {
        let (sender, mut receiver) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel();
        sender.send(reply).await.unwrap();
        receiver.recv().await.unwrap().send(7).unwrap();
        drop(receiver);
        assert_eq!(answered(&sender, answer).await, Some(7));
    }
}
