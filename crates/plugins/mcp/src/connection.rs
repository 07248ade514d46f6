//! One server that runs: its greeting in the era that it speaks, its definitions, and one request after the other.

use crate::definition;
use crate::pin::{Era, PinnedTool, ServerInfo};
use crate::wire::{self, FromServer, LEGACY, MODERN, RpcError};
use authority::text::{Lines, escape_within};
use authority::{ChildExit, Talk};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest line of a server, in bytes: a picture is one.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// Most lines of a server after each request, and most bytes: what writes more is ended, also while it is idle.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 4 * MAX_LINE;

/// After how many lines, or bytes of them, others have their turn.
const TURN_LINES: usize = 32;
const TURN_BYTES: usize = 64 << 10;

/// How long a probe for the modern era waits before the other era is tried as well.
const PROBE_WAIT: Duration = Duration::from_secs(5);

/// Most pages of a list, and most tools and bytes of all of them.
const MAX_PAGES: usize = 64;
const MAX_TOOLS: usize = 512;
const MAX_LIST: usize = 4 << 20;

/// The longest text that names the next page, in bytes.
const MAX_CURSOR: usize = 4 << 10;

/// Most problems of a list that are told one by one.
const MAX_PROBLEMS: usize = 32;

/// How long an end that was noticed may take, until its reason is known.
const END_WAIT: Duration = Duration::from_millis(200);

/// How long a server may take to end after its input was closed, and again after `SIGTERM`.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// The longest quote of what a server printed, in bytes, and of its standard error.
const MAX_QUOTE: usize = 512;
const MAX_STDERR: usize = 8 << 10;

/// The code of servers that speak the modern era alone.
const UNSUPPORTED_VERSION: i64 = -32022;

/// A server that cannot be asked any more, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Gone(pub String);

impl Gone {
    /// The same, with what the server wrote to its standard error.
    #[must_use]
    pub(crate) fn of(self, server: &Connection) -> Self {
        match server.stderr().trim() {
            "" => self,
            text => {
                let text = escape_within(text, Lines::One, MAX_STDERR);
                Self(format!("{}; it wrote: {text}", self.0))
            }
        }
    }
}

/// The answer to one request: a result, or the server's error.
pub(crate) type Answer = Result<Box<RawValue>, RpcError>;

/// Who answered, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Greeted {
    pub era: Era,
    pub protocol: String,
    pub server: ServerInfo,
    /// Whether it says that it has tools.
    pub has_tools: bool,
}

/// A server that runs. Dropped, it is killed with all that it started.
pub(crate) struct Connection {
    talk: Talk,
    /// As log lines name it.
    name: String,
    modern: bool,
    /// The number of the last request.
    last: u64,
    /// What it wrote since then.
    heard: Heard,
    /// Whether it said that its tools changed, after they were listed.
    pub(crate) is_stale: bool,
}

/// Finds out which era a server speaks: one modern request, and where its answer is not a modern one, `initialize`. `start`
/// starts it: a second time where it ends at a request that it does not know.
///
/// # Errors
/// It does not start, or answers neither.
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
        Ok(Connection::new(talk, name))
    };
    let mut first = begin().await?;
    match first.greet_any(until).await {
        Ok(greeted) => return Ok((first, greeted)),
        Err(gone) if first.talk.has_ended() => {
            tracing::debug!(server = name, "ended at the modern request: {}", gone.0);
        }
        Err(gone) => return Err(gone.of(&first)),
    }
    drop(first);
    let mut second = begin().await?;
    match second.greet(Era::Legacy, until).await {
        Ok(greeted) => Ok((second, greeted)),
        Err(gone) => Err(gone.of(&second)),
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
    /// A server that was started and asked nothing yet.
    #[must_use]
    pub(crate) fn new(talk: Talk, name: &str) -> Self {
        Self {
            talk,
            name: name.to_owned(),
            modern: false,
            last: 0,
            heard: Heard::default(),
            is_stale: false,
        }
    }

    /// Greets a server whose era is known.
    ///
    /// # Errors
    /// It does not speak it any more.
    pub(crate) async fn greet(&mut self, era: Era, until: Instant) -> Result<Greeted, Gone> {
        let id = self.send_greeting(era).await?;
        let answer = self.answer(&[id], until).await?.1;
        let answer = answer.map_err(|error| {
            let text = quoted(&error.message);
            Gone(format!("it refused to start ({}: {text})", error.code))
        })?;
        match era {
            Era::Modern => discovered(&answer)
                .ok_or_else(|| {
                    Gone(
                        "its answer to `server/discover` has no version that yoi speaks".to_owned(),
                    )
                })
                .inspect(|_| self.modern = true),
            Era::Legacy => self.initialized(&answer).await,
        }
    }

    /// Sends both greetings, the second one where the first has no modern answer in time.
    async fn greet_any(&mut self, until: Instant) -> Result<Greeted, Gone> {
        let modern = self.send_greeting(Era::Modern).await?;
        let early = until.min(Instant::now() + PROBE_WAIT);
        match timeout_at(early, self.answer(&[modern], until)).await {
            Ok(answered) => {
                if let Some(greeted) = answered?.1.ok().as_deref().and_then(discovered) {
                    self.modern = true;
                    return Ok(greeted);
                }
                return self.greet(Era::Legacy, until).await;
            }
            // Slow to start: it will read both.
            Err(_late) => {}
        }
        let legacy = self.send_greeting(Era::Legacy).await?;
        let mut refused = None;
        for _ in 0..2 {
            let (id, answer) = match refused {
                None => self.answer(&[modern, legacy], until).await?,
                Some(_) => self.answer(&[modern], until).await?,
            };
            match answer {
                Ok(answer) if id == modern => {
                    if let Some(greeted) = discovered(&answer) {
                        self.modern = true;
                        return Ok(greeted);
                    }
                }
                Ok(answer) => return self.initialized(&answer).await,
                Err(error) if id == legacy && error.code == UNSUPPORTED_VERSION => {
                    refused = Some(error)
                }
                Err(error) if id == legacy => return Err(refusal(&error)),
                Err(_) => {}
            }
        }
        match refused {
            Some(error) => Err(refusal(&error)),
            None => {
                let (_, answer) = self.answer(&[legacy], until).await?;
                self.initialized(&answer.map_err(|error| refusal(&error))?)
                    .await
            }
        }
    }

    async fn send_greeting(&mut self, era: Era) -> Result<u64, Gone> {
        match era {
            Era::Modern => {
                self.modern = true;
                let sent = self.send("server/discover", json!({})).await;
                self.modern = false;
                sent
            }
            Era::Legacy => {
                let newest = LEGACY.first().copied().unwrap_or_default();
                let params = json!({ "protocolVersion": newest, "capabilities": {}, "clientInfo": wire::client() });
                self.send("initialize", params).await
            }
        }
    }

    async fn initialized(&mut self, answer: &RawValue) -> Result<Greeted, Gone> {
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
        self.write(&line).await?;
        Ok(Greeted {
            era: Era::Legacy,
            has_tools: of.capabilities.get("tools").is_some(),
            protocol: of.protocol_version,
            server: short(of.server_info),
        })
    }

    /// Lists its tools, sorted by name, and what is wrong with others. A cursor that is null or comes again ends the list.
    ///
    /// # Errors
    /// It is gone, or answers with an error, with no list or with one that is too long.
    pub(crate) async fn tools(
        &mut self,
        until: Instant,
    ) -> Result<(Vec<PinnedTool>, Vec<String>), Gone> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            #[serde(default, borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(default)]
            next_cursor: Option<Value>,
        }
        self.is_stale = false;
        let (mut tools, mut problems) = (Vec::<PinnedTool>::new(), Problems::default());
        let (mut listed, mut bytes) = (0, 0);
        let (mut cursors, mut cursor) = (BTreeSet::new(), None::<Value>);
        for _ in 0..MAX_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let answer = self.ask("tools/list", params, until).await?;
            let answer = answer.map_err(|error| refusal(&error))?;
            bytes += answer.get().len();
            if bytes > MAX_LIST {
                let most = MAX_LIST >> 20;
                return Err(Gone(format!("its list of tools is over {most} MiB")));
            }
            let page: Page<'_> = serde_json::from_str(answer.get())
                .map_err(|_| Gone("its answer to `tools/list` is no list".to_owned()))?;
            for tool in page.tools {
                listed += 1;
                if listed > MAX_TOOLS {
                    problems.push(format!(
                        "it has more than {MAX_TOOLS} tools; the others are left out"
                    ));
                    return Ok((sorted(tools), problems.told()));
                }
                match definition::pinned(tool) {
                    Ok(tool) if tools.iter().any(|other| other.name == tool.name) => {
                        problems.push(format!(
                            "tool `{}` is listed twice",
                            authority::text::escape_line(&tool.name)
                        ));
                    }
                    Ok(tool) => tools.push(tool),
                    Err(why) => problems.push(why),
                }
            }
            cursor = page.next_cursor.filter(|cursor| !cursor.is_null());
            match &cursor {
                None => return Ok((sorted(tools), problems.told())),
                Some(next) if next.to_string().len() > MAX_CURSOR => {
                    problems.push("its list of tools goes on at a place whose name is too long; the others are left out".to_owned());
                    return Ok((sorted(tools), problems.told()));
                }
                Some(next) if !cursors.insert(next.to_string()) => {
                    problems.push("its list of tools comes back to an earlier page".to_owned());
                    return Ok((sorted(tools), problems.told()));
                }
                Some(_) => {}
            }
        }
        problems.push(format!(
            "its list of tools has more than {MAX_PAGES} pages; the others are left out"
        ));
        Ok((sorted(tools), problems.told()))
    }

    /// Asks it. Without an answer in time the server can only be ended.
    ///
    /// # Errors
    /// It is gone, or late.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: impl Serialize,
        until: Instant,
    ) -> Result<Answer, Gone> {
        let id = self.send(method, params).await?;
        Ok(self.answer(&[id], until).await?.1)
    }

    async fn send(&mut self, method: &str, params: impl Serialize) -> Result<u64, Gone> {
        #[derive(Serialize)]
        struct Modern<P> {
            #[serde(flatten)]
            params: P,
            _meta: Value,
        }
        self.last += 1;
        self.heard = Heard::default();
        let id = Some(self.last);
        let line = match self.modern {
            true => wire::request(
                id,
                method,
                Modern {
                    params,
                    _meta: wire::meta(),
                },
            ),
            false => wire::request(id, method, params),
        };
        self.write(&line.map_err(Gone)?).await?;
        Ok(self.last)
    }

    async fn write(&mut self, line: &[u8]) -> Result<(), Gone> {
        if let Err(error) = self.talk.send(line).await {
            return Err(match error.kind() {
                authority::ErrorKind::FixInput => Gone(error.to_string()),
                _ => self.ended().await,
            });
        }
        Ok(())
    }

    /// The answer to one of these requests, and to which. Answers what the server asks for meanwhile.
    async fn answer(&mut self, ids: &[u64], until: Instant) -> Result<(u64, Answer), Gone> {
        let answered = async {
            loop {
                if let Some((Some(id), answer)) = self.next().await?
                    && ids.contains(&id)
                {
                    return Ok((id, answer));
                }
            }
        };
        let late = |_| Gone("it did not answer in time".to_owned());
        timeout_at(until, answered).await.map_err(late)?
    }

    /// Reads one line, and answers it where it asks for something; gives answers. Lines that are there at once take turns
    /// with all else of this thread.
    async fn next(&mut self) -> Result<Option<(Option<u64>, Answer)>, Gone> {
        if self.heard.is_turn_over() {
            tokio::task::yield_now().await;
            self.heard.turn = (0, 0);
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
        match wire::read(&line) {
            FromServer::Answered { id, answer } => return Ok(Some((id, answer))),
            FromServer::Asked { id, method } => {
                let answer = wire::answer(&id, &method).map_err(Gone)?;
                self.write(&answer).await?;
            }
            FromServer::Told { method } => {
                self.is_stale |= method == "notifications/tools/list_changed";
            }
            FromServer::Noise => {
                let text =
                    String::from_utf8_lossy(line.get(..MAX_QUOTE).unwrap_or(&line)).into_owned();
                tracing::debug!(
                    server = self.name,
                    "printed: {}",
                    authority::text::escape_line(&text)
                );
            }
        }
        Ok(None)
    }

    /// Reads what a server writes that was asked nothing; resolves when it is gone, or wrote too much.
    pub(crate) async fn drain(&mut self) -> Gone {
        loop {
            if let Err(gone) = self.next().await {
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

/// Lines of a server and their bytes: all since it was last asked, and those of this turn.
#[derive(Default)]
struct Heard {
    all: (usize, usize),
    turn: (usize, usize),
}

impl Heard {
    fn add(&mut self, bytes: usize) -> Result<(), Gone> {
        for (lines, sum) in [&mut self.all, &mut self.turn] {
            *lines += 1;
            *sum += bytes;
        }
        match self.all.0 > MAX_LINES || self.all.1 > MAX_BYTES {
            true => Err(Gone(format!(
                "it wrote over {MAX_LINES} lines or {} MiB after one request",
                MAX_BYTES >> 20
            ))),
            false => Ok(()),
        }
    }

    fn is_turn_over(&self) -> bool {
        self.turn.0 >= TURN_LINES || self.turn.1 >= TURN_BYTES
    }
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

fn sorted(mut tools: Vec<PinnedTool>) -> Vec<PinnedTool> {
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
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
            has_tools: of.capabilities.get("tools").is_some(),
            server: short(told.unwrap_or(of.server_info)),
        })
}
