//! The helper of a pod: a process with one thread that holds the namespaces of the pod's commands, and starts these.
//!
//! ```text
//! pod ─▶ helper: new namespaces ─fork─▶ first process of them: view, `lo` up
//!                                         └─fork─▶ keeper, the first process of a namespace of a call: waits for it
//!                                                     └─▶ the command, confined, and all that it starts
//! ```
//!
//! Each ends with the one before it: the kernel ends what is in a namespace of processes when its first process ends,
//! and that one ends when the pod's end of the socket is closed.

use super::keeper::Keeper;
use super::pair;
use super::view::{self, View};
use super::wire::{self, Fields};
use crate::process::cage::Cage;
use crate::process::env::PROXY;
use crate::process::filter::{self, OwnNamespaces, Reach};
use crate::process::rules::{self, Given};
use fork::Fork;
use landlock::{ABI, Access, AccessFs, BitFlags, PathBeneath, RulesetCreated, RulesetCreatedAttr};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::net::{AddressFamily, SendFlags, SocketType};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use seccompiler::BpfProgram;
use std::fs::File;
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::PathBuf;

/// What a keeper needs of its helper.
pub(super) struct KeeperKit {
    pub(super) socket: OwnedFd,
    given: Vec<(OwnedFd, BitFlags<AccessFs>)>,
    /// The rules of calls that are not let out, which each keeper adds its own `/proc` to.
    ruleset: RulesetCreated,
    abi: ABI,
    filter: BpfProgram,
    /// The network of calls that are not let out.
    pub(super) network: OwnedFd,
    /// Covers the machine's file of name servers.
    resolver: Option<PathBuf>,
    pub(super) has_tmp: bool,
}

impl KeeperKit {
    /// What confines a child that sees this `/proc`.
    pub(super) fn cage(&self, proc: BorrowedFd<'_>, reach: Reach) -> io::Result<Cage> {
        let (ruleset, filter) = if reach == Reach::Namespaces {
            (self.ruleset.try_clone()?, self.filter.clone())
        } else {
            let ruleset = build_ruleset(&self.given, reach, self.abi)?;
            (ruleset, build_filter(reach).map_err(io::Error::other)?)
        };
        // All that the kernel lets an ordinary user write there is of its own processes; root's would be the machine's.
        let written = if rustix::process::geteuid().is_root() {
            BitFlags::EMPTY
        } else {
            (AccessFs::WriteFile | AccessFs::Truncate) & AccessFs::from_all(self.abi)
        };
        let access = AccessFs::ReadFile | AccessFs::ReadDir | written;
        let ruleset = ruleset.add_rule(PathBeneath::new(proc, access));
        Ok(Cage {
            ruleset: ruleset.map_err(io::Error::other)?,
            filter,
        })
    }

    /// As far as a child may reach that is let out: where Landlock knows no scopes, sockets with a name may be anyone's.
    pub(super) fn outside(&self) -> Reach {
        if self.abi >= ABI::V6 {
            Reach::Machine
        } else {
            Reach::Internet
        }
    }

    /// Shows the machine's name servers to this process and to what it starts.
    pub(super) fn uncover_resolver(&self) -> io::Result<()> {
        self.resolver.as_ref().map_or(Ok(()), |path| {
            Ok(rustix::mount::unmount(path, UnmountFlags::DETACH)?)
        })
    }
}

/// How many keepers add their `/proc` to the same rules, which keep it.
const SAME_RULES: u64 = 64;

/// Comes with a listener in the network of the commands.
pub(super) const LISTENER: &[u8] = b"listener";

/// Leaves the network of the calling thread.
pub(super) fn enter_network(network: &OwnedFd) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(
        network.as_fd(),
        kind,
    )?)
}

fn build_ruleset(
    given: &[(OwnedFd, BitFlags<AccessFs>)],
    reach: Reach,
    abi: ABI,
) -> io::Result<RulesetCreated> {
    let ruleset = rules::begin_ruleset(reach, abi).map_err(io::Error::other)?;
    add_rules(ruleset, given)
}

fn add_rules(
    ruleset: RulesetCreated,
    given: &[(OwnedFd, BitFlags<AccessFs>)],
) -> io::Result<RulesetCreated> {
    let given = given.iter().map(|(file, access)| (file.as_fd(), *access));
    rules::add_rules(ruleset, given).map_err(io::Error::other)
}

/// Root's children are in no namespace of users.
fn build_filter(reach: Reach) -> Result<BpfProgram, crate::Error> {
    let user = rustix::process::geteuid();
    let group = rustix::process::getegid();
    let only = (!user.is_root()).then_some((user.as_raw(), group.as_raw()));
    filter::build(reach, Some(OwnNamespaces { only }))
}

/// What a pod tells its helper at first.
struct Setup {
    /// An empty directory that no child reaches.
    private: PathBuf,
    abi: i32,
    loopback: bool,
    /// Whether the pod serves a proxy here.
    proxy: bool,
    /// What needs a rule alone.
    opened: Vec<(OwnedFd, BitFlags<AccessFs>)>,
    given: Vec<Given>,
}

/// Serves the pod at the other end of standard input until that end is closed. Called before this process has another
/// thread.
pub(super) fn serve() -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // Away from the person's terminal: its signals are the pod's.
    rustix::process::setsid().ok();
    let setup = Setup::receive(&socket)?;
    let told = |error: io::Error| {
        wire::send(&socket, error.to_string().as_bytes(), &[]).ok();
        error
    };
    separate().map_err(told)?;
    let abi = ABI::from(setup.abi);
    // Of one and the same set, also after the fork.
    let ruleset = rules::begin_ruleset(Reach::Namespaces, abi);
    let ruleset = ruleset.map_err(|error| told(io::Error::other(error)))?;
    // By then, the root of both may be another one.
    let proc = view::open("/proc").map_err(told)?;
    let (ours, theirs) = pair().map_err(told)?;
    match fork::fork()? {
        Fork::Parent(first) => {
            drop(ours);
            assist(setup, ruleset, proc, theirs);
            outlast(&socket, first)
        }
        Fork::Child => {
            drop(theirs);
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // Without a terminal, whatever became of the call above: a command can open that of its session.
            rustix::process::setsid()?;
            let own = socket.try_clone()?;
            let kit = prepare(setup, own, ruleset, ours).map_err(told)?;
            drop(socket);
            // No command looks into it or into a keeper, also where nothing else would forbid that.
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            keep(kit)
        }
    }
}

/// Waits for the first process of the namespaces, and ends it when the pod's end is closed, whatever it does.
fn outlast(socket: &OwnedFd, first: i32) -> io::Result<()> {
    let first = Pid::from_raw(first).ok_or(io::ErrorKind::InvalidData)?;
    let handle = rustix::process::pidfd_open(first, PidfdFlags::empty())?;
    let mut watched = [
        PollFd::new(socket, PollFlags::empty()),
        PollFd::new(&handle, PollFlags::IN),
    ];
    while rustix::event::poll(&mut watched, None).is_err_and(|error| error == Errno::INTR) {}
    rustix::process::pidfd_send_signal(&handle, Signal::KILL).ok();
    while rustix::process::wait(WaitOptions::empty()).is_err_and(|error| error == Errno::INTR) {}
    Ok(())
}

impl Setup {
    fn receive(socket: &OwnedFd) -> io::Result<Self> {
        let receive = || {
            let (_, files) = wire::receive(socket)?;
            let first = files.is_empty().then_some(io::ErrorKind::UnexpectedEof);
            first.map_or(Ok(files), |kind| Err(io::Error::from(kind)))
        };
        let mut fields = receive()?;
        let mut fields = Fields::read(fields.remove(0))?;
        let private = fields.text()?.into();
        let abi = i32::try_from(fields.number()?).map_err(io::Error::other)?;
        let loopback = fields.number()? == 1;
        let proxy = fields.number()? == 1;
        let accesses = (0..fields.number()?)
            .map(|_| Ok(BitFlags::from_bits_truncate(fields.number()?)))
            .collect::<io::Result<Vec<_>>>()?;
        let mut files = Vec::new();
        while files.len() < accesses.len() {
            files.extend(receive()?);
        }
        let opened = files.into_iter().zip(accesses).collect();
        let given = (0..fields.number()?).map(|_| {
            let access = BitFlags::from_bits_truncate(fields.number()?);
            let is_store = fields.number()? == 1;
            let id = (fields.number()?, fields.number()?);
            Ok(Given {
                path: fields.text()?.into(),
                id,
                access,
                is_store,
            })
        });
        let given = given.collect::<io::Result<_>>()?;
        Ok(Self {
            private,
            abi,
            loopback,
            proxy,
            opened,
            given,
        })
    }
}

/// Enters namespaces of its own. An ordinary user may where it is the administrator of a namespace of users.
fn separate() -> io::Result<()> {
    let wanted = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    if rustix::process::geteuid().is_root() {
        return unshare(wanted);
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    unshare(wanted | UnshareFlags::NEWUSER).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::NOSPC) => {
                io::Error::other("`sysctl user.max_user_namespaces` allows no more user namespaces")
            }
            _ => io::Error::other(format!("user namespaces: {error}")),
        }
    })?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for flags about open files, which are not given here"
)]
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

fn prepare(
    setup: Setup,
    socket: OwnedFd,
    ruleset: RulesetCreated,
    network: OwnedFd,
) -> io::Result<KeeperKit> {
    let mut view = View::begin(&setup.private)?;
    let abi = ABI::from(setup.abi);
    let written = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut given = Vec::new();
    for Given {
        path,
        id,
        access,
        is_store,
    } in setup.given
    {
        if let Some(file) = is_store.then(|| view.copy(&path, id)).flatten() {
            given.push((file, written));
            continue;
        }
        let failed =
            |error: io::Error| io::Error::other(format!("show {}: {error}", crate::escape(&path)));
        let file = view
            .give(&path, id, access.contains(AccessFs::WriteFile))
            .map_err(failed)?;
        given.extend(file.map(|file| (file, access)));
    }
    let Assistance {
        network,
        listener,
        devices,
    } = Assistance::receive(network, setup.proxy)?;
    if let Some(listener) = listener {
        wire::send(&socket, LISTENER, &[listener.as_fd()])?;
    }
    if let Some(devices) = devices {
        view.show_devices(&devices)?;
    }
    let own = view.finish()?;
    // What is there was given, so its names are no secret.
    given.push((view::open("/")?, AccessFs::ReadDir.into()));
    given.extend(own.written.into_iter().map(|file| (file, written)));
    given.extend(
        own.terminal
            .into_iter()
            .map(|file| (file, written & AccessFs::from_file(abi))),
    );
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    given.extend(own.read_dirs.into_iter().map(|dir| (dir, read)));
    given.extend(
        own.read
            .into_iter()
            .map(|file| (file, AccessFs::ReadFile.into())),
    );
    let filter = build_filter(Reach::Namespaces).map_err(io::Error::other)?;
    let ruleset = add_rules(ruleset, &given)?;
    given.extend(setup.opened);
    Ok(KeeperKit {
        socket,
        ruleset,
        given,
        abi,
        filter,
        network,
        resolver: own.resolver,
        has_tmp: own.has_tmp,
    })
}

/// Makes, while the first process of the namespaces builds the view: the rules of what was opened, and a network without a
/// way out, where a proxy in it listens. A process that entered it would not leave it again, but this one only waits.
fn assist(setup: Setup, ruleset: RulesetCreated, proc: OwnedFd, told: OwnedFd) {
    let made = add_rules(ruleset, &setup.opened)
        .and_then(|_rules| Assistance::make(&proc, setup.loopback, setup.proxy));
    let sent = match &made {
        Ok(made) => made.send(&told),
        Err(error) => wire::send(&told, error.to_string().as_bytes(), &[]),
    };
    // The other one has ended, which is noticed next.
    sent.ok();
}

/// What [`assist`] makes.
struct Assistance {
    network: OwnedFd,
    /// Where a proxy in this network is reached.
    listener: Option<OwnedFd>,
    /// The kernel's files about the devices of this network, at no place yet; none where this process may not mount them.
    devices: Option<OwnedFd>,
}

impl Assistance {
    fn make(proc: &OwnedFd, loopback: bool, proxy: bool) -> io::Result<Self> {
        unshare(UnshareFlags::NEWNET)?;
        if loopback {
            raise_loopback()?;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let network = rustix::fs::openat(proc, "self/ns/net", flags, Mode::empty())?;
        let listener = proxy.then(|| TcpListener::bind(PROXY)).transpose()?;
        Ok(Self {
            network,
            listener: listener.map(OwnedFd::from),
            devices: view::make_devices().ok(),
        })
    }

    fn send(&self, told: &OwnedFd) -> io::Result<()> {
        let files = [&self.listener, &self.devices].into_iter().flatten();
        let files: Vec<_> = [&self.network]
            .into_iter()
            .chain(files)
            .map(AsFd::as_fd)
            .collect();
        wire::send(told, b"n", &files)
    }

    /// Waits for them; `proxy` as for [`Self::make`].
    fn receive(from: OwnedFd, proxy: bool) -> io::Result<Self> {
        let (said, files) = wire::receive(&from)?;
        let mut files = files.into_iter();
        let network = files.next().ok_or_else(|| {
            io::Error::other(format!("a network: {}", String::from_utf8_lossy(&said)))
        })?;
        Ok(Self {
            network,
            listener: proxy.then(|| files.next()).flatten(),
            devices: files.next(),
        })
    }
}

/// A message to the kernel: the first device of this namespace is up.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 5;
    const UP: u32 = 1;
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let mut message = 32_u32.to_ne_bytes().to_vec();
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    // Number and sender of the message, family and type; then the device, its flags, and which of them change.
    message.extend([0; 12]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 20];
    rustix::net::recv(&socket, &mut answer, rustix::net::RecvFlags::empty())?;
    let error = answer
        .last_chunk()
        .map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-error))
    }
}

/// Has one keeper wait for a call, and the next one when that has got it.
fn keep(mut kit: KeeperKit) -> io::Result<()> {
    let own = File::open("/proc/self/ns/pid")?;
    for made in 0_u64.. {
        let is_first = made == 0;
        if !is_first && made.is_multiple_of(SAME_RULES) {
            kit.ruleset = build_ruleset(&kit.given, Reach::Namespaces, kit.abi)?;
        }
        let (mut taken, taker) = io::pipe()?;
        if !is_first {
            rustix::thread::move_into_link_name_space(
                own.as_fd(),
                Some(LinkNameSpaceType::ProcessID),
            )?;
        }
        unshare(UnshareFlags::NEWPID)?;
        match fork::fork()? {
            Fork::Child => {
                drop(taken);
                Keeper::new(&kit, is_first).serve(&kit, taker);
                // The end of the process closes what it holds at once.
                std::mem::forget(kit);
                return Ok(());
            }
            Fork::Parent(_) => drop(taker),
        }
        let mut byte = [0];
        // Nothing: the pod has ended, or the keeper.
        if taken.read(&mut byte)? == 0 {
            return Ok(());
        }
        while rustix::process::wait(WaitOptions::NOHANG).is_ok_and(|found| found.is_some()) {}
    }
    Ok(())
}
