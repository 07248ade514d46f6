//! One package that was found, and whether the person granted what it is now.

use super::content::{self, CopyPlace};
use super::grants::PackageGrant;
use super::parts::PackageParts;
use crate::env::Env;
use plugin::{Content, DeclarativeFeature, DeclaredFeature, Layout, MANIFEST, Manifest};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A directory with a manifest.
pub struct FoundPackage {
    /// The package's name, or that of its entry or directory where the manifest does not read.
    pub name: String,
    /// Its directory, without links.
    pub dir: PathBuf,
    /// What names it: a directory of packages, or a file and line.
    pub source: String,
    /// What it declares, or why nothing of it is used.
    pub manifest: Result<Manifest, String>,
    /// The text of the manifest, and its path.
    text: String,
    path: &'static str,
    standing: OnceLock<Standing>,
    parts: OnceLock<Result<PackageParts, String>>,
}

/// What the person's grants make of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its content is what was granted.
    Granted {
        digest: String,
    },
    NotGranted,
    /// These files are not as they were granted.
    Changed(Vec<String>),
    /// Its files, or the grant, cannot be read.
    Unreadable(String),
}

impl FoundPackage {
    pub(super) fn new(
        name: String,
        dir: PathBuf,
        source: String,
        manifest: Result<(Manifest, String), String>,
    ) -> Self {
        let (manifest, text) = match manifest {
            Ok((manifest, text)) => (Ok(manifest), text),
            Err(why) => (Err(why), String::new()),
        };
        Self {
            name,
            dir,
            source,
            path: path_of(&manifest),
            manifest,
            text,
            standing: OnceLock::new(),
            parts: OnceLock::new(),
        }
    }

    /// The content as it is now, with the manifest that was read: another one may declare other programs.
    pub fn content(&self) -> Result<Content, String> {
        self.with_manifest(content::of(&self.dir)?)
    }

    /// Writes its content into an empty directory, with the manifest that was read.
    pub fn copy_to(&self, dir: &Path) -> Result<(), String> {
        self.with_manifest(content::write(&self.dir, dir, (0o600, 0o700))?)
            .map(drop)
    }

    pub(super) fn with_manifest(&self, content: Content) -> Result<Content, String> {
        match content.has(self.path, self.text.as_bytes()) {
            true => Ok(content),
            false => Err(format!(
                "{} changed while it was read; try again",
                self.path
            )),
        }
    }

    /// Its skills, commands, agents and servers, read once with all of its files.
    ///
    /// # Errors
    /// Its files cannot be read.
    pub fn parts(&self) -> Result<&PackageParts, &str> {
        let read = || PackageParts::read(self);
        let parts = self.parts.get_or_init(read);
        parts.as_ref().map_err(String::as_str)
    }

    /// Compares the content with what was granted, once. Opens no file of a package that was never granted.
    pub fn standing(&self, env: &Env) -> &Standing {
        self.standing
            .get_or_init(|| match PackageGrant::load(env, &self.dir) {
                Err(failure) => Standing::Unreadable(failure.message),
                Ok(None) => Standing::NotGranted,
                Ok(Some(grant)) => match self.content() {
                    Err(why) => Standing::Unreadable(why),
                    Ok(content) if content.digest() == grant.digest => Standing::Granted {
                        digest: grant.digest,
                    },
                    Ok(content) => Standing::Changed(content.since(&grant.files)),
                },
            })
    }

    /// The features that can be read.
    pub fn features(&self) -> impl Iterator<Item = &DeclaredFeature> {
        self.manifest
            .iter()
            .flat_map(|manifest| manifest.features.values().flatten())
    }

    /// A feature of the granted package, whose programs see the copy.
    pub fn module(
        &self,
        declared: &DeclaredFeature,
        digest: &str,
        copies: &CopyPlace,
        env: &Env,
    ) -> DeclarativeFeature {
        let check = self.check(digest, env);
        let copy = copies.at(digest);
        let unchanged = move || check.unchanged(&copy);
        DeclarativeFeature::new(
            declared.clone(),
            copies.at(digest),
            digest.to_owned(),
            unchanged,
        )
    }

    /// What each use of the package asks that was granted with this digest.
    pub fn check(&self, digest: &str, env: &Env) -> GrantCheck {
        GrantCheck {
            dir: self.dir.clone(),
            digest: digest.to_owned(),
            env: env.clone(),
        }
    }
}

/// Whether a package is still granted.
#[derive(Clone, Debug)]
pub struct GrantCheck {
    dir: PathBuf,
    digest: String,
    env: Env,
}

impl GrantCheck {
    /// # Errors
    /// The grant was revoked, or is for another content.
    pub fn granted(&self) -> Result<(), String> {
        match PackageGrant::load(&self.env, &self.dir) {
            Ok(Some(grant)) if grant.digest == self.digest => Ok(()),
            Ok(_) | Err(_) => Err(REVOKED.to_owned()),
        }
    }

    /// # Errors
    /// The same, or the package or its copy is not what was granted.
    pub fn unchanged(&self, copy: &Path) -> Result<(), String> {
        self.granted()?;
        is_granted(&self.dir, &self.digest, CHANGED)?;
        is_granted(copy, &self.digest, COPY)
    }
}

/// The path of its manifest in a package.
fn path_of(manifest: &Result<Manifest, String>) -> &'static str {
    let layout = manifest.as_ref().ok().and_then(|manifest| manifest.layout);
    layout.map_or(MANIFEST, Layout::manifest)
}

/// Why a call is refused, for the model.
const REVOKED: &str = "the grant of this plugin was revoked or replaced; it runs again after `yoi grant` and a new start";
const CHANGED: &str = "this plugin changed since a person granted it; it runs again after `yoi grant` and a new start";
const COPY: &str =
    "yoi's own copy of this plugin is gone or changed; it runs again after a new start of the pod";

/// Whether a directory has the granted content now; `otherwise` is said where it does not.
fn is_granted(dir: &Path, granted: &str, otherwise: &str) -> Result<(), String> {
    let why = match content::of(dir) {
        Ok(now) if now.digest() == granted => return Ok(()),
        Ok(now) => format!("its digest is {}", now.digest()),
        Err(why) => why,
    };
    tracing::debug!(dir = %dir.display(), granted, "a call of a plugin is refused: {why}");
    Err(otherwise.to_owned())
}

/// Without the standing, which is found later than the rest.
impl fmt::Debug for FoundPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            dir,
            source,
            manifest,
            text: _,
            path: _,
            standing: _,
            parts: _,
        } = self;
        f.debug_struct("FoundPackage")
            .field("name", name)
            .field("dir", dir)
            .field("source", source)
            .field("manifest", manifest)
            .finish()
    }
}

impl Standing {
    /// Why nothing of the package is installed, for reports; none where it is granted.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Granted { .. } => None,
            Self::NotGranted => Some("not granted; `yoi grant` lists it".to_owned()),
            Self::Changed(_) => {
                Some("changed since it was granted; `yoi grant` lists the files".to_owned())
            }
            Self::Unreadable(why) => Some(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown and granted is what was read: another manifest may declare other programs.
    #[test]
    fn a_manifest_that_changes_after_it_was_read_has_no_content() {
        let dir = tempfile::tempdir().unwrap();
        let text = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n[features.main]\n";
        std::fs::write(dir.path().join(MANIFEST), text).unwrap();
        let package = super::super::at(dir.path(), Default::default(), &Env::with(&[]));
        assert!(package.content().is_ok());
        std::fs::write(dir.path().join(MANIFEST), format!("{text}# more\n")).unwrap();
        assert!(
            package
                .content()
                .unwrap_err()
                .contains("changed while it was read")
        );
        let to = tempfile::tempdir().unwrap();
        assert!(
            package
                .copy_to(to.path())
                .unwrap_err()
                .contains("changed while it was read")
        );
    }
}
