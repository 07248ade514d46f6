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
use landlock::{ABI, Access, AccessFs, BitFlags};
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
    abi: ABI,
    filter: BpfProgram,
    /// The network of calls that are not let out.
    network: OwnedFd,
    /// Covers the machine's file of name servers.
    resolver: Option<PathBuf>,
    pub(super) has_tmp: bool,
}

impl KeeperKit {
    /// What confines a child that sees this `/proc`.
    pub(super) fn cage(&self, proc: BorrowedFd<'_>, reach: Reach) -> io::Result<Cage> {
        let given = self
            .given
            .iter()
            .map(|(file, access)| (file.as_fd(), *access));
        let given = given.chain([(proc, AccessFs::ReadFile | AccessFs::ReadDir)]);
        let ruleset = rules::ruleset(given, reach, self.abi).map_err(io::Error::other)?;
        let filter = if reach == Reach::Namespaces {
            Ok(self.filter.clone())
        } else {
            build_filter(reach)
        };
        Ok(Cage {
            ruleset,
            filter: filter.map_err(io::Error::other)?,
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

    /// Leaves the network of the machine.
    pub(super) fn enter_network(&self) -> io::Result<()> {
        Ok(rustix::thread::move_into_link_name_space(
            self.network.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }

    /// Shows the machine's name servers to this process and to what it starts.
    pub(super) fn uncover_resolver(&self) -> io::Result<()> {
        self.resolver.as_ref().map_or(Ok(()), |path| {
            Ok(rustix::mount::unmount(path, UnmountFlags::DETACH)?)
        })
    }
}

/// Comes with a listener in the network of the commands.
pub(super) const LISTENER: &[u8] = b"listener";

/// Root's children are in no namespace of users.
fn build_filter(reach: Reach) -> Result<BpfProgram, crate::Error> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
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
    match fork::fork()? {
        Fork::Parent(first) => outlast(&socket, first),
        Fork::Child => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // Without a terminal, whatever became of the call above: a command can open that of its session.
            rustix::process::setsid()?;
            let own = socket.try_clone()?;
            let kit = prepare(setup, own).map_err(told)?;
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
        let (_, fields) = wire::receive(socket)?;
        let mut fields = Fields::read(
            fields
                .into_iter()
                .next()
                .ok_or(io::ErrorKind::UnexpectedEof)?,
        )?;
        let private = fields.text()?.into();
        let abi = i32::try_from(fields.number()?).map_err(io::Error::other)?;
        let loopback = fields.number()? == 1;
        let proxy = fields.number()? == 1;
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
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
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

fn prepare(mut setup: Setup, socket: OwnedFd) -> io::Result<KeeperKit> {
    let network = begin_network(setup.loopback, setup.proxy)?;
    let mut view = View::begin(&setup.private)?;
    let abi = ABI::from(setup.abi);
    let written = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut given = Vec::new();
    // A directory before what is in it.
    setup.given.sort_by(|one, other| one.path.cmp(&other.path));
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
    let (network, listener) = take_network(&network)?;
    if let Some(listener) = listener {
        wire::send(&socket, LISTENER, &[listener.as_fd()])?;
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
    given.extend(
        own.read
            .into_iter()
            .map(|file| (file, AccessFs::ReadFile.into())),
    );
    let filter = build_filter(Reach::Namespaces).map_err(io::Error::other)?;
    Ok(KeeperKit {
        socket,
        given,
        abi,
        filter,
        network,
        resolver: own.resolver,
        has_tmp: own.has_tmp,
    })
}

/// Begins a network without a way out, and where a proxy in it listens. A process that entered it would not leave it again,
/// so another one makes it, while this one goes on.
fn begin_network(loopback: bool, proxy: bool) -> io::Result<OwnedFd> {
    let (ours, theirs) = pair()?;
    // By then, the root of both may be another one.
    let proc = view::open("/proc")?;
    if fork::fork()? == Fork::Child {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let made = unshare(UnshareFlags::NEWNET)
            .and_then(|()| if loopback { raise_loopback() } else { Ok(()) })
            .and_then(|()| {
                Ok((
                    rustix::fs::openat(&proc, "self/ns/net", flags, Mode::empty())?,
                    proxy.then(|| TcpListener::bind(PROXY)).transpose()?,
                ))
            });
        let sent = match &made {
            Ok((file, listener)) => {
                let files: Vec<_> = std::iter::once(file.as_fd())
                    .chain(listener.iter().map(AsFd::as_fd))
                    .collect();
                wire::send(&theirs, b"n", &files)
            }
            Err(error) => wire::send(&theirs, error.to_string().as_bytes(), &[]),
        };
        std::process::exit(i32::from(sent.is_err()));
    }
    Ok(ours)
}

fn take_network(from: &OwnedFd) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let (said, files) = wire::receive(from)?;
    while rustix::process::wait(WaitOptions::empty()).is_err_and(|error| error == Errno::INTR) {}
    let mut files = files.into_iter();
    let network = files.next().ok_or_else(|| {
        io::Error::other(format!("a network: {}", String::from_utf8_lossy(&said)))
    })?;
    Ok((network, files.next()))
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
fn keep(kit: KeeperKit) -> io::Result<()> {
    let own = File::open("/proc/self/ns/pid")?;
    let mut is_first = true;
    loop {
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
        is_first = false;
        let mut byte = [0];
        // Nothing: the pod has ended, or the keeper.
        if taken.read(&mut byte)? == 0 {
            return Ok(());
        }
        while rustix::process::wait(WaitOptions::NOHANG).is_ok_and(|found| found.is_some()) {}
    }
}
