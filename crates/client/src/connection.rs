//! One connection to a pod: requests and their answers, and the events between them. Everything is bounded. Only
//! waiting for the next event is not: a pod that is idle says nothing.

use crate::error::ClientError;
use protocol::error::{Error, ErrorKind};
use protocol::event::Event;
use protocol::lines::{LineBuffer, LineTooLong};
use protocol::message::{Message, request_line};
use protocol::method::{Ask, Hello, Role, Welcome};
use protocol::{MAX_LINE, MAX_MESSAGE, VERSION};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The socket in a pod's directory.
pub use protocol::SOCKET;

/// Events that are kept while an answer is awaited.
pub const MAX_QUEUED: usize = 4096;

/// Bytes of these events, and of answers that came before they were asked for.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// Bytes of one read.
const PIECE: usize = 16 << 10;

/// Requests without an answer, or whose answer was not taken. Those that callers gave up are among them.
pub const MAX_UNANSWERED: usize = 64;

/// How long a pod may take for an answer from memory.
const FROM_MEMORY: Duration = Duration::from_secs(5);

/// How long it may take for another answer. Its disk may be slow, and an answer may mean that it has written.
const FROM_DISK: Duration = Duration::from_secs(60);

/// How long it may take to undo file changes.
const UNDONE: Duration = Duration::from_secs(600);

/// A connection that has said hello.
pub struct Connection {
    stream: UnixStream,
    received: LineBuffer,
    /// The rest of the requests that the socket did not take yet: a request is sent whole, or the connection is over.
    unsent: Vec<u8>,
    /// The highest number of a request.
    asked: u64,
    unanswered: BTreeSet<u64>,
    /// The requests that were begun and not finished, and their answers, as far as they came.
    begun: BTreeMap<u64, Option<Answer>>,
    /// Events that arrived before an answer, with the bytes of their lines.
    queued: VecDeque<(Event, usize)>,
    queued_bytes: usize,
    /// Events were dropped behind the queued ones.
    overrun: bool,
    /// Nothing more is read: what follows in the stream is unknown.
    over: bool,
}

type Answer = Result<Box<RawValue>, Error>;

/// A request that was sent. Its answer is taken with [`Connection::finish`], in any order.
#[derive(Debug)]
pub struct Begun<A> {
    id: u64,
    method: &'static str,
    of: PhantomData<fn(A)>,
}

/// What comes first while an answer is awaited.
#[derive(Debug)]
pub enum Next<A> {
    Event(Event),
    Answer(A),
}

/// What a client says first.
#[must_use]
pub fn hello(client: &str, role: Role) -> Hello {
    Hello {
        versions: vec![VERSION],
        client: client.to_owned(),
        name: None,
        role,
    }
}

/// How long the answer to a request may take.
fn bound(ask: &impl Ask) -> Duration {
    match ask.name() {
        "hello" | "status" | "features" => FROM_MEMORY,
        "undo" => UNDONE,
        _ => FROM_DISK,
    }
}

impl Connection {
    /// Connects to the pod in this directory.
    ///
    /// # Errors
    /// No process serves it, or it does not welcome this client.
    pub async fn connect(dir: &Path, hello: &Hello) -> Result<(Self, Welcome), ClientError> {
        let stream = timeout(FROM_MEMORY, open(dir))
            .await
            .map_err(|_late| ClientError::Silent(FROM_MEMORY))?;
        Self::greet(stream?, hello).await
    }

    async fn greet(stream: UnixStream, hello: &Hello) -> Result<(Self, Welcome), ClientError> {
        let mut connection = Self {
            stream,
            received: LineBuffer::new(MAX_MESSAGE),
            unsent: Vec::new(),
            asked: 0,
            unanswered: BTreeSet::new(),
            begun: BTreeMap::new(),
            queued: VecDeque::new(),
            queued_bytes: 0,
            overrun: false,
            over: false,
        };
        match connection.ask(hello).await {
            Ok(welcome) if hello.versions.contains(&welcome.version) => Ok((connection, welcome)),
            Ok(welcome) => Err(ClientError::Version(format!("version {}", welcome.version))),
            Err(ClientError::Refused(error) | ClientError::Dismissed(error))
                if error.kind == ErrorKind::Version =>
            {
                Err(ClientError::Version(error.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks, and waits for the answer for a bounded time. Events that arrive meanwhile are kept for [`Self::next`].
    ///
    /// If it is dropped, the request may have been carried out; its answer is passed over.
    ///
    /// # Errors
    /// The pod's answer is an error, or the connection is over.
    pub async fn ask<A: Ask>(&mut self, ask: &A) -> Result<A::Answer, ClientError> {
        let within = bound(ask);
        let id = self.hand_in(ask)?;
        let answer = timeout(within, self.answer(id))
            .await
            .map_err(|_late| ClientError::Silent(within))??;
        self.read::<A>(ask.name(), answer)
    }

    /// Begins a request. It is sent, and its answer kept, while another answer or the next event is awaited; each one
    /// has to be [finished](Self::finish), or it counts towards [`MAX_UNANSWERED`] for ever.
    ///
    /// # Errors
    /// The connection is over, or too many requests have no answer.
    pub fn begin<A: Ask>(&mut self, ask: &A) -> Result<Begun<A>, ClientError> {
        let id = self.hand_in(ask)?;
        self.begun.insert(id, None);
        Ok(Begun {
            id,
            method: ask.name(),
            of: PhantomData,
        })
    }

    /// Waits for the answer to a request, as long as it takes. Events that arrive meanwhile are kept. Cancel-safe: it
    /// can be called again until it has returned.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn finish<A: Ask>(&mut self, begun: &Begun<A>) -> Result<A::Answer, ClientError> {
        let Begun { id, method, of: _ } = begun;
        let answer = match self.begun.get_mut(id).and_then(Option::take) {
            Some(answer) => {
                self.queued_bytes -= bytes(&answer);
                answer
            }
            None => self.answer(*id).await?,
        };
        self.begun.remove(id);
        self.read::<A>(method, answer)
    }

    /// The next event, or the answer to a request that was begun, as long as it takes. Cancel-safe.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn next_or<A: Ask>(
        &mut self,
        begun: &Begun<A>,
    ) -> Result<Next<A::Answer>, ClientError> {
        loop {
            if let Some(event) = self.queued() {
                return Ok(Next::Event(event));
            }
            if self.begun.get(&begun.id).is_some_and(Option::is_some) {
                return self.finish(begun).await.map(Next::Answer);
            }
            self.goes_on()?;
            match self.message().await? {
                (Message::Event(event), _) => return Ok(Next::Event(event)),
                (Message::Answer { id, answer }, _) => self.keep_answer(id, answer),
            }
        }
    }

    fn read<A: Ask>(&mut self, method: &str, answer: Answer) -> Result<A::Answer, ClientError> {
        let result = answer.map_err(ClientError::Refused)?;
        serde_json::from_str(result.get()).map_err(|error| {
            self.over = true;
            ClientError::Garbled(format!("the answer to `{method}`: {error}"))
        })
    }

    /// The next event. Cancel-safe.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        if let Some(event) = self.queued() {
            return Ok(event);
        }
        self.goes_on()?;
        loop {
            match self.message().await? {
                (Message::Event(event), _) => return Ok(event),
                (Message::Answer { id, answer }, _) => self.keep_answer(id, answer),
            }
        }
    }

    fn queued(&mut self) -> Option<Event> {
        let (event, bytes) = self.queued.pop_front()?;
        self.queued_bytes -= bytes;
        Some(event)
    }

    fn goes_on(&self) -> Result<(), ClientError> {
        match (self.overrun, self.over) {
            (true, _) => Err(ClientError::Overrun),
            (false, true) => Err(ClientError::Closed),
            (false, false) => Ok(()),
        }
    }

    /// Hands in a request; gives its number.
    fn hand_in<A: Ask>(&mut self, ask: &A) -> Result<u64, ClientError> {
        self.goes_on()?;
        let answered = self.begun.values().flatten().count();
        if self.unanswered.len() + answered >= MAX_UNANSWERED {
            return Err(ClientError::Unanswered(self.unanswered.len() + answered));
        }
        let id = self.asked + 1;
        let line =
            request_line(id, ask).map_err(|error| ClientError::Garbled(error.to_string()))?;
        if line.len() > MAX_LINE {
            return Err(ClientError::TooLong(line.len()));
        }
        self.asked = id;
        self.unanswered.insert(id);
        self.unsent.extend_from_slice(line.as_bytes());
        Ok(id)
    }

    /// The answer with this number. Cancel-safe.
    async fn answer(&mut self, id: u64) -> Result<Answer, ClientError> {
        self.goes_on()?;
        loop {
            match self.message().await? {
                (
                    Message::Answer {
                        id: Some(found),
                        answer,
                    },
                    _,
                ) if found == id => return Ok(answer),
                (Message::Answer { id, answer }, _) => self.keep_answer(id, answer),
                (Message::Event(event), bytes) => self.keep(event, bytes),
            }
        }
    }

    /// Keeps the answer to a request that was begun; the others were given up.
    fn keep_answer(&mut self, id: Option<u64>, answer: Answer) {
        let Some(kept) = id.and_then(|id| self.begun.get_mut(&id)) else {
            return;
        };
        self.overrun |= self.queued_bytes + bytes(&answer) > MAX_QUEUED_BYTES;
        if !self.overrun {
            self.queued_bytes += bytes(&answer);
            *kept = Some(answer);
        }
    }

    /// Keeps an event. Behind one that was dropped none is kept: what is handed out has no gap.
    fn keep(&mut self, event: Event, bytes: usize) {
        self.overrun |=
            self.queued.len() >= MAX_QUEUED || self.queued_bytes + bytes > MAX_QUEUED_BYTES;
        if !self.overrun {
            self.queued.push_back((event, bytes));
            self.queued_bytes += bytes;
        }
    }

    /// The next message, and the bytes of its line. An answer is one to a request that had none.
    async fn message(&mut self) -> Result<(Message, usize), ClientError> {
        let received = self.received().await;
        self.over |= received.is_err();
        received
    }

    async fn received(&mut self) -> Result<(Message, usize), ClientError> {
        let line = self.line().await?;
        let message =
            Message::read(&line).map_err(|error| ClientError::Garbled(error.to_string()))?;
        match message {
            Message::Answer {
                id: None,
                answer: Err(error),
            } => Err(ClientError::Dismissed(error)),
            Message::Answer { id, .. } if !id.is_some_and(|id| self.unanswered.remove(&id)) => {
                let what = id.map_or_else(|| "no request".to_owned(), |id| format!("request {id}"));
                Err(ClientError::Garbled(format!(
                    "an answer to {what}, which the client does not expect"
                )))
            }
            message => Ok((message, line.len())),
        }
    }

    async fn line(&mut self) -> Result<String, ClientError> {
        loop {
            match self.received.take() {
                Ok(Some(line)) => {
                    let not_utf8 = |_| ClientError::Garbled("a line that is not UTF-8".to_owned());
                    return String::from_utf8(line).map_err(not_utf8);
                }
                Ok(None) => self.exchange().await?,
                Err(LineTooLong) => {
                    return Err(ClientError::Garbled(format!(
                        "a line of more than {MAX_MESSAGE} bytes"
                    )));
                }
            }
        }
    }

    /// Waits for the socket, then writes and reads what it takes and has. A pod that does not read while it has
    /// something to say is read.
    async fn exchange(&mut self) -> Result<(), ClientError> {
        let writes = !self.unsent.is_empty();
        let interest = if writes {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        let ready = self.stream.ready(interest).await.map_err(ClientError::Io)?;
        if writes && ready.is_writable() {
            match self.stream.try_write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It may have said why it takes nothing.
                Err(_closed) => self.unsent.clear(),
            }
        }
        if !ready.is_readable() {
            return Ok(());
        }
        let mut piece = [0; PIECE];
        match self.stream.try_read(&mut piece) {
            Ok(0) if self.received.rest() > 0 => Err(ClientError::Cut),
            Ok(0) => Err(ClientError::Closed),
            Ok(read) => {
                self.received.push(piece.get(..read).unwrap_or_default());
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(ClientError::Closed)
            }
            Err(error) => Err(ClientError::Io(error)),
        }
    }
}

fn bytes(answer: &Answer) -> usize {
    match answer {
        Ok(result) => result.get().len(),
        Err(error) => error.message.len(),
    }
}

/// A state directory may have a long name, and the address of a socket has 108 bytes: an open directory leads to the
/// socket in it by a short path.
async fn open(dir: &Path) -> Result<UnixStream, ClientError> {
    let dir = File::open(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ClientError::Removed,
        _ => ClientError::Unreachable(error),
    })?;
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd())).await;
    stream.map_err(ClientError::Unreachable)
}
