//! Which file systems are accepted for a journal, by their magic number.

use std::path::Path;

use super::error::OpenError;
use crate::ops::Ops;

/// File systems whose flushes and locks depend on another machine or a user's program.
const REFUSED: [(u64, &str); 13] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x0102_1997, "9P"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
];

/// Refuses a directory on a network or FUSE file system.
pub(super) fn accept(ops: &Ops, dir: &Path) -> Result<(), OpenError> {
    let magic = ops.fs_magic(dir)?;
    match REFUSED.iter().find(|(refused, _)| *refused == magic) {
        Some((_, file_system)) => Err(OpenError::Place {
            dir: dir.to_path_buf(),
            file_system,
        }),
        None => Ok(()),
    }
}
