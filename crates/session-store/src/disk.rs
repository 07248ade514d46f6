//! All file system operations of the store, so that a test can fail, cut or kill at each of them. Does not depend on
//! the format of logs.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file system operations of the store. The default methods perform them; a test overrides those that it fails,
/// shortens or counts. Called from the journal thread and from the threads that write blobs.
pub trait Disk: Send + Sync + 'static {
    /// Creates one directory, mode 0700. `AlreadyExists` if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    /// Creates a file, mode 0600, for reading and writing. `AlreadyExists` if it exists.
    fn create(&self, path: &Path) -> io::Result<DiskFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(DiskFile {
            file,
            path: path.to_path_buf(),
        })
    }

    /// Opens an existing file, for writing too if `write`.
    fn open(&self, path: &Path, write: bool) -> io::Result<DiskFile> {
        let file = OpenOptions::new().read(true).write(write).open(path)?;
        Ok(DiskFile {
            file,
            path: path.to_path_buf(),
        })
    }

    /// One positioned read; fewer bytes than asked for are no error, 0 is the end.
    fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        file.file.read_at(buf, at)
    }

    /// One positioned write; the number of bytes written may be smaller than asked for.
    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.file.write_at(bytes, at)
    }

    /// `fdatasync`.
    fn sync(&self, file: &DiskFile) -> io::Result<()> {
        file.file.sync_data()
    }

    /// `fsync` of a directory, which makes the names in it durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Sets the length; used to shorten.
    fn truncate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        file.file.set_len(len)
    }

    /// Allocates blocks for the file up to `len`.
    fn allocate(&self, file: &DiskFile, len: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match rustix::fs::fallocate(&file.file, rustix::fs::FallocateFlags::empty(), 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            other => return Ok(other?),
        }
        zeros(file, len)
    }

    /// Renames, replacing an existing file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    /// Makes a complete file read-only, against accidental edits. Nothing relies on it, and errors are ignored.
    fn protect(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o400))
    }

    /// The `f_type` of the file system that holds `path`; 0 where the platform has none.
    #[cfg(target_os = "linux")]
    fn fs_magic(&self, path: &Path) -> io::Result<u64> {
        // The field's type differs between targets; the magic numbers all fit in 32 bits.
        Ok(rustix::fs::statfs(path)?.f_type as u64 & 0xFFFF_FFFF)
    }

    /// The `f_type` of the file system that holds `path`; 0 where the platform has none.
    #[cfg(not(target_os = "linux"))]
    fn fs_magic(&self, _: &Path) -> io::Result<u64> {
        Ok(0)
    }
}

/// The [`Disk`] for production: every method is the default one.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {}

/// A file opened by a [`Disk`], with the path it was opened by.
#[derive(Debug)]
pub struct DiskFile {
    pub file: File,
    /// For messages and for tests that follow one file.
    pub path: PathBuf,
}

/// The disk operation that a [`DiskFault`](crate::DiskFault) names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    CreateDir,
    Create,
    Open,
    Read,
    Write,
    Sync,
    SyncDir,
    Truncate,
    Allocate,
    Rename,
    Remove,
    Protect,
    List,
    Lock,
    Stat,
}

/// Writes zeros where the file system cannot allocate unwritten blocks.
fn zeros(file: &DiskFile, len: u64) -> io::Result<()> {
    const PAGE: [u8; 4096] = [0; 4096];
    let mut at = 0;
    while at < len {
        let left = usize::try_from(len - at)
            .unwrap_or(PAGE.len())
            .min(PAGE.len());
        file.file
            .write_all_at(PAGE.get(..left).unwrap_or(&PAGE), at)?;
        at += left as u64;
    }
    Ok(())
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateDir => "creating the directory",
            Self::Create => "making",
            Self::Open => "opening",
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Sync => "syncing",
            Self::SyncDir => "syncing the directory",
            Self::Truncate => "shortening",
            Self::Allocate => "reserving space in",
            Self::Rename => "renaming",
            Self::Remove => "removing",
            Self::Protect => "protecting",
            Self::List => "listing",
            Self::Lock => "locking",
            Self::Stat => "looking at",
        })
    }
}
