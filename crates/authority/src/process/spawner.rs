//! The grant to start children with one confinement. Does not depend on their duration and output.

use super::confinement::{Beyond, Confinement, SandboxMode, support};
use super::descendants::{MARK, RunningCall};
use super::env::EnvPolicy;
use super::exit::ExitWatch;
use super::git_guard::{GitFinding, GitGuard};
use super::programs::Programs;
use super::run::Job;
use super::started::{ChildResources, RunningChild};
use super::temp::TempBase;
use super::{env, filter, rules};
use crate::{Ambient, Door, Error, ErrorKind, Workspace};
use landlock::{RulesetCreated, RulesetStatus};
use rustix::fs::MemfdFlags;
use rustix::process::Pid;
use rustix::thread::CapabilitySet;
use seccompiler::BpfProgram;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

const STACK: usize = 256 * 1024;

/// The longest tag and call, in bytes.
const MAX_TAG: usize = 256;
const MAX_CALL: usize = 64;
/// The longest standard input, in bytes.
const MAX_INPUT: usize = 1 << 20;

/// The capabilities that root's children keep: to open files and to change their own identity, but not to change owners
/// of files. With SETUID they can become another user and change permissions as that user. An ordinary user's children
/// have none.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// A handle that starts child processes with one confinement; the shell tool holds one. Clones share the grant's door,
/// rules and temporary directory.
#[derive(Clone, Debug)]
pub struct Spawner {
    shared: Arc<Shared>,
    door: Arc<Door>,
    git: Option<Arc<GitGuard>>,
    /// False for a handle that was derived.
    permits: bool,
    programs: Programs,
    /// Whether its children use the network, whatever the sandbox says of it.
    network: bool,
    /// Whether programs are found only where no child writes.
    guarded_path: bool,
}

/// The permission of [`Spawner::permit`]; it ends when this is dropped.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    call: String,
}

#[derive(Debug)]
struct Shared {
    mode: SandboxMode,
    env: EnvPolicy,
    tag: String,
    null: File,
    confinement: Confinement,
    room: Mutex<Arc<Room>>,
    /// By call.
    permitted: Mutex<BTreeMap<String, Beyond>>,
}

/// The temporary directories of the children, and the rules that give them.
#[derive(Debug)]
struct Room {
    temp: TempBase,
    cage: Option<Arc<Cage>>,
}

/// The Landlock rules and the system call filter of a confinement, built once and applied by each spawning thread.
struct Cage {
    ruleset: RulesetCreated,
    filter: BpfProgram,
}

impl std::fmt::Debug for Cage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cage").finish_non_exhaustive()
    }
}

impl Spawner {
    /// Builds the confinement. `tag` is the first part of `YOI_CALL` in every child, as `<session>/<epoch>`.
    ///
    /// # Errors
    /// `Unavailable` when the kernel lacks what a confining mode needs (the text names it), `Denied` when a directory
    /// to be given holds keys or other sessions (the text names it), `FixInput` when one does not exist or the tag is
    /// unfit.
    pub fn new(_: &Ambient, confinement: Confinement, env: EnvPolicy, tag: String) -> Result<Self, Error> {
        if tag.is_empty() || tag.len() > MAX_TAG || tag.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(Error::new(
                ErrorKind::FixInput,
                format!("tag {tag:?}: expected 1 to {MAX_TAG} printable bytes"),
            ));
        }
        let null = Path::new("/dev/null");
        let null_file = File::options().read(true).open(null).map_err(|error| Error::io("open", null, error))?;
        let room = Mutex::new(Arc::new(Room::build(&confinement, &env, &tag)?));
        let permitted = Mutex::default();
        let shared = Shared { mode: confinement.mode, env, tag, null: null_file, confinement, room, permitted };
        let (door, programs) = (Door::new(), Programs::Any);
        Ok(Self {
            shared: Arc::new(shared),
            door,
            git: None,
            permits: true,
            programs,
            network: false,
            guarded_path: false,
        })
    }

    /// Reverts changes of each child to what git would run.
    #[must_use]
    pub fn with_git_guard(self, guard: Arc<GitGuard>) -> Self {
        Self { git: Some(guard), ..self }
    }

    /// The position of the next git finding, for [`Spawner::git_findings`].
    pub fn git_mark(&self) -> usize {
        self.git.as_ref().map_or(0, |guard| guard.mark())
    }

    /// The git findings since a position, including those of concurrent calls, and earlier ones not reported yet.
    pub fn git_findings(&self, since: usize) -> Vec<GitFinding> {
        self.git.as_ref().map_or_else(Vec::new, |guard| guard.since(since))
    }

    /// The git findings that were not reported yet, and the position behind them for [`Spawner::git_told`].
    pub fn git_waiting(&self) -> (Vec<GitFinding>, usize) {
        self.git.as_ref().map_or_else(|| (Vec::new(), 0), |guard| guard.waiting())
    }

    /// The git findings before this position were reported.
    pub fn git_told(&self, upto: usize) {
        self.git.as_ref().inspect(|guard| guard.told(upto));
    }

    /// How its children are confined.
    pub fn mode(&self) -> SandboxMode {
        self.shared.mode
    }

    /// A handle for the same grant under a derived door. It permits nothing beyond the sandbox.
    #[must_use]
    pub fn derive(&self) -> Self {
        Self { door: self.door.derive(), permits: false, ..self.clone() }
    }

    /// A handle that starts only these programs, each a name that is looked up in `PATH` or an absolute path, under a
    /// derived door. With `network` its children use the network, also that of this machine; only the host's own handle
    /// gives that, and only if commands may write. What a program starts itself is bounded by the sandbox only.
    ///
    /// # Errors
    /// `FixInput` for no program, more than 64, or a path that is not absolute; `Denied` when this handle does not give
    /// the network; `Unavailable` when there is no sandbox, which alone withholds it.
    pub fn limited(&self, programs: &[OsString], network: bool) -> Result<Self, Error> {
        let programs = self.programs.narrowed(programs)?;
        let gives = self.network || self.permits && self.shared.mode != SandboxMode::ReadOnly;
        if network && !gives {
            return Err(Error::new(ErrorKind::Denied, "this grant gives its programs no network"));
        }
        if !network && self.shared.mode == SandboxMode::Off {
            let text = "without a sandbox no program can be kept from the network; grant the network, or use a sandbox";
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        Ok(Self { programs, network, ..self.derive() })
    }

    /// Finds programs only in directories of `PATH` that are absolute and outside of what children may write, and gives its
    /// children this `PATH`: what a command leaves in the project is not taken for a program of this machine.
    #[must_use]
    pub fn with_guarded_path(self) -> Self {
        Self { guarded_path: true, ..self }
    }

    /// A handle that starts only programs below the roots of `files`, under a derived door. It starts none any more when
    /// the grant of `files` is revoked.
    ///
    /// # Errors
    /// `Denied` when this handle is limited itself.
    pub fn below(&self, files: &Workspace) -> Result<Self, Error> {
        match self.programs {
            Programs::Any => Ok(Self { programs: Programs::Below(files.derive()), ..self.derive() }),
            Programs::Named(_) | Programs::Below(_) => {
                Err(Error::new(ErrorKind::Denied, "this grant starts other programs only"))
            }
        }
    }

    /// Lets one child of this call go beyond the sandbox: the next one, from any handle of the grant. None from a derived
    /// handle, and where commands are not confined or may write nothing.
    #[must_use]
    pub fn permit(&self, call: &str, beyond: Beyond) -> Option<Permit> {
        let lifts = match self.shared.mode {
            SandboxMode::WorkspaceWrite => self.permits,
            SandboxMode::ReadOnly | SandboxMode::Off => false,
        };
        lifts.then(|| {
            self.shared.permitted().insert(call.to_owned(), beyond);
            Permit { shared: Arc::clone(&self.shared), call: call.to_owned() }
        })
    }

    /// The door of this grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// What is to be compared while a child runs.
    pub(super) fn git(&self) -> Option<Arc<GitGuard>> {
        self.git.clone()
    }

    /// Starts a child on a fresh thread; returns it with what tells its end, and the reading end of its pipe.
    pub(super) async fn start(&self, job: &Job) -> Result<(RunningChild, ExitWatch, Receiver, Option<Beyond>), Error> {
        let program = crate::escape(job.program.as_ref());
        let guard = self.door.enter_owned().map_err(|_| Error::revoked(&format!("run {program}")))?;
        check(job)?;
        let path = self.programs.admit(job, self.find(job)?)?;
        let room = self.shared.room()?;
        // A permit is for the programs of the host's own rules.
        let limited = !matches!(self.programs, Programs::Any);
        let beyond = if limited { None } else { self.shared.permitted().remove(&job.call) };
        let cage = self.shared.cage(&room, beyond.or(self.network.then_some(Beyond::Network)))?;
        let caches = cage.is_some().then(|| room.temp.caches()).transpose()?;
        let temp = room.temp.for_call(&job.call)?;
        let mark = format!("{}/{}", self.shared.tag, job.call);
        let failed = |error: io::Error| Error::system(&format!("run {program}"), error);
        let (reader, writer) = io::pipe().map_err(failed)?;
        let reader = Receiver::from_owned_fd(reader.into()).map_err(failed)?;
        let mut command = Command::new(&path);
        command.arg0(&job.program).args(&job.args).current_dir(&job.cwd).process_group(0);
        command.env_clear().envs(self.shared.env.vars()).envs(caches.iter().flat_map(|dir| env::caches(dir)));
        command.env("TMPDIR", temp.path()).env(MARK, &mark);
        if self.guarded_path {
            command.env("PATH", self.path().map_err(|error| failed(io::Error::other(error)))?);
        }
        command.stdin(self.input(job).map_err(failed)?);
        command.stdout(Stdio::from(writer.try_clone().map_err(failed)?)).stderr(Stdio::from(writer));
        let git = self.git.as_ref().map(GitGuard::watch);
        let resources = ChildResources { temp, slot: RunningCall::take(), guard, git };
        let (answer, answered) = oneshot::channel();
        let spawn = move || {
            let started = spawn(cage.as_deref(), command, &mark, resources);
            // The directory is removed by the drop of the last spawner, not by this thread.
            drop(room);
            // If the receiver is gone, this drops the child, which kills it.
            answer.send(started).ok();
        };
        std::thread::Builder::new().name("spawn".to_owned()).stack_size(STACK).spawn(spawn).map_err(failed)?;
        let lost = || Error::new(ErrorKind::Bug, format!("run {program}: the spawning thread ended early"));
        let started = answered.await.map_err(|_| lost())?.map_err(|error| explain(job, &path, error))?;
        let exit = ExitWatch::of(started.pid()).map_err(failed)?;
        Ok((started, exit, reader, beyond))
    }

    /// What the child reads: a file in memory, which needs nobody to write into a pipe.
    fn input(&self, job: &Job) -> io::Result<Stdio> {
        if job.input.is_empty() {
            return self.shared.null.try_clone().map(Stdio::from);
        }
        let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
        file.write_all(&job.input)?;
        file.rewind()?;
        Ok(Stdio::from(file))
    }

    /// Finds the program's path before confinement, so that errors concern this path and nothing is searched under
    /// confinement.
    fn find(&self, job: &Job) -> Result<PathBuf, Error> {
        let name = Path::new(&job.program);
        if job.program.as_encoded_bytes().contains(&b'/') {
            return Ok(job.cwd.join(name));
        }
        let runnable = |path: &PathBuf| {
            rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
                && path.metadata().is_ok_and(|meta| meta.is_file())
                && !(self.guarded_path && self.is_written(path))
        };
        let found = self.path_dirs().map(|dir| job.cwd.join(dir).join(name)).find(runnable);
        found.ok_or_else(|| {
            let way = if matches!(self.programs, Programs::Any) { " or name its path" } else { "" };
            let text = format!("run {}: no such program in PATH; install it{way}", crate::escape(name));
            Error::new(ErrorKind::FixInput, text)
        })
    }
}

/// Where programs are looked for.
impl Spawner {
    fn path_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let path = self.shared.env.get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        std::env::split_paths(path).filter(|dir| !self.guarded_path || dir.is_absolute() && !self.is_written(dir))
    }

    fn path(&self) -> Result<OsString, std::env::JoinPathsError> {
        std::env::join_paths(self.path_dirs())
    }

    /// Whether it is in a directory that children may write, links followed. What does not resolve
    /// counts as such.
    fn is_written(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let roots = self.shared.confinement.write.iter().map(PathBuf::as_path).chain([Path::new(rules::SHARED_MEMORY)]);
        real(path).is_none_or(|path| roots.filter_map(real).any(|root| path.starts_with(root)))
    }
}

impl Shared {
    /// A directory that is gone is made again. The rules name the directory itself, not its path, so they are, too.
    fn room(&self) -> Result<Arc<Room>, Error> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if !room.temp.stands() {
            *room = Arc::new(Room::build(&self.confinement, &self.env, &self.tag)?);
        }
        Ok(room.clone())
    }

    fn permitted(&self) -> MutexGuard<'_, BTreeMap<String, Beyond>> {
        self.permitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What confines a child that may go so far.
    fn cage(&self, room: &Room, beyond: Option<Beyond>) -> Result<Option<Arc<Cage>>, Error> {
        match (beyond, &room.cage) {
            (Some(Beyond::Unconfined), _) | (_, None) => Ok(None),
            (None, Some(cage)) => Ok(Some(Arc::clone(cage))),
            (Some(Beyond::Network), Some(_)) => {
                Cage::build(&self.confinement, &self.env, room.temp.path(), true).map(|cage| Some(Arc::new(cage)))
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.permitted().remove(&self.call);
    }
}

impl Room {
    fn build(confinement: &Confinement, env: &EnvPolicy, tag: &str) -> Result<Self, Error> {
        let parent = env.place("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
        let temp = TempBase::create(&parent, tag)?;
        let cage = match confinement.mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => {
                Some(Arc::new(Cage::build(confinement, env, temp.path(), false)?))
            }
            SandboxMode::Off => None,
        };
        Ok(Self { temp, cage })
    }
}

impl Cage {
    /// With `network`, it leaves IPv4 and IPv6 open.
    fn build(confinement: &Confinement, env: &EnvPolicy, temp: &Path, network: bool) -> Result<Self, Error> {
        if let Some(missing) = support().missing() {
            let text =
                format!("sandbox: this kernel does not support {missing}; use sandbox mode off, or another kernel");
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        Ok(Self { ruleset: rules::build(confinement, env, temp, network)?, filter: filter::build(network)? })
    }

    /// Confines the calling thread and all processes that it starts, irrevocably.
    fn close(&self) -> io::Result<()> {
        for capability in CapabilitySet::all().difference(KEPT).iter() {
            // Fails for an ordinary user, whose children have no capabilities anyway, and for numbers that this kernel
            // does not have.
            rustix::thread::remove_capability_from_bounding_set(capability).ok();
        }
        // Ambient and inheritable capabilities survive exec: root's children would keep them in spite of the bounding
        // set.
        rustix::thread::clear_ambient_capability_set()?;
        let mut sets = rustix::thread::capabilities(None)?;
        sets.inheritable &= KEPT;
        rustix::thread::set_capabilities(None, sets)?;
        let status = self.ruleset.try_clone()?.restrict_self().map_err(io::Error::other)?;
        if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
            return Err(io::Error::other("the kernel applied only a part of the Landlock rules"));
        }
        seccompiler::apply_filter(&self.filter).map_err(io::Error::other)
    }
}

fn spawn(cage: Option<&Cage>, mut command: Command, mark: &str, resources: ChildResources) -> io::Result<RunningChild> {
    let child = resources.slot.spawn(&mut command, mark, || cage.map_or(Ok(()), Cage::close))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Ok(RunningChild::new(pid, resources))
}

fn check(job: &Job) -> Result<(), Error> {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if job.call.is_empty() || job.call.len() > MAX_CALL || !job.call.bytes().all(fit) {
        return Err(Error::new(
            ErrorKind::FixInput,
            format!("call {:?}: 1 to {MAX_CALL} of [A-Za-z0-9_-] are wanted", job.call),
        ));
    }
    if job.input.len() > MAX_INPUT {
        let text = format!("the input of a program has {} bytes; at most {MAX_INPUT} are allowed", job.input.len());
        return Err(Error::new(ErrorKind::FixInput, text));
    }
    let meta = job.cwd.metadata().map_err(|error| Error::io("run in", &job.cwd, error))?;
    if meta.is_dir() && job.cwd.is_absolute() {
        Ok(())
    } else {
        Err(Error::io("run in", &job.cwd, io::Error::from(io::ErrorKind::NotADirectory)))
    }
}

fn explain(job: &Job, path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::PermissionDenied && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    {
        let text =
            format!("run {}: the sandbox does not allow it to run; add its directory for reading", crate::escape(path));
        return Error::new(ErrorKind::Denied, text);
    }
    Error::system(&format!("run {} in {}", crate::escape(path), crate::escape(&job.cwd)), error)
}
