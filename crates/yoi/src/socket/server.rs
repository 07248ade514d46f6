//! The pod's end of the socket: bound by the process that holds the pod's lock, removed when it ends.

use super::connection::{Idle, MAX_WAITING, Shares, attend};
use super::live_pod::{LivePod, PodEnd};
use super::message::{Answer, Response};
use super::{PREPARED, SOCKET, SocketDir};
use crate::exit::{Exit, Failure};
use authority::Ambient;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::warn;

/// Clients at a time. A further one replaces the one that has been idle for the longest time.
const MAX_CONNECTIONS: usize = 64;

/// Requests of more than a few KiB that may be on their way in at a time.
const MAX_LARGE: usize = 4;

/// How long clients may take to read their answers when the pod has ended, and how often that is looked at.
const ANSWERED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);

/// The pause after a failed accept, as without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that is served. Dropped, it is removed and its clients lose their connections.
pub(crate) struct Served {
    task: JoinHandle<()>,
    closing: Arc<Notify>,
    dir: SocketDir,
    inode: u64,
    end: watch::Sender<Option<PodEnd>>,
}

impl Served {
    /// Serves a pod whose lock this process holds, on the current runtime. Replaces what a killed process left.
    /// `end` is told to clients once it is known.
    pub(crate) fn start(ambient: Ambient, pod: LivePod, end: watch::Sender<Option<PodEnd>>) -> Result<Self, Failure> {
        let fail = |error: io::Error| {
            let path = authority::escape(&pod.dir.join(SOCKET));
            Failure::new(Exit::Journal, format!("the socket {path}: {}", authority::explain(&error)))
        };
        let dir = SocketDir::open(&pod.dir).map_err(fail)?;
        let (listener, inode) = bind(&dir).map_err(fail)?;
        let closing = Arc::new(Notify::new());
        let task = pod.runtime.clone().spawn(listen(ambient, listener, Arc::new(pod), closing.clone()));
        Ok(Self { task, closing, dir, inode, end })
    }

    /// Removes the socket: called before the lock is released, since the next process binds a socket of the same name.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
        let path = self.dir.path(SOCKET);
        if fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == self.inode) {
            drop(fs::remove_file(&path));
        }
    }

    /// Waits, after [`Self::close`] and the end of the pod, until its clients have their answers.
    pub(crate) async fn answered(mut self, end: PodEnd) {
        self.end.send_replace(Some(end));
        // A client that does not read its answer is left.
        drop(timeout(ANSWERED, &mut self.task).await);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.close();
        self.task.abort();
    }
}

/// The socket has its name only once it can be connected to.
fn bind(dir: &SocketDir) -> io::Result<(UnixListener, u64)> {
    let (prepared, path) = (dir.path(PREPARED), dir.path(SOCKET));
    match fs::remove_file(&prepared) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&prepared)?;
    fs::set_permissions(&prepared, Permissions::from_mode(0o600))?;
    let inode = fs::symlink_metadata(&prepared)?.ino();
    fs::rename(&prepared, &path)?;
    Ok((listener, inode))
}

async fn listen(ambient: Ambient, listener: UnixListener, pod: Arc<LivePod>, closing: Arc<Notify>) {
    let mut connections = Connections::default();
    let shares = Shares { large: Arc::new(Semaphore::new(MAX_LARGE)), waiting: Arc::new(Semaphore::new(MAX_WAITING)) };
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.add(&ambient, stream, &pod, &shares),
                Err(error) => {
                    warn!(error = %error, "a client could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_ended) = connections.tasks.join_next() => connections.forget_ended(),
            () = closing.notified() => break,
        }
    }
    drop(listener);
    while connections.any_busy() {
        sleep(LOOK).await;
    }
}

/// Tells a new client that every other one waits for an answer. What its socket does not take at once is not sent.
fn refuse(stream: UnixStream) {
    let failure = Failure::new(Exit::Busy, format!("all {MAX_CONNECTIONS} connections are busy; try again"));
    let Ok(mut line) = serde_json::to_vec(&Response { id: 0, answer: Answer::Failed(failure) }) else { return };
    line.push(b'\n');
    drop(stream.into_std().and_then(|mut stream| stream.write_all(&line)));
}

#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// By number, in the order in which they came.
    known: BTreeMap<u64, (AbortHandle, Idle)>,
    newest: u64,
}

impl Connections {
    fn add(&mut self, ambient: &Ambient, stream: UnixStream, pod: &Arc<LivePod>, shares: &Shares) {
        self.forget_ended();
        if self.known.len() >= MAX_CONNECTIONS && !self.end_idle() {
            return refuse(stream);
        }
        let Ok(peer) = authority::peer_of(ambient, &stream) else { return };
        let idle = Idle::default();
        let task = self.tasks.spawn(attend(stream, peer, pod.clone(), idle.clone(), shares.clone()));
        self.newest += 1;
        self.known.insert(self.newest, (task, idle));
    }

    /// Ends the client that has waited for nothing for the longest time.
    fn end_idle(&mut self) -> bool {
        let idle = self.known.iter().filter_map(|(number, (_, idle))| Some((idle.since()?, *number))).min();
        let Some((task, _)) = idle.and_then(|(_, number)| self.known.remove(&number)) else { return false };
        task.abort();
        true
    }

    /// Whether a client waits for an answer.
    fn any_busy(&mut self) -> bool {
        self.forget_ended();
        self.known.values().any(|(_, idle)| idle.since().is_none())
    }

    fn forget_ended(&mut self) {
        self.known.retain(|_, (task, _)| !task.is_finished());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_client_that_is_refused_is_told() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        refuse(ours);
        let mut told = String::new();
        theirs.read_to_string(&mut told).await.unwrap();
        let Answer::Failed(failure) = serde_json::from_str::<Response>(&told).unwrap().answer else { panic!("{told}") };
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Busy, "all 64 connections are busy; try again"));
    }
}
