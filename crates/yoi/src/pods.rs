//! Where pods live on disk, and what they are called.

use crate::env::Env;
use crate::exit::{Exit, Failure};
use session_store::Digest;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory of all pods of this user.
#[derive(Clone, Debug)]
pub(crate) struct Pods {
    state: PathBuf,
}

/// A name of 1 to 64 of `a-z A-Z 0-9 . _ -`, beginning with a letter or digit.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(ok)
    {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, format!("`{name}` is not a pod name"))
        .help("use 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit"))
}

impl Pods {
    /// The pods under the user's state directory, which need not exist yet.
    pub(crate) fn of(env: &Env) -> Result<Self, Failure> {
        Ok(Self { state: env.state_dir()? })
    }

    /// Where pods are.
    pub(crate) fn root(&self) -> PathBuf {
        self.state.join("pods")
    }

    /// Where removed pods go.
    pub(crate) fn trash(&self) -> PathBuf {
        self.state.join("trash")
    }

    /// Where the pod of this name is or would be.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Every pod's name, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        let root = self.root();
        let entries = match fs::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(disk(&root, &error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| disk(&root, &e))?;
            names.extend(entry.file_name().into_string().ok().filter(|name| check_name(name).is_ok()));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The pod that `name` is or uniquely begins.
    pub(crate) fn find(&self, name: &str) -> Result<String, Failure> {
        let names = self.names()?;
        if names.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        let mut begun: Vec<String> = names.into_iter().filter(|known| known.starts_with(name)).collect();
        match (begun.pop(), begun.len()) {
            (Some(only), 0) if !name.is_empty() => Ok(only),
            (Some(last), _) if !name.is_empty() => {
                begun.push(last);
                Err(Failure::new(Exit::Usage, format!("`{name}` begins {} pods: {}", begun.len(), begun.join(", ")))
                    .help("give more of the name"))
            }
            (Some(_) | None, _) => {
                Err(Failure::new(Exit::Usage, format!("there is no pod called `{name}`"))
                    .help("`yoi ls --all` lists them"))
            }
        }
    }

    /// Makes the directories above the pods, for this user alone.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        make_private(&self.root())
    }

    /// A run's name that no pod has: `run-` and four hexadecimal digits, more when those are taken.
    pub(crate) fn new_run(&self, entropy: u128) -> String {
        let digits = format!("{entropy:032x}");
        let free = |length: usize| {
            let name = format!("run-{}", digits.get(digits.len() - length..)?);
            (!self.dir(&name).exists()).then_some(name)
        };
        (4..=32).find_map(free).unwrap_or_else(|| format!("run-{digits}"))
    }

    /// The last run of a directory, for `-c`.
    pub(crate) fn last_run(&self, project: &Path) -> Option<String> {
        let name = fs::read_to_string(self.last_file(project)).ok()?;
        check_name(&name).is_ok().then_some(name).filter(|name| self.dir(name).exists())
    }

    /// Notes the last run of a directory. A hint: losing it loses nothing but `-c`.
    pub(crate) fn note_run(&self, project: &Path, name: &str) -> Result<(), Failure> {
        let file = self.last_file(project);
        if let Some(parent) = file.parent() {
            make_private(parent)?;
        }
        fs::write(&file, name).map_err(|e| disk(&file, &e))
    }

    fn last_file(&self, project: &Path) -> PathBuf {
        self.state.join("last").join(Digest::of(project.as_os_str().as_bytes()).to_string())
    }
}

/// Makes a directory and those above it, each new one for this user alone.
pub(crate) fn make_private(dir: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| disk(dir, &e))
}

/// A file of the state directory that cannot be used.
pub(crate) fn disk(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Journal, format!("{}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure.help("free some space and run it again"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.help("set XDG_STATE_HOME to a directory that can be written, or use --ephemeral")
        }
        _ => failure,
    }
}
