//! One guest: a child, its greeting, and one request after the other.

use super::CONTRACT;
use super::host_side::HostSide;
use super::wire::{self, Failure, FromGuest};
use super::within::Within;
use authority::{ChildExit, Talk};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Most lines of a guest for one request: what writes more is ended.
const MAX_LINES: usize = 10_000;

/// How long an end that was noticed may take, until its reason is known.
const END_WAIT: Duration = Duration::from_millis(200);

/// The number of its greeting.
const FIRST: u64 = 1;

pub(super) struct Guest {
    talk: Talk,
    /// The number of the last request.
    last: u64,
    /// Whether it was asked about a result that may be withheld.
    heard_private: bool,
}

/// The answer of a guest to one request, or its failure; `Err` for a guest that does not keep the contract, and is not
/// asked again.
pub(super) type Answered = Result<Result<Value, Failure>, String>;

impl Guest {
    pub(super) fn new(talk: Talk) -> Self {
        Self {
            talk,
            last: 0,
            heard_private: false,
        }
    }

    /// Agrees on the contract.
    pub(super) async fn greet(&mut self, hello: &Value, host: &HostSide) -> Result<(), String> {
        let answer = self.ask("initialize", hello, host, None).await?;
        let answer =
            answer.map_err(|failure| format!("it refused to start: {}", failure.message))?;
        match answer.get("contract").and_then(Value::as_u64) {
            Some(CONTRACT) => Ok(()),
            _ => Err(format!(
                "it does not answer `initialize` with contract {CONTRACT}"
            )),
        }
    }

    /// Asks it, and does meanwhile what it asks for.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: impl Serialize,
        host: &HostSide,
        within: Option<&Within>,
    ) -> Answered {
        self.last += 1;
        let request = wire::request(self.last, method, params)?;
        self.send(&request).await?;
        for _ in 0..MAX_LINES {
            let line = self.talk.line().await.map_err(|error| error.to_string())?;
            let Some(line) = line else {
                return Err(self.ended().await);
            };
            match wire::read(&line)? {
                FromGuest::Answered { id, answer } if id == self.last => return Ok(answer),
                FromGuest::Answered { .. } => {
                    return Err("it answered a request that was not made".to_owned());
                }
                FromGuest::Asked { .. } if self.last == FIRST => {
                    return Err("it spoke before it answered `initialize`".to_owned());
                }
                FromGuest::Asked { id, method, params } => {
                    let answer = host.answer(&method, params, within).await;
                    if let Some(id) = id {
                        self.send(&wire::answer(&id, answer)).await?;
                    }
                }
            }
        }
        Err(format!("it wrote over {MAX_LINES} lines for one request"))
    }

    /// Tells it to end, and waits a moment for that; what is left is killed.
    pub(super) async fn shut_down(mut self) {
        self.last += 1;
        if let Ok(request) = wire::request(self.last, "shutdown", Value::Object(Map::new()))
            && self.send(&request).await.is_ok()
        {
            tokio::time::timeout(END_WAIT, self.talk.end(END_WAIT))
                .await
                .ok();
        }
    }

    /// Whether it was asked nothing yet.
    pub(super) fn is_new(&self) -> bool {
        self.last == 0
    }

    /// Whether the child has ended since.
    pub(super) fn has_ended(&self) -> bool {
        self.talk.has_ended()
    }

    /// Says that the next request is about a result that may be withheld.
    pub(super) fn hears_private(&mut self) {
        self.heard_private = true;
    }

    /// The end of its standard error; nothing once it may quote what is withheld, since what it wrote can arrive after its
    /// answer, and be written for a later request.
    pub(super) fn stderr(&self) -> String {
        match self.heard_private {
            true => String::new(),
            false => self.talk.stderr(),
        }
    }

    async fn send(&mut self, line: &[u8]) -> Result<(), String> {
        if let Err(error) = self.talk.send(line).await {
            return Err(match error.kind() {
                authority::ErrorKind::FixInput => error.to_string(),
                _ => self.ended().await,
            });
        }
        Ok(())
    }

    /// How its process ended.
    async fn ended(&mut self) -> String {
        let ended = tokio::time::timeout(END_WAIT, self.talk.end(END_WAIT)).await;
        let how = ended.ok().and_then(Result::ok).map(|ended| ended.how);
        match how {
            Some(ChildExit::Exit(status)) => format!("its process ended with exit {status}"),
            Some(ChildExit::Signal(signal)) => format!("its process ended by signal {signal}"),
            Some(ChildExit::Deadline | ChildExit::Cancelled) | None => {
                "it closed its output".to_owned()
            }
        }
    }
}
