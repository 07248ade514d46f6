//! A model server on loopback that answers at once: so many calls of one shell command, then the end.

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
    command: String,
    keep: Duration,
    arrivals: Vec<Arrival>,
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
        let (command, keep, arrivals) = (command.to_owned(), Duration::ZERO, Vec::new());
        *self.shared.run.lock().unwrap() = Run { calls, command, keep, arrivals };
    }

    /// Keeps the client waiting that long for the last answer.
    pub fn keep_waiting(&self, keep: Duration) {
        self.shared.run.lock().unwrap().keep = keep;
    }

    /// Sends a body of that length as plainly as can be, and reads the answer. Milliseconds.
    #[must_use]
    pub fn exchange(&self, bytes: usize) -> f64 {
        self.expect(0, "");
        let request =
            [format!("POST / HTTP/1.1\r\ncontent-length: {bytes}\r\n\r\n").into_bytes(), vec![b' '; bytes]].concat();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let began = Instant::now();
        stream.write_all(&request).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0, "the server answers");
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
        stream.write_all(shared.answer(at, body.length).as_bytes())?;
    }
}

struct Length {
    head: usize,
    length: usize,
}

/// Of the body, once the whole head is there.
fn length(bytes: &[u8]) -> Option<Length> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(bytes.get(..head)?).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(Length { head, length: line.and_then(|length| length.parse().ok()).unwrap_or(0) })
}

impl Shared {
    fn answer(&self, at: Instant, bytes: usize) -> String {
        let mut run = self.run.lock().unwrap();
        let pid = self.client.load(Ordering::Relaxed);
        let last = run.arrivals.len() >= run.calls;
        let usage = if last { machine::usage(pid) } else { Usage::default() };
        let waits = if last && !run.keep.is_zero() { idle(pid, run.keep) } else { 0 };
        run.arrivals.push(Arrival { at, cpu: machine::cpu(pid), usage, bytes, waits });
        let delta = if last {
            json!({"content": "done"})
        } else {
            let arguments = json!({"command": run.command}).to_string();
            let function = json!({"name": "Bash", "arguments": arguments});
            json!({"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": function}]})
        };
        let stop = if last { "stop" } else { "tool_calls" };
        let events =
            [chunk(&delta, Value::Null), chunk(&json!({}), stop.into()), "data: [DONE]\n\n".to_owned()].concat();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
        format!("{head} {}\r\n\r\n{events}", events.len())
    }
}

/// How often a client's threads wait for something anew while nothing happens. A thread that ends was woken for it.
fn idle(pid: u32, keep: Duration) -> u64 {
    thread::sleep(SETTLES);
    let before = machine::waits(pid);
    thread::sleep(keep);
    let after = machine::waits(pid);
    let begun = after.keys().filter(|thread| !before.contains_key(*thread)).count() as u64;
    let anew = before.iter().map(|(thread, waits)| after.get(thread).map_or(1, |now| now - waits));
    begun + anew.sum::<u64>()
}

/// Long enough for whatever follows the sending of a request: a thread for what blocks ends after ten idle seconds.
const SETTLES: Duration = Duration::from_secs(12);

fn chunk(delta: &Value, stop: Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}))
}
