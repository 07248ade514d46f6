//! One process for a server, or a session with one on the network: started at its first call, one call at a time but those that
//! only read ([`crate::reads`]), ended when nobody has called it for a while, with
//! the pod, or when its pin is gone. A call that is not awaited any more ends the process: whether it went on would not be known.

use crate::connection::{Connection, Has};
use crate::elicit::Agreed;
use crate::exchange::{About, Called, Fault, Gone, MAX_LINE};
use crate::http::{Http, SecretHeader};
use crate::mirrored::headers;
use crate::pin::{Era, Launch, ServerPin};
use crate::pipe::Pipe;
use crate::questions::Question;
use crate::reads::Reads;
use authority::{Job, Net, Secret, Spawner, TalkEnv};
use http_client::Url;
use pod::feature::author::RunningNotes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

/// How long a server that nobody calls stays.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// How often it is looked whether the pin of an idle server still stands.
const LOOK: Duration = Duration::from_secs(30);

/// The longest life of a server.
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How much of a call's time a start may take at most: a call whose server does not start has happened for sure.
const START_WAIT: Duration = Duration::from_secs(60);

/// Numbers the servers of this process: the mark of a child says whose it is.
static STARTED: AtomicU64 = AtomicU64::new(1);

/// Says whether the pin still is what the feature was made from.
pub(crate) type Unchanged = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What a server is started with, or reached.
pub(crate) enum Start {
    Child {
        spawner: Spawner,
        /// Variables, by name.
        secrets: Vec<(String, Secret)>,
        cwd: PathBuf,
    },
    Http {
        url: Url,
        net: Net,
        secrets: Vec<SecretHeader>,
    },
}

/// A server, and what it is started with.
pub(crate) struct Server {
    pin: Arc<ServerPin>,
    start: Start,
    unchanged: Unchanged,
    notes: Option<RunningNotes>,
    pub(crate) running: Arc<Mutex<Option<Connection>>>,
    pub(crate) reads: Reads,
    /// Calls that wait for it or use it.
    wanted: AtomicUsize,
    /// Has the keeper let it go.
    called: Notify,
    is_kept: AtomicBool,
}

/// The connection, for the one who uses it.
pub(crate) type Running = OwnedMutexGuard<Option<Connection>>;

/// Counts a call as long as it lives.
pub(crate) struct Wanted<'a>(&'a AtomicUsize);

impl<'a> Wanted<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        server.wanted.fetch_add(1, Ordering::SeqCst);
        server.called.notify_one();
        Self(&server.wanted)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a server is asked for.
pub(crate) enum ServerCall<'a> {
    Tool {
        name: &'a str,
        arguments: &'a RawValue,
        /// What a person answered to its question.
        answered: Option<&'a Question>,
    },
    Resource {
        uri: &'a str,
    },
    Resources {
        cursor: Option<&'a str>,
    },
    Prompt {
        name: &'a str,
        arguments: &'a BTreeMap<String, String>,
    },
}

/// The parameters of one.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Params<'a> {
    Call(CallParams<'a>),
    Read {
        uri: &'a str,
    },
    Prompt {
        name: &'a str,
        arguments: &'a BTreeMap<String, String>,
    },
    List {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

impl Server {
    pub(crate) fn new(
        pin: Arc<ServerPin>,
        start: Start,
        unchanged: Unchanged,
        notes: Option<RunningNotes>,
    ) -> Self {
        Self {
            pin,
            start,
            unchanged,
            notes,
            running: Arc::default(),
            reads: Reads::default(),
            wanted: AtomicUsize::default(),
            called: Notify::new(),
            is_kept: AtomicBool::new(false),
        }
    }

    /// Asks for something, after the calls that came before. The server is killed if its answer is not awaited, also when this
    /// future is dropped.
    pub(crate) async fn call(
        self: &Arc<Self>,
        request: &ServerCall<'_>,
        until: Instant,
    ) -> Result<Called, Fault> {
        // First: with the pod, the clock and the pipes below may have ended.
        tokio::select! {
            biased;
            () = self.pod_ended() => Err(Fault::PodEnded),
            called = self.call_one(request, until) => called,
        }
    }

    async fn call_one(
        self: &Arc<Self>,
        request: &ServerCall<'_>,
        until: Instant,
    ) -> Result<Called, Fault> {
        let _wanted = Wanted::new(self);
        self.reads.other();
        let lock = Arc::clone(&self.running).lock_owned();
        let running = timeout_at(until, lock).await;
        let mut running = running.map_err(|_| Fault::earlier())?;
        let (mut server, warning) = self.ready(&mut running, until).await?;
        let (method, about, params) = self.message(request, server.is_modern());
        *server.agreed() = match request {
            ServerCall::Tool {
                answered: Some(question),
                ..
            } if !server.is_modern() => Agreed::new(question.answers.clone()),
            ServerCall::Tool { .. }
            | ServerCall::Resource { .. }
            | ServerCall::Resources { .. }
            | ServerCall::Prompt { .. } => Agreed::default(),
        };
        match server.ask(method, about.as_ref(), params, until).await {
            Ok(answer) => {
                let asked = std::mem::take(server.agreed()).open();
                *running = Some(server);
                Ok(Called {
                    answer,
                    asked,
                    warning,
                })
            }
            Err(gone) => {
                self.log(&server, &gone);
                Err(Fault::of(server.was_asked(), gone, until))
            }
        }
    }

    /// The server as it runs, or started, and what the person has to know of its definitions.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        running: &mut Running,
        until: Instant,
    ) -> Result<(Connection, Option<String>), Fault> {
        if let Err(why) = (self.unchanged)() {
            end(running.take());
            return Err(Fault::Changed(why));
        }
        self.keep();
        let kept = running.take().filter(|server| !server.has_ended());
        let (server, mut warning) = match kept {
            Some(server) if !server.is_stale() => (server, None),
            Some(mut server) => {
                // Only a greeting says whether there are resources.
                let has = Has {
                    tools: !self.pin.tools.is_empty(),
                    prompts: !self.pin.prompts.is_empty(),
                    resources: self.pin.resources,
                };
                let warning = self.compare(&mut server, has, until).await;
                (server, warning.map_err(|gone| Fault::NotStarted(gone.0))?)
            }
            None => self
                .start(until)
                .await
                .map_err(|gone| Fault::NotStarted(gone.0))?,
        };
        if let Some(what) = &mut warning {
            what.insert_str(0, "MCP server ");
        }
        Ok((server, warning))
    }

    /// The method of a request, what it names, and its parameters.
    pub(crate) fn message<'a>(
        &self,
        request: &ServerCall<'a>,
        is_modern: bool,
    ) -> (&'static str, Option<About<'a>>, Params<'a>) {
        match *request {
            ServerCall::Tool {
                name,
                arguments,
                answered,
            } => {
                let answered = answered.filter(|_| is_modern);
                let mirrored = self.mirrored(name, arguments.get());
                let params = Params::Call(CallParams {
                    name,
                    arguments,
                    input_responses: answered.map(|of| &of.answers),
                    request_state: answered.and_then(|of| of.state.as_deref()),
                });
                ("tools/call", Some(About { name, mirrored }), params)
            }
            ServerCall::Resource { uri } => {
                let name = uri;
                let mirrored = Vec::new();
                let about = Some(About { name, mirrored });
                ("resources/read", about, Params::Read { uri })
            }
            ServerCall::Resources { cursor } => ("resources/list", None, Params::List { cursor }),
            ServerCall::Prompt { name, arguments } => {
                let mirrored = Vec::new();
                let about = Some(About { name, mirrored });
                ("prompts/get", about, Params::Prompt { name, arguments })
            }
        }
    }

    /// The arguments of a call that go into headers.
    fn mirrored(&self, tool: &str, arguments: &str) -> Vec<(String, String)> {
        let pinned = self.pin.tools.iter().find(|of| of.name == tool);
        match (&self.start, self.pin.era, pinned) {
            (Start::Http { .. }, Era::Modern, Some(of)) => headers(&of.input_schema, arguments),
            _ => Vec::new(),
        }
    }

    /// Starts it, and compares its definitions with the pin.
    async fn start(&self, until: Instant) -> Result<(Connection, Option<String>), Gone> {
        let until = until.min(Instant::now() + START_WAIT);
        let mut server = match &self.start {
            Start::Child {
                spawner,
                secrets,
                cwd,
            } => self.child(spawner, secrets, cwd, until).await?,
            Start::Http { url, net, secrets } => {
                Connection::of_http(Http::new(url, net.clone(), secrets.clone()))
            }
        };
        let greeted = server.greet(self.pin.era, until).await;
        let compared = match greeted {
            Ok(of) => self.compare(&mut server, of.has, until).await,
            Err(gone) => Err(gone),
        };
        match compared {
            Ok(warning) => Ok((server, warning)),
            Err(gone) => {
                self.log(&server, &gone);
                Err(gone)
            }
        }
    }

    async fn child(
        &self,
        spawner: &Spawner,
        secrets: &[(String, Secret)],
        cwd: &Path,
        until: Instant,
    ) -> Result<Connection, Gone> {
        admit(spawner, &self.pin.launch)?;
        let job = job(&self.pin.name, &self.pin.launch, cwd.to_owned());
        let mut env = environment(&self.pin.launch);
        for (name, secret) in secrets {
            let value = secret
                .expose()
                .map_err(|revoked| Gone(revoked.to_string()))?;
            env.vars.push((name.into(), value.into()));
        }
        let started = timeout_at(until, spawner.talk_with(job, env, MAX_LINE)).await;
        let talk = started.map_err(|_| Gone("it did not start in time".to_owned()))?;
        let talk = talk.map_err(|error| Gone(error.to_string()))?;
        Ok(Connection::of_child(Pipe::new(talk, &self.pin.name)))
    }

    /// Lists its definitions again. What the model has stays, whatever the server says now.
    async fn compare(
        &self,
        server: &mut Connection,
        has: Has,
        until: Instant,
    ) -> Result<Option<String>, Gone> {
        // A server without tools may refuse to list them.
        let has = Has {
            tools: !self.pin.tools.is_empty(),
            ..has
        };
        let (now, _) = server.definitions(has, until).await?;
        let changed = self.pin.differences(&now);
        if changed.is_empty() {
            return Ok(None);
        }
        let name = &self.pin.name;
        let count = changed.len();
        let text = format!(
            "{name}: {count} of its definitions are not as they were pinned; the model has the old ones; `yoi mcp pin {name}` shows the differences"
        );
        if let Some(notes) = &self.notes {
            notes.note(&text).ok();
        }
        Ok(Some(text))
    }

    pub(crate) fn log(&self, server: &Connection, gone: &Gone) {
        let stderr =
            authority::text::escape_within(&server.stderr(), authority::text::Lines::Many, MAX_LOG);
        tracing::debug!(
            server = self.pin.name,
            "ended: {}; its standard error: {stderr}",
            gone.0
        );
    }

    pub(crate) async fn pod_ended(&self) {
        match &self.notes {
            Some(notes) => notes.pod_ended().await,
            None => std::future::pending().await,
        }
    }

    /// Starts what reads from an idle server, and ends it in time; it lives as long as the pod.
    fn keep(self: &Arc<Self>) {
        if !self.is_kept.swap(true, Ordering::SeqCst) {
            let server = Arc::clone(self);
            tokio::spawn(async move {
                while !server.idle().await {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// Waits until the server is called, and meanwhile reads what it writes; says whether the pod has ended.
    async fn idle(&self) -> bool {
        let called = self.called.notified();
        let mut running: MutexGuard<'_, Option<Connection>> = self.running.lock().await;
        if self.wanted.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let Some(server) = running.as_mut() else {
            drop(running);
            return tokio::select! {
                () = called => false,
                () = self.pod_ended() => true,
            };
        };
        tokio::select! {
            () = called => false,
            gone = server.drain() => {
                self.log(server, &gone);
                *running = None;
                false
            }
            () = self.out_of_use() => {
                end(running.take());
                false
            }
            () = self.pod_ended() => {
                if let Some(server) = running.take() {
                    server.end().await;
                }
                true
            }
        }
    }

    /// Waits until nobody has called it for long, or its pin is gone or another one.
    async fn out_of_use(&self) {
        let until = Instant::now() + IDLE;
        while Instant::now() < until && (self.unchanged)().is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The longest text of a log line, in bytes.
const MAX_LOG: usize = 4096;

/// Ends a server while nobody waits for that.
fn end(server: Option<Connection>) {
    if let Some(server) = server {
        tokio::spawn(server.end());
    }
}

/// Refuses a program that commands of the pod could have written: it would have the server's secrets and network. With
/// these, each file among its arguments counts, too: an interpreter runs it.
pub(crate) fn admit(spawner: &Spawner, launch: &Launch) -> Result<(), Gone> {
    let mut words = launch.command.iter();
    let program = words.next();
    let has_more = launch.network || !launch.secrets.is_empty() || !launch.read.is_empty();
    let arguments = words
        .filter(|_| has_more)
        .map(|word| word.split_once('=').map_or(word.as_str(), |(_, path)| path));
    let mut files = program
        .map(String::as_str)
        .into_iter()
        .chain(arguments)
        .map(Path::new)
        .filter(|path| path.is_absolute() && path.is_file());
    match files.find(|file| spawner.may_replace(file)) {
        None => Ok(()),
        Some(file) => Err(Gone(format!(
            "commands of pods may write {}; install it outside of the project, and add the server again with that path",
            authority::escape(file)
        ))),
    }
}

/// What starts a server.
pub(crate) fn job(name: &str, launch: &Launch, cwd: PathBuf) -> Job {
    let mut words = launch.command.iter().map(OsString::from);
    Job {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        cwd,
        call: format!("mcp-{name}-{}", STARTED.fetch_add(1, Ordering::Relaxed)),
        deadline: LIFE,
        input: Vec::new(),
    }
}

/// Its variables, without secrets.
pub(crate) fn environment(launch: &Launch) -> TalkEnv {
    let vars = launch.env.iter();
    TalkEnv {
        like_command: true,
        vars: vars
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a rig that fails is a failed test"
)]
mod tests;
