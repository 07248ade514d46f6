//! One endpoint and the connection to it, kept between requests. Does not depend on the content of requests and
//! responses.

use crate::connection::{Duplex, HttpConnection};
use crate::error::{Error, HttpErrorKind};
use crate::proxy::Proxy;
use crate::tls::Tls;
use crate::upload::Upload;
use crate::url::BaseUrl;
use authority::{ErrorKind, Net};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The most bytes of one response.
pub const MAX_RESPONSE: u64 = 64 << 20;

/// The most bytes of an error's body that are read.
pub const MAX_ERROR_BODY: usize = 64 << 10;

/// How long [`HttpResponse::keep`] waits for the end of a body before it closes the connection.
const DRAIN: Duration = Duration::from_millis(250);

/// How a body in gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";

const USER_AGENT: &str = concat!("yoi/", env!("CARGO_PKG_VERSION"));

/// The timeouts of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Resolving, connecting and the TLS handshake.
    pub connect: Duration,
    /// From the request to the first byte of the response's body; includes the time to process a large prompt.
    pub first_byte: Duration,
    /// Between two pieces of the response.
    pub between_bytes: Duration,
    /// The whole response.
    pub whole: Duration,
    /// The whole body of an error.
    pub error_body: Duration,
    /// How long an idle connection is reused: a router may drop it silently, and a request on it would then wait for
    /// the whole of `first_byte`.
    pub idle: Duration,
}

impl Timeouts {
    /// Timeouts for vendors and for local servers that process a long prompt slowly.
    pub const USUAL: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        between_bytes: Duration::from_secs(120),
        // Several times the duration of the longest response.
        whole: Duration::from_secs(3600),
        error_body: Duration::from_secs(10),
        idle: Duration::from_secs(60),
    };
}

/// A client of one endpoint, with at most one kept connection; used by providers and by the web feature.
pub struct HttpClient {
    base: BaseUrl,
    net: Net,
    timeouts: Timeouts,
    tls: Tls,
    proxy: Option<Proxy>,
    kept: Mutex<Option<(HttpConnection, Instant)>>,
}

/// A request to the endpoint, for [`HttpClient::send`].
#[derive(Debug)]
pub struct HttpRequest<'a> {
    pub method: Method,
    /// The path below the base URL; starts with `/`.
    pub path: &'a str,
    /// All headers but host and length. Without a user agent, yoi's own is added.
    pub headers: HeaderMap,
    /// The body; `None` sends none.
    pub body: Option<Upload>,
    /// Whether it may have an effect that must not happen twice: it is sent again only if it was not sent at all.
    pub once: bool,
}

impl HttpClient {
    /// Creates a client; it connects on the first request. `net` must reach [`BaseUrl::host_port`].
    #[must_use]
    pub fn new(base: BaseUrl, net: Net, timeouts: Timeouts) -> Self {
        Self {
            base,
            net,
            timeouts,
            tls: Tls::default(),
            proxy: None,
            kept: Mutex::new(None),
        }
    }

    /// Sends all requests through this proxy: to an `https` endpoint through a tunnel, so that the proxy reads nothing; to
    /// an `http` endpoint as requests to the proxy. The grant must reach [`Proxy::host_port`], and need not reach the endpoint.
    #[must_use]
    pub fn through(self, proxy: Option<Proxy>) -> Self {
        Self { proxy, ..self }
    }

    /// Uses these root certificates, which clients can share.
    #[must_use]
    pub fn secured(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }

    /// The endpoint's URL.
    #[must_use]
    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// The network grant. A running exchange does not watch its door: the caller selects on
    /// [`authority::Door::closed`].
    #[must_use]
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Sends a request and waits for the head of the response. A kept connection that ends before the first byte of a
    /// response is replaced once: the server had closed it while it was idle. A request of [`HttpRequest::once`] that may
    /// have been sent on it is not sent again.
    ///
    /// # Errors
    /// No connection, no valid response in time, or a grant that does not include the endpoint. The server may have the
    /// request of a [`HttpErrorKind::Cut`].
    pub async fn send(&self, request: &HttpRequest<'_>) -> Result<HttpResponse<'_>, Error> {
        let kept = self
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((connection, since)) = kept
            && since.elapsed() < self.timeouts.idle
        {
            // Connecting asks the door by itself.
            let revoked = |_| {
                Error::new(
                    HttpErrorKind::Denied,
                    format!("{}: the network grant was revoked", self.base),
                )
            };
            self.net.door().enter().map(drop).map_err(revoked)?;
            match self.exchange(connection, request).await? {
                Ok(answer) => return Ok(answer),
                // A cancelled request was never sent.
                Err(NoResponse {
                    nothing_received,
                    error,
                }) if error.is_canceled() || nothing_received && !request.once => {}
                Err(NoResponse { error, .. }) => return Err(self.unanswered(&error)),
            }
        }
        let connection = self.dial().await?;
        self.exchange(connection, request)
            .await?
            .map_err(|NoResponse { error, .. }| self.unanswered(&error))
    }

    async fn exchange(
        &self,
        mut connection: HttpConnection,
        request: &HttpRequest<'_>,
    ) -> Result<Result<HttpResponse<'_>, NoResponse>, Error> {
        let now = Instant::now();
        let until = now + self.timeouts.first_byte;
        let before = connection.received();
        let sent = timeout_at(until, connection.send(self.http(request)?)).await;
        Ok(
            match sent.map_err(|_| self.late("no answer", self.timeouts.first_byte))? {
                Ok(head) => match self.asked_proxy() {
                    Some(proxy) if head.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                        let error = proxy.wants_login();
                        return Err(self.error(error.kind, &error.message));
                    }
                    Some(_) | None => {
                        Ok(self.answer(connection, head, until, now + self.timeouts.whole))
                    }
                },
                Err(error) => Err(NoResponse {
                    nothing_received: connection.received() == before,
                    error,
                }),
            },
        )
    }

    fn unanswered(&self, error: &hyper::Error) -> Error {
        match error.is_parse() {
            true => self.error(
                HttpErrorKind::Malformed,
                &format!("not an HTTP/1.1 response: {error}"),
            ),
            false => self.error(
                HttpErrorKind::Cut,
                &format!(
                    "the connection closed before the response: {}",
                    chain(error)
                ),
            ),
        }
    }

    fn http(&self, request: &HttpRequest<'_>) -> Result<hyper::Request<Upload>, Error> {
        let bug = |what: &dyn std::fmt::Display| {
            self.error(HttpErrorKind::Bug, &format!("no request of this: {what}"))
        };
        let mut http = hyper::Request::new(request.body.clone().unwrap_or_default());
        *http.method_mut() = request.method.clone();
        let host = self.base.host_header();
        let origin = match self.asked_proxy() {
            Some(_) => format!("http://{host}"),
            None => String::new(),
        };
        let target = format!("{origin}{}{}", self.base.path(), request.path);
        *http.uri_mut() = target.parse().map_err(|error| bug(&error))?;
        let host = HeaderValue::from_str(host).map_err(|error| bug(&error))?;
        let headers = http.headers_mut();
        headers.clone_from(&request.headers);
        if let Some(value) = self.asked_proxy().and_then(Proxy::authorization) {
            headers.insert(header::PROXY_AUTHORIZATION, value.clone());
        }
        headers.insert(header::HOST, host);
        headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(USER_AGENT));
        Ok(http)
    }

    /// The proxy that gets the requests themselves; one with a tunnel does not.
    fn asked_proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| !self.base.is_tls())
    }

    async fn dial(&self) -> Result<HttpConnection, Error> {
        let late = |_| {
            self.error(
                HttpErrorKind::Connect(None),
                &format!(
                    "no connection{} within {:?}",
                    self.way(),
                    self.timeouts.connect
                ),
            )
        };
        timeout(self.timeouts.connect, self.connect())
            .await
            .map_err(late)?
    }

    /// ` through the proxy HOST:PORT`, for messages.
    fn way(&self) -> String {
        self.proxy
            .as_ref()
            .map(|proxy| format!(" through {proxy}"))
            .unwrap_or_default()
    }

    async fn connect(&self) -> Result<HttpConnection, Error> {
        let endpoint = self.base.host_port();
        let first = self.proxy.as_ref().map_or(&endpoint, Proxy::host_port);
        let stream = self
            .net
            .connect(&first.host, first.port, self.timeouts.connect)
            .await
            .map_err(|error| self.unconnected(&error))?;
        let mut stream: Box<dyn Duplex> = Box::new(stream);
        if let Some(proxy) = &self.proxy {
            if proxy.is_tls() {
                stream = self
                    .secured_by(&first.host, stream)
                    .await
                    .map_err(|error| {
                        Error::new(error.kind, format!("{proxy}: {}", error.message))
                    })?;
            }
            if self.base.is_tls() {
                proxy
                    .tunnel(&mut stream, &endpoint)
                    .await
                    .map_err(|error| self.error(error.kind, &error.message))?;
            }
        }
        if self.base.is_tls() {
            stream = self.secured_by(self.base.host(), stream).await?;
        }
        HttpConnection::over(stream)
            .await
            .map_err(|error| self.error(HttpErrorKind::Connect(None), &chain(&error)))
    }

    async fn secured_by(
        &self,
        host: &str,
        stream: Box<dyn Duplex>,
    ) -> Result<Box<dyn Duplex>, Error> {
        match self.tls.secure(host, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err((cause, why)) => Err(self.error(cause, &why)),
        }
    }

    fn unconnected(&self, error: &authority::Error) -> Error {
        match error.kind() {
            ErrorKind::Denied | ErrorKind::Revoked => {
                Error::new(HttpErrorKind::Denied, error.to_string())
            }
            ErrorKind::FixInput
            | ErrorKind::Unavailable
            | ErrorKind::Exhausted
            | ErrorKind::Cancelled => {
                // Of a proxy, the system's word is none about the endpoint.
                let (what, why) = match &self.proxy {
                    Some(proxy) => (format!("{proxy}: {error}"), None),
                    None => (error.to_string(), error.io_kind()),
                };
                self.error(HttpErrorKind::Connect(why), &what)
            }
            ErrorKind::Bug => Error::new(HttpErrorKind::Bug, error.to_string()),
        }
    }

    fn answer(
        &self,
        connection: HttpConnection,
        head: hyper::Response<Incoming>,
        until: Instant,
        over: Instant,
    ) -> HttpResponse<'_> {
        let (parts, body) = head.into_parts();
        let status = parts.status;
        let headers = parts.headers;
        HttpResponse {
            status,
            headers,
            client: self,
            connection,
            body,
            until,
            over,
            begun: false,
            seen: 0,
            may_be_gzip: false,
        }
    }

    fn error(&self, kind: HttpErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{}: {what}", self.base))
    }

    fn late(&self, what: &str, wait: Duration) -> Error {
        self.error(
            HttpErrorKind::Timeout,
            &format!("{what} within {}", spelled(wait)),
        )
    }
}

/// A request without a response.
struct NoResponse {
    /// No byte was received for it.
    nothing_received: bool,
    error: hyper::Error,
}

/// A response whose body is read piece by piece.
#[must_use = "the body is still to be read"]
pub struct HttpResponse<'a> {
    /// The status, never 1xx.
    pub status: StatusCode,
    pub headers: HeaderMap,
    client: &'a HttpClient,
    connection: HttpConnection,
    body: Incoming,
    until: Instant,
    /// The deadline of the whole response.
    over: Instant,
    begun: bool,
    seen: u64,
    /// Whether the body may begin as one in gzip does.
    may_be_gzip: bool,
}

impl HttpResponse<'_> {
    /// A header's value; `None` if it is missing or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Takes a body that is itself a file in gzip, such as an archive: only an encoding that a header names is refused.
    pub fn may_be_gzip(self) -> Self {
        Self {
            may_be_gzip: true,
            ..self
        }
    }

    /// The target of a redirect, as the server wrote it; `None` if the response is none.
    #[must_use]
    pub fn redirect(&self) -> Option<String> {
        let moved = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let target = self.headers.get(header::LOCATION).filter(|_| moved)?;
        Some(String::from_utf8_lossy(target.as_bytes()).into_owned())
    }

    /// Whether a truncated body can be recognised, by its length or its last chunk. Otherwise the body ends with the
    /// connection.
    #[must_use]
    pub fn shows_its_end(&self) -> bool {
        self.headers.contains_key(header::CONTENT_LENGTH)
            || self.headers.contains_key(header::TRANSFER_ENCODING)
    }

    /// The next piece of the body; `None` at its proper end.
    ///
    /// # Errors
    /// A timeout between pieces or for the whole, a truncated or compressed body, or one over [`MAX_RESPONSE`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let waits = self.client.timeouts;
        let until = if self.begun {
            Instant::now() + waits.between_bytes
        } else {
            self.until
        };
        let piece = timeout_at(until.min(self.over), self.connection.next(&mut self.body)).await;
        let piece = piece.map_err(|_| match self.begun {
            _ if self.over <= until => self.client.late("the answer is not whole", waits.whole),
            true => self
                .client
                .late("the answer stopped: no further byte", waits.between_bytes),
            false => self.client.late("no first byte", waits.first_byte),
        })?;
        let begins = !std::mem::replace(&mut self.begun, true);
        let Some(piece) = piece else { return Ok(None) };
        let broken = |error| self.client.error(HttpErrorKind::Cut, &lost(&error));
        let piece = piece.map_err(broken)?;
        let named = self
            .header("content-encoding")
            .filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
        if let Some(encoding) = named
            .or((!self.may_be_gzip && piece.starts_with(GZIP)).then_some("gzip"))
            .filter(|_| begins)
        {
            let what = format!(
                "the answer is compressed ({encoding}), although `accept-encoding: identity` was sent"
            );
            return Err(self.client.error(HttpErrorKind::Encoded, &what));
        }
        self.seen += piece.len() as u64;
        if self.seen > MAX_RESPONSE {
            let what = format!("the answer is over {} MiB", MAX_RESPONSE >> 20);
            return Err(self.client.error(HttpErrorKind::TooLarge, &what));
        }
        Ok(Some(piece))
    }

    /// The beginning of the body, up to [`MAX_ERROR_BODY`] and as far as it arrives in [`Timeouts::error_body`].
    pub async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        self.over = self
            .over
            .min(Instant::now() + self.client.timeouts.error_body);
        while body.len() < MAX_ERROR_BODY {
            match self.next().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Err(error) if error.kind == HttpErrorKind::Encoded => {
                    return error.message.into_bytes();
                }
                Ok(None) | Err(_) => break,
            }
        }
        body.truncate(MAX_ERROR_BODY);
        body
    }

    /// Keeps the connection for the next request, if the body ends now or within a short wait.
    pub async fn keep(mut self) {
        let rest = async {
            while !self.body.is_end_stream() {
                match self.connection.next(&mut self.body).await {
                    Some(Ok(_)) => {}
                    Some(Err(_)) => return false,
                    None => break,
                }
            }
            self.connection.is_ready().await
        };
        if timeout(DRAIN, rest).await == Ok(true) {
            *self
                .client
                .kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some((self.connection, Instant::now()));
        }
    }
}

/// Why the rest of an answer does not arrive. An early end of the stream needs no further reason.
fn lost(error: &hyper::Error) -> String {
    let lost = "the connection was lost during the answer";
    let causes = || {
        std::iter::successors(Some(error as &dyn std::error::Error), |error| {
            error.source()
        })
    };
    let ended = |error: &std::io::Error| error.kind() == std::io::ErrorKind::UnexpectedEof;
    if error.is_incomplete_message()
        || causes().any(|error| error.downcast_ref().is_some_and(ended))
    {
        return lost.to_owned();
    }
    format!(
        "{lost}: {}",
        causes().last().map(ToString::to_string).unwrap_or_default()
    )
}

/// `300 ms`, `2 s`, `1.5 s`.
fn spelled(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs_f64())
    }
}

/// The text of an error with its sources, which hyper's own text leaves out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
