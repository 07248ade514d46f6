//! A server on a port of this machine: the Model Context Protocol over HTTP (`/mcp`), and a bridge for scripts (`/health`,
//! `/tools`, `/tools/NAME`). A request needs the token; what a browser sends for a page of others is refused before that
//! is looked at.

use crate::bridge;
use crate::mcp::{Exchange, McpServer};
use crate::rpc::{self, Incoming, Request as RpcRequest};
use crate::stdio::MAX_MESSAGE;
use hyper::body::{Body, Bytes, Frame, Incoming as RequestBody, SizeHint};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN,
    WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Connections at the same time; others wait for one of them.
const MAX_CONNECTIONS: usize = 64;

/// Bytes of a request's head.
const MAX_HEAD: usize = 16 << 10;

/// How long the head of a request may take, and then its body.
const RECEIVE: Duration = Duration::from_secs(10);

/// How long a client may take nothing of an answer's next part.
const SEND: Duration = Duration::from_secs(10);

/// Lines of a stream that wait for their client.
const MAX_LINES: usize = 16;

/// How long requests may take once the server was told to stop.
const FINISH: Duration = Duration::from_secs(20);

/// A server on a port.
pub struct HttpDoor {
    server: Arc<McpServer>,
    /// Of the token, so that comparing takes the same time for all others.
    token: blake3::Hash,
    /// How the server is called in `Host`: its address, and `localhost` with its port.
    hosts: [String; 2],
}

impl HttpDoor {
    /// A server at this address, for clients with this token.
    #[must_use]
    pub fn new(server: Arc<McpServer>, token: &str, address: SocketAddr) -> Self {
        Self {
            server,
            token: blake3::hash(token.as_bytes()),
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
        }
    }

    /// Serves until `stop` fires; what was asked for by then has a while to end.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(self, listener: TcpListener, stop: &CancellationToken) -> io::Result<()> {
        let door = Arc::new(self);
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let closing = CancellationToken::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = async {
                    let slot = Arc::clone(&slots).acquire_owned().await;
                    (listener.accept().await, slot)
                } => accepted,
            };
            let (Ok((stream, _)), Ok(slot)) = accepted else {
                // As when all descriptors are in use: others may be closed by then.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let door = Arc::clone(&door);
            let closing = closing.clone();
            connections.spawn(async move {
                let _slot = slot;
                let service = service_fn(move |request| {
                    let door = Arc::clone(&door);
                    async move { Ok::<_, Infallible>(door.answer(request).await) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(RECEIVE)
                    .max_buf_size(MAX_HEAD)
                    .keep_alive(false)
                    // Scripts end what they send and still read.
                    .half_close(true)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::select! {
                    // What fails there has nobody to be told.
                    _ended = connection => {}
                    () = closing.cancelled() => {}
                }
            });
        }
        drop(listener);
        let ends = async { while connections.join_next().await.is_some() {} };
        if timeout(FINISH, ends).await.is_err() {
            closing.cancel();
        }
        Ok(())
    }

    async fn answer(self: &Arc<Self>, request: Request<RequestBody>) -> Response<Reply> {
        if let Err(refused) = self.admits(request.headers()) {
            return refused;
        }
        let path = request.uri().path().to_owned();
        match (request.method(), path.as_str()) {
            (&Method::GET, "/health") => {
                let (status, health) = bridge::health(self.server.pod()).await;
                json_reply(status, &health)
            }
            (&Method::GET, "/tools") => {
                let (status, tools) = bridge::tools(self.server.pod()).await;
                json_reply(status, &tools)
            }
            (&Method::POST, "/mcp") => self.mcp(request).await,
            (&Method::POST, path) if path.starts_with("/tools/") => {
                let name = path.strip_prefix("/tools/").unwrap_or_default().to_owned();
                let (_, body) = request.into_parts();
                match received(body).await {
                    Ok(body) => {
                        let (status, told) = bridge::call(&self.server, &name, &body).await;
                        json_reply(status, &told)
                    }
                    Err(refused) => refused,
                }
            }
            (_, "/health" | "/tools") => not_allowed("GET"),
            (_, "/mcp") => not_allowed("POST"),
            (_, path) if path.starts_with("/tools/") => not_allowed("POST"),
            _ => refusal(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    /// Refuses what a page of another site may have sent, and who has no token.
    #[expect(clippy::result_large_err, reason = "an answer, made once")]
    fn admits(&self, headers: &HeaderMap) -> Result<(), Response<Reply>> {
        let one = |name| {
            let mut all = headers.get_all(name).iter();
            let first = all.next().map(HeaderValue::to_str);
            match (first, all.next()) {
                (None, _) => Ok(None),
                (Some(Ok(value)), None) => Ok(Some(value)),
                (Some(_), _) => Err(()),
            }
        };
        // A name of others that was made to lead here is another host.
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if !matches!(one(HOST), Ok(Some(host)) if is_own(host)) {
            return Err(refusal(StatusCode::FORBIDDEN, "this is another host"));
        }
        let is_own_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_own);
        match one(ORIGIN) {
            Ok(None) => {}
            Ok(Some(origin)) if is_own_origin(origin) => {}
            Ok(Some(_)) | Err(()) => {
                return Err(refusal(StatusCode::FORBIDDEN, "this is another origin"));
            }
        }
        let token = one(AUTHORIZATION).ok().flatten().and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then_some(token.trim())
        });
        if token.map(|token| blake3::hash(token.as_bytes())) == Some(self.token) {
            return Ok(());
        }
        let mut refused = refusal(
            StatusCode::UNAUTHORIZED,
            "this needs the token of the server",
        );
        let asks = HeaderValue::from_static("Bearer");
        refused.headers_mut().insert(WWW_AUTHENTICATE, asks);
        Err(refused)
    }

    async fn mcp(self: &Arc<Self>, request: Request<RequestBody>) -> Response<Reply> {
        let (head, body) = request.into_parts();
        let is_json = |value: &HeaderValue| {
            value
                .to_str()
                .is_ok_and(|kind| kind.trim_start().starts_with("application/json"))
        };
        if !head.headers.get(CONTENT_TYPE).is_some_and(is_json) {
            let why = "a message is application/json";
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        let body = match received(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        match rpc::read(&body) {
            Incoming::Request(request) => {
                if let Err(error) = crate::mcp::headers_fit(&request, &head.headers) {
                    let line = rpc::error_line(Some(&request.id), &error);
                    return line_reply(StatusCode::BAD_REQUEST, line);
                }
                let streams = head
                    .headers
                    .get_all(ACCEPT)
                    .iter()
                    .filter_map(|value| value.to_str().ok())
                    .any(|value| value.contains("text/event-stream"));
                if streams && crate::mcp::wants_progress(&request) {
                    return self.streamed(request);
                }
                let exchange = Exchange {
                    cancel: &CancellationToken::new(),
                    tell: &|_| {},
                };
                let line = self.server.answer(&request, &exchange).await;
                line_reply(StatusCode::OK, line)
            }
            // A request goes on without its client: there is no session in which it could be named.
            Incoming::Notification { .. } | Incoming::Answer => {
                let mut accepted = Response::new(Reply::Whole(None));
                *accepted.status_mut() = StatusCode::ACCEPTED;
                accepted
            }
            Incoming::Wrong(line) => line_reply(StatusCode::BAD_REQUEST, line),
        }
    }

    /// Answers with a stream: what happens meanwhile, then the answer.
    fn streamed(self: &Arc<Self>, request: RpcRequest) -> Response<Reply> {
        let (lines, streamed) = mpsc::channel(MAX_LINES);
        let door = Arc::clone(self);
        tokio::spawn(async move {
            let told = lines.clone();
            let exchange = Exchange {
                cancel: &CancellationToken::new(),
                tell: &move |line| drop(told.try_send(line)),
            };
            let line = door.server.answer(&request, &exchange).await;
            drop(timeout(SEND, lines.send(line)).await);
        });
        let mut reply = Response::new(Reply::Stream(streamed));
        let kind = HeaderValue::from_static("text/event-stream");
        reply.headers_mut().insert(CONTENT_TYPE, kind);
        reply
    }
}

/// The body of a request.
async fn received(mut body: RequestBody) -> Result<Vec<u8>, Response<Reply>> {
    let too_long = || {
        let why = format!("a body has at most {MAX_MESSAGE} bytes");
        refusal(StatusCode::PAYLOAD_TOO_LARGE, &why)
    };
    if body.size_hint().lower() > MAX_MESSAGE as u64 {
        return Err(too_long());
    }
    let whole = async {
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body is cut"))?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > MAX_MESSAGE {
                    return Err(too_long());
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    let late = |_| refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long");
    timeout(RECEIVE, whole).await.map_err(late)?
}

/// The body of an answer.
enum Reply {
    /// Taken once.
    Whole(Option<Bytes>),
    /// Lines, each an event.
    Stream(mpsc::Receiver<String>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(lines) => lines.poll_recv(cx).map(|line| {
                let event = |line| {
                    Ok(Frame::data(Bytes::from(format!(
                        "event: message\ndata: {line}\n\n"
                    ))))
                };
                line.map(event)
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    /// With it, an answer that is whole has its length.
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

fn line_reply(status: StatusCode, line: String) -> Response<Reply> {
    let mut reply = Response::new(Reply::Whole(Some(Bytes::from(line))));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // What was read is of one person, and no page is made of it.
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    reply
}

fn json_reply(status: StatusCode, value: &Value) -> Response<Reply> {
    line_reply(status, format!("{value}\n"))
}

fn refusal(status: StatusCode, why: &str) -> Response<Reply> {
    json_reply(status, &json!({ "error": why }))
}

fn not_allowed(method: &'static str) -> Response<Reply> {
    let mut reply = refusal(
        StatusCode::METHOD_NOT_ALLOWED,
        "this method is not for this path",
    );
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(method));
    reply
}
