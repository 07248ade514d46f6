//! Restoring a file or link, unless it changed again meanwhile.

use super::memory::State;
use crate::fs::{Stamp, Workspace, meta_at, relink, target};
use crate::{Error, Located};
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

pub(super) enum Wanted<'a> {
    Nothing,
    /// A file with this content and these permission bits; `None` keeps the current bits.
    Content(&'a [u8], Option<u32>),
    Link(&'a OsStr),
}

/// Brings a path into the wanted state. Fails if the path is no longer in the state `now`, the one that was compared.
pub(super) fn restore(
    roots: &Workspace,
    path: &Path,
    now: &State,
    wanted: Wanted<'_>,
) -> Result<(), String> {
    let at = roots
        .literal(path)
        .ok_or("it is outside of the watched directories")?;
    let write = |was: Option<Stamp>, bytes: &[u8], mode: Option<u32>| {
        let staged = roots.stage_over(&at, was, number(), bytes)?;
        let staged = match mode {
            Some(mode) => staged.with_mode(mode)?,
            None => staged,
        };
        staged.publish().map(drop)
    };
    let done = match (now, wanted) {
        (State::Dir, _) => return Err("a directory is in its place".to_owned()),
        (State::File(content), Wanted::Content(bytes, mode)) => write(
            Some(content.stamp),
            bytes,
            Some(mode.unwrap_or(content.mode)),
        ),
        (_, wanted) => {
            clear(roots, &at, now)?;
            match wanted {
                Wanted::Nothing => Ok(()),
                Wanted::Link(to) => relink(&at, to),
                Wanted::Content(bytes, mode) => write(None, bytes, mode),
            }
        }
    };
    done.map_err(|error: Error| error.to_string())
}

/// Removes the file or link that was compared.
fn clear(roots: &Workspace, at: &Located, now: &State) -> Result<(), String> {
    let same = match now {
        State::Missing => return Ok(()),
        State::File(content) => meta_at(at).is_ok_and(|meta| meta.stamp == content.stamp),
        State::Link(to) => target(at).is_ok_and(|target| target == *to),
        State::Other(_) => true,
        State::Dir => false,
    };
    if !same {
        return Err("it was changed again".to_owned());
    }
    roots.remove(at).map_err(|error| error.to_string())
}

/// A random number for the temporary name.
fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}
