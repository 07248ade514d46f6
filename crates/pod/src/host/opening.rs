//! Opens a session for a pod: folds it, and prepares the records that close what a crash left open.

use super::staged;
use super::{HostError, PodDeps};
use crate::control::{Core, OpenSession, Pipeline};
use crate::feature::PodLink;
use crate::mailbox::pending::Pending;
use crate::mailbox::requests::mailbox;
use crate::record::Record;
use crate::session::checkpoint::CheckpointBuilder;
use crate::session::fold::SessionState;
use crate::session::references;
use crate::session::restore::{RecoveryFacts, RestoreError, Restored, closing};
use crate::session::resume::{ResumedSession, everything, resume};
use authority::Workspace;
use llm_worker::Item;
use session_store::{Blobs, Journal, Opened, Reader, Recovered, SessionRecords, TailDamage};
use std::path::Path;
use std::sync::Arc;

/// How to clean up after a session that ended without warning.
pub struct CrashCleanup<'a> {
    /// Now, by the wall clock, in microseconds.
    pub now: u64,
    /// Ends processes left over from the session it is given and counts them, or says why some may be left.
    pub end_survivors: &'a dyn Fn(&str) -> Result<u32, String>,
    /// Where its tools changed files: what is left of a change beside its file is removed there.
    pub files: Option<&'a Workspace>,
}

/// A session, locked, repaired and folded. Nothing was executed and nothing written beyond what the store repaired.
pub struct Opening {
    journal: Journal,
    blobs: Blobs,
    state: SessionState,
    draft: CheckpointBuilder,
    pending: Pending,
    link: PodLink,
    rest: RecoveredSession,
}

/// The part of an opening that the core does not keep.
pub struct RecoveredSession {
    pub(super) recovered: Recovered,
    pub(super) items: Vec<Item>,
    pub(super) closing: Vec<Record>,
    pub(super) survivors: Option<String>,
}

impl Opening {
    /// Folds the session in `dir`, and tells its blobs which of them it leads to.
    ///
    /// # Errors
    /// The log does not read, or does not fold.
    pub fn of(
        dir: &Path,
        (opened, past): (Opened, SessionRecords),
        after: &CrashCleanup<'_>,
    ) -> Result<Self, HostError> {
        let Opened { journal, blobs, recovered } = opened;
        let mut resumed = folded(dir, &recovered, past)?;
        resumed.keep(&journal);
        let ResumedSession { restored, draft, .. } = resumed;
        blobs.refer(references::of(&restored.state, blobs.bound()))?;
        let (closing, survivors) = closed(&recovered, &restored, after);
        let Restored { state, items, .. } = restored;
        let pending = Pending::new(mailbox());
        let link = PodLink::new(pending.sender(), pending.keeper(), &state.features);
        Ok(Self {
            journal,
            blobs,
            state,
            draft,
            pending,
            link,
            rest: RecoveredSession { recovered, items, closing, survivors },
        })
    }

    /// What an install needs to reach the pod that will be built on this session.
    #[must_use]
    pub fn link(&self) -> PodLink {
        self.link.clone()
    }

    /// Puts the parts on the session.
    pub fn core(self, parts: PodDeps) -> (Core, RecoveredSession) {
        let Self { journal, blobs, state, draft, pending, link: _, rest } = self;
        let key: Arc<str> = format!("{}/{}", rest.recovered.session, rest.recovered.epoch).into();
        let PodDeps { registry, permission, model, callbacks, outbox, limits: _, probe } = parts;
        let session = rest.recovered.session.as_str().into();
        let store = OpenSession { journal, blobs, session, key, probe };
        let holds = Arc::clone(&registry);
        // Its doors are shut at once; whoever is inside one is not waited for.
        let callbacks = callbacks.serving(pending.sender(), move |feature| drop(holds.leave(feature)));
        let pipeline = Pipeline::default();
        let core = Core { store, state, draft, registry, permission, model, callbacks, outbox, pending, pipeline };
        (core, rest)
    }
}

/// Folds up to what the store proved when it opened the session. What does not fit behind a checkpoint may be the
/// checkpoint's fault: then the log has the last word.
fn folded(dir: &Path, recovered: &Recovered, past: SessionRecords) -> Result<ResumedSession, HostError> {
    let helped = past.checkpoint().is_some();
    match resume(past) {
        Err(RestoreError::Illegal { .. } | RestoreError::Body { .. }) if helped => {
            Ok(everything(Reader::open(dir)?.upto(recovered.last).frames())?)
        }
        other => Ok(other?),
    }
}

/// What closes the log, and with it what a crash left beside it. Also why processes may still run.
fn closed(recovered: &Recovered, restored: &Restored, after: &CrashCleanup<'_>) -> (Vec<Record>, Option<String>) {
    let class = match recovered.class {
        None => "clean",
        Some(TailDamage::TornTail) => "torn_tail",
        Some(TailDamage::ZeroTail) => "zero_tail",
        Some(TailDamage::BadTail) => "bad_tail",
    };
    let name = recovered.quarantine.as_ref().and_then(|path| path.file_name());
    let left = &restored.state.changing;
    let sweep = |files: &Workspace| left.iter().map(|left| staged::sweep(files, &recovered.session, left)).sum();
    let swept = after.files.map_or(0, sweep);
    // A host that left in good order ended its children, unless it wrote some off.
    let ended = if restored.state.hosted { (after.end_survivors)(&recovered.session) } else { Ok(0) };
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
