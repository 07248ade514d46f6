//! Calls of a pod's tools over its socket: one connection for each call, which waits until the call has its result.

use client::ClientError;
use client::cmd_id::cmd_id;
use client::connection::{Begun, Connection, hello};
use globset::{Glob, GlobSet, GlobSetBuilder};
use protocol::MAX_PAGE;
use protocol::error::ErrorKind;
use protocol::event::EventKind;
use protocol::method::{
    Attach, Cancel, GetApprovals, GetStatus, GetTools, OfferedTool, Page, Role, SendCall, Shutdown,
    TurnEnded, Wait, Welcome,
};
use protocol::record::{Outcome, RecordBody, ToolFinished};
use protocol::status::State;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;

/// Starts the pod if it does not run; blocking.
///
/// # Errors
/// Why it cannot.
pub type PodStart = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Which tools a door has.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter(Option<GlobSet>);

impl ToolFilter {
    /// The tools that one of these globs matches; all if there is none.
    ///
    /// # Errors
    /// One is no glob, with the reason.
    pub fn new(globs: &[String]) -> Result<Self, String> {
        if globs.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(Glob::new(glob).map_err(|why| why.to_string())?);
        }
        let set = set.build().map_err(|why| why.to_string())?;
        Ok(Self(Some(set)))
    }

    fn has(&self, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|set| set.is_match(tool))
    }
}

/// How long a door waits.
#[derive(Clone, Copy, Debug)]
pub struct DoorWaits {
    /// For a person's answer to a question about a call, before the client is told to come back.
    pub approval: Duration,
    /// Between two messages about progress.
    pub progress: Duration,
    /// For a call that was cancelled to have its result.
    pub cancelled: Duration,
}

impl Default for DoorWaits {
    /// Clients give a request a minute, most of them, and wait longer only where they ask for progress.
    fn default() -> Self {
        Self {
            approval: Duration::from_secs(45),
            progress: Duration::from_secs(5),
            cancelled: Duration::from_secs(20),
        }
    }
}

/// The way to the tools of one pod.
pub struct PodCalls {
    /// The pod's directory.
    pub dir: PathBuf,
    pub name: String,
    /// What the journal calls this client.
    pub client: String,
    pub filter: ToolFilter,
    pub waits: DoorWaits,
    /// How the pod is started where it does not run.
    pub start: Option<PodStart>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// There is no such tool behind this door.
    #[error("there is no tool `{0}`")]
    NoTool(String),
    /// The pod takes no call now; for people.
    #[error("{0}")]
    Unavailable(String),
    /// The pod refused the call.
    #[error("{0}")]
    Refused(String),
}

/// What became of a call.
pub(crate) enum Called {
    Finished(Box<ToolFinished>),
    /// Its turn ended without it.
    Ended(String),
    /// It waits for a person; the same key is the same call.
    Parked {
        key: String,
        /// What the person is asked, and how to answer.
        asked: String,
    },
}

/// A call that a client of the door asks for.
pub(crate) struct NewCall {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    /// That of a call that was parked, or a new one. The pod makes one call for each.
    pub(crate) key: String,
}

/// How a wait ended.
enum Waited {
    Ended(Box<TurnEnded>),
    /// The pod waits for a person.
    Asked,
    Late,
}

impl PodCalls {
    /// The tools behind this door, by name.
    pub(crate) async fn tools(&self) -> Result<Vec<OfferedTool>, Fault> {
        let mut pod = self.reach().await?;
        let offered = pod.ask(&GetTools {}).await.map_err(|why| self.lost(&why))?;
        let mut tools = offered.tools;
        tools.retain(|tool| self.filter.has(&tool.name));
        Ok(tools)
    }

    /// Has the pod make a call, and waits for its result. `tell` gets what happens meanwhile, for people.
    ///
    /// A connection that is lost is opened once more, and the call asked for with the same key: it is not made twice.
    pub(crate) async fn call(
        &self,
        call: NewCall,
        cancel: &CancellationToken,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Called, Fault> {
        if !self.filter.has(&call.tool) {
            return Err(Fault::NoTool(call.tool));
        }
        let send = SendCall {
            tool: call.tool,
            arguments: call.arguments,
            cmd_id: call.key,
        };
        match self.call_once(&send, cancel, tell).await {
            Err(Attempt::Lost(_)) => match self.call_once(&send, cancel, tell).await {
                Err(Attempt::Lost(why)) => Err(Fault::Unavailable(format!(
                    "{why}; whether the call happened is in `yoi log {}`",
                    self.name
                ))),
                Err(Attempt::Fault(fault)) => Err(fault),
                Ok(called) => Ok(called),
            },
            Err(Attempt::Fault(fault)) => Err(fault),
            Ok(called) => Ok(called),
        }
    }

    async fn call_once(
        &self,
        send: &SendCall,
        cancel: &CancellationToken,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Called, Attempt> {
        let mut pod = self.reach().await?;
        let input = match pod.ask(send).await {
            Ok(accepted) => accepted.input,
            Err(ClientError::Refused(error)) if error.kind == ErrorKind::Params => {
                return Err(Fault::NoTool(send.tool.clone()).into());
            }
            Err(error) => return Err(self.attempt(error)),
        };
        let mut until_asked = true;
        let late = Instant::now() + self.waits.approval;
        loop {
            let wait = pod
                .begin(&Wait { input, until_asked })
                .map_err(|why| self.attempt(why))?;
            let waited = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                waited = self.wait(&mut pod, &wait, (!until_asked).then_some(late), tell) => Some(waited),
            };
            match waited {
                None => {
                    let asked = Cancel {
                        input: Some(input),
                        cmd_id: cmd_id(),
                    };
                    pod.ask(&asked).await.map_err(|why| self.attempt(why))?;
                    let ended = timeout(self.waits.cancelled, pod.finish(&wait)).await;
                    let Ok(ended) = ended else {
                        return Ok(Called::Ended("the call was cancelled".to_owned()));
                    };
                    return self.ended(&mut pod, input, ended).await;
                }
                Some(Ok(Waited::Ended(end))) => return Ok(called(*end)),
                Some(Ok(Waited::Asked)) => {
                    tell(self.asked(&mut pod, &send.tool).await?);
                    until_asked = false;
                }
                Some(Ok(Waited::Late)) => {
                    return Ok(Called::Parked {
                        key: send.cmd_id.clone(),
                        asked: self.asked(&mut pod, &send.tool).await?,
                    });
                }
                Some(Err(why)) => return self.ended(&mut pod, input, Err(why)).await,
            }
        }
    }

    /// Waits for the answer, and tells meanwhile that it does.
    async fn wait(
        &self,
        pod: &mut Connection,
        wait: &Begun<Wait>,
        late: Option<Instant>,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Waited, ClientError> {
        let every = self.waits.progress;
        let mut tick = interval_at(Instant::now() + every, every);
        let over = tokio::time::sleep_until(late.unwrap_or_else(|| Instant::now() + DAY));
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                ended = pod.finish(wait) => {
                    let ended = ended?;
                    let is_asked = ended.outcome.outcome == "waiting";
                    return Ok(if is_asked { Waited::Asked } else { Waited::Ended(Box::new(ended)) });
                }
                () = &mut over, if late.is_some() => return Ok(Waited::Late),
                _ = tick.tick() => tell(match late {
                    Some(_) => format!("the call waits for a person: `yoi approve {}`", self.name),
                    None => "the call has no result yet".to_owned(),
                }),
            }
        }
    }

    /// The end of a turn that may be over since before this start of the pod.
    async fn ended(
        &self,
        pod: &mut Connection,
        input: u64,
        ended: Result<TurnEnded, ClientError>,
    ) -> Result<Called, Attempt> {
        match ended {
            Ok(end) => Ok(called(end)),
            Err(ClientError::Refused(error)) if error.kind == ErrorKind::Over => {
                let page = Page {
                    before: u64::MAX,
                    limit: MAX_PAGE,
                };
                let page = pod.ask(&page).await.map_err(|why| self.attempt(why))?;
                let bodies = page.records.iter().filter_map(|line| line.read().ok());
                let turn = bodies.map(|record| record.body).skip_while(
                    |body| !matches!(body, RecordBody::InputConsumed(taken) if taken.input == input),
                );
                let mut results = turn.filter_map(|body| match body {
                    RecordBody::ToolFinished(finished) => Some(finished),
                    _ => None,
                });
                Ok(match results.next() {
                    Some(finished) => Called::Finished(Box::new(finished)),
                    None => Called::Ended(format!(
                        "the call has ended; `yoi log {}` has what is known of it",
                        self.name
                    )),
                })
            }
            Err(ClientError::Refused(error)) if error.kind == ErrorKind::NotWaiting => {
                Ok(Called::Ended("the call was withdrawn".to_owned()))
            }
            Err(error) => Err(self.attempt(error)),
        }
    }

    /// What a person is asked, and the command that answers.
    async fn asked(&self, pod: &mut Connection, tool: &str) -> Result<String, Attempt> {
        let open = pod
            .ask(&GetApprovals {})
            .await
            .map_err(|why| self.attempt(why))?;
        let name = &self.name;
        // Questions of a turn before it are those of others.
        if let Some(asked) = open.approvals.iter().find(|asked| asked.tool == tool) {
            let question = asked.question.lines().next().unwrap_or_default();
            let id = asked.approval;
            return Ok(format!(
                "the call waits for a person: {question}; `yoi approve {name} {id}` allows it, with `--deny` denies it"
            ));
        }
        let status = pod
            .ask(&GetStatus {})
            .await
            .map_err(|why| self.attempt(why))?;
        Ok(match status.held {
            Some(held) => format!(
                "the pod is held: {}; `yoi resume {name}` ends that",
                held.reason
            ),
            None if !open.approvals.is_empty() => format!(
                "the call waits behind another one, which waits for a person: `yoi approve {name}`"
            ),
            None => format!("the call waits; `yoi status {name}` says for what"),
        })
    }

    /// Attaches as long as it is polled, so that the pod has a client; without events of interest.
    pub async fn attend(&self) {
        loop {
            let hello = hello(&self.client, Role::Driver);
            if let Ok((mut pod, _)) = Connection::connect(&self.dir, &hello).await {
                let attach = Attach {
                    without: vec![
                        EventKind::Record,
                        EventKind::Delta,
                        EventKind::Status,
                        EventKind::Draft,
                    ],
                    limit: Some(1),
                    ..Attach::default()
                };
                if pod.ask(&attach).await.is_ok() {
                    while pod.next().await.is_ok() {}
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Ends the pod, unless other clients follow it or it works. Called beside [`Self::attend`], which counts as one.
    pub async fn leave(&self) {
        let hello = hello(&self.client, Role::Driver);
        let Ok((mut pod, _)) = Connection::connect(&self.dir, &hello).await else {
            return;
        };
        let status = pod.ask(&GetStatus {}).await;
        let is_unused =
            status.is_ok_and(|status| status.clients <= 1 && status.state == State::Idle);
        if is_unused {
            let shutdown = Shutdown {
                now: false,
                cmd_id: cmd_id(),
            };
            // A pod that does not answer is left as it is.
            if pod.ask(&shutdown).await.is_ok() {
                let ends = async { while pod.next().await.is_ok() {} };
                drop(timeout(self.waits.cancelled, ends).await);
            }
        }
    }

    async fn reach(&self) -> Result<Connection, Fault> {
        let hello = hello(&self.client, Role::Driver);
        match Connection::connect(&self.dir, &hello).await {
            Err(ClientError::Unreachable(_) | ClientError::Removed) => {}
            reached => return self.greeted(reached),
        }
        let Some(start) = self.start.clone() else {
            let name = &self.name;
            let why = format!("the pod {name} does not run; `yoi start {name}` starts it");
            return Err(Fault::Unavailable(why));
        };
        let started = tokio::task::spawn_blocking(move || start()).await;
        started
            .map_err(|why| Fault::Unavailable(why.to_string()))?
            .map_err(Fault::Unavailable)?;
        // Another program may have started it just now.
        let until = Instant::now() + STARTING;
        loop {
            match Connection::connect(&self.dir, &hello).await {
                Err(ClientError::Unreachable(_)) if Instant::now() < until => {
                    tokio::time::sleep(LOOK).await;
                }
                reached => return self.greeted(reached),
            }
        }
    }

    fn greeted(
        &self,
        reached: Result<(Connection, Welcome), ClientError>,
    ) -> Result<Connection, Fault> {
        let (pod, welcome) = reached.map_err(|why| self.lost(&why))?;
        if welcome.role != Role::Driver {
            let why = "a process that a pod started cannot call tools";
            return Err(Fault::Unavailable(why.to_owned()));
        }
        if !welcome.methods.iter().any(|method| method == "call") {
            let why = format!(
                "the pod {name} runs an older yoi; `yoi stop {name}` and `yoi start {name}` renew it",
                name = self.name
            );
            return Err(Fault::Unavailable(why));
        }
        Ok(pod)
    }

    fn lost(&self, error: &ClientError) -> Fault {
        match error {
            ClientError::Refused(refused) if refused.kind == ErrorKind::Refused => {
                Fault::Refused(refused.message.clone())
            }
            error => Fault::Unavailable(format!("pod {}: {error}", self.name)),
        }
    }

    fn attempt(&self, error: ClientError) -> Attempt {
        match error {
            ClientError::Closed | ClientError::Cut | ClientError::Io(_) => {
                Attempt::Lost(format!("the pod {} has ended", self.name))
            }
            error => Attempt::Fault(self.lost(&error)),
        }
    }
}

/// How long a pod that was started may have no socket, and how often that is looked for.
const STARTING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Between two attempts to attach.
const AGAIN: Duration = Duration::from_secs(1);

/// No timer is longer.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Why one attempt gave no result.
enum Attempt {
    /// The connection: another attempt may find the result.
    Lost(String),
    Fault(Fault),
}

impl From<Fault> for Attempt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn called(end: TurnEnded) -> Called {
    match end.result {
        Some(finished) => Called::Finished(finished),
        None => Called::Ended(outcome(&end.outcome)),
    }
}

/// Why a turn ended without its call, for people.
fn outcome(outcome: &Outcome) -> String {
    let why = outcome.reason.as_deref().or(outcome.message.as_deref());
    match why {
        Some(why) => format!("the call did not run: {why}"),
        None => format!(
            "the call did not run: its turn ended as {}",
            outcome.outcome
        ),
    }
}
