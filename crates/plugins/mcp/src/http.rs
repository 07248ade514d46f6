//! A server that is reached over HTTP: each request is a POST of its own, whose answer is one message or a stream of them. A
//! stream that ends before its answer is not resumed.

use crate::elicit::Agreed;
use crate::exchange::{About, Answer, Gone, Heard, MAX_LINE, MAX_QUOTE, Reply};
use crate::pin::Launch;
use crate::wire::{self, FromServer, MODERN, RpcError};
use authority::text::{Lines, escape_within};
use authority::{Net, Secret};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_client::sse::{Sse, SseEvent};
use http_client::{
    BaseUrl, Bytes, HeaderMap, HeaderValue, HttpClient, HttpErrorKind, HttpRequest, HttpResponse,
    Method, StatusCode, Timeouts, Tls, Upload, Url, header,
};
use pod::feature::HostCapability;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest id of a session, and the longest value of a header that names what a request is about, in bytes.
const MAX_SESSION: usize = 1 << 10;
const MAX_NAMED: usize = 4 << 10;

/// How long the end of a session may take.
const END_WAIT: Duration = Duration::from_secs(2);

/// The deadline of a call ends the waits of its exchange.
const WAITS: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    error_body: Duration::from_secs(5),
    ..Timeouts::USUAL
};

const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What a server can be asked twice without a difference.
const IDEMPOTENT: [&str; 4] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
];
const STREAM: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
/// How the headers begin that have arguments.
const MIRRORED: &str = "mcp-param-";
const VERSION: &str = "mcp-protocol-version";

/// A header that has a secret.
#[derive(Clone)]
pub(crate) struct SecretHeader {
    pub(crate) name: String,
    /// What stands before the secret.
    pub(crate) prefix: &'static str,
    pub(crate) secret: Secret,
}

/// The way to a server.
pub(crate) struct Http {
    client: HttpClient,
    /// Path and query.
    target: String,
    secrets: Vec<SecretHeader>,
    /// The number of the last request.
    last: u64,
    /// The session of the older era, and the version that was agreed on in it.
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Whether the last request may have reached the server.
    was_sent: bool,
    pub(crate) beside: Beside,
}

/// What comes beside an answer.
#[derive(Default)]
pub(crate) struct Beside {
    /// Whether a message said that the tools of the server changed.
    pub(crate) is_stale: bool,
    /// What the server is told when it asks a person.
    pub(crate) agreed: Agreed,
}

/// A message to a server.
struct Post<'a> {
    line: Vec<u8>,
    /// None for one without an answer.
    id: Option<u64>,
    method: &'a str,
    about: Option<&'a About<'a>>,
    is_modern: bool,
}

/// How a request ended.
struct Exchanged {
    reply: Reply,
    /// The session that the answer names.
    session: Option<HeaderValue>,
}

/// Why nothing came of one.
struct Failed {
    was_sent: bool,
    gone: Gone,
}

/// The address of a server: https, or one of this machine.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|bad| bad.to_string())?;
    match url.base().is_tls() || is_of_this_machine(url.host()) {
        true => Ok(url),
        false => Err(format!(
            "{} is neither https nor an address of this machine",
            url.base()
        )),
    }
}

fn is_of_this_machine(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// What a server at this address needs: the internet at its host, or exactly its endpoint.
///
/// # Errors
/// As for [`address`].
pub fn reach(url: &str) -> Result<HostCapability, String> {
    let base = address(url)?.base();
    let purpose = Cow::from("mcp");
    let at = base.host_port().to_string();
    Ok(match base.is_public() {
        true => HostCapability::Network {
            purpose,
            hosts: vec![Cow::from(at)].into(),
        },
        false => HostCapability::Endpoint {
            purpose,
            at: vec![Cow::from(at)].into(),
        },
    })
}

/// The headers of a server with their secrets, by the names of these.
pub(crate) fn secret_headers<E>(
    launch: &Launch,
    mut secret: impl FnMut(&str) -> Result<Secret, E>,
) -> Result<Vec<SecretHeader>, E> {
    let bearer = launch
        .bearer
        .iter()
        .map(|id| (header::AUTHORIZATION.as_str(), "Bearer ", id));
    let others = launch
        .headers
        .iter()
        .map(|(name, id)| (name.as_str(), "", id));
    let header = |(name, prefix, id): (&str, &'static str, &String)| {
        Ok(SecretHeader {
            name: name.to_owned(),
            prefix,
            secret: secret(id)?,
        })
    };
    bearer.chain(others).map(header).collect()
}

/// Whether a header of this name can have a secret: it is one, and frames no message of HTTP or of the protocol.
#[must_use]
pub fn is_header(name: &str) -> bool {
    let own = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::ACCEPT,
        header::ACCEPT_ENCODING,
    ];
    let parsed = header::HeaderName::from_bytes(name.as_bytes());
    parsed.is_ok_and(|name| !own.contains(&name) && !name.as_str().starts_with("mcp-"))
}

impl Http {
    pub(crate) fn new(url: &Url, net: Net, secrets: Vec<SecretHeader>) -> Self {
        let base: BaseUrl = url.base();
        Self {
            client: HttpClient::new(base, net, WAITS).secured(Tls::default()),
            target: url.target().to_owned(),
            secrets,
            last: 0,
            session: None,
            version: None,
            was_sent: false,
            beside: Beside::default(),
        }
    }

    /// Whether the last request may have reached the server.
    pub(crate) fn was_sent(&self) -> bool {
        self.was_sent
    }

    /// Goes on in the session of the older era that began, with this version of the protocol, and says so.
    ///
    /// # Errors
    /// The server is not reached, or late.
    pub(crate) async fn agree(
        &mut self,
        version: &str,
        line: Vec<u8>,
        until: Instant,
    ) -> Result<(), Gone> {
        self.version = HeaderValue::from_str(version).ok();
        in_time(until, self.tell(line, false)).await
    }

    /// Forgets the session.
    pub(crate) fn forget_session(&mut self) {
        (self.session, self.version) = (None, None);
    }

    /// Asks in the form of an era.
    ///
    /// # Errors
    /// There is no answer, or none in time; whether the request was carried out is not known if it [was sent](Self::was_sent).
    pub(crate) async fn ask(
        &mut self,
        is_modern: bool,
        method: &str,
        about: Option<&About<'_>>,
        params: impl Serialize,
        until: Instant,
    ) -> Result<Reply, Gone> {
        self.last += 1;
        let id = Some(self.last);
        let line = wire::message(id, is_modern, method, params).map_err(Gone)?;
        let post = Post {
            line,
            id,
            method,
            about,
            is_modern,
        };
        in_time(until, self.post(&post)).await
    }

    /// Sends one request and reads up to its answer.
    async fn post(&mut self, post: &Post<'_>) -> Result<Reply, Gone> {
        self.was_sent = false;
        // Nothing is wrong with the server, and other requests go on.
        if let Err(why) = naming(post) {
            return Ok(Reply::Answer(Err(RpcError::unsent(why))));
        }
        let target = self.target.clone();
        let request = self.request(post, &target).map_err(Gone)?;
        let door = Arc::clone(self.client.net().door());
        // Until more is known.
        self.was_sent = true;
        let mut beside = std::mem::take(&mut self.beside);
        let exchanged = tokio::select! {
            biased;
            () = door.closed() => return Err(Gone("the grant of its address was revoked".to_owned())),
            exchanged = self.exchange(&request, post, &mut beside) => exchanged,
        };
        self.beside = beside;
        let Exchanged { reply, session } = exchanged.map_err(|error| {
            self.was_sent = error.was_sent;
            error.gone
        })?;
        if post.method == "initialize" {
            self.session = session.filter(|id| id.len() <= MAX_SESSION);
        }
        Ok(reply)
    }

    async fn exchange(
        &self,
        request: &HttpRequest<'_>,
        post: &Post<'_>,
        beside: &mut Beside,
    ) -> Result<Exchanged, Failed> {
        let response = self.client.send(request).await.map_err(|error| Failed {
            was_sent: match error.kind {
                HttpErrorKind::Connect(_)
                | HttpErrorKind::Tls
                | HttpErrorKind::Proxy
                | HttpErrorKind::Denied
                | HttpErrorKind::Bug => false,
                HttpErrorKind::Timeout
                | HttpErrorKind::Cut
                | HttpErrorKind::Malformed
                | HttpErrorKind::Encoded
                | HttpErrorKind::TooLarge => true,
            },
            gone: Gone(error.message),
        })?;
        let session = response.headers.get(SESSION).cloned();
        let reply = self.read(response, post, beside).await;
        let reply = reply.map_err(|gone| Failed {
            was_sent: true,
            gone,
        })?;
        Ok(Exchanged { reply, session })
    }

    fn request<'a>(&self, post: &Post<'_>, target: &'a str) -> Result<HttpRequest<'a>, String> {
        let mut headers = naming(post)?;
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::ACCEPT, ACCEPT);
        if !post.is_modern {
            self.add_session(&mut headers);
        }
        self.add_secrets(&mut headers)?;
        Ok(HttpRequest {
            method: Method::POST,
            path: target,
            headers,
            body: Some(Upload::new([Bytes::from(post.line.clone())])),
            once: !IDEMPOTENT.contains(&post.method),
        })
    }

    fn add_session(&self, headers: &mut HeaderMap) {
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
    }

    fn add_secrets(&self, headers: &mut HeaderMap) -> Result<(), String> {
        for of in &self.secrets {
            let words = of.secret.expose().map_err(|error| error.to_string())?;
            // A value may be a secret, so neither is quoted.
            let unfit = || format!("the secret {} cannot be sent as a header", of.secret.id());
            let name = header::HeaderName::from_bytes(of.name.as_bytes()).map_err(|_| unfit())?;
            let value = HeaderValue::from_str(&format!("{}{words}", of.prefix));
            let mut value = value.map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Reads what a server answers to one request.
    async fn read(
        &self,
        mut response: HttpResponse<'_>,
        post: &Post<'_>,
        beside: &mut Beside,
    ) -> Result<Reply, Gone> {
        let status = response.status;
        if status == StatusCode::NOT_FOUND && self.session.is_some() && !post.is_modern {
            return Ok(Reply::NoSession);
        }
        if !status.is_success() {
            let to = response.header("location").map(str::to_owned);
            let body = response.error_body().await;
            // The protocol's errors come with statuses of their own.
            if let FromServer::Answered {
                answer: Err(error), ..
            } = wire::read(&body)
            {
                return Ok(match status.as_u16() {
                    400 | 404 => Reply::Answer(Err(error)),
                    status => Reply::Status(status, error.message),
                });
            }
            let text = match to.filter(|_| status.is_redirection()) {
                Some(to) => format!("it redirects to {to}, which is not followed"),
                None => String::from_utf8_lossy(&body).into_owned(),
            };
            return Ok(Reply::Status(
                status.as_u16(),
                escape_within(&text, Lines::One, MAX_QUOTE),
            ));
        }
        let Some(id) = post.id else {
            response.keep().await;
            return Ok(Reply::Answer(Err(RpcError::default())));
        };
        let is_stream = response
            .header(header::CONTENT_TYPE.as_str())
            .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(STREAM));
        let answer = match is_stream {
            true => {
                self.stream(&mut response, id, post.is_modern, beside)
                    .await?
            }
            false => whole(&mut response, id).await?,
        };
        response.keep().await;
        Ok(Reply::Answer(answer))
    }

    /// Reads messages up to the answer; what the server asks for meanwhile is answered by a request of its own.
    async fn stream(
        &self,
        response: &mut HttpResponse<'_>,
        id: u64,
        is_modern: bool,
        beside: &mut Beside,
    ) -> Result<Answer, Gone> {
        let mut sse = Sse::default();
        let mut events = Vec::new();
        let mut heard = Heard::default();
        loop {
            let piece = response.next().await.map_err(|error| Gone(error.message))?;
            let is_end = piece.is_none();
            match piece {
                Some(piece) => sse.push(&piece, &mut events),
                None => std::mem::take(&mut sse).finish(&mut events).map(drop),
            }
            .map_err(|_| Gone("a message of it is over 4 MiB".to_owned()))?;
            for SseEvent { data, .. } in events.drain(..) {
                heard.add(data.len())?;
                if heard.is_turn_over() {
                    tokio::task::yield_now().await;
                }
                match wire::read(&data) {
                    FromServer::Answered {
                        id: Some(of),
                        answer,
                    } if of == id => return Ok(answer),
                    FromServer::Asked(asked) => {
                        let line = wire::answer(&asked, &mut beside.agreed).map_err(Gone)?;
                        self.tell(line, is_modern).await?;
                    }
                    FromServer::Told { method } => {
                        beside.is_stale |= wire::is_change(&method);
                    }
                    FromServer::Answered { .. } | FromServer::Noise => {}
                }
            }
            if is_end {
                return Err(Gone("it ended its answer before the result".to_owned()));
            }
        }
    }

    /// Sends a message that has no answer. One that is refused changes nothing.
    async fn tell(&self, line: Vec<u8>, is_modern: bool) -> Result<(), Gone> {
        let post = Post {
            line,
            id: None,
            method: "",
            about: None,
            is_modern,
        };
        let request = self.request(&post, &self.target).map_err(Gone)?;
        let response = self.client.send(&request).await;
        response.map_err(|error| Gone(error.message))?.keep().await;
        Ok(())
    }

    /// Ends the session of the older era, if the server takes that.
    pub(crate) async fn end(self) {
        if self.session.is_none() {
            return;
        }
        let mut headers = HeaderMap::new();
        self.add_session(&mut headers);
        if self.add_secrets(&mut headers).is_err() {
            return;
        }
        let request = HttpRequest {
            method: Method::DELETE,
            path: &self.target,
            headers,
            body: None,
            once: false,
        };
        // Many servers refuse it.
        let ended = async {
            if let Ok(response) = self.client.send(&request).await {
                response.keep().await;
            }
        };
        tokio::time::timeout(END_WAIT, ended).await.ok();
    }
}

async fn in_time<T>(
    until: Instant,
    asked: impl Future<Output = Result<T, Gone>>,
) -> Result<T, Gone> {
    let late = |_| Gone("it did not answer in time".to_owned());
    timeout_at(until, asked).await.map_err(late)?
}

/// An answer that is one document.
async fn whole(response: &mut HttpResponse<'_>, id: u64) -> Result<Answer, Gone> {
    let mut body = Vec::new();
    while let Some(piece) = response.next().await.map_err(|error| Gone(error.message))? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_LINE {
            return Err(Gone(format!("its answer is over {} MiB", MAX_LINE >> 20)));
        }
    }
    match wire::read(&body) {
        FromServer::Answered {
            id: Some(of),
            answer,
        } if of == id => Ok(answer),
        // An error in what was asked has no id where that could not be read.
        FromServer::Answered {
            id: None,
            answer: Err(error),
        } => Ok(Err(error)),
        FromServer::Answered { .. }
        | FromServer::Asked(_)
        | FromServer::Told { .. }
        | FromServer::Noise => Err(Gone(
            "it answered with something else than a result".to_owned(),
        )),
    }
}

/// The headers that say what a modern request is about.
fn naming(post: &Post<'_>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if !post.is_modern {
        return Ok(headers);
    }
    headers.insert(VERSION, HeaderValue::from_static(MODERN));
    if post.id.is_some() {
        headers.insert("mcp-method", plain("the method", post.method)?);
    }
    if let Some(about) = post.about {
        let what = "the name or address of what is asked for";
        headers.insert("mcp-name", plain(what, about.name)?);
        for (name, value) in &about.mirrored {
            let what = format!("the argument for the header {MIRRORED}{name}");
            let name = format!("{MIRRORED}{name}");
            let name = header::HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|error| error.to_string())?;
            headers.insert(name, plain(&what, value)?);
        }
    }
    Ok(headers)
}

/// The value of a header that repeats a part of a request: as it is, or in base 64 where HTTP would change it.
fn plain(what: &str, text: &str) -> Result<HeaderValue, String> {
    if text.len() > MAX_NAMED {
        return Err(format!(
            "{what} is too long for a header: it has over {MAX_NAMED} bytes"
        ));
    }
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    let value = match is_plain {
        true => HeaderValue::from_str(text),
        false => HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))),
    };
    value.map_err(|_| format!("{what} cannot be sent as a header"))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a rig that fails is a failed test"
)]
mod tests {
    use super::*;
    use authority::HostPort;

    #[tokio::test]
    async fn what_no_header_can_have_is_not_sent() {
        let net = Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", 9)]);
        let url = address("http://127.0.0.1:9/mcp").unwrap();
        let mut http = Http::new(&url, net, Vec::new());
        let long = "x".repeat(MAX_NAMED + 1);
        let of = |name: &'static str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for (name, mirrored, what) in [
            (
                &*long,
                Vec::new(),
                "the name or address of what is asked for",
            ),
            (
                "t",
                of("at", &long),
                "the argument for the header mcp-param-at",
            ),
        ] {
            let about = About { name, mirrored };
            let until = Instant::now() + Duration::from_secs(60);
            let params = serde_json::json!({});
            let asked = http
                .ask(true, "tools/call", Some(&about), params, until)
                .await;
            let why = format!("{what} is too long for a header: it has over 4096 bytes");
            let unsent = RpcError::unsent(why);
            assert!(
                matches!(asked, Ok(Reply::Answer(Err(error))) if error == unsent),
                "{what}"
            );
            assert!(!http.was_sent());
        }
    }
}
