//! An endpoint on loopback, OpenAI-compatible or not, whose every answer the test writes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What becomes of one request.
pub(crate) enum Reply {
    /// These pieces, and the end of the stream.
    Answer(Vec<Value>),
    /// This stream as it is, whatever the language, and its end.
    Stream(String),
    /// These pieces, and the connection breaks.
    Cut(Vec<Value>),
    /// These pieces, then nothing until the other side goes.
    Hang(Vec<Value>),
    /// An HTTP status with further headers and a body.
    Status(&'static str, &'static str, String),
}

/// A request as it came: the head and the body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Endpoint {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Endpoint {
    /// Answers the n-th request, from 0, with what `answer` makes of it.
    pub(crate) fn start(answer: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(TcpListener::bind(("127.0.0.1", 0)).unwrap(), answer)
    }

    /// The same at a socket that is there already.
    pub(crate) fn listen(
        listener: TcpListener,
        answer: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = seen.clone();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let record = record.clone();
                let answer = answer.clone();
                thread::spawn(move || serve(stream.unwrap(), &record, &*answer));
            }
        });
        Self { port, seen }
    }

    /// A configuration with this endpoint as `fake`, its key in FAKE_KEY, and `more` keys of the provider.
    pub(crate) fn config(&self, more: &str) -> String {
        self.speaking("openai-chat", more)
    }

    /// The same in another language.
    pub(crate) fn speaking(&self, api: &str, more: &str) -> String {
        let url = format!("http://127.0.0.1:{}/v1", self.port);
        format!(
            "model = \"fake/one\"\n[providers.fake]\napi = \"{api}\"\nbase_url = \"{url}\"\n\
             key = {{ env = \"FAKE_KEY\" }}\n{more}\n"
        )
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

type Answerer = dyn Fn(usize, &Value) -> Reply;

fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>, answer: &Answerer) {
    let mut from = BufReader::new(stream.try_clone().unwrap());
    let mut to = stream;
    while let Some(request) = request(&mut from) {
        let reply = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            let number = seen.len() - 1;
            drop(seen);
            answer(number, &request.body)
        };
        let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let (bytes, goes_on) = match reply {
            Reply::Answer(pieces) => (
                format!(
                    "{begin}{}{}0\r\n\r\n",
                    chunks(&pieces),
                    chunk("data: [DONE]\n\n")
                ),
                true,
            ),
            Reply::Stream(text) => (format!("{begin}{}0\r\n\r\n", chunk(&text)), true),
            Reply::Cut(pieces) => (format!("{begin}{}", chunks(&pieces)), false),
            Reply::Hang(pieces) => {
                let begun = if pieces.is_empty() {
                    String::new()
                } else {
                    format!("{begin}{}", chunks(&pieces))
                };
                drop(to.write_all(begun.as_bytes()));
                drop(from.read(&mut [0]));
                return;
            }
            Reply::Status(status, headers, body) => (
                format!(
                    "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
                    body.len()
                ),
                true,
            ),
        };
        if to.write_all(bytes.as_bytes()).is_err() || !goes_on {
            return;
        }
    }
}

fn request(from: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length: ")
            .map(str::to_owned)
    });
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    from.read_exact(&mut body).ok()?;
    Some(Request {
        head,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

fn chunks(pieces: &[Value]) -> String {
    pieces
        .iter()
        .map(|piece| chunk(&format!("data: {piece}\n\n")))
        .collect()
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A piece with this delta.
pub(crate) fn delta(delta: &Value) -> Value {
    json!({ "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// The piece that ends an answer.
pub(crate) fn stop(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } })
}

/// A whole answer of text.
pub(crate) fn text(text: &str) -> Reply {
    Reply::Answer(vec![
        delta(&json!({ "role": "assistant", "content": text })),
        stop("stop"),
    ])
}

/// A whole answer that makes these calls; arguments as they are sent.
pub(crate) fn calls(calls: &[(&str, String)]) -> Reply {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            json!({ "index": at, "id": format!("vendor-{at}"), "type": "function",
                    "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    Reply::Answer(vec![
        delta(&json!({ "role": "assistant", "tool_calls": calls })),
        stop("tool_calls"),
    ])
}
