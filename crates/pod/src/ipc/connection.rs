//! One client of a pod: its requests are read one after the other and carried out side by side, and events are sent
//! when it takes them.

use super::CLIENT_TIME;
use super::answers::Answer;
use super::feed::Feed;
use super::hub::{Hub, Phase, until};
use super::incoming::Incoming;
use super::out::Out;
use super::requests::{attached, carry_out};
use crate::control::AttachedDriver;
use crate::record::Who;
use authority::Peer;
use protocol::error::{Error, ErrorKind};
use protocol::event::{Event, EventKind};
use protocol::lines::LineTooLong;
use protocol::message::{BadRequest, ClientRequest, answer_line, event_line};
use protocol::method::{Ask, Attached, Draft, Hello, Method, Role, Welcome};
use protocol::{MAX_CLIENT, MAX_LINE, MAX_MESSAGE, VERSION};
use serde::Serialize;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// Requests of one client that may wait for their answers; further ones are read when there is room.
const MAX_REQUESTS: usize = 16;

/// Requests of one client in a second, after as many at once.
const MAX_RATE: u32 = 200;

/// How often the full end of a client that stopped sending is looked for: of that alone the runtime does not tell.
const CLOSED_LOOK: Duration = Duration::from_millis(100);

/// With so many bytes waiting for the client, no more records are read for it and no more requests taken.
const FULL: usize = 256 * 1024;

/// Since when a connection waits for nothing; none while it has a request under way or is attached.
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
        *since = if idle {
            Some(since.unwrap_or_else(Instant::now))
        } else {
            None
        };
    }
}

/// What the connections of a pod share besides the hub.
#[derive(Clone)]
pub(super) struct Shares {
    /// A share of the requests of more than a few KiB that may be on their way in.
    pub(super) large: Arc<Semaphore>,
    /// A share of the clients that are attached or wait for the end of a turn, which may take for ever.
    pub(super) staying: Arc<Semaphore>,
    /// How many those are.
    pub(super) max: usize,
}

impl Shares {
    /// Shares of so many large requests, and of so many clients that stay.
    pub(super) fn of(large: usize, max: usize) -> Self {
        Self {
            large: Arc::new(Semaphore::new(large)),
            staying: Arc::new(Semaphore::new(max)),
            max,
        }
    }
}

/// Serves a client until it leaves, sends what cannot be read, or is too slow.
pub(super) async fn attend(
    stream: UnixStream,
    peer: Peer,
    hub: Arc<Hub>,
    idle: Idle,
    shares: Shares,
) {
    let phase = hub.phase.clone();
    let connection = Connection {
        stream,
        peer,
        hub,
        idle,
        shares,
        phase,
        out: Out::new(),
        who: None,
        feed: None,
        driver: None,
        running: JoinSet::new(),
        rate: Rate {
            tokens: MAX_RATE,
            since: Instant::now(),
        },
        long: false,
        ends: false,
    };
    // A client that has left needs no answer.
    drop(connection.serve().await);
}

struct Connection {
    stream: UnixStream,
    peer: Peer,
    hub: Arc<Hub>,
    idle: Idle,
    shares: Shares,
    phase: watch::Receiver<Phase>,
    out: Out,
    /// Who it is, and what it may do, once it said hello.
    who: Option<(Who, Role)>,
    feed: Option<(Feed, OwnedSemaphorePermit)>,
    /// Counts this client while it is attached as a driver.
    driver: Option<AttachedDriver>,
    running: JoinSet<(u64, Done)>,
    rate: Rate,
    /// A page or another long answer is being made: one at a time.
    long: bool,
    /// No more is read: the connection ends when the client has what waits for it.
    ends: bool,
}

/// The result of a request.
enum Done {
    Answered(Answer),
    /// The one long answer.
    Long(Answer),
    Attached(Box<Result<(Attached, Feed, OwnedSemaphorePermit), Error>>),
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        let mut incoming = Incoming::new();
        loop {
            self.requests(&mut incoming);
            self.fill();
            let over = self.phase.borrow().is_over();
            if over {
                self.hub.read_on();
            }
            if over && !self.ends && self.running.is_empty() && self.is_drained() {
                self.tell_end();
            }
            self.ends |= incoming.is_over() && self.running.is_empty();
            if self.out.is_empty() && self.ends {
                return Ok(());
            }
            if let Some(ended) = incoming.ended()
                && (ended.elapsed() >= CLIENT_TIME || is_closed(&self.stream).await)
            {
                return Ok(());
            }
            self.idle
                .set(self.running.is_empty() && self.feed.is_none());
            let takes = self.takes();
            let room = self.out.len() < FULL;
            let due = incoming.due().filter(|_| takes);
            let again = if takes || self.ends {
                None
            } else {
                self.rate.again()
            };
            let look = incoming.ended().map(|_| Instant::now() + CLOSED_LOOK);
            tokio::select! {
                ready = self.stream.readable(), if takes && look.is_none() => {
                    ready?;
                    incoming.receive(&self.stream)?;
                }
                ready = self.stream.writable(), if !self.out.is_empty() => {
                    ready?;
                    self.out.write(&self.stream)?;
                }
                Some(done) = self.running.join_next() => self.done(done)?,
                () = changed(&mut self.feed), if room => {}
                _changed = self.phase.changed(), if !over => {}
                () = until(again) => {}
                () = until(look) => {}
                () = until(due) => {
                    self.end(ErrorKind::Request, &format!("a request was not complete within {} s", CLIENT_TIME.as_secs()));
                }
                () = until(self.out.late()) => return Ok(()),
            }
        }
    }

    /// Begins the requests that were received, as long as there is room for more.
    fn requests(&mut self, incoming: &mut Incoming) {
        while self.takes() {
            match incoming.take() {
                Ok(Some(line)) => self.request(&line),
                Ok(None) => break,
                Err(LineTooLong) => {
                    self.end(
                        ErrorKind::TooLong,
                        &format!("a request can have at most {MAX_LINE} bytes"),
                    );
                }
            }
        }
        if !self.ends && !incoming.fits(&self.shares.large) {
            self.end(
                ErrorKind::Busy,
                "too many large requests are being received",
            );
        }
    }

    /// Adds events for an attached client that takes them.
    fn fill(&mut self) {
        if self.out.len() < FULL
            && let Some((feed, _)) = &mut self.feed
            && let Err(error) = feed.fill(&mut self.out)
        {
            self.feed = None;
            self.end(error.kind, &error.message);
        }
    }

    /// Whether a further request is read now.
    fn takes(&mut self) -> bool {
        // First, since a rate that is not renewed would be waited for without end.
        let allowed = self.rate.allows();
        allowed
            && !self.ends
            && !self.long
            && self.running.len() < MAX_REQUESTS
            && self.out.len() < FULL
    }

    /// The last event; nothing follows.
    fn tell_end(&mut self) {
        let ended = self
            .phase
            .borrow()
            .ended
            .clone()
            .filter(|_| self.who.is_some());
        if let Some(Ok(line)) = ended.map(|ended| event_line(&Event::Ended(ended))) {
            self.out.push(&line);
        }
        self.ends = true;
    }

    /// Whether an attached client has every record.
    fn is_drained(&self) -> bool {
        self.feed.as_ref().is_none_or(|(feed, _)| feed.is_done())
    }

    fn request(&mut self, line: &[u8]) {
        self.rate.spend();
        let ClientRequest { id, method } = match ClientRequest::read(line) {
            Ok(request) => request,
            Err(BadRequest { id, error }) => {
                self.answer(id, Err::<&(), _>(&error));
                self.ends |= error.kind == ErrorKind::Parse;
                return;
            }
        };
        let Some((who, role)) = self.who.clone() else {
            if let Method::Hello(hello) = method {
                return self.hello(id, hello);
            }
            return self.fail(id, ErrorKind::Request, "the first request must be `hello`");
        };
        if role < method.role() {
            let text = match self.peer.may_change {
                Err(why) => format!("this process can only read the status of pods: {why}"),
                Ok(()) => {
                    let own = role.word();
                    let needed = method.role().word();
                    let article = if role == Role::Approver { "an" } else { "a" };
                    format!("this client is {article} {own}; send `hello` with the role `{needed}`")
                }
            };
            return self.fail(id, ErrorKind::NotAllowed, &text);
        }
        let stays = matches!(method, Method::Attach(_) | Method::Wait(_));
        let place = if stays {
            self.shares.staying.clone().try_acquire_owned().ok()
        } else {
            None
        };
        let hub = self.hub.clone();
        match (method, place) {
            (Method::Attach(_), _) if self.feed.is_some() => {
                self.fail(id, ErrorKind::Request, "this client is already attached");
            }
            (_, None) if stays => {
                self.fail(
                    id,
                    ErrorKind::Busy,
                    &format!(
                        "{} clients are already attached or waiting",
                        self.shares.max
                    ),
                );
            }
            (Method::Attach(mut attach), Some(place)) => {
                self.long = true;
                let is_child = self.peer.may_change.is_err();
                attach.without.extend(is_child.then_some(EventKind::Draft));
                self.running.spawn(async move {
                    let attached = attached(&hub, attach).await.map(|(mut attached, feed)| {
                        if is_child {
                            // What a person has not sent is not for the model's commands.
                            attached.draft = Draft::default();
                        }
                        (attached, feed, place)
                    });
                    (id, Done::Attached(Box::new(attached)))
                });
            }
            (method, place) => self.carry_out(id, method, who, place),
        }
    }

    fn carry_out(
        &mut self,
        id: u64,
        method: Method,
        who: Who,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let hub = self.hub.clone();
        if method.cmd_id().is_some() {
            let Ok(share) = self.hub.commands.clone().try_acquire_owned() else {
                return self.fail(
                    id,
                    ErrorKind::Busy,
                    "too many commands are being carried out",
                );
            };
            // A command is carried out once, whether or not its client is there for the answer.
            let command = tokio::spawn(async move {
                let answer = carry_out(&hub, method, who).await;
                drop(share);
                answer
            });
            let failed = |error: JoinError| Err(Error::new(ErrorKind::Internal, error.to_string()));
            self.running
                .spawn(async move { (id, Done::Answered(command.await.unwrap_or_else(failed))) });
            return;
        }
        self.long = matches!(
            method,
            Method::Page(_) | Method::GetFeatures(_) | Method::CallTool(_)
        );
        let done = if self.long {
            Done::Long
        } else {
            Done::Answered
        };
        self.running.spawn(async move {
            let answer = carry_out(&hub, method, who).await;
            drop(place);
            (id, done(answer))
        });
    }

    fn hello(&mut self, id: u64, hello: Hello) {
        let Hello {
            versions,
            client,
            name,
            role,
        } = hello;
        if !versions.contains(&VERSION) {
            let text = format!(
                "this pod uses version {VERSION} of the protocol; restart the pod with the version of yoi that the client needs"
            );
            return self.fail(id, ErrorKind::Version, &text);
        }
        let role = if self.peer.may_change.is_ok() {
            role
        } else {
            Role::Viewer
        };
        let clean = |text: String| {
            text.chars()
                .filter(|c| !c.is_control())
                .take(MAX_CLIENT)
                .collect::<String>()
        };
        let client = clean(client);
        let name = name.map(clean);
        self.who = Some((
            Who {
                client,
                role: role.word().to_owned(),
                uid: self.peer.uid,
                name,
            },
            role,
        ));
        let welcome = Welcome {
            version: VERSION,
            pod: self.hub.name.clone(),
            session: self.hub.session.clone(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            role,
            methods: Method::NAMES
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
        };
        self.answer(Some(id), Ok(&welcome));
    }

    fn done(&mut self, done: Result<(u64, Done), JoinError>) -> io::Result<()> {
        // A panic of one request is this connection's end, not the pod's.
        let (id, done) = done.map_err(io::Error::other)?;
        match done {
            Done::Answered(answer) => self.answer(Some(id), answer.as_ref()),
            Done::Long(answer) => {
                self.long = false;
                self.answer(Some(id), answer.as_ref());
            }
            Done::Attached(attached) => {
                self.long = false;
                self.answer(
                    Some(id),
                    attached.as_ref().as_ref().map(|(attached, ..)| attached),
                );
                self.feed = attached.ok().map(|(_, feed, place)| (feed, place));
                let drives = self
                    .who
                    .as_ref()
                    .is_some_and(|(_, role)| *role == Role::Driver);
                self.driver = self
                    .feed
                    .as_ref()
                    .filter(|_| drives)
                    .map(|_| self.hub.client.driver());
            }
        }
        Ok(())
    }

    fn fail(&mut self, id: u64, kind: ErrorKind, text: &str) {
        self.answer(Some(id), Err::<&(), _>(&Error::new(kind, text)));
    }

    /// Says why, and ends the connection.
    fn end(&mut self, kind: ErrorKind, why: &str) {
        self.answer(None, Err::<&(), _>(&Error::new(kind, why)));
        self.ends = true;
    }

    fn answer<T: Serialize>(&mut self, id: Option<u64>, answer: Result<&T, &Error>) {
        match answer_line(id, answer) {
            Ok(line) if line.len() > MAX_MESSAGE => {
                let text = format!(
                    "the answer is larger than {} MiB; read the journal of the pod instead",
                    MAX_MESSAGE >> 20
                );
                self.answer(id, Err::<&(), _>(&Error::new(ErrorKind::TooLong, text)));
            }
            Ok(line) => self.out.push(&line),
            Err(_not_json) => self.ends = true,
        }
    }
}

/// Whether a client that ended what it sends takes no answers either.
async fn is_closed(stream: &UnixStream) -> bool {
    tokio::select! {
        biased;
        ready = stream.ready(Interest::WRITABLE) => ready.is_ok_and(|ready| ready.is_write_closed()),
        () = std::future::ready(()) => false,
    }
}

async fn changed(feed: &mut Option<(Feed, OwnedSemaphorePermit)>) {
    match feed {
        Some((feed, _)) => feed.changed().await,
        None => std::future::pending().await,
    }
}

/// How many requests a client may still make.
struct Rate {
    tokens: u32,
    since: Instant,
}

impl Rate {
    fn allows(&mut self) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            (self.tokens, self.since) = (MAX_RATE, Instant::now());
        }
        self.tokens > 0
    }

    fn spend(&mut self) {
        self.tokens = self.tokens.saturating_sub(1);
    }

    /// When it may make the next one.
    fn again(&self) -> Option<Instant> {
        (self.tokens == 0).then(|| self.since + Duration::from_secs(1))
    }
}
