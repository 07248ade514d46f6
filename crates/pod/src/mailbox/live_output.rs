//! The newest output of the running calls, for people who watch. It is overwritten, never queued: a call costs its last
//! few KiB, whatever it prints and however many clients look, and no message. It is in no record and no request.

use llm_worker::CallId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Bytes of a call's output that are kept at least, once there are more than twice as many: the newest.
pub(crate) const KEPT: usize = 4 * 1024;

/// The outputs of all running calls of a pod. Clones share them.
#[derive(Clone, Debug)]
pub struct LiveOutputs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    calls: Mutex<BTreeMap<CallId, Arc<Mutex<Ring>>>>,
    changed: watch::Sender<()>,
}

/// When a call began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallOrigin {
    pub(crate) turn: u64,
    /// The newest request.
    pub(crate) request: u64,
    /// The newest record: that of its start or a later one.
    pub(crate) seq: u64,
}

/// The end of an output.
#[derive(Debug, Default)]
struct Ring {
    origin: CallOrigin,
    bytes: Vec<u8>,
    /// Bytes so far, with those that are gone.
    total: u64,
    /// How many of the newest ones were shown before they were final.
    ahead: usize,
    /// How often the call began again.
    again: u32,
}

impl Ring {
    /// Appends what is final, and what stays of the bytes behind it.
    fn push(&mut self, done: &[u8], settled: &[u8]) {
        let shown = std::mem::replace(&mut self.ahead, settled.len());
        self.append(done.get(shown.min(done.len())..).unwrap_or_default());
        self.append(
            settled
                .get(shown.saturating_sub(done.len())..)
                .unwrap_or_default(),
        );
    }

    fn append(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let new = bytes
            .get(bytes.len().saturating_sub(KEPT)..)
            .unwrap_or(bytes);
        if new.len() < bytes.len() {
            // What is kept has no gap.
            self.bytes.clear();
        } else if self.bytes.len() + new.len() > 2 * KEPT {
            let keep = KEPT - new.len();
            self.bytes.drain(..self.bytes.len().saturating_sub(keep));
        }
        self.bytes.extend_from_slice(new);
    }

    /// The text behind a place, and whether it is another text than the one that the place is in. The place moves on;
    /// a character whose rest has not come waits.
    fn read(&self, place: &mut Option<Place>) -> Option<(String, bool)> {
        let first = self.total - self.bytes.len() as u64;
        let known = place
            .filter(|place| place.again == self.again && (first..=self.total).contains(&place.at));
        let from = known.map_or(first, |place| place.at);
        let bytes = self.bytes.get(usize::try_from(from - first).ok()?..)?;
        let end = whole_end(bytes);
        if end.is_empty() && (known.is_some() || self.again == 0) {
            return None;
        }
        *place = Some(Place {
            again: self.again,
            at: from + end.len() as u64,
        });
        let text = if known.is_none() && from > 0 {
            whole_start(end)
        } else {
            end
        };
        Some((String::from_utf8_lossy(text).into_owned(), known.is_none()))
    }
}

/// How far a follower has read an output.
#[derive(Clone, Copy, Debug)]
struct Place {
    again: u32,
    at: u64,
}

impl LiveOutputs {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            calls: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }

    /// The output of a call that begins; it is there until this is dropped.
    pub(crate) fn begin(&self, call: CallId, origin: CallOrigin) -> LiveOutput {
        let ring = Arc::new(Mutex::new(Ring {
            origin,
            ..Ring::default()
        }));
        self.0.calls().insert(call, Arc::clone(&ring));
        LiveOutput {
            call,
            ring,
            shared: Arc::clone(&self.0),
        }
    }

    /// Follows the outputs from what is kept of them now.
    #[must_use]
    pub fn follow(&self) -> OutputFollower {
        let mut changed = self.0.changed.subscribe();
        changed.mark_changed();
        OutputFollower {
            changed,
            shared: Arc::clone(&self.0),
            places: BTreeMap::new(),
            waits: false,
        }
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<CallId, Arc<Mutex<Ring>>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a running call puts its output.
#[derive(Debug)]
pub(crate) struct LiveOutput {
    call: CallId,
    ring: Arc<Mutex<Ring>>,
    shared: Arc<Shared>,
}

impl LiveOutput {
    /// Adds what is final of an output, and what stays of the bytes that come next.
    pub(crate) fn write(&self, done: &[u8], settled: &[u8]) {
        lock(&self.ring).push(done, settled);
        self.shared.changed.send_replace(());
    }

    /// The tool runs again: its output begins anew.
    pub(crate) fn begin_again(&self) {
        let mut ring = lock(&self.ring);
        *ring = Ring {
            origin: ring.origin,
            again: ring.again + 1,
            ..Ring::default()
        };
        drop(ring);
        self.shared.changed.send_replace(());
    }
}

impl Drop for LiveOutput {
    fn drop(&mut self) {
        self.shared.calls().remove(&self.call);
    }
}

/// A part of a running call's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPart {
    pub call: CallId,
    pub turn: u64,
    /// The newest request when the call began.
    pub request: u64,
    pub text: String,
    /// It does not continue what was taken before.
    pub anew: bool,
}

/// One watcher's places in the outputs. What it does not take in time is gone.
#[derive(Debug)]
pub struct OutputFollower {
    changed: watch::Receiver<()>,
    shared: Arc<Shared>,
    places: BTreeMap<CallId, Option<Place>>,
    waits: bool,
}

impl OutputFollower {
    /// Waits until a call wrote since the last [`Self::take`]. Cancel-safe.
    pub async fn changed(&mut self) {
        // The sender lives as long as this.
        drop(self.changed.changed().await);
        self.changed.mark_changed();
    }

    /// Whether there is output of a call whose start was later than the newest record of the last [`Self::take`].
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What came of the calls whose start is known to one who has the records up to `newest`.
    pub fn take(&mut self, newest: u64) -> Vec<OutputPart> {
        self.changed.mark_unchanged();
        let calls = self.shared.calls().clone();
        self.places.retain(|call, _| calls.contains_key(call));
        self.waits = false;
        let mut parts = Vec::new();
        for (call, ring) in calls {
            let ring = lock(&ring);
            if ring.origin.seq > newest {
                self.waits |= ring.total > 0;
                continue;
            }
            if let Some((text, anew)) = ring.read(self.places.entry(call).or_default()) {
                let CallOrigin { turn, request, .. } = ring.origin;
                parts.push(OutputPart {
                    call,
                    turn,
                    request,
                    text,
                    anew,
                });
            }
        }
        parts
    }
}

fn lock(ring: &Mutex<Ring>) -> MutexGuard<'_, Ring> {
    ring.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes an incomplete character at the end.
pub(crate) fn whole_end(head: &[u8]) -> &[u8] {
    // A character that is cut has at most three bytes; what is not UTF-8 before it does not matter.
    let near = head.len().saturating_sub(3);
    let cut = (near..head.len()).find(|at| {
        let rest = head.get(*at..).unwrap_or_default();
        std::str::from_utf8(rest)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    head.get(..cut.unwrap_or(head.len())).unwrap_or(head)
}

/// Removes the rest of a cut character at the start: at most three bytes.
pub(crate) fn whole_start(tail: &[u8]) -> &[u8] {
    let rest = tail
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000)
        .count();
    tail.get(rest..).unwrap_or(tail)
}

#[cfg(test)]
mod tests;
