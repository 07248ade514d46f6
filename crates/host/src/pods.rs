//! Where pods live on disk, and what they are called. Reads no record.

use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use authority::{Scratch, remove_dir};
use session_store::{Damage, Digest, ReadError, Reader};
use std::cmp::Reverse;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// An ambiguous prefix is answered with the names of at most this many pods.
const NAMED: usize = 10;
/// The help for a pod of a later journal format.
pub const NEWER: &str = "use a newer version of yoi to read this pod";

/// The directory of all pods of this user.
#[derive(Clone, Debug)]
pub struct Pods {
    state: PathBuf,
}

/// A name of 1 to 64 of `a-z A-Z 0-9 . _ -`, beginning with a letter or digit.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let first = |c: char| c.is_ascii_alphanumeric();
    let ok = |c: char| first(c) || matches!(c, '.' | '_' | '-');
    if name.len() <= 64 && name.starts_with(first) && name.chars().all(ok) {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, format!("`{name}` is not a valid pod name"))
        .help("use 1 to 64 ASCII letters, digits, dots, dashes or underscores; the first must be a letter or digit"))
}

/// How the name of a pod begins that a run made for itself.
const RUN: &str = "run-";

/// Whether a run made this pod for itself: nobody named it.
#[must_use]
pub fn is_of_run(name: &str) -> bool {
    name.starts_with(RUN)
}

impl Pods {
    /// The pods under the user's state directory, which need not exist yet.
    pub fn of(env: &Env) -> Result<Self, Failure> {
        Ok(Self::at(env.state_dir()?))
    }

    /// The pods under this state directory.
    pub fn at(state: PathBuf) -> Self {
        Self { state }
    }

    /// The directory of all pods.
    pub fn root(&self) -> PathBuf {
        self.state.join("pods")
    }

    /// Where removed pods are kept.
    pub fn trash(&self) -> PathBuf {
        self.state.join("trash")
    }

    /// The directory of a pod.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Every pod's name, sorted.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let root = self.root();
        let entries = match fs::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(disk(&root, &error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| disk(&root, &e))?;
            names.extend(
                entry
                    .file_name()
                    .into_string()
                    .ok()
                    .filter(|name| check_name(name).is_ok()),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    /// When a pod's log last grew; a pod without one is oldest.
    pub fn touched(&self, name: &str) -> SystemTime {
        grown(&self.dir(name))
    }

    /// The pod that `name` is or uniquely begins.
    pub fn find(&self, name: &str) -> Result<String, Failure> {
        let names = self.names()?;
        if names.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        let begins = |known: &String| !name.is_empty() && known.starts_with(name);
        let begun: Vec<String> = names.into_iter().filter(begins).collect();
        match begun.as_slice() {
            [only] => Ok(only.clone()),
            [] if name.is_empty() => {
                Err(Failure::new(Exit::Usage, "the pod's name is empty").help(Help::ListPods))
            }
            [] => Err(
                Failure::new(Exit::Usage, format!("there is no pod called `{name}`"))
                    .help(Help::ListPods),
            ),
            all => {
                let mut named = all.to_vec();
                if named.len() > NAMED {
                    named.sort_by_cached_key(|name| Reverse(self.touched(name)));
                    named.truncate(NAMED);
                    named.sort_unstable();
                }
                let newest = if named.len() < all.len() {
                    "; the newest"
                } else {
                    ""
                };
                let message = format!(
                    "`{name}` is ambiguous ({} pods{newest}: {})",
                    all.len(),
                    named.join(", ")
                );
                Err(Failure::new(Exit::Usage, message).help("type more of the name"))
            }
        }
    }

    /// Makes the directories above the pods, for this user alone.
    pub fn prepare(&self) -> Result<(), Failure> {
        make_private(&self.root())
    }

    /// Makes the directory of a new run and gives its name: `run-` and four hexadecimal digits, more when those are
    /// taken. The process that makes the directory has the name.
    pub fn claim(&self, entropy: u128) -> Result<String, Failure> {
        let digits = format!("{entropy:032x}");
        for name in (4..=digits.len())
            .filter_map(|length| Some(format!("{RUN}{}", digits.get(digits.len() - length..)?)))
        {
            let dir = self.dir(&name);
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(disk(&dir, &error)),
            }
        }
        Err(Failure::new(
            Exit::Journal,
            format!("no name is left for a new run in {}", self.root().display()),
        ))
    }

    /// Removes a pod whose lock is held: out of everybody's way first, so that nobody makes a session of its rest.
    pub fn discard(&self, name: &str) -> Result<(), Failure> {
        let dir = self.dir(name);
        // A disk too full for one more directory is no reason to keep what fills it.
        let Ok(aside) = Scratch::create(&ambient::claim(), &self.root(), ".removed-") else {
            return remove_dir(&ambient::claim(), &dir)
                .map_err(|e| Failure::new(Exit::Journal, e.to_string()));
        };
        fs::rename(&dir, aside.path().join(name)).map_err(|e| disk(&dir, &e))?;
        aside
            .remove()
            .map_err(|e| Failure::new(Exit::Journal, e.to_string()))
    }

    /// The last run of a directory, for `-c`.
    pub fn last_run(&self, project: &Path) -> Option<String> {
        let name = fs::read_to_string(self.last_file(project)).ok()?;
        check_name(&name)
            .is_ok()
            .then_some(name)
            .filter(|name| self.dir(name).exists())
    }

    /// Notes the last run of a directory, in one step. A hint: losing it loses nothing but `-c`.
    pub fn note_run(&self, project: &Path, name: &str) -> Result<(), Failure> {
        let file = self.last_file(project);
        if let Some(parent) = file.parent() {
            make_private(parent)?;
        }
        // One name for all: what a kill leaves is taken by the next run.
        let next = file.with_extension("tmp");
        let written = fs::write(&next, name).and_then(|()| match fs::rename(&next, &file) {
            // Another run, begun in the same moment, noted this file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        });
        written.map_err(|error| {
            // What is left of it bothers nobody.
            drop(fs::remove_file(&next));
            disk(&file, &error)
        })
    }

    fn last_file(&self, project: &Path) -> PathBuf {
        self.state
            .join("last")
            .join(Digest::of(project.as_os_str().as_bytes()).to_string())
    }
}

/// When the log of the pod in this directory last grew; long ago without one.
pub(crate) fn grown(dir: &Path) -> SystemTime {
    fs::metadata(dir.join("HEAD"))
        .and_then(|meta| meta.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Makes a directory and those above it, each new one for this user alone, and its name durable.
pub fn make_private(dir: &Path) -> Result<(), Failure> {
    make(dir, &mut |parent| File::open(parent)?.sync_all()).map_err(|e| disk(dir, &e))
}

/// Has `sync` make the names in a directory durable, for each one that got a new one.
fn make(dir: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let create = || DirBuilder::new().mode(0o700).create(dir);
    let made = match (create(), dir.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make(parent, sync)?;
            create()
        }
        (made, _) => made,
    };
    match made {
        Ok(()) => dir.parent().map_or(Ok(()), sync),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file of the state directory that cannot be used.
pub fn disk(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(
        Exit::Journal,
        format!("{}: {}", path.display(), authority::explain(error)),
    );
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.help("free disk space, then run the command again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.help(Help::WritableStateDir { local: false })
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            failure.help("set XDG_STATE_HOME to a directory")
        }
        _ => failure,
    }
}

/// The words for a journal that cannot be read.
pub fn read_failure(name: &str, error: &ReadError) -> Failure {
    match error {
        ReadError::NoSuch(_) => empty(name, Exit::Failed),
        ReadError::Damaged(damage) => damaged(name, damage),
        ReadError::Format { .. } => newer_format(&error.to_string()),
        ReadError::Disk(_) => Failure::new(Exit::Journal, format!("{name}: {error}")),
    }
}

/// A pod that only a newer program can read; `message` names its format.
pub fn newer_format(message: &str) -> Failure {
    Failure::new(Exit::Data, message.to_owned()).help(NEWER)
}

/// A pod that holds no record.
pub fn empty(name: &str, exit: Exit) -> Failure {
    Failure::new(
        exit,
        format!("the pod {name} is empty: its run ended before the first record"),
    )
    .help(Help::RunOrRemove(name.to_owned()))
}

/// A damaged pod. Its journal is read once more: what is lost does not depend on where the reader began.
pub fn damaged(name: &str, damage: &Damage) -> Failure {
    let dir = damage.segment.parent().and_then(Path::parent);
    let losses = dir
        .and_then(|dir| Reader::open(dir).ok()?.losses().ok())
        .unwrap_or_default();
    let losses = if losses.is_empty() {
        std::slice::from_ref(damage)
    } else {
        &losses
    };
    let all: Vec<String> = losses.iter().map(|damage| seqs(&damage.lost)).collect();
    let one = losses.len() == 1
        && losses
            .iter()
            .all(|damage| damage.lost.start() == damage.lost.end());
    let are = if one { "is" } else { "are" };
    let place = losses.first().map_or_else(
        String::new,
        |Damage {
             segment,
             offset,
             bad,
             ..
         }| { format!(" (at byte {offset} of {}: {bad})", segment.display()) },
    );
    let message = format!(
        "the pod `{name}` is damaged: {} {are} lost{place}",
        all.join(" and ")
    );
    Failure::new(Exit::Data, message).help(Help::Salvage(name.to_owned()))
}

/// `record 3`, `records 3 to 5`.
pub fn seqs(lost: &RangeInclusive<u64>) -> String {
    let first = lost.start();
    let last = lost.end();
    if first == last {
        format!("record {first}")
    } else {
        format!("records {first} to {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn new_directories_are_made_durable_and_known_ones_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b/c");
        let mut synced = Vec::new();
        let mut note = |dir: &Path| {
            synced.push(dir.to_path_buf());
            Ok(())
        };
        make(&dir, &mut note).unwrap();
        make(&dir, &mut note).unwrap();
        assert_eq!(synced, ["", "a", "a/b"].map(|name| root.path().join(name)));
        assert!(
            make(&root.path().join("a/b/c"), &mut |_| Err(
                io::ErrorKind::Other.into()
            ))
            .is_ok()
        );
        assert!(
            make(&root.path().join("d"), &mut |_| Err(
                io::ErrorKind::Other.into()
            ))
            .is_err()
        );
        fs::write(root.path().join("file"), "").unwrap();
        assert!(make(&root.path().join("file"), &mut |_| Ok(())).is_err());
    }

    #[test]
    fn of_many_pods_the_newest_ten_are_named() {
        let root = tempfile::tempdir().unwrap();
        let pods = Pods::at(root.path().to_path_buf());
        for n in 10..23u64 {
            make_private(&pods.dir(&format!("run-{n}"))).unwrap();
            let head = File::create(pods.dir(&format!("run-{n}")).join("HEAD")).unwrap();
            head.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - n))
                .unwrap();
        }
        let message = |name: &str| pods.find(name).unwrap_err().message;
        let ten = (10..20)
            .map(|n| format!("run-{n}"))
            .collect::<Vec<_>>()
            .join(", ");
        assert_eq!(
            message("run-"),
            format!("`run-` is ambiguous (13 pods; the newest: {ten})")
        );
        assert_eq!(
            message("run-2"),
            "`run-2` is ambiguous (3 pods: run-20, run-21, run-22)"
        );
    }

    #[test]
    fn the_same_digits_are_two_names() {
        let root = tempfile::tempdir().unwrap();
        let pods = Pods::at(root.path().to_path_buf());
        assert_eq!(pods.claim(0xab_cdef).unwrap_err().exit, Exit::Journal);
        pods.prepare().unwrap();
        assert_eq!(pods.claim(0xab_cdef).unwrap(), "run-cdef");
        assert_eq!(pods.claim(0xab_cdef).unwrap(), "run-bcdef");
        assert_eq!(pods.names().unwrap(), ["run-bcdef", "run-cdef"]);
    }

    #[test]
    fn the_last_run_is_replaced_whole() {
        let root = tempfile::tempdir().unwrap();
        let pods = Pods::at(root.path().to_path_buf());
        let project = Path::new("/p");
        for name in ["one", "two"] {
            make_private(&pods.dir(name)).unwrap();
            pods.note_run(project, name).unwrap();
            assert_eq!(pods.last_run(project).as_deref(), Some(name));
        }
        assert_eq!(fs::read_dir(root.path().join("last")).unwrap().count(), 1);
        // A process was killed in between.
        fs::write(
            pods.last_file(project).with_extension("tmp"),
            "a longer name",
        )
        .unwrap();
        pods.note_run(project, "two").unwrap();
        assert_eq!(pods.last_run(project).as_deref(), Some("two"));
        assert_eq!(fs::read_dir(root.path().join("last")).unwrap().count(), 1);
        // One that cannot be replaced stays.
        let file = pods.last_file(project);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(
            pods.note_run(project, "one").unwrap_err().exit,
            Exit::Journal
        );
        assert_eq!(fs::read_dir(root.path().join("last")).unwrap().count(), 1);
    }
}
