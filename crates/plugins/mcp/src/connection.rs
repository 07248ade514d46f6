//! A server that answers: its greeting in the era that it speaks, its definitions, and one request after the other, to a child
//! or over HTTP.

use crate::definition::{self, MAX_PROMPTS};
use crate::elicit::{self, Agreed};
use crate::exchange::{About, Answer, Called, Gone, MAX_QUOTE, Reply};
use crate::http::Http;
use crate::pin::{Definitions, Era, PinnedPrompt, PinnedTool, ServerInfo};
use crate::pipe::Pipe;
use crate::reads::{ReadCall, Reads, nobody_waits};
use crate::wire::{self, LEGACY, MODERN, RpcError, UNSUPPORTED_VERSION};
use authority::Talk;
use authority::text::{Lines, escape_within};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a probe of a child for the modern era waits before the other era is tried as well.
const PROBE_WAIT: Duration = Duration::from_secs(5);

/// The same of a server on the network, which is asked in the other era only then.
const HTTP_PROBE_WAIT: Duration = Duration::from_secs(20);

/// Most pages of a list, and most tools and bytes of all of them.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 512;
const MAX_LIST: usize = 4 << 20;

/// The longest text that names the next page, in bytes.
const MAX_CURSOR: usize = 4 << 10;

/// Most problems of a list that are told one by one.
const MAX_PROBLEMS: usize = 32;

/// Who answered, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Greeted {
    pub era: Era,
    pub protocol: String,
    pub server: ServerInfo,
    pub(crate) has: Has,
}

/// What a server says that it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Has {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Has {
    fn of(capabilities: &Value) -> Self {
        let has = |what| capabilities.get(what).is_some();
        Self {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
        }
    }
}

/// How a server is reached.
enum Way {
    Child(Box<Pipe>),
    Http(Box<Http>),
}

/// A server that is asked. Dropped, a child is killed with all that it started.
pub(crate) struct Connection {
    way: Way,
    is_modern: bool,
}

/// Finds out which era a server speaks: one modern request, and where its answer is not a modern one, `initialize`. `start`
/// starts it: a second time where it ends at a request that it does not know.
///
/// # Errors
/// It does not start, or answers neither; with what it wrote to its standard error.
pub(crate) async fn probe<F>(
    name: &str,
    until: Instant,
    mut start: impl FnMut() -> F,
) -> Result<(Connection, Greeted), Gone>
where
    F: Future<Output = Result<Talk, authority::Error>>,
{
    let mut begin = async || {
        let talk = start().await.map_err(|error| Gone(error.to_string()))?;
        Ok(Connection::of_child(Pipe::new(talk, name)))
    };
    let mut first: Connection = begin().await?;
    match first.greet_any(until).await {
        Ok(greeted) => return Ok((first, greeted)),
        Err(gone) if first.has_ended() => {
            tracing::debug!(server = name, "ended at the modern request: {}", gone.0);
        }
        Err(gone) => return Err(gone.with_stderr(&first.stderr())),
    }
    drop(first);
    let mut second = begin().await?;
    match second.greet(Era::Legacy, until).await {
        Ok(greeted) => Ok((second, greeted)),
        Err(gone) => Err(gone.with_stderr(&second.stderr())),
    }
}

/// What the first answer of a server of unknown era is.
enum First {
    Modern(Greeted),
    /// The answer to `initialize`.
    Legacy(Box<RawValue>),
    /// It does not know the modern request.
    Unknown,
}

/// Sends a child both greetings, the second one where the first has no answer in time.
async fn first_of_child(pipe: &mut Pipe, until: Instant) -> Result<First, Gone> {
    let modern = send_greeting(pipe, Era::Modern).await?;
    let early = until.min(Instant::now() + PROBE_WAIT);
    if let Ok(answered) = timeout_at(early, pipe.answer(&[modern], until)).await {
        let greeted = answered?.1.ok().as_deref().and_then(discovered);
        return Ok(greeted.map_or(First::Unknown, First::Modern));
    }
    // Slow to start: it will read both.
    let legacy = send_greeting(pipe, Era::Legacy).await?;
    let mut refused = None;
    for _ in 0..2 {
        let (id, answer) = match refused {
            None => pipe.answer(&[modern, legacy], until).await?,
            Some(_) => pipe.answer(&[modern], until).await?,
        };
        match answer {
            Ok(answer) if id == modern => {
                if let Some(greeted) = discovered(&answer) {
                    return Ok(First::Modern(greeted));
                }
            }
            Ok(answer) => return Ok(First::Legacy(answer)),
            Err(error) if id == legacy && error.code == UNSUPPORTED_VERSION => {
                refused = Some(error);
            }
            Err(error) if id == legacy => return Err(refusal(&error)),
            Err(_) => {}
        }
    }
    if let Some(error) = refused {
        return Err(refusal(&error));
    }
    let (_, answer) = pipe.answer(&[legacy], until).await?;
    answer.map(First::Legacy).map_err(|error| refusal(&error))
}

async fn send_greeting(pipe: &mut Pipe, era: Era) -> Result<u64, Gone> {
    let (method, params) = greeting(era);
    pipe.send(era == Era::Modern, method, params).await
}

/// Asks a server on the network in the modern era. Another refusal than one of the request says nothing of the era: the older
/// one would be a step back.
async fn first_of_http(http: &mut Http, until: Instant) -> Result<First, Gone> {
    let (method, params) = greeting(Era::Modern);
    let early = until.min(Instant::now() + HTTP_PROBE_WAIT);
    let asked = http.ask(true, method, None, &params, until);
    let Ok(mut reply) = timeout_at(early, asked).await else {
        return Ok(First::Unknown);
    };
    if let Ok(Reply::Answer(Err(error))) = &reply
        && error.wants_modern()
    {
        reply = http.ask(true, method, None, &params, until).await;
    }
    match reply? {
        Reply::Answer(answer) => {
            let greeted = answer.ok().as_deref().and_then(discovered);
            Ok(greeted.map_or(First::Unknown, First::Modern))
        }
        Reply::Status(400 | 404..=406 | 409..=428, _) | Reply::NoSession => Ok(First::Unknown),
        Reply::Status(status, text) => Err(Gone(status_text(status, &text))),
    }
}

/// The first request of an era.
fn greeting(era: Era) -> (&'static str, Value) {
    match era {
        Era::Modern => ("server/discover", json!({})),
        Era::Legacy => {
            let newest = LEGACY.first().copied().unwrap_or_default();
            (
                "initialize",
                json!({ "protocolVersion": newest, "capabilities": elicit::capability(), "clientInfo": wire::client() }),
            )
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    server_info: ServerInfo,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    server_info: ServerInfo,
}

impl Connection {
    /// A child that was asked nothing yet.
    #[must_use]
    pub(crate) fn of_child(pipe: Pipe) -> Self {
        let way = Way::Child(Box::new(pipe));
        Self {
            way,
            is_modern: false,
        }
    }

    /// A server on the network that was asked nothing yet.
    #[must_use]
    pub(crate) fn of_http(http: Http) -> Self {
        let way = Way::Http(Box::new(http));
        Self {
            way,
            is_modern: false,
        }
    }

    /// Greets a server whose era is known.
    ///
    /// # Errors
    /// It does not speak it any more.
    pub(crate) async fn greet(&mut self, era: Era, until: Instant) -> Result<Greeted, Gone> {
        let (method, params) = greeting(era);
        if let Way::Http(http) = &mut self.way {
            http.forget_session();
        }
        self.is_modern = era == Era::Modern;
        let answer = match self.reply(method, None, &params, until).await? {
            Reply::Answer(answer) => answer.map_err(|error| {
                let text = quoted(&error.message);
                Gone(format!("it refused to start ({}: {text})", error.code))
            })?,
            Reply::Status(status, text) => return Err(Gone(status_text(status, &text))),
            Reply::NoSession => return Err(Gone("it refused to start".to_owned())),
        };
        match era {
            Era::Modern => discovered(&answer).ok_or_else(|| {
                Gone("its answer to `server/discover` has no version that yoi speaks".to_owned())
            }),
            Era::Legacy => self.initialized(&answer, until).await,
        }
    }

    /// Greets a server of unknown era.
    ///
    /// # Errors
    /// It answers in neither.
    pub(crate) async fn greet_any(&mut self, until: Instant) -> Result<Greeted, Gone> {
        let first = match &mut self.way {
            Way::Child(pipe) => first_of_child(pipe, until).await?,
            Way::Http(http) => first_of_http(http, until).await?,
        };
        match first {
            First::Modern(greeted) => {
                self.is_modern = true;
                Ok(greeted)
            }
            First::Legacy(answer) => self.initialized(&answer, until).await,
            First::Unknown => self.greet(Era::Legacy, until).await,
        }
    }

    /// Ends the greeting of the older era.
    async fn initialized(&mut self, answer: &RawValue, until: Instant) -> Result<Greeted, Gone> {
        let Ok(of) = serde_json::from_str::<Initialized>(answer.get()) else {
            return Err(Gone(
                "its answer to `initialize` names no version".to_owned(),
            ));
        };
        if !LEGACY.contains(&of.protocol_version.as_str()) {
            let version = quoted(&of.protocol_version);
            return Err(Gone(format!(
                "it speaks version {version} of the protocol, which yoi does not"
            )));
        }
        let line = wire::request(None, "notifications/initialized", json!({})).map_err(Gone)?;
        match &mut self.way {
            Way::Child(pipe) => pipe.write(&line).await?,
            Way::Http(http) => http.agree(&of.protocol_version, line, until).await?,
        }
        Ok(Greeted {
            era: Era::Legacy,
            has: Has::of(&of.capabilities),
            protocol: of.protocol_version,
            server: short(of.server_info),
        })
    }

    /// What it defines, and what is wrong with others. Prompts that it does not list cost no tools.
    ///
    /// # Errors
    /// It is gone or late, or answers with an error, with no list of tools or with one that is too long.
    pub(crate) async fn definitions(
        &mut self,
        has: Has,
        until: Instant,
    ) -> Result<(Definitions, Vec<String>), Gone> {
        match &mut self.way {
            Way::Child(pipe) => pipe.is_stale = false,
            Way::Http(http) => http.beside.is_stale = false,
        }
        let mut problems = Problems::default();
        let mut tools = Vec::<PinnedTool>::new();
        if has.tools {
            let listed = self.list("tools", MAX_TOOLS, until, &mut problems, |tool| {
                let tool = definition::pinned(tool)?;
                if tools.iter().any(|other| other.name == tool.name) {
                    let name = authority::text::escape_line(&tool.name);
                    return Err(format!("tool `{name}` is listed twice"));
                }
                tools.push(tool);
                Ok(())
            });
            listed.await?;
        }
        let mut prompts = Vec::<PinnedPrompt>::new();
        if has.prompts {
            let listed = self.list("prompts", MAX_PROMPTS, until, &mut problems, |prompt| {
                let prompt = definition::pinned_prompt(prompt)?;
                if prompts.iter().any(|other| other.name == prompt.name) {
                    let name = authority::text::escape_line(&prompt.name);
                    return Err(format!("prompt `{name}` is listed twice"));
                }
                prompts.push(prompt);
                Ok(())
            });
            let listed = listed.await;
            if let Err(gone) = listed {
                if self.has_ended() || Instant::now() >= until {
                    return Err(gone);
                }
                problems.push(format!("its prompts are left out: {}", gone.0));
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        prompts.sort_by(|a, b| a.name.cmp(&b.name));
        let resources = has.resources;
        let defined = Definitions {
            tools,
            prompts,
            resources,
        };
        Ok((defined, problems.told()))
    }

    /// Hands on all of a list of it, at most so many. A cursor that is null or comes again ends the list.
    async fn list(
        &mut self,
        what: &'static str,
        most: usize,
        until: Instant,
        problems: &mut Problems,
        mut each: impl FnMut(&RawValue) -> Result<(), String>,
    ) -> Result<(), Gone> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            #[serde(default, borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(default, borrow)]
            prompts: Vec<&'a RawValue>,
            #[serde(default)]
            next_cursor: Option<Value>,
        }
        let method = format!("{what}/list");
        let mut listed = 0;
        let mut bytes = 0;
        let mut cursors = BTreeSet::new();
        let mut cursor = None::<Value>;
        for _ in 0..MAX_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let answer = self.ask(&method, None, params, until).await?;
            let answer = answer.map_err(|error| refusal(&error))?;
            bytes += answer.get().len();
            if bytes > MAX_LIST {
                let most = MAX_LIST >> 20;
                return Err(Gone(format!("its list of {what} is over {most} MiB")));
            }
            let page: Page<'_> = serde_json::from_str(answer.get())
                .map_err(|_| Gone(format!("its answer to `{method}` is no list")))?;
            let all = match what {
                "tools" => page.tools,
                _ => page.prompts,
            };
            for one in all {
                listed += 1;
                if listed > most {
                    problems.push(format!(
                        "it has more than {most} {what}; the others are left out"
                    ));
                    return Ok(());
                }
                if let Err(why) = each(one) {
                    problems.push(why);
                }
            }
            cursor = page.next_cursor.filter(|cursor| !cursor.is_null());
            match &cursor {
                None => return Ok(()),
                Some(next) if next.to_string().len() > MAX_CURSOR => {
                    problems.push(format!("its list of {what} goes on at a place whose name is too long; the others are left out"));
                    return Ok(());
                }
                Some(next) if !cursors.insert(next.to_string()) => {
                    problems.push(format!("its list of {what} comes back to an earlier page"));
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        problems.push(format!(
            "its list of {what} has more than {MAX_PAGES} pages; the others are left out"
        ));
        Ok(())
    }

    /// Asks it; `about` is what the request names. Without an answer in time a child can only be ended.
    ///
    /// # Errors
    /// It is gone, or late.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        about: Option<&About<'_>>,
        params: impl Serialize,
        until: Instant,
    ) -> Result<Answer, Gone> {
        let mut reply = self.reply(method, about, &params, until).await?;
        if matches!(reply, Reply::NoSession) {
            // The request was not carried out.
            self.greet(Era::Legacy, until).await?;
            reply = self.reply(method, about, &params, until).await?;
        }
        answer_of(reply)
    }

    /// Asks for what changes nothing, and a child also for what of that comes meanwhile; each is answered as its answer comes, with
    /// the warning. What has no answer is left in `open`. Of several calls of a child, it is not known which one a question to a person is of.
    ///
    /// # Errors
    /// It is gone, late, or nobody waits any more; and until when it had time.
    pub(crate) async fn ask_all(
        &mut self,
        reads: &Reads,
        open: &mut Vec<ReadCall>,
        mut warning: Option<String>,
    ) -> Result<(), (Gone, Instant)> {
        *self.agreed() = Agreed::default();
        let is_modern = self.is_modern;
        let mut behind = None;
        let mut were_many = false;
        let mut until = Instant::now();
        loop {
            let is_child = matches!(self.way, Way::Child(_));
            while (is_child || open.is_empty())
                && let Some(next) = reads.next(&mut behind, open)
            {
                until = until.max(next.until);
                let method = next.method;
                let params = next.params.clone();
                open.push(next);
                were_many |= open.len() > 1;
                if let Way::Child(pipe) = &mut self.way {
                    let sent = tokio::select! {
                        sent = timeout_at(until, pipe.send(is_modern, method, &params)) => sent.unwrap_or_else(|_| Err(unread())),
                        () = nobody_waits(open) => Err(unwanted()),
                    };
                    let id = sent.map_err(|gone| (gone, until))?;
                    if let Some(call) = open.last_mut() {
                        call.id = id;
                    }
                }
            }
            let answered = match &mut self.way {
                _ if open.is_empty() => return Ok(()),
                Way::Child(pipe) => {
                    let ids: Vec<u64> = open.iter().map(|call| call.id).collect();
                    let line = tokio::select! {
                        line = pipe.line(until) => line,
                        () = nobody_waits(open) => Err(unwanted()),
                        () = reads.added() => continue,
                    };
                    let line = line.map_err(|gone| (gone, until))?;
                    match pipe.heed(&line, until).await {
                        Ok(Some((id, answer))) if ids.contains(&id) => Ok((id, answer)),
                        Ok(_) => continue,
                        Err(gone) => Err(gone),
                    }
                }
                // One at a time: the others keep their places, and a fault is of this one alone.
                Way::Http(_) => {
                    let Some(mut call) = open.pop() else {
                        return Ok(());
                    };
                    let method = call.method;
                    let until = call.until;
                    let params = call.params.clone();
                    let (about, left) = call.parts();
                    let answer = tokio::select! {
                        answer = self.ask(method, about.as_ref(), &params, until) => answer,
                        () = left => Err(unwanted()),
                    };
                    let id = call.id;
                    open.push(call);
                    answer.map(|answer| (id, answer))
                }
            };
            let (id, answer) = answered.map_err(|gone| (gone, until))?;
            if let Way::Child(pipe) = &mut self.way {
                pipe.go_on();
            }
            let asked = std::mem::take(self.agreed()).open();
            if asked.is_some() && were_many && is_child {
                warning.get_or_insert_with(|| ASKED_AMONG_OTHERS.to_owned());
            }
            let at = open.iter().rposition(|call| call.id == id);
            if let Some(at) = at {
                open.remove(at).answer(Ok(Called {
                    answer,
                    asked: asked.filter(|_| !(were_many && is_child)),
                    warning: warning.take(),
                }));
            }
        }
    }

    async fn reply(
        &mut self,
        method: &str,
        about: Option<&About<'_>>,
        params: impl Serialize,
        until: Instant,
    ) -> Result<Reply, Gone> {
        match &mut self.way {
            Way::Child(pipe) => {
                let sent = timeout_at(until, pipe.send(self.is_modern, method, params)).await;
                let id = sent.unwrap_or_else(|_| Err(unread()))?;
                Ok(Reply::Answer(pipe.answer(&[id], until).await?.1))
            }
            Way::Http(http) => {
                let asked = http.ask(self.is_modern, method, about, params, until);
                asked.await
            }
        }
    }

    /// Reads what a child writes that was asked nothing; resolves when it is gone, or wrote too much.
    pub(crate) async fn drain(&mut self) -> Gone {
        match &mut self.way {
            Way::Child(pipe) => pipe.drain().await,
            Way::Http(_) => std::future::pending().await,
        }
    }

    /// Whether it said that its tools changed, after they were listed.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.way {
            Way::Child(pipe) => pipe.is_stale,
            Way::Http(http) => http.beside.is_stale,
        }
    }

    /// What it is told when it asks a person.
    pub(crate) fn agreed(&mut self) -> &mut Agreed {
        match &mut self.way {
            Way::Child(pipe) => &mut pipe.agreed,
            Way::Http(http) => &mut http.beside.agreed,
        }
    }

    /// Whether it speaks the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Whether the last request may have been carried out.
    pub(crate) fn was_asked(&self) -> bool {
        match &self.way {
            Way::Child(_) => true,
            Way::Http(http) => http.was_sent(),
        }
    }

    /// Whether its process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.way {
            Way::Child(pipe) => pipe.has_ended(),
            Way::Http(_) => false,
        }
    }

    /// The end of its standard error.
    #[must_use]
    pub(crate) fn stderr(&self) -> String {
        match &self.way {
            Way::Child(pipe) => pipe.stderr(),
            Way::Http(_) => String::new(),
        }
    }

    /// Ends it: the input of a child is closed, then it gets `SIGTERM`, then `SIGKILL`; a session is closed.
    pub(crate) async fn end(self) {
        match self.way {
            Way::Child(pipe) => pipe.end().await,
            Way::Http(http) => http.end().await,
        }
    }
}

/// A question of a server that was called more than once at the time.
const ASKED_AMONG_OTHERS: &str = "an MCP server asked a person while several calls of it ran, and was told that nobody answered; have its tools called one at a time";

/// The answer in what a server replied.
fn answer_of(reply: Reply) -> Result<Answer, Gone> {
    match reply {
        Reply::Answer(answer) => Ok(answer),
        // What stands between may have passed it on.
        Reply::Status(status @ 500.., text) => Err(Gone(status_text(status, &text))),
        Reply::Status(status, text) => Ok(Err(RpcError::new(
            status.into(),
            status_text(status, &text),
        ))),
        Reply::NoSession => Err(Gone("it does not keep its sessions".to_owned())),
    }
}

/// It does not take what it is sent.
fn unread() -> Gone {
    Gone("it did not read in time".to_owned())
}

/// All who asked have gone.
fn unwanted() -> Gone {
    Gone("nobody waits for its answers".to_owned())
}

/// What is wrong with a list: the first problems, and how many more there are.
#[derive(Default)]
struct Problems {
    first: Vec<String>,
    more: usize,
}

impl Problems {
    fn push(&mut self, problem: String) {
        match self.first.len() < MAX_PROBLEMS {
            true => self.first.push(problem),
            false => self.more += 1,
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.first.push(format!("and {} more problems", self.more));
        }
        self.first
    }
}

/// A text of a server in an error.
fn quoted(text: &str) -> String {
    escape_within(text, Lines::One, MAX_QUOTE)
}

/// What a status of HTTP says.
fn status_text(status: u16, text: &str) -> String {
    let means = match status {
        401 | 403 => ": it wants a key, or another one",
        300..=399 => ": an address that moved has to be added anew",
        _ => "",
    };
    match text.trim() {
        "" => format!("it answered with the status {status}{means}"),
        text => format!(
            "it answered with the status {status}{means} ({})",
            quoted(text)
        ),
    }
}

/// Who a server says that it is, as far as that is kept.
fn short(info: ServerInfo) -> ServerInfo {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_QUOTE));
        text
    };
    ServerInfo {
        name: cut(info.name),
        version: cut(info.version),
    }
}

fn refusal(error: &RpcError) -> Gone {
    let text = quoted(&error.message);
    Gone(format!("it answered with error {} ({text})", error.code))
}

/// What a modern answer says; none for any other.
fn discovered(answer: &RawValue) -> Option<Greeted> {
    let of: Discovered = serde_json::from_str(answer.get()).ok()?;
    let told = of.meta.get("io.modelcontextprotocol/serverInfo");
    let told = told.and_then(|info| ServerInfo::deserialize(info).ok());
    of.supported_versions
        .iter()
        .any(|version| version == MODERN)
        .then(|| Greeted {
            era: Era::Modern,
            protocol: MODERN.to_owned(),
            has: Has::of(&of.capabilities),
            server: short(told.unwrap_or(of.server_info)),
        })
}
