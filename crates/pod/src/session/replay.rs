//! Proves that the log contains all that a model got: every request is rebuilt from the records before it and compared
//! with the sent one. Does not depend on models.

use super::fold::SessionState;
use super::references;
use super::restore::{RestoreError, decode};
use super::view::project;
use crate::record::{Encoder, Gap, Record, Request, Stored};
use llm_worker::Item;
use llm_worker::projection::{Dialect, Neutral, Projection, Surface};
use session_store::{BlobError, BlobRef, BlobView, Digest, OwnedFrame, ReadError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Finds the encoder of a request; `None` if this build has only another version.
pub type Dialects<'a> = &'a dyn Fn(&str, &Surface) -> Option<Arc<dyn Dialect>>;

/// The result of checking a whole session, for `yoi verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    pub records: u64,
    pub requests: u64,
    /// Of these, requests whose exact bytes were rebuilt too.
    pub bodies: u64,
    /// Blobs read and compared with their names.
    pub blobs: u64,
    /// Full outputs that were removed and may be: the quota on blobs removes the oldest.
    pub dropped: u64,
    /// Requests behind lost records, which cannot be rebuilt.
    pub beyond: u64,
    /// Reasons why this build cannot rebuild the bytes of some requests, each once; and lost records.
    pub notes: BTreeSet<String>,
    /// The first error; everything before it is valid.
    pub wrong: Option<Wrong>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub seq: u64,
    pub what: String,
}

/// Checks every frame, folds every record, rebuilds every request, reads every blob that a record names. `frames` reads
/// the log from its first record: once, and once more up to each later surface and to the first change of the view. In
/// memory is one record at a time; from that change on also the items of the view, which the context window bounds.
/// `bound` is the limit on the bytes of the session's blobs.
#[must_use]
pub fn verify<I: Iterator<Item = Result<OwnedFrame, ReadError>>>(
    frames: impl Fn() -> I,
    blobs: &BlobView,
    dialects: Dialects<'_>,
    bound: u64,
) -> Verification {
    let mut replay = Replay::default();
    let mut found = Verification::default();
    for frame in frames() {
        let at = found.records + 1;
        let step = frame
            .map_err(RestoreError::from)
            .and_then(|frame| replay.take(&frame, &frames, dialects, &mut found));
        match step
            .map_err(|error| error.to_string())
            .and_then(|()| replay.blobs(blobs, &mut found))
        {
            Ok(()) => found.records += 1,
            Err(what) => {
                found.wrong = Some(Wrong { seq: at, what });
                return found;
            }
        }
        if found.wrong.is_some() {
            return found;
        }
    }
    replay.end(bound, &mut found);
    found
}

fn fold(state: &mut SessionState, seq: u64, record: &Record) -> Result<Vec<Item>, RestoreError> {
    state
        .apply(record)
        .map_err(|source| RestoreError::Illegal { seq, source })
}

/// Passes on the items before a record.
fn before(
    frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
    seq: u64,
    mut each: impl FnMut(Item),
) -> Result<(), RestoreError> {
    let mut state = SessionState::default();
    for frame in frames {
        let frame = frame?;
        if frame.seq >= seq {
            break;
        }
        fold(&mut state, frame.seq, &decode(&frame)?)?
            .into_iter()
            .for_each(&mut each);
    }
    Ok(())
}

#[derive(Default)]
struct Replay {
    state: SessionState,
    /// Every item as the view shows it; none while the view shows all of them whole.
    items: Option<Vec<Item>>,
    projection: Option<Rebuilt>,
    /// The version of the order of the newest request's items; 0 before the first.
    order: u16,
    /// Blobs that were checked.
    seen: BTreeSet<Digest>,
    /// Blobs that the newest record names.
    named: Vec<Stored>,
    /// Missing blobs, by the first record that names them.
    missing: Vec<(u64, Digest)>,
}

/// The running request of one surface.
struct Rebuilt {
    projection: Projection,
    /// The version of the order of its items.
    order: u16,
    exact: Option<Encoder>,
}

impl Rebuilt {
    fn of(surface: &Surface, encoder: &Encoder, dialects: Dialects<'_>, order: u16) -> Self {
        let dialect = dialects(&encoder.id, surface);
        let exact = dialect.as_ref().map(|d| Encoder {
            id: d.id().to_owned(),
            version: d.version(),
        });
        let projection =
            Projection::measured(surface, dialect.unwrap_or_else(|| Arc::new(Neutral)));
        Self {
            projection: projection.ordered_as(order),
            order,
            exact,
        }
    }
}

impl Replay {
    fn take<I: Iterator<Item = Result<OwnedFrame, ReadError>>>(
        &mut self,
        frame: &OwnedFrame,
        frames: &impl Fn() -> I,
        dialects: Dialects<'_>,
        found: &mut Verification,
    ) -> Result<(), RestoreError> {
        let record = decode(frame)?;
        let before_view = self.state.shown.clone();
        let items = fold(&mut self.state, frame.seq, &record)?;
        if let Some(rebuilt) = &mut self.projection {
            items.iter().for_each(|item| rebuilt.projection.push(item));
        }
        if let Some(all) = &mut self.items {
            all.extend(items);
        } else if self.state.shown != before_view {
            let mut all = Vec::new();
            before(frames(), frame.seq, |item| all.push(item))?;
            self.items = Some(all);
        }
        self.named.extend(record.stored().cloned());
        let files = record.attachments().iter().map(|file| BlobRef {
            digest: file.digest,
            len: file.bytes,
        });
        self.named.extend(files.map(Stored::from));
        let left = self
            .items
            .as_mut()
            .and_then(|items| project(&record, &before_view, &self.state, items));
        if left.is_some() || matches!(record, Record::SurfaceSet(_)) {
            self.rebuild(frame.seq, frames, dialects)?;
        }
        if let (Record::Request(request), Some(rebuilt)) = (&record, &self.projection)
            && (Projection::BY_ARRIVAL..=Projection::VERSION).contains(&request.projection)
            && rebuilt.order != request.projection
        {
            // Another version of yoi wrote what follows.
            self.order = request.projection;
            self.rebuild(frame.seq, frames, dialects)?;
        }
        if let (Record::Pruned(pruned), Some(left)) = (&record, left)
            && pruned.left != left
        {
            let what = "what left the requests is not what the record says".to_owned();
            found.wrong = Some(Wrong {
                seq: frame.seq,
                what,
            });
        }
        if let Record::Gap(Gap {
            first,
            last,
            reason,
        }) = &record
            && let Some(why) = reason
        {
            let lost = if first == last {
                format!("record {first} is")
            } else {
                format!("records {first} to {last} are")
            };
            found.notes.insert(format!(
                "{lost} lost: this pod was restored from a damaged journal ({why})"
            ));
        }
        if let Record::Request(request) = &record
            && let Some(what) = self.compare(request, found)
        {
            found.wrong = Some(Wrong {
                seq: frame.seq,
                what,
            });
        }
        Ok(())
    }

    /// Begins the running request anew, with the items before a record as the view shows them.
    fn rebuild<I: Iterator<Item = Result<OwnedFrame, ReadError>>>(
        &mut self,
        seq: u64,
        frames: &impl Fn() -> I,
        dialects: Dialects<'_>,
    ) -> Result<(), RestoreError> {
        let Some((surface, encoder)) = &self.state.surface else {
            return Ok(());
        };
        let order = if self.order == 0 {
            Projection::VERSION
        } else {
            self.order
        };
        let mut rebuilt = Rebuilt::of(surface, encoder, dialects, order);
        match &self.items {
            Some(items) => items.iter().for_each(|item| rebuilt.projection.push(item)),
            None if self.state.items > 0 => {
                before(frames(), seq, |item| rebuilt.projection.push(&item))?
            }
            None => {}
        }
        self.projection = Some(rebuilt);
        Ok(())
    }

    /// The difference between this request and the rebuilt one.
    fn compare(&mut self, request: &Request, found: &mut Verification) -> Option<String> {
        if self.state.lost.is_some() {
            found.beyond += 1;
            return None;
        }
        let Some(rebuilt) = &mut self.projection else {
            return Some("a request has no surface before it".to_owned());
        };
        found.requests += 1;
        if request.projection != rebuilt.order {
            let sent = request.projection;
            let have = Projection::VERSION;
            found.notes.insert(format!("a request was not rebuilt: it was made with version {sent} of the projection; this yoi has version {have}"));
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
                    let Request {
                        number,
                        body_digest,
                        bytes,
                        ..
                    } = request;
                    let rebuilt = format!("{} of {} bytes", body.digest, body.len);
                    return Some(format!(
                        "request {number}: rebuilt body {rebuilt}, sent {body_digest} of {bytes}"
                    ));
                }
                found.bodies += 1;
            }
            have => {
                let have = have.as_ref().map_or_else(
                    || "no such encoder".to_owned(),
                    |e| format!("version {}", e.version),
                );
                let made = format!("version {} of the encoder `{}`", sent.version, sent.id);
                found.notes.insert(format!(
                    "a request was not rebuilt: it was made with {made}; this yoi has {have}"
                ));
            }
        }
        None
    }

    /// Reads the blobs that the newest records name and that were not read before.
    fn blobs(&mut self, blobs: &BlobView, found: &mut Verification) -> Result<(), String> {
        for stored in std::mem::take(&mut self.named) {
            if self.seen.insert(stored.digest) {
                let length = match blobs.verify(&stored.digest) {
                    Err(BlobError::Missing(digest)) => {
                        self.missing.push((found.records + 1, digest));
                        continue;
                    }
                    other => other.map_err(|e| e.to_string())?,
                };
                if length != stored.bytes {
                    return Err(format!(
                        "blob {} has {length} bytes, {} were stored",
                        stored.digest, stored.bytes
                    ));
                }
                found.blobs += 1;
            }
        }
        Ok(())
    }

    /// A missing blob is not an error if the final state does not reference it: the quota may have removed it.
    fn end(&self, bound: u64, found: &mut Verification) {
        let kept = references::of(&self.state, bound);
        let gone = self
            .missing
            .iter()
            .find(|(_, digest)| kept.contains(digest));
        found.dropped = self
            .missing
            .iter()
            .filter(|(_, digest)| !kept.contains(digest))
            .count() as u64;
        found.wrong = gone.map(|(seq, digest)| Wrong {
            seq: *seq,
            what: BlobError::Missing(*digest).to_string(),
        });
        if found.dropped > 0 {
            found.notes.insert(match found.dropped {
                1 => {
                    "1 data file was deleted, because the pod reached its storage limit".to_owned()
                }
                more => format!(
                    "{more} data files were deleted, because the pod reached its storage limit"
                ),
            });
        }
        if found.beyond > 0 {
            found.notes.insert(match found.beyond {
                1 => "1 request that depends on lost records was not rebuilt".to_owned(),
                more => format!("{more} requests that depend on lost records were not rebuilt"),
            });
        }
    }
}
