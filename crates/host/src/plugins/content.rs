//! The files of a package: digested, and copied to where no child can change them.

use crate::env::{Env, settled};
use crate::plain_file::{self, Links};
use authority::Scratch;
use plugin::{Archive, Content, MAX_BYTES, MAX_DEPTH, MAX_FILES};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of copies, below yoi's cache directory.
const PACKAGES: &str = "packages";

/// What the names of copies begin with that are being made.
const STAGED: &str = "new-";

/// Written by all confined children.
const SHARED_MEMORY: &str = "/dev/shm";

/// In the package itself it is no part of the content: git changes it, and the copy does not have it.
const GIT: &str = ".git";

/// Reads all files of a package; `each` gets the path, whether it can be executed, and the bytes.
///
/// # Errors
/// A link, a file that is neither a directory nor regular, a name that is not UTF-8, or a package that is too large.
fn read(
    dir: &Path,
    mut each: impl FnMut(&str, bool, &[u8]) -> Result<(), String>,
) -> Result<Content, String> {
    let mut content = Content::default();
    let mut left = MAX_BYTES;
    let mut dirs = 0_usize;
    let mut open = vec![(String::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        let shown = |name: &str| authority::text::escape_line(name).into_owned();
        let entries = fs::read_dir(dir.join(&below))
            .map_err(|error| format!("{}: {error}", shown(&below)))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", shown(&below)))?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| format!("a name in `{}` is not UTF-8", shown(&below)))?;
            if depth == 0 && name == GIT {
                continue;
            }
            let path = if below.is_empty() {
                name.to_owned()
            } else {
                format!("{below}/{name}")
            };
            let unfit = |why: &str| format!("{}: {why}", shown(&path));
            let kind = entry
                .file_type()
                .map_err(|error| unfit(&error.to_string()))?;
            if kind.is_dir() {
                dirs += 1;
                if depth >= MAX_DEPTH || dirs > MAX_FILES {
                    return Err(unfit("too many directories, or too deep"));
                }
                open.push((path, depth + 1));
                continue;
            }
            let (executable, bytes) = file(&entry.path(), left).map_err(|why| unfit(&why))?;
            left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            each(&path, executable, &bytes)?;
            content
                .add(path, executable, &bytes)
                .map_err(|why| why.to_string())?;
        }
    }
    Ok(content)
}

/// The content of a directory, as [`read`] has it.
pub fn of(dir: &Path) -> Result<Content, String> {
    read(dir, |_, _, _| Ok(()))
}

/// The same with the bytes of the files that are wanted.
pub(super) fn with_files(
    dir: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Content, BTreeMap<String, Vec<u8>>), String> {
    let mut files = BTreeMap::new();
    let content = read(dir, |path, _, bytes| {
        if wanted(path) {
            files.insert(path.to_owned(), bytes.to_vec());
        }
        Ok(())
    })?;
    Ok((content, files))
}

/// Whether a file can be executed, and its bytes.
fn file(path: &Path, most: u64) -> Result<(bool, Vec<u8>), String> {
    let file = plain_file::open(path, Links::Refused)?.ok_or("it is not there any more")?;
    let mode = file
        .metadata()
        .map_err(|error| error.to_string())?
        .permissions()
        .mode();
    Ok((mode & 0o111 != 0, plain_file::whole(file, most)?))
}

/// Writes the content of a package into another directory; `modes` are those of its files and of what can be executed.
pub(super) fn write(package: &Path, to: &Path, modes: (u32, u32)) -> Result<Content, String> {
    read(package, |path, executable, bytes| {
        let mode = if executable { modes.1 } else { modes.0 };
        write_file(&to.join(path), mode, bytes)
    })
}

/// Writes the files of an archive into an empty directory of this user alone.
///
/// # Errors
/// The disk.
pub fn unpack(archive: &Archive, to: &Path) -> Result<(), String> {
    for (path, file) in archive.files() {
        let mode = if file.executable { 0o700 } else { 0o600 };
        write_file(&to.join(path), mode, &file.bytes)?;
    }
    Ok(())
}

fn write_file(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), String> {
    let made = path
        .parent()
        .map_or(Ok(()), |dir| private_dirs().create(dir));
    let file = made.and_then(|()| {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)
    });
    file.and_then(|mut file| file.write_all(bytes))
        .map_err(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> String {
    format!("its copy cannot be written: {error}")
}

/// Makes directories for this user alone.
fn private_dirs() -> DirBuilder {
    let mut private = DirBuilder::new();
    private.recursive(true).mode(0o700);
    private
}

/// Where the copies of granted packages are, by their digests: below the cache directory, which children neither write nor,
/// but for these packages, read.
#[derive(Clone, Debug)]
pub struct CopyPlace(PathBuf);

impl CopyPlace {
    /// # Errors
    /// The cache directory is in the one of the configuration or of the state, which no child may read.
    pub fn of(env: &Env) -> Result<Self, String> {
        let place =
            |dir: Result<PathBuf, crate::exit::Failure>| dir.map_err(|failure| failure.message);
        let packages = settled(&place(env.cache_dir())?.join(PACKAGES));
        let hidden = [place(env.state_dir())?, place(env.config_dir())?].map(|dir| settled(&dir));
        if hidden.iter().any(|dir| packages.starts_with(dir)) {
            return Err(
                "XDG_CACHE_HOME is in the directory of yoi's configuration or state; set another one".to_owned()
            );
        }
        Ok(Self(packages))
    }

    /// # Errors
    /// Children that may write this directory could change the copies between a check and a call.
    pub fn outside(self, written: &Path) -> Result<Self, String> {
        let overlaps = |dir: &Path| self.0.starts_with(dir) || dir.starts_with(&self.0);
        match [written, Path::new(SHARED_MEMORY)]
            .into_iter()
            .any(overlaps)
        {
            true => Err(format!(
                "commands can write {}, where copies of plugins are kept; set XDG_CACHE_HOME to another directory",
                authority::escape(&self.0)
            )),
            false => Ok(self),
        }
    }

    /// Where the copy of the content with this digest is, or will be.
    pub fn at(&self, digest: &str) -> PathBuf {
        self.0.join(digest)
    }

    /// Copies a package, unless that was done before.
    ///
    /// # Errors
    /// The package has another digest, or the copy cannot be written.
    pub fn copy(&self, package: &Path, digest: &str) -> Result<PathBuf, String> {
        let to = self.at(digest);
        if of(&to).is_ok_and(|there| there.digest() == digest) {
            return self.is_private().map(|()| to);
        }
        private_dirs()
            .create(&self.0)
            .map_err(|error| failed(&error))?;
        self.is_private()?;
        // Removed when dropped, and with it what a process left that was killed while it copied.
        let staged =
            Scratch::create(&ambient::claim(), &self.0, STAGED).map_err(|error| failed(&error))?;
        let new = staged.path().join(digest);
        private_dirs()
            .create(&new)
            .map_err(|error| failed(&error))?;
        if write(package, &new, (0o400, 0o500))?.digest() != digest {
            return Err("it changed while it was copied".to_owned());
        }
        // Another process may have copied it meanwhile; anything else that is there is no copy.
        if let Err(error) = fs::rename(&new, &to)
            && !of(&to).is_ok_and(|there| there.digest() == digest)
        {
            self.remove(digest);
            fs::rename(&new, &to).map_err(|_| failed(&error))?;
        }
        Ok(to)
    }

    /// Another user who can write there could change a copy between a check and a call.
    fn is_private(&self) -> Result<(), String> {
        let unfit =
            |dir: &Path| plain_file::is_of_user_alone(dir).map_err(|why| (dir.to_owned(), why));
        let checked = self
            .0
            .parent()
            .map_or(Ok(()), unfit)
            .and_then(|()| unfit(&self.0));
        checked.map_err(|(dir, why)| {
            format!(
                "its copy would not be safe: {}: {why}",
                authority::escape(&dir)
            )
        })
    }

    /// Removes a copy; calls that use it are refused from then on.
    pub fn remove(&self, digest: &str) {
        drop(authority::remove_dir(&ambient::claim(), &self.at(digest)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn nested(dir: &Path, depth: usize) -> PathBuf {
        let below = (0..depth).fold(dir.to_owned(), |dir, _| dir.join("d"));
        fs::create_dir_all(&below).unwrap();
        below
    }

    #[test]
    fn directories_are_bounded() {
        let package = tempfile::tempdir().unwrap();
        fs::write(nested(package.path(), MAX_DEPTH).join("file"), "x").unwrap();
        assert_eq!(of(package.path()).unwrap().lines().count(), 1);
        nested(package.path(), MAX_DEPTH + 1);
        assert!(of(package.path()).unwrap_err().contains("too deep"));
        let package = tempfile::tempdir().unwrap();
        for number in 0..MAX_FILES {
            fs::create_dir(package.path().join(number.to_string())).unwrap();
        }
        assert_eq!(of(package.path()), Ok(Content::default()));
        fs::create_dir(package.path().join("one-more")).unwrap();
        assert!(
            of(package.path())
                .unwrap_err()
                .contains("too many directories")
        );
    }

    #[test]
    fn files_and_bytes_are_bounded() {
        let package = tempfile::tempdir().unwrap();
        let sparse = |name: &str, bytes: u64| {
            fs::File::create(package.path().join(name))
                .unwrap()
                .set_len(bytes)
                .unwrap()
        };
        sparse("a", MAX_BYTES - 1);
        sparse("b", 1);
        assert!(of(package.path()).is_ok());
        sparse("b", 2);
        assert!(of(package.path()).is_err());
        sparse("a", 100 << 30);
        assert!(of(package.path()).is_err());
        let package = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            fs::write(package.path().join(number.to_string()), "").unwrap();
        }
        assert!(
            of(package.path())
                .unwrap_err()
                .contains("more than 4096 files")
        );
    }

    #[test]
    fn only_regular_files_are_content() {
        let package = tempfile::tempdir().unwrap();
        let at = |name: &str| package.path().join(name);
        fs::create_dir(at(".git")).unwrap();
        symlink("/etc/passwd", at(".git/link")).unwrap();
        fs::write(at("file"), "x").unwrap();
        let content = of(package.path()).unwrap();
        assert_eq!(
            content.lines().map(|(path, _)| path).collect::<Vec<_>>(),
            ["file"],
            "git is no part of it"
        );
        fs::create_dir_all(at("below/.git")).unwrap();
        fs::write(at("below/.git/config"), "x").unwrap();
        assert_eq!(
            of(package.path()).unwrap().lines().count(),
            2,
            "another directory of git is content"
        );
        // A link with another name counts as what it leads to: its bytes are in the digest, and the copy is a file of its own.
        fs::hard_link(at("file"), at("other")).unwrap();
        let to = tempfile::tempdir().unwrap();
        write(package.path(), to.path(), (0o400, 0o500)).unwrap();
        fs::write(at("file"), "changed").unwrap();
        assert_eq!(fs::read_to_string(to.path().join("other")).unwrap(), "x");
        let name = std::ffi::OsString::from_vec(b"\xff".to_vec());
        for (what, make) in [
            (
                "symbolic link",
                Box::new(|path: &Path| symlink("file", path))
                    as Box<dyn Fn(&Path) -> std::io::Result<()>>,
            ),
            ("symbolic link", Box::new(|path: &Path| symlink(".", path))),
            (
                "",
                Box::new(|path: &Path| UnixListener::bind(path).map(drop)),
            ),
        ] {
            make(&at("bad")).unwrap();
            assert!(of(package.path()).unwrap_err().contains(what), "{what}");
            fs::remove_file(at("bad")).unwrap();
        }
        fs::write(package.path().join(name), "").unwrap();
        assert!(of(package.path()).unwrap_err().contains("not UTF-8"));
    }
}
