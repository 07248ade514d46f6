//! One client of a pod: its requests are read one after the other and carried out side by side.

use super::MAX_LINE;
use super::answer::{Progress, carry_out};
use super::lines::{Filled, Lines};
use super::live_pod::LivePod;
use super::message::{Answer, Ask, Request, Response};
use crate::exit::{Exit, Failure};
use authority::Peer;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// Requests of one client that may wait for their answers.
const MAX_REQUESTS: usize = 16;

/// How long a client may take for one line, once it began it, and to read one answer.
const LINE_TIME: Duration = Duration::from_secs(10);

/// A longer request counts as large: only a few are taken in at a time.
const LARGE: usize = 64 * 1024;

/// Since when a connection waits for nothing; none while it has a request under way.
#[derive(Clone)]
pub(super) struct Idle(Arc<Mutex<Option<Instant>>>);

impl Default for Idle {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(Instant::now()))))
    }
}

impl Idle {
    pub(super) fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, idle: bool) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *since = if idle { Some(since.unwrap_or_else(Instant::now)) } else { None };
    }
}

/// Clients that may wait for the end of a turn, which may take for ever: fewer than there are connections.
pub(super) const MAX_WAITING: usize = 48;

/// What the connections of a pod share.
#[derive(Clone)]
pub(super) struct Shares {
    /// A share of the requests of more than a few KiB that may be on their way in.
    pub(super) large: Arc<Semaphore>,
    /// A share of the clients that may wait for the end of a turn.
    pub(super) waiting: Arc<Semaphore>,
}

/// The place of a client among those that wait: given back with the last of its requests that do.
type Place = Option<Arc<OwnedSemaphorePermit>>;

/// Serves a client until it leaves, sends what cannot be read, or is too slow.
pub(super) async fn attend(stream: UnixStream, peer: Peer, pod: Arc<LivePod>, idle: Idle, shares: Shares) {
    let connection = Connection { stream, peer, pod, idle, shares, place: Weak::new(), running: JoinSet::new() };
    // A client that has left needs no answer.
    drop(connection.serve().await);
}

struct Connection {
    stream: UnixStream,
    peer: Peer,
    pod: Arc<LivePod>,
    idle: Idle,
    shares: Shares,
    place: Weak<OwnedSemaphorePermit>,
    running: JoinSet<(u64, Progress, Place)>,
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        let mut lines = Lines::new(MAX_LINE);
        let mut room: Option<OwnedSemaphorePermit> = None;
        loop {
            while let Some(line) = lines.take() {
                self.request(&line).await?;
            }
            if lines.len() <= LARGE {
                room = None;
            } else if room.is_none() {
                let Ok(free) = self.shares.large.clone().try_acquire_owned() else {
                    return self.close(Exit::Busy, "too many large requests are being received; try again").await;
                };
                room = Some(free);
            }
            self.idle.set(self.running.is_empty());
            let late = lines.began().map(|began| began + LINE_TIME);
            tokio::select! {
                filled = lines.fill(&self.stream) => match filled? {
                    Filled::Some => {}
                    Filled::End => return Ok(()),
                    Filled::TooLong => {
                        return self.close(Exit::Data, &format!("a request has at most {MAX_LINE} bytes")).await;
                    }
                },
                Some(done) = self.running.join_next() => self.progressed(done).await?,
                () = until(late) => return Ok(()),
            }
        }
    }

    async fn request(&mut self, line: &[u8]) -> io::Result<()> {
        let Ok(Request { id, client, ask }) = serde_json::from_slice(line) else {
            return self.answer(0, Answer::failed(Exit::Data, "the request cannot be read")).await;
        };
        if let (false, Err(why)) = (matches!(ask, Ask::Status), self.peer.may_change) {
            let failure = Failure::new(Exit::Refused, format!("this process can only read the status of pods: {why}"));
            return self.answer(id, Answer::Failed(failure.help("run this command in your own terminal"))).await;
        }
        if self.running.len() >= MAX_REQUESTS {
            let answer =
                Answer::failed(Exit::Busy, format!("{MAX_REQUESTS} requests of this client are already waiting"));
            return self.answer(id, answer).await;
        }
        let mut place = None;
        if matches!(&ask, Ask::Send(send) if send.wait) {
            place = self.wait();
            if place.is_none() {
                let failure = Failure::new(Exit::Busy, format!("{MAX_WAITING} clients are already waiting"));
                let failure = failure.help("nothing was accepted; `yoi send NAME TEXT` without --wait does not wait");
                return self.answer(id, Answer::Failed(failure)).await;
            }
        }
        let (pod, uid) = (self.pod.clone(), self.peer.uid);
        self.running.spawn(async move { (id, carry_out(&pod, ask, &client, uid).await, place) });
        Ok(())
    }

    /// Takes this client's place among those that wait, if it has none yet; none if all are taken.
    fn wait(&mut self) -> Place {
        let place = match self.place.upgrade() {
            Some(place) => place,
            None => Arc::new(self.shares.waiting.clone().try_acquire_owned().ok()?),
        };
        self.place = Arc::downgrade(&place);
        Some(place)
    }

    async fn progressed(&mut self, done: Result<(u64, Progress, Place), JoinError>) -> io::Result<()> {
        // A panic of one request is this connection's end, not the pod's.
        let (id, progress, place) = done.map_err(io::Error::other)?;
        match progress {
            Progress::Answered(answer) => self.answer(id, answer).await,
            Progress::Accepted(accepted, waits) => {
                let input = accepted.input;
                if waits {
                    let pod = self.pod.clone();
                    self.running.spawn(async move { (id, Progress::ended(&pod, accepted).await, place) });
                }
                self.answer(id, Answer::Accepted { input }).await
            }
            Progress::Stopping => {
                let pod = self.pod.clone();
                self.running.spawn(async move { (id, Progress::stopped(&pod).await, place) });
                self.answer(id, Answer::Done).await
            }
        }
    }

    /// Says why, and ends the connection.
    async fn close(&mut self, exit: Exit, why: &str) -> io::Result<()> {
        self.answer(0, Answer::failed(exit, why)).await
    }

    /// Writes an answer. Requests are not read meanwhile.
    async fn answer(&mut self, id: u64, answer: Answer) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Response { id, answer }).map_err(io::Error::other)?;
        line.push(b'\n');
        timeout(LINE_TIME, self.stream.write_all(&line)).await.map_err(|_late| io::ErrorKind::TimedOut)?
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
