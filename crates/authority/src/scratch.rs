//! A private directory that goes when its owner goes.

use crate::remove::{MAX_TIME, open, remove};
use crate::{Ambient, Error, ErrorKind};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a start removes stale directories; the next start goes on.
const MAX_STALE: Duration = Duration::from_secs(1);

/// How often a directory is made that another start takes for a stale one at once.
const TRIES: usize = 8;

/// A private directory below another one; removed with all its content when dropped.
///
/// It is held by a lock on the directory itself: nothing inside can take that away, and it goes with the process,
/// whatever ends that. Process numbers say less: they come again, and differ between containers.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    removed: bool,
    _held: File,
}

impl Scratch {
    /// Creates `<prefix><pid>-<16 hex digits>` below `parent`, and removes this user's directories of such names
    /// there that nobody holds.
    ///
    /// # Errors
    /// Whatever keeps the system from creating it.
    pub fn create(_: &Ambient, parent: &Path, prefix: &str) -> Result<Self, Error> {
        remove_stale(parent, prefix, Instant::now() + MAX_STALE);
        for _ in 0..TRIES {
            let random = RandomState::new().build_hasher().finish();
            let path = parent.join(format!("{prefix}{}-{random:016x}", std::process::id()));
            make_private(&path)?;
            let held = match open(CWD, &path) {
                Ok(held) => File::from(held),
                // Another start took it for a stale one in this moment.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(Error::io("open", &path, error)),
            };
            // Where directories cannot be locked, nobody's can, and none is ever taken for stale.
            held.lock().unwrap_or_default();
            // Until it was locked, another start could find and remove it.
            if same(&held, &path) {
                let path = path.canonicalize().map_err(|error| Error::io("open", &path, error))?;
                return Ok(Self { path, removed: false, _held: held });
            }
        }
        let shown = crate::escape(parent);
        Err(Error::new(ErrorKind::Unavailable, format!("{shown}: a new directory is removed by somebody else at once")))
    }

    /// This user's directories of such names below `parent` whose owners are gone. While its file is kept, nobody else
    /// removes one.
    pub fn left<'a>(_: &Ambient, parent: &Path, prefix: &'a str) -> impl Iterator<Item = (PathBuf, File)> + use<'a> {
        unheld(parent, prefix)
    }

    /// Where it is, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now, and says when that fails.
    ///
    /// # Errors
    /// Whatever keeps the system from removing it.
    pub fn remove(mut self) -> Result<(), Error> {
        self.removed = true;
        remove(&self.path, Instant::now() + MAX_TIME).map_err(|error| Error::io("remove", &self.path, error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            // What cannot be removed stays for the next start: nothing depends on its absence.
            remove(&self.path, Instant::now() + MAX_TIME).unwrap_or_default();
        }
    }
}

pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| match (error.kind(), path.parent()) {
        (std::io::ErrorKind::NotFound, Some(parent)) => {
            let text = format!(
                "the directory for temporary files, {}, does not exist; make it, or set TMPDIR to one that does",
                crate::escape(parent)
            );
            Error::new(ErrorKind::Unavailable, text)
        }
        _ => Error::io("create temporary directory", path, error),
    })
}

fn remove_stale(parent: &Path, prefix: &str, until: Instant) {
    for (path, _held) in unheld(parent, prefix) {
        remove(&path, until).unwrap_or_default();
    }
}

/// This user's directories of such names that nobody held; each is held while its file is.
pub(crate) fn unheld<'a>(parent: &Path, prefix: &'a str) -> impl Iterator<Item = (PathBuf, File)> + use<'a> {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(move |entry| entry.file_name().to_str().is_some_and(|name| named(name, prefix)));
    named.filter_map(move |entry| {
        let path = entry.path();
        // Before it is opened, which may change its permissions.
        entry.metadata().ok().filter(|meta| meta.is_dir() && meta.uid() == own)?;
        let held = File::from(open(CWD, &path).ok()?);
        let free = held.metadata().is_ok_and(|meta| meta.uid() == own) && held.try_lock().is_ok();
        (free && same(&held, &path)).then_some((path, held))
    })
}

fn named(name: &str, prefix: &str) -> bool {
    let parts = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        pid.parse::<u32>().is_ok() && random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn same(held: &File, path: &Path) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    held.metadata().is_ok_and(|held| path.symlink_metadata().is_ok_and(|named| id(held) == id(named)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_nobody_holds_is_removed_whatever_its_number_says() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (own, random) = (std::process::id(), "0123456789abcdef");
        let stale = [format!("yoi-{own}-{random}"), format!("yoi-4194304-{random}")];
        let others = ["yoi-12-0123", "yoi-x-0123456789abcdef", "yoi-ephemeral-12-0123456789abcdef"].map(str::to_owned);
        stale.iter().chain(&others).for_each(|name| fs::create_dir_all(at(name).join("sub")).unwrap());
        let held_name = format!("yoi-4194305-{random}");
        fs::create_dir(at(&held_name)).unwrap();
        let held = File::open(at(&held_name)).unwrap();
        held.lock().unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        symlink(at("elsewhere"), at(&format!("yoi-4194306-{random}"))).unwrap();

        let scratch = Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap();
        assert!(stale.iter().all(|name| !at(name).exists()));
        assert!(others.iter().all(|name| at(name).exists()));
        assert!(at(&held_name).exists() && at("elsewhere").exists());
        // Its own too is held, in this process as well.
        let other = Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap();
        assert!(scratch.path().exists());
        let paths = [scratch.path().to_owned(), other.path().to_owned()];
        drop(held);
        drop(other);
        scratch.remove().unwrap();
        assert!(paths.iter().all(|path| !path.exists()));
    }

    /// A start removes for so long, and the next one goes on.
    #[test]
    fn what_is_left_of_a_stale_one_is_removed_later() {
        let dir = tempfile::tempdir().unwrap();
        let stale = dir.path().join("yoi-4194304-0123456789abcdef");
        (0..30).for_each(|number| fs::create_dir_all(stale.join(format!("{number}/a/b"))).unwrap());
        let closed = stale.join("0/a");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let now = Instant::now();
        remove_stale(dir.path(), "yoi-", now);
        assert!(closed.exists(), "there was no time");
        let held = open(CWD, &stale).map(File::from).unwrap();
        held.lock().unwrap();
        remove_stale(dir.path(), "yoi-", now + MAX_TIME);
        assert!(closed.exists(), "it is held");
        drop(held);
        remove_stale(dir.path(), "yoi-", now + MAX_TIME);
        assert!(!stale.exists());
    }

    #[test]
    fn many_starts_at_once_do_not_take_each_others() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    (0..200).for_each(|_| drop(Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap()))
                });
            }
        });
    }

    #[test]
    fn a_removal_that_fails_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap();
        fs::create_dir(scratch.path().join("sub")).unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o500)).unwrap();
        scratch.remove().unwrap();
        let scratch = Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap();
        fs::remove_dir(scratch.path()).unwrap();
        fs::write(scratch.path(), "no directory").unwrap();
        assert!(scratch.remove().is_err());
        let scratch = Scratch::create(&Ambient::claim(), dir.path(), "yoi-").unwrap();
        fs::remove_dir(scratch.path()).unwrap();
        scratch.remove().unwrap();
    }
}
