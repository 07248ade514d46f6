//! Namespaces of the commands of a pod: one of the network, of mounts and of shared memory for all, and one of processes
//! for each. A process with threads cannot enter them, so a helper ([`helper`]) does and starts the commands.

mod helper;
mod keeper;
mod view;
mod wire;

pub(super) use view::TMP;

use super::confinement::support;
use super::descendants::{Leftovers, MARK};
use super::exit::{ChildExit, KILL_WAIT};
use super::host_child::HostChild;
use super::rules::Given;
use super::{label, seal_inherited};
use crate::{Ambient, HostProxy};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// How long a helper may take to be ready.
const READY_WAIT: Duration = Duration::from_secs(10);

/// How long a child may take to start; a program on a hung disk takes longer.
const START_WAIT: Duration = Duration::from_secs(30);

/// The call in the mark of a helper and its keepers; no call has this name.
pub(super) const HELPER: &str = "+helper";

/// What is run as helpers: a program that calls [`serve_helper`] when its only argument is this one.
#[derive(Clone, Debug)]
pub struct HelperProgram {
    path: PathBuf,
    argument: OsString,
}

impl HelperProgram {
    /// This program, or another one.
    #[must_use]
    pub fn new(_: &Ambient, path: PathBuf, argument: OsString) -> Self {
        Self { path, argument }
    }
}

/// Serves the pod that started this process as its helper, until the pod ends.
///
/// # Errors
/// The system's, which the pod was told as well where it was still there.
pub fn serve_helper(ambient: &Ambient) -> io::Result<()> {
    seal_inherited(ambient);
    helper::serve()
}

/// A helper that is ready. It ends when this is dropped, with all that it started.
#[derive(Debug)]
pub(super) struct Helper {
    socket: Option<OwnedFd>,
    process: HostChild,
    has_tmp: bool,
    /// What serves the children's proxy.
    proxy: Option<AbortHandle>,
}

/// A child to start: a program's path, its name for itself, and what it is given.
pub(super) struct WantedChild {
    pub(super) path: PathBuf,
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) error: OwnedFd,
    /// Whether it uses the machine's network.
    pub(super) out: bool,
}

/// A child of a helper.
#[derive(Debug)]
pub(super) struct Apart {
    pid: Pid,
    handle: OwnedFd,
    call: OwnedFd,
    out: bool,
    _helper: Arc<Helper>,
}

impl Helper {
    /// Starts one for these rules; `private` is an empty directory that no child reaches.
    ///
    /// # Errors
    /// Why there are no namespaces here.
    pub(super) fn start(
        program: &HelperProgram,
        tag: &str,
        given: &[Given],
        private: &Path,
        loopback: bool,
        proxy: Option<&HostProxy>,
    ) -> io::Result<Self> {
        let (ours, theirs) = pair()?;
        let mut command = Command::new(&program.path);
        command
            .arg0("yoi")
            .arg(&program.argument)
            .env_clear()
            .env(MARK, format!("{tag}/{HELPER}"))
            .current_dir("/");
        command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = HostChild::start(&mut command)?;
        // Closes what this process has of the other end.
        drop(command);
        let mut helper = Self {
            socket: Some(ours),
            process,
            has_tmp: true,
            proxy: None,
        };
        let socket = helper.socket()?;
        let flags = [loopback, loopback && proxy.is_some()];
        send_setup(socket, given, private, flags)?;
        let receive = || {
            if is_readable(socket, READY_WAIT)? {
                wire::receive(socket)
            } else {
                Ok(Default::default())
            }
        };
        let (mut said, files) = receive()?;
        if said == helper::LISTENER {
            let served = proxy
                .zip(files.into_iter().next())
                .map(|(proxy, file)| serve_proxy(proxy, file))
                .transpose()?;
            (said, _) = receive()?;
            helper.proxy = served.flatten();
        }
        match String::from_utf8_lossy(&said).as_ref() {
            keeper::READY => Ok(helper),
            keeper::READY_WITHOUT_TMP => {
                helper.has_tmp = false;
                Ok(helper)
            }
            "" => Err(io::Error::other("the helper ended early")),
            text => Err(io::Error::other(text.to_owned())),
        }
    }

    /// Whether its children write a `/tmp` of their own.
    pub(super) fn has_tmp(&self) -> bool {
        self.has_tmp
    }

    fn socket(&self) -> io::Result<&OwnedFd> {
        self.socket
            .as_ref()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Whether children reach hosts through a proxy.
    pub(super) fn is_proxied(&self) -> bool {
        self.proxy.is_some()
    }

    /// Starts a child for the call with this number. Waits until it runs, but not for ever.
    pub(super) fn spawn(self: Arc<Self>, wanted: &WantedChild, call: u64) -> io::Result<Apart> {
        let (ours, theirs) = pair()?;
        let label = if label::is_set() {
            call.to_string()
        } else {
            String::new()
        };
        let counted = |count: usize| OsString::from(count.to_string());
        let out = u8::from(wanted.out).to_string();
        let mut fields: Vec<OsString> = vec![
            label.into(),
            out.into(),
            wanted.path.clone().into(),
            wanted.name.clone(),
        ];
        fields.extend([wanted.cwd.clone().into(), counted(wanted.args.len())]);
        fields.extend(wanted.args.iter().cloned());
        fields.push(counted(wanted.env.len()));
        fields.extend(
            wanted
                .env
                .iter()
                .map(|(name, value)| [name, OsStr::new("="), value].into_iter().collect()),
        );
        let fields = wire::write_fields(fields.iter().map(OsString::as_os_str))?;
        let files = [
            theirs.as_fd(),
            fields.as_fd(),
            wanted.input.as_fd(),
            wanted.output.as_fd(),
            wanted.error.as_fd(),
        ];
        rustix::net::sockopt::set_socket_passcred(&ours, true)?;
        wire::send(self.socket()?, b"c", &files)?;
        drop(theirs);
        if !is_readable(&ours, START_WAIT)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (said, files, child) = wire::receive_child(&ours)?;
        let number = said.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
        match (number, files.into_iter().next(), child) {
            (Some(0), Some(handle), Some(pid)) => Ok(Apart {
                pid,
                handle,
                call: ours,
                out: wanted.out,
                _helper: self,
            }),
            (Some(number), ..) if number != 0 => Err(io::Error::from_raw_os_error(number)),
            _ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.socket = None;
        self.proxy.as_ref().inspect(|serving| serving.abort());
        // It ends at once, and with it all in its namespaces.
        self.process.wait().ok();
    }
}

impl Apart {
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Signals the main process; false if it has ended.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        rustix::process::pidfd_send_signal(&self.handle, signal).is_ok()
    }

    /// Ends all that the child started. Blocks until its main process has ended, but not for ever.
    pub(super) fn finish(self) -> (Leftovers, Option<ChildExit>) {
        rustix::net::shutdown(&self.call, Shutdown::Write).ok();
        let said = match is_readable(&self.call, KILL_WAIT) {
            Ok(true) => wire::receive(&self.call)
                .map(|(said, _)| said)
                .unwrap_or_default(),
            Ok(false) | Err(_) => {
                return (
                    Leftovers {
                        remaining: 1,
                        ..Leftovers::default()
                    },
                    None,
                );
            }
        };
        // A keeper that said nothing was killed, and all in its namespace.
        let Ok(report) = <[u8; keeper::REPORT]>::try_from(said) else {
            return Default::default();
        };
        let mut numbers = report
            .chunks_exact(4)
            .filter_map(|four| four.first_chunk().map(|four| u32::from_ne_bytes(*four)));
        let mut next = || numbers.next().unwrap_or_default();
        let status = ExitStatus::from_raw(next().cast_signed());
        let ended = next();
        let refused = next();
        let how = status.code().map_or(
            ChildExit::Signal(status.signal().unwrap_or(0)),
            ChildExit::Exit,
        );
        (
            Leftovers {
                ended,
                remaining: 0,
                refused: (!self.out).then_some(refused),
            },
            Some(how),
        )
    }
}

/// Tells a helper what it shows and allows, while it is being executed.
fn send_setup(
    socket: &OwnedFd,
    given: &[Given],
    private: &Path,
    flags: [bool; 2],
) -> io::Result<()> {
    // A directory before what is in it.
    let mut given: Vec<_> = given.iter().collect();
    given.sort_by_key(|given| &given.path);
    view::make_places(private, given.iter().copied())?;
    let mut opened = Vec::new();
    let mut accesses = Vec::new();
    given.retain(|given| {
        let file = view::open_shown(given);
        accesses.extend(file.is_some().then_some(given.access.bits()));
        let is_left = file.is_none();
        opened.extend(file);
        is_left
    });
    let numbers = [
        &[u64::from(support().landlock_abi.unsigned_abs())],
        &flags.map(u64::from)[..],
        &[accesses.len() as u64],
        &accesses,
        &[given.len() as u64],
    ]
    .concat();
    let mut fields = vec![private.as_os_str().to_owned()];
    fields.extend(numbers.iter().map(|number| number.to_string().into()));
    for Given {
        path,
        id: (device, number),
        access,
        is_store,
    } in given
    {
        fields.extend(
            [access.bits(), u64::from(*is_store), *device, *number]
                .map(|number| number.to_string().into()),
        );
        fields.push(path.clone().into());
    }
    let fields = wire::write_fields(fields.iter().map(OsString::as_os_str))?;
    wire::send(socket, b"s", &[fields.as_fd()])?;
    for some in opened.chunks(wire::MAX_FDS) {
        let files: Vec<_> = some.iter().map(AsFd::as_fd).collect();
        wire::send(socket, b"o", &files)?;
    }
    Ok(())
}

/// Serves a proxy where the caller has a runtime; without one, nobody starts children.
fn serve_proxy(proxy: &HostProxy, listener: OwnedFd) -> io::Result<Option<AbortHandle>> {
    let Ok(runtime) = Handle::try_current() else {
        return Ok(None);
    };
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let _entered = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(Some(
        runtime.spawn(proxy.clone().serve(listener)).abort_handle(),
    ))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Whether something can be read within this time.
fn is_readable(socket: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
    loop {
        match rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}
