//! Where a pod's session is kept.

use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::pods::{Pods, check_name, damaged, empty, make_private, newer_format};
use crate::points::Points;
use authority::{Ambient, Scratch};
use session_store::{
    Clock, OpenError, Opened, Options, ReadError, Reader, Session, SessionRecords, Tail,
};
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::{NoContext, Timestamp, Uuid};

/// How often, and how long each time, a session is waited for whose owner has ended: a child of its that was being started
/// then has the lock until it is another program. A second in all.
const WAITS: u32 = 200;
const WAIT: Duration = Duration::from_millis(5);

/// How directories of sessions that are not kept are called.
const EPHEMERAL: &str = "yoi-ephemeral-";
/// The session in one.
const SESSION: &str = "session";

/// Which session a start means.
#[derive(Clone, Copy, Debug)]
pub enum WantedSession<'a> {
    /// A new one that gets a name of its own.
    New,
    /// The last one of this project.
    Last,
    /// This pod, which may be new.
    Named(&'a str),
    /// A new one that is not kept.
    Ephemeral,
}

/// A run's session directory, and whether it is kept.
pub struct SessionLocation {
    dir: PathBuf,
    id: Uuid,
    keep: Keep,
    /// The directory is of this run's making.
    made: bool,
    /// Whether a network or FUSE file system is taken.
    any_file_system: bool,
}

enum Keep {
    /// A pod that stays; a new run has no name before it is opened.
    Pod {
        name: Option<String>,
        pods: Pods,
        project: PathBuf,
    },
    /// Nothing stays of what is made below `parent`.
    Nothing {
        parent: PathBuf,
        scratch: Option<Scratch>,
    },
}

impl SessionLocation {
    /// The session that is wanted. Nothing is made yet. `roots` are the directories that the pod works in.
    pub fn choose(
        wanted: WantedSession<'_>,
        config: &Config,
        env: &Env,
        project: &Path,
        roots: &[&Path],
    ) -> Result<Self, Failure> {
        let any_file_system = config.any_file_system.value;
        let place = |keep| Self {
            dir: PathBuf::new(),
            id: fresh_id(),
            keep,
            made: false,
            any_file_system,
        };
        if matches!(wanted, WantedSession::Ephemeral) {
            return Ok(place(Keep::Nothing {
                parent: beside(env, roots)?,
                scratch: None,
            }));
        }
        let pods = Pods::of(env)?;
        let name = match wanted {
            WantedSession::Named(name) => {
                check_name(name)?;
                Some(name.to_owned())
            }
            WantedSession::Last => Some(pods.last_run(project).ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    format!(
                        "there is no run in {} to continue",
                        authority::escape(project)
                    ),
                )
                .help(Help::StartRun)
            })?),
            WantedSession::New | WantedSession::Ephemeral => None,
        };
        Ok(place(Keep::Pod {
            name,
            pods,
            project: project.to_path_buf(),
        }))
    }

    /// Whether the session is there already and holds something.
    pub fn is_known(&self) -> bool {
        match &self.keep {
            Keep::Pod {
                name: Some(name),
                pods,
                ..
            } => {
                Reader::open(&pods.dir(name)).is_ok_and(|session| session.frames().next().is_some())
            }
            Keep::Pod { name: None, .. } | Keep::Nothing { .. } => false,
        }
    }

    /// Locks the session, making it if it is new.
    pub fn open(
        &mut self,
        ambient: &Ambient,
        clock: &Clock,
        points: &Points,
    ) -> Result<(Opened, SessionRecords), Failure> {
        let options = || {
            let mut options = Options::new(self.id.to_string(), clock.clone());
            let points = points.clone();
            options.probe = Arc::new(move |point| points.reached(point));
            options.any_file_system = self.any_file_system;
            options
        };
        let opened = match &mut self.keep {
            Keep::Nothing { parent, scratch } => {
                let made = Scratch::create(ambient, parent, EPHEMERAL).map_err(|error| {
                    Failure::new(Exit::Unavailable, error.to_string())
                        .help("set TMPDIR to a writable directory")
                })?;
                self.dir = scratch.insert(made).path().join(SESSION);
                made_new(Session::create(&self.dir, options()))
            }
            Keep::Pod {
                name: name @ None,
                pods,
                ..
            } => {
                pods.prepare()?;
                let claimed = pods.claim(self.id.as_u128())?;
                self.dir = pods.dir(name.insert(claimed));
                self.made = true;
                made_new(Session::create(&self.dir, options()))
            }
            Keep::Pod {
                name: Some(name),
                pods,
                ..
            } => {
                pods.prepare()?;
                self.dir = pods.dir(name);
                // A directory that a crash left empty is made a session like one that is not there; somebody else may
                // make it in between, and then has it.
                match patient(ambient, || Session::resume(&self.dir, options())) {
                    Err(OpenError::NoSuch(_)) => {
                        self.made = DirBuilder::new().mode(0o700).create(&self.dir).is_ok();
                        match Session::create(&self.dir, options()) {
                            Err(OpenError::Exists(_)) => Session::resume(&self.dir, options()),
                            made => made_new(made),
                        }
                    }
                    opened => opened,
                }
            }
        };
        opened.map_err(|error| open_failure(&error, clock(), self.name()))
    }

    /// After a start that failed: takes back the pod that it made, if nothing was committed there and nobody else has
    /// it. Best effort: what stays is an empty pod.
    pub fn abandon(&self) {
        let Keep::Pod {
            name: Some(name),
            pods,
            ..
        } = &self.keep
        else {
            return;
        };
        let Some(_held) = self
            .made
            .then(|| Session::hold(&self.dir, now()).ok())
            .flatten()
        else {
            return;
        };
        let empty = match Reader::open(&self.dir) {
            Ok(reader) => {
                reader.frames().next().is_none() && matches!(reader.tail(), Ok(Tail::Clean))
            }
            Err(error) => matches!(error, ReadError::NoSuch(_)),
        };
        if empty {
            drop(pods.discard(name));
        }
    }

    /// Makes the session the one that `-c` goes on with, once something was committed in it; gives a warning when that
    /// fails.
    pub fn note(&self) -> impl FnOnce() -> Option<String> + Send + 'static {
        let noted = match &self.keep {
            Keep::Pod {
                name: Some(name),
                pods,
                project,
            } => Some((name.clone(), pods.clone(), project.clone())),
            Keep::Pod { name: None, .. } | Keep::Nothing { .. } => None,
        };
        move || {
            let (name, pods, project) = noted?;
            let failure = pods.note_run(&project, &name).err()?;
            Some(format!(
                "warning: -c will not find this run ({}); use --pod {name}",
                failure.message
            ))
        }
    }

    /// The session's directory; known once it is open.
    pub fn dir(&self) -> PathBuf {
        self.dir.clone()
    }

    /// What it is called, if it is kept; a new run is named when it is opened.
    pub fn name(&self) -> Option<&str> {
        match &self.keep {
            Keep::Pod { name, .. } => name.as_deref(),
            Keep::Nothing { .. } => None,
        }
    }

    /// The directory that is not to be kept, if nothing is and it was made.
    pub fn scratch(&self) -> Option<PathBuf> {
        match &self.keep {
            Keep::Nothing {
                scratch: Some(scratch),
                ..
            } => Some(scratch.path().to_path_buf()),
            Keep::Nothing { scratch: None, .. } | Keep::Pod { .. } => None,
        }
    }

    /// Removes what is not to be kept.
    pub fn close(&mut self) -> Result<(), Failure> {
        let Keep::Nothing { scratch, .. } = &mut self.keep else {
            return Ok(());
        };
        let removed = scratch.take().map_or(Ok(()), Scratch::remove);
        removed
            .map_err(|e| Failure::new(Exit::Unavailable, e.to_string()).help("delete it manually"))
    }
}

/// Takes a lock; while a process has it that is no more, again for up to a second. A living owner is not waited for.
pub fn patient<T>(
    ambient: &Ambient,
    mut take: impl FnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    for _ in 0..WAITS {
        match take() {
            Err(OpenError::Busy {
                owner: Some(owner), ..
            }) if !authority::is_running(ambient, owner.pid) => {
                thread::sleep(WAIT);
            }
            taken => return taken,
        }
    }
    take()
}

/// Where directories of sessions that are not kept are, the first that will do.
fn parents(env: &Env) -> [Option<PathBuf>; 3] {
    let runtime = env
        .var("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute() && dir.is_dir());
    [
        Some(std::env::temp_dir()),
        runtime,
        env.state_dir().ok().map(|state| state.join("ephemeral")),
    ]
}

/// Sessions that were not to be kept and whose runs were killed; each stays while its file is kept.
pub fn ephemeral_left(env: &Env) -> impl Iterator<Item = (PathBuf, File)> {
    let left = |parent: PathBuf| Scratch::left(&ambient::claim(), &parent, EPHEMERAL);
    parents(env)
        .into_iter()
        .flatten()
        .flat_map(left)
        .map(|(dir, held)| (dir.join(SESSION), held))
}

/// A new session has no past.
fn made_new(made: Result<Opened, OpenError>) -> Result<(Opened, SessionRecords), OpenError> {
    made.map(|opened| (opened, SessionRecords::default()))
}

/// A directory for what is not kept that is in none of those the run works in: its own journal would be among the
/// files that it may read and change.
fn beside(env: &Env, roots: &[&Path]) -> Result<PathBuf, Failure> {
    let outside = |dir: &PathBuf| {
        let real = dir.ancestors().find_map(|there| there.canonicalize().ok());
        real.is_some_and(|real| !roots.iter().any(|root| real.starts_with(root)))
    };
    let [temp, runtime, state] = parents(env);
    if let Some(dir) = temp.filter(outside).or(runtime.filter(outside)) {
        return Ok(dir);
    }
    match state.filter(outside) {
        Some(state) => make_private(&state).map(|()| state),
        None => Err(Failure::new(
            Exit::Unavailable,
            "every directory for temporary files is inside a directory that the run can access",
        )
        .help("set TMPDIR to a directory outside of the project")),
    }
}

/// A session's id; a clock before 1970 counts as 1970, and the rest of it is chance.
fn fresh_id() -> Uuid {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(
        NoContext,
        since.as_secs(),
        since.subsec_nanos(),
    ))
}

/// Microseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// A session that does not open, as an exit code and a next step. `now` is in microseconds; a pod that is not kept
/// has no name.
pub fn open_failure(error: &OpenError, now: u64, name: Option<&str>) -> Failure {
    let name = name.unwrap_or("NAME");
    match error {
        OpenError::Busy { owner, .. } => {
            let who = owner.as_ref().map_or_else(String::new, |owner| {
                let age = match now.saturating_sub(owner.since) {
                    0..1_000_000 => "less than a second".to_owned(),
                    held => protocol::count::duration(Duration::from_micros(held)),
                };
                format!(" by process {}, which started {age} ago", owner.pid)
            });
            Failure::new(Exit::Busy, format!("the pod {name} is in use{who}"))
                .help(Help::StopOwner(name.to_owned()))
        }
        OpenError::Damaged { damage, .. } => damaged(name, damage),
        OpenError::Format { .. } => newer_format(&error.to_string()),
        OpenError::NoSuch(_) => empty(name, Exit::Usage),
        OpenError::Id(_) | OpenError::Exists(_) => Failure::new(Exit::Usage, error.to_string()),
        OpenError::Place { .. } => Failure::new(Exit::Journal, error.to_string()).help(
            "set XDG_STATE_HOME to a local directory, or accept the risk with any_file_system = true under [state]",
        ),
        OpenError::ReadOnly(_) | OpenError::Disk(_) => Failure::new(Exit::Journal, error.to_string())
            .help(Help::WritableStateDir { local: true }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_is_refused_is_told_with_what_allows_it() {
        let error = OpenError::Place {
            dir: "/mnt/x".into(),
            file_system: "NFS",
        };
        let failure = open_failure(&error, 0, None);
        assert_eq!(failure.exit, Exit::Journal);
        assert!(
            matches!(failure.help, Some(Help::Text(help)) if help.contains("any_file_system = true under [state]"))
        );
    }
}
