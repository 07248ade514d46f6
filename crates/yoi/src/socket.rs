//! Live pods as commands reach them: connected to through the socket in their directory, asked, and waited for as long
//! as each answer may take.

mod failure;

use self::failure::gone;
pub(crate) use self::failure::{failure, of_wire, removed};
use crate::past_turn::past_end;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::ClientError;
use client::cmd_id::cmd_id;
use client::connection::{Begun, Connection, hello};
use host::exit::{Exit, Failure};
use pod::control::NewFile;
use pod::control::TurnEnd;
use pod::record::InputId;
use pod::session::fold::Hold;
use protocol::MAX_PIECE;
use protocol::event::Event;
use protocol::method::{
    Ask, Done, GetStatus, Role, SendFile, SendInput, SentFile, Undo, Undone, Wait,
};
use protocol::record::known;
use protocol::status::{HoldStatus, Status};
use session_store::{Owner, Reader, Session};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tui::transcript::WAITING;

/// How long a pod that is locked may have no socket: it is starting. Later it is a process of an older version.
const STARTING: Duration = Duration::from_secs(5);

/// How often the socket of a starting pod is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How long a process that has ended its pod may take to tell how.
const TOLD: Duration = Duration::from_secs(2);

/// Runs what a command asks of pods, on the calling thread.
pub(crate) fn block_on<T>(asking: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| {
        Failure::new(
            Exit::Unavailable,
            format!(
                "the asynchronous runtime cannot start: {}",
                authority::explain(&e)
            ),
        )
    })?;
    Ok(runtime.block_on(asking))
}

/// A connection to a live pod.
pub(crate) struct LiveClient {
    connection: Connection,
    dir: PathBuf,
    name: String,
    pub(crate) owner: Owner,
}

/// Whether a pod is live.
pub(crate) enum Reached {
    Live(Box<LiveClient>),
    /// No process holds it.
    Free,
    /// This process holds it and serves no socket.
    Locked(Owner),
    /// This process holds it and does not answer; the failure says so.
    Silent(Owner, Failure),
    /// This process holds it, and its answer cannot be read, as that of another version; the failure says so.
    Incompatible(Owner, Failure),
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
    pub(crate) async fn reach(
        dir: &Path,
        name: &str,
        command: &'static str,
    ) -> Result<Reached, Failure> {
        Self::reach_as(dir, name, command, Role::Driver).await
    }

    /// As [`Self::reach`], in another role than that of a driver.
    pub(crate) async fn reach_as(
        dir: &Path,
        name: &str,
        command: &'static str,
        role: Role,
    ) -> Result<Reached, Failure> {
        let began = Instant::now();
        loop {
            let Some(owner) = owner(dir)? else {
                return Ok(Reached::Free);
            };
            match Connection::connect(dir, &hello(command, role)).await {
                Ok((connection, _)) => {
                    let dir = dir.to_owned();
                    let name = name.to_owned();
                    return Ok(Reached::Live(Box::new(Self {
                        connection,
                        dir,
                        name,
                        owner,
                    })));
                }
                Err(ClientError::Unreachable(error))
                    if is_starting(&error) && began.elapsed() < STARTING =>
                {
                    sleep(LOOK).await;
                }
                Err(ClientError::Unreachable(_)) => return Ok(Reached::Locked(owner)),
                Err(ClientError::Closed | ClientError::Cut | ClientError::Io(_)) => {
                    let gone = gone(dir, name, &owner).await;
                    // The process has ended just now; another one may have the pod soon.
                    if gone.exit != Exit::Unavailable || began.elapsed() >= STARTING {
                        return Err(gone);
                    }
                }
                Err(error @ ClientError::Silent(_)) => {
                    let silent = failure(error, name, &owner);
                    return Ok(Reached::Silent(owner, silent));
                }
                Err(error @ (ClientError::Version(_) | ClientError::Garbled(_))) => {
                    let unread = failure(error, name, &owner);
                    return Ok(Reached::Incompatible(owner, unread));
                }
                Err(error) => return Err(failure(error, name, &owner)),
            }
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask<A: Ask>(&mut self, ask: &A) -> Result<A::Answer, Failure> {
        let answer = self.connection.ask(ask).await;
        self.answered(answer).await
    }

    async fn answered<T>(&self, answer: Result<T, ClientError>) -> Result<T, Failure> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(ClientError::Closed | ClientError::Cut | ClientError::Io(_)) => {
                Err(gone(&self.dir, &self.name, &self.owner).await)
            }
            Err(error) => Err(failure(error, &self.name, &self.owner)),
        }
    }

    pub(crate) async fn status(&mut self) -> Result<Status, Failure> {
        self.ask(&GetStatus {}).await
    }

    /// Asks for something that changes the pod, which is answered when it is done.
    pub(crate) async fn tell<A: Ask<Answer = Done>>(
        &mut self,
        ask: impl FnOnce(String) -> A,
    ) -> Result<Done, Failure> {
        self.ask(&ask(cmd_id())).await
    }

    /// Why the pod that was asked to stop did not end in good order, if it says so. For when it has ended: it does not
    /// wait long.
    pub(crate) async fn ended(&mut self) -> Option<Failure> {
        let told = async {
            loop {
                if let Event::Ended(ended) = self.connection.next().await.ok()? {
                    return ended.failure.map(of_wire);
                }
            }
        };
        timeout(TOLD, told).await.ok().flatten()
    }

    /// Undoes file changes after this record.
    pub(crate) async fn undo(&mut self, to: u64) -> Result<Undone, Failure> {
        self.ask(&Undo {
            to,
            cmd_id: cmd_id(),
        })
        .await
    }

    /// Hands in an input; gives its number once it is durable.
    pub(crate) async fn send(&mut self, input: SendInput) -> Result<InputId, Failure> {
        Ok(self.ask(&input).await?.input)
    }

    /// Hands in the files of an input, in pieces that fit a line.
    pub(crate) async fn send_files(&mut self, files: &[NewFile]) -> Result<Vec<SentFile>, Failure> {
        let mut sent = Vec::new();
        for file in files {
            let mut after = None;
            for piece in file.bytes.chunks(MAX_PIECE) {
                let data = STANDARD.encode(piece);
                let cmd_id = cmd_id();
                let ask = SendFile {
                    data,
                    after,
                    cmd_id,
                };
                after = Some(self.ask(&ask).await?.digest);
            }
            let name = file.name.clone();
            sent.extend(after.map(|digest| SentFile { digest, name }));
        }
        Ok(sent)
    }

    /// Begins to wait for the end of the turn that takes an input, or until the pod waits for a person. Other things can be asked meanwhile.
    pub(crate) fn begin_wait(&mut self, input: InputId) -> Result<Begun<Wait>, Failure> {
        self.connection
            .begin(&Wait {
                input,
                until_asked: true,
            })
            .map_err(|error| failure(error, &self.name, &self.owner))
    }

    /// The end of the turn that was waited for. Cancel-safe.
    pub(crate) async fn end(
        &mut self,
        wait: &Begun<Wait>,
        input: InputId,
    ) -> Result<Ended, Failure> {
        let ended = match self.connection.finish(wait).await {
            Err(ClientError::Refused(error))
                if error.kind == protocol::error::ErrorKind::NotWaiting =>
            {
                return Err(Failure::new(
                    Exit::Failed,
                    format!("input {input} was withdrawn"),
                ));
            }
            Err(ClientError::Refused(error)) if error.kind == protocol::error::ErrorKind::Over => {
                let past = past_end(&self.dir, input).zip(Reader::open(&self.dir).ok());
                let refused = || failure(ClientError::Refused(error), &self.name, &self.owner);
                let (end, reader) = past.ok_or_else(refused)?;
                return Ok(Ended {
                    end,
                    folded: reader.durable(),
                });
            }
            ended => self.answered(ended).await?,
        };
        let folded = ended.seq;
        let garbled = |_| {
            failure(
                ClientError::Garbled("the end of a turn".to_owned()),
                &self.name,
                &self.owner,
            )
        };
        // Both ends are of one program, or fields are missing and it says so.
        let end = serde_json::to_value(ended)
            .and_then(serde_json::from_value)
            .map_err(garbled)?;
        Ok(Ended { end, folded })
    }
}

/// Whether the socket is not there yet, or no longer: a killed process left one without a listener.
fn is_starting(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// The states of many pods, for this command. None of one that does not answer within `bound`, in which all are asked.
pub(crate) async fn statuses(
    pods: Vec<(PathBuf, String)>,
    command: &'static str,
    bound: Duration,
) -> BTreeMap<String, Status> {
    let mut asked = JoinSet::new();
    for (dir, name) in pods {
        asked.spawn(async move {
            let (mut connection, _) = Connection::connect(&dir, &hello(command, Role::Viewer))
                .await
                .ok()?;
            Some((name, connection.ask(&GetStatus {}).await.ok()?))
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

/// A state for scripts.
pub(crate) fn state_word(state: &'static str) -> &'static str {
    if state == WAITING { "waiting" } else { state }
}

/// The hold of a live pod; none if its cause is one of a later version.
pub(crate) fn hold(held: &HoldStatus) -> Option<Hold> {
    let cause = known(&held.cause)?;
    let budget = held.budget.as_ref().and_then(known);
    Some(Hold {
        cause,
        reason: held.reason.clone(),
        budget,
    })
}
