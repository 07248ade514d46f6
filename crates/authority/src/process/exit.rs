//! How a child ends, and noticing that it has, without reaping it. Does not depend on what the child is for.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

const STACK: usize = 64 * 1024;

/// How long a killed child may take to end; only a hung disk or device takes longer.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildExit {
    Exit(i32),
    Signal(i32),
    Deadline,
    Cancelled,
}

/// Resolves when a child of this process has ended: its number stays its own, because it is not reaped here.
#[derive(Debug)]
pub(super) enum ExitWatch {
    Handle(AsyncFd<OwnedFd>),
    /// On a kernel without handles on processes: a thread waits.
    Thread(CancellationToken),
}

impl ExitWatch {
    /// Watches a child that was not reaped yet.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        match rustix::process::pidfd_open(pid, PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(driven)
        {
            Ok(handle) => Ok(Self::Handle(handle)),
            Err(_) => Self::on_a_thread(pid),
        }
    }

    /// Watches the process of a handle.
    pub(super) fn of_handle(handle: OwnedFd) -> io::Result<Self> {
        driven(handle).map(Self::Handle)
    }

    fn on_a_thread(pid: Pid) -> io::Result<Self> {
        let ended = CancellationToken::new();
        let told = ended.clone().drop_guard();
        let wait = move || {
            wait(pid);
            drop(told);
        };
        std::thread::Builder::new()
            .name("wait".to_owned())
            .stack_size(STACK)
            .spawn(wait)?;
        Ok(Self::Thread(ended))
    }

    /// Resolves when the child has ended. Cancel-safe.
    pub(super) async fn ended(&self) {
        match self {
            // Without the driver nothing can be awaited, and the runtime drops this.
            Self::Handle(handle) => drop(
                handle
                    .readable()
                    .await
                    .map(|mut ready| ready.retain_ready()),
            ),
            Self::Thread(ended) => ended.cancelled().await,
        }
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for descriptors that change while they are owned"
)]
fn driven(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(handle, Interest::READABLE)
}

/// Waits until the process has ended, without reaping it.
fn wait(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(pid), options)
        .is_err_and(|error| error == Errno::INTR)
    {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    #[tokio::test]
    async fn both_ways_notice_an_end_and_reap_nothing() {
        for handle in [true, false] {
            let mut child = Command::new("sh")
                .args(["-c", "read _"])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let watch = if handle {
                ExitWatch::of(pid)
            } else {
                ExitWatch::on_a_thread(pid)
            }
            .unwrap();
            assert_eq!(matches!(watch, ExitWatch::Handle(_)), handle);
            let early = tokio::time::timeout(Duration::from_millis(20), watch.ended()).await;
            assert!(early.is_err(), "it runs");
            drop(child.stdin.take());
            for _ in 0..2 {
                tokio::time::timeout(Duration::from_secs(60), watch.ended())
                    .await
                    .unwrap();
            }
            assert_eq!(child.wait().unwrap().code(), Some(1));
        }
    }
}
