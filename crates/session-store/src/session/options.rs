//! The options of a session. Does not depend on its files.

use std::sync::Arc;

use super::segment::SEGMENT_BYTES;
use crate::blob::BLOB_BYTES;
use crate::disk::{Disk, RealDisk};

/// Returns the wall clock in microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
/// Called with the name of each point at which a test may wait or stop.
pub type Probe = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The options for creating or opening a session.
#[derive(Clone)]
pub struct Options {
    /// The session's id, 1 to 64 of `A-Z a-z 0-9 . _ -`: written into the first record. When opening, used only if
    /// the log is still empty.
    pub session: String,
    pub clock: Clock,
    /// [`RealDisk`], or a test's disk that fails.
    pub disk: Arc<dyn Disk>,
    /// A no-op outside tests.
    pub probe: Probe,
    /// Accept network and FUSE file systems, whose flushes and locks may not be reliable.
    pub any_file_system: bool,
    /// Bytes at which a segment is sealed. A group of batches is never split, so a segment may be longer by one group.
    pub segment_bytes: u64,
    /// The most bytes of blobs; see [`Blobs::refer`](crate::Blobs::refer).
    pub blob_bytes: u64,
}

impl Options {
    /// The real disk, no probe, local file systems only, segments of 16 MiB, 1 GiB of blobs.
    pub fn new(session: impl Into<String>, clock: Clock) -> Self {
        Self {
            session: session.into(),
            clock,
            disk: Arc::new(RealDisk),
            probe: Arc::new(|_| {}),
            any_file_system: false,
            segment_bytes: SEGMENT_BYTES,
            blob_bytes: BLOB_BYTES,
        }
    }
}
