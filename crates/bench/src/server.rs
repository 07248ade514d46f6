//! A model server on loopback that answers at once: so many times one call, then the end.

use crate::machine::{self, Cpu, Usage};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its first byte.
    pub at: Instant,
    /// The client's processor time then.
    pub cpu: Cpu,
    /// The rest of what the client had used; of the last request of a run only.
    pub usage: Usage,
    /// The body's length.
    pub bytes: usize,
    /// How often its threads waited for something while it was kept waiting; of the last request of a run only.
    pub waits: u64,
}

/// A running server.
pub struct Server {
    /// On 127.0.0.1.
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The process to look at.
    client: AtomicU32,
    run: Mutex<Run>,
}

#[derive(Default)]
struct Run {
    calls: usize,
    tool: &'static str,
    arguments: Value,
    keep: Duration,
    /// Of the last answer.
    words: usize,
    arrivals: Vec<Arrival>,
    /// The last answer was sent.
    over: bool,
}

impl Server {
    /// Listens, on threads that end with the process.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = serving.clone();
                // The client is gone: what it still wanted is nobody's loss.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { port, shared }
    }

    /// What the next run gets: `calls` answers with one call of `command` each, then text.
    pub fn expect(&self, calls: usize, command: &str) {
        self.expect_tool(calls, "Bash", json!({ "command": command }));
    }

    /// The same with another tool.
    pub fn expect_tool(&self, calls: usize, tool: &'static str, arguments: Value) {
        *self.shared.run.lock().unwrap() = Run {
            calls,
            tool,
            arguments,
            ..Run::default()
        };
    }

    /// The same, with jobs that work in the background, and a last answer of so many words, [`WORDS_PER_SECOND`].
    pub fn expect_jobs(&self, calls: usize, command: &str, words: usize) {
        self.expect(calls, command);
        let mut run = self.shared.run.lock().unwrap();
        (run.tool, run.words) = ("JobStart", words);
    }

    /// The last answer was sent whole.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.run.lock().unwrap().over
    }

    /// Keeps the client waiting that long for the last answer.
    pub fn keep_waiting(&self, keep: Duration) {
        self.shared.run.lock().unwrap().keep = keep;
    }

    /// Sends a body of that length as plainly as can be, and reads the answer. Milliseconds.
    #[must_use]
    pub fn exchange(&self, bytes: usize) -> f64 {
        self.expect(0, "");
        let request = [
            format!("POST / HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n").into_bytes(),
            vec![b' '; bytes],
        ]
        .concat();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let began = Instant::now();
        stream.write_all(&request).unwrap();
        assert!(
            stream.read(&mut [0; 4096]).unwrap() > 0,
            "the server answers"
        );
        crate::ratio::ms(began.elapsed())
    }

    /// Whose usage is written down.
    pub fn watch(&self, pid: u32) {
        self.shared.client.store(pid, Ordering::Relaxed);
    }

    /// The requests since [`Server::expect`].
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.run.lock().unwrap().arrivals.clone()
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let mut read = stream.read(&mut buffer)?;
        let at = Instant::now();
        if read == 0 {
            return Ok(());
        }
        let body = loop {
            if let Some(body) = length(buffer.get(..read).unwrap_or_default()) {
                break body;
            }
            read += stream.read(buffer.get_mut(read..).unwrap_or_default())?;
        };
        let mut left = (body.head + body.length).saturating_sub(read);
        while left > 0 {
            let got = stream.read(&mut buffer)?;
            left = left.saturating_sub(got);
            if got == 0 {
                return Ok(());
            }
        }
        let answer = shared.answer(at, body.length);
        let began = Instant::now();
        for (piece, number) in answer.pieces.iter().zip(0..) {
            thread::sleep((PIECE * number).saturating_sub(began.elapsed()));
            stream.write_all(piece.as_bytes())?;
        }
        shared.run.lock().unwrap().over |= answer.is_last;
    }
}

/// What is sent, one piece each [`PIECE`].
struct Answer {
    pieces: Vec<String>,
    is_last: bool,
}

struct Length {
    head: usize,
    length: usize,
}

/// Of the body, once the whole head is there.
fn length(bytes: &[u8]) -> Option<Length> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(bytes.get(..head)?).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    Some(Length {
        head,
        length: line.and_then(|length| length.parse().ok()).unwrap_or(0),
    })
}

impl Shared {
    fn answer(&self, at: Instant, bytes: usize) -> Answer {
        let mut run = self.run.lock().unwrap();
        let pid = self.client.load(Ordering::Relaxed);
        let last = run.arrivals.len() >= run.calls;
        let usage = if last {
            machine::usage(pid)
        } else {
            Usage::default()
        };
        let waits = if last && !run.keep.is_zero() {
            idle(pid, run.keep)
        } else {
            0
        };
        run.arrivals.push(Arrival {
            at,
            cpu: machine::cpu(pid),
            usage,
            bytes,
            waits,
        });
        let mut deltas = if last && run.words > 0 {
            let spoken = (0..run.words)
                .map(|at| json!({"content": if at % 20 == 19 { "word.\n\n" } else { "word " }}));
            spoken.collect()
        } else if last {
            vec![json!({"content": "done"})]
        } else {
            let arguments = run.arguments.to_string();
            let function = json!({"name": run.tool, "arguments": arguments});
            vec![
                json!({"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": function}]}),
            ]
        };
        let stop = if last { "stop" } else { "tool_calls" };
        deltas.push(json!({}));
        let count = deltas.len();
        let events = deltas.iter().zip(1..).map(|(delta, at)| {
            chunk(
                delta,
                if at == count {
                    stop.into()
                } else {
                    Value::Null
                },
            )
        });
        let mut events: Vec<String> = events.collect();
        events.push("data: [DONE]\n\n".to_owned());
        let length: usize = events.iter().map(String::len).sum();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
        let mut pieces: Vec<String> = events.chunks(EVENTS).map(<[String]>::concat).collect();
        pieces[0].insert_str(0, &format!("{head} {length}\r\n\r\n"));
        Answer {
            pieces,
            is_last: last,
        }
    }
}

/// How often a client's threads wait for something anew while nothing happens. A thread that ends was woken for it.
fn idle(pid: u32, keep: Duration) -> u64 {
    thread::sleep(SETTLES);
    let before = machine::waits(pid);
    thread::sleep(keep);
    let after = machine::waits(pid);
    let begun = after
        .keys()
        .filter(|thread| !before.contains_key(*thread))
        .count() as u64;
    let anew = before
        .iter()
        .map(|(thread, waits)| after.get(thread).map_or(1, |now| now - waits));
    begun + anew.sum::<u64>()
}

/// How fast an answer of words comes.
pub const WORDS_PER_SECOND: usize = 2_000;
/// Events that are sent together, and how often.
const EVENTS: usize = 4;
const PIECE: Duration = Duration::from_millis(2);

/// Long enough for whatever follows the sending of a request: a thread for what blocks ends after ten idle seconds.
const SETTLES: Duration = Duration::from_secs(12);

fn chunk(delta: &Value, stop: Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
    )
}
