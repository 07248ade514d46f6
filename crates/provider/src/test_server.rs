//! A server on loopback that answers each request with the next of its replies, and an endpoint that asks it.

use crate::endpoint::{Endpoint, EndpointConfig, Transport, Wire};
use crate::failure::HelpTerms;
use crate::retry::{Pacing, RetryPolicy};
use authority::{Net, Secret};
use http_client::{BaseUrl, Timeouts};
use llm_worker::{Body, ModelError, ModelEvent, Thinking};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The waits that an endpoint asked for; none of them takes time.
pub(crate) type Waits = Arc<Mutex<Vec<Duration>>>;

pub(crate) fn config(name: &str, base_url: &str, net: Net, key: &str) -> (EndpointConfig, Waits) {
    let waits = Waits::default();
    let slept = waits.clone();
    let pacing = Pacing {
        sleep: Arc::new(move |wait| {
            slept.lock().unwrap().push(wait);
            Box::pin(std::future::ready(()))
        }),
        jitter: Arc::new(|| 0.0),
        now: Arc::new(|| UNIX_EPOCH + Duration::from_secs(784_111_777)),
    };
    // Long enough for a busy machine, where nothing is meant to time out; the hang tests shorten them.
    let long = Duration::from_secs(20);
    let config = EndpointConfig {
        name: name.to_owned(),
        base_url: BaseUrl::parse(base_url).unwrap(),
        transport: Transport::plain(
            net,
            Timeouts {
                connect: long,
                first_byte: long,
                between_bytes: long,
                ..Timeouts::USUAL
            },
        ),
        key: Some(Secret::new(
            &ambient::claim(),
            "TEST_API_KEY",
            key.to_owned(),
        )),
        key_source: None,
        retry: RetryPolicy {
            attempts: 5,
            ..RetryPolicy::USUAL
        },
        pacing,
        max_output: None,
        thinking: Thinking::default(),
        media: Vec::new(),
        price: None,
        context_window: None,
        terms: TERMS,
    };
    (config, waits)
}

pub(crate) fn millis(waits: &Waits) -> Vec<u128> {
    waits
        .lock()
        .unwrap()
        .iter()
        .map(Duration::as_millis)
        .collect()
}

pub(crate) async fn ask<W: Wire>(
    model: &Endpoint<W>,
    body: &Body,
) -> (Result<(), ModelError>, Vec<ModelEvent>) {
    let (sender, mut receiver) = mpsc::channel(1);
    let drain = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let answer = async {
        let sender = sender;
        model.answer(body, &sender).await
    };
    tokio::join!(answer, drain)
}

/// As a host calls its ways out.
pub(crate) const TERMS: HelpTerms = HelpTerms {
    other_model: "choose another model with -m",
    model_list: "yoi models",
    full_context: "compact it, or choose a model with a larger context",
    proxy: String::new(),
};

pub(crate) enum Reply {
    /// These bytes; the connection stays open for the next request.
    Keep(String),
    /// These bytes, then the connection ends.
    Close(String),
    /// These bytes, then silence.
    Hang(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(
            replies.into_iter().collect::<Vec<_>>().into_iter(),
        ));
        let record = seen.clone();
        tokio::spawn(async move {
            for connection in 1.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                tokio::spawn(serve(stream, connection, replies.clone(), record.clone()));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Which connection each request came on.
    pub(crate) fn connections(&self) -> Vec<usize> {
        self.seen()
            .iter()
            .map(|request| request.connection)
            .collect()
    }
}

type Replies = Arc<Mutex<std::vec::IntoIter<Reply>>>;

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    replies: Replies,
    record: Arc<Mutex<Vec<Seen>>>,
) {
    while let Some((head, body)) = request(&mut stream).await {
        record.lock().unwrap().push(Seen {
            connection,
            head,
            body,
        });
        let reply = replies.lock().unwrap().next();
        let (bytes, then) = match reply {
            Some(Reply::Keep(bytes)) => (bytes, "keep"),
            Some(Reply::Close(bytes)) => (bytes, "close"),
            Some(Reply::Hang(bytes)) => (bytes, "hang"),
            None => return,
        };
        stream.write_all(bytes.as_bytes()).await.unwrap();
        match then {
            "keep" => {}
            "close" => return,
            _hang => std::future::pending::<()>().await,
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let split = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        (stream.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let mut body = bytes.split_off(split);
    let head = String::from_utf8(bytes).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while body.len() < length {
        (stream.read_buf(&mut body).await.ok()? > 0).then_some(())?;
    }
    Some((head, body))
}

/// A 200 with this body in chunks of `size` bytes, or as many as end a character, complete.
pub(crate) fn streamed(body: &str, size: usize) -> String {
    format!("{}0\r\n\r\n", begun(body, size))
}

/// The same without the last chunk: what a cut or a hang leaves.
pub(crate) fn begun(body: &str, size: usize) -> String {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut text = head.to_owned();
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(size));
        text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
        rest = behind;
    }
    text
}

/// Any status with a body of known length.
pub(crate) fn status(line: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {line}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
