//! A machine with a disk: files as processes see them, and beside that what is on the disk and what is on its way.
//!
//! Processes see a directory in memory. For each file the machine knows the bytes that were flushed and each write and
//! shortening since; for each directory the names that were flushed and each change since. When the power goes, any
//! subset of what was not flushed has reached the disk: sectors of 512 bytes, lengths, names.
//!
//! A flush that fails drops what it should have written: the kernel counts those pages as clean, and no later flush
//! writes them; some of them may be on the disk all the same.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use session_store::{Disk, DiskFile, RealDisk};

use crate::dice::Dice;
use crate::lying_store::{Lie, Rewriter};

const SECTOR: usize = 512;
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;

/// What happens at one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies, in the middle of a write perhaps.
    Kill,
    /// It is refused; a write may have taken a part. With a flush, what was to be flushed is lost.
    Error(i32),
    /// It is refused, and the process dies of it.
    Last(i32),
    /// From here on, writes and new files are refused.
    Full,
}

pub(crate) struct Machine {
    place: tempfile::TempDir,
    state: Mutex<State>,
    lie: Lie,
}

struct State {
    /// By the number given when the file was made; inodes are used again.
    files: HashMap<u64, Bytes>,
    numbers: HashMap<u64, u64>,
    dirs: HashMap<PathBuf, Names>,
    made: u64,
    done: usize,
    faults: Vec<(usize, Fault)>,
    dead: bool,
    full: bool,
    opening: bool,
    late: Option<u64>,
    rewriter: Rewriter,
    dice: Dice,
}

#[derive(Default)]
struct Bytes {
    disk: Vec<u8>,
    pending: Vec<Change>,
    protected: bool,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Default)]
struct Names {
    disk: BTreeMap<OsString, Entry>,
    pending: Vec<Renaming>,
}

#[derive(Clone, Copy)]
enum Entry {
    File(u64),
    Dir,
}

/// Atomic in itself.
struct Renaming {
    gone: Option<OsString>,
    here: Option<(OsString, Entry)>,
}

/// How much of what was not flushed survives, of 256.
fn regime(dice: &mut Dice) -> usize {
    [0, 256, 32, 128, 224][dice.below(5)]
}

impl Change {
    /// What reaches the disk of this, sector by sector.
    fn reach(&self, bytes: &mut Vec<u8>, survive: &mut impl FnMut() -> bool) {
        match self {
            Self::Length(len) => {
                if survive() {
                    bytes.resize(*len, 0);
                }
            }
            Self::Write(at, new) => {
                // A length may have grown over sectors that never came: they read as zeros.
                if survive() {
                    bytes.resize(bytes.len().max(at + new.len()), 0);
                }
                let mut from = 0;
                while from < new.len() {
                    let to = (((at + from) / SECTOR + 1) * SECTOR - at).min(new.len());
                    if survive() {
                        bytes.resize(bytes.len().max(at + to), 0);
                        bytes[at + from..at + to].copy_from_slice(&new[from..to]);
                    }
                    from = to;
                }
            }
        }
    }
}

impl Bytes {
    fn flush(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.reach(&mut self.disk, &mut || true);
        }
    }
}

impl Names {
    fn flush(&mut self, mut survive: impl FnMut() -> bool) {
        for Renaming { gone, here } in std::mem::take(&mut self.pending) {
            if survive() {
                gone.map(|name| self.disk.remove(&name));
                here.map(|(name, entry)| self.disk.insert(name, entry));
            }
        }
    }
}

impl Machine {
    /// A new one, with nothing in [`root`](Self::root).
    pub(crate) fn new(dice: Dice, lie: Lie) -> Self {
        let place = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let mut state = State {
            files: HashMap::new(),
            numbers: HashMap::new(),
            dirs: HashMap::new(),
            made: 0,
            done: 0,
            faults: Vec::new(),
            dead: false,
            full: false,
            opening: false,
            late: None,
            rewriter: Rewriter::default(),
            dice,
        };
        state
            .dirs
            .insert(place.path().to_path_buf(), Names::default());
        Self {
            place,
            state: Mutex::new(state),
            lie,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.place.path()
    }

    /// A process starts; these faults wait for it, counted in operations from now.
    pub(crate) fn start(&self, faults: Vec<(usize, Fault)>) {
        let mut state = self.state.lock().unwrap();
        let now = state.done;
        state.faults = faults
            .into_iter()
            .map(|(at, fault)| (now + at, fault))
            .collect();
        (state.dead, state.full, state.late) = (false, false, None);
    }

    /// Whether it is between the beginning and the end of opening a session.
    pub(crate) fn opening(&self, opening: bool) {
        self.state.lock().unwrap().opening = opening;
    }

    pub(crate) fn dead(&self) -> bool {
        self.state.lock().unwrap().dead
    }

    /// Nothing was refused since the process started.
    pub(crate) fn healthy(&self) -> bool {
        let state = self.state.lock().unwrap();
        !state.dead && !state.full && state.faults.iter().all(|(at, _)| *at >= state.done)
    }

    /// No more faults; space is back.
    pub(crate) fn repair(&self) {
        let mut state = self.state.lock().unwrap();
        state.faults.clear();
        state.full = false;
    }

    /// The power goes; the machine starts again with what its disk has.
    pub(crate) fn restarted(self) -> Self {
        let Self { place, state, lie } = self;
        let mut state = state.into_inner().unwrap();
        let of = regime(&mut state.dice);
        let mut dice = state.dice.clone();
        let mut numbers: Vec<_> = state.files.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let file = state.files.get_mut(&number).unwrap();
            for change in std::mem::take(&mut file.pending) {
                change.reach(&mut file.disk, &mut || dice.chance(of));
            }
        }
        let mut paths: Vec<_> = state.dirs.keys().cloned().collect();
        paths.sort();
        for path in paths {
            state.dirs.get_mut(&path).unwrap().flush(|| dice.chance(of));
        }
        let after = Self::new(dice, lie);
        after.state.lock().unwrap().rewriter = std::mem::take(&mut state.rewriter);
        after.lay(&state, place.path(), after.root());
        after
    }

    fn lay(&self, before: &State, from: &Path, to: &Path) {
        for (name, entry) in &before.dirs[from].disk {
            let path = to.join(name);
            match entry {
                Entry::Dir => {
                    std::fs::create_dir(&path).unwrap();
                    self.named(&path, Entry::Dir);
                    self.state
                        .lock()
                        .unwrap()
                        .dirs
                        .insert(path.clone(), Names::default());
                    self.lay(before, &from.join(name), &path);
                }
                Entry::File(number) => {
                    let Some(file) = before.files.get(number) else {
                        continue;
                    };
                    std::fs::write(&path, &file.disk).unwrap();
                    let number = self.adopt(&path, file.disk.clone(), file.protected);
                    self.named(&path, Entry::File(number));
                }
            }
        }
        self.state
            .lock()
            .unwrap()
            .dirs
            .get_mut(to)
            .unwrap()
            .flush(|| true);
    }

    fn adopt(&self, path: &Path, disk: Vec<u8>, protected: bool) -> u64 {
        let meta = std::fs::metadata(path).unwrap();
        if protected {
            std::fs::set_permissions(path, Permissions::from_mode(0o400)).unwrap();
        }
        let mut state = self.state.lock().unwrap();
        state.made += 1;
        let number = state.made;
        state.numbers.insert(meta.ino(), number);
        state.files.insert(
            number,
            Bytes {
                disk,
                pending: Vec::new(),
                protected,
            },
        );
        number
    }

    fn named(&self, path: &Path, entry: Entry) {
        self.renamed(
            path,
            None,
            Some((path.file_name().unwrap().to_owned(), entry)),
        );
    }

    fn renamed(&self, path: &Path, gone: Option<OsString>, here: Option<(OsString, Entry)>) {
        let mut state = self.state.lock().unwrap();
        let dir = state.dirs.get_mut(path.parent().unwrap()).unwrap();
        dir.pending.push(Renaming { gone, here });
    }

    fn number(&self, file: &DiskFile) -> io::Result<u64> {
        let inode = file.file.metadata()?.ino();
        Ok(self.state.lock().unwrap().numbers[&inode])
    }

    fn changed(&self, file: &DiskFile, change: Change) -> io::Result<()> {
        let number = self.number(file)?;
        self.state
            .lock()
            .unwrap()
            .files
            .get_mut(&number)
            .unwrap()
            .pending
            .push(change);
        Ok(())
    }

    /// What happens at this operation. What is late comes before it, unless it is a hint written behind a flush.
    fn tick(&self, hint: bool) -> io::Result<Option<Fault>> {
        let mut state = self.state.lock().unwrap();
        let n = state.done;
        state.done += 1;
        if state.dead {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let fault = state
            .faults
            .iter()
            .find(|(at, _)| *at == n)
            .map(|(_, fault)| *fault);
        state.dead |= matches!(fault, Some(Fault::Kill | Fault::Last(_)));
        if !hint
            && !state.dead
            && let Some(number) = state.late.take()
            && let Some(file) = state.files.get_mut(&number)
        {
            file.flush();
        }
        state.full |= fault == Some(Fault::Full);
        Ok(fault)
    }

    /// For operations that are done or not done.
    fn whole(&self, grows: bool) -> io::Result<()> {
        match self.tick(false)? {
            Some(Fault::Kill) => Err(io::Error::from_raw_os_error(EIO)),
            Some(Fault::Error(code) | Fault::Last(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Full) | None if grows && self.state.lock().unwrap().full => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            Some(Fault::Full) | None => Ok(()),
        }
    }

    fn is_opening(&self) -> bool {
        self.state.lock().unwrap().opening
    }
}

impl Disk for Machine {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.whole(true)?;
        RealDisk.create_dir(path)?;
        self.named(path, Entry::Dir);
        self.state
            .lock()
            .unwrap()
            .dirs
            .insert(path.to_path_buf(), Names::default());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<DiskFile> {
        self.whole(true)?;
        let file = RealDisk.create(path)?;
        let number = self.adopt(path, Vec::new(), false);
        self.named(path, Entry::File(number));
        Ok(file)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<DiskFile> {
        self.whole(false)?;
        if self.lie == Lie::NoLock && path.ends_with("LOCK") && write {
            std::fs::remove_file(path)?;
            let file = RealDisk.create(path)?;
            self.adopt(path, Vec::new(), false);
            return Ok(file);
        }
        RealDisk.open(path, write)
    }

    fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.whole(false)?;
        RealDisk.read_at(file, buf, at)
    }

    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        let fault = self.tick(file.path.ends_with("HEAD"))?;
        let full = self.state.lock().unwrap().full && !bytes.is_empty();
        if self.lie.drops_write(&file.path, self.is_opening()) {
            return Ok(bytes.len());
        }
        let bytes = self
            .state
            .lock()
            .unwrap()
            .rewriter
            .write(&self.lie, &file.path, bytes);
        let refused = match fault {
            Some(Fault::Kill) => Some(EIO),
            Some(Fault::Error(code) | Fault::Last(code)) => Some(code),
            Some(Fault::Full) | None => full.then_some(ENOSPC),
        };
        let Some(code) = refused else {
            self.changed(file, Change::Write(at as usize, bytes.to_vec()))?;
            return RealDisk.write_at(file, &bytes, at);
        };
        // A part of it is there all the same.
        let part = self.state.lock().unwrap().dice.below(bytes.len() + 1);
        self.changed(file, Change::Write(at as usize, bytes[..part].to_vec()))?;
        RealDisk.write_at(file, &bytes[..part], at)?;
        Err(io::Error::from_raw_os_error(code))
    }

    fn sync(&self, file: &DiskFile) -> io::Result<()> {
        let fault = self.tick(false)?;
        let number = self.number(file)?;
        let skipped = self.lie.skips_sync(&file.path, self.is_opening());
        let mut state = self.state.lock().unwrap();
        let State {
            files, dice, late, ..
        } = &mut *state;
        let bytes = files.get_mut(&number).unwrap();
        match fault {
            Some(Fault::Kill) => Err(io::Error::from_raw_os_error(EIO)),
            Some(Fault::Error(code) | Fault::Last(code)) => {
                let of = regime(dice);
                for change in std::mem::take(&mut bytes.pending) {
                    change.reach(&mut bytes.disk, &mut || dice.chance(of));
                }
                Err(io::Error::from_raw_os_error(code))
            }
            Some(Fault::Full) | None if skipped => Ok(()),
            Some(Fault::Full) | None if self.lie == Lie::LateSync => {
                *late = Some(number);
                Ok(())
            }
            Some(Fault::Full) | None => {
                bytes.flush();
                Ok(())
            }
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.whole(false)?;
        if !self.lie.skips_dir(path, self.root(), self.is_opening()) {
            self.state
                .lock()
                .unwrap()
                .dirs
                .get_mut(path)
                .unwrap()
                .flush(|| true);
        }
        Ok(())
    }

    fn truncate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        self.whole(false)?;
        if file.path.ends_with("RESERVE") {
            self.state.lock().unwrap().full = false;
        }
        self.changed(file, Change::Length(len as usize))?;
        RealDisk.truncate(file, len)
    }

    fn allocate(&self, _: &DiskFile, _: u64) -> io::Result<()> {
        // Blocks only; what the file says is nobody's concern.
        self.whole(true)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.whole(false)?;
        let inode = std::fs::metadata(from)?.ino();
        let number = self.state.lock().unwrap().numbers[&inode];
        RealDisk.rename(from, to)?;
        let old = from.file_name().unwrap().to_owned();
        let new = to.file_name().unwrap().to_owned();
        let here = Some((new, Entry::File(number)));
        if from.parent() == to.parent() {
            self.renamed(to, Some(old), here);
        } else {
            self.renamed(from, Some(old), None);
            self.renamed(to, None, here);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.whole(false)?;
        RealDisk.remove(path)?;
        self.renamed(path, Some(path.file_name().unwrap().to_owned()), None);
        Ok(())
    }

    fn protect(&self, path: &Path) -> io::Result<()> {
        self.whole(false)?;
        RealDisk.protect(path)?;
        let inode = std::fs::metadata(path)?.ino();
        let mut state = self.state.lock().unwrap();
        let number = state.numbers[&inode];
        state.files.get_mut(&number).unwrap().protected = true;
        Ok(())
    }

    fn fs_magic(&self, _: &Path) -> io::Result<u64> {
        Ok(0)
    }
}
