//! One HTTP/1.1 connection to one endpoint over [`authority::Net`], kept between requests.
//!
//! Nothing runs in the background: the connection is polled by whoever waits for it, so an idle endpoint costs no
//! wake-up, and dropping a request's future ends it. Bodies go out from the projection's shared chunks with their
//! length known. Redirects are not followed, compression is not asked for, a proxy is not used.

mod base_url;
mod line;
mod tls;
mod upload;

pub use base_url::{BadUrl, BaseUrl};

use crate::failure::{Cause, Failure};
use authority::{ErrorKind, Net};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::http::{HeaderMap, Method, StatusCode, header};
use line::Line;
use llm_worker::Body;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use upload::Upload;

/// The most bytes of one answer.
pub const MAX_RESPONSE: u64 = 64 << 20;

/// The most bytes of an error's body that are read.
pub const MAX_ERROR_BODY: usize = 64 << 10;

/// How long the end of a body that is already answered is waited for, before the connection is given up instead.
const DRAIN: Duration = Duration::from_millis(250);

/// How long an unused connection is trusted: what lies between may forget it without a word, and a request on it
/// would then wait for the whole of [`Timeouts::first_byte`].
const IDLE: Duration = Duration::from_secs(60);

/// How long each wait may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Resolving, connecting and shaking hands.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body: a large prompt is read in this time.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub between_bytes: Duration,
}

impl Timeouts {
    /// For vendors and for local servers that read a long prompt slowly.
    pub const USUAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(120),
        between_bytes: Duration::from_secs(60),
    };
}

/// An endpoint and the connection to it.
pub(crate) struct Client {
    base: BaseUrl,
    net: Net,
    timeouts: Timeouts,
    pub(crate) idle: Duration,
    tls: tls::Tls,
    kept: Mutex<Option<(Line, Instant)>>,
}

/// What goes up.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) bearer: Option<&'a str>,
    pub(crate) body: Option<&'a Body>,
}

impl Client {
    pub(crate) fn new(base: BaseUrl, net: Net, timeouts: Timeouts) -> Self {
        Self { base, net, timeouts, idle: IDLE, tls: tls::Tls::default(), kept: Mutex::new(None) }
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    /// Sends, and waits for the head of the answer. A kept connection that turns out to be dead before any answer
    /// is replaced once: the server had closed it while nobody looked.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Result<Answer<'_>, Failure> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((line, since)) = kept
            && since.elapsed() < self.idle
            && let Ok(answer) = self.exchange(line, request).await?
        {
            return Ok(answer);
        }
        let line = self.dial().await?;
        self.exchange(line, request).await?.map_err(|error| match error.is_parse() {
            true => self.failure(Cause::Malformed, &format!("not an HTTP/1.1 answer: {error}")),
            false => self.failure(Cause::Cut, &format!("the connection ended before an answer: {}", chain(&error))),
        })
    }

    async fn exchange(&self, mut line: Line, request: &Request<'_>) -> Result<hyper::Result<Answer<'_>>, Failure> {
        let until = Instant::now() + self.timeouts.first_byte;
        let sent = timeout_at(until, line.send(self.http(request)?)).await;
        let head = sent.map_err(|_| self.late("no answer", self.timeouts.first_byte))?;
        Ok(head.map(|head| self.answer(line, head, until)))
    }

    fn http(&self, request: &Request<'_>) -> Result<hyper::Request<Upload>, Failure> {
        let mut builder = hyper::Request::builder()
            .method(&request.method)
            .uri(format!("{}{}", self.base.path(), request.path))
            .header(header::HOST, self.base.host_header())
            .header(header::USER_AGENT, concat!("yoi/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "text/event-stream, application/json");
        if request.body.is_some() {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = request.bearer {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| self.failure(Cause::Denied, "the key holds characters that no header can carry"))?;
            value.set_sensitive(true);
            builder = builder.header(header::AUTHORIZATION, value);
        }
        builder.body(Upload::new(request.body)).map_err(|error| self.failure(Cause::Bug, &error.to_string()))
    }

    async fn dial(&self) -> Result<Line, Failure> {
        let connect = async {
            let stream = self.net.connect(self.base.host(), self.base.port(), self.timeouts.connect).await;
            let stream = stream.map_err(|error| match error.kind() {
                ErrorKind::Denied | ErrorKind::Revoked => Failure::new(Cause::Denied, error.to_string()),
                ErrorKind::FixInput | ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Cancelled => {
                    self.failure(Cause::Connect, &error.to_string())
                }
                ErrorKind::Bug => Failure::new(Cause::Bug, error.to_string()),
            })?;
            let secured = if self.base.is_tls() {
                Line::over(
                    self.tls
                        .secure(self.base.host(), stream)
                        .await
                        .map_err(|(cause, why)| self.failure(cause, &why))?,
                )
                .await
            } else {
                Line::over(stream).await
            };
            secured.map_err(|error| self.failure(Cause::Connect, &chain(&error)))
        };
        let late = |_| self.failure(Cause::Connect, &format!("no connection within {:?}", self.timeouts.connect));
        timeout(self.timeouts.connect, connect).await.map_err(late)?
    }

    fn answer(&self, line: Line, head: hyper::Response<Incoming>, until: Instant) -> Answer<'_> {
        let (parts, body) = head.into_parts();
        Answer { status: parts.status, headers: parts.headers, client: self, line, body, until, begun: false, seen: 0 }
    }

    pub(crate) fn failure(&self, cause: Cause, what: &str) -> Failure {
        Failure::new(cause, format!("{}: {what}", self.base))
    }

    fn late(&self, what: &str, wait: Duration) -> Failure {
        self.failure(Cause::Timeout, &format!("{what} within {wait:?}"))
    }
}

/// An answer whose body is on the way.
pub(crate) struct Answer<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    client: &'a Client,
    line: Line,
    body: Incoming,
    until: Instant,
    begun: bool,
    seen: u64,
}

impl Answer<'_> {
    /// A header's value, where it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its proper end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let waits = self.client.timeouts;
        let until = if self.begun { Instant::now() + waits.between_bytes } else { self.until };
        let piece = timeout_at(until, self.line.next(&mut self.body)).await;
        let piece = piece.map_err(|_| match self.begun {
            true => self.client.late("the answer stopped: no further byte", waits.between_bytes),
            false => self.client.late("no first byte", waits.first_byte),
        })?;
        self.begun = true;
        let Some(piece) = piece else { return Ok(None) };
        let broken = |error| self.client.failure(Cause::Cut, &format!("the answer was cut: {}", chain(&error)));
        let piece = piece.map_err(broken)?;
        self.seen += piece.len() as u64;
        if self.seen > MAX_RESPONSE {
            return Err(self
                .client
                .failure(Cause::TooLarge, &format!("the answer is over {} MiB", MAX_RESPONSE >> 20)));
        }
        Ok(Some(piece))
    }

    /// The beginning of the body, up to [`MAX_ERROR_BODY`] and as far as it arrives.
    pub(crate) async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY
            && let Ok(Some(piece)) = self.next().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(MAX_ERROR_BODY);
        body
    }

    /// Keeps the connection for the next request, if the body is or soon comes to its end.
    pub(crate) async fn keep(mut self) {
        let rest = async {
            while !self.body.is_end_stream() {
                match self.line.next(&mut self.body).await {
                    Some(Ok(_)) => {}
                    Some(Err(_)) => return false,
                    None => break,
                }
            }
            self.line.is_ready().await
        };
        if timeout(DRAIN, rest).await == Ok(true) {
            *self.client.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.line, Instant::now()));
        }
    }
}

/// An error and what caused it: hyper's own text leaves the cause out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
