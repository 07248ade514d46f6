//! A command's end of the socket: finds out whether a pod is live, asks, and waits a bounded time for each answer.

use super::lines::{Filled, Lines};
use super::message::{Answer, Ask, LiveStatus, Request, Response, Send, Undone};
use super::{MAX_LINE, SOCKET, SocketDir};
use crate::exit::{Exit, Failure};
use authority::Ambient;
use pod::control::TurnEnd;
use pod::record::InputId;
use session_store::{Owner, Session};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long a pod that is locked may have no socket: it is starting. Later it is a process of an older version.
const STARTING: Duration = Duration::from_secs(5);

/// How often the socket of a starting pod is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How long a pod may take for an answer. Its disk may be slow, and an answer means that it has written.
const ANSWER: Duration = Duration::from_secs(60);

/// How long it may take for an answer from memory.
const LOOKED: Duration = Duration::from_secs(5);

/// How long it may take to undo file changes.
const UNDONE: Duration = Duration::from_secs(600);

/// How long a process may hold its pod after it closed its connections, when it ends.
const ENDING: Duration = Duration::from_secs(2);

/// Bytes of an answer: the end of a turn has the answer of a model, whose parts are records.
const MAX_ANSWER: usize = 16 * MAX_LINE;

/// Runs what a command asks of pods, on the calling thread.
pub(crate) fn block_on<T>(asking: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| {
        Failure::new(Exit::Unavailable, format!("the asynchronous runtime cannot start: {}", authority::explain(&e)))
    })?;
    Ok(runtime.block_on(asking))
}

/// A connection to a live pod.
pub(crate) struct LiveClient {
    stream: UnixStream,
    lines: Lines,
    dir: PathBuf,
    name: String,
    /// The command, for the journal.
    command: &'static str,
    asked: u64,
    pub(crate) owner: Owner,
}

/// Whether a pod is live.
pub(crate) enum Reached {
    Live(Box<LiveClient>),
    /// No process holds it.
    Free,
    /// This process holds it and serves no socket.
    Locked(Owner),
}

/// The end of a turn, and the newest record that was folded by then.
pub(crate) struct Ended {
    pub(crate) end: TurnEnd,
    pub(crate) folded: u64,
}

/// The process that holds a pod now.
pub(crate) fn owner(dir: &Path) -> Result<Option<Owner>, Failure> {
    Session::owner(dir).map_err(|fault| Failure::new(Exit::Journal, fault.to_string()))
}

impl LiveClient {
    /// Connects to a pod, for this command. Waits for a pod that is starting.
    pub(crate) async fn reach(dir: &Path, name: &str, command: &'static str) -> Result<Reached, Failure> {
        let began = Instant::now();
        loop {
            let Some(owner) = owner(dir)? else { return Ok(Reached::Free) };
            match connect(dir).await {
                Ok(stream) => return Ok(Reached::Live(Box::new(Self::new(stream, dir, name, command, owner)))),
                Err(error) if !is_starting(&error) || began.elapsed() >= STARTING => return Ok(Reached::Locked(owner)),
                Err(_) => sleep(LOOK).await,
            }
        }
    }

    fn new(stream: UnixStream, dir: &Path, name: &str, command: &'static str, owner: Owner) -> Self {
        let (dir, name) = (dir.to_owned(), name.to_owned());
        Self { stream, lines: Lines::new(MAX_ANSWER), dir, name, command, asked: 0, owner }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&mut self, ask: Ask) -> Result<Answer, Failure> {
        let bound = match ask {
            Ask::Status => LOOKED,
            Ask::Undo { .. } => UNDONE,
            _ => ANSWER,
        };
        let answered = timeout(bound, async {
            let id = self.say(ask).await?;
            self.hear(id).await
        });
        let answer = answered.await.unwrap_or_else(|_late| Err(self.silent()))?;
        match answer {
            Answer::Failed(failure) => Err(self.named(failure)),
            answer => Ok(answer),
        }
    }

    pub(crate) async fn status(&mut self) -> Result<LiveStatus, Failure> {
        match self.ask(Ask::Status).await? {
            Answer::Status(status) => Ok(*status),
            _ => Err(self.garbled()),
        }
    }

    /// Asks for something that is answered by `Done`.
    pub(crate) async fn tell(&mut self, ask: Ask) -> Result<(), Failure> {
        match self.ask(ask).await? {
            Answer::Done => Ok(()),
            _ => Err(self.garbled()),
        }
    }

    /// Why the pod that was asked to stop last did not end in good order, if it says so. For when it has ended: it
    /// does not wait long.
    pub(crate) async fn ended(&mut self) -> Option<Failure> {
        match timeout(ENDING, self.hear(self.asked)).await {
            Ok(Ok(Answer::Failed(failure))) => Some(self.named(failure)),
            // It ended without a word, or in good order.
            Ok(_) | Err(_) => None,
        }
    }

    /// Undoes file changes after this record.
    pub(crate) async fn undo(&mut self, to: u64) -> Result<Undone, Failure> {
        match self.ask(Ask::Undo { to }).await? {
            Answer::Undone(undone) => Ok(undone),
            _ => Err(self.garbled()),
        }
    }

    /// Hands in an input; gives its number once it is durable.
    pub(crate) async fn send(&mut self, send: Send) -> Result<InputId, Failure> {
        match self.ask(Ask::Send(send)).await? {
            Answer::Accepted { input } => Ok(input),
            _ => Err(self.garbled()),
        }
    }

    /// Waits for the end of the turn of the input that was handed in last. Cancel-safe.
    pub(crate) async fn end(&mut self) -> Result<Ended, Failure> {
        match self.hear(self.asked).await? {
            Answer::Ended { end, folded } => Ok(Ended { end: *end, folded }),
            Answer::Failed(failure) => Err(self.named(failure)),
            _ => Err(self.garbled()),
        }
    }

    async fn say(&mut self, ask: Ask) -> Result<u64, Failure> {
        self.asked += 1;
        let request = Request { id: self.asked, client: self.command.to_owned(), ask };
        let mut line = serde_json::to_vec(&request).map_err(|e| Failure::new(Exit::Internal, e.to_string()))?;
        if line.len() > MAX_LINE {
            let message = format!("the input is too long for a running pod: over {} KiB", MAX_LINE / 1024);
            return Err(Failure::new(Exit::Data, message)
                .help("save it to a file in the project and name that file in the prompt"));
        }
        line.push(b'\n');
        if self.stream.write_all(&line).await.is_err() {
            // It may say why it was closed.
            return match self.hear(self.asked).await? {
                Answer::Failed(failure) => Err(self.named(failure)),
                _ => Err(self.gone().await),
            };
        }
        Ok(self.asked)
    }

    /// The next answer to a request. Cancel-safe.
    async fn hear(&mut self, id: u64) -> Result<Answer, Failure> {
        loop {
            while let Some(line) = self.lines.take() {
                let Ok(response) = serde_json::from_slice::<Response>(&line) else { return Err(self.garbled()) };
                // Without a number it is about the connection.
                if response.id == id || response.id == 0 {
                    return Ok(response.answer);
                }
            }
            match self.lines.fill(&self.stream).await {
                Ok(Filled::Some) => {}
                Ok(Filled::TooLong) => return Err(self.garbled()),
                Ok(Filled::End) | Err(_) => return Err(self.gone().await),
            }
        }
    }

    /// The words of the pod do not know its name.
    fn named(&self, failure: Failure) -> Failure {
        let help = failure.help.map(|help| help.replace("NAME", &self.name));
        Failure { help, ..failure }
    }

    /// The words for a closed connection. A process that ends closes it a moment before it lets go of the pod.
    async fn gone(&self) -> Failure {
        let Owner { pid, .. } = self.owner;
        let holds = || {
            owner(&self.dir).is_ok_and(|owner| owner.is_some_and(|owner| owner.pid == pid))
                && authority::is_running(&Ambient::claim(), pid)
        };
        let began = Instant::now();
        while holds() {
            if began.elapsed() >= ENDING {
                let text = format!("the connection to {} was closed; the process {pid} still runs", self.name);
                return Failure::new(Exit::Busy, text).help(format!("`yoi status {}`", self.name));
            }
            sleep(LOOK).await;
        }
        Failure::new(Exit::Unavailable, format!("the process of {} ended", self.name))
            .help(format!("`yoi log {}` shows what was recorded", self.name))
    }

    fn silent(&self) -> Failure {
        let Owner { pid, .. } = self.owner;
        Failure::new(Exit::Busy, format!("{} does not answer (process {pid})", self.name)).help(format!(
            "if a signal stopped the process, `kill -CONT {pid}` continues it; `yoi stop {} --now` ends it",
            self.name
        ))
    }

    fn garbled(&self) -> Failure {
        Failure::new(Exit::Unavailable, format!("{} runs in another version of yoi", self.name))
            .help("use that version, or stop the pod and start it again")
    }
}

async fn connect(dir: &Path) -> io::Result<UnixStream> {
    let dir = SocketDir::open(dir)?;
    UnixStream::connect(dir.path(SOCKET)).await
}

/// Whether the socket is not there yet, or no longer: a killed process left one without a listener.
fn is_starting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The states of many pods. None of one that does not answer within `bound`, in which all are asked.
pub(crate) async fn statuses(pods: Vec<(PathBuf, String)>, bound: Duration) -> BTreeMap<String, LiveStatus> {
    let mut asked = JoinSet::new();
    for (dir, name) in pods {
        asked.spawn(async move {
            let unknown = Owner { pid: 0, since: 0 };
            let mut live = LiveClient::new(connect(&dir).await.ok()?, &dir, &name, "yoi ls", unknown);
            Some((name, live.status().await.ok()?))
        });
    }
    let mut found = BTreeMap::new();
    let hearing = async {
        while let Some(status) = asked.join_next().await {
            found.extend(status.ok().flatten());
        }
    };
    // What did not answer in time is not waited for.
    drop(timeout(bound, hearing).await);
    found
}
