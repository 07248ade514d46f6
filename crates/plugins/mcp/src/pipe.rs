//! The lines between this client and a child: requests with numbers, their answers, and what else the child writes.

use crate::elicit::Agreed;
use crate::exchange::{Answer, Gone, Heard, MAX_QUOTE};
use crate::wire::{self, FromServer};
use authority::text::escape_line;
use authority::{ChildExit, Talk};
use serde::Serialize;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an end that was noticed may take, until its reason is known.
const END_WAIT: Duration = Duration::from_millis(200);

/// How long a server may take to end after its input was closed, and again after `SIGTERM`.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// A child that answers lines. Dropped, it is killed with all that it started.
pub(crate) struct Pipe {
    talk: Talk,
    /// As log lines name it.
    name: String,
    /// The number of the last request.
    last: u64,
    /// What it wrote since then.
    heard: Heard,
    /// Whether it said that its tools changed, after they were listed.
    pub(crate) is_stale: bool,
    /// What it is told when it asks a person.
    pub(crate) agreed: Agreed,
}

impl Pipe {
    /// A child that was asked nothing yet.
    #[must_use]
    pub(crate) fn new(talk: Talk, name: &str) -> Self {
        Self {
            talk,
            name: name.to_owned(),
            last: 0,
            heard: Heard::default(),
            is_stale: false,
            agreed: Agreed::default(),
        }
    }

    /// Sends a request in the form of an era; gives its number.
    pub(crate) async fn send(
        &mut self,
        is_modern: bool,
        method: &str,
        params: impl Serialize,
    ) -> Result<u64, Gone> {
        self.last += 1;
        self.heard = Heard::default();
        let line = wire::message(Some(self.last), is_modern, method, params);
        self.write(&line.map_err(Gone)?).await?;
        Ok(self.last)
    }

    /// An answer of several came: what is written from now on counts for the others.
    pub(crate) fn go_on(&mut self) {
        self.heard = Heard::default();
    }

    /// Sends a message without an answer.
    pub(crate) async fn write(&mut self, line: &[u8]) -> Result<(), Gone> {
        if let Err(error) = self.talk.send(line).await {
            return Err(match error.kind() {
                authority::ErrorKind::FixInput => Gone(error.to_string()),
                _ => self.ended().await,
            });
        }
        Ok(())
    }

    /// The answer to one of these requests, and to which. Answers what the server asks for meanwhile.
    pub(crate) async fn answer(
        &mut self,
        ids: &[u64],
        until: Instant,
    ) -> Result<(u64, Answer), Gone> {
        loop {
            let line = self.line(until).await?;
            if let Some((id, answer)) = self.heed(&line, until).await?
                && ids.contains(&id)
            {
                return Ok((id, answer));
            }
        }
    }

    /// The next line. Lines that are there at once take turns with all else of this thread. Cancel-safe.
    pub(crate) async fn line(&mut self, until: Instant) -> Result<Vec<u8>, Gone> {
        let late = |_| Gone("it did not answer in time".to_owned());
        timeout_at(until, self.next_line()).await.map_err(late)?
    }

    async fn next_line(&mut self) -> Result<Vec<u8>, Gone> {
        if self.heard.is_turn_over() {
            tokio::task::yield_now().await;
        }
        let line = self
            .talk
            .line()
            .await
            .map_err(|error| Gone(error.to_string()))?;
        let Some(line) = line else {
            return Err(self.ended().await);
        };
        self.heard.add(line.len())?;
        Ok(line)
    }

    /// Answers a line where it asks for something; gives the answer that it is, and to which request.
    pub(crate) async fn heed(
        &mut self,
        line: &[u8],
        until: Instant,
    ) -> Result<Option<(u64, Answer)>, Gone> {
        match wire::read(line) {
            FromServer::Answered { id, answer } => return Ok(id.map(|id| (id, answer))),
            FromServer::Asked(asked) => {
                let answer = wire::answer(&asked, &mut self.agreed).map_err(Gone)?;
                let late = |_| Gone("it did not read in time".to_owned());
                let written = timeout_at(until, self.write(&answer)).await;
                written.map_err(late)??;
            }
            FromServer::Told { method } => {
                self.is_stale |= wire::is_change(&method);
            }
            FromServer::Noise => {
                let text =
                    String::from_utf8_lossy(line.get(..MAX_QUOTE).unwrap_or(line)).into_owned();
                tracing::debug!(server = self.name, "printed: {}", escape_line(&text));
            }
        }
        Ok(None)
    }

    /// Reads what a server writes that was asked nothing; resolves when it is gone, or wrote too much.
    pub(crate) async fn drain(&mut self) -> Gone {
        loop {
            let line = match self.next_line().await {
                Ok(line) => line,
                Err(gone) => return gone,
            };
            let soon = Instant::now() + CLOSE_WAIT;
            if let Err(gone) = self.heed(&line, soon).await {
                return gone;
            }
        }
    }

    /// Whether its process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.talk.has_ended()
    }

    /// The end of its standard error.
    #[must_use]
    pub(crate) fn stderr(&self) -> String {
        self.talk.stderr()
    }

    /// Ends it: its input is closed, then it gets `SIGTERM`, then `SIGKILL`.
    pub(crate) async fn end(mut self) {
        self.talk.end(CLOSE_WAIT).await.ok();
    }

    /// How its process ended.
    async fn ended(&mut self) -> Gone {
        let ended = tokio::time::timeout(END_WAIT, self.talk.end(END_WAIT)).await;
        let how = ended.ok().and_then(Result::ok).map(|ended| ended.how);
        Gone(match how {
            Some(ChildExit::Exit(status)) => format!("its process ended with exit {status}"),
            Some(ChildExit::Signal(signal)) => format!("its process ended by signal {signal}"),
            Some(ChildExit::Deadline | ChildExit::Cancelled) | None => {
                "it closed its output".to_owned()
            }
        })
    }
}
