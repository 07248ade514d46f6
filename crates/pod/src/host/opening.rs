//! From a session that the store opened to one that a pod can be put on: folded, and what closes it ready to commit.

use super::{HostError, Parts};
use crate::control::desk::Desk;
use crate::control::inbox::inbox;
use crate::control::{Core, Fatal, Store};
use crate::feature::PodLink;
use crate::session::commit::Batch;
use crate::session::fold::State;
use crate::session::record::Record;
use crate::session::restore::{Circumstances, Restored, closing};
use llm_worker::Item;
use session_store::{Blobs, Class, Journal, Opened, Reader, Recovered};
use std::path::Path;
use std::sync::Arc;

/// A session, locked, repaired and folded. Nothing was executed and nothing written beyond what the store repaired.
pub struct Opening {
    journal: Journal,
    blobs: Blobs,
    state: State,
    desk: Desk,
    link: PodLink,
    rest: Rest,
}

/// What a pod's core does not keep of an opening.
pub struct Rest {
    pub(super) recovered: Recovered,
    pub(super) items: Vec<Item>,
    pub(super) closing: Vec<Record>,
}

impl Opening {
    /// Folds the session in `dir`. `end_survivors` ends processes left over from the session it is given and counts
    /// them; `now` is the wall clock in microseconds.
    ///
    /// # Errors
    /// The log does not read, or does not fold.
    pub fn of(dir: &Path, opened: Opened, now: u64, end_survivors: &dyn Fn(&str) -> u32) -> Result<Self, HostError> {
        let Opened { journal, blobs, recovered } = opened;
        let Survey { restored, closing } = survey(dir, &recovered, end_survivors, now)?;
        let Restored { state, items, .. } = restored;
        let desk = Desk::new(inbox());
        let link = PodLink::new(desk.line(), desk.keeper(), &state.features);
        Ok(Self { journal, blobs, state, desk, link, rest: Rest { recovered, items, closing } })
    }

    /// What features need to reach the pod that will be put on this session.
    #[must_use]
    pub fn link(&self) -> PodLink {
        self.link.clone()
    }

    /// Puts the parts on the session.
    pub fn core(self, parts: Parts) -> (Core, Rest) {
        let Self { journal, blobs, state, desk, link: _, rest } = self;
        let key: Arc<str> = format!("{}/{}", rest.recovered.session, rest.recovered.epoch).into();
        let Parts { registry, permission, model, callbacks, outbox, limits, probe } = parts;
        let store = Store { journal, blobs, key, probe };
        let callbacks = callbacks.noting(desk.line());
        (Core { store, state, registry, permission, model, callbacks, outbox, limits, desk }, rest)
    }
}

/// Closes what a crash left open, for whoever writes to a session without a turn. Executes nothing.
///
/// # Errors
/// The log does not fold, or the disk refuses.
pub async fn recover(
    dir: &Path,
    opened: &Opened,
    now: u64,
    end_survivors: &dyn Fn(&str) -> u32,
) -> Result<(), HostError> {
    let Survey { closing, .. } = survey(dir, &opened.recovered, end_survivors, now)?;
    if closing.is_empty() {
        return Ok(());
    }
    let done = opened.journal.append(Batch::of(closing)).await;
    done.map(drop).map_err(|refused| Fatal::Journal(refused.why.to_string()).into())
}

/// A log folded to its end, and the batch that closes it.
struct Survey {
    restored: Restored,
    closing: Vec<Record>,
}

/// Reads up to what the store proved when it opened the session: its HEAD is a hint, and may be older.
fn survey(
    dir: &Path,
    recovered: &Recovered,
    end_survivors: &dyn Fn(&str) -> u32,
    now: u64,
) -> Result<Survey, HostError> {
    if !recovered.existed {
        return Ok(Survey { restored: Restored::default(), closing: Vec::new() });
    }
    let restored = Restored::from_frames(Reader::open(dir)?.upto(recovered.last).frames())?;
    let class = match recovered.class {
        None => "clean",
        Some(Class::TornTail) => "torn_tail",
        Some(Class::ZeroTail) => "zero_tail",
        Some(Class::BadTail) => "bad_tail",
    };
    let name = recovered.quarantine.as_ref().and_then(|path| path.file_name());
    let found = Circumstances {
        class: class.to_owned(),
        cut_bytes: recovered.cut,
        quarantine: name.map(|name| name.to_string_lossy().into_owned()),
        // A host that left in good order ended its children, unless it wrote some off.
        ended_processes: if restored.state.hosted { end_survivors(&recovered.session) } else { 0 },
        now,
    };
    let closing = closing(&restored, &found);
    Ok(Survey { restored, closing })
}
