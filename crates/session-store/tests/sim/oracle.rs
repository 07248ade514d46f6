//! The oracle: what the store has acknowledged, refused and reported, compared with what it shows later.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use session_store::{BlobRef, Blobs, Checkpoint, OwnedFrame};

/// The notes of a batch that asks for format 2 begin with it.
pub(crate) const ASKS: &str = "asks ";

/// One batch of notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) texts: Vec<String>,
    /// Those of one round went out together.
    pub(crate) round: usize,
    /// Of the writer that had it acknowledged.
    epoch: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Oracle {
    /// Acknowledged, in order; must never be missing.
    pub(crate) committed: Vec<Batch>,
    /// Refused since the last acknowledgement: after a crash each may be in the log, whole, or not.
    maybe: Vec<Batch>,
    pub(crate) blobs: Vec<BlobRef>,
    /// What recovery has cut off.
    cuts: Vec<Vec<u8>>,
    /// Checkpoints given to the journal, by seq.
    checkpoints: BTreeMap<u64, Vec<u8>>,
}

impl Batch {
    pub(crate) fn new(texts: Vec<String>, round: usize) -> Self {
        Self {
            texts,
            round,
            epoch: None,
        }
    }

    /// What is behind it in `notes`, if they begin with it.
    fn take<'a>(&self, notes: &'a [Note]) -> Option<&'a [Note]> {
        let (mine, rest) = notes.split_at_checked(self.texts.len())?;
        let left = (0..self.texts.len() as u32).rev();
        let fits = |((note, text), left): ((&Note, &String), u32)| {
            note.text == *text
                && note.left == left
                && self.epoch.is_none_or(|epoch| epoch == note.epoch)
        };
        mine.iter()
            .zip(&self.texts)
            .zip(left)
            .all(fits)
            .then_some(rest)
    }
}

struct Note {
    text: String,
    left: u32,
    epoch: u32,
}

fn notes(frames: &[OwnedFrame]) -> Vec<Note> {
    let note = |frame: &OwnedFrame| {
        let body: serde_json::Value = serde_json::from_str(&frame.line).unwrap();
        Note {
            text: body["text"].as_str().unwrap().to_owned(),
            left: frame.batch_left,
            epoch: frame.epoch,
        }
    };
    frames
        .iter()
        .filter(|frame| frame.kind == "note")
        .map(note)
        .collect()
}

fn text_of(notes: &[Note]) -> String {
    notes
        .iter()
        .map(|note| format!("{}\n", note.text))
        .collect()
}

impl Oracle {
    pub(crate) fn acked(&mut self, batch: Batch, epoch: u32) {
        self.maybe.clear();
        self.committed.push(Batch {
            epoch: Some(epoch),
            ..batch
        });
    }

    pub(crate) fn refused(&mut self, batch: Batch) {
        if !self.maybe.contains(&batch) {
            self.maybe.push(batch);
        }
    }

    /// What everything so far comes to.
    pub(crate) fn fold(&self) -> Vec<u8> {
        self.committed
            .iter()
            .flat_map(|batch| &batch.texts)
            .flat_map(|text| format!("{text}\n").into_bytes())
            .collect()
    }

    pub(crate) fn checkpoint(&mut self, seq: u64) -> Vec<u8> {
        let fold = self.fold();
        self.checkpoints.insert(seq, fold.clone());
        fold
    }

    /// Compares all records that a new writer was shown; from here on they count as committed.
    pub(crate) fn shown(&mut self, frames: &[OwnedFrame]) -> Result<(), String> {
        let notes = notes(frames);
        let mut rest = notes.as_slice();
        for batch in &self.committed {
            let Some(after) = batch.take(rest) else {
                return Err(format!("lost or changed: {:.20}", batch.texts[0]));
            };
            rest = after;
        }
        for mut batch in std::mem::take(&mut self.maybe) {
            if let Some(after) = batch.take(rest) {
                batch.epoch = rest.first().map(|note| note.epoch);
                rest = after;
                self.committed.push(batch);
            }
        }
        let strange = rest
            .first()
            .map(|note| format!("part of a batch, or nobody's: {:.20}", note.text));
        strange.map_or(Ok(()), Err)
    }

    /// The newest segment's format. None is lower than the one before, notes that ask for 2 are in no other, and without
    /// such notes the format does not change.
    pub(crate) fn formats(frames: &[OwnedFrame]) -> Result<u64, String> {
        let mut format = 1;
        let mut asked = false;
        for frame in frames {
            let body: serde_json::Value = serde_json::from_str(&frame.line).unwrap();
            let text = body["text"].as_str().unwrap_or_default();
            if frame.kind == "segment" {
                let before = std::mem::replace(&mut format, body["format"].as_u64().unwrap());
                if format < before {
                    return Err(format!("format {format} after {before}"));
                }
                // The batch behind the first record of the log may have been torn.
                asked |= frame.seq == 1 && format == 2;
            }
            if text.starts_with(ASKS) {
                asked = true;
                if format < 2 {
                    return Err(format!("in a segment of format 1: {text:.20}"));
                }
            }
        }
        if format > 1 && !asked {
            Err("a segment of format 2 that no batch asked for".to_owned())
        } else {
            Ok(format)
        }
    }

    /// A reader beside the writer sees a prefix.
    pub(crate) fn read(&self, frames: &[OwnedFrame]) -> Result<(), String> {
        let text = text_of(&notes(frames));
        if self.fold().starts_with(text.as_bytes()) {
            Ok(())
        } else {
            Err("a reader saw what is not committed".into())
        }
    }

    /// A checkpoint and what follows it is everything.
    pub(crate) fn folded(
        &self,
        checkpoint: Option<&Checkpoint>,
        behind: &[OwnedFrame],
    ) -> Result<(), String> {
        let Some(checkpoint) = checkpoint else {
            return self.whole(&[], behind);
        };
        match self.checkpoints.get(&checkpoint.seq()) {
            Some(bytes) if bytes == checkpoint.bytes() && checkpoint.version() == 3 => {
                self.whole(bytes, behind)
            }
            Some(_) => Err("a checkpoint was changed".to_owned()),
            None => Err("a checkpoint that nobody handed in".to_owned()),
        }
    }

    fn whole(&self, before: &[u8], behind: &[OwnedFrame]) -> Result<(), String> {
        let all = [before, text_of(&notes(behind)).as_bytes()].concat();
        if all == self.fold() {
            Ok(())
        } else {
            Err("checkpoint and tail are not the log".to_owned())
        }
    }

    pub(crate) fn cut(&mut self, bytes: &[u8]) {
        self.cuts.push(bytes.to_vec());
    }

    /// What was cut off is in quarantine for ever, and says why.
    pub(crate) fn quarantined(&self, dir: &Path) -> Result<(), String> {
        let paths: Vec<PathBuf> = std::fs::read_dir(dir.join("quarantine"))
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        for cut in &self.cuts {
            let copy = paths.iter().find(|path| {
                path.extension().is_some_and(|e| e == "bytes")
                    && std::fs::read(path).unwrap() == *cut
            });
            let reason = copy.and_then(|path| std::fs::read(path.with_extension("json")).ok());
            let reason =
                reason.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
            if reason.is_none_or(|reason| reason["bytes"] != cut.len() as u64) {
                return Err(format!(
                    "{} bytes were cut off and are not in quarantine",
                    cut.len()
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn stored(&self, blobs: &Blobs) -> Result<(), String> {
        for blob in &self.blobs {
            if blobs.view().verify(&blob.digest) != Ok(blob.len) {
                return Err(format!("blob {} was stored and is not there", blob.digest));
            }
        }
        Ok(())
    }
}
