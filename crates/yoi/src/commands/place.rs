//! Where a run's session is kept.

use crate::Points;
use crate::cli::RunArgs;
use crate::exit::{Exit, Failure};
use crate::pods::{Pods, check_name, disk};
use session_store::{Clock, OpenError, Opened, Options, Session};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// A run's session directory and what becomes of it.
pub(crate) struct Place {
    dir: PathBuf,
    id: Uuid,
    keep: Option<Kept>,
}

/// A session that stays.
struct Kept {
    name: String,
    pods: Pods,
    project: PathBuf,
}

impl Place {
    /// The pod that the flags name; a new run without one. Nothing is made yet.
    pub(crate) fn choose(args: &RunArgs, pods: &Pods, project: &Path) -> Result<Self, Failure> {
        let id = Uuid::now_v7();
        if args.ephemeral {
            let dir = std::env::temp_dir().join(format!("yoi-ephemeral-{id}"));
            return Ok(Self { dir: dir.join("session"), id, keep: None });
        }
        let name = match &args.pod {
            Some(name) => {
                check_name(name)?;
                name.clone()
            }
            None if args.resume => pods.last_run(project).ok_or_else(|| {
                Failure::new(Exit::Usage, format!("no run in {} to continue", project.display()))
                    .help("leave out -c for a new run; `yoi ls` lists the runs there are")
            })?,
            None => pods.new_run(id.as_u128()),
        };
        let dir = pods.dir(&name);
        let keep = Some(Kept { name, pods: pods.clone(), project: project.to_path_buf() });
        Ok(Self { dir, id, keep })
    }

    /// Locks the session, making it if it is new.
    pub(crate) fn open(&self, clock: &Clock, points: &Points) -> Result<Opened, Failure> {
        let options = || {
            let mut options = Options::new(self.id.to_string(), clock.clone());
            let reached = points.0.clone();
            options.probe = Arc::new(move |point| reached(point));
            options
        };
        match &self.keep {
            Some(Kept { pods, .. }) => pods.prepare()?,
            None => self.make_scratch()?,
        }
        // A directory that a crash left empty is made a session like one that is not there; somebody else may make it
        // in between, and then has it.
        let opened = match Session::open(&self.dir, options()) {
            Err(OpenError::NoSuch(_)) => match Session::create(&self.dir, options()) {
                Err(OpenError::Exists(_)) => Session::open(&self.dir, options()),
                made => made,
            },
            opened => opened,
        };
        let opened = opened.map_err(|error| open_failure(&error, clock(), self.name()))?;
        if let Some(Kept { name, pods, project }) = &self.keep {
            pods.note_run(project, name)?;
        }
        Ok(opened)
    }

    /// The session's directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.clone()
    }

    /// What it is called, if it is kept.
    pub(crate) fn name(&self) -> Option<&str> {
        self.keep.as_ref().map(|kept| kept.name.as_str())
    }

    /// The directory that is not to be kept, if nothing is.
    pub(crate) fn scratch(&self) -> Option<PathBuf> {
        self.dir.parent().filter(|_| self.keep.is_none()).map(Path::to_path_buf)
    }

    fn make_scratch(&self) -> Result<(), Failure> {
        let Some(scratch) = self.scratch() else { return Ok(()) };
        DirBuilder::new().mode(0o700).create(&scratch).map_err(|error| {
            let failure = Failure::new(Exit::Unavailable, format!("{}: {error}", scratch.display()));
            failure.help("set TMPDIR to a directory that can be written")
        })
    }

    /// Removes what is not to be kept.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let Some(scratch) = self.scratch() else { return Ok(()) };
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk(&scratch, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A session that does not open, as an exit code and a next step. `now` is in microseconds; a pod that is not kept
/// has no name.
pub(crate) fn open_failure(error: &OpenError, now: u64, name: Option<&str>) -> Failure {
    let name = name.unwrap_or("NAME");
    match error {
        OpenError::Busy { owner, .. } => {
            let who = owner.as_ref().map_or_else(String::new, |owner| {
                let age = match now.saturating_sub(owner.since) {
                    0..1_000_000 => "less than a second".to_owned(),
                    held => pod::session::restore::duration(held),
                };
                format!(" by process {} for {age}", owner.pid)
            });
            Failure::new(Exit::Busy, format!("{name} is in use{who}")).help("wait for it, or use another --pod NAME")
        }
        OpenError::Damaged { .. } => Failure::new(Exit::Data, error.to_string())
            .help(format!("`yoi verify {name}` names the first bad record; `yoi log {name}` reads what is before it")),
        OpenError::Format { .. } => {
            Failure::new(Exit::Data, error.to_string()).help("use a newer yoi to read this session")
        }
        OpenError::NoSuch(_) | OpenError::Id(_) | OpenError::Exists(_) => Failure::new(Exit::Usage, error.to_string()),
        OpenError::ReadOnly(_) | OpenError::Disk(_) | OpenError::Place { .. } => {
            Failure::new(Exit::Journal, error.to_string())
                .help("set XDG_STATE_HOME to a local directory that can be written, or use --ephemeral")
        }
    }
}
