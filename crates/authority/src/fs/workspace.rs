//! The set of directories a holder may use. Who holds it, and what for, is not known here.

use super::locate::{Located, Location, Root};
use super::secrets::SecretNames;
use super::{locate, show};
use crate::{Ambient, Door, Error, ErrorKind, UseGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What may be done below a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read, list, look.
    Read,
    /// Also create, replace and remove.
    ReadWrite,
}

/// Directories under one grant: the project, and any that were added. Clones share the grant's door.
#[derive(Clone, Debug)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
    project: PathBuf,
    cwd: PathBuf,
    secrets: Arc<SecretNames>,
    door: Arc<Door>,
}

impl Workspace {
    /// The project directory and the working directory inside it. Both are resolved, symbolic links included.
    ///
    /// # Errors
    /// `FixInput` when one does not exist, is no directory, or `cwd` is not inside `project`; `Denied` by the system.
    pub fn open(_: &Ambient, project: &Path, cwd: &Path, access: Access) -> Result<Self, Error> {
        let root = Root::open(project, access)?;
        let cwd = cwd.canonicalize().map_err(|error| Error::io("open working directory", cwd, error))?;
        if !cwd.starts_with(&root.path) {
            let (cwd, project) = (super::escape(&cwd), super::escape(&root.path));
            let text = format!("working directory {cwd} is not inside the project {project}; name one that is");
            return Err(Error::new(ErrorKind::FixInput, text));
        }
        let project = root.path.clone();
        let secrets = Arc::new(SecretNames::with(&[])?);
        Ok(Self { roots: vec![Arc::new(root)], project, cwd, secrets, door: Door::new() })
    }

    /// Adds a directory. Where roots contain each other, the innermost decides.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    pub fn with_dir(mut self, _: &Ambient, dir: &Path, access: Access) -> Result<Self, Error> {
        let root = Root::open(dir, access)?;
        self.roots.retain(|old| old.path != root.path || old.path == self.project);
        match self.roots.iter_mut().find(|old| old.path == root.path) {
            // Adding the project again changes what may be done there.
            Some(same) => *same = Arc::new(root),
            None => self.roots.push(Arc::new(root)),
        }
        Ok(self)
    }

    /// With these names of files that may hold secrets, in the place of the built-in ones.
    #[must_use]
    pub fn with_secrets(self, names: SecretNames) -> Self {
        Self { secrets: Arc::new(names), ..self }
    }

    /// The names of files that may hold secrets; see [`Workspace::may_hold_secrets`].
    pub fn secret_names(&self) -> &SecretNames {
        &self.secrets
    }

    /// The same directories, for reading only, under a door of its own that shuts with this one's.
    #[must_use]
    pub fn read_only(&self) -> Self {
        let roots = self.roots.iter().map(|root| Arc::new(root.read_only())).collect();
        Self { roots, ..self.derive() }
    }

    /// The same directories under a door of its own, which shuts with this one's.
    #[must_use]
    pub fn derive(&self) -> Self {
        Self { door: self.door.derive(), ..self.clone() }
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
        self.roots.iter().map(|root| (root.path.as_path(), root.access))
    }

    /// The roots that were moved, deleted, or replaced by another directory since they were opened: what is written there
    /// goes to a directory that no path names, and the rules of children allow the old one only. Costs one `lstat` for
    /// each root; a path that cannot be looked at counts.
    pub fn replaced(&self) -> Vec<&Path> {
        self.roots.iter().filter(|root| root.is_replaced()).map(|root| root.path.as_path()).collect()
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

    /// Settles a path, relative to the working directory or absolute: `..`, symbolic links in it, and links to things
    /// that do not exist yet. Looking at where a link points reads the link, also outside of the roots.
    ///
    /// # Errors
    /// `FixInput` for an empty path, a NUL byte, a loop of links, a file used as a directory; `Revoked`.
    pub fn locate(&self, path: &Path) -> Result<Location, Error> {
        let _use = self.enter(path)?;
        let resolved = locate::resolve(&self.cwd, path)?;
        Ok(match self.innermost(&resolved) {
            Some(root) => Location::Inside(Located::new(root.clone(), resolved)?),
            None => Location::Outside(resolved),
        })
    }

    /// An absolute path without `.` and `..` below a root, taken by the letter: operations on it refuse links on the way,
    /// and mean a link at its end itself.
    pub(crate) fn literal(&self, path: &Path) -> Option<Located> {
        self.innermost(path).and_then(|root| Located::new(root.clone(), path.to_owned()).ok())
    }

    /// [`Workspace::locate`], with a refusal for what is outside.
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

    /// How a path is shown: relative to the working directory when inside it (`.` for itself), else absolute; one
    /// line, with control and text-reordering characters escaped.
    pub fn show(&self, path: &Path) -> String {
        show::relative_to(&self.cwd, path)
    }

    /// Goes through the door for an operation on `path`.
    pub(super) fn enter(&self, path: &Path) -> Result<UseGuard<'_>, Error> {
        self.door.enter().map_err(|_| Error::revoked(&self.show(path)))
    }

    /// Goes through the door for an operation on something located, which must be under one of these roots: a
    /// [`Located`] carries no authority by itself.
    pub(super) fn enter_at(&self, at: &Located, wanted: Access) -> Result<UseGuard<'_>, Error> {
        let guard = self.enter(at.path())?;
        let Some(root) = self.innermost(at.path()).filter(|root| root.path == at.root().path) else {
            let roots: Vec<_> = self.roots.iter().map(|root| root.path.clone()).collect();
            return Err(crate::error::outside(at.path(), &roots));
        };
        if wanted > root.access || wanted > at.access() {
            let text = format!("{}: this grant is read-only", self.show(at.path()));
            return Err(Error::new(ErrorKind::Denied, text));
        }
        Ok(guard)
    }

    fn innermost(&self, resolved: &Path) -> Option<&Arc<Root>> {
        let containing = self.roots.iter().filter(|root| resolved.starts_with(&root.path));
        containing.max_by_key(|root| root.path.components().count())
    }
}
