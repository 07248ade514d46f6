//! Mutants: a store that skips one of its duties but reports success. The simulation must detect each of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// The duty that is skipped although success is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// These files are not flushed, while a session is opened or while it is used.
    Sync(Files, When),
    /// The names in these directories are not flushed.
    Dir(Dirs, When),
    /// The flush of the log comes after the acknowledgement.
    LateSync,
    /// HEAD is never written.
    NoHead,
    /// Every record says that nothing was durable before it.
    NoWatermark,
    /// Every record is of epoch 1.
    NoEpoch,
    /// Each opener of LOCK gets a file of its own.
    NoLock,
    /// Nothing is written into these files while a session is opened.
    Unwritten(Files),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// A segment that has its name.
    Segment,
    /// One that has not.
    NextSegment,
    Blob,
    /// Bytes cut off.
    Cut,
    /// Why they were.
    Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dirs {
    Parent,
    Session,
    Log,
    Blobs,
    /// One of the 256 below `blobs`.
    Shard,
    Quarantine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Opening,
    Running,
}

impl When {
    fn is(self, opening: bool) -> bool {
        (self == Self::Opening) == opening
    }
}

impl Files {
    fn has(self, path: &Path) -> bool {
        let name = path.file_name().unwrap();
        let ext = path.extension().unwrap_or_default();
        let parent = path.parent().unwrap();
        match self {
            Self::Segment => ext == "jsonl",
            Self::NextSegment => parent.ends_with("log") && ext == "tmp",
            Self::Blob => parent.ends_with("blobs"),
            Self::Cut => name == "cut.tmp",
            Self::Reason => name == "reason.tmp",
        }
    }
}

impl Dirs {
    fn is(self, path: &Path, root: &Path) -> bool {
        match self {
            Self::Parent => path == root,
            Self::Session => path.parent() == Some(root),
            Self::Log => path.ends_with("log"),
            Self::Blobs => path.ends_with("blobs"),
            Self::Shard => path.parent().unwrap().ends_with("blobs"),
            Self::Quarantine => path.ends_with("quarantine"),
        }
    }
}

impl Lie {
    pub(crate) fn skips_sync(&self, path: &Path, opening: bool) -> bool {
        matches!(self, Self::Sync(files, when) if files.has(path) && when.is(opening))
    }

    pub(crate) fn skips_dir(&self, path: &Path, root: &Path, opening: bool) -> bool {
        matches!(self, Self::Dir(dirs, when) if dirs.is(path, root) && when.is(opening))
    }

    pub(crate) fn drops_write(&self, path: &Path, opening: bool) -> bool {
        match self {
            Self::NoHead => path.ends_with("HEAD"),
            Self::Unwritten(files) => opening && files.has(path),
            _ => false,
        }
    }

    /// Lines are written anew, which one that names an older one by its checksum in its body would not survive: these
    /// machines do without second segments.
    pub(crate) fn one_segment(&self) -> bool {
        matches!(self, Self::NoWatermark | Self::NoEpoch)
    }
}

/// Writes lines anew, with other columns and the checksums that follow from them.
#[derive(Default)]
pub(crate) struct Rewriter {
    /// Checksums that the store knows, and those that are in the files.
    crcs: HashMap<Vec<u8>, Vec<u8>>,
}

impl Rewriter {
    pub(crate) fn write<'a>(&mut self, lie: &Lie, path: &Path, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let log = path.parent().unwrap().ends_with("log") && bytes.ends_with(b"\n");
        let head = path.ends_with("HEAD");
        match lie {
            Lie::NoWatermark if log => {
                Cow::Owned(self.lines(bytes, |line| line[78..90].copy_from_slice(b"           0")))
            }
            Lie::NoEpoch if log => {
                Cow::Owned(self.lines(bytes, |line| line[50..56].copy_from_slice(b"     1")))
            }
            Lie::NoEpoch if head => {
                let mut line = bytes.to_vec();
                line[20..26].copy_from_slice(b"     0");
                let crc = crc(&line);
                line[6..14].copy_from_slice(&crc);
                Cow::Owned(line)
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    fn lines(&mut self, bytes: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
        let mut all = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut line = line.to_vec();
            let before = line[6..14].to_vec();
            change(&mut line);
            if let Some(previous) = self.crcs.get(&line[36..44]) {
                line[36..44].copy_from_slice(previous);
            }
            let crc = crc(&line);
            line[6..14].copy_from_slice(&crc);
            self.crcs.insert(before, crc);
            all.extend(line);
        }
        all
    }
}

fn crc(line: &[u8]) -> Vec<u8> {
    format!("{:08x}", crc32c::crc32c(&line[15..line.len() - 1])).into_bytes()
}
