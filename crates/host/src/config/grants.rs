//! What a person granted a project: digests of exactly what its file asked for, in the person's own state.
//!
//! A file per project, named by the digest of its root's path. It counts only if it is a plain file of this user that
//! nobody else can write, in such a directory, and reads whole; otherwise nothing is granted, and the reason is told.

use super::PendingGrant;
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::plain_file;
use crate::pods::{disk, make_private};
use authority::text::bytes_without_bom;
use serde::{Deserialize, Serialize};
use session_store::Digest;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest file of grants, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Most grants of one project.
const MAX_GRANTS: usize = 1024;

/// The version of the file's form.
const FORMAT: u32 = 1;

/// What the person granted to projects' files.
#[derive(Debug)]
pub struct Grants {
    path: PathBuf,
    kept: Kept,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: u32,
    /// The project's root, for people.
    project: String,
    /// BLAKE3 of the root's path, hex.
    root: String,
    grants: Vec<Grant>,
}

/// One granted entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// As it was written.
    pub key: String,
    /// Its value then, on one line.
    pub value: String,
    /// Of key and value.
    pub digest: String,
}

impl Grants {
    /// Without any grant.
    pub fn none() -> Self {
        Self::empty(PathBuf::new(), Path::new(""))
    }

    /// Reads the grants of this person.
    pub fn load(env: &Env, root: &Path) -> Result<Self, Failure> {
        let dir = env.state_dir()?.join("grants");
        let digest = Digest::of(root.as_os_str().as_bytes()).to_string();
        let path = dir.join(format!("{digest}.json"));
        let unfit = |path: &Path, what: &str| {
            Failure::new(
                Exit::Config,
                format!(
                    "{}: {what}; all grants are ignored",
                    authority::escape(path)
                ),
            )
            .help(Help::GrantAgain)
        };
        let Some(bytes) = plain_file::of_user_alone(&dir, &path, MAX_FILE)
            .map_err(|(path, what)| unfit(path, &what))?
        else {
            return Ok(Self::empty(path, root));
        };
        let kept: Kept = serde_json::from_slice(bytes_without_bom(&bytes))
            .map_err(|error| unfit(&path, &error.to_string()))?;
        match kept {
            Kept { format, .. } if format != FORMAT => {
                Err(unfit(&path, "was written by another version of yoi"))
            }
            Kept { root, .. } if root != digest => Err(unfit(&path, "belongs to another project")),
            Kept { grants, .. } if grants.len() > MAX_GRANTS => {
                Err(unfit(&path, "has too many entries"))
            }
            kept => Ok(Self { path, kept }),
        }
    }

    /// Whether exactly this was granted.
    pub fn has(&self, digest: &str) -> bool {
        self.kept.grants.iter().any(|grant| grant.digest == digest)
    }

    /// All of them, in the order they were given.
    pub fn all(&self) -> &[Grant] {
        &self.kept.grants
    }

    /// Adds what is not there yet.
    pub fn add(&mut self, asked: &PendingGrant) -> Result<(), Failure> {
        if self.has(&asked.digest) {
            return Ok(());
        }
        if self.kept.grants.len() >= MAX_GRANTS {
            return Err(Failure::new(
                Exit::Config,
                format!("this project has {MAX_GRANTS} grants already"),
            )
            .help(Help::RevokeGrants));
        }
        let PendingGrant {
            key, value, digest, ..
        } = asked.clone();
        self.kept.grants.push(Grant { key, value, digest });
        Ok(())
    }

    /// Takes a grant back.
    pub fn remove(&mut self, digest: &str) {
        self.kept.grants.retain(|grant| grant.digest != digest);
    }

    /// Writes them, in one step and durably.
    pub fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&self.kept)
            .map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
        plain_file::replace(&self.path, &text, 0o600).map_err(|error| disk(&self.path, &error))
    }

    fn empty(path: PathBuf, root: &Path) -> Self {
        let digest = Digest::of(root.as_os_str().as_bytes()).to_string();
        let kept = Kept {
            format: FORMAT,
            project: root.display().to_string(),
            root: digest,
            grants: Vec::new(),
        };
        Self { path, kept }
    }
}

/// Makes the directory of grants, for this user alone, and locks it: other changes of grants, and of the user's rules, are
/// kept away until what it gives is dropped.
pub fn lock(env: &Env) -> Result<File, Failure> {
    let dir = env.state_dir()?.join("grants");
    make_private(&dir)?;
    let held = File::open(&dir).map_err(|e| disk(&dir, &e))?;
    match rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(held),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Failure::new(
            Exit::Busy,
            "another process is changing the grants or the rules",
        )
        .help("try again")),
        Err(error) => Err(disk(&dir, &error.into())),
    }
}
