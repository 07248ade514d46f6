//! The agent: reads what its client sends, answers what is about no session, and hands the rest to the sessions. One task
//! reads; each session has one, and so has each pod that is being opened.

use crate::blocking::blocking;
use crate::content::{Block, Prompt};
use crate::lines::{Line, Lines, MAX_LINE};
use crate::message::{
    BadLine, FAILED, Id, Incoming, METHOD, PARAMS, PARSE, Params, REQUEST, RpcError, UNKNOWN,
};
use crate::out::{Gone, Out};
use crate::pods::{OpenedPod, PodOpener, PodRefusal};
use crate::requests::{ClientKnows, Command, Opening, PermissionOutcome};
use crate::session::{Begun, Session, begin};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

/// The version of the protocol.
const VERSION: u16 = 1;

/// Sessions that one client has open.
const MAX_SESSIONS: usize = 64;

/// Pods that are being opened, and lists that are being made, at a time.
const MAX_OPENING: usize = 16;

/// What may wait for a session.
const MAX_COMMANDS: usize = 64;

/// Sessions of a list.
const MAX_LISTED: usize = 200;

/// How long a client may take to read what was sent when its own messages have ended.
const FLUSH: Duration = Duration::from_secs(2);

/// Serves one client until its messages end or it reads no more. The pods go on. `version` is that of the program.
pub async fn serve<P: PodOpener>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    pods: Arc<P>,
    version: &'static str,
) {
    let (out, waiting) = Out::new();
    let mut writing = tokio::spawn(waiting.write(output));
    let mut lines = Lines::new(input, MAX_LINE);
    let mut agent = Agent {
        pods,
        version,
        out,
        client: None,
        open: BTreeMap::new(),
        sessions: JoinSet::new(),
        tasks: JoinSet::new(),
    };
    loop {
        let done = tokio::select! {
            line = lines.next() => match line {
                Some(line) => agent.line(line).await,
                None => break,
            },
            Some(finished) = agent.tasks.join_next() => agent.finished(finished).await,
            Some(_ended) = agent.sessions.join_next() => Ok(()),
            _unread = &mut writing => return,
        };
        if done.is_err() {
            break;
        }
    }
    drop(agent);
    // What it does not read in time is not for it any more.
    drop(timeout(FLUSH, writing).await);
}

struct Agent<P> {
    pods: Arc<P>,
    version: &'static str,
    out: Out,
    /// What the client understands, once it said so.
    client: Option<ClientKnows>,
    open: BTreeMap<String, mpsc::Sender<Command>>,
    sessions: JoinSet<()>,
    tasks: JoinSet<Finished>,
}

/// What a task beside the sessions has done.
enum Finished {
    Answered(Id, Result<Value, RpcError>),
    Opened(Box<Begun>, Opening),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    protocol_version: Value,
    #[serde(default)]
    client_capabilities: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenSession {
    #[serde(default)]
    session_id: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Option<Vec<Value>>,
    #[serde(default)]
    additional_directories: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ListSessions {
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfSession {
    session_id: String,
}

#[derive(Deserialize)]
struct PromptBlocks {
    prompt: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mode {
    mode_id: String,
}

impl<P: PodOpener> Agent<P> {
    async fn line(&mut self, line: Line) -> Result<(), Gone> {
        let line = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => return Ok(()),
            Line::Whole(line) => line,
            Line::TooLong => {
                let message = format!("a line has more than {} MiB", MAX_LINE >> 20);
                let error = RpcError::new(PARSE, message, "send less in one message");
                return self.out.fail(None, &error).await;
            }
        };
        match Incoming::read(&line) {
            Ok(Incoming::Request { id, method, params }) => {
                self.request(id, &method, &params).await
            }
            Ok(Incoming::Notification { method, params }) => {
                self.notified(&method, &params).await;
                Ok(())
            }
            Ok(Incoming::Answer { id, result }) => {
                self.answered(&id, result.as_ref()).await;
                Ok(())
            }
            Err(BadLine { id, error }) => self.out.fail(id.as_ref(), &error).await,
        }
    }

    async fn request(&mut self, id: Id, method: &str, params: &Params) -> Result<(), Gone> {
        let done = match method {
            "initialize" => {
                let answer = self.initialize(params);
                return self.out.answer(&id, answer).await;
            }
            "session/new" | "session/load" | "session/list" | "session/prompt"
            | "session/set_mode"
                if self.client.is_none() =>
            {
                let message = format!("`{method}` came before `initialize`");
                Err(RpcError::new(REQUEST, message, "send `initialize` first"))
            }
            "session/new" => self.new_session(&id, params),
            "session/load" => self.load_session(&id, params),
            "session/list" => self.list_sessions(&id, params),
            "session/prompt" => self.prompt(&id, params),
            "session/set_mode" => self.set_mode(&id, params),
            _ => {
                let message = format!("there is no method `{method}`");
                let help = "`initialize` tells what this agent can do";
                Err(RpcError::new(METHOD, message, help))
            }
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.out.fail(Some(&id), &error).await,
        }
    }

    fn initialize(&mut self, params: &Params) -> Result<Value, RpcError> {
        let Initialize {
            protocol_version,
            client_capabilities,
        } = params.read()?;
        if !protocol_version.is_u64() {
            let message = "`protocolVersion` is not a number";
            return Err(RpcError::new(PARAMS, message, "send 1"));
        }
        let notices = client_capabilities.pointer("/session/notices");
        self.client = Some(ClientKnows {
            notices: notices.is_some_and(Value::is_object),
        });
        // A client that speaks no version 1 leaves.
        Ok(json!({
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": { "list": {} },
            },
            "agentInfo": { "name": "yoi", "title": "yoi", "version": self.version },
            "authMethods": [],
        }))
    }

    fn new_session(&mut self, id: &Id, params: &Params) -> Result<(), RpcError> {
        let asked: OpenSession = params.read()?;
        let note = checked(&asked)?;
        self.has_room()?;
        let opening = Opening {
            id: id.clone(),
            is_load: false,
            note,
        };
        let pods = self.pods.clone();
        self.begin(opening, move || pods.create(&asked.cwd));
        Ok(())
    }

    fn load_session(&mut self, id: &Id, params: &Params) -> Result<(), RpcError> {
        let asked: OpenSession = params.read()?;
        let note = checked(&asked)?;
        let name = asked.session_id.unwrap_or_default();
        // Another task of the same session would tell of it, too.
        let former = self.open.remove(&name);
        if let Err(full) = self.has_room() {
            if let Some(former) = former {
                self.open.insert(name, former);
            }
            return Err(full);
        }
        let opening = Opening {
            id: id.clone(),
            is_load: true,
            note,
        };
        let pods = self.pods.clone();
        self.begin(opening, move || pods.open(&name, Some(&asked.cwd)));
        Ok(())
    }

    fn has_room(&mut self) -> Result<(), RpcError> {
        self.open.retain(|_, commands| !commands.is_closed());
        if self.tasks.len() >= MAX_OPENING || self.open.len() >= MAX_SESSIONS {
            let message = format!(
                "{} sessions are open, and {} are being opened",
                self.open.len(),
                self.tasks.len()
            );
            let help = "start another `yoi acp`, or try again later";
            return Err(RpcError::new(FAILED, message, help));
        }
        Ok(())
    }

    /// Opens a pod beside everything else: it may take long.
    fn begin(
        &mut self,
        opening: Opening,
        open: impl FnOnce() -> Result<OpenedPod, PodRefusal> + Send + 'static,
    ) {
        let pods = self.pods.clone();
        self.tasks.spawn(async move {
            let place = match blocking(open).await {
                Ok(place) => place,
                Err(error) => return Finished::Answered(opening.id, Err(error)),
            };
            match begin(&place).await {
                Ok(begun) => Finished::Opened(Box::new(begun), opening),
                Err(error) => {
                    let error = pods.explain(&place.name, error);
                    Finished::Answered(opening.id, Err(error.into()))
                }
            }
        });
    }

    fn list_sessions(&mut self, id: &Id, params: &Params) -> Result<(), RpcError> {
        let ListSessions { cwd, cursor } = params.read()?;
        if cursor.is_some() {
            let help = "a list has one page: omit `cursor`";
            return Err(RpcError::new(PARAMS, "there is no such page", help));
        }
        self.has_room()?;
        let pods = self.pods.clone();
        let id = id.clone();
        self.tasks.spawn(async move {
            let listed = blocking(move || pods.list(cwd.as_deref(), MAX_LISTED)).await;
            let answer = listed.map(|listed| {
                let sessions: Vec<Value> = listed
                    .into_iter()
                    .map(|pod| {
                        json!({
                            "sessionId": pod.name,
                            "cwd": pod.cwd,
                            "title": pod.title,
                            "updatedAt": pod.updated,
                        })
                    })
                    .collect();
                json!({ "sessions": sessions })
            });
            Finished::Answered(id, answer)
        });
        Ok(())
    }

    async fn finished(&mut self, finished: Result<Finished, JoinError>) -> Result<(), Gone> {
        match finished {
            Ok(Finished::Answered(id, answer)) => self.out.answer(&id, answer).await,
            Ok(Finished::Opened(begun, opening)) => {
                let (commands, received) = mpsc::channel(MAX_COMMANDS);
                let session = Session::new(
                    *begun,
                    self.pods.clone(),
                    self.out.clone(),
                    self.client.unwrap_or_default(),
                    (commands.downgrade(), received),
                );
                self.open.insert(session.name().to_owned(), commands);
                self.sessions.spawn(session.run(opening));
                Ok(())
            }
            // A fault of one task has said where, and is not the end of the others.
            Err(_panicked) => Ok(()),
        }
    }

    fn prompt(&mut self, id: &Id, params: &Params) -> Result<(), RpcError> {
        let PromptBlocks { prompt } = params.read()?;
        let prompt = Prompt::read(prompt)?;
        let id = id.clone();
        self.hand_in(params, Command::Prompt { id, prompt })
    }

    fn set_mode(&mut self, id: &Id, params: &Params) -> Result<(), RpcError> {
        let Mode { mode_id: mode } = params.read()?;
        let id = id.clone();
        self.hand_in(params, Command::SetMode { id, mode })
    }

    fn hand_in(&mut self, params: &Params, command: Command) -> Result<(), RpcError> {
        let OfSession { session_id } = params.read()?;
        let commands = self.open.get(&session_id);
        match commands.map(|commands| commands.try_send(command)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => {
                let message = format!("the session `{session_id}` is busy");
                Err(RpcError::new(FAILED, message, "try again"))
            }
            Some(Err(TrySendError::Closed(_))) | None => {
                let message = format!("the session `{session_id}` is not open");
                let help = "session/load opens it, session/new creates one";
                Err(RpcError::new(UNKNOWN, message, help))
            }
        }
    }

    async fn notified(&mut self, method: &str, params: &Params) {
        if method != "session/cancel" {
            return;
        }
        let Ok(OfSession { session_id }) = params.read() else {
            return;
        };
        if let Some(commands) = self.open.get(&session_id) {
            // A session that has ended has nothing to cancel.
            drop(commands.send(Command::Cancel).await);
        }
    }

    async fn answered(&mut self, id: &Id, result: Option<&Params>) {
        let question = id
            .number()
            .and_then(|id| self.out.asked(|asked| asked.take(id)));
        let Some(question) = question else { return };
        let outcome = result.and_then(|result| result.read::<PermissionOutcome>().ok());
        if let Some(commands) = question.to.upgrade() {
            let approval = question.approval;
            drop(commands.send(Command::Answered { approval, outcome }).await);
        }
    }
}

/// Refuses what cannot be used at all; gives what a person is to be told.
fn checked(asked: &OpenSession) -> Result<Option<String>, RpcError> {
    if !asked.cwd.is_absolute() {
        let help = "send the absolute path of a directory";
        return Err(RpcError::new(PARAMS, "`cwd` is not absolute", help));
    }
    if asked
        .additional_directories
        .as_ref()
        .is_some_and(|dirs| !dirs.is_empty())
    {
        let message = "additional directories are not supported";
        let help = "`yoi start NAME --add-dir DIR` adds one to a pod";
        return Err(RpcError::new(PARAMS, message, help));
    }
    let names: Vec<&str> = asked
        .mcp_servers
        .iter()
        .flatten()
        .map(|server| server.get("name").and_then(Value::as_str).unwrap_or("?"))
        .collect();
    let note = format!(
        "yoi does not use the MCP servers of the editor ({}): `yoi mcp add` adds a server for all pods, with the grants that you give it.",
        names.join(", ")
    );
    Ok((!names.is_empty()).then_some(note))
}
