//! A pod that stays with `builtin:notify-person`, in manual time, and a webhook on loopback.

use authority::{Confinement, EnvPolicy, HostPort, Net, SandboxMode, Secret, Spawner};
use builtins::Now;
use builtins::notify_person::{
    AttemptLimits, DELIVERIES, Deliveries, Delivery, DeliveryState, ID, NotifyPerson, SECRET,
    Settings, WEBHOOK,
};
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::{HostMode, NewInput};
use pod::feature::{FeatureModule, HostCapability, HostServices};
use pod::hook::Event;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};
use testkit::{FnTool, LivePod, ModelScript, PATIENCE, PodUnderTest, ScriptedAnswer};

/// A part of the URL that no text may have.
pub(crate) const TOKEN: &str = "s3cr3t-token-0001";

/// A webhook that answers with these statuses, the last one again and again.
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn answering(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !whole(&request) {
                    match stream.read(&mut piece) {
                        Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
                        _ => break,
                    }
                }
                if !whole(&request) {
                    continue;
                }
                let nth = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(String::from_utf8(request).unwrap());
                    seen.len() - 1
                };
                let status = statuses[nth.min(statuses.len() - 1)];
                drop(write!(
                    stream,
                    "HTTP/1.1 {status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                ));
            }
        });
        Self { port, requests }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook/{TOKEN}?key=value", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The idempotency keys of the requests from this one on.
    pub(crate) fn keys(&self, from: usize) -> Vec<String> {
        let key = |request: &String| {
            let line = request
                .lines()
                .find(|line| line.to_ascii_lowercase().starts_with("idempotency-key: "));
            line.unwrap()["idempotency-key: ".len()..].to_owned()
        };
        self.requests().iter().skip(from).map(key).collect()
    }
}

/// Whether head and body are there.
fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    body.len() >= length.unwrap_or(0)
}

/// A pod with the feature; its model gives as many answers as it is asked for, up to 20.
pub(crate) fn pod(
    settings: Settings,
    waits: AttemptLimits,
    server: Option<&Server>,
) -> PodUnderTest {
    let answers = (0..20)
        .map(|n| ScriptedAnswer::text(&format!("answer {n}")))
        .collect::<Vec<_>>();
    let echo = FnTool::new("Echo", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput::default())
    });
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), vec![echo]);
    pod.mode = HostMode::Stay { missing: None };
    let clock = pod.clock.clock();
    let now: Now = Arc::new(move || UNIX_EPOCH + Duration::from_micros(clock()));
    let module: Arc<dyn FeatureModule> =
        Arc::new(NotifyPerson::new(settings, now).unwrap().within(waits));
    let grants = vec![
        HostCapability::ANY_BACKGROUND_TASK,
        HostCapability::hook::<Event>(),
        HostCapability::SESSION_STATE,
        HostCapability::ANY_PROGRAM,
        HostCapability::READ_WORKSPACE,
        HostCapability::network("webhook"),
        SECRET,
    ];
    pod.features = vec![(module, grants)];
    let ambient = ambient::claim();
    if let Some(server) = server {
        let secret = Secret::new(&ambient, WEBHOOK, server.url());
        let part = Secret::new(&ambient, WEBHOOK, TOKEN.to_owned());
        [&secret, &part]
            .into_iter()
            .for_each(|secret| pod.redactor.add(secret).unwrap());
        let port = server.port;
        pod.offer = Arc::new(move |services: HostServices| {
            services
                .net(Net::to(
                    &ambient::claim(),
                    [HostPort::new("127.0.0.1", port)],
                ))
                .secret(secret.clone())
        });
    } else {
        let off = Confinement {
            mode: SandboxMode::Off,
            read: Vec::new(),
            write: Vec::new(),
        };
        let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
        let spawner = Spawner::new(&ambient, off, env, "test/1".into()).unwrap();
        pod.offer = Arc::new(move |services: HostServices| services.spawner(spawner.clone()));
    }
    pod
}

/// Settings of a webhook, or of a command that is run by a shell and gets the message as `$0`.
pub(crate) fn settings(command: Option<&str>) -> Settings {
    match command {
        None => Settings {
            webhook_file: Some("/unread".into()),
            ..Settings::default()
        },
        Some(script) => {
            let command = ["sh", "-c", script].map(str::to_owned).to_vec();
            Settings {
                command,
                ..Settings::default()
            }
        }
    }
}

/// An open pod, with its start in the log.
pub(crate) fn open(pod: PodUnderTest) -> LivePod {
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
    live.until(|status| live.folded(status.folded).hosted);
    live
}

/// Takes one input through its turn.
pub(crate) fn turn(live: &LivePod) {
    let input = NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    };
    live.ask(async {
        live.client()
            .send(input)
            .await
            .unwrap()
            .end()
            .await
            .unwrap()
    });
}

/// Waits until the feature has heard that the turn ended: its observer runs on a thread of its own.
pub(crate) fn heard(live: &LivePod) {
    let began = Instant::now();
    while live
        .ask(live.client().status())
        .unwrap()
        .tasks
        .iter()
        .all(|task| task.next_due_ms.is_none())
    {
        assert!(began.elapsed() < PATIENCE, "no run is due");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets time pass until the command has written its file. It stands still while a run is open: what passes meanwhile
/// counts against the command's deadline.
pub(crate) fn begins(live: &LivePod, told: &Path) {
    let began = Instant::now();
    let mut waited = 0;
    while !told.exists() {
        assert!(began.elapsed() < PATIENCE, "no command began");
        let folded = live.ask(live.client().status()).unwrap().folded;
        if live.folded(folded).open_tasks().count() > 0 && waited < 500 {
            waited += 1;
        } else {
            waited = 0;
            live.advance(Duration::from_secs(1));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What the durable state has, up to a record.
pub(crate) fn deliveries(live: &LivePod, upto: u64) -> Deliveries {
    let state = live.folded(upto);
    let kept = state
        .features
        .get(&(ID.to_string(), DELIVERIES.name().to_owned()));
    kept.map(|kept| serde_json::from_value((*kept.value).clone()).unwrap())
        .unwrap_or_default()
}

/// Lets time pass, and what is due in it run. None once the pod is dead.
pub(crate) fn pass(live: &LivePod) -> Option<Deliveries> {
    live.advance(Duration::from_secs(10));
    let status = live.try_run_due()?;
    Some(deliveries(live, status.folded))
}

/// Lets time pass until an event is in this state. Returns it.
pub(crate) fn passes(live: &LivePod, nth: usize, wanted: DeliveryState) -> Delivery {
    let began = Instant::now();
    loop {
        let all = pass(live).unwrap();
        match all.events.get(nth) {
            Some(delivery) if delivery.state == wanted => return delivery.clone(),
            _ => assert!(
                began.elapsed() < PATIENCE,
                "event {nth} is not {wanted:?}: {all:#?}"
            ),
        }
    }
}
