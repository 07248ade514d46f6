//! The grant to start children with one confinement. Does not depend on their duration and output.

use super::apart::{Helper, HelperProgram, TMP, WantedChild};
use super::cage::Cage;
use super::confinement::{Beyond, Confinement, Network, SandboxMode, support};
use super::descendants::{MARK, RunningCall};
use super::env::{EnvPolicy, TalkEnv};
use super::exit::ExitWatch;
use super::filter::Reach;
use super::git_guard::{GitFinding, GitGuard};
use super::programs::Programs;
use super::rules::Given;
use super::run::Job;
use super::started::{ChildResources, RunningChild};
use super::temp::TempBase;
use super::{env, filter, rules};
use crate::{Ambient, Door, Error, ErrorKind, HostProxy, Lent, Traffic, Workspace};
use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

const STACK: usize = 256 * 1024;

/// What processes and the machine keep, where a file may be a device or another process.
const STATE: &[&str] = &["/proc", "/sys", "/dev", "/run", "/etc", "/var"];

/// The longest tag and call, in bytes.
const MAX_TAG: usize = 256;
const MAX_CALL: usize = 64;
/// The longest standard input, in bytes.
const MAX_INPUT: usize = 1 << 20;

/// What a child that is talked to gets of the environment.
const TALK_ENV: &[&str] = &["PATH", "LANG"];

/// Standard input and output of a child; its standard error is always a pipe.
pub(super) enum Streams {
    /// Output goes into that pipe, too, and the input is the job's.
    Merged,
    Apart(OwnedFd, OwnedFd, TalkEnv),
}

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
    /// The network of its children, whatever the sandbox says of it.
    network: Network,
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
    /// Made when the first child is near.
    room: Mutex<Option<Arc<Room>>>,
    /// By call.
    permitted: Mutex<BTreeMap<String, Beyond>>,
    /// What holds namespaces of the children's own.
    helper: OnceLock<HelperProgram>,
    /// What children in namespaces reach beside each other.
    proxy: OnceLock<HostProxy>,
}

/// The temporary directories of the children, and the rules that give them.
#[derive(Debug)]
struct Room {
    /// Before the directories that it uses.
    helper: Mutex<Namespaces>,
    temp: TempBase,
    /// Of children that are not in namespaces and use no network.
    cage: OnceLock<Arc<Cage>>,
    given: Vec<Given>,
}

/// Namespaces of the children's own.
#[derive(Debug, Default)]
enum Namespaces {
    #[default]
    NotTried,
    Held(Arc<Helper>),
    /// Why there are none, and whether that was told.
    Missing(String, bool),
}

impl Spawner {
    /// Checks the confinement, which is built when the first child is near ([`Spawner::prepare`]). `tag` is the first part of `YOI_CALL` in every child, as `<session>/<epoch>`.
    ///
    /// # Errors
    /// `Unavailable` when the kernel lacks what a confining mode needs (the text names it), `Denied` when a directory
    /// to be given holds keys or other sessions (the text names it), `FixInput` when one does not exist or the tag is
    /// unfit.
    pub fn new(
        _: &Ambient,
        confinement: Confinement,
        env: EnvPolicy,
        tag: String,
    ) -> Result<Self, Error> {
        if tag.is_empty() || tag.len() > MAX_TAG || tag.bytes().any(|byte| byte.is_ascii_control())
        {
            return Err(Error::new(
                ErrorKind::FixInput,
                format!("tag {tag:?}: expected 1 to {MAX_TAG} printable bytes"),
            ));
        }
        let null = Path::new("/dev/null");
        let null_file = File::options()
            .read(true)
            .open(null)
            .map_err(|error| Error::io("open", null, error))?;
        if confinement.mode != SandboxMode::Off {
            check_support()?;
            rules::check(&confinement, &env)?;
        }
        TempBase::check(&temp_parent(&env))?;
        let (room, permitted) = Default::default();
        let mode = confinement.mode;
        let null = null_file;
        let helper = OnceLock::new();
        let proxy = OnceLock::new();
        let shared = Shared {
            mode,
            env,
            tag,
            null,
            confinement,
            room,
            permitted,
            helper,
            proxy,
        };
        let door = Door::new();
        let programs = Programs::Any;
        Ok(Self {
            shared: Arc::new(shared),
            door,
            git: None,
            permits: true,
            programs,
            network: Network::default(),
            guarded_path: false,
        })
    }

    /// Reverts changes of each child to what git would run.
    #[must_use]
    pub fn with_git_guard(self, guard: Arc<GitGuard>) -> Self {
        Self {
            git: Some(guard),
            ..self
        }
    }

    /// Starts confined children in namespaces of their own, where this machine has them.
    #[must_use]
    pub fn with_helper(self, program: HelperProgram) -> Self {
        // The first one counts.
        self.shared.helper.set(program).ok();
        self
    }

    /// Has children in namespaces of their own reach the hosts of this proxy.
    #[must_use]
    pub fn with_proxy(self, proxy: HostProxy) -> Self {
        // The first one counts.
        self.shared.proxy.set(proxy).ok();
        self
    }

    /// What the proxy passed on and refused until now, for all children; nothing without one.
    pub fn traffic(&self) -> Traffic {
        self.proxy()
            .map(|proxy| proxy.traffic())
            .unwrap_or_default()
    }

    pub(super) fn proxy(&self) -> Option<HostProxy> {
        self.shared.proxy.get().cloned()
    }

    /// Builds what confines children, if that was not done. The first child needs it, and so waits for it otherwise.
    ///
    /// # Errors
    /// As the first child would be told; `Revoked` when the door of the grant is shut.
    pub fn prepare(self) -> Result<(), Error> {
        let using = self
            .door
            .enter_owned()
            .map_err(|_| Error::revoked("prepare the sandbox"))?;
        let made = self.shared.room().map(drop);
        // Who shuts the door holds the last handle, which removes the directories.
        drop(self);
        drop(using);
        made
    }

    /// Which network its children use.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Why children have no namespaces of their own, once; `None` also if that is not known yet.
    pub fn weaker(&self) -> Option<String> {
        match &mut *self.shared.room().ok()?.namespaces() {
            Namespaces::Missing(why, told) => (!std::mem::replace(told, true)).then(|| why.clone()),
            Namespaces::NotTried | Namespaces::Held(_) => None,
        }
    }

    /// Whether a path is of this machine, or would be, and not among what children in namespaces of their own see.
    pub fn withholds(&self, path: &Path) -> bool {
        let Ok(room) = self.shared.room() else {
            return false;
        };
        let roots = || {
            self.shared
                .confinement
                .read
                .iter()
                .chain(&self.shared.confinement.write)
        };
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        // What is above a directory that is given is there as well, and `/tmp` and `/dev` are always.
        let is_seen = |dir: &Path| {
            dir.parent().is_none_or(|above| above == Path::new("/"))
                || roots().any(|root| root.starts_with(dir))
        };
        matches!(*room.namespaces(), Namespaces::Held(_))
            && !roots().any(|root| path.starts_with(root))
            && !path.starts_with(room.temp.path())
            && (is_there(path)
                || path
                    .parent()
                    .is_some_and(|dir| !is_seen(dir) && is_there(dir)))
    }

    /// Whether confined children may read a path, by the directories that they were given.
    pub fn reads(&self, path: &Path) -> bool {
        let confinement = &self.shared.confinement;
        let mut given = confinement.read.iter().chain(&confinement.write);
        given.any(|root| path.starts_with(root))
    }

    /// What tells the directories that confined children read, beside those of the system's and the kernel's state. It
    /// prepares the first child, and keeps nothing of it alive.
    pub fn readable(&self) -> impl FnOnce() -> Vec<PathBuf> + Send + 'static {
        let shared = Arc::downgrade(&self.shared);
        let is_state = |path: &Path| STATE.iter().any(|state| path.starts_with(state));
        let is_read =
            move |given: &&Given| rules::is_read_dir(given.access) && !is_state(&given.path);
        move || {
            let room = shared.upgrade().and_then(|shared| shared.room().ok());
            room.iter()
                .flat_map(|room| room.given.iter().filter(is_read))
                .map(|given| given.path.clone())
                .collect()
        }
    }

    /// Tries how children are confined: in namespaces of their own or, where there are none, for which it gives the
    /// reason, as a thread that ends again.
    ///
    /// # Errors
    /// Neither works here: no child could be started.
    pub fn try_confinement(&self) -> Result<Option<String>, Error> {
        let room = self.shared.room()?;
        if self.shared.helper(&room, self.network).is_some() {
            return Ok(None);
        }
        let cage = self.shared.cage(&room, Reach::Nothing)?;
        let closed = std::thread::Builder::new()
            .name("sandbox test".into())
            .spawn(move || cage.close())
            .and_then(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("the thread of the test panicked")))
            });
        closed.map_err(|error| Error::new(ErrorKind::Unavailable, format!("sandbox: {error}")))?;
        Ok(Some(self.weaker().unwrap_or_default()))
    }

    /// The position of the next git finding, for [`Spawner::git_findings`].
    pub fn git_mark(&self) -> usize {
        self.git.as_ref().map_or(0, |guard| guard.mark())
    }

    /// The git findings since a position, including those of concurrent calls, and earlier ones not reported yet.
    pub fn git_findings(&self, since: usize) -> Vec<GitFinding> {
        self.git
            .as_ref()
            .map_or_else(Vec::new, |guard| guard.since(since))
    }

    /// The git findings that were not reported yet, and the position behind them for [`Spawner::git_told`].
    pub fn git_waiting(&self) -> (Vec<GitFinding>, usize) {
        self.git
            .as_ref()
            .map_or_else(|| (Vec::new(), 0), |guard| guard.waiting())
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
        Self {
            door: self.door.derive(),
            permits: false,
            ..self.clone()
        }
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
        let gives = self.network == Network::On
            || self.permits && self.shared.mode != SandboxMode::ReadOnly;
        if network && !gives {
            return Err(Error::new(
                ErrorKind::Denied,
                "this grant gives its programs no network",
            ));
        }
        if !network && self.shared.mode == SandboxMode::Off {
            let text = "without a sandbox no program can be kept from the network; grant the network, or use a sandbox";
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        // Without a grant of it, the sandbox of commands decides.
        let network = if network {
            Network::On
        } else {
            self.shared.plain(self.network)
        };
        Ok(Self {
            programs,
            network,
            ..self.derive()
        })
    }

    /// Finds programs only in directories of `PATH` that are absolute and outside of what children may write, and gives its
    /// children this `PATH`: what a command leaves in the project is not taken for a program of this machine.
    #[must_use]
    pub fn with_guarded_path(self) -> Self {
        Self {
            guarded_path: true,
            ..self
        }
    }

    /// A handle that starts only programs below the roots of `files`, under a derived door. It starts none any more when
    /// the grant of `files` is revoked.
    ///
    /// # Errors
    /// `Denied` when this handle is limited itself.
    pub fn below(&self, files: &Workspace) -> Result<Self, Error> {
        match self.programs {
            Programs::Any => Ok(Self {
                programs: Programs::Below(files.derive()),
                ..self.derive()
            }),
            Programs::Named(_) | Programs::Below(_) => Err(Error::new(
                ErrorKind::Denied,
                "this grant starts other programs only",
            )),
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
            Permit {
                shared: Arc::clone(&self.shared),
                call: call.to_owned(),
            }
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
    pub(super) async fn start(
        &self,
        job: &Job,
        streams: Streams,
    ) -> Result<(RunningChild, ExitWatch, Receiver, Option<Beyond>), Error> {
        let program = crate::escape(job.program.as_ref());
        let guard = self
            .door
            .enter_owned()
            .map_err(|_| Error::revoked(&format!("run {program}")))?;
        check(job)?;
        let path = self.programs.admit(job, self.find(job)?)?;
        let room = self.shared.room()?;
        // A permit is for the programs of the host's own rules.
        let limited = !matches!(self.programs, Programs::Any);
        let beyond = if limited {
            None
        } else {
            self.shared.permitted().remove(&job.call)
        };
        let reach = match &beyond {
            _ if self.shared.mode == SandboxMode::Off => None,
            Some(Beyond::Unconfined) => None,
            Some(Beyond::Network) => Some(Reach::Internet),
            _ if self.network == Network::On => Some(Reach::Internet),
            Some(Beyond::Hosts(_)) | None => Some(Reach::Nothing),
        };
        if reach.is_some() {
            self.begin_namespaces(&room);
        }
        let proxy = self
            .shared
            .proxy
            .get()
            .filter(|_| reach == Some(Reach::Nothing));
        let lent = match (&beyond, proxy) {
            (Some(Beyond::Hosts(hosts)), Some(proxy)) => Some(proxy.lend(hosts)?),
            _ => None,
        };
        let is_alone = reach == Some(Reach::Nothing)
            && lent.is_none()
            && !proxy.is_some_and(HostProxy::is_for_all);
        let caches = reach.is_some().then(|| room.temp.caches()).transpose()?;
        let temp = room.temp.for_call(&job.call)?;
        let mark = format!("{}/{}", self.shared.tag, job.call);
        let failed = |error: io::Error| Error::system(&format!("run {program}"), error);
        let (reader, writer) = io::pipe().map_err(failed)?;
        let reader = Receiver::from_owned_fd(reader.into()).map_err(failed)?;
        let (has_all, own) = match &streams {
            Streams::Merged => (true, &[][..]),
            Streams::Apart(_, _, TalkEnv { like_command, vars }) => (*like_command, &vars[..]),
        };
        let is_given = |name: &OsStr| has_all || TALK_ENV.iter().any(|given| name == *given);
        let vars = self.shared.env.vars().filter(|(name, _)| is_given(name));
        let mut env = vars.map(owned).collect::<Vec<_>>();
        if has_all {
            env.extend(caches.iter().flat_map(|dir| env::caches(dir)).map(owned));
            let retries = env::NO_RETRIES.iter().copied().filter(|_| is_alone);
            env.extend(retries.map(owned));
        }
        env.extend(
            [
                ("TMPDIR", temp.path().as_os_str()),
                (MARK, OsStr::new(&mark)),
            ]
            .map(owned),
        );
        env.extend(own.iter().cloned());
        if self.guarded_path {
            env.push(owned((
                "PATH",
                self.path()
                    .map_err(|error| failed(io::Error::other(error)))?,
            )));
        }
        let error = OwnedFd::from(writer);
        let (input, output) = match streams {
            Streams::Merged => (self.input(job), error.try_clone()),
            Streams::Apart(input, output, _) => (Ok(input), Ok(output)),
        };
        let wanted = WantedChild {
            path: path.clone(),
            name: job.program.clone(),
            args: job.args.clone(),
            cwd: job.cwd.clone(),
            env,
            input: input.map_err(failed)?,
            output: output.map_err(failed)?,
            error,
            out: reach == Some(Reach::Internet),
        };
        let git = self.git.as_ref().map(GitGuard::watch);
        let resources = ChildResources {
            temp,
            slot: RunningCall::take(),
            guard,
            git,
            lent,
        };
        let launched = self
            .launch(room, reach, wanted, mark, resources)
            .await
            .map_err(failed)?;
        let lost = || {
            Error::new(
                ErrorKind::Bug,
                format!("run {program}: the spawning thread ended early"),
            )
        };
        let started = launched
            .ok_or_else(lost)?
            .map_err(|error| explain(job, &path, error))?;
        let exit = started.exit_watch().map_err(failed)?;
        // Without namespaces there is no proxy.
        let beyond =
            beyond.filter(|beyond| !matches!(beyond, Beyond::Hosts(_)) || started.is_lent());
        Ok((started, exit, reader, beyond))
    }

    /// Begins namespaces of the children's own, if that was not tried, while the first child is prepared.
    fn begin_namespaces(&self, room: &Arc<Room>) {
        let is_untried = |state: MutexGuard<'_, _>| matches!(*state, Namespaces::NotTried);
        // Where it is locked, somebody begins them.
        if self.shared.helper.get().is_some() && room.helper.try_lock().is_ok_and(is_untried) {
            let shared = Arc::clone(&self.shared);
            let room = Arc::clone(room);
            let network = self.network;
            tokio::task::spawn_blocking(move || shared.helper(&room, network).is_some());
        }
    }

    /// Starts a child in namespaces of its own, if it may be and there are any; otherwise on a fresh thread, which confines
    /// itself. `None` if that thread is gone.
    async fn launch(
        &self,
        room: Arc<Room>,
        reach: Option<Reach>,
        mut wanted: WantedChild,
        mark: String,
        mut resources: ChildResources,
    ) -> io::Result<Option<io::Result<RunningChild>>> {
        if reach.is_some() && self.shared.helper.get().is_some() {
            let shared = Arc::clone(&self.shared);
            let room = Arc::clone(&room);
            let network = self.network;
            let start = move || match shared.helper(&room, network) {
                Some(helper) => {
                    if helper.has_tmp() {
                        // The names of sockets are short.
                        wanted.env.push(owned(("TMPDIR", TMP)));
                    }
                    let user = resources.lent.as_ref().map(Lent::user);
                    let is_for_all = shared.proxy.get().is_some_and(HostProxy::is_for_all);
                    if helper.is_proxied() && !wanted.out && (is_for_all || user.is_some()) {
                        wanted.env.extend(env::proxied(user).map(owned));
                    }
                    Ok(start_apart(
                        &shared, &room, helper, &wanted, network, resources,
                    ))
                }
                None => Err(Box::new((wanted, resources))),
            };
            match tokio::task::spawn_blocking(start).await {
                Ok(Ok(started)) => return Ok(Some(started)),
                Ok(Err(unused)) => (wanted, resources) = *unused,
                Err(_panic) => return Ok(None),
            }
        }
        let (answer, answered) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let spawn = move || {
            let cage = reach
                .map(|reach| shared.cage(&room, reach))
                .transpose()
                .map_err(io::Error::other);
            let started = cage.and_then(|cage| spawn(cage.as_deref(), wanted, &mark, resources));
            // The directory is removed by the drop of the last spawner, not by this thread.
            drop((room, shared));
            // If the receiver is gone, this drops the child, which kills it.
            answer.send(started).ok();
        };
        std::thread::Builder::new()
            .name("spawn".to_owned())
            .stack_size(STACK)
            .spawn(spawn)?;
        Ok(answered.await.ok())
    }

    /// What the child reads: a file in memory, which needs nobody to write into a pipe.
    fn input(&self, job: &Job) -> io::Result<OwnedFd> {
        if job.input.is_empty() {
            return self.shared.null.try_clone().map(OwnedFd::from);
        }
        let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
        file.write_all(&job.input)?;
        file.rewind()?;
        Ok(file.into())
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
        let found = self
            .path_dirs()
            .map(|dir| job.cwd.join(dir).join(name))
            .find(runnable);
        found.ok_or_else(|| {
            let way = if matches!(self.programs, Programs::Any) {
                " or name its path"
            } else {
                ""
            };
            let text = format!(
                "run {}: no such program in PATH; install it{way}",
                crate::escape(name)
            );
            Error::new(ErrorKind::FixInput, text)
        })
    }
}

/// Where programs are looked for.
impl Spawner {
    fn path_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let path = self
            .shared
            .env
            .get("PATH")
            .unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        std::env::split_paths(path)
            .filter(|dir| !self.guarded_path || dir.is_absolute() && !self.is_written(dir))
    }

    fn path(&self) -> Result<OsString, std::env::JoinPathsError> {
        std::env::join_paths(self.path_dirs())
    }

    /// Whether children may write this program, or put another one in its place.
    pub fn may_replace(&self, program: &Path) -> bool {
        let above = program.parent().unwrap_or(Path::new("/"));
        program.exists() && (self.is_written(program) || self.is_written(above))
    }

    /// Whether it is in a directory that children may write, links followed. What does not resolve
    /// counts as such.
    fn is_written(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let roots = self
            .shared
            .confinement
            .write
            .iter()
            .map(PathBuf::as_path)
            .chain([Path::new(rules::SHARED_MEMORY)]);
        real(path).is_none_or(|path| roots.filter_map(real).any(|root| path.starts_with(root)))
    }
}

impl Shared {
    /// A directory that is gone is made again. The rules name the directory itself, not its path, so they are, too.
    fn room(&self) -> Result<Arc<Room>, Error> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = room.as_ref().filter(|room| room.temp.stands()) {
            return Ok(Arc::clone(room));
        }
        let built = Arc::new(Room::build(&self.confinement, &self.env, &self.tag)?);
        *room = Some(Arc::clone(&built));
        Ok(built)
    }

    fn permitted(&self) -> MutexGuard<'_, BTreeMap<String, Beyond>> {
        self.permitted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The network of programs that were granted none.
    fn plain(&self, network: Network) -> Network {
        if network == Network::On {
            Network::default()
        } else {
            network
        }
    }

    /// What holds the namespaces of the children's own, started with the first of them; `None` where there are none.
    fn helper(&self, room: &Room, network: Network) -> Option<Arc<Helper>> {
        let program = self.helper.get()?;
        let mut namespaces = room.namespaces();
        if matches!(*namespaces, Namespaces::NotTried) {
            let started = || {
                let view = room.temp.view()?;
                let loopback = network != Network::None;
                Helper::start(
                    program,
                    &self.tag,
                    &room.given,
                    &view,
                    loopback,
                    self.proxy.get(),
                )
                .map_err(|error| Error::system("make namespaces", error))
            };
            *namespaces = match started() {
                Ok(helper) => {
                    let stores = room.given.iter().filter(|given| given.is_store);
                    // Without a link, programs have a new directory.
                    room.temp
                        .link_stores(stores.map(|given| given.path.as_path()))
                        .ok();
                    Namespaces::Held(Arc::new(helper))
                }
                Err(why) => Namespaces::Missing(why.to_string(), false),
            };
        }
        match &*namespaces {
            Namespaces::Held(helper) => Some(Arc::clone(helper)),
            Namespaces::NotTried | Namespaces::Missing(..) => None,
        }
    }

    /// What confines a child without namespaces.
    fn cage(&self, room: &Room, reach: Reach) -> Result<Arc<Cage>, Error> {
        if let Some(cage) = room.cage.get().filter(|_| reach == Reach::Nothing) {
            return Ok(Arc::clone(cage));
        }
        let cage = Arc::new(Cage {
            ruleset: rules::build(&self.confinement, &self.env, room.temp.path(), reach)?,
            filter: filter::build(reach, None)?,
        });
        if reach == Reach::Nothing {
            room.cage.set(Arc::clone(&cage)).ok();
        }
        Ok(cage)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.permitted().remove(&self.call);
    }
}

impl Room {
    fn build(confinement: &Confinement, env: &EnvPolicy, tag: &str) -> Result<Self, Error> {
        let temp = TempBase::create(&temp_parent(env), tag)?;
        let given = match confinement.mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => {
                rules::given(confinement, env, temp.path())?
            }
            SandboxMode::Off => Vec::new(),
        };
        Ok(Self {
            temp,
            cage: OnceLock::new(),
            given,
            helper: Mutex::default(),
        })
    }

    fn namespaces(&self) -> MutexGuard<'_, Namespaces> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the temporary directories of children are.
fn temp_parent(env: &EnvPolicy) -> PathBuf {
    env.place("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn check_support() -> Result<(), Error> {
    support().missing().map_or(Ok(()), |missing| {
        let text = format!(
            "sandbox: this kernel does not support {missing}; use sandbox mode off, or another kernel"
        );
        Err(Error::new(ErrorKind::Unavailable, text))
    })
}

fn owned(entry: (impl AsRef<OsStr>, impl AsRef<OsStr>)) -> (OsString, OsString) {
    (entry.0.as_ref().to_owned(), entry.1.as_ref().to_owned())
}

/// Starts a child in namespaces of its own. A helper that was killed is replaced once.
fn start_apart(
    shared: &Shared,
    room: &Room,
    helper: Arc<Helper>,
    wanted: &WantedChild,
    network: Network,
    resources: ChildResources,
) -> io::Result<RunningChild> {
    let call = resources.slot.call;
    let apart = match helper.spawn(wanted, call) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            *room.namespaces() = Namespaces::NotTried;
            let gone = || {
                io::Error::other(
                    "the helper of the sandbox was killed, and no other one can be started",
                )
            };
            shared
                .helper(room, network)
                .ok_or_else(gone)?
                .spawn(wanted, call)?
        }
        apart => apart?,
    };
    Ok(RunningChild::apart(apart, resources))
}

fn spawn(
    cage: Option<&Cage>,
    wanted: WantedChild,
    mark: &str,
    resources: ChildResources,
) -> io::Result<RunningChild> {
    let WantedChild {
        path,
        name,
        args,
        cwd,
        env,
        input,
        output,
        error,
        out: _,
    } = wanted;
    let mut command = Command::new(path);
    command
        .arg0(name)
        .args(args)
        .current_dir(cwd)
        .process_group(0)
        .env_clear()
        .envs(env);
    command
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(error));
    let child = resources
        .slot
        .spawn(&mut command, mark, || cage.map_or(Ok(()), Cage::close))?;
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(RunningChild::new(pid, resources))
}

fn check(job: &Job) -> Result<(), Error> {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if job.call.is_empty() || job.call.len() > MAX_CALL || !job.call.bytes().all(fit) {
        return Err(Error::new(
            ErrorKind::FixInput,
            format!(
                "call {:?}: 1 to {MAX_CALL} of [A-Za-z0-9_-] are wanted",
                job.call
            ),
        ));
    }
    if job.input.len() > MAX_INPUT {
        let text = format!(
            "the input of a program has {} bytes; at most {MAX_INPUT} are allowed",
            job.input.len()
        );
        return Err(Error::new(ErrorKind::FixInput, text));
    }
    let meta = job
        .cwd
        .metadata()
        .map_err(|error| Error::io("run in", &job.cwd, error))?;
    if meta.is_dir() && job.cwd.is_absolute() {
        Ok(())
    } else {
        Err(Error::io(
            "run in",
            &job.cwd,
            io::Error::from(io::ErrorKind::NotADirectory),
        ))
    }
}

fn explain(job: &Job, path: &Path, error: io::Error) -> Error {
    // In namespaces of its own what is not given is not there.
    let is_refused = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
    );
    if is_refused
        && job.cwd.is_dir()
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    {
        let text = format!(
            "run {}: the sandbox does not allow it to run; add its directory for reading",
            crate::escape(path)
        );
        return Error::new(ErrorKind::Denied, text);
    }
    Error::system(
        &format!("run {} in {}", crate::escape(path), crate::escape(&job.cwd)),
        error,
    )
}
