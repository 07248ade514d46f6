//! A disk and an encoder that count what passes.

use llm_worker::Item;
use llm_worker::projection::{Dialect, Open, Surface};
use session_store::{Disk, DiskFile, RealDisk};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the disk was asked for.
#[derive(Debug, Default)]
pub struct Traffic {
    /// `fdatasync` and `fsync`.
    pub flushes: AtomicU64,
    /// Bytes written.
    pub written: AtomicU64,
    /// Bytes read.
    pub read: AtomicU64,
}

/// The real disk, counting.
#[derive(Clone, Debug, Default)]
pub struct CountingDisk(pub Arc<Traffic>);

impl Disk for CountingDisk {
    fn read_at(&self, file: &DiskFile, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let read = RealDisk.read_at(file, buf, at)?;
        self.0.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, file: &DiskFile, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.0
            .written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        RealDisk.write_at(file, bytes, at)
    }

    fn sync(&self, file: &DiskFile) -> io::Result<()> {
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        RealDisk.sync(file)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        RealDisk.sync_dir(path)
    }
}

/// A dialect that counts the bytes it encodes.
pub struct CountingDialect {
    inner: Arc<dyn Dialect>,
    /// Bytes encoded since it was made.
    pub bytes: AtomicU64,
}

impl CountingDialect {
    /// Counts what `inner` encodes.
    #[must_use]
    pub fn new(inner: Arc<dyn Dialect>) -> Self {
        Self {
            inner,
            bytes: AtomicU64::new(0),
        }
    }

    fn counted<T>(&self, out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = out.len();
        let done = encode(out);
        self.bytes
            .fetch_add((out.len() - before) as u64, Ordering::Relaxed);
        done
    }
}

impl Dialect for CountingDialect {
    fn id(&self) -> &'static str {
        self.inner.id()
    }

    fn version(&self) -> u16 {
        self.inner.version()
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        self.counted(out, |out| self.inner.head(surface, out));
    }

    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        self.counted(out, |out| self.inner.append(open, first, item, out))
    }

    fn close(&self, open: Open, out: &mut Vec<u8>) {
        self.counted(out, |out| self.inner.close(open, out));
    }
}
