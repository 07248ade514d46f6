//! A live pod that is served, and clients that write their own lines.
use llm_worker::{StopReason, ToolEffect, ToolOutput};
use pod::control::{BetweenTurns, HostMode};
use pod::ipc::{HostActions, Served, ServedPod};
use protocol::method::Undone;
use protocol::status::{Host, ReloadReport};
use serde_json::{Value, json};
use session_store::Reader;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{FnTool, Latch, LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer};
use tokio::sync::watch;

const SOCKET: &str = "sock";

/// Longer than anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was asked of the host.
#[derive(Default)]
pub(crate) struct Actions {
    pub(crate) undone: Mutex<Vec<u64>>,
    pub(crate) shut_down: Mutex<Vec<bool>>,
}

impl HostActions for Actions {
    fn undo(&self, to: u64, turns: BetweenTurns) -> Undone {
        drop(turns);
        self.undone.lock().unwrap().push(to);
        Undone {
            lines: vec![format!("undone to {to}")],
            failure: None,
        }
    }

    fn shut_down(&self, now: bool) -> Result<(), String> {
        self.shut_down.lock().unwrap().push(now);
        Ok(())
    }
}

pub(crate) struct Scene {
    pub(crate) live: LivePod,
    pub(crate) actions: Arc<Actions>,
    /// The process, as its program reports it.
    pub(crate) host: watch::Sender<Host>,
    served: Served,
}

/// A model that gives these answers, each when its latch is opened.
pub(crate) fn held_answers(latches: &[Latch]) -> Vec<ScriptedAnswer> {
    let answer = |(n, latch): (usize, &Latch)| {
        ScriptedAnswer::new()
            .wait_at(latch)
            .say(&format!("answer {n}"))
            .stop(StopReason::EndTurn)
    };
    latches.iter().enumerate().map(answer).collect()
}

/// A model that says this many words one after the other, each in an answer of its own.
pub(crate) fn answers(count: usize) -> Vec<ScriptedAnswer> {
    (0..count)
        .map(|n| {
            ScriptedAnswer::new()
                .say(&format!("answer {n}"))
                .stop(StopReason::EndTurn)
        })
        .collect()
}

impl Scene {
    pub(crate) fn new(answers: Vec<ScriptedAnswer>) -> Self {
        let echo = FnTool::new("Echo", ToolEffect::ReadOnly, |_, arguments| async move {
            Ok(ToolOutput {
                summary: arguments,
                content: String::new(),
                data: None,
            })
        });
        let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), vec![echo]);
        pod.mode = HostMode::Stay { missing: None };
        Self::of(pod)
    }

    pub(crate) fn of(pod: PodUnderTest) -> Self {
        let live =
            LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
        live.until(|status| live.folded(status.folded).hosted);
        let actions = Arc::new(Actions::default());
        let host = Host {
            pid: std::process::id(),
            since_us: 1,
            version: "0".to_owned(),
            sandbox: "off".to_owned(),
            cwd: "/p".to_owned(),
            branch: None,
            reload: ReloadReport::default(),
        };
        let host = watch::Sender::new(host);
        let pod = ServedPod {
            client: live.client(),
            dir: live.pod.dir.clone(),
            name: "p".to_owned(),
            session: "s".to_owned(),
            host: host.subscribe(),
            actions: actions.clone(),
        };
        let listener = UnixListener::bind(pod.dir.join(SOCKET)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let served = Served::start(ambient::claim(), listener, pod).unwrap();
        Self {
            live,
            actions,
            host,
            served,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.live.pod.dir.join(SOCKET)
    }

    /// A client that said hello as a driver.
    pub(crate) fn driver(&self) -> Raw {
        let mut raw = self.stranger();
        raw.ask(
            "hello",
            json!({ "versions": [1], "client": "test", "role": "driver" }),
        )
        .unwrap();
        raw
    }

    /// A client that said nothing yet.
    pub(crate) fn stranger(&self) -> Raw {
        Raw::connect(UnixStream::connect(self.socket()).unwrap())
    }

    /// The lines of the journal that clients may see.
    pub(crate) fn journal(&self) -> Vec<String> {
        let reader = Reader::open(&self.live.pod.dir).unwrap();
        let frames = reader
            .frames()
            .map(|frame| frame.unwrap())
            .filter(|frame| frame.kind != "feature_state");
        frames
            .map(|frame| frame.line.trim_end().to_owned())
            .collect()
    }

    /// Waits until every input had its turn.
    pub(crate) fn settled(&self) {
        self.live.settled();
    }

    /// Ends the pod as its program does.
    pub(crate) fn close(self) -> Over {
        let Self { live, served, .. } = self;
        served.close();
        let over = live.close();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(served.drained(None));
        over
    }
}

/// A connection that speaks for itself.
pub(crate) struct Raw {
    pub(crate) stream: BufReader<UnixStream>,
    asked: u64,
    /// Events that came before an answer: as they came.
    events: VecDeque<String>,
}

impl Raw {
    fn connect(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: BufReader::new(stream),
            asked: 0,
            events: VecDeque::new(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The next line; none at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream
            .read_line(&mut line)
            .ok()
            .filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// Whether the pod has ended the connection. It is waited for, and nothing else may come.
    pub(crate) fn is_ended(&mut self) -> bool {
        self.stream
            .get_ref()
            .set_read_timeout(Some(PATIENCE))
            .unwrap();
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Sends a request without waiting for its answer. Returns its number.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> std::io::Result<u64> {
        self.asked += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params })
            .to_string() + "\n";
        self.write(line.as_bytes())?;
        Ok(self.asked)
    }

    /// A request, and its answer or error. Events before it are kept.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self
            .send(method, params)
            .map_err(|error| json!(error.to_string()))?;
        loop {
            let line = self.line().ok_or_else(|| json!("the end"))?;
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id || (message.get("error").is_some() && message["id"].is_null()) {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(message["error"].clone()),
                };
            }
            self.events.push_back(line);
        }
    }

    pub(crate) fn kind(refused: Result<Value, Value>) -> String {
        refused.unwrap_err()["data"]["kind"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The next event, as it came.
    pub(crate) fn event(&mut self) -> Option<String> {
        match self.events.pop_front() {
            Some(event) => Some(event),
            None => self.line(),
        }
    }

    /// The next event of this name.
    pub(crate) fn next(&mut self, name: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.event().unwrap()).unwrap();
            if event["method"] == name {
                return event["params"].clone();
            }
        }
    }

    /// The lines of the next records, up to the one with this number.
    pub(crate) fn records(&mut self, upto: u64) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(event) = self.event() {
            if let Some(line) =
                event.strip_prefix(r#"{"jsonrpc":"2.0","method":"record","params":"#)
            {
                let line = line.strip_suffix('}').unwrap();
                let seq = serde_json::from_str::<Value>(line).unwrap()["q"]
                    .as_u64()
                    .unwrap();
                lines.push(line.to_owned());
                if seq >= upto {
                    break;
                }
            }
        }
        lines
    }
}
