//! A server on this machine that answers HTTP/1.1 as a test says, and refuses every request that the test did not expect.

use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The status of a request that no one expected: nothing repeats it.
const UNEXPECTED: u16 = 418;
/// The most bytes of a request's body.
const MAX_BODY: usize = 8 << 20;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl SeenRequest {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// What a server answers.
#[derive(Clone, Debug, Default)]
pub struct ServerAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut: Option<usize>,
}

impl ServerAnswer {
    /// An answer with a JSON body.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string()).header("content-type", "application/json")
    }

    /// An answer with this body.
    #[must_use]
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            body: body.into(),
            ..Self::default()
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Closes the connection after this many bytes of the body, or with 0 before the answer.
    #[must_use]
    pub fn cut(self, after: usize) -> Self {
        Self {
            cut: Some(after),
            ..self
        }
    }

    /// Returns whether the connection goes on.
    fn write(&self, stream: &mut TcpStream) -> std::io::Result<bool> {
        if self.cut == Some(0) {
            return Ok(false);
        }
        let mut head = format!("HTTP/1.1 {} x\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.status != 304 {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let end = self.cut.unwrap_or(self.body.len()).min(self.body.len());
        let body = self.body.get(..end).unwrap_or_default();
        stream.write_all(&[head.as_bytes(), body].concat())?;
        stream.flush()?;
        Ok(self.cut.is_none())
    }
}

/// A request that is expected, and its answer.
#[derive(Clone, Debug)]
pub struct Expected {
    method: &'static str,
    target: String,
    answer: ServerAnswer,
}

/// Expects a request, by its method, and its path with its query.
#[must_use]
pub fn on(method: &'static str, target: impl Into<String>, answer: ServerAnswer) -> Expected {
    Expected {
        method,
        target: target.into(),
        answer,
    }
}

type Respond = dyn Fn(&SeenRequest) -> Option<ServerAnswer> + Send + Sync;

/// The server. It ends with this value.
pub struct ScriptedServer {
    at: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    respond: Box<Respond>,
    seen: Mutex<Vec<SeenRequest>>,
    unexpected: Mutex<Vec<String>>,
    left: Arc<Mutex<VecDeque<Expected>>>,
    is_over: AtomicBool,
}

impl ScriptedServer {
    /// Answers these requests, in this order and each once.
    ///
    /// # Panics
    /// This machine gives no port.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = Expected>) -> Self {
        let left: Arc<Mutex<VecDeque<Expected>>> =
            Arc::new(Mutex::new(script.into_iter().collect()));
        let script = Arc::clone(&left);
        let respond = move |request: &SeenRequest| {
            let mut script = locked(&script);
            let is_next = script
                .front()
                .is_some_and(|next| next.method == request.method && next.target == request.target);
            is_next
                .then(|| script.pop_front().map(|next| next.answer))
                .flatten()
        };
        Self::start(Box::new(respond), left)
    }

    /// Answers by this function; what it does not answer is unexpected.
    ///
    /// # Panics
    /// This machine gives no port.
    #[must_use]
    pub fn answering(
        respond: impl Fn(&SeenRequest) -> Option<ServerAnswer> + Send + Sync + 'static,
    ) -> Self {
        Self::start(Box::new(respond), Arc::default())
    }

    #[expect(clippy::expect_used, reason = "a test without a server has failed")]
    fn start(respond: Box<Respond>, left: Arc<Mutex<VecDeque<Expected>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let at = listener.local_addr().expect("the port");
        let shared = Arc::new(Shared {
            respond,
            seen: Mutex::default(),
            unexpected: Mutex::default(),
            left,
            is_over: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                let own = Arc::clone(&own);
                // Ends when the client closes the connection.
                thread::spawn(move || own.serve(stream));
            }
        });
        Self { at, shared }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// `127.0.0.1:PORT`, as a grant of endpoints names it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.at.to_string()
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        locked(&self.shared.seen).clone()
    }

    /// Checks that every expected request came, and no other.
    ///
    /// # Panics
    /// One did not, or another did.
    pub fn assert_done(&self) {
        let unexpected = locked(&self.shared.unexpected).clone();
        assert!(unexpected.is_empty(), "unexpected: {unexpected:#?}");
        let left: Vec<String> = locked(&self.shared.left)
            .iter()
            .map(|next| format!("{} {}", next.method, next.target))
            .collect();
        assert!(left.is_empty(), "did not come: {left:#?}");
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.at));
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let Ok(mut answers) = stream.try_clone() else {
            return;
        };
        let mut requests = BufReader::new(stream);
        while let Some(request) = read(&mut requests) {
            locked(&self.seen).push(request.clone());
            let answer = (self.respond)(&request).unwrap_or_else(|| {
                let line = format!("{} {}", request.method, request.target);
                let text = format!("unexpected: {line}");
                locked(&self.unexpected).push(line);
                ServerAnswer::text(UNEXPECTED, text)
            });
            if !matches!(answer.write(&mut answers), Ok(true)) {
                drop(answers.shutdown(std::net::Shutdown::Both));
                return;
            }
        }
    }
}

fn read(from: &mut BufReader<TcpStream>) -> Option<SeenRequest> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|many| *many > 0)?;
    let mut words = line.split_whitespace();
    let method = words.next()?.to_owned();
    let target = words.next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|many| *many > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let mut body = vec![0; length.min(MAX_BODY)];
    from.read_exact(&mut body).ok()?;
    Some(SeenRequest {
        method,
        target,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
