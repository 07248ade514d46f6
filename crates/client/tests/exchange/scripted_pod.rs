//! A pod that says what a test has it say.

use protocol::event::Event;
use protocol::message::{answer_line, event_line, record_line};
use protocol::method::{Attached, Draft, Hello, RecordPage, Role, Welcome};
use protocol::record::{RecordLine, Usage};
use protocol::status::{Host, ReloadReport, State, Status};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Runs a scene for a bounded time.
pub(crate) fn scene<T>(scene: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(60), scene)
            .await
            .unwrap()
    })
}

pub(crate) fn hello() -> Hello {
    client::connection::hello("yoi test", Role::Driver)
}

/// The socket of a pod, in a directory whose name is longer than the address of a socket.
pub(crate) struct ScriptedPod {
    listener: UnixListener,
    _root: TempDir,
    pub(crate) dir: std::path::PathBuf,
}

impl ScriptedPod {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("d".repeat(120));
        std::fs::create_dir(&dir).unwrap();
        Self {
            listener: Self::listen(&dir),
            _root: root,
            dir,
        }
    }

    /// The address of a socket is short: it is bound under a short name and gets its own.
    fn listen(dir: &Path) -> UnixListener {
        let short = dir.parent().unwrap().join("s");
        let listener = UnixListener::bind(&short).unwrap();
        std::fs::rename(short, dir.join(client::connection::SOCKET)).unwrap();
        listener
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Talk {
        Talk {
            stream: BufReader::new(self.listener.accept().await.unwrap().0),
            room: usize::MAX,
            cut: false,
        }
    }

    /// The next connection, after its hello was answered.
    pub(crate) async fn welcome(&self) -> Talk {
        let mut talk = self.accept().await;
        let asked = talk.hear().await.unwrap();
        assert_eq!(asked.method, "hello");
        talk.answer(asked.id, &welcome("s-1")).await;
        talk
    }

    /// The next connection, after its attach was answered, and the cursor that it had.
    pub(crate) async fn attached(&self, seq: u64) -> (Talk, Option<u64>) {
        let mut talk = self.welcome().await;
        let asked = talk.hear().await.unwrap();
        assert_eq!(asked.method, "attach");
        let after = asked.params["after"].as_u64();
        talk.answer(
            asked.id,
            &attached(seq, after.is_none().then(|| page(seq..seq))),
        )
        .await;
        (talk, after)
    }
}

/// A request that the pod got.
pub(crate) struct Heard {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// The pod's end of a connection.
pub(crate) struct Talk {
    stream: BufReader<UnixStream>,
    /// Bytes that may still be sent; then the connection ends.
    pub(crate) room: usize,
    pub(crate) cut: bool,
}

impl Talk {
    /// The next request; none if the client has left.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        let method = line["method"].as_str().unwrap().to_owned();
        Some(Heard {
            id: line["id"].as_u64().unwrap(),
            method,
            params: line["params"].clone(),
        })
    }

    /// Sends bytes, as many as there is room for. A client may have left.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let sent = bytes.len().min(self.room);
        self.room -= sent;
        drop(self.stream.get_mut().write_all(&bytes[..sent]).await);
        if sent < bytes.len() {
            self.cut = true;
            drop(self.stream.get_mut().shutdown().await);
        }
    }

    pub(crate) async fn answer<T: Serialize>(&mut self, id: u64, result: &T) {
        self.send(answer_line(Some(id), Ok(result)).unwrap().as_bytes())
            .await;
    }

    pub(crate) async fn record(&mut self, seq: u64) {
        self.send(record_line(&line(seq)).as_bytes()).await;
    }

    pub(crate) async fn event(&mut self, event: &Event) {
        self.send(event_line(event).unwrap().as_bytes()).await;
    }
}

/// The line of the record with this number.
pub(crate) fn line(seq: u64) -> String {
    json!({ "q": seq, "t": 1000 + seq, "k": "feature_note", "v": 1, "feature": "f", "text": format!("é {seq}") })
        .to_string()
}

pub(crate) fn page(seqs: std::ops::Range<u64>) -> RecordPage {
    let first = seqs.start + u64::from(seqs.is_empty());
    RecordPage {
        records: seqs
            .map(|seq| RecordLine::new(line(seq)).unwrap())
            .collect(),
        first,
    }
}

pub(crate) fn welcome(session: &str) -> Welcome {
    let pod = "p".to_owned();
    let program = "0.1.0".to_owned();
    Welcome {
        version: 1,
        pod,
        session: session.to_owned(),
        program,
        role: Role::Driver,
        methods: Vec::new(),
    }
}

pub(crate) fn attached(seq: u64, page: Option<RecordPage>) -> Attached {
    Attached {
        status: status(seq),
        draft: Draft::default(),
        page,
    }
}

pub(crate) fn status(seq: u64) -> Status {
    let version = "0.1.0".to_owned();
    let sandbox = "on".to_owned();
    let cwd = "/p".to_owned();
    Status {
        pod: "p".to_owned(),
        state: State::Idle,
        turn: None,
        step: None,
        held: None,
        disk: None,
        model_wait: None,
        approvals: Vec::new(),
        queued: Vec::new(),
        notices: 0,
        turns: 0,
        requests: 0,
        usage: Usage::default(),
        cost: None,
        context: None,
        pins: Vec::new(),
        compact_due: false,
        last_outcome: None,
        model: "m".to_owned(),
        stuck: 0,
        tasks: Vec::new(),
        more_tasks: 0,
        jobs: Vec::new(),
        clients: 0,
        seq,
        host: Host {
            pid: 7,
            since_us: 1,
            version,
            sandbox,
            cwd,
            branch: None,
            reload: ReloadReport::default(),
        },
    }
}

/// What is told of records.
pub(crate) fn seq(event: &Event) -> u64 {
    let Event::Record(line) = event else {
        panic!("{event:?}")
    };
    line.seq().unwrap()
}
