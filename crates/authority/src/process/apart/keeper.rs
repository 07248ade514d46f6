//! The first process of a call's namespace of processes: it starts the command, reaps what loses its parent, counts what the
//! kernel refused, and ends with all that still runs.

use super::helper::{KeeperKit, enter_network};
use super::view;
use super::wire::{self, Fields};
use crate::process::cage::Cage;
use crate::process::filter::Reach;
use crate::process::label;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::UnshareFlags;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// What is told of a child at its end: its status as the kernel has it, how many other processes were ended, and how many
/// times the kernel found no route.
pub(super) const REPORT: usize = 12;

/// A keeper, before it has a call. What kept it from being ready is told to the pod.
pub(super) struct Keeper(io::Result<Ready>);

/// What a keeper prepares.
struct Ready {
    cage: Cage,
    proc: OwnedFd,
}

/// A thread that confines itself before there is a request, and starts one command: this process stays outside of the
/// command's confinement, which keeps the command from it.
struct Starter {
    orders: SyncSender<Command>,
    started: Receiver<io::Result<Started>>,
}

/// A command that runs, and how often the kernel had found no route before.
struct Started {
    main: Pid,
    counters: Counters,
    before: u64,
}

/// What a pod asks for.
struct Request {
    command: Command,
    label: Option<u64>,
    /// Whether it uses the machine's network.
    out: bool,
}

impl Keeper {
    pub(super) fn new(kit: &KeeperKit, is_first: bool) -> Self {
        let ready = ready(kit);
        if is_first {
            let in_force = if kit.has_tmp {
                READY
            } else {
                READY_WITHOUT_TMP
            };
            let text = ready
                .as_ref()
                .err()
                .map_or_else(|| in_force.to_owned(), ToString::to_string);
            wire::send(&kit.socket, text.as_bytes(), &[]).ok();
        }
        Self(ready)
    }

    /// Waits for one call and serves it to its end.
    pub(super) fn serve(self, kit: &KeeperKit, mut taker: PipeWriter) {
        let waiting = self
            .0
            .and_then(|Ready { cage, proc }| Ok((Starter::new(cage, Some(kit))?, proc)));
        let Ok((bytes, files)) = wire::receive(&kit.socket) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let mut files = files.into_iter();
        let (Some(call), Some(fields)) = (files.next(), files.next()) else {
            return;
        };
        let started = waiting.and_then(|(starter, proc)| {
            let request = Request::read(fields, files)?;
            let starter = if request.out {
                kit.uncover_resolver()?;
                Starter::new(kit.cage(proc.as_fd(), kit.outside())?, None)?
            } else {
                // Its own `/proc` tells of the network of this process, too.
                enter_network(&kit.network)?;
                starter
            };
            request.label.inspect(|call| label::next_of_call(*call));
            let started = starter.start(request.command)?;
            let handle = rustix::process::pidfd_open(started.main, PidfdFlags::empty())?;
            Ok((started, handle))
        });
        let told = match &started {
            Ok((started, handle)) => wire::send_child(&call, &[0; 4], handle.as_fd(), started.main),
            Err(error) => wire::send(
                &call,
                &error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes(),
                &[],
            ),
        };
        // The next keeper is made while the command runs.
        let taken = taker.write_all(&[1]);
        drop(taker);
        if let (Ok((started, handle)), Ok(()), Ok(())) = (started, told, taken) {
            drop(handle);
            finish(&started, &call);
        }
    }
}

/// Says that namespaces are in force; and that children cannot write `/tmp`.
pub(super) const READY: &str = "ready";
pub(super) const READY_WITHOUT_TMP: &str = "ready without /tmp";

fn ready(kit: &KeeperKit) -> io::Result<Ready> {
    super::helper::unshare(UnshareFlags::NEWNS)?;
    let proc = view::own_proc()?;
    let cage = kit.cage(proc.as_fd(), Reach::Namespaces)?;
    Ok(Ready { cage, proc })
}

impl Starter {
    /// Begins one that has entered the network of commands, if it is told where that is.
    fn new(cage: Cage, inside: Option<&KeeperKit>) -> io::Result<Self> {
        let network = inside.map(|kit| kit.network.try_clone()).transpose()?;
        let (orders, ordered) = sync_channel::<Command>(1);
        let (answer, started) = sync_channel(1);
        let confine = move || {
            let counters = network.as_ref().map(Counters::enter).transpose()?;
            cage.close()?;
            Ok(counters.unwrap_or_default())
        };
        let serve = move || {
            let confined: io::Result<Counters> = confine();
            let Ok(mut command) = ordered.recv() else {
                return;
            };
            let started = confined.and_then(|counters| {
                let before = counters.read();
                let main = i32::try_from(command.spawn()?.id())
                    .ok()
                    .and_then(Pid::from_raw)
                    .ok_or(io::ErrorKind::InvalidData)?;
                Ok(Started {
                    main,
                    counters,
                    before,
                })
            });
            answer.send(started).ok();
        };
        std::thread::Builder::new().spawn(serve)?;
        Ok(Self { orders, started })
    }

    fn start(self, command: Command) -> io::Result<Started> {
        self.orders.send(command).map_err(io::Error::other)?;
        self.started.recv().map_err(io::Error::other)?
    }
}

impl Request {
    fn read(fields: OwnedFd, mut files: impl Iterator<Item = OwnedFd>) -> io::Result<Self> {
        let mut fields = Fields::read(fields)?;
        let mut file = || {
            files
                .next()
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        let label = fields.text()?.to_str().and_then(|text| text.parse().ok());
        let out = fields.number()? == 1;
        let mut command = Command::new(fields.text()?);
        command
            .arg0(fields.text()?)
            .current_dir(PathBuf::from(fields.text()?))
            .process_group(0);
        command.args(fields.list()?).env_clear();
        for entry in fields.list()? {
            let (name, value) = split(&entry);
            command.env(name, value);
        }
        command
            .stdin(Stdio::from(file()?))
            .stdout(Stdio::from(file()?))
            .stderr(Stdio::from(file()?));
        Ok(Self {
            command,
            label,
            out,
        })
    }
}

fn split(entry: &OsString) -> (&std::ffi::OsStr, &std::ffi::OsStr) {
    let bytes = entry.as_bytes();
    let at = bytes
        .iter()
        .position(|byte| *byte == b'=')
        .unwrap_or(bytes.len());
    let (name, value) = bytes.split_at(at);
    let of = std::ffi::OsStr::from_bytes;
    (of(name), of(value.get(1..).unwrap_or_default()))
}

/// Waits for the end of the command and, if others are left, for the pod, which may read on until they are quiet; then ends
/// all.
fn finish(started: &Started, call: &OwnedFd) {
    let refused = || started.counters.read().saturating_sub(started.before);
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == started.main => break status,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_none) => return,
        }
    };
    let mut now = refused();
    // Where nothing else runs, nothing has to be waited for.
    if !rustix::process::wait(WaitOptions::NOHANG).is_err_and(|error| error == Errno::CHILD) {
        wire::receive(call).ok();
        // As the first process of its namespace it reaches all of it, and nothing else.
        if rustix::process::getpid() == Pid::INIT {
            rustix::process::kill_process_group(Pid::INIT, Signal::KILL).ok();
        }
    }
    let mut ended: u32 = 0;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((_, status))) if status.terminating_signal() == Some(Signal::KILL.as_raw()) => {
                ended += 1
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_none) => break,
        }
    }
    if ended > 0 {
        now = refused();
    }
    let now = u32::try_from(now).unwrap_or(u32::MAX);
    let report = [
        status.as_raw().unsigned_abs().to_ne_bytes(),
        ended.to_ne_bytes(),
        now.to_ne_bytes(),
    ]
    .concat();
    wire::send(call, &report, &[]).ok();
}

/// More than the counters that are looked for, and those before them, in each of two files.
const COUNTERS: usize = 4096;

/// The files in which the kernel counts what it found no route for, in one network: a connection that fails so, and each
/// packet.
#[derive(Default)]
struct Counters(Vec<File>);

impl Counters {
    /// Enters a network with the calling thread, and opens its files.
    fn enter(network: &OwnedFd) -> io::Result<Self> {
        enter_network(network)?;
        let files =
            ["snmp", "snmp6"].map(|name| File::open(format!("/proc/thread-self/net/{name}")));
        Ok(Self(files.into_iter().flatten().collect()))
    }

    fn read(&self) -> u64 {
        let mut bytes = [0; COUNTERS];
        let counts = self.0.iter().map(|file| {
            let read = file.read_at(&mut bytes, 0).unwrap_or_default();
            count_refused(std::str::from_utf8(bytes.get(..read)?).ok()?)
        });
        counts.flatten().sum()
    }
}

/// The counter of such a file: of IPv4 in the second of two lines, or of IPv6 in a line of its own.
fn count_refused(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let six = || {
        text.lines()
            .find_map(|line| line.strip_prefix("Ip6OutNoRoutes"))
    };
    let value = match (lines.next(), lines.next()) {
        (Some(names), Some(values)) => names
            .split(' ')
            .zip(values.split(' '))
            .find(|(name, _)| *name == "OutNoRoutes")
            .map(|(_, value)| value),
        _six => six(),
    };
    value?.trim().parse().ok()
}
