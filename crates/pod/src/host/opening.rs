//! Opens a session for a pod: folds it, and prepares the records that close open calls and turns after a crash.

use super::staged;
use super::{HostError, PodDeps};
use crate::control::{Core, Drivers, OpenSession, Pipeline};
use crate::feature::{Drift, JobBoard, PodLink, RegistryReport};
use crate::mailbox::pending::Pending;
use crate::mailbox::requests::mailbox;
use crate::record::{HostStarted, Record, RecordedRegistry};
use crate::session::checkpoint::CheckpointBuilder;
use crate::session::fold::SessionState;
use crate::session::jobs;
use crate::session::references;
use crate::session::restore::{RecoveryFacts, RestoreError, Restored, closing};
use crate::session::resume::{ResumedSession, everything, resume};
use crate::session::view::ViewTries;
use authority::Workspace;
use llm_worker::Item;
use session_store::{Blobs, Journal, Opened, Reader, Recovered, SessionRecords, TailDamage};
use std::path::Path;
use std::sync::Arc;

/// The cleanup after a start that ended without a stop, supplied by the program: only it may end processes and change
/// files.
pub struct CrashCleanup<'a> {
    /// Now, by the wall clock, in microseconds.
    pub now: u64,
    /// Ends remaining processes of this session and counts them; an error is the reason why some may remain.
    pub end_survivors: &'a dyn Fn(&str) -> Result<u32, String>,
    /// The directories that tools could change: staged files of unfinished changes are removed there.
    pub files: Option<&'a Workspace>,
}

/// A session that is locked, repaired and folded, but not yet a pod. Nothing was executed, and only the store's repair
/// was written.
pub struct Opening {
    dir: Arc<Path>,
    journal: Journal,
    blobs: Blobs,
    state: SessionState,
    draft: CheckpointBuilder,
    pending: Pending,
    jobs: JobBoard,
    link: PodLink,
    rest: RecoveredSession,
}

/// The part of an [`Opening`] that the core does not keep: `open` uses it for history and report.
pub struct RecoveredSession {
    pub(super) recovered: Recovered,
    pub(super) items: Vec<Item>,
    pub(super) closing: Vec<Record>,
    pub(super) survivors: Option<String>,
}

impl Opening {
    /// Folds the session in `dir`, and tells its blob store which blobs are still referenced.
    ///
    /// # Errors
    /// The log cannot be read or folded.
    pub fn of(
        dir: &Path,
        (opened, past): (Opened, SessionRecords),
        after: &CrashCleanup<'_>,
    ) -> Result<Self, HostError> {
        let Opened {
            journal,
            blobs,
            recovered,
        } = opened;
        let mut resumed = folded(dir, &recovered, past)?;
        resumed.keep(&journal);
        let ResumedSession {
            restored, draft, ..
        } = resumed;
        blobs.refer(references::of(&restored.state, blobs.bound()))?;
        let (closing, survivors) = closed(&recovered, &restored, after);
        let Restored { state, items, .. } = restored;
        let pending = Pending::new(mailbox());
        let jobs = JobBoard::of(state.jobs.values().map(|job| jobs::ended(job, after.now)));
        let name = dir
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let link = PodLink::new(pending.sender(), pending.keeper(), &state.features)
            .named(&name)
            .with_jobs(jobs.clone());
        Ok(Self {
            dir: dir.into(),
            journal,
            blobs,
            state,
            draft,
            pending,
            jobs,
            link,
            rest: RecoveredSession {
                recovered,
                items,
                closing,
                survivors,
            },
        })
    }

    /// What changed since the newest start that recorded the digests of its features.
    #[must_use]
    pub fn drift(&self, report: &RegistryReport) -> Drift {
        let Some(earlier) = &self.state.installed else {
            // Only what says by itself that something is lost.
            let same = RecordedRegistry {
                digest: report.digest.clone(),
                ..RecordedRegistry::default()
            };
            return self
                .state
                .started
                .as_ref()
                .map_or(Drift::Same, |_| report.since(&same));
        };
        report.since(earlier)
    }

    /// The start before this one.
    #[must_use]
    pub fn started_before(&self) -> Option<&HostStarted> {
        self.state.started.as_ref()
    }

    /// The link that an install needs to reach the pod that will be built on this session.
    #[must_use]
    pub fn link(&self) -> PodLink {
        self.link.clone()
    }

    /// Combines the session with the parts of a pod.
    pub fn core(self, parts: PodDeps) -> (Core, RecoveredSession) {
        let Self {
            dir,
            journal,
            blobs,
            state,
            draft,
            pending,
            jobs,
            link: _,
            rest,
        } = self;
        let key: Arc<str> = format!("{}/{}", rest.recovered.session, rest.recovered.epoch).into();
        let PodDeps {
            registry,
            permission,
            model,
            callbacks,
            outbox,
            limits: _,
            pod_limits,
            context_policy,
            probe,
            clock,
        } = parts;
        let session = rest.recovered.session.as_str().into();
        let drivers = Drivers::new(Arc::clone(&clock));
        let store = OpenSession {
            journal,
            blobs,
            session,
            dir,
            key,
            probe,
            clock,
        };
        let holds = Arc::clone(&registry);
        // Its doors are shut at once, without waiting for running uses.
        let callbacks =
            callbacks.serving(pending.sender(), move |feature| drop(holds.leave(feature)));
        let pipeline = Pipeline::default();
        let pins = state.standing.pin_numbers;
        let core = Core {
            view_tries: ViewTries::default(),
            pins,
            store,
            state,
            draft,
            registry,
            permission,
            price: model.price(),
            context_window: model.context_window(),
            context_policy,
            pod_limits,
            model,
            callbacks,
            outbox,
            pending,
            jobs,
            pipeline,
            drivers,
            stays: false,
            is_ending: false,
        };
        (core, rest)
    }
}

/// Folds up to the last record that the store verified. If records after a checkpoint do not fit, the checkpoint may be
/// wrong: then the whole log is folded.
fn folded(
    dir: &Path,
    recovered: &Recovered,
    past: SessionRecords,
) -> Result<ResumedSession, HostError> {
    let helped = past.checkpoint().is_some();
    match resume(past) {
        Err(RestoreError::Illegal { .. } | RestoreError::Body { .. }) if helped => Ok(everything(
            Reader::open(dir)?.upto(recovered.last).frames(),
        )?),
        other => Ok(other?),
    }
}

/// Makes the records that close the log, and cleans up beside it. Also returns the reason why processes may still run.
fn closed(
    recovered: &Recovered,
    restored: &Restored,
    after: &CrashCleanup<'_>,
) -> (Vec<Record>, Option<String>) {
    let class = match recovered.class {
        None => "clean",
        Some(TailDamage::TornTail) => "torn_tail",
        Some(TailDamage::ZeroTail) => "zero_tail",
        Some(TailDamage::BadTail) => "bad_tail",
    };
    let name = recovered
        .quarantine
        .as_ref()
        .and_then(|path| path.file_name());
    let left = &restored.state.changing;
    let sweep = |files: &Workspace| {
        left.iter()
            .map(|left| staged::sweep(files, &recovered.session, left))
            .sum()
    };
    let swept = after.files.map_or(0, sweep);
    // A host that stopped in good order ended its child processes, unless it abandoned some.
    let ended = if restored.state.hosted {
        (after.end_survivors)(&recovered.session)
    } else {
        Ok(0)
    };
    let found = RecoveryFacts {
        class: class.to_owned(),
        cut_bytes: recovered.cut,
        quarantine: name.map(|name| name.to_string_lossy().into_owned()),
        ended_processes: ended.as_ref().copied().unwrap_or(0),
        survivors: ended.err(),
        swept,
        now: after.now,
    };
    (closing(restored, &found), found.survivors)
}
