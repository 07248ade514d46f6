//! What names of the file system held when they were last read: what has not changed since is not read again.

use super::config::{self, Entry, Unreadable};
use crate::fs::{FileKind, Meta, Name, Stamp, Workspace, glance, looked_at, names, target};
use crate::{Located, wall_clock};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

/// How much of one file is read and kept.
pub(super) const MAX_FILE: u64 = 4 << 20;

/// How much of all files is kept together; what is beyond is known by its digest only.
const MAX_KEPT: usize = 32 << 20;

/// How many names of one directory are read.
const MAX_ENTRIES: usize = 16_384;

/// A change that is younger than this when it is read may be followed by another one with the same time: file systems
/// take theirs from a clock that ticks.
const TICK: i128 = 100_000_000;

/// What stands at a name.
#[derive(Clone, Debug)]
pub(super) enum State {
    Missing,
    File(Arc<Content>),
    /// A link and where it points.
    Link(OsString),
    Dir,
    /// A FIFO, socket or device; or something that could not be read.
    Other(String),
}

/// A file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) stamp: Stamp,
    pub(super) mode: u32,
    pub(super) digest: blake3::Hash,
    /// All of it, where it is not too large.
    pub(super) bytes: Option<Arc<[u8]>>,
    config: OnceLock<Result<Vec<Entry>, Unreadable>>,
}

impl Content {
    /// Its entries as a configuration of git.
    pub(super) fn config(&self) -> Result<&[Entry], Unreadable> {
        let read = || self.bytes.as_deref().map_or(Err(Unreadable), config::parse);
        self.config.get_or_init(read).as_deref().map_err(|unreadable| *unreadable)
    }
}

impl State {
    /// Whether both are the same to whoever runs or reads them.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) | (Self::Dir, Self::Dir) => true,
            (Self::File(a), Self::File(b)) => Arc::ptr_eq(a, b) || (a.mode == b.mode && a.digest == b.digest),
            (Self::Link(a), Self::Link(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            _ => false,
        }
    }
}

/// What a directory holds, as far as is asked.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Names, and whether each is a directory; nothing where the directory does not say.
    pub(super) names: Vec<Name>,
    /// There are more than are read.
    pub(super) cut: bool,
}

#[derive(Debug)]
struct Known {
    at: Located,
    stamp: Stamp,
    /// Another change would have another time.
    settled: bool,
    scan: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    State(State),
    Listing(Arc<Listing>),
}

/// Everything that was read, by name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    states: HashMap<PathBuf, Known>,
    listings: HashMap<PathBuf, Known>,
    kept: usize,
    scan: u64,
}

impl Memory {
    /// A new look at everything begins; what the last one did not come to is forgotten.
    pub(super) fn begin(&mut self) {
        let last = self.scan;
        self.states.retain(|_, known| known.scan == last);
        self.listings.retain(|_, known| known.scan == last);
        let size = |known: &Known| match &known.what {
            What::State(State::File(content)) => content.bytes.as_ref().map_or(0, |bytes| bytes.len()),
            What::State(_) | What::Listing(_) => 0,
        };
        self.kept = self.states.values().map(size).sum();
        self.scan += 1;
    }

    /// What stands at a path below a root, links not followed.
    pub(super) fn state(&mut self, roots: &Workspace, path: &Path) -> State {
        if let Some(What::State(state)) = recall(&mut self.states, path, self.scan) {
            return state;
        }
        let Some(at) = roots.literal(path) else { return State::Other("elsewhere".to_owned()) };
        let meta = match glance(&at) {
            Ok(meta) => meta,
            Err(Errno::NOENT | Errno::NOTDIR) => return State::Missing,
            Err(error) => return State::Other(error.to_string()),
        };
        let (state, stamp) = match meta.kind {
            FileKind::Dir => (State::Dir, meta.stamp),
            FileKind::Symlink => {
                (target(&at).map_or_else(|error| State::Other(error.to_string()), State::Link), meta.stamp)
            }
            FileKind::Other => (State::Other("a FIFO, socket or device".to_owned()), meta.stamp),
            FileKind::File => match self.read(roots, &at) {
                Ok(content) => {
                    let stamp = content.stamp;
                    (State::File(Arc::new(content)), stamp)
                }
                Err(why) => (State::Other(why), meta.stamp),
            },
        };
        let known = Known { at, settled: settled(&stamp), stamp, scan: self.scan, what: What::State(state.clone()) };
        self.states.insert(path.to_owned(), known);
        state
    }

    /// What a directory holds; nothing where there is none. Only names that `wanted` takes are kept.
    pub(super) fn listing(
        &mut self,
        roots: &Workspace,
        path: &Path,
        wanted: fn(&OsString, Option<FileKind>) -> bool,
    ) -> Arc<Listing> {
        if let Some(What::Listing(listing)) = recall(&mut self.listings, path, self.scan) {
            return listing;
        }
        let Some(at) = roots.literal(path) else { return Arc::default() };
        let Ok((meta, mut names)) = names(&at, MAX_ENTRIES) else { return Arc::default() };
        let cut = names.len() >= MAX_ENTRIES;
        names.retain(|(name, kind)| wanted(name, *kind));
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let listing = Arc::new(Listing { names, cut });
        let stamp = meta.stamp;
        let what = What::Listing(listing.clone());
        let known = Known { at, settled: settled(&stamp), stamp, scan: self.scan, what };
        self.listings.insert(path.to_owned(), known);
        listing
    }

    fn read(&mut self, roots: &Workspace, at: &Located) -> Result<Content, String> {
        let file = roots.open_file(at).map_err(|error| error.to_string())?;
        // Before its content: what is written while it is read shows as a change later.
        let Meta { stamp, mode, len, .. } = looked_at(&file).map_err(|error| error.to_string())?;
        let mut hasher = blake3::Hasher::new();
        if len > MAX_FILE {
            // Any change of such a file shows in its times, and it is read by nobody.
            hasher.update(format!("{stamp:?}").as_bytes());
            return Ok(Content { stamp, mode, digest: hasher.finalize(), bytes: None, config: OnceLock::new() });
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        hasher.update(&bytes);
        let keep = self.kept + bytes.len() <= MAX_KEPT;
        self.kept += if keep { bytes.len() } else { 0 };
        let bytes = keep.then(|| Arc::from(bytes));
        Ok(Content { stamp, mode, digest: hasher.finalize(), bytes, config: OnceLock::new() })
    }
}

fn recall(known: &mut HashMap<PathBuf, Known>, path: &Path, scan: u64) -> Option<What> {
    let known = known.get_mut(path)?;
    let same = known.settled && glance(&known.at).is_ok_and(|meta| meta.stamp == known.stamp);
    same.then(|| {
        known.scan = scan;
        known.what.clone()
    })
}

fn settled(stamp: &Stamp) -> bool {
    now() - stamp.changed() > TICK
}

/// Nanoseconds since 1970.
pub(super) fn now() -> i128 {
    let since = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
