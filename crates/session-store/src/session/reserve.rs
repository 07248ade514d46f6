//! RESERVE: disk blocks set aside, so that the record about a full disk still fits.

use std::path::{Path, PathBuf};

use crate::error::DiskFault;
use crate::ops::Ops;

/// Room for one `suspended` record and the blocks a file system takes to place it.
const RESERVE: u64 = 64 << 10;

fn path(dir: &Path) -> PathBuf {
    dir.join("RESERVE")
}

/// Sets the blocks aside unless they are. Not flushed: lost, they are made again.
pub(crate) fn ensure(ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
    let file = ops.open_or_create(&path(dir))?;
    if ops.length(&file)? < RESERVE { ops.allocate(&file, RESERVE) } else { Ok(()) }
}

/// Gives the blocks back to the file system.
pub(crate) fn free(ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
    match ops.open(&path(dir), true)? {
        Some(file) => ops.truncate(&file, 0),
        None => Ok(()),
    }
}
