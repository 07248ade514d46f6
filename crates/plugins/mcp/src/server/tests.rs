//! When a server that nobody calls ends: with a real child and a clock that is moved.

mod reads;

use super::*;
use crate::pin::ServerInfo;
use authority::{Confinement, EnvPolicy, SandboxMode};

/// Answers the first two requests of a client: whom it greets, and a call with its number.
const SERVER: &str = r#"
read -r line; echo '{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
read -r line; echo '{"id":2,"result":{"content":[],"pid":'$$'}}'
while read -r line; do :; done
"#;

fn spawner() -> Spawner {
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    Spawner::new(&ambient::claim(), confinement, env, "mcp-test/1".to_owned()).unwrap()
}

/// A server of this shell script, which is not started yet.
fn of_script(script: &str, unchanged: Unchanged) -> Arc<Server> {
    let launch = Launch {
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        ..Launch::default()
    };
    let start = Start::Child {
        spawner: spawner(),
        secrets: Vec::new(),
        cwd: std::env::temp_dir(),
    };
    started_by(launch, start, unchanged)
}

fn started_by(launch: Launch, start: Start, unchanged: Unchanged) -> Arc<Server> {
    let about = (Era::Modern, "2026-07-28".to_owned(), ServerInfo::default());
    let defined = crate::Definitions::default();
    let pin = ServerPin::new("x".to_owned(), launch, about, defined);
    Arc::new(Server::new(Arc::new(pin), start, unchanged, None))
}

/// A server that was called once, and the number of its process.
async fn called(unchanged: Unchanged) -> (Arc<Server>, u32) {
    let server = of_script(SERVER, unchanged);
    let until = Instant::now() + Duration::from_secs(60);
    let nothing = RawValue::from_string("{}".to_owned()).unwrap();
    let request = ServerCall::Tool {
        name: "t",
        arguments: &nothing,
        answered: None,
    };
    let called = server.call(&request, until).await;
    let answer = called.map(|called| called.answer).unwrap().unwrap();
    let answer: serde_json::Value = serde_json::from_str(answer.get()).unwrap();
    let pid = answer["pid"].as_u64().and_then(|pid| pid.try_into().ok());
    (server, pid.unwrap())
}

/// Who keeps an idle server holds it.
fn is_kept(server: &Server) -> bool {
    server.running.try_lock().is_err()
}

/// Waits for the end of a process, by the real clock.
async fn ended(pid: u32) {
    let begun = std::time::Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it runs");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_nobody_calls_ends_after_ten_minutes() {
    let (server, pid) = called(Arc::new(|| Ok(()))).await;
    tokio::time::pause();
    tokio::time::sleep(IDLE - LOOK).await;
    assert!(is_kept(&server));
    tokio::time::sleep(2 * LOOK).await;
    assert!(!is_kept(&server));
    assert!(server.running.lock().await.is_none());
    ended(pid).await;
}

#[tokio::test]
async fn a_server_without_its_pin_ends_soon() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let look = Arc::clone(&is_gone);
    let unchanged = move || match look.load(Ordering::SeqCst) {
        true => Err("gone".to_owned()),
        false => Ok(()),
    };
    let (server, pid) = called(Arc::new(unchanged)).await;
    tokio::time::pause();
    tokio::time::sleep(2 * LOOK).await;
    assert!(is_kept(&server));
    is_gone.store(true, Ordering::SeqCst);
    tokio::time::sleep(2 * LOOK).await;
    assert!(!is_kept(&server));
    ended(pid).await;
}
