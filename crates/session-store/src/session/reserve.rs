//! RESERVE: disk blocks set aside, so that the record about a full disk still fits.

use std::path::{Path, PathBuf};

use crate::error::DiskFault;
use crate::ops::Ops;

/// Space for one `suspended` record and the blocks that the file system needs to store it.
const RESERVE: u64 = 64 << 10;

fn path(dir: &Path) -> PathBuf {
    dir.join("RESERVE")
}

/// Allocates the reserve if it is missing. Not flushed: if it is lost, it is allocated again.
pub(crate) fn ensure(ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
    let file = ops.open_or_create(&path(dir))?;
    if ops.length(&file)? < RESERVE {
        ops.allocate(&file, RESERVE)
    } else {
        Ok(())
    }
}

/// Frees the reserve's blocks.
pub(crate) fn free(ops: &Ops, dir: &Path) -> Result<(), DiskFault> {
    match ops.open(&path(dir), true)? {
        Some(file) => ops.truncate(&file, 0),
        None => Ok(()),
    }
}
