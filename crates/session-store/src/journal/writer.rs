//! The one thread that writes and syncs the log.
//!
//! ```text
//! open ──write refused──> open, to be shortened first ──shortened──> open
//! open ──sync refused───> poisoned ──next batch, in a new segment──> open
//! ```
//! A group is everything that was queued while the last one was being flushed: one write, one flush, one answer each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use std::ops::RangeInclusive;

use super::commit::{Entry, Refusal, Settle};
use super::{Message, Shared};
use crate::disk::DiskFile;
use crate::error::DiskFault;
use crate::frame::{Chain, EncodeError, Encoder, MAX_BATCH_BYTES};
use crate::ops::Ops;
use crate::session::head::Head;
use crate::session::lock::Lock;
use crate::session::segment::{self, End};
use crate::session::{Clock, Options, Probe, reserve};

/// A group takes no further batch above this: what one flush carries in well under a second.
const MAX_GROUP_BYTES: usize = MAX_BATCH_BYTES;
/// Nor above this many batches.
const MAX_GROUP: usize = 1024;

/// Where an opened log goes on.
pub(crate) struct Start {
    pub(crate) dir: PathBuf,
    pub(crate) file: DiskFile,
    pub(crate) first: u64,
    pub(crate) offset: u64,
    pub(crate) chain: Chain,
    pub(crate) head: DiskFile,
    pub(crate) lock: Lock,
}

pub(crate) struct Writer {
    ops: Ops,
    dir: PathBuf,
    clock: Clock,
    probe: Probe,
    session: String,
    tail: Tail,
    /// First seq of the newest segment and its proven bytes.
    first: u64,
    offset: u64,
    /// The last proven record.
    chain: Chain,
    head: DiskFile,
    reserve_free: bool,
    shared: Arc<Shared>,
    /// Let go when the thread ends.
    _lock: Lock,
}

enum Tail {
    Open(DiskFile),
    /// Bytes of a refused group stand behind `offset`.
    Longer(DiskFile),
    /// A flush failed: nothing more goes through that descriptor.
    Poisoned,
}

/// What one flush makes durable.
struct Group {
    encoder: Encoder,
    batches: Vec<(Box<dyn Settle>, RangeInclusive<u64>)>,
}

/// Tells everybody that the thread is gone, however it went.
struct Ended(Arc<Shared>);

impl Writer {
    pub(crate) fn new(ops: Ops, options: &Options, session: String, start: Start, shared: Arc<Shared>) -> Self {
        let Start { dir, file, first, offset, chain, head, lock } = start;
        let (clock, probe) = (Arc::clone(&options.clock), Arc::clone(&options.probe));
        let tail = Tail::Open(file);
        Self {
            ops,
            dir,
            clock,
            probe,
            session,
            tail,
            first,
            offset,
            chain,
            head,
            reserve_free: false,
            shared,
            _lock: lock,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.dir
    }

    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let _ended = Ended(Arc::clone(&self.shared));
        let mut next = messages.recv().ok();
        while let Some(message) = next.take() {
            match message {
                Message::Close => break,
                Message::Append(entry) if entry.reserved => self.reserved(entry.batch),
                Message::Append(entry) => next = self.gather(entry, messages),
            }
            next = next.or_else(|| messages.recv().ok());
        }
        // What was queued behind the end is answered, not dropped.
        for message in messages.try_iter() {
            match message {
                Message::Append(entry) => entry.batch.refuse(Refusal::Closed),
                Message::Close => {}
            }
        }
    }

    /// Commits `entry` and what waits behind it. Gives back the message that belongs to no group.
    fn gather(&mut self, entry: Entry, messages: &Receiver<Message>) -> Option<Message> {
        let mut group = match self.group() {
            Ok(group) => group,
            Err(why) => {
                self.refuse(vec![entry.batch], &why);
                return None;
            }
        };
        self.add(&mut group, entry);
        let mut next = None;
        while group.encoder.bytes.len() < MAX_GROUP_BYTES && group.batches.len() < MAX_GROUP {
            match messages.try_recv() {
                Ok(Message::Append(entry)) if !entry.reserved => self.add(&mut group, entry),
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        if group.batches.is_empty() {
            return next;
        }
        match self.write(&group.encoder) {
            Ok(()) => {
                self.shared.suspended.store(false, Ordering::Release);
                self.answer(group);
                self.refill();
            }
            Err(fault) => self.refuse(group.batches.into_iter().map(|(batch, _)| batch).collect(), &refusal(fault)),
        }
        next
    }

    /// One batch alone, with the reserve's help.
    fn reserved(&mut self, batch: Box<dyn Settle>) {
        let mut tried = self.alone(&*batch);
        if matches!(tried, Err(Refusal::Full(_))) && reserve::free(&self.ops, &self.dir).is_ok() {
            self.reserve_free = true;
            tried = self.alone(&*batch);
        }
        match tried {
            Ok(seqs) => batch.commit(seqs),
            Err(why) if unstorable(&why) => batch.refuse(why),
            Err(why) => self.refuse(vec![batch], &why),
        }
    }

    fn alone(&mut self, batch: &dyn Settle) -> Result<RangeInclusive<u64>, Refusal> {
        let mut group = self.group()?;
        let seqs = batch.encode(&mut group.encoder).map_err(encoding)?;
        self.write(&group.encoder).map_err(refusal)?;
        Ok(seqs)
    }

    /// An empty group at the end of the log, with the record that opens the segment if it needs one.
    fn group(&self) -> Result<Group, Refusal> {
        let Chain { seq, crc, epoch: _, batch_left: _ } = self.chain;
        let mut encoder = Encoder::new(seq, crc, self.shared.epoch, seq, (self.clock)());
        match self.tail {
            Tail::Open(_) | Tail::Longer(_) if self.offset > 0 => {}
            Tail::Open(_) | Tail::Longer(_) => segment::open(&mut encoder, &self.session, None).map_err(encoding)?,
            Tail::Poisoned => segment::open(&mut encoder, &self.session, self.end()).map_err(encoding)?,
        }
        Ok(Group { encoder, batches: Vec::new() })
    }

    fn end(&self) -> Option<End> {
        let Chain { seq, crc, epoch: _, batch_left: _ } = self.chain;
        (seq > 0).then_some(End { first: self.first, offset: self.offset, seq, crc })
    }

    /// A batch that cannot be encoded is refused alone; one that follows a refusal is refused with it.
    fn add(&self, group: &mut Group, entry: Entry) {
        if entry.generation < self.shared.generation.load(Ordering::SeqCst) {
            return self.refuse(vec![entry.batch], &Refusal::Behind);
        }
        match entry.batch.encode(&mut group.encoder) {
            Ok(seqs) => group.batches.push((entry.batch, seqs)),
            Err(error) => entry.batch.refuse(encoding(error)),
        }
    }

    /// One write and one flush. On refusal the log is what it was before, in memory and as far as possible on disk.
    fn write(&mut self, encoder: &Encoder) -> Result<(), DiskFault> {
        (self.probe)("journal:encoded");
        let epoch = encoder.epoch;
        let chain = Chain { seq: encoder.seq, crc: encoder.crc, epoch, batch_left: 0 };
        match std::mem::replace(&mut self.tail, Tail::Poisoned) {
            Tail::Poisoned => {
                self.new_segment(&encoder.bytes)?;
                (self.first, self.offset) = (self.chain.seq + 1, encoder.bytes.len() as u64);
            }
            Tail::Longer(file) => match self.ops.truncate(&file, self.offset) {
                Ok(()) => self.extend(file, &encoder.bytes)?,
                Err(fault) => {
                    self.tail = Tail::Longer(file);
                    return Err(fault);
                }
            },
            Tail::Open(file) => self.extend(file, &encoder.bytes)?,
        }
        self.chain = chain;
        self.shared.durable.store(chain.seq, Ordering::Release);
        self.hint();
        (self.probe)("journal:head");
        Ok(())
    }

    fn extend(&mut self, file: DiskFile, bytes: &[u8]) -> Result<(), DiskFault> {
        if let Err(fault) = self.ops.write_at(&file, bytes, self.offset) {
            let shortened = self.ops.truncate(&file, self.offset).is_ok();
            self.tail = if shortened { Tail::Open(file) } else { Tail::Longer(file) };
            return Err(fault);
        }
        (self.probe)("journal:written");
        if let Err(fault) = self.ops.sync(&file) {
            // Only so that a crash before the new segment finds less; the log does not rely on it.
            drop(self.ops.truncate(&file, self.offset));
            return Err(fault);
        }
        (self.probe)("journal:synced");
        self.tail = Tail::Open(file);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// A segment gets its name when it is whole and durable; one that failed is made anew from nothing.
    fn new_segment(&mut self, bytes: &[u8]) -> Result<(), DiskFault> {
        let path = segment::path(&self.dir, self.chain.seq + 1);
        let unnamed = path.with_extension("tmp");
        let mut file = self.ops.create_afresh(&unnamed)?;
        self.ops.write_at(&file, bytes, 0)?;
        (self.probe)("journal:written");
        self.ops.sync(&file)?;
        self.ops.rename(&unnamed, &path)?;
        self.ops.sync_dir(&segment::log(&self.dir))?;
        (self.probe)("journal:synced");
        file.path = path;
        self.tail = Tail::Open(file);
        Ok(())
    }

    /// Says how far the log is durable, to readers and to the next recovery.
    pub(crate) fn hint(&self) {
        let Chain { seq: durable, .. } = self.chain;
        let head = Head { epoch: self.shared.epoch, durable, segment: self.first, offset: self.offset };
        // An old HEAD is a true one: recovery and readers only see less of what was proven.
        drop(head.write(&self.ops, &self.head));
    }

    fn answer(&self, group: Group) {
        for (batch, seqs) in group.batches {
            batch.commit(seqs);
        }
    }

    /// Every refusal counts before the first is answered, so that nothing appended in between overtakes another.
    fn refuse(&self, mut batches: Vec<Box<dyn Settle>>, why: &Refusal) {
        if !matches!(why, Refusal::Behind) {
            self.shared.suspended.store(true, Ordering::Release);
        }
        for batch in &mut batches {
            batch.doom();
        }
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        for batch in batches {
            batch.refuse(why.clone());
        }
    }

    fn refill(&mut self) {
        if self.reserve_free {
            self.reserve_free = reserve::ensure(&self.ops, &self.dir).is_err();
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

fn refusal(fault: DiskFault) -> Refusal {
    if fault.is_full() { Refusal::Full(fault) } else { Refusal::Disk(fault) }
}

fn encoding(error: EncodeError) -> Refusal {
    match error {
        EncodeError::TooLarge { .. } | EncodeError::TooMany { .. } => Refusal::TooLarge(error),
        EncodeError::Empty
        | EncodeError::Kind(_)
        | EncodeError::Body { .. }
        | EncodeError::Column(_)
        | EncodeError::Own(_) => Refusal::Encode(error),
    }
}

/// The batch's own fault: it says nothing about the disk or about the batches around it.
pub(super) fn unstorable(why: &Refusal) -> bool {
    matches!(why, Refusal::TooLarge(_) | Refusal::Encode(_))
}
