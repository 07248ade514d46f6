//! One sync at a time: a lock on a file of its own, because the file of the index may be removed and built again. SQLite locks
//! and waits, as for the index.

use crate::{Error, ErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The name of the file, below the directory of the index. It stays empty.
const FILE: &str = "lock.sqlite";

/// Held while a sync runs; dropping it, or the end of the process, releases it.
#[derive(Debug)]
pub(crate) struct SyncLock(#[expect(dead_code, reason = "its transaction is the lock")] Connection);

impl SyncLock {
    /// Waits at most so long for another sync.
    ///
    /// # Errors
    /// `Busy` when another sync runs; `Unavailable` when the file cannot be used.
    pub(crate) fn take(dir: &Path, wait: Duration) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let taken = Connection::open_with_flags(&path, flags).and_then(|file| {
            file.busy_timeout(wait)?;
            file.execute_batch("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE;")?;
            Ok(file)
        });
        let failed = |error: rusqlite::Error| match Error::from(error) {
            busy if busy.kind() == ErrorKind::Busy => {
                Error::new(ErrorKind::Busy, "another process syncs this index")
            }
            damaged if damaged.kind() == ErrorKind::Damaged => Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{} is not the lock of an index; delete it",
                    authority::escape(&path)
                ),
            ),
            other => other,
        };
        taken.map(Self).map_err(failed)
    }
}
