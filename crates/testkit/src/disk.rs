//! A disk that fails at chosen operations. It ignores flushes: tests of power loss belong to the store.

use session_store::{Disk, DiskFile, RealDisk};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The error number of an input/output error.
pub const EIO: i32 = 5;
/// The error number for "no space left".
pub const ENOSPC: i32 = 28;

/// How the chosen operation fails, with which error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only this operation.
    Once(i32),
    /// This operation and all that follow.
    Ever(i32),
    /// If it is a write, it writes half of its bytes and the next operation fails; any other operation fails itself.
    Short(i32),
}

/// A [`Disk`] that performs operations without flushes and fails at planned ones. Clones share the
/// count of operations and the plan.
#[derive(Clone, Debug, Default)]
pub struct FailingDisk(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    done: usize,
    at: Option<(usize, Fault)>,
    halved: bool,
    dead: bool,
    last: Option<PathBuf>,
}

/// The plan's decision for one operation.
enum Leave {
    Whole,
    Half,
}

impl FailingDisk {
    /// Plans a failure at the `n`-th operation from now, counted from 0.
    pub fn fail_at(&self, n: usize, fault: Fault) {
        let mut plan = self.plan();
        plan.at = Some((plan.done + n, fault));
    }

    /// From now on every operation fails, as if the process were dead.
    pub fn die(&self) {
        self.plan().dead = true;
    }

    /// Removes all planned failures.
    pub fn repair(&self) {
        let mut plan = self.plan();
        (plan.dead, plan.at, plan.halved) = (false, None, false);
    }

    /// Operations so far, the failed ones included.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.plan().done
    }

    /// The path of the newest failed operation.
    #[must_use]
    pub fn failed(&self) -> Option<PathBuf> {
        self.plan().last.clone()
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, path: &Path, write: bool) -> io::Result<Leave> {
        let mut plan = self.plan();
        let this = plan.done;
        plan.done += 1;
        let refused = match plan.at {
            Some((at, Fault::Once(code))) if this == at => Some(code),
            Some((at, Fault::Ever(code))) if this >= at => Some(code),
            Some((at, Fault::Short(_))) if this == at && write => {
                plan.halved = true;
                return Ok(Leave::Half);
            }
            Some((at, Fault::Short(code))) if this == at || (this == at + 1 && plan.halved) => {
                Some(code)
            }
            Some((_, Fault::Once(_) | Fault::Ever(_) | Fault::Short(_))) | None => None,
        };
        match refused.or(plan.dead.then_some(EIO)) {
            Some(code) => {
                plan.last = Some(path.to_owned());
                Err(io::Error::from_raw_os_error(code))
            }
            None => Ok(Leave::Whole),
        }
    }
}

impl Disk for FailingDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.ask(path, false)?;
        RealDisk.create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<DiskFile> {
        self.ask(path, false)?;
        RealDisk.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<DiskFile> {
        self.ask(path, false)?;
        RealDisk.open(path, write)
    }

    fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.ask(&file.path, false)?;
        RealDisk.read_at(file, buf, at)
    }

    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        match self.ask(&file.path, true)? {
            Leave::Whole => RealDisk.write_at(file, bytes, at),
            Leave::Half => RealDisk.write_at(file, bytes.split_at(bytes.len().div_ceil(2)).0, at),
        }
    }

    fn sync(&self, file: &DiskFile) -> io::Result<()> {
        self.ask(&file.path, false).map(drop)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.ask(path, false).map(drop)
    }

    fn truncate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        self.ask(&file.path, false)?;
        RealDisk.truncate(file, len)
    }

    fn allocate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        self.ask(&file.path, false)?;
        RealDisk.allocate(file, len)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(to, false)?;
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(path, false)?;
        RealDisk.remove(path)
    }

    fn fs_magic(&self, _: &Path) -> io::Result<u64> {
        Ok(0)
    }
}
