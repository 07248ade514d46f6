//! One endpoint and the connection to it, kept between requests. What is asked and answered is not known here.

use crate::error::{Cause, Error};
use crate::line::Line;
use crate::tls::Tls;
use crate::upload::Upload;
use crate::url::BaseUrl;
use authority::{ErrorKind, Net};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The most bytes of one answer.
pub const MAX_RESPONSE: u64 = 64 << 20;

/// The most bytes of an error's body that are read.
pub const MAX_ERROR_BODY: usize = 64 << 10;

/// How long the end of a body that is already answered is waited for, before the connection is given up instead.
const DRAIN: Duration = Duration::from_millis(250);

const USER_AGENT: &str = concat!("yoi/", env!("CARGO_PKG_VERSION"));

/// How long each wait may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Resolving, connecting and shaking hands.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body: a large prompt is read in this time.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub between_bytes: Duration,
    /// The answer in all, while pieces of it come.
    pub whole: Duration,
    /// An error's body in all.
    pub error_body: Duration,
    /// How long an unused connection is trusted: what lies between may forget it without a word, and a request on it
    /// would then wait for the whole of `first_byte`.
    pub idle: Duration,
}

impl Timeouts {
    /// For vendors and for local servers that read a long prompt slowly.
    pub const USUAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(120),
        between_bytes: Duration::from_secs(60),
        // Several times what the longest answer takes.
        whole: Duration::from_secs(3600),
        error_body: Duration::from_secs(10),
        idle: Duration::from_secs(60),
    };
}

/// An endpoint and the connection to it.
pub struct Client {
    base: BaseUrl,
    net: Net,
    timeouts: Timeouts,
    tls: Tls,
    kept: Mutex<Option<(Line, Instant)>>,
}

/// What goes up.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: Method,
    /// What follows the base URL's own path; begins with `/`.
    pub path: &'a str,
    /// Everything but host and length. Without a user agent, yoi's own is added.
    pub headers: HeaderMap,
    /// The body; `None` sends none.
    pub body: Option<Upload>,
}

impl Client {
    /// A client; nothing is connected before the first request. `net` must reach [`BaseUrl::host_port`].
    #[must_use]
    pub fn new(base: BaseUrl, net: Net, timeouts: Timeouts) -> Self {
        Self { base, net, timeouts, tls: Tls::default(), kept: Mutex::new(None) }
    }

    /// Uses these root certificates, which other clients may have read.
    #[must_use]
    pub fn secured(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }

    /// The endpoint.
    #[must_use]
    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// The grant it connects under. An exchange under way does not watch its door: whoever waits selects on it.
    #[must_use]
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Sends, and waits for the head of the answer. A kept connection that ends before a byte of an answer came is
    /// replaced once: the server had closed it while nobody looked.
    ///
    /// # Errors
    /// No connection, no or no valid answer in time, a grant that does not reach the endpoint.
    pub async fn send(&self, request: &Request<'_>) -> Result<Answer<'_>, Error> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((line, since)) = kept
            && since.elapsed() < self.timeouts.idle
        {
            // Connecting asks the door by itself.
            let revoked = |_| Error::new(Cause::Denied, format!("{}: the network grant was revoked", self.base));
            self.net.door().enter().map(drop).map_err(revoked)?;
            match self.exchange(line, request).await? {
                Ok(answer) => return Ok(answer),
                Err(Unanswered { unheard: true, .. }) => {}
                Err(Unanswered { error, .. }) => return Err(self.unanswered(&error)),
            }
        }
        let line = self.dial().await?;
        self.exchange(line, request).await?.map_err(|Unanswered { error, .. }| self.unanswered(&error))
    }

    async fn exchange(&self, mut line: Line, request: &Request<'_>) -> Result<Result<Answer<'_>, Unanswered>, Error> {
        let now = Instant::now();
        let until = now + self.timeouts.first_byte;
        let before = line.heard();
        let sent = timeout_at(until, line.send(self.http(request)?)).await;
        Ok(match sent.map_err(|_| self.late("no answer", self.timeouts.first_byte))? {
            Ok(head) => Ok(self.answer(line, head, until, now + self.timeouts.whole)),
            // Cancelled, it was never sent.
            Err(error) => Err(Unanswered { unheard: error.is_canceled() || line.heard() == before, error }),
        })
    }

    fn unanswered(&self, error: &hyper::Error) -> Error {
        match error.is_parse() {
            true => self.error(Cause::Malformed, &format!("not an HTTP/1.1 answer: {error}")),
            false => self.error(Cause::Cut, &format!("the connection ended before an answer: {}", chain(error))),
        }
    }

    fn http(&self, request: &Request<'_>) -> Result<hyper::Request<Upload>, Error> {
        let bug = |what: &dyn std::fmt::Display| self.error(Cause::Bug, &format!("no request of this: {what}"));
        let mut http = hyper::Request::new(request.body.clone().unwrap_or_default());
        *http.method_mut() = request.method.clone();
        let target = format!("{}{}", self.base.path(), request.path);
        *http.uri_mut() = target.parse().map_err(|error| bug(&error))?;
        let host = HeaderValue::from_str(self.base.host_header()).map_err(|error| bug(&error))?;
        let headers = http.headers_mut();
        headers.clone_from(&request.headers);
        headers.insert(header::HOST, host);
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        Ok(http)
    }

    async fn dial(&self) -> Result<Line, Error> {
        let connect = async {
            let stream = self.net.connect(self.base.host(), self.base.port(), self.timeouts.connect).await;
            let stream = stream.map_err(|error| match error.kind() {
                ErrorKind::Denied | ErrorKind::Revoked => Error::new(Cause::Denied, error.to_string()),
                ErrorKind::FixInput | ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Cancelled => {
                    self.error(Cause::Connect, &error.to_string())
                }
                ErrorKind::Bug => Error::new(Cause::Bug, error.to_string()),
            })?;
            let secured = if self.base.is_tls() {
                Line::over(
                    self.tls.secure(self.base.host(), stream).await.map_err(|(cause, why)| self.error(cause, &why))?,
                )
                .await
            } else {
                Line::over(stream).await
            };
            secured.map_err(|error| self.error(Cause::Connect, &chain(&error)))
        };
        let late = |_| self.error(Cause::Connect, &format!("no connection within {:?}", self.timeouts.connect));
        timeout(self.timeouts.connect, connect).await.map_err(late)?
    }

    fn answer(&self, line: Line, head: hyper::Response<Incoming>, until: Instant, over: Instant) -> Answer<'_> {
        let (parts, body) = head.into_parts();
        let (status, headers, begun, seen) = (parts.status, parts.headers, false, 0);
        Answer { status, headers, client: self, line, body, until, over, begun, seen }
    }

    fn error(&self, cause: Cause, what: &str) -> Error {
        Error::new(cause, format!("{}: {what}", self.base))
    }

    fn late(&self, what: &str, wait: Duration) -> Error {
        self.error(Cause::Timeout, &format!("{what} within {wait:?}"))
    }
}

/// A request that got no answer.
struct Unanswered {
    /// Not a byte came for it.
    unheard: bool,
    error: hyper::Error,
}

/// An answer whose body is on the way.
#[must_use = "the body is still to be read"]
pub struct Answer<'a> {
    /// The status; any but 1xx.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    client: &'a Client,
    line: Line,
    body: Incoming,
    until: Instant,
    /// When the whole of it must be there.
    over: Instant,
    begun: bool,
    seen: u64,
}

impl Answer<'_> {
    /// A header's value, where it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether a body that was cut is told from one that ended: by its length or its last chunk. Otherwise the end of
    /// the connection is its end.
    #[must_use]
    pub fn shows_its_end(&self) -> bool {
        self.headers.contains_key(header::CONTENT_LENGTH) || self.headers.contains_key(header::TRANSFER_ENCODING)
    }

    /// The next piece of the body; `None` at its proper end.
    ///
    /// # Errors
    /// A body that stops coming, takes too long in all, is cut, or is over [`MAX_RESPONSE`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let waits = self.client.timeouts;
        let until = if self.begun { Instant::now() + waits.between_bytes } else { self.until };
        let piece = timeout_at(until.min(self.over), self.line.next(&mut self.body)).await;
        let piece = piece.map_err(|_| match self.begun {
            _ if self.over <= until => self.client.late("the answer is not whole", waits.whole),
            true => self.client.late("the answer stopped: no further byte", waits.between_bytes),
            false => self.client.late("no first byte", waits.first_byte),
        })?;
        self.begun = true;
        let Some(piece) = piece else { return Ok(None) };
        let broken = |error| self.client.error(Cause::Cut, &format!("the answer was cut: {}", chain(&error)));
        let piece = piece.map_err(broken)?;
        self.seen += piece.len() as u64;
        if self.seen > MAX_RESPONSE {
            let what = format!("the answer is over {} MiB", MAX_RESPONSE >> 20);
            return Err(self.client.error(Cause::TooLarge, &what));
        }
        Ok(Some(piece))
    }

    /// The beginning of the body, up to [`MAX_ERROR_BODY`] and as far as it arrives in [`Timeouts::error_body`].
    pub async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        self.over = self.over.min(Instant::now() + self.client.timeouts.error_body);
        while body.len() < MAX_ERROR_BODY
            && let Ok(Some(piece)) = self.next().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(MAX_ERROR_BODY);
        body
    }

    /// Keeps the connection for the next request, if the body is or soon comes to its end.
    pub async fn keep(mut self) {
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
