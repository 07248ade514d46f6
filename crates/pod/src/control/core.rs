//! The state of a pod and everything a turn needs. Does not depend on turns.

use super::commit::{Ack, Batch};
use super::drivers::Drivers;
use super::pipeline::Pipeline;
use super::pod_budget::{self, PodLimits};
use crate::feature::{FeatureRegistry, JobBoard};
use crate::foreign::{Callbacks, MAX_STUCK};
use crate::mailbox::events::{Event, Outbox};
use crate::mailbox::pending::{Pending, RequestContext};
use crate::mailbox::requests::{DriverRequest, Wakeup};
use crate::permission::{Person, Policy, SandboxState};
use crate::record::{BudgetKind, HoldCause, Record, Suspended};
use crate::session::checkpoint::{CheckpointBuilder, VERSION};
use crate::session::fold::{IllegalRecord, SessionState};
use crate::session::view::{ContextPolicy, ViewTries};
use authority::{SandboxMode, Workspace};
use llm_worker::{CallId, ErrorKind, Model, Price};
use session_store::{Blobs, Clock, Committed, Journal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The pause before a refused commit is retried.
pub const DISK_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two attempts of a pod that waits for the disk; the pauses double up to it.
pub const MAX_DISK_PAUSE: Duration = Duration::from_secs(30);

/// How often a refused commit is retried before a pod that does not wait for the disk ends.
pub const DISK_RETRIES: u32 = 1;

/// A session open for writing, and the probe with which tests wait or kill the process at named points.
pub struct OpenSession {
    pub journal: Journal,
    pub blobs: Blobs,
    pub session: Arc<str>,
    /// The session's directory, for results that left the requests.
    pub dir: Arc<Path>,
    /// `<session>/<epoch>`: the prefix of idempotency keys and of `YOI_CALL`.
    pub key: Arc<str>,
    /// Called with a record's kind before it is committed (`commit:KIND`) and after (`KIND`).
    pub probe: Arc<dyn Fn(&str) + Send + Sync>,
    /// For what is due by the time of day.
    pub clock: Clock,
}

/// The state, the journal and the parts of an open pod. The actor owns it and lends it to the running turn.
pub struct Core {
    pub store: OpenSession,
    pub state: SessionState,
    pub(crate) draft: CheckpointBuilder,
    pub registry: Arc<FeatureRegistry>,
    pub permission: Arc<Permission>,
    pub model: Arc<dyn Model>,
    /// Of the model's tokens, if known; a reload replaces it.
    pub(crate) price: Option<Price>,
    /// Of the model, if known; a reload replaces it.
    pub(crate) context_window: Option<u64>,
    /// When old results leave the requests; a reload replaces it.
    pub(crate) context_policy: ContextPolicy,
    /// Of all turns together; a reload replaces it.
    pub(crate) pod_limits: PodLimits,
    pub callbacks: Callbacks,
    pub outbox: Outbox,
    pub(crate) pending: Pending,
    pub(crate) jobs: JobBoard,
    pub(crate) pipeline: Pipeline,
    pub(crate) view_tries: ViewTries,
    /// The newest number given to a pin.
    pub(crate) pins: u64,
    pub(crate) drivers: Drivers,
    /// Whether the pod is one of [`HostMode::Stay`].
    pub(crate) stays: bool,
    /// Whether the pod was asked to end: no commit waits for the disk any more.
    pub(crate) is_ending: bool,
}

/// The policy, the workspace and the sandbox that calls are judged with. The host supplies it when it opens a pod.
#[derive(Clone, Debug)]
pub struct Permission {
    pub policy: Policy,
    /// Resolves the paths of a call.
    pub workspace: Workspace,
    pub sandbox: SandboxState,
    /// Whether a person can answer what rules and gates ask.
    pub person: Person,
}

impl Permission {
    /// Whether a call may ask to go beyond the sandbox.
    pub(super) fn may_escalate(&self) -> bool {
        let lifts = self.sandbox.mode == SandboxMode::WorkspaceWrite && self.sandbox.enforced;
        lifts && self.person == Person::Later
    }
}

/// How a pod behaves while it has no client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostMode {
    /// It does what its program submits, and no more; when the disk refuses twice, it ends.
    #[default]
    Run,
    /// It stays: it takes what waits, goes on with interrupted work, is woken by notifications, and waits for the disk
    /// however long that takes.
    Stay {
        /// What the pod needs and does not have: it starts held, with this reason.
        missing: Option<String>,
    },
}

/// The reason why a pod cannot continue: it ends the actor, and the program reports it.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The journal refused a commit too often.
    #[error("{0}")]
    Journal(String),
    /// A record of recovery, of the stop or of the end of a turn exceeds its bound: no retry can help.
    #[error("{0}")]
    Unstorable(String),
    /// Too many callbacks did not return.
    #[error("{MAX_STUCK} tool or feature threads are stuck and were abandoned")]
    Stuck,
    /// A committed record does not fold: a fault in this program.
    #[error("{0}; this is a bug")]
    Fold(#[from] IllegalRecord),
    /// The turn machine refused an input: a fault in this program.
    #[error("{0}; this is a bug")]
    Turn(#[from] llm_worker::turn::IllegalInput),
    /// The items of a view do not fit the turn: a fault in this program.
    #[error("{0}; this is a bug")]
    View(#[from] llm_worker::history::HistoryError),
    /// A task of the host panicked: a fault in this program.
    #[error("{0}; this is a bug")]
    Broken(#[from] tokio::task::JoinError),
    /// The actor itself panicked: a fault in this program.
    #[error("{0}; this is a bug")]
    Panicked(String),
}

impl Fatal {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Journal(_) => ErrorKind::Unavailable,
            Self::Stuck => ErrorKind::Exhausted,
            Self::Unstorable(_) => ErrorKind::FixInput,
            Self::Fold(_) | Self::Turn(_) | Self::View(_) | Self::Broken(_) | Self::Panicked(_) => {
                ErrorKind::Bug
            }
        }
    }
}

impl Fatal {
    /// The cause for the log.
    fn cause(&self) -> Option<HoldCause> {
        match self.kind() {
            ErrorKind::Bug | ErrorKind::Exhausted => Some(HoldCause::Bug),
            ErrorKind::Unavailable => Some(HoldCause::Disk),
            ErrorKind::Retry
            | ErrorKind::FixInput
            | ErrorKind::Denied
            | ErrorKind::Corrupt
            | ErrorKind::Cancelled => None,
        }
    }
}

impl Core {
    /// Handles every request in the mailbox. Returns whether one needs a commit now. `runs` tells whether a call still runs
    /// and so may change files.
    pub(super) fn collect(&mut self, runs: &dyn Fn(CallId) -> bool) -> bool {
        let mut urgent = false;
        while let Some(request) = self.pending.now() {
            urgent |= self.handle(request, runs);
        }
        urgent
    }

    /// Handles a wakeup of the mailbox; starts a commit if a caller waits for one.
    pub(super) fn wake(&mut self, wakeup: Wakeup, runs: &dyn Fn(CallId) -> bool) {
        let urgent = match wakeup {
            Wakeup::Request(request) => self.handle(request, runs),
            Wakeup::CommitWanted => true,
            // The actor takes it from there.
            Wakeup::RunRequested => false,
        };
        if self.collect(runs) || urgent {
            self.write_out();
        }
    }

    /// Handles one request. Returns whether its record needs a commit now.
    pub(super) fn handle(&mut self, request: DriverRequest, runs: &dyn Fn(CallId) -> bool) -> bool {
        let Self {
            pending,
            registry,
            state,
            outbox,
            ..
        } = self;
        pending.take(
            request,
            &mut RequestContext {
                registry,
                state,
                outbox,
            },
            runs,
        )
    }

    /// Ends a pod that cannot continue. With `told`, a `suspended` record gets the reason, if the start is in the log
    /// and the record fits.
    pub(super) async fn give_up(&mut self, fatal: &Fatal, told: bool) {
        self.drain().await;
        self.pending.close();
        if !told || !self.state.hosted {
            return;
        }
        let reason = self
            .registry
            .redactor()
            .text(&fatal.to_string())
            .into_owned();
        let records = vec![
            Suspended {
                reason,
                cause: fatal.cause(),
                budget: None,
                by: None,
            }
            .into(),
        ];
        let last = self.store.journal.append_reserved(Batch::of(records)).await;
        let lost = match last {
            Ok(done) => self.fold(done).err().map(|fold| fold.to_string()),
            Err(refused) => Some(refused.why.to_string()),
        };
        if let Some(why) = lost {
            self.outbox.show(Event::warning(format!(
                "the reason could not be journaled: {why}"
            )));
        }
    }

    /// What is used up of the pod's budget.
    pub(super) fn kinds_used_up(&self) -> Vec<BudgetKind> {
        self.pod_limits
            .reached(self.state.spent().since(self.state.budget_since))
    }

    /// The record that holds the pod, if something of its budget is used up.
    pub(super) fn used_up(&self) -> Option<Suspended> {
        let kinds = self.kinds_used_up();
        (!kinds.is_empty()).then(|| {
            pod_budget::pod_stopped(&self.state, self.pod_limits, self.state.spent(), &kinds)
        })
    }

    pub(super) fn announce(&self, records: &[Record]) {
        records
            .iter()
            .for_each(|record| (self.store.probe)(&format!("commit:{}", record.kind())));
    }

    /// Folds a durable batch: first into the state, then it is shown to watchers. Nothing else changes the state.
    pub(super) fn fold(&mut self, done: Committed<Batch>) -> Result<Option<Ack>, Fatal> {
        let first = *done.seqs().start();
        let time = done.time();
        let mut checkpoint = done.seal();
        let last = done.mark();
        let (ack, records) = Ack::of(done);
        for (seq, record) in (first..).zip(records) {
            let before = self.state.shown.clone();
            let items = self.state.apply_at(time, &record)?;
            self.draft
                .take(&items, time, matches!(record, Record::ToolStarted(_)));
            self.draft.change_view(&record, &before, &self.state);
            (self.store.probe)(record.kind());
            if matches!(record, Record::HostStopped(_)) && self.draft.due(last.seq()) {
                checkpoint = checkpoint.or(Some(last));
            }
            let record = Arc::new(record);
            self.registry.hooks().tell(&self.callbacks, seq, &record);
            self.outbox.show(Event::Record { seq, record });
        }
        self.outbox.folded(last.seq());
        if let Some((mark, bytes)) =
            checkpoint.and_then(|mark| Some((mark, self.draft.bytes(&self.state)?)))
        {
            self.store.journal.checkpoint(mark, VERSION, bytes);
        }
        Ok(ack)
    }
}
