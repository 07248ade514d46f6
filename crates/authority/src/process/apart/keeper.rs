//! The first process of a call's namespace of processes: it starts the command, reaps what loses its parent, counts what the
//! kernel refused, and ends with all that still runs.

use super::helper::KeeperKit;
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
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

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
        let started = self.0.and_then(|ready| {
            let request = Request::read(fields, files)?;
            let cage = if request.out {
                kit.uncover_resolver()?;
                kit.cage(ready.proc.as_fd(), kit.outside())?
            } else {
                kit.enter_network()?;
                ready.cage
            };
            start(cage, request)
        });
        let told = match &started {
            Ok((main, handle, _)) => wire::send_child(&call, &[0; 4], handle.as_fd(), *main),
            Err(error) => wire::send(
                &call,
                &error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes(),
                &[],
            ),
        };
        // The next keeper is made while the command runs.
        let taken = taker.write_all(&[1]);
        drop(taker);
        if let (Ok((main, handle, before)), Ok(()), Ok(())) = (started, told, taken) {
            drop(handle);
            finish(main, &call, before);
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
        command.stdin(Stdio::from(file()?));
        let output = file()?;
        command
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output));
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

/// Starts the command on a thread that confines itself: this process stays outside of the command's confinement, which
/// keeps the command from it. Returns what was refused before, too.
fn start(cage: Cage, request: Request) -> io::Result<(Pid, OwnedFd, u64)> {
    let Request {
        mut command, label, ..
    } = request;
    let (counted, is_counted) = sync_channel(1);
    let spawn = move || {
        label.inspect(|call| label::next_of_call(*call));
        cage.close()?;
        is_counted.recv().map_err(io::Error::other)?;
        command.spawn()
    };
    let thread = std::thread::Builder::new().spawn(spawn)?;
    let before = refused();
    counted.send(()).ok();
    let child = thread.join().map_err(|_panic| io::ErrorKind::Other)??;
    let main = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidData)?;
    let handle = rustix::process::pidfd_open(main, PidfdFlags::empty())?;
    Ok((main, handle, before))
}

/// Waits for the end of the command and, if others are left, for the pod, which may read on until they are quiet; then ends
/// all.
fn finish(main: Pid, call: &OwnedFd, before: u64) {
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => break status,
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
    let now = u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
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

fn read_once<'a>(path: &str, into: &'a mut [u8; COUNTERS]) -> &'a str {
    let read = File::open(path)
        .and_then(|mut file| file.read(into))
        .unwrap_or_default();
    into.get(..read)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// How often the kernel found no route in this namespace of the network. A connection that fails so counts, and each packet.
fn refused() -> u64 {
    let (mut one, mut other) = ([0; COUNTERS], [0; COUNTERS]);
    let (four, six) = (
        read_once("/proc/self/net/snmp", &mut one),
        read_once("/proc/self/net/snmp6", &mut other),
    );
    let mut lines = four.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let four = names
        .split(' ')
        .zip(values.split(' '))
        .find(|(name, _)| *name == "OutNoRoutes")
        .map(|(_, value)| value);
    let six = six
        .lines()
        .find_map(|line| line.strip_prefix("Ip6OutNoRoutes"));
    [four, six]
        .into_iter()
        .flatten()
        .filter_map(|value| value.trim().parse::<u64>().ok())
        .sum()
}
