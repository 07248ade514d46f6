//! Disks that fail: at the n-th operation, or by losing their power.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use session_store::{Disk, DiskFile, Op};

/// The real one without the wait for flushes, for tests that open a session thousands of times.
pub(crate) struct Quick;

/// What is asked before each operation; `write` may answer fewer bytes.
pub(crate) trait Judge: Send + Sync + 'static {
    fn before(&self, op: Op, path: &Path) -> io::Result<()>;

    fn writable(&self, _path: &Path, len: usize) -> io::Result<usize> {
        Ok(len)
    }

    fn opened(&self, _path: &Path) {}

    fn magic(&self) -> u64 {
        0
    }
}

/// `Quick` with a judge in front.
pub(crate) struct Judged<J>(pub(crate) J);

macro_rules! forward {
    ($name:ident: $op:ident($($arg:ident: $type:ty),*) -> $out:ty, $path:expr) => {
        fn $name(&self, $($arg: $type),*) -> io::Result<$out> {
            self.0.before(Op::$op, $path)?;
            Quick.$name($($arg),*)
        }
    };
}

impl<J: Judge> Disk for Judged<J> {
    forward!(create_dir: CreateDir(path: &Path) -> (), path);
    forward!(create: Create(path: &Path) -> DiskFile, path);
    forward!(read_at: Read(file: &DiskFile, buf: &mut [u8], at: u64) -> usize, &file.path);
    forward!(sync: Sync(file: &DiskFile) -> (), &file.path);
    forward!(sync_dir: SyncDir(path: &Path) -> (), path);
    forward!(truncate: Truncate(file: &DiskFile, len: u64) -> (), &file.path);
    forward!(allocate: Allocate(file: &DiskFile, len: u64) -> (), &file.path);
    forward!(rename: Rename(from: &Path, to: &Path) -> (), to);
    forward!(remove: Remove(path: &Path) -> (), path);

    fn open(&self, path: &Path, write: bool) -> io::Result<DiskFile> {
        self.0.before(Op::Open, path)?;
        let file = Quick.open(path, write)?;
        self.0.opened(path);
        Ok(file)
    }

    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.0.before(Op::Write, &file.path)?;
        let len = self.0.writable(&file.path, bytes.len())?;
        Quick.write_at(file, &bytes[..len], at)
    }

    fn fs_magic(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.magic())
    }
}

impl Disk for Quick {
    fn sync(&self, _: &DiskFile) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// How the n-th operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This one only, with this error number.
    Once(i32),
    /// This one and all that follow.
    Ever(i32),
    /// A write takes half of its bytes and then fails; anything else fails.
    Half(i32),
}

pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;

/// Fails at the n-th operation, counted from 0.
pub(crate) struct Nth {
    at: usize,
    fault: Fault,
    count: AtomicUsize,
    half: AtomicBool,
}

impl Nth {
    pub(crate) fn disk(at: usize, fault: Fault) -> Judged<Self> {
        Judged(Self {
            at,
            fault,
            count: AtomicUsize::new(0),
            half: AtomicBool::new(false),
        })
    }

    /// It got that far.
    pub(crate) fn reached(&self) -> bool {
        self.count.load(Ordering::SeqCst) > self.at
    }

    fn error(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }
}

impl Judge for Nth {
    fn before(&self, op: Op, _: &Path) -> io::Result<()> {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Once(code) if n == self.at => Err(Self::error(code)),
            Fault::Ever(code) if n >= self.at => Err(Self::error(code)),
            Fault::Half(code) if n == self.at && op != Op::Write => Err(Self::error(code)),
            Fault::Half(_) if n == self.at => {
                self.half.store(true, Ordering::SeqCst);
                Ok(())
            }
            // The rest of the write that was cut short.
            Fault::Half(code)
                if n == self.at + 1 && op == Op::Write && self.half.load(Ordering::SeqCst) =>
            {
                Err(Self::error(code))
            }
            _ => Ok(()),
        }
    }

    fn writable(&self, _: &Path, len: usize) -> io::Result<usize> {
        let half =
            self.half.load(Ordering::SeqCst) && self.count.load(Ordering::SeqCst) == self.at + 1;
        Ok(if half { len / 2 } else { len })
    }
}

/// Keeps, beside the files, what would be left of them if the power went: the bytes flushed, under the names flushed.
///
/// A flush that fails drops what it should have written: the kernel counts those pages as clean, and no later flush
/// writes them.
#[derive(Default)]
pub(crate) struct Power {
    state: Mutex<State>,
    count: AtomicUsize,
    /// From this operation on there is no power.
    off_at: Option<usize>,
    /// This operation, if it is a flush, fails.
    bad_flush: Option<usize>,
}

#[derive(Default)]
struct State {
    /// By inode.
    pending: HashMap<u64, Vec<Change>>,
    durable: HashMap<u64, Vec<u8>>,
    names: HashMap<PathBuf, Vec<(OsString, Option<u64>)>>,
}

enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

impl Power {
    pub(crate) fn failing(off_at: Option<usize>, bad_flush: Option<usize>) -> Self {
        Self {
            off_at,
            bad_flush,
            ..Self::default()
        }
    }

    pub(crate) fn operations(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// What the machine finds when it starts again. `from` is a directory whose own name is durable.
    pub(crate) fn restart(&self, from: &Path, to: &Path) {
        let state = self.state.lock().unwrap();
        state.restore(from, to);
    }

    /// Takes what is in `dir` as durable.
    pub(crate) fn adopt(&self, dir: &Path) {
        let mut state = self.state.lock().unwrap();
        let mut names = Vec::new();
        let mut below = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_file() {
                state
                    .durable
                    .insert(meta.ino(), std::fs::read(entry.path()).unwrap());
            } else {
                below.push(entry.path());
            }
            names.push((entry.file_name(), meta.is_file().then(|| meta.ino())));
        }
        state.names.insert(dir.to_path_buf(), names);
        drop(state);
        below.iter().for_each(|dir| self.adopt(dir));
    }

    fn tick(&self) -> io::Result<usize> {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        if self.off_at.is_some_and(|off| n >= off) {
            Err(io::Error::from_raw_os_error(EIO))
        } else {
            Ok(n)
        }
    }

    fn flush_fails(&self, n: usize) -> io::Result<()> {
        if self.bad_flush == Some(n) {
            Err(io::Error::from_raw_os_error(EIO))
        } else {
            Ok(())
        }
    }

    fn change(&self, file: &DiskFile, change: Change) -> io::Result<()> {
        let inode = file.file.metadata()?.ino();
        self.state
            .lock()
            .unwrap()
            .pending
            .entry(inode)
            .or_default()
            .push(change);
        Ok(())
    }
}

impl State {
    fn restore(&self, from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        for (name, inode) in self.names.get(from).into_iter().flatten() {
            match inode {
                Some(inode) => {
                    let bytes = self.durable.get(inode).cloned().unwrap_or_default();
                    std::fs::write(to.join(name), bytes).unwrap();
                }
                None => self.restore(&from.join(name), &to.join(name)),
            }
        }
    }
}

impl Disk for Power {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.tick()?;
        Quick.create_dir(path)
    }
    fn create(&self, path: &Path) -> io::Result<DiskFile> {
        self.tick()?;
        let file = Quick.create(path)?;
        let inode = file.file.metadata()?.ino();
        let mut state = self.state.lock().unwrap();
        state.pending.remove(&inode);
        state.durable.remove(&inode);
        Ok(file)
    }
    fn open(&self, path: &Path, write: bool) -> io::Result<DiskFile> {
        self.tick()?;
        Quick.open(path, write)
    }
    fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.tick()?;
        Quick.read_at(file, buf, at)
    }
    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.tick()?;
        self.change(file, Change::Write(at, bytes.to_vec()))?;
        Quick.write_at(file, bytes, at)
    }
    fn sync(&self, file: &DiskFile) -> io::Result<()> {
        let n = self.tick()?;
        let inode = file.file.metadata()?.ino();
        let mut state = self.state.lock().unwrap();
        let pending = state.pending.remove(&inode).unwrap_or_default();
        self.flush_fails(n)?;
        let bytes = state.durable.entry(inode).or_default();
        for change in pending {
            match change {
                Change::Write(at, new) => {
                    let at = at as usize;
                    bytes.resize(bytes.len().max(at + new.len()), 0);
                    bytes[at..at + new.len()].copy_from_slice(&new);
                }
                Change::Length(len) => bytes.resize(len as usize, 0),
            }
        }
        Ok(())
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let n = self.tick()?;
        self.flush_fails(n)?;
        let entries = std::fs::read_dir(path)?.map(|entry| {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            (entry.file_name(), meta.is_file().then(|| meta.ino()))
        });
        let entries = entries.collect();
        self.state
            .lock()
            .unwrap()
            .names
            .insert(path.to_path_buf(), entries);
        Ok(())
    }
    fn truncate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        self.tick()?;
        self.change(file, Change::Length(len))?;
        Quick.truncate(file, len)
    }
    fn allocate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        self.tick()?;
        Quick.allocate(file, len)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tick()?;
        Quick.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.tick()?;
        Quick.remove(path)
    }
    fn fs_magic(&self, _: &Path) -> io::Result<u64> {
        Ok(0)
    }
}
