//! The state of a session for listings: the newest checkpoint and the records after it, without items.

use super::checkpoint;
use super::decode_lite::decode_lite;
use super::fold::SessionState;
use super::restore::{RestoreError, decode};
use crate::record::Record;
use session_store::{OwnedFrame, ReadError, Reader};

/// Up to this many records a log is checked whole for a listing, since that is cheap.
const SHORT: u64 = 200;

/// The first prompt of a longer log is looked for among this many records.
const HEAD: usize = 40;

/// The most bytes of a prompt that are kept.
const MAX_PROMPT: usize = 400;

/// A session folded to its end, without its items; `yoi ls` shows it.
#[derive(Debug, Default)]
pub struct Summary {
    pub state: SessionState,
    /// The newest record's clock, microseconds; 0 for an empty log.
    pub last_time: u64,
    /// The beginning of the first input.
    pub prompt: Option<String>,
}

impl Summary {
    /// Folds the records after the newest checkpoint. Records before it are checked only if the log is short. Without a
    /// checkpoint all records are folded, and `patience` is called for each.
    ///
    /// # Errors
    /// Damage, a body that cannot be read, or a record that does not follow from those before it.
    pub fn read(reader: &Reader, mut patience: impl FnMut()) -> Result<Self, RestoreError> {
        if let Some((kept, behind)) = reader.checkpoint()
            && let Some((state, last_time)) = checkpoint::state(kept.version(), kept.bytes())
        {
            let short = reader.durable() <= SHORT;
            let mut prompt = None;
            for frame in reader.frames().take(if short { usize::MAX } else { HEAD }) {
                match frame {
                    Ok(frame) => prompt = prompt.or_else(|| input(&frame)),
                    Err(error) if short => return Err(error.into()),
                    // Those at the end count.
                    Err(_) => break,
                }
                if !short && prompt.is_some() {
                    break;
                }
            }
            match (Self {
                state,
                last_time,
                prompt,
            })
            .fold(behind)
            {
                // The checkpoint may be wrong; the log decides.
                Err(RestoreError::Body { .. } | RestoreError::Illegal { .. }) => {}
                other => return other,
            }
        }
        Self::default().fold(reader.frames().inspect(|_| patience()))
    }

    fn fold(
        mut self,
        frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
    ) -> Result<Self, RestoreError> {
        for frame in frames {
            let frame = frame?;
            self.prompt = self.prompt.or_else(|| input(&frame));
            let illegal = |source| RestoreError::Illegal {
                seq: frame.seq,
                source,
            };
            self.state
                .apply_at(frame.time, &decode_lite(&frame)?)
                .map_err(illegal)?;
            self.last_time = self.last_time.max(frame.time);
        }
        Ok(self)
    }
}

/// The beginning of an input, if this is one.
fn input(frame: &OwnedFrame) -> Option<String> {
    if frame.kind != "input_queued" {
        return None;
    }
    match decode(frame) {
        Ok(Record::InputQueued(queued)) => {
            let end = queued.text.floor_char_boundary(MAX_PROMPT);
            queued.text.get(..end).map(str::to_owned)
        }
        Ok(_) | Err(_) => None,
    }
}
