//! The proof that a log says all a model ever saw: every request is rebuilt from the records before it and
//! compared with what was sent.

use super::record::{Encoder, Record, Request};
use super::restore::{RestoreError, Restored, decode};
use llm_worker::Item;
use llm_worker::projection::{Dialect, Neutral, Projection, Surface};
use session_store::{BlobView, Digest, OwnedFrame, ReadError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Finds the encoder a request was made with; `None` where this build has only another version.
pub type Dialects<'a> = &'a dyn Fn(&str, &Surface) -> Option<Arc<dyn Dialect>>;

/// What a check of a whole session found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Records read and folded.
    pub records: u64,
    /// Requests rebuilt.
    pub requests: u64,
    /// Of those, the ones whose exact bytes were rebuilt too.
    pub bodies: u64,
    /// Blobs read and compared with their names.
    pub blobs: u64,
    /// Requests whose bytes this build cannot make, with the reason, each reason once.
    pub notes: BTreeSet<String>,
    /// The first thing that is wrong; what stands before it is good.
    pub wrong: Option<Wrong>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// At which record.
    pub seq: u64,
    /// What differs.
    pub what: String,
}

/// Checks every frame, folds every record, rebuilds every request, reads every blob named.
#[must_use]
pub fn verify(
    frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
    blobs: &BlobView,
    dialects: Dialects<'_>,
) -> Verification {
    let mut replay = Replay { restored: Restored::default(), projection: None, seen: BTreeSet::new() };
    let mut found = Verification::default();
    for frame in frames {
        let at = found.records + 1;
        let step = frame.map_err(RestoreError::from).and_then(|frame| replay.take(&frame, dialects, &mut found));
        match step.map(|()| replay.blobs(blobs, &mut found)) {
            Ok(Ok(())) => found.records += 1,
            Ok(Err(what)) => {
                found.wrong = Some(Wrong { seq: at, what });
                return found;
            }
            Err(error) => {
                found.wrong = Some(Wrong { seq: at, what: error.to_string() });
                return found;
            }
        }
        if found.wrong.is_some() {
            return found;
        }
    }
    found
}

struct Replay {
    restored: Restored,
    projection: Option<Rebuilt>,
    seen: BTreeSet<Digest>,
}

/// The running request of one surface.
struct Rebuilt {
    projection: Projection,
    exact: Option<Encoder>,
    pushed: usize,
}

impl Replay {
    fn take(
        &mut self,
        frame: &OwnedFrame,
        dialects: Dialects<'_>,
        found: &mut Verification,
    ) -> Result<(), RestoreError> {
        let record = decode(frame)?;
        self.restored.take(frame.seq, frame.time, &record)?;
        if let Record::SurfaceSet(set) = &record {
            let dialect = dialects(&set.encoder.id, &set.surface);
            let exact = dialect.as_ref().map(|d| Encoder { id: d.id().to_owned(), version: d.version() });
            let projection = Projection::new(&set.surface, dialect.unwrap_or_else(|| Arc::new(Neutral)));
            self.projection = Some(Rebuilt { projection, exact, pushed: 0 });
        }
        if let Record::Request(request) = &record
            && let Some(what) = self.compare(request, found)
        {
            found.wrong = Some(Wrong { seq: frame.seq, what });
        }
        Ok(())
    }

    /// What of this request does not come out the same.
    fn compare(&mut self, request: &Request, found: &mut Verification) -> Option<String> {
        let Some(rebuilt) = &mut self.projection else { return Some("a request before any surface".to_owned()) };
        let items: &[Item] = self.restored.items.get(rebuilt.pushed..).unwrap_or_default();
        items.iter().for_each(|item| rebuilt.projection.push(item));
        rebuilt.pushed = self.restored.items.len();
        found.requests += 1;
        if request.projection != Neutral.version() {
            let (sent, have) = (request.projection, Neutral.version());
            found.notes.insert(format!("request not rebuilt: projection {sent}, have {have}"));
            return None;
        }
        let neutral = rebuilt.projection.neutral_digest();
        if neutral != request.neutral_digest {
            return Some(format!(
                "request {}: rebuilt digest {neutral}, sent {}",
                request.number, request.neutral_digest
            ));
        }
        let sent = &request.encoder;
        match &rebuilt.exact {
            Some(have) if have == sent => {
                let body = rebuilt.projection.body();
                if body.digest != request.body_digest || body.len != request.bytes {
                    let Request { number, body_digest, bytes, .. } = request;
                    let rebuilt = format!("{} of {} bytes", body.digest, body.len);
                    return Some(format!("request {number}: rebuilt body {rebuilt}, sent {body_digest} of {bytes}"));
                }
                found.bodies += 1;
            }
            have => {
                let have = have.as_ref().map_or_else(|| "none".to_owned(), |e| format!("/{}", e.version));
                found.notes.insert(format!("body not rebuilt: encoder {}/{}, have {have}", sent.id, sent.version));
            }
        }
        None
    }

    /// Reads the blobs that the newest records name and that were not read before.
    fn blobs(&mut self, blobs: &BlobView, found: &mut Verification) -> Result<(), String> {
        for stored in std::mem::take(&mut self.restored.stored) {
            if self.seen.insert(stored.digest) {
                let length = blobs.verify(&stored.digest).map_err(|e| e.to_string())?;
                if length != stored.bytes {
                    return Err(format!("blob {} has {length} bytes, {} were stored", stored.digest, stored.bytes));
                }
                found.blobs += 1;
            }
        }
        Ok(())
    }
}
