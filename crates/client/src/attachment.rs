//! A connection that follows a pod's records by a cursor, and goes on from there over a new connection. Its reader
//! gets each record once, in order.

use crate::connection::{Begun, Connection, Next};
use crate::error::ClientError;
use protocol::event::Event;
use protocol::method::{Ask, Attach, Attached, Hello, Welcome};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The wait before the second attempt to connect; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An attachment to the pod in a directory.
pub struct Attachment {
    dir: PathBuf,
    hello: Hello,
    attach: Attach,
    connection: Option<Connection>,
    welcome: Welcome,
    /// The newest record that was handed out.
    cursor: u64,
}

impl Attachment {
    /// Connects and attaches.
    ///
    /// # Errors
    /// No process serves the pod, or it refuses this client.
    pub async fn begin(
        dir: &Path,
        hello: Hello,
        attach: Attach,
    ) -> Result<(Self, Attached), ClientError> {
        let (mut connection, welcome) = Connection::connect(dir, &hello).await?;
        let attached = connection.ask(&attach).await?;
        let page = attached.page.as_ref();
        let last = page
            .and_then(|page| page.records.last())
            .map(|line| line.seq());
        let last = last
            .transpose()
            .map_err(|error| ClientError::Garbled(format!("a page: {error}")))?;
        // A page without records has looked at all that there are.
        let before = page.map_or(attached.status.seq, |page| page.first.saturating_sub(1));
        let cursor = attach.after.or(last).unwrap_or(before);
        let dir = dir.to_owned();
        Ok((
            Self {
                dir,
                hello,
                attach,
                connection: Some(connection),
                welcome,
                cursor,
            },
            attached,
        ))
    }

    /// What the pod answered to the newest hello.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The newest record that was handed out.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next event. Cancel-safe. The numbers of records rise; those of features' states are left out.
    ///
    /// # Errors
    /// The connection is over: [`Self::resume`] makes a new one.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        let event = self.connected()?.next().await?;
        self.in_order(event)
    }

    fn connected(&mut self) -> Result<&mut Connection, ClientError> {
        self.connection.as_mut().ok_or(ClientError::Closed)
    }

    /// Moves the cursor behind an event.
    fn in_order(&mut self, event: Event) -> Result<Event, ClientError> {
        let seq = match &event {
            Event::Record(line) => line
                .seq()
                .map_err(|error| ClientError::Garbled(format!("a record: {error}"))),
            Event::SystemItem(item) => Ok(item.seq),
            _ => return Ok(event),
        };
        match seq {
            Ok(seq) if seq > self.cursor => self.cursor = seq,
            Ok(seq) => {
                self.connection = None;
                return Err(ClientError::OutOfOrder {
                    cursor: self.cursor,
                    seq,
                });
            }
            Err(error) => {
                self.connection = None;
                return Err(error);
            }
        }
        Ok(event)
    }

    /// Asks, as [`Connection::ask`]. A request whose connection was lost may have been carried out: after
    /// [`Self::resume`] it can be repeated with the same `cmd_id`.
    ///
    /// # Errors
    /// The pod's answer is an error, or the connection is over.
    pub async fn ask<A: Ask>(&mut self, ask: &A) -> Result<A::Answer, ClientError> {
        self.connected()?.ask(ask).await
    }

    /// As [`Connection::begin`].
    ///
    /// # Errors
    /// The connection is over, or too many requests have no answer.
    pub fn begin_request<A: Ask>(&mut self, ask: &A) -> Result<Begun<A>, ClientError> {
        self.connected()?.begin(ask)
    }

    /// As [`Connection::next_or`], with the events of [`Self::next`].
    ///
    /// # Errors
    /// The pod's answer is an error, or the connection is over.
    pub async fn next_or<A: Ask>(
        &mut self,
        begun: &Begun<A>,
    ) -> Result<Next<A::Answer>, ClientError> {
        match self.connected()?.next_or(begun).await? {
            Next::Event(event) => self.in_order(event).map(Next::Event),
            answer => Ok(answer),
        }
    }

    /// Connects again and attaches behind the cursor. Tries until it succeeds, with growing pauses, at most this long.
    /// If it is dropped, it can be called again.
    ///
    /// # Errors
    /// No process served the pod in this time, or there is no use in trying again.
    pub async fn resume(&mut self, within: Duration) -> Result<Attached, ClientError> {
        self.connection = None;
        let until = Instant::now() + within;
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = timeout_at(until, self.attach_again()).await;
            let error = match attempt.unwrap_or(Err(ClientError::Silent(within))) {
                Err(error) if error.may_pass() => error,
                done => return done,
            };
            if Instant::now() + pause >= until {
                return Err(error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attach_again(&mut self) -> Result<Attached, ClientError> {
        let (mut connection, welcome) = Connection::connect(&self.dir, &self.hello).await?;
        if welcome.session != self.welcome.session {
            return Err(ClientError::AnotherSession);
        }
        let attach = Attach {
            after: Some(self.cursor),
            ..self.attach.clone()
        };
        let attached = connection.ask(&attach).await?;
        if attached.status.seq < self.cursor {
            return Err(ClientError::Behind {
                cursor: self.cursor,
                seq: attached.status.seq,
            });
        }
        (self.connection, self.welcome) = (Some(connection), welcome);
        Ok(attached)
    }
}
