//! Making a name what it was, unless somebody changed it again meanwhile.

use super::memory::State;
use crate::fs::{Workspace, glance, relink, target};
use crate::{Error, Located};
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

pub(super) enum Wanted<'a> {
    Nothing,
    /// A file, with these permission bits; those that it has where there are none.
    Content(&'a [u8], Option<u32>),
    Link(&'a OsStr),
}

pub(super) struct Restore<'a> {
    pub(super) roots: &'a Workspace,
}

impl Restore<'_> {
    /// Replaces what was compared, and nothing else: `now` is what stood there then.
    pub(super) fn make(&self, path: &Path, now: &State, wanted: Wanted<'_>) -> Result<(), String> {
        let at = self.roots.literal(path).ok_or("it is elsewhere")?;
        let text = |error: Error| error.to_string();
        match (now, wanted) {
            (State::Dir, _) => Err("a directory is in its place".to_owned()),
            (State::File(content), Wanted::Content(bytes, mode)) => {
                let staged = self.roots.stage_over(&at, Some(content.stamp), number(), bytes).map_err(text)?;
                let staged = staged.with_mode(mode.unwrap_or(content.mode)).map_err(text)?;
                staged.publish().map(drop).map_err(text)
            }
            (_, wanted) => {
                self.clear(&at, now)?;
                match wanted {
                    Wanted::Nothing => Ok(()),
                    Wanted::Link(to) => relink(&at, to).map_err(text),
                    Wanted::Content(bytes, mode) => {
                        let staged = self.roots.stage_over(&at, None, number(), bytes).map_err(text)?;
                        let staged = match mode {
                            Some(mode) => staged.with_mode(mode).map_err(text)?,
                            None => staged,
                        };
                        staged.publish().map(drop).map_err(text)
                    }
                }
            }
        }
    }

    /// Takes away what was compared.
    fn clear(&self, at: &Located, now: &State) -> Result<(), String> {
        let same = match now {
            State::Missing => return Ok(()),
            State::File(content) => glance(at).is_ok_and(|meta| meta.stamp == content.stamp),
            State::Link(to) => target(at).is_ok_and(|target| target == *to),
            State::Other(_) => true,
            State::Dir => false,
        };
        if !same {
            return Err("it was changed again meanwhile".to_owned());
        }
        self.roots.remove(at).map_err(|error| error.to_string())
    }
}

/// For the temporary name: nobody else beside the file uses it.
fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}
