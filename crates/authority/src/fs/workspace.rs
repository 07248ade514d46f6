//! The directories of one grant. Does not depend on its holder or purpose.

use super::locate::{Located, Location, Root};
use super::secrets::SecretNames;
use super::{locate, show};
use crate::{Ambient, Door, Error, ErrorKind, UseGuard};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

/// The access that a [`Workspace`] allows below one of its roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read files, list directories, read metadata.
    Read,
    /// Also create, replace and remove.
    ReadWrite,
}

/// A handle for the files below the directories of one grant: the project and added directories. All file operations of
/// tools and features go through one. Clones share the grant's door.
#[derive(Clone, Debug)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
    project: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
    secrets: Arc<SecretNames>,
    door: Arc<Door>,
    /// What commands read, beside the roots.
    common: Arc<OnceLock<Common>>,
}

/// Directories that are looked for when a path is in no root.
type Common = LazyLock<Vec<PathBuf>, Box<dyn FnOnce() -> Vec<PathBuf> + Send>>;

impl Workspace {
    /// The project directory and the working directory inside it. Both are resolved, symbolic links included.
    ///
    /// # Errors
    /// `FixInput` when one does not exist, is no directory, or `cwd` is not inside `project`; `Denied` by the system.
    pub fn open(_: &Ambient, project: &Path, cwd: &Path, access: Access) -> Result<Self, Error> {
        let root = Root::open(project, access)?;
        let cwd = match cwd == root.path {
            true => root.path.clone(),
            false => cwd
                .canonicalize()
                .map_err(|error| Error::io("open working directory", cwd, error))?,
        };
        if !cwd.starts_with(&root.path) {
            let cwd = super::escape(&cwd);
            let project = super::escape(&root.path);
            let text = format!(
                "working directory {cwd} is not inside the project {project}; name one that is"
            );
            return Err(Error::new(ErrorKind::FixInput, text));
        }
        let project = root.path.clone();
        let secrets = Arc::new(SecretNames::with(&[])?);
        Ok(Self {
            roots: vec![Arc::new(root)],
            project,
            cwd,
            home: None,
            secrets,
            door: Door::new(),
            common: Arc::default(),
        })
    }

    /// Adds a directory. Where roots contain each other, the innermost decides.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    pub fn with_dir(mut self, _: &Ambient, dir: &Path, access: Access) -> Result<Self, Error> {
        let root = Root::open(dir, access)?;
        self.roots
            .retain(|old| old.path != root.path || old.path == self.project);
        match self.roots.iter_mut().find(|old| old.path == root.path) {
            // Adding the project again changes its access.
            Some(same) => *same = Arc::new(root),
            None => self.roots.push(Arc::new(root)),
        }
        Ok(self)
    }

    /// Also reads below these directories, which commands read ([`crate::Spawner::readable`]), and so do its clones. These are no
    /// roots. The first call counts.
    pub fn also_read(&self, _: &Ambient, dirs: impl FnOnce() -> Vec<PathBuf> + Send + 'static) {
        self.common.set(LazyLock::new(Box::new(dirs))).ok();
    }

    /// Sets the person's home directory, which `~` means in messages. It is no root.
    #[must_use]
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// The person's home directory, if it is known.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Replaces the built-in names of files that may hold secrets.
    #[must_use]
    pub fn with_secrets(self, names: SecretNames) -> Self {
        Self {
            secrets: Arc::new(names),
            ..self
        }
    }

    /// The names of files that may hold secrets; see [`Workspace::may_hold_secrets`].
    pub fn secret_names(&self) -> &SecretNames {
        &self.secrets
    }

    /// A handle for the same directories, read-only, under a derived door.
    #[must_use]
    pub fn read_only(&self) -> Self {
        let roots = self
            .roots
            .iter()
            .map(|root| Arc::new(root.read_only()))
            .collect();
        Self {
            roots,
            ..self.derive()
        }
    }

    /// A handle for the same directories under a derived door.
    #[must_use]
    pub fn derive(&self) -> Self {
        Self {
            door: self.door.derive(),
            ..self.clone()
        }
    }

    /// The door of this grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// The project directory, resolved.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The working directory, resolved.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The roots, the project first.
    pub fn roots(&self) -> impl Iterator<Item = (&Path, Access)> {
        self.roots
            .iter()
            .map(|root| (root.path.as_path(), root.access))
    }

    /// The roots that were moved, deleted, or replaced by another directory since they were opened: writes would go to
    /// a directory that no path names, and children may use the old one only. Costs one `lstat` for each root; a path
    /// whose metadata cannot be read counts as replaced.
    pub fn replaced(&self) -> Vec<&Path> {
        self.roots
            .iter()
            .filter(|root| root.is_replaced())
            .map(|root| root.path.as_path())
            .collect()
    }

    /// Fails when roots were [`Workspace::replaced`].
    ///
    /// # Errors
    /// `Unavailable`; the text names the roots and what to do. No later call succeeds unless the old directories are
    /// moved back.
    pub fn check_roots(&self) -> Result<(), Error> {
        let replaced: Vec<_> = self.replaced().into_iter().map(super::escape).collect();
        if replaced.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{}: moved, deleted or replaced after it was opened; move the old directory back, or start again to use the new one",
            replaced.join(", ")
        );
        Err(Error::new(ErrorKind::Unavailable, text))
    }

    /// Resolves a path, relative to the working directory or absolute: `..`, symbolic links in it, and links to files
    /// that do not exist yet. Links are read outside of the roots, too.
    ///
    /// # Errors
    /// `FixInput` for an empty path, a NUL byte, a loop of links, a file used as a directory; `Revoked`.
    pub fn locate(&self, path: &Path) -> Result<Location, Error> {
        let _use = self.enter(path)?;
        let resolved = locate::resolve(&self.cwd, path)?;
        let common = || Root::common(self.common_dir(&resolved)?).ok().map(Arc::new);
        Ok(match self.innermost(&resolved).cloned().or_else(common) {
            Some(root) => Location::Inside(Located::new(root, resolved)?),
            None => Location::Outside(resolved),
        })
    }

    /// An absolute path without `.` and `..` below a root, not resolved: operations on it refuse links on the way, and
    /// act on a link at its end itself.
    pub(crate) fn literal(&self, path: &Path) -> Option<Located> {
        self.innermost(path)
            .and_then(|root| Located::new(root.clone(), path.to_owned()).ok())
    }

    /// [`Workspace::locate`] that fails for a path outside of the roots.
    ///
    /// # Errors
    /// `Denied` for a path outside of every root; otherwise as [`Workspace::locate`].
    pub fn inside(&self, path: &Path) -> Result<Located, Error> {
        match self.locate(path)? {
            Location::Inside(at) => Ok(at),
            Location::Outside(resolved) => {
                let roots: Vec<_> = self.roots.iter().map(|root| root.path.clone()).collect();
                Err(crate::error::outside(&resolved, &roots))
            }
        }
    }

    /// Where a path leads, if something is there and outside of every root. Nothing of it is read.
    pub fn existing_outside(&self, path: &Path) -> Option<PathBuf> {
        match self.locate(path) {
            Ok(Location::Outside(resolved)) => Some(resolved).filter(|resolved| resolved.exists()),
            Ok(Location::Inside(at)) => {
                Some(at.path().to_owned()).filter(|path| at.is_common() && path.exists())
            }
            Err(_) => None,
        }
    }

    /// A path for people and models: relative to the working directory when inside it (`.` for itself), else absolute;
    /// one line, with control and text-reordering characters escaped.
    pub fn show(&self, path: &Path) -> String {
        show::relative_to(&self.cwd, path)
    }

    /// Enters the door for an operation on `path`.
    pub(super) fn enter(&self, path: &Path) -> Result<UseGuard<'_>, Error> {
        self.door
            .enter()
            .map_err(|_| Error::revoked(&self.show(path)))
    }

    /// Enters the door for an operation on a located path, which must be below one of these roots with the wanted
    /// access.
    pub(super) fn enter_at(&self, at: &Located, wanted: Access) -> Result<UseGuard<'_>, Error> {
        let guard = self.enter(at.path())?;
        let is_common = at.is_common() && self.common_dir(at.path()) == Some(&at.root().path);
        let root = self.innermost(at.path()).or(is_common.then_some(at.root()));
        let Some(root) = root.filter(|root| root.path == at.root().path) else {
            let roots: Vec<_> = self.roots.iter().map(|root| root.path.clone()).collect();
            return Err(crate::error::outside(at.path(), &roots));
        };
        if wanted > root.access || wanted > at.access() {
            let text = format!("{}: this grant is read-only", self.show(at.path()));
            return Err(Error::new(ErrorKind::Denied, text));
        }
        Ok(guard)
    }

    fn common_dir(&self, resolved: &Path) -> Option<&PathBuf> {
        self.common
            .get()?
            .iter()
            .find(|dir| resolved.starts_with(dir))
    }

    fn innermost(&self, resolved: &Path) -> Option<&Arc<Root>> {
        let containing = self
            .roots
            .iter()
            .filter(|root| resolved.starts_with(&root.path));
        containing.max_by_key(|root| root.path.components().count())
    }
}
