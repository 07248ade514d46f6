//! One seed: a session, its callers, and everything that happens to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use session_store::{
    EncodeError, Frames, Journal, OpenError, Opened, Options, OwnedFrame, Reader, RecordId,
    Records, Refusal, Session, SessionRecords,
};

use crate::bit_rot;
use crate::dice::Dice;
use crate::lying_store::Lie;
use crate::machine::{EIO, ENOSPC, Fault, Machine};
use crate::oracle::{ASKS, Batch, Oracle};

/// About as many operations as it takes to open a session.
const OPENING: usize = 24;
/// More than most lives have behind that, so that some faults never come.
const WORKING: usize = 50;

pub(crate) struct World {
    seed: u64,
    machine: Arc<Machine>,
    dice: Dice,
    lie: Lie,
    oracle: Oracle,
    batches: usize,
    rounds: usize,
    sums: Sums,
}

/// What came to pass.
#[derive(Default, Debug)]
pub(crate) struct Sums(BTreeMap<&'static str, usize>);

impl Sums {
    fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        other
            .0
            .iter()
            .for_each(|(what, n)| *self.0.entry(what).or_default() += n);
    }

    /// Each kind of thing came often enough to mean something.
    pub(crate) fn worth(&self) {
        for what in [
            "acknowledged",
            "refused",
            "suspended",
            "killed",
            "power cut",
            "cut off",
            "kept",
            "sealed",
            "checkpoint",
            "blob",
            "second writer",
            "reader",
            "opening failed",
            "format 2",
            "rotten",
        ] {
            assert!(
                self.0.get(what).is_some_and(|n| *n >= 50),
                "{what}: {self:?}"
            );
        }
    }
}

struct Notes {
    texts: Vec<String>,
    /// Holds the group open until everything that belongs to it is queued.
    gate: Mutex<Option<Receiver<()>>>,
}

#[derive(Serialize)]
struct Note<'a> {
    text: &'a str,
}

impl Records for Notes {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        if let Some(gate) = self.gate.lock().unwrap().take() {
            // Closed means open.
            gate.recv().ok();
        }
        self.texts
            .iter()
            .try_for_each(|text| frames.record("note", 1, &Note { text }).map(drop))
    }

    fn format(&self) -> u32 {
        if self.texts.iter().any(|text| text.starts_with(ASKS)) {
            2
        } else {
            1
        }
    }
}

/// Files of the log and their bytes.
pub(crate) fn log(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(dir.join("log")) else {
        return BTreeMap::new();
    };
    let paths = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    paths
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

impl World {
    pub(crate) fn new(seed: u64, lie: Lie) -> Self {
        let dice = Dice::new(seed);
        let machine = Arc::new(Machine::new(Dice::new(!seed), lie));
        Self {
            seed,
            machine,
            dice,
            lie,
            oracle: Oracle::default(),
            batches: 0,
            rounds: 0,
            sums: Sums::default(),
        }
    }

    /// All of its lives; the first property that does not hold ends it.
    pub(crate) fn live(mut self) -> Result<Sums, String> {
        for _ in 0..2 + self.dice.below(4) {
            let faults = self.faults();
            self.machine.start(faults);
            self.life()?;
            if self.machine.dead() {
                self.sums.count("killed");
            }
            if self.dice.chance(110) {
                self.power_cut();
            }
        }
        self.machine.start(Vec::new());
        self.life()?;
        if self.dice.chance(80) {
            self.sums.count("rotten");
            let dir = self.dir();
            let options = self.options();
            bit_rot::flip(&mut self.dice, &dir, &self.oracle, options)?;
        }
        Ok(self.sums)
    }

    fn dir(&self) -> PathBuf {
        self.machine.root().join("one")
    }

    fn faults(&mut self) -> Vec<(usize, Fault)> {
        let count = [0, 1, 1, 1, 2][self.dice.below(5)];
        let mut one = || {
            let fault = match self.dice.below(7) {
                1 if !self.lie.one_segment() => Fault::Error(EIO),
                2 if !self.lie.one_segment() => Fault::Error(ENOSPC),
                3 | 5 if !self.lie.one_segment() => Fault::Last(EIO),
                4 => Fault::Full,
                _ => Fault::Kill,
            };
            let opening = self.dice.chance(64);
            let at = if opening {
                self.dice.below(OPENING)
            } else {
                OPENING + self.dice.below(WORKING)
            };
            (at, fault)
        };
        (0..count).map(|_| one()).collect()
    }

    fn options(&mut self) -> Options {
        let clock = Arc::new(|| 1_790_000_000_000_000);
        let sizes = if self.lie.one_segment() {
            [1 << 30; 4]
        } else {
            [600, 2000, 6000, 1 << 30]
        };
        let segment_bytes = sizes[self.dice.below(4)];
        Options {
            disk: self.machine.clone(),
            segment_bytes,
            ..Options::new("s-1", clock)
        }
    }

    fn power_cut(&mut self) {
        self.sums.count("power cut");
        let lie = self.lie;
        let machine =
            std::mem::replace(&mut self.machine, Arc::new(Machine::new(Dice::new(0), lie)));
        self.machine = Arc::new(Arc::into_inner(machine).unwrap().restarted());
    }

    /// A process opens the session, works, and ends or is ended.
    fn life(&mut self) -> Result<(), String> {
        for again in [true, false] {
            let Some(opened) = self.enter()? else {
                return Ok(());
            };
            if again && self.dice.chance(64) {
                // What recovery made is what the next one finds.
                opened.journal.close();
                continue;
            }
            self.work(&opened)?;
            opened.journal.close();
            break;
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<Option<Opened>, String> {
        let dir = self.dir();
        let options = self.options();
        let before = log(&dir);
        self.machine.opening(true);
        let entered = match Session::resume(&dir, options.clone()) {
            Err(OpenError::NoSuch(_))
                if self.oracle.committed.is_empty() && self.oracle.blobs.is_empty() =>
            {
                Session::create(&dir, options).map(|opened| (opened, None))
            }
            other => other.map(|(opened, past)| (opened, Some(past))),
        };
        self.machine.opening(false);
        match entered {
            Ok((opened, past)) => {
                self.found(&before, &opened, past)?;
                Ok(Some(opened))
            }
            Err(OpenError::Disk(_)) if !self.machine.healthy() => {
                self.sums.count("opening failed");
                // It may have cut something off before.
                let after = log(&dir);
                for (path, was) in &before {
                    let is = after.get(path).ok_or("a segment is gone")?;
                    if let Some(cut) = was.get(is.len()..).filter(|cut| !cut.is_empty()) {
                        self.oracle.cut(cut);
                        self.oracle.quarantined(&dir)?;
                    }
                }
                Ok(None)
            }
            Err(error) => Err(format!("it does not open: {error}")),
        }
    }

    /// Compares what an opened session shows with what was told.
    fn found(
        &mut self,
        before: &BTreeMap<PathBuf, Vec<u8>>,
        opened: &Opened,
        past: Option<SessionRecords>,
    ) -> Result<(), String> {
        let dir = self.dir();
        let recovered = &opened.recovered;
        if recovered.cut > 0 {
            self.sums.count("cut off");
            let newest = before
                .last_key_value()
                .map(|(_, bytes)| bytes.as_slice())
                .unwrap_or_default();
            self.oracle
                .cut(newest.split_at(newest.len() - recovered.cut as usize).1);
        }
        let all: Vec<OwnedFrame> = match Reader::open(&dir) {
            Ok(reader) => reader
                .upto(recovered.last)
                .frames()
                .collect::<Result<_, _>>()
                .map_err(|e| e.to_string())?,
            Err(_) if recovered.last == 0 => Vec::new(),
            Err(error) => return Err(format!("it does not read: {error}")),
        };
        if all
            .last()
            .is_some_and(|frame| frame.epoch >= recovered.epoch)
        {
            return Err(format!("epoch {} was written in before", recovered.epoch));
        }
        let sure = self.oracle.committed.len();
        if Oracle::formats(&all)? > 1 {
            self.sums.count("format 2");
        }
        self.oracle.shown(&all)?;
        if self.oracle.committed.len() > sure {
            self.sums.count("kept");
        }
        if let Some(past) = past {
            let checkpoint = past.checkpoint().cloned();
            if checkpoint.is_some() {
                self.sums.count("checkpoint");
            }
            let behind = past
                .behind_checkpoint()
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| e.to_string())?;
            self.oracle.folded(checkpoint.as_ref(), &behind)?;
        }
        self.oracle.quarantined(&dir)?;
        self.oracle.stored(&opened.blobs)
    }

    fn work(&mut self, opened: &Opened) -> Result<(), String> {
        for _ in 0..self.dice.below(9) {
            if self.dice.chance(8) && !self.machine.dead() {
                self.sums.count("second writer");
                if Session::open(&self.dir(), self.options()).is_ok() {
                    return Err("two writers have it open".to_owned());
                }
            }
            if self.dice.chance(48) {
                let bytes = vec![self.batches as u8; self.dice.below(3000)];
                if let Ok(blob) = opened.blobs.put(&bytes) {
                    self.sums.count("blob");
                    self.oracle.blobs.push(blob);
                }
            }
            let mut group = self.group();
            for _ in 0..2 {
                group = self.append(&opened.journal, group);
                if group.is_empty() || self.dice.chance(64) {
                    break;
                }
            }
            if self.dice.chance(32) {
                self.sums.count("reader");
                if let Ok(reader) = Reader::open(&self.dir()) {
                    let frames = reader
                        .frames()
                        .collect::<Result<Vec<_>, _>>()
                        .map_err(|e| e.to_string())?;
                    self.oracle.read(&frames)?;
                }
            }
        }
        Ok(())
    }

    fn group(&mut self) -> Vec<Batch> {
        let count = if self.dice.chance(64) {
            2 + self.dice.below(3)
        } else {
            1
        };
        (0..count).map(|_| self.batch()).collect()
    }

    fn batch(&mut self) -> Batch {
        self.batches += 1;
        let number = self.batches;
        let records = 1 + self.dice.below(4);
        let asks = !self.lie.one_segment() && (number as u64 + self.seed).is_multiple_of(17);
        let asks = if asks { ASKS } else { "" };
        let mut text = |n| {
            let length = if self.dice.chance(40) {
                self.dice.below(2000)
            } else {
                self.dice.below(40)
            };
            format!("{asks}{number}.{n} {}", "x".repeat(length))
        };
        Batch::new((0..records).map(&mut text).collect(), self.rounds)
    }

    /// Appends them so that they become one group; answers those that were refused.
    fn append(&mut self, journal: &Journal, group: Vec<Batch>) -> Vec<Batch> {
        self.rounds += 1;
        let (go, gate) = channel();
        let mut gate = Some(gate);
        let group: Vec<_> = group
            .into_iter()
            .map(|batch| Batch::new(batch.texts, self.rounds))
            .collect();
        let commits: Vec<_> = group
            .iter()
            .map(|batch| {
                journal.append(Notes {
                    texts: batch.texts.clone(),
                    gate: Mutex::new(gate.take()),
                })
            })
            .collect();
        drop(go);
        let mut left = Vec::new();
        let mut full = false;
        let count = commits.len();
        for (n, (commit, batch)) in commits.into_iter().zip(group).enumerate() {
            match commit.wait() {
                Ok(done) => {
                    // The last one only: what is appended behind a checkpoint is told after all of them. One that asks
                    // for a format ends a group before the last one.
                    let last = n + 1 == count;
                    let mark = if last && self.dice.chance(24) {
                        Some(done.mark())
                    } else {
                        None
                    };
                    let seal = done.seal().filter(|_| last);
                    self.acked(journal, batch, seal.or(mark), done.seal().is_some());
                }
                Err(refused) => {
                    self.sums.count("refused");
                    full |= matches!(refused.why, Refusal::Full(_));
                    self.oracle.refused(batch.clone());
                    left.push(batch);
                }
            }
        }
        if full {
            self.last_word(journal);
        }
        left
    }

    fn acked(&mut self, journal: &Journal, batch: Batch, mark: Option<RecordId>, sealed: bool) {
        self.sums.count("acknowledged");
        self.oracle.acked(batch, journal.epoch());
        if sealed {
            self.sums.count("sealed");
        }
        if let Some(mark) = mark {
            journal.checkpoint(mark, 3, self.oracle.checkpoint(mark.seq()));
            // The checkpoint is written behind everybody's back: wait until it is.
            let batch = self.batch();
            drop(self.append(journal, vec![batch]));
        }
    }

    /// What still fits on a full disk.
    fn last_word(&mut self, journal: &Journal) {
        self.rounds += 1;
        let batch = Batch::new(vec![format!("suspended {}", self.rounds)], self.rounds);
        let notes = Notes {
            texts: batch.texts.clone(),
            gate: Mutex::new(None),
        };
        match journal.append_reserved(notes).wait() {
            Ok(_) => {
                self.sums.count("suspended");
                self.oracle.acked(batch, journal.epoch());
            }
            Err(_) => self.oracle.refused(batch),
        }
        if self.dice.chance(128) {
            self.machine.repair();
        }
    }
}
