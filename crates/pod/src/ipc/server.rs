//! Accepts clients at a socket that the program has bound, on a thread of its own, until the pod has ended.

use super::ServedPod;
use super::connection::{Idle, Shares, attend};
use super::hub::{Hub, Phase};
use super::out::refusal;
use authority::{Ambient, OnlyLooks};
use protocol::error::ErrorKind;
use protocol::event::PodEnded;
use protocol::method::Failure;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixListener as StdListener;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::warn;

/// Clients at a time. A further one replaces the one that has been idle for the longest time.
const MAX_CONNECTIONS: usize = 64;

/// Of those, processes that a pod started: whatever a command does, there is room for people.
const MAX_CHILDREN: usize = 8;

/// Clients that may be attached or wait for a turn: fewer than there are connections, so that commands find room.
const MAX_STAYING: usize = 48;

/// Requests of more than a few KiB that may be on their way in at a time.
const MAX_LARGE: usize = 4;

/// How long clients may take to read the rest when the pod has ended.
const DRAINED: Duration = Duration::from_secs(1);

/// The pause after a failed accept, as without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that is served. Dropped, its clients lose their connections.
pub struct Served {
    phase: watch::Sender<Phase>,
    /// Resolves when the last client has its answers.
    ended: Option<oneshot::Receiver<()>>,
}

impl Served {
    /// Serves a pod whose lock this process holds, at a socket that does not block.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(ambient: Ambient, listener: StdListener, pod: ServedPod) -> io::Result<Self> {
        let (phase, phases) = watch::channel(Phase::default());
        let (over, ended) = oneshot::channel();
        // Not given before there is a thread: one runtime may not be dropped inside another.
        let (give, given) = mpsc::sync_channel::<Runtime>(1);
        thread::Builder::new()
            .name("clients".to_owned())
            .spawn(move || {
                let Ok(runtime) = given.recv() else { return };
                serve(&runtime, ambient, listener, pod, phases);
                // Nobody waits if the program ends at once.
                over.send(()).ok();
            })?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()?;
        give.send(runtime).map_err(io::Error::other)?;
        Ok(Self {
            phase,
            ended: Some(ended),
        })
    }

    /// Accepts no more clients. Connected ones are served on.
    pub fn close(&self) {
        self.phase.send_modify(|phase| phase.closed = true);
    }

    /// Waits, after [`Self::close`] and the end of the pod, until its clients have their answers and all records. They are
    /// told why it could not end in good order.
    pub async fn drained(mut self, failure: Option<Failure>) {
        self.phase
            .send_modify(|phase| phase.ended = Some(PodEnded { failure }));
        if let Some(ended) = self.ended.take() {
            // A client that does not read is left.
            drop(timeout(2 * DRAINED, ended).await);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.phase
            .send_modify(|phase| (phase.closed, phase.dropped) = (true, true));
    }
}

fn serve(
    runtime: &Runtime,
    ambient: Ambient,
    listener: StdListener,
    pod: ServedPod,
    mut phases: watch::Receiver<Phase>,
) {
    runtime.block_on(async {
        let hub = Arc::new(Hub::new(pod, phases.clone()));
        let mut connections = Connections::new();
        match UnixListener::from_std(listener) {
            Ok(listener) => listen(ambient, listener, &hub, &mut connections, &mut phases).await,
            Err(error) => warn!(%error, "clients cannot be accepted"),
        }
        // The pod has ended: what it recorded last is still sent.
        drop(phases.wait_for(Phase::is_over).await);
        drop(
            timeout(DRAINED, async {
                while connections.tasks.join_next().await.is_some() {}
            })
            .await,
        );
    });
}

async fn listen(
    ambient: Ambient,
    listener: UnixListener,
    hub: &Arc<Hub>,
    connections: &mut Connections,
    phases: &mut watch::Receiver<Phase>,
) {
    let mut following = hub.follow();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.add(&ambient, stream, hub),
                Err(error) => {
                    warn!(%error, "a client could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_ended) = connections.tasks.join_next() => connections.forget_ended(),
            () = following.step(hub) => {}
            // A sender that is gone has ended the pod.
            _closed = phases.wait_for(|phase| phase.closed) => break,
        }
    }
    drop(listener);
    loop {
        tokio::select! {
            () = following.step(hub) => {}
            _ended = phases.wait_for(Phase::is_over) => break,
        }
    }
    hub.read_on();
}

struct Connections {
    tasks: JoinSet<()>,
    /// By number, in the order in which they came.
    known: BTreeMap<u64, Connected>,
    newest: u64,
    shares: Shares,
    /// Of the processes that a pod started.
    child_shares: Shares,
}

struct Connected {
    task: AbortHandle,
    idle: Idle,
    /// A pod started it.
    is_child: bool,
}

impl Connections {
    fn new() -> Self {
        let tasks = JoinSet::new();
        let known = BTreeMap::new();
        let shares = Shares::of(MAX_LARGE, MAX_STAYING);
        let child_shares = Shares::of(1, MAX_CHILDREN);
        Self {
            tasks,
            known,
            newest: 0,
            shares,
            child_shares,
        }
    }

    fn add(&mut self, ambient: &Ambient, stream: UnixStream, hub: &Arc<Hub>) {
        self.forget_ended();
        let Ok(peer) = authority::peer_of(ambient, &stream) else {
            return;
        };
        if peer.may_change == Err(OnlyLooks::OtherUser) {
            return refuse(
                stream,
                ErrorKind::NotAllowed,
                "this pod belongs to another user",
            );
        }
        let is_child = peer.may_change.is_err();
        let children = self.known.values().filter(|known| known.is_child).count();
        let is_full = self.known.len() >= MAX_CONNECTIONS || (is_child && children >= MAX_CHILDREN);
        if is_full && !self.end_idle(is_child) {
            let places = if is_child {
                MAX_CHILDREN
            } else {
                MAX_CONNECTIONS
            };
            return refuse(
                stream,
                ErrorKind::Busy,
                &format!("all {places} connections are in use"),
            );
        }
        let idle = Idle::default();
        let shares = if is_child {
            &self.child_shares
        } else {
            &self.shares
        };
        let task = self.tasks.spawn(attend(
            stream,
            peer,
            hub.clone(),
            idle.clone(),
            shares.clone(),
        ));
        self.newest += 1;
        self.known.insert(
            self.newest,
            Connected {
                task,
                idle,
                is_child,
            },
        );
    }

    /// Ends the client that has waited for nothing for the longest time. A process that a pod started replaces only such.
    fn end_idle(&mut self, for_child: bool) -> bool {
        let mine = self
            .known
            .iter()
            .filter(|(_, known)| known.is_child || !for_child);
        let idle = mine
            .filter_map(|(number, known)| Some((known.idle.since()?, *number)))
            .min();
        let Some(Connected { task, .. }) = idle.and_then(|(_, number)| self.known.remove(&number))
        else {
            return false;
        };
        task.abort();
        true
    }

    fn forget_ended(&mut self) {
        self.known.retain(|_, known| !known.task.is_finished());
    }
}

/// Tells a new client why it is not served. What its socket does not take at once is not sent.
fn refuse(stream: UnixStream, kind: ErrorKind, why: &str) {
    let line = refusal(kind, why);
    drop(
        stream
            .into_std()
            .and_then(|mut stream| stream.write_all(line.as_bytes())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::Message;
    use std::io::Read;
    use std::os::unix::net::UnixStream as StdStream;

    #[tokio::test]
    async fn a_client_that_is_refused_is_told() {
        let (ours, mut theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        refuse(
            UnixStream::from_std(ours).unwrap(),
            ErrorKind::Busy,
            "all are busy",
        );
        let mut told = String::new();
        theirs.read_to_string(&mut told).unwrap();
        let Message::Answer {
            id: None,
            answer: Err(error),
        } = Message::read(told.trim_end()).unwrap()
        else {
            panic!("{told}")
        };
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Busy, "all are busy")
        );
    }
}
