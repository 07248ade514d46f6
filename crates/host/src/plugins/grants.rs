//! What a person granted of packages: the digest of each, in the person's own state.
//!
//! A file per package, named by the digest of its directory's path. It counts only if this user alone can have written it.

use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::plain_file;
use crate::pods::{disk, make_private};
use authority::text::bytes_without_bom;
use plugin::{Content, Manifest};
use pod::feature::FeatureDescriptor;
use pod::hook::HookClass;
use serde::{Deserialize, Serialize};
use session_store::Digest;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest file of a grant, in bytes: that of a package with the most and longest paths.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Most grants that are listed.
const MAX_GRANTS: usize = 1024;

/// The version of the file's form.
const FORMAT: u32 = 1;

/// What was granted: the content of one package at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageGrant {
    format: u32,
    /// As it was called.
    pub package: String,
    pub version: String,
    /// Its directory, for people.
    pub directory: String,
    /// BLAKE3 of the directory's path, hex.
    place: String,
    /// Of the content.
    pub digest: String,
    /// Each file's bits and digest, by path.
    pub files: BTreeMap<String, String>,
    /// The rules and gates of each feature that has some, as people read them; none in a grant of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeMap<String, Vec<String>>>,
}

impl PackageGrant {
    /// A grant of the package in this directory, as its manifest and content are now.
    pub fn new(dir: &Path, manifest: &Manifest, content: &Content) -> Self {
        let package = &manifest.package;
        let features = manifest
            .features
            .values()
            .flatten()
            .map(|feature| &feature.descriptor);
        let rules = features.map(|of| (of.id.to_string(), guards(of)));
        let rules = rules.filter(|(_, guards)| !guards.is_empty());
        Self {
            rules: Some(rules.collect()),
            format: FORMAT,
            package: package.name.clone(),
            version: package.version.to_string(),
            directory: dir.display().to_string(),
            place: place(dir),
            digest: content.digest(),
            files: content.lines().collect(),
        }
    }

    /// The grant of the package in a directory, if there is one.
    pub fn load(env: &Env, dir: &Path) -> Result<Option<Self>, Failure> {
        Self::at(&grants_dir(env)?, &place(dir))
    }

    fn at(dir: &Path, place: &str) -> Result<Option<Self>, Failure> {
        let path = dir.join(format!("{place}.json"));
        let unfit = |path: &Path, what: &str| {
            Failure::new(
                Exit::Config,
                format!("{}: {what}; the grant is ignored", authority::escape(path)),
            )
            .help(Help::GrantPluginAgain)
        };
        let bytes = plain_file::of_user_alone(dir, &path, MAX_FILE)
            .map_err(|(path, what)| unfit(path, &what))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let grant: Self = serde_json::from_slice(bytes_without_bom(&bytes))
            .map_err(|error| unfit(&path, &error.to_string()))?;
        match grant {
            Self { format, .. } if format != FORMAT => {
                Err(unfit(&path, "was written by another version of yoi"))
            }
            Self { place: of, .. } if of != place => {
                Err(unfit(&path, "belongs to another package"))
            }
            grant => Ok(Some(grant)),
        }
    }

    /// Whether it is for the package in this directory.
    pub fn is_of(&self, dir: &Path) -> bool {
        self.place == place(dir)
    }

    /// All of them, by name; those that cannot be read are left out.
    pub fn all(env: &Env) -> Result<Vec<Self>, Failure> {
        let mut all: Vec<Self> = Self::each(env)?.into_iter().flatten().collect();
        all.sort_by(|a, b| (&a.package, &a.place).cmp(&(&b.package, &b.place)));
        Ok(all)
    }

    /// Each of them, or why it cannot be read.
    pub fn each(env: &Env) -> Result<Vec<Result<Self, Failure>>, Failure> {
        let dir = grants_dir(env)?;
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            // Without a directory for the state there are no grants; a file in place of the grants alone hides some.
            Err(_) if !env.state_dir()?.is_dir() => return Ok(Vec::new()),
            Err(error) => return Err(disk(&dir, &error)),
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let places: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .take(MAX_GRANTS)
            .collect();
        Ok(places
            .iter()
            .filter_map(|place| Self::at(&dir, place).transpose())
            .collect())
    }

    /// Writes it, in one step and durably. The caller holds the lock of the grants.
    pub fn save(&self, env: &Env) -> Result<(), Failure> {
        let dir = grants_dir(env)?;
        make_private(&dir)?;
        let path = dir.join(format!("{}.json", self.place));
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
        if text.len() as u64 > MAX_FILE {
            return Err(Failure::new(
                Exit::Config,
                format!("the names of the files of {} are too long", self.package),
            ));
        }
        plain_file::replace(&path, &text, 0o600).map_err(|error| disk(&path, &error))
    }

    /// Removes it. The caller holds the lock of the grants.
    pub fn remove(&self, env: &Env) -> Result<(), Failure> {
        let path = grants_dir(env)?.join(format!("{}.json", self.place));
        fs::remove_file(&path).map_err(|error| disk(&path, &error))
    }
}

/// What a feature refuses, as people read it: its rules, and its gates.
fn guards(of: &FeatureDescriptor) -> Vec<String> {
    let rules = of.rules.iter().map(ToString::to_string);
    rules.chain(gates(of)).collect()
}

/// Its gates, as people read them.
pub(crate) fn gates(of: &FeatureDescriptor) -> impl Iterator<Item = String> {
    let hooks = of.declared_hooks.iter();
    hooks
        .filter(|hook| hook.class == HookClass::Gate)
        .map(|hook| format!("gate {} at {}", hook.name, hook.point))
}

fn grants_dir(env: &Env) -> Result<PathBuf, Failure> {
    Ok(env.state_dir()?.join("grants").join("plugins"))
}

fn place(dir: &Path) -> String {
    Digest::of(dir.as_os_str().as_bytes()).to_string()
}
