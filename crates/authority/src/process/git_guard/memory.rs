//! A cache of file system state: files unchanged since the last snapshot are not read again.
//!
//! A snapshot is reused when everything it depends on is unchanged, which costs one system call for each file and
//! directory ([`Memory::repeats`]). A missing name, a link, or a directory that was not listed costs none if its parent
//! directory is unchanged, because a directory's times change with its entries.

use super::config::{self, Entry, Unreadable};
use crate::Located;
use crate::fs::{
    FileKind, Meta, Name, Stamp, Workspace, looked_at, meta_at, names, resolve, target,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of one file that are read and kept.
pub(super) const MAX_FILE: u64 = 4 << 20;

/// The most bytes of all files that are kept; of further files only the digest is kept.
const MAX_KEPT: usize = 32 << 20;

/// The most names of one directory that are read.
const MAX_ENTRIES: usize = 16_384;

/// The most resolved paths in a snapshot that can be reused.
const MAX_LED: usize = 128;

/// A change that is younger than this when it is read may be followed by another one with the same time: file systems
/// take theirs from a clock that ticks.
const TICK: i128 = 100_000_000;

#[derive(Clone, Debug)]
pub(super) enum State {
    Missing,
    File(Arc<Content>),
    Link(OsString),
    Dir,
    /// A FIFO, socket or device; or something that could not be read.
    Other(String),
}

#[derive(Debug)]
pub(super) struct Content {
    pub(super) stamp: Stamp,
    pub(super) mode: u32,
    pub(super) digest: blake3::Hash,
    /// The whole content, if it is not too large.
    pub(super) bytes: Option<Arc<[u8]>>,
    config: OnceLock<Result<Vec<Entry>, Unreadable>>,
}

impl Content {
    /// Its entries as a configuration of git.
    pub(super) fn config(&self) -> Result<&[Entry], Unreadable> {
        let read = || self.bytes.as_deref().map_or(Err(Unreadable), config::parse);
        self.config
            .get_or_init(read)
            .as_deref()
            .map_err(|unreadable| *unreadable)
    }
}

impl State {
    /// Whether both have the same content and permissions.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) | (Self::Dir, Self::Dir) => true,
            (Self::File(a), Self::File(b)) => {
                Arc::ptr_eq(a, b) || (a.mode == b.mode && a.digest == b.digest)
            }
            (Self::Link(a), Self::Link(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            _ => false,
        }
    }
}

/// The names in a directory that the caller asked for.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Names, and the type of each where the directory has it.
    pub(super) names: Vec<Name>,
    /// The directory has more names than were read.
    pub(super) cut: bool,
}

#[derive(Debug)]
struct Known {
    at: Located,
    /// `None` if nothing is there.
    stamp: Option<Stamp>,
    /// Another change would have another time.
    stable: bool,
    scan: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    State(State),
    Listing(Arc<Listing>),
}

/// Everything that was read, by path.
#[derive(Debug, Default)]
pub(super) struct Memory {
    states: HashMap<PathBuf, Known>,
    listings: HashMap<PathBuf, Known>,
    /// Paths resolved for this snapshot: the directory and the path as written, and the result.
    led: HashMap<(PathBuf, PathBuf), Option<PathBuf>>,
    kept: usize,
    scan: u64,
    /// A later change could not be distinguished from the state of this snapshot.
    vague: bool,
    /// The files that must be unchanged for this snapshot to be reused; `None` if that cannot be decided.
    proof: Option<Vec<(Located, Option<Stamp>)>>,
    /// The number of system calls for the state of a path.
    pub(super) asked: u64,
}

impl Memory {
    /// Starts a new snapshot; entries that the last one did not use are dropped.
    pub(super) fn begin(&mut self) {
        (self.vague, self.proof) = (false, None);
        self.led.clear();
        let last = self.scan;
        self.states.retain(|_, known| known.scan == last);
        self.listings.retain(|_, known| known.scan == last);
        let size = |known: &Known| match &known.what {
            What::State(State::File(content)) => {
                content.bytes.as_ref().map_or(0, |bytes| bytes.len())
            }
            What::State(_) | What::Listing(_) => 0,
        };
        self.kept = self.states.values().map(size).sum();
        self.scan += 1;
    }

    /// Ends a snapshot and records the files it depends on.
    pub(super) fn end(&mut self) {
        let scan = self.scan;
        let mut seen: BTreeMap<&Path, (&Known, bool)> = BTreeMap::new();
        for (path, known) in self.states.iter().filter(|(_, known)| known.scan == scan) {
            let may_change = matches!(known.what, What::State(State::File(_) | State::Other(_)));
            seen.insert(path, (known, may_change));
        }
        for (path, known) in self.listings.iter().filter(|(_, known)| known.scan == scan) {
            self.vague |= seen
                .get(path.as_path())
                .is_some_and(|(state, _)| state.stamp != known.stamp);
            seen.insert(path, (known, true));
        }
        let above: HashSet<&Path> = seen.keys().filter_map(|path| path.parent()).collect();
        let is_dir = |path: &Path| {
            seen.get(path).is_some_and(|(known, _)| {
                matches!(known.what, What::State(State::Dir) | What::Listing(_))
            })
        };
        // A path below a missing directory needs no check of its own.
        let is_told = |dir: &Path| {
            is_dir(dir)
                || seen
                    .get(dir)
                    .is_some_and(|(known, _)| known.stamp.is_none())
        };
        let asks = |path: &Path, may_change: bool| {
            may_change
                || above.contains(path) && is_dir(path)
                || !path.parent().is_some_and(is_told)
        };
        self.vague |= seen.values().any(|(known, _)| !known.stable);
        let needed = seen
            .iter()
            .filter(|(path, (_, may_change))| asks(path, *may_change));
        self.proof = (!self.vague).then(|| {
            needed
                .map(|(_, (known, _))| (known.at.clone(), known.stamp))
                .collect()
        });
    }

    /// Whether a new snapshot would be equal to the last one.
    pub(super) fn repeats(&mut self) -> bool {
        let Some(proof) = self.proof.take() else {
            return false;
        };
        let same = proof.iter().all(|(at, stamp)| {
            self.asked += 1;
            stands(at).is_ok_and(|now| now.map(|meta| meta.stamp) == *stamp)
        });
        let same = same
            && self
                .led
                .iter()
                .all(|((from, path), to)| resolve(from, path).ok() == *to);
        self.proof = same.then_some(proof);
        same
    }

    /// Resolves a path relative to a directory.
    pub(super) fn leads(&mut self, from: &Path, path: &Path) -> Option<PathBuf> {
        let to = resolve(from, path).ok();
        self.vague |= self.led.len() >= MAX_LED;
        if self.vague {
            return to;
        }
        self.led
            .insert((from.to_owned(), path.to_owned()), to.clone());
        to
    }

    /// The state of a path below a root, links not followed.
    pub(super) fn state(&mut self, roots: &Workspace, path: &Path) -> State {
        if let Some(What::State(state)) = self.recall(|memory| &mut memory.states, path) {
            return state;
        }
        let Some(at) = roots.literal(path) else {
            return State::Other("elsewhere".to_owned());
        };
        let above = path
            .parent()
            .and_then(|dir| self.states.get(dir))
            .filter(|above| above.scan == self.scan);
        if above.is_some_and(|above| matches!(above.what, What::State(State::Missing))) {
            return self.learn(at, None, State::Missing);
        }
        self.asked += 1;
        let meta = match stands(&at) {
            Ok(Some(meta)) => meta,
            Ok(None) => return self.learn(at, None, State::Missing),
            Err(error) => {
                self.vague = true;
                return State::Other(error.to_string());
            }
        };
        let (state, stamp) = match meta.kind {
            FileKind::Dir => (State::Dir, meta.stamp),
            FileKind::Symlink => (
                target(&at).map_or_else(|error| State::Other(error.to_string()), State::Link),
                meta.stamp,
            ),
            FileKind::Other => (
                State::Other("a FIFO, socket or device".to_owned()),
                meta.stamp,
            ),
            FileKind::File => match self.read(roots, &at) {
                Ok(content) => {
                    let stamp = content.stamp;
                    (State::File(Arc::new(content)), stamp)
                }
                Err(why) => {
                    self.vague = true;
                    (State::Other(why), meta.stamp)
                }
            },
        };
        self.learn(at, Some(stamp), state)
    }

    /// The names in a directory that `wanted` accepts; empty if there is no directory.
    pub(super) fn listing(
        &mut self,
        roots: &Workspace,
        path: &Path,
        wanted: fn(&OsString, Option<FileKind>) -> bool,
    ) -> Arc<Listing> {
        if let Some(What::Listing(listing)) = self.recall(|memory| &mut memory.listings, path) {
            return listing;
        }
        let Some(at) = roots.literal(path) else {
            return Arc::default();
        };
        let Ok((meta, mut names)) = names(&at, MAX_ENTRIES) else {
            self.vague = true;
            return Arc::default();
        };
        let cut = names.len() >= MAX_ENTRIES;
        names.retain(|(name, kind)| wanted(name, *kind));
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let listing = Arc::new(Listing { names, cut });
        let known = Known::new(
            at,
            Some(meta.stamp),
            self.scan,
            What::Listing(listing.clone()),
        );
        self.listings.insert(path.to_owned(), known);
        listing
    }

    fn learn(&mut self, at: Located, stamp: Option<Stamp>, state: State) -> State {
        let path = at.path().to_owned();
        self.states.insert(
            path,
            Known::new(at, stamp, self.scan, What::State(state.clone())),
        );
        state
    }

    /// The state of a path from this snapshot, or from an earlier one if it is unchanged.
    fn recall(
        &mut self,
        of: fn(&mut Self) -> &mut HashMap<PathBuf, Known>,
        path: &Path,
    ) -> Option<What> {
        let scan = self.scan;
        let known = of(self).get_mut(path)?;
        if known.scan == scan {
            return Some(known.what.clone());
        }
        let same = known.stable
            && stands(&known.at).is_ok_and(|now| now.map(|meta| meta.stamp) == known.stamp);
        let what = same.then(|| {
            known.scan = scan;
            known.what.clone()
        });
        self.asked += 1;
        what
    }

    fn read(&mut self, roots: &Workspace, at: &Located) -> Result<Content, String> {
        let file = roots.open_file(at).map_err(|error| error.to_string())?;
        // Read before the content: a write during the read shows as a change later.
        let Meta {
            stamp, mode, len, ..
        } = looked_at(&file).map_err(|error| error.to_string())?;
        let mut hasher = blake3::Hasher::new();
        if len > MAX_FILE {
            // The stamp shows any change of such a file; its content is not needed.
            hasher.update(format!("{stamp:?}").as_bytes());
            return Ok(Content {
                stamp,
                mode,
                digest: hasher.finalize(),
                bytes: None,
                config: OnceLock::new(),
            });
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        hasher.update(&bytes);
        let keep = self.kept + bytes.len() <= MAX_KEPT;
        self.kept += if keep { bytes.len() } else { 0 };
        let bytes = keep.then(|| Arc::from(bytes));
        Ok(Content {
            stamp,
            mode,
            digest: hasher.finalize(),
            bytes,
            config: OnceLock::new(),
        })
    }
}

impl Known {
    fn new(at: Located, stamp: Option<Stamp>, scan: u64, what: What) -> Self {
        let stable = stamp.is_none_or(|stamp| now() - stamp.changed() > TICK);
        Self {
            at,
            stamp,
            stable,
            scan,
            what,
        }
    }
}

/// The metadata of a path, if it exists.
fn stands(at: &Located) -> Result<Option<Meta>, Errno> {
    match meta_at(at) {
        Ok(meta) => Ok(Some(meta)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn now() -> i128 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}
