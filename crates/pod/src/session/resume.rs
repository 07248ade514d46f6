//! Folds a session that was just opened: its newest checkpoint, and only the records after it. Does not depend on
//! locks.

use super::checkpoint::{CheckpointBuilder, VERSION};
use super::decode_lite::decode_lite;
use super::restore::{RestoreError, Restored};
use crate::record::Record;
use session_store::{Journal, OwnedFrame, ReadError, RecordId, SessionRecords};

/// A session folded to its end by the process that holds its lock.
#[derive(Debug)]
pub struct ResumedSession {
    /// The folded session.
    pub restored: Restored,
    /// The builder of the next checkpoint.
    pub draft: CheckpointBuilder,
    /// A checkpoint at the newest seal that was folded, since none was stored for it.
    checkpoint: Option<(RecordId, Vec<u8>)>,
}

/// Folds the records after the newest checkpoint; all records if there is none of this version.
///
/// # Errors
/// As [`Restored::from_frames`]. After a checkpoint, a record that does not fit may also mean that the checkpoint is
/// wrong.
pub fn resume(past: SessionRecords) -> Result<ResumedSession, RestoreError> {
    let begun = past
        .checkpoint()
        .and_then(|kept| CheckpointBuilder::read(kept.version(), kept.bytes()));
    match begun {
        Some((restored, draft)) => fold(restored, draft, past.behind_checkpoint()),
        None => everything(past.all()),
    }
}

/// Folds all records.
///
/// # Errors
/// As [`Restored::from_frames`].
pub fn everything(
    frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
) -> Result<ResumedSession, RestoreError> {
    let restored = Restored::default();
    let draft = CheckpointBuilder::of(&restored);
    fold(restored, draft, frames)
}

fn fold(
    mut restored: Restored,
    mut draft: CheckpointBuilder,
    frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
) -> Result<ResumedSession, RestoreError> {
    let mut checkpoint = None;
    for frame in frames {
        let frame = frame?;
        let record = decode_lite(&frame)?;
        let known = restored.items.len();
        let before = restored.state.shown.clone();
        restored.take(frame.seq, frame.time, &record)?;
        let added = restored.items.get(known..).unwrap_or_default();
        draft.take(added, frame.time, matches!(record, Record::ToolStarted(_)));
        draft.change_view(&record, &before, &restored.state);
        if frame.kind == "seal" {
            checkpoint = draft
                .bytes(&restored.state)
                .map(|bytes| (RecordId::of(&frame), bytes));
        }
    }
    Ok(ResumedSession {
        restored,
        draft,
        checkpoint,
    })
}

impl ResumedSession {
    /// Stores the checkpoint that was missing.
    pub fn keep(&mut self, journal: &Journal) {
        if let Some((mark, bytes)) = self.checkpoint.take() {
            journal.checkpoint(mark, VERSION, bytes);
        }
    }
}
