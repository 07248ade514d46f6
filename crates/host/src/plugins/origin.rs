//! Where an added plugin came from: a file for each in the person's own state, for its updates.
//!
//! A file counts only if this user alone can have written it. An address in it may have a key, so people see it without its
//! query.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::plain_file;
use crate::pods::{disk, make_private};
use plugin::{ArchiveUrl, SigningKey};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// The version of the file's form.
const FORMAT: u32 = 1;

/// What the addresses of sources begin with.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// Where a package comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginSource {
    Directory(PathBuf),
    Archive(PathBuf),
    Url(String),
}

/// Where an added plugin came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginOrigin {
    format: u32,
    pub package: String,
    pub from: PluginSource,
    /// Without it, no signature is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SigningKey>,
    /// SHA-256 of the archive, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl PluginSource {
    /// A source as a person writes it: a directory, an archive in a file, or an address.
    ///
    /// # Errors
    /// An address that is neither https nor of this machine.
    pub fn parse(written: &Path, env: &Env) -> Result<Self, Failure> {
        let usage = |why: String| Failure::new(Exit::Usage, why);
        match written.to_str() {
            Some(text) if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => {
                let url = ArchiveUrl::parse(text).map_err(usage)?;
                Ok(Self::Url(url.whole()))
            }
            _ => {
                let path = env.cwd.join(written);
                // It is found again from elsewhere.
                let path = path.canonicalize().unwrap_or(path);
                Ok(match path.is_file() {
                    true => Self::Archive(path),
                    false => Self::Directory(path),
                })
            }
        }
    }

    /// For people.
    #[must_use]
    pub fn shown(&self, env: &Env) -> String {
        match self {
            Self::Directory(path) | Self::Archive(path) => env.shown(path),
            Self::Url(text) => {
                ArchiveUrl::parse(text).map_or_else(|why| why, |url| url.to_string())
            }
        }
    }
}

impl PluginOrigin {
    /// The plugin `package`, with the digest of its archive where it was one.
    #[must_use]
    pub fn new(
        package: &str,
        from: PluginSource,
        key: Option<SigningKey>,
        sha256: Option<String>,
    ) -> Self {
        Self {
            format: FORMAT,
            package: package.to_owned(),
            from,
            key,
            sha256,
        }
    }

    /// That of an added plugin, if it is known.
    ///
    /// # Errors
    /// Its file cannot be read, or another user could have written it.
    pub fn load(env: &Env, package: &str) -> Result<Option<Self>, Failure> {
        let path = path(env, package)?;
        let unfit = |path: &Path, what: &str| {
            let message = format!("{}: {what}", env.shown(path));
            let help = "add the plugin again, in place of itself";
            Failure::new(Exit::Config, message).help(help)
        };
        let bytes = plain_file::of_user_alone(&dir(env)?, &path, MAX_FILE)
            .map_err(|(path, what)| unfit(path, &what))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let origin: Self =
            serde_json::from_slice(&bytes).map_err(|error| unfit(&path, &error.to_string()))?;
        match (origin.format, origin.package == package) {
            (FORMAT, true) => Ok(Some(origin)),
            (FORMAT, false) => Err(unfit(&path, "belongs to another plugin")),
            _ => Err(unfit(&path, "was written by another version of yoi")),
        }
    }

    /// Writes it, in one step and durably. The caller holds the lock of the grants.
    ///
    /// # Errors
    /// The disk.
    pub fn save(&self, env: &Env) -> Result<(), Failure> {
        make_private(&dir(env)?)?;
        let path = path(env, &self.package)?;
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        plain_file::replace(&path, &text, 0o600).map_err(|error| disk(&path, &error))
    }

    /// Removes it, if it is there. The caller holds the lock of the grants.
    ///
    /// # Errors
    /// The disk.
    pub fn remove(env: &Env, package: &str) -> Result<(), Failure> {
        let path = path(env, package)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk(&path, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn dir(env: &Env) -> Result<PathBuf, Failure> {
    Ok(env.state_dir()?.join("plugin-origins"))
}

fn path(env: &Env, package: &str) -> Result<PathBuf, Failure> {
    Ok(dir(env)?.join(format!("{package}.json")))
}
