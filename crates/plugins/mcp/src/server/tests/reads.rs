//! Calls that only read, of servers that take or answer only a part of them.

use super::*;
use authority::HostPort;
use std::sync::Mutex as Lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Greets, and answers one read.
const BEGIN: &str = r#"
read -r line; echo '{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
read -r line; echo '{"id":2,"result":{"contents":[]}}'
"#;

const LONG: Duration = Duration::from_secs(60);

async fn read(server: &Arc<Server>, uri: &str, within: Duration) -> Result<String, Fault> {
    let request = ServerCall::Resource { uri };
    let called = server.read(&request, Instant::now() + within).await?;
    Ok(called.answer.unwrap().get().to_owned())
}

fn as_pinned() -> Unchanged {
    Arc::new(|| Ok(()))
}

/// A server after its first read.
async fn begun(script: &str) -> Arc<Server> {
    let server = of_script(&format!("{BEGIN}{script}"), as_pinned());
    let first = read(&server, "a:1", LONG).await;
    assert_eq!(first.as_deref(), Ok(r#"{"contents":[]}"#));
    server
}

/// Its child was given up on, and another one may start.
async fn is_free(server: &Server) -> bool {
    let running = tokio::time::timeout(LONG, server.running.lock()).await;
    running.is_ok_and(|running| running.is_none())
}

/// It held its server for good: nothing limited how long a request was written.
#[tokio::test]
async fn a_read_that_its_server_does_not_take_ends_in_its_time() {
    let server = begun("exec sleep 100").await;
    tokio::time::pause();
    // More than a pipe holds.
    let uri = "x".repeat(1 << 20);
    assert_eq!(read(&server, &uri, LONG).await, Err(Fault::Late));
    assert!(is_free(&server).await);
}

/// The same of a call, which is written elsewhere.
#[tokio::test]
async fn a_call_that_its_server_does_not_take_ends_in_its_time() {
    let server = begun("exec sleep 100").await;
    tokio::time::pause();
    let text = format!("\"{}\"", "x".repeat(1 << 20));
    let arguments = RawValue::from_string(text).unwrap();
    let request = ServerCall::Tool {
        name: "t",
        arguments: &arguments,
        answered: None,
    };
    let called = server.call(&request, Instant::now() + LONG).await;
    assert_eq!(called.map(drop), Err(Fault::Late));
    assert!(is_free(&server).await);
}

#[tokio::test]
async fn each_read_has_what_was_answered_before_the_server_died() {
    // The second of two is answered, and the first is not.
    let script = r#"read -r line; read -r line; echo '{"id":4,"result":{"contents":[4]}}'; exit 3"#;
    let server = begun(script).await;
    let (first, second) = tokio::join!(read(&server, "a:3", LONG), read(&server, "a:4", LONG));
    assert_eq!(second.as_deref(), Ok(r#"{"contents":[4]}"#));
    let Err(Fault::Died(why)) = first else {
        panic!("{first:?}");
    };
    assert!(why.contains("exit 3"), "{why}");
    assert!(is_free(&server).await);
}

#[tokio::test]
async fn a_read_that_nobody_waits_for_ends_its_server_unless_another_is_waited_for() {
    let seen = std::env::temp_dir().join(format!("yoi-mcp-reads-{}", std::process::id()));
    // It says that it has both, and answers one.
    let script = format!(
        r#"read -r line; read -r line; : > '{0}'; read -r line; echo '{{"id":4,"result":{{}}}}'
read -r line; : > '{0}'; while read -r line; do :; done"#,
        seen.display()
    );
    let server = begun(&script).await;
    let left = tokio::spawn({
        let server = Arc::clone(&server);
        async move { read(&server, "a:3", LONG).await }
    });
    let kept = tokio::spawn({
        let server = Arc::clone(&server);
        async move { read(&server, "a:4", LONG).await }
    });
    taken(&seen).await;
    left.abort();
    // This one has the server answer.
    let third = tokio::spawn({
        let server = Arc::clone(&server);
        async move { read(&server, "a:5", LONG).await }
    });
    assert_eq!(kept.await.unwrap().as_deref(), Ok("{}"));
    assert!(!third.is_finished());
    let fourth = tokio::spawn({
        let server = Arc::clone(&server);
        async move { read(&server, "a:6", LONG).await }
    });
    taken(&seen).await;
    third.abort();
    fourth.abort();
    assert!(is_free(&server).await);
}

/// Waits for the file of a script, by the real clock, and removes it.
async fn taken(file: &Path) {
    let begun = std::time::Instant::now();
    while std::fs::remove_file(file).is_err() {
        assert!(begun.elapsed() < LONG, "the server has not read them");
        tokio::task::yield_now().await;
    }
}

/// It was taken for one that lives, and the call for one that may have happened.
#[tokio::test]
async fn a_server_that_ends_at_its_prompts_was_not_called() {
    let script = r#"
read -r line; echo '{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}}}}'
read -r line; exit 3
"#;
    let server = of_script(script, as_pinned());
    let Err(Fault::NotStarted(why)) = read(&server, "a:1", LONG).await else {
        panic!("it was asked");
    };
    assert!(why.contains("exit 3"), "{why}");
}

/// One connection of a server over HTTP that leaves its first read without an answer.
async fn connection(mut stream: TcpStream, reads: Arc<Lock<u32>>) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split('\r').next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let request: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let result = if request["method"] == "resources/read" {
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            if *reads == 1 {
                return;
            }
            serde_json::json!({ "contents": [*reads] })
        } else {
            serde_json::json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} })
        };
        let answer = serde_json::json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// All that waited had the fault of the first, though none of them was sent.
#[tokio::test]
async fn a_fault_over_http_is_of_one_read_alone() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let reads = Arc::new(Lock::new(0));
    let count = Arc::clone(&reads);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&count)));
        }
    });
    let start = Start::Http {
        url: Url::parse(&format!("http://127.0.0.1:{port}/mcp")).unwrap(),
        net: Net::to(&ambient::claim(), [HostPort::new("127.0.0.1", port)]),
        secrets: Vec::new(),
    };
    let server = started_by(Launch::default(), start, as_pinned());
    let (first, second, third) = tokio::join!(
        read(&server, "a:1", LONG),
        read(&server, "a:2", LONG),
        read(&server, "a:3", LONG)
    );
    assert!(matches!(first, Err(Fault::Died(_))), "{first:?}");
    for (answer, number) in [(second, 2), (third, 3)] {
        assert_eq!(answer, Ok(format!(r#"{{"contents":[{number}]}}"#)));
    }
    assert_eq!(*reads.lock().unwrap(), 3);
}
