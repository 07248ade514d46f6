//! The one thread that writes and syncs the log.
//!
//! A group is all batches queued during the previous flush: one write, one flush, one result for each batch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::commit::{BatchPosition, QueueEntry, QueuedBatch, Refusal};
use super::log::{Log, LogEnd};
use super::shared::{Shared, WriterRequest};
use crate::checkpoint::Checkpoint;
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{Chain, EncodeError, Encoder, MAX_BATCH_BYTES, RecordId};
use crate::ops::Ops;
use crate::session::head::Head;
use crate::session::lock::Lock;
use crate::session::{Clock, Options, Probe, reserve};

/// A group of this many bytes takes no further batch: a flush of that size takes well under a second.
const MAX_GROUP_BYTES: usize = MAX_BATCH_BYTES;
/// A group of this many batches takes no further one.
const MAX_GROUP: usize = 1024;

/// The parts that a writer is created from.
pub(crate) struct WriterParts {
    pub(crate) dir: PathBuf,
    pub(crate) place: LogEnd,
    pub(crate) head: DiskFile,
    pub(crate) lock: Lock,
}

pub(crate) struct Writer {
    ops: Ops,
    clock: Clock,
    probe: Probe,
    log: Log,
    head: DiskFile,
    reserve_free: bool,
    shared: Arc<Shared>,
    /// Released when the thread ends.
    _lock: Lock,
}

struct Group {
    encoder: Encoder,
    /// Of the segment that the group is written to.
    format: u32,
    batches: Vec<(Box<dyn QueuedBatch>, BatchPosition)>,
}

/// Marks the journal as closed when the thread ends, also by a panic.
struct CloseOnDrop(Arc<Shared>);

impl Writer {
    pub(crate) fn new(
        ops: Ops,
        options: &Options,
        session: String,
        start: WriterParts,
        shared: Arc<Shared>,
    ) -> Self {
        let WriterParts {
            dir,
            place,
            head,
            lock,
        } = start;
        let clock = Arc::clone(&options.clock);
        let probe = Arc::clone(&options.probe);
        let log = Log::new(ops.clone(), options, dir, session, place);
        Self {
            ops,
            clock,
            probe,
            log,
            head,
            reserve_free: false,
            shared,
            _lock: lock,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.log.directory()
    }

    pub(super) fn run(mut self, messages: &Receiver<WriterRequest>) {
        let _close = CloseOnDrop(Arc::clone(&self.shared));
        let mut next = messages.recv().ok();
        while let Some(message) = next.take() {
            match message {
                WriterRequest::Close => break,
                WriterRequest::Append(entry) if entry.reserved => {
                    self.reserved(entry.batch, entry.format)
                }
                WriterRequest::Append(entry) => next = self.gather(entry, messages),
                WriterRequest::Checkpoint(checkpoint) => self.keep(&checkpoint),
            }
            next = next.or_else(|| messages.recv().ok());
        }
        // Requests queued behind the end are refused, not dropped.
        for message in messages.try_iter() {
            match message {
                WriterRequest::Append(entry) => entry.batch.refuse(Refusal::Closed),
                WriterRequest::Close | WriterRequest::Checkpoint(_) => {}
            }
        }
    }

    /// Commits `entry` and the batches queued behind it as one group. Returns the first request that cannot be in the
    /// group: a group is in one segment, so a batch that asks for a higher format starts the next one.
    fn gather(
        &mut self,
        entry: QueueEntry,
        messages: &Receiver<WriterRequest>,
    ) -> Option<WriterRequest> {
        let mut group = match self.group(entry.format) {
            Ok(group) => group,
            Err(why) => {
                self.refuse(vec![entry.batch], &why);
                return None;
            }
        };
        self.add(&mut group, entry);
        if group.batches.is_empty() {
            // The group may have been of a format that no other batch asks for.
            return None;
        }
        let mut next = None;
        while group.encoder.bytes.len() < MAX_GROUP_BYTES && group.batches.len() < MAX_GROUP {
            match messages.try_recv() {
                Ok(WriterRequest::Append(entry))
                    if !entry.reserved && entry.format <= group.format =>
                {
                    self.add(&mut group, entry);
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let seal = self.log.seal(&mut group.encoder, group.format);
        match self.write(&group, seal.is_some()) {
            Ok(()) => {
                self.shared.suspended.store(false, Ordering::Release);
                self.refill();
                answer(group, seal);
            }
            Err(fault) => self.refuse(
                group.batches.into_iter().map(|(batch, _)| batch).collect(),
                &refusal(fault),
            ),
        }
        next
    }

    /// Commits one batch alone; frees the reserve if the disk is full.
    fn reserved(&mut self, batch: Box<dyn QueuedBatch>, format: u32) {
        let mut tried = self.alone(&*batch, format);
        if matches!(tried, Err(Refusal::Full(_)))
            && reserve::free(&self.ops, self.log.directory()).is_ok()
        {
            self.reserve_free = true;
            tried = self.alone(&*batch, format);
        }
        match tried {
            Ok(place) => batch.commit(place),
            Err(why) if why.unstorable() => batch.refuse(why),
            Err(why) => self.refuse(vec![batch], &why),
        }
    }

    fn alone(&mut self, batch: &dyn QueuedBatch, format: u32) -> Result<BatchPosition, Refusal> {
        let mut group = self.group(format)?;
        let place = batch.encode(&mut group.encoder).map_err(encoding)?;
        self.write(&group, false).map_err(refusal)?;
        Ok(place)
    }

    /// Starts an empty group at the end of the log, with the record that opens a segment of at least that format if one
    /// is needed.
    fn group(&self, format: u32) -> Result<Group, Refusal> {
        let format = format.max(self.log.format());
        let Chain {
            seq,
            crc,
            epoch: _,
            batch_left: _,
        } = self.log.chain();
        let mut encoder = Encoder::new(seq, crc, self.shared.epoch, seq, (self.clock)());
        self.log.begin(&mut encoder, format).map_err(encoding)?;
        Ok(Group {
            encoder,
            format,
            batches: Vec::new(),
        })
    }

    /// Adds a batch to the group. A batch that cannot be encoded is refused alone; one that was queued before a refusal
    /// is refused, too.
    fn add(&self, group: &mut Group, entry: QueueEntry) {
        if entry.generation < self.shared.generation.load(Ordering::SeqCst) {
            return self.refuse(vec![entry.batch], &Refusal::Behind);
        }
        match entry.batch.encode(&mut group.encoder) {
            Ok(place) => group.batches.push((entry.batch, place)),
            Err(error) => entry.batch.refuse(encoding(error)),
        }
    }

    /// Does one write and one flush, then updates the durable seq.
    fn write(&mut self, group: &Group, sealed: bool) -> Result<(), DiskFault> {
        (self.probe)("journal:encoded");
        self.log.write(&group.encoder, group.format, sealed)?;
        self.shared
            .durable
            .store(group.encoder.seq, Ordering::Release);
        self.hint();
        (self.probe)("journal:head");
        Ok(())
    }

    /// Writes HEAD, which tells readers and the next recovery how far the log is durable.
    pub(crate) fn hint(&self) {
        let (Chain { seq: durable, .. }, (segment, offset)) = (self.log.chain(), self.log.end());
        let head = Head {
            epoch: self.shared.epoch,
            durable,
            segment,
            offset,
        };
        // An outdated HEAD is still correct: recovery and readers only see fewer records as proven durable.
        drop(head.write(&self.ops, &self.head));
    }

    /// Stores a checkpoint. A failure is ignored: the caller makes another one at the next seal.
    fn keep(&self, checkpoint: &Checkpoint) {
        drop(checkpoint.write(&self.ops, self.log.directory()));
        (self.probe)("journal:checkpoint");
    }

    /// Refuses the batches. All refusals are counted before the first result is sent, so that no batch appended in
    /// between is committed before them.
    fn refuse(&self, mut batches: Vec<Box<dyn QueuedBatch>>, why: &Refusal) {
        if !matches!(why, Refusal::Behind) {
            self.shared.suspended.store(true, Ordering::Release);
        }
        for batch in &mut batches {
            batch.count_refusal();
        }
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        for batch in batches {
            batch.refuse(why.clone());
        }
    }

    fn refill(&mut self) {
        if self.reserve_free {
            self.reserve_free = reserve::ensure(&self.ops, self.log.directory()).is_err();
        }
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

fn answer(mut group: Group, seal: Option<RecordId>) {
    if let Some((_, last)) = group.batches.last_mut() {
        last.seal = seal;
    }
    for (batch, place) in group.batches {
        batch.commit(place);
    }
}

fn refusal(fault: DiskFault) -> Refusal {
    if fault.is_full() {
        Refusal::Full(fault)
    } else {
        Refusal::Disk(fault)
    }
}

fn encoding(error: EncodeError) -> Refusal {
    match error {
        EncodeError::TooLarge { .. } | EncodeError::TooMany { .. } => Refusal::TooLarge(error),
        EncodeError::Empty
        | EncodeError::Kind(_)
        | EncodeError::Body { .. }
        | EncodeError::Column(_)
        | EncodeError::Format(_)
        | EncodeError::Own(_) => Refusal::Encode(error),
    }
}
