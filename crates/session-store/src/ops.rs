//! Disk operations with named errors and counted flushes. Does not depend on file names.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::disk::{Disk, DiskFile, Op, RealDisk};
use crate::error::DiskFault;

/// Bytes copied at a time.
const BLOCK: usize = 256 << 10;

#[derive(Clone)]
pub(crate) struct Ops {
    disk: Arc<dyn Disk>,
    pub(crate) flushes: Arc<AtomicU64>,
}

/// Length and age of a file.
pub(crate) struct Stored {
    pub(crate) len: u64,
    pub(crate) modified: Option<SystemTime>,
}

impl Ops {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            flushes: Arc::default(),
        }
    }

    /// The real disk, for readers: tests inject faults into writers only.
    pub(crate) fn real() -> Self {
        Self::new(Arc::new(RealDisk))
    }

    /// Creates a directory; returns whether it was missing.
    pub(crate) fn create_dir(&self, path: &Path) -> Result<bool, DiskFault> {
        match self.disk.create_dir(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(DiskFault::new(Op::CreateDir, path, &e)),
        }
    }

    /// Creates a file; replaces one that a failed attempt may have left.
    pub(crate) fn create_afresh(&self, path: &Path) -> Result<DiskFile, DiskFault> {
        self.remove(path)?;
        self.create(path)
    }

    pub(crate) fn create(&self, path: &Path) -> Result<DiskFile, DiskFault> {
        self.disk
            .create(path)
            .map_err(|e| DiskFault::new(Op::Create, path, &e))
    }

    /// Opens a file; `None` when it is missing.
    pub(crate) fn open(&self, path: &Path, write: bool) -> Result<Option<DiskFile>, DiskFault> {
        match self.disk.open(path, write) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(DiskFault::new(Op::Open, path, &e)),
        }
    }

    /// Opens a file for reading and writing; creates it if it is missing.
    pub(crate) fn open_or_create(&self, path: &Path) -> Result<DiskFile, DiskFault> {
        match self.open(path, true)? {
            Some(file) => Ok(file),
            None => self.create(path),
        }
    }

    /// Fills `buf`; returns fewer bytes only at the end of the file.
    pub(crate) fn read_at(
        &self,
        file: &DiskFile,
        buf: &mut [u8],
        at: u64,
    ) -> Result<usize, DiskFault> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.disk.read_at(file, rest, at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(DiskFault::new(Op::Read, &file.path, &e)),
            }
        }
        Ok(done)
    }

    /// Passes `from..to` of a file to a closure in blocks, each with its offset; an error if the file ends before `to`.
    pub(crate) fn blocks<E: From<DiskFault>>(
        &self,
        file: &DiskFile,
        from: u64,
        to: u64,
        mut each: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buf = vec![
            0;
            usize::try_from(to.saturating_sub(from))
                .unwrap_or(BLOCK)
                .min(BLOCK)
        ];
        let mut at = from;
        while at < to {
            let want = usize::try_from(to - at).unwrap_or(BLOCK).min(buf.len());
            let read = self.read_at(file, buf.get_mut(..want).unwrap_or_default(), at)?;
            if read == 0 {
                let end = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(DiskFault::new(Op::Read, &file.path, &end).into());
            }
            each(buf.get(..read).unwrap_or_default(), at)?;
            at += read as u64;
        }
        Ok(())
    }

    /// Writes all of `bytes`, in several writes if the disk takes less at a time.
    pub(crate) fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> Result<(), DiskFault> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.disk.write_at(file, rest, at + done as u64) {
                Ok(0) => {
                    let none = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(DiskFault::new(Op::Write, &file.path, &none));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(DiskFault::new(Op::Write, &file.path, &e)),
            }
        }
        Ok(())
    }

    pub(crate) fn sync(&self, file: &DiskFile) -> Result<(), DiskFault> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.disk
            .sync(file)
            .map_err(|e| DiskFault::new(Op::Sync, &file.path, &e))
    }

    pub(crate) fn sync_dir(&self, path: &Path) -> Result<(), DiskFault> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.disk
            .sync_dir(path)
            .map_err(|e| DiskFault::new(Op::SyncDir, path, &e))
    }

    pub(crate) fn truncate(&self, file: &DiskFile, len: u64) -> Result<(), DiskFault> {
        self.disk
            .truncate(file, len)
            .map_err(|e| DiskFault::new(Op::Truncate, &file.path, &e))
    }

    pub(crate) fn allocate(&self, file: &DiskFile, len: u64) -> Result<(), DiskFault> {
        self.disk
            .allocate(file, len)
            .map_err(|e| DiskFault::new(Op::Allocate, &file.path, &e))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskFault> {
        self.disk
            .rename(from, to)
            .map_err(|e| DiskFault::new(Op::Rename, to, &e))
    }

    /// Removes a file that may be missing.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), DiskFault> {
        match self.disk.remove(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(DiskFault::new(Op::Remove, path, &e))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn protect(&self, path: &Path) -> Result<(), DiskFault> {
        self.disk
            .protect(path)
            .map_err(|e| DiskFault::new(Op::Protect, path, &e))
    }

    pub(crate) fn fs_magic(&self, path: &Path) -> Result<u64, DiskFault> {
        self.disk
            .fs_magic(path)
            .map_err(|e| DiskFault::new(Op::Stat, path, &e))
    }

    pub(crate) fn length(&self, file: &DiskFile) -> Result<u64, DiskFault> {
        file.file
            .metadata()
            .map(|m| m.len())
            .map_err(|e| DiskFault::new(Op::Stat, &file.path, &e))
    }

    /// Length and age of a file; `None` when it is missing.
    pub(crate) fn stored(&self, path: &Path) -> Result<Option<Stored>, DiskFault> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(Stored {
                len: meta.len(),
                modified: meta.modified().ok(),
            })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(DiskFault::new(Op::Stat, path, &e)),
        }
    }

    /// Names in a directory, sorted; none when it is missing.
    pub(crate) fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskFault> {
        let fault = |e: io::Error| DiskFault::new(Op::List, path, &e);
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fault(e)),
        };
        let mut names = entries
            .map(|e| e.map(|e| e.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fault)?;
        names.sort();
        Ok(names)
    }
}
