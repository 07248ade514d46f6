//! What all clients of a pod share: the newest records, the status, the draft, and the answers to commands.

use super::answers::{Answers, MAX_ANSWERS};
use super::convert;
use super::held_files::HeldFiles;
use super::tail::Tail;
use super::{HostActions, ServedPod};
use crate::control::{Client, Event, OutputFollower, SubmitError};
use llm_worker::effect::Delta;
use protocol::MAX_DRAFT;
use protocol::error::{Error, ErrorKind};
use protocol::event::PodEnded;
use protocol::method::Draft;
use protocol::record::Who;
use protocol::status::{Host, Status};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::{Instant, sleep_until};

/// The status is looked at this long after something changed: once for all clients.
const STATUS_AFTER: Duration = Duration::from_millis(100);

/// After new records were handed out, the next ones are handed out this much later, together: what clients cost does not
/// grow with the speed of the steps.
const RECORDS_AFTER: Duration = Duration::from_millis(16);

/// The memory of jobs is read again this long after it was read.
const MEMORY_AFTER: Duration = Duration::from_secs(1);

/// How far the end of a served pod is.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// No new client is accepted.
    pub(super) closed: bool,
    /// The pod has ended: clients get the rest.
    pub(super) ended: Option<PodEnded>,
    /// The program does not wait for clients.
    pub(super) dropped: bool,
}

impl Phase {
    pub(super) fn is_over(&self) -> bool {
        self.dropped || self.ended.is_some()
    }
}

/// The pod and what its clients share.
pub(super) struct Hub {
    pub(super) client: Client,
    pub(super) dir: PathBuf,
    pub(super) name: String,
    pub(super) session: String,
    pub(super) actions: Arc<dyn HostActions>,
    pub(super) answers: Answers,
    pub(super) phase: watch::Receiver<Phase>,
    /// A share of the commands that are under way.
    pub(super) commands: Arc<Semaphore>,
    /// The right to read a page.
    pub(super) pages: Arc<Semaphore>,
    host: watch::Receiver<Host>,
    tail: Mutex<Tail>,
    /// The newest record that clients may read.
    head: watch::Sender<u64>,
    status: watch::Sender<Option<Arc<Status>>>,
    draft: watch::Sender<Draft>,
    /// What clients sent for inputs.
    pub(super) files: Mutex<HeldFiles>,
    job_memory: Mutex<JobMemory>,
    /// How many clients get events.
    attached: watch::Sender<usize>,
}

impl Hub {
    pub(super) fn new(pod: ServedPod, phase: watch::Receiver<Phase>) -> Self {
        let ServedPod {
            client,
            dir,
            name,
            session,
            host,
            actions,
        } = pod;
        let folded = *client.folded().borrow();
        Self {
            client,
            tail: Mutex::new(Tail::new(dir.clone(), folded)),
            dir,
            name,
            session,
            actions,
            answers: Answers::default(),
            phase,
            commands: Arc::new(Semaphore::new(MAX_ANSWERS)),
            pages: Arc::new(Semaphore::new(1)),
            host,
            head: watch::Sender::new(folded),
            status: watch::Sender::default(),
            draft: watch::Sender::default(),
            files: Mutex::default(),
            job_memory: Mutex::default(),
            attached: watch::Sender::default(),
        }
    }

    /// What the pod does now.
    ///
    /// # Errors
    /// The pod has ended.
    pub(super) async fn status(&self) -> Result<Status, Error> {
        let status = self
            .client
            .status()
            .await
            .ok_or_else(|| Error::new(ErrorKind::Closing, "the pod is stopping"))?;
        let mut status = convert::status(
            status,
            &self.name,
            &self.host.borrow(),
            *self.attached.borrow(),
        );
        let known = self
            .job_memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        status
            .jobs
            .iter_mut()
            .for_each(|job| job.memory = known.bytes.get(&job.job).copied());
        Ok(status)
    }

    /// The same, with the memory of the jobs as it is now.
    ///
    /// # Errors
    /// The pod has ended.
    pub(super) async fn measured_status(&self) -> Result<Status, Error> {
        self.read_memory().await;
        self.status().await
    }

    /// Reads the memory of the jobs that run, at most once in a second and on another thread.
    async fn read_memory(&self) {
        let now = Instant::now();
        let jobs = self.client.job_memory();
        {
            let mut known = self
                .job_memory
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if jobs.is_empty() {
                known.bytes.clear();
            }
            if jobs.is_empty()
                || known
                    .read_at
                    .is_some_and(|at| now.duration_since(at) < MEMORY_AFTER)
            {
                return;
            }
            known.read_at = Some(now);
        }
        let read = move || {
            jobs.iter()
                .filter_map(|(job, memory)| Some((*job, memory.resident()?)))
                .collect()
        };
        // Without it, what was read before stays.
        let Ok(bytes) = tokio::task::spawn_blocking(read).await else {
            return;
        };
        self.job_memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes = bytes;
    }

    pub(super) fn draft(&self) -> Draft {
        self.draft.borrow().clone()
    }

    /// # Errors
    /// It is too long.
    pub(super) fn set_draft(&self, text: String, by: Option<Who>) -> Result<(), SubmitError> {
        if text.len() > MAX_DRAFT {
            return Err(SubmitError::TooLong(format!(
                "a draft can have at most {MAX_DRAFT} bytes"
            )));
        }
        self.draft.send_modify(|draft| {
            *draft = Draft {
                text,
                revision: draft.revision + 1,
                by,
            }
        });
        Ok(())
    }

    /// A client begins to get events. Records up to `head` can be read.
    pub(super) fn attach(self: &Arc<Self>) -> Attached {
        if *self.attached.borrow() == 0 {
            // What was recorded while no client was attached is read by those that want it.
            self.tail(|tail| tail.skip_to(*self.client.folded().borrow()));
        }
        self.attached.send_modify(|attached| *attached += 1);
        self.read_on();
        Attached {
            head: self.head.subscribe(),
            transient: self.client.transient(),
            outputs: self.client.outputs(),
            status: self.status.subscribe(),
            draft: self.draft.subscribe(),
            hub: self.clone(),
        }
    }

    /// The newest records, for a client whose cursor is among them.
    pub(super) fn tail<T>(&self, read: impl FnOnce(&mut Tail) -> T) -> T {
        read(&mut self.tail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what is folded, and tells the clients.
    pub(super) fn read_on(&self) {
        let folded = *self.client.folded().borrow();
        if let Err(error) = self.tail(|tail| tail.advance(folded)) {
            // A client that reads the files itself says what is wrong with them.
            tracing::warn!(%error, "the newest records cannot be read");
        }
        self.head
            .send_if_modified(|head| std::mem::replace(head, folded.max(*head)) < folded);
    }

    /// Tells the clients what the pod does, if that changed or its configuration was read again.
    async fn look(&self, reloaded: bool) {
        let Ok(status) = self.status().await else {
            return;
        };
        self.status.send_if_modified(|newest| {
            let differs = newest.as_deref() != Some(&status);
            *newest = Some(Arc::new(status));
            differs || reloaded
        });
    }

    pub(super) fn follow(&self) -> Following {
        let attached = self.attached.subscribe();
        let folded = self.client.folded();
        let host = self.host.clone();
        Following {
            attached,
            folded,
            host,
            transient: None,
            look_at: None,
            rests_until: None,
            reloaded: false,
        }
    }
}

/// The resident memory of jobs, by number, and when it was read.
#[derive(Default)]
struct JobMemory {
    read_at: Option<Instant>,
    bytes: BTreeMap<u64, u64>,
}

/// An attached client's share of the hub.
pub(super) struct Attached {
    pub(super) head: watch::Receiver<u64>,
    pub(super) transient: broadcast::Receiver<Event>,
    pub(super) outputs: OutputFollower,
    pub(super) status: watch::Receiver<Option<Arc<Status>>>,
    pub(super) draft: watch::Receiver<Draft>,
    pub(super) hub: Arc<Hub>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.hub.attached.send_modify(|attached| *attached -= 1);
    }
}

/// Follows the pod while a client is attached; without one it costs nothing.
pub(super) struct Following {
    attached: watch::Receiver<usize>,
    folded: watch::Receiver<u64>,
    host: watch::Receiver<Host>,
    /// None while no client is attached.
    transient: Option<broadcast::Receiver<Event>>,
    /// When the status is looked at next.
    look_at: Option<Instant>,
    /// Until when no new records are looked for. The pod does not wake this thread for them meanwhile.
    rests_until: Option<Instant>,
    /// The configuration was read again since the last look: limits and rules are not in the status.
    reloaded: bool,
}

impl Following {
    /// Waits for the next change and passes it on. Cancel-safe.
    pub(super) async fn step(&mut self, hub: &Hub) {
        let change = tokio::select! {
            _hub_is_there = self.attached.changed() => Change::Attached,
            moved = self.folded.changed(), if self.transient.is_some() && self.rests_until.is_none() => match moved {
                Ok(()) => Change::Folded,
                Err(_ended) => Change::Ended,
            },
            Ok(()) = self.host.changed(), if self.transient.is_some() => Change::Reloaded,
            event = received(&mut self.transient) => match event {
                Ok(Event::Suspended { .. } | Event::Delta { delta: Delta::Retrying { .. }, .. })
                | Err(RecvError::Lagged(_)) => Change::Other,
                Ok(Event::Record { .. } | Event::Delta { .. } | Event::Alert(_)) => Change::None,
                Err(RecvError::Closed) => Change::Ended,
            },
            () = until(self.rests_until) => Change::Rested,
            () = until(self.look_at) => Change::Look,
        };
        match change {
            Change::Attached => {
                let watched = *self.attached.borrow() > 0;
                self.transient = match self.transient.take() {
                    Some(transient) if watched => Some(transient),
                    _ => watched.then(|| hub.client.transient()),
                };
                self.host.mark_unchanged();
                self.folded.mark_changed();
            }
            Change::Folded => {
                hub.read_on();
                self.rests_until = Some(Instant::now() + RECORDS_AFTER);
            }
            Change::Rested => self.rests_until = None,
            Change::Look => {
                hub.look(self.reloaded).await;
                // Only now: this may be given up while it looks.
                (self.look_at, self.reloaded) = (None, false);
            }
            Change::Reloaded => self.reloaded = true,
            Change::Other | Change::None => {}
            // The phase says so, too.
            Change::Ended => std::future::pending().await,
        }
        // The others are told that a client came or left.
        let is_watched = matches!(change, Change::Attached) && self.transient.is_some();
        if is_watched || matches!(change, Change::Folded | Change::Reloaded | Change::Other) {
            self.look_at
                .get_or_insert_with(|| Instant::now() + STATUS_AFTER);
        }
    }
}

/// What happened to the pod, for its clients.
#[derive(Clone, Copy)]
enum Change {
    /// A client came or left.
    Attached,
    Folded,
    Rested,
    /// The process read its configuration again.
    Reloaded,
    /// The status may have changed without a record.
    Other,
    Look,
    None,
    Ended,
}

async fn received(transient: &mut Option<broadcast::Receiver<Event>>) -> Result<Event, RecvError> {
    match transient {
        Some(transient) => transient.recv().await,
        None => std::future::pending().await,
    }
}

/// Resolves at a time; pending without one.
pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
