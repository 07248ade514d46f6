//! `yoi mcp serve --http`: the bridge for scripts and the protocol on a port, and what browsers and strangers send there.

use crate::scene::{Scene, finish, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr};

struct Port {
    child: Child,
    /// Kept, so that what the server says later has somewhere to go.
    told: BufReader<ChildStderr>,
    address: String,
    token: String,
    file: PathBuf,
}

/// A server on a free port.
fn serving(scene: &Scene) -> Port {
    let mut child = scene
        .command(&["mcp", "serve", "--http", "127.0.0.1:0"])
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the token is in ") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    let (_, rest) = line.split_once("http://").unwrap();
    let (address, rest) = rest.split_once("/mcp").unwrap();
    let (_, file) = rest.split_once("the token is in ").unwrap();
    let file = PathBuf::from(file.trim());
    Port {
        child,
        told,
        address: address.to_owned(),
        token: std::fs::read_to_string(&file).unwrap(),
        file,
    }
}

impl Port {
    /// Sends these bytes; the status and the body of what comes back, 0 for nothing.
    fn raw(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The server may refuse before it has read everything.
        drop(stream.write_all(bytes));
        drop(stream.shutdown(std::net::Shutdown::Write));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer);
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body = answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned());
        (status.unwrap_or(0), body.unwrap_or_default())
    }

    /// A request with these headers beside its length.
    fn with(&self, what: &str, headers: &[String], body: &str) -> (u16, String) {
        let length = body.len();
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!("{what} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.raw(format!("{head}{body}").as_bytes())
    }

    /// The headers of a client that has the token.
    fn own(&self) -> Vec<String> {
        vec![
            format!("Host: {}", self.address),
            format!("Authorization: Bearer {}", self.token),
            "Content-Type: application/json".to_owned(),
        ]
    }

    fn ask(&self, what: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.with(what, &self.own(), body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    fn end(self) {
        signal(self.child.id(), Signal::TERM);
        drop(self.told);
        finish(self.child).ends(0);
        assert!(!self.file.exists());
    }
}

#[test]
fn a_script_and_a_client_call_tools_on_a_port() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let port = serving(&scene);
    let mode = port.file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (status, health) = port.ask("GET /health", "");
    assert_eq!((status, &health["pod"]), (200, &json!("mcp-project")));
    let (status, tools) = port.ask("GET /tools", "");
    assert_eq!(status, 200);
    assert!(
        tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "Read"
                && tool["effect"] == "read_only"
                && tool["schema"]["type"] == "object")
    );
    let (status, read) = port.ask("POST /tools/Read", r#"{"path":"a.txt"}"#);
    assert_eq!((status, &read["status"]), (200, &json!("ok")), "{read}");
    assert!(read["content"].as_str().unwrap().contains("one"));
    let (status, lost) = port.ask("POST /tools/Read", r#"{"path":"b.txt"}"#);
    assert_eq!((status, &lost["status"]), (200, &json!("error")), "{lost}");
    for (what, body, status) in [
        ("POST /tools/Raed", "{}", 404),
        ("POST /tools/Read", "[]", 400),
        ("GET /tools/Read", "", 405),
        ("GET /mcp", "", 405),
        ("POST /other", "{}", 404),
        ("POST /mcp", "{", 400),
    ] {
        assert_eq!(port.ask(what, body).0, status, "{what} {body}");
    }
    let list = |version: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": { "_meta": { "io.modelcontextprotocol/protocolVersion": version } } })
        .to_string()
    };
    let modern = [
        port.own(),
        vec![
            "MCP-Protocol-Version: 2026-07-28".to_owned(),
            "Mcp-Method: tools/list".to_owned(),
        ],
    ]
    .concat();
    let (status, listed) = port.with("POST /mcp", &modern, &list("2026-07-28"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (status, &listed["result"]["resultType"]),
        (200, &json!("complete"))
    );
    let (status, unfit) = port.ask("POST /mcp", &list("2026-07-28"));
    assert_eq!((status, &unfit["error"]["code"]), (400, &json!(-32020)));
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(port.ask("POST /mcp", told).0, 202);
    // With a token for progress, the answer is the end of a stream.
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": "Read", "arguments": { "path": "a.txt" }, "_meta": { "progressToken": 1 } } });
    let accepts = [
        port.own(),
        vec!["Accept: application/json, text/event-stream".to_owned()],
    ]
    .concat();
    let (status, streamed) = port.with("POST /mcp", &accepts, &call.to_string());
    assert!(
        status == 200 && streamed.contains("data: {") && streamed.contains("\"id\":7"),
        "{streamed}"
    );
    port.end();
    scene.sound("mcp-project");
}

#[test]
fn what_a_browser_or_a_stranger_sends_runs_nothing() {
    let scene = Scene::new();
    let port = serving(&scene);
    let write = r#"{"path":"made","content":"x"}"#;
    let host = format!("Host: {}", port.address);
    let token = format!("Authorization: Bearer {}", port.token);
    let own_origin = format!("Origin: http://{}", port.address);
    let number = port.address.rsplit(':').next().unwrap();
    let by_name = format!("Host: localhost:{number}");
    let table: &[(u16, &[&str])] = &[
        (401, &[&host]),
        (401, &[&host, "Authorization: Bearer"]),
        (401, &[&host, "Authorization: Bearer 00"]),
        (401, &[&host, &format!("{token}0")]),
        (
            401,
            &[&host, &format!("Authorization: Basic {}", port.token)],
        ),
        (401, &[&host, &token, "Authorization: Bearer 00"]),
        // A page of another site, and one whose name was made to lead here.
        (403, &[&host, &token, "Origin: http://evil.example"]),
        (403, &[&host, &token, "Origin: null"]),
        (403, &[&host, &token, "Origin: http://localhost:1"]),
        (403, &[&format!("Host: evil.example:{number}"), &token]),
        (403, &["Host: 127.0.0.1", &token]),
        (403, &[&token]),
        (403, &[&format!("Host: evil.example:{number}")]),
        (404, &[&host, &token, &own_origin]),
        (404, &[&by_name, &token]),
    ];
    for (status, headers) in table {
        let headers: Vec<String> = headers.iter().map(|line| (*line).to_owned()).collect();
        let path = if *status == 404 {
            "/nothing"
        } else {
            "/tools/Write"
        };
        let got = port.with(&format!("POST {path}"), &headers, write);
        assert_eq!(got.0, *status, "{headers:?}: {}", got.1);
    }
    let long = format!("{host}\r\n{token}\r\nContent-Length: 99999999\r\n\r\n{{");
    assert_eq!(
        port.raw(format!("POST /tools/Write HTTP/1.1\r\n{long}").as_bytes())
            .0,
        413
    );
    // Cut and changed requests, from the same seed each time.
    let good = format!(
        "POST /tools/Write HTTP/1.1\r\n{host}\r\n{token}0\r\nContent-Length: 29\r\n\r\n{write}"
    );
    let mut seed = 7_u64;
    for _ in 0..300 {
        let mut bytes = good.clone().into_bytes();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(seed >> 33).unwrap() % bytes.len();
            bytes[at] = u8::try_from((seed >> 20) & 0xff).unwrap();
        }
        let cut = usize::try_from(seed >> 40).unwrap() % bytes.len();
        let (status, _) = port.raw(&bytes[..cut]);
        assert!(
            status != 200 && status != 202,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
    assert_eq!(port.ask("GET /health", "").0, 200);
    port.end();
    assert!(!scene.file("made").exists());
    let ran = scene
        .records("mcp-project")
        .iter()
        .filter(|record| record["k"] == "input_queued")
        .count();
    assert_eq!(ran, 0);
}

#[test]
fn only_addresses_of_this_machine_are_served() {
    let scene = Scene::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        scene
            .yoi(&["mcp", "serve", "--http", address])
            .ends(2)
            .says(&["is not an address of this machine alone"]);
    }
    assert!(scene.pods().is_empty());
}
