//! `yoi mcp serve`: the tools of a pod for clients of both eras, over the streams of the process.

use crate::scene::{Done, Scene};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A server on its streams, and its client.
pub(crate) struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Serving {
    pub(crate) fn start(scene: &Scene, args: &[&str]) -> Self {
        let mut command = scene.command(&[&["mcp", "serve"], args].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
            asked: 0,
        }
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&request.to_string());
        id
    }

    /// The answer to a request, which comes next.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    /// Calls a tool; the result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )["result"]
            .take()
    }

    /// Ends the input; what was answered since, and how the process ended.
    pub(crate) fn end(mut self) -> (Vec<Value>, Done) {
        drop(self.input.take());
        let rest = self.output.lines().map(|line| {
            let line = line.unwrap();
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
        });
        let rest = rest.collect();
        (rest, crate::finish(self.child))
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// `_meta` of a modern request.
fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_client_of_either_era_lists_and_calls_without_a_pod_or_a_key() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let mut old = Serving::start(&scene, &[]);
    let initialize = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let greeted = old.ask("initialize", &initialize);
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    old.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let listed = old.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let mut properties = tool["inputSchema"]["properties"]
            .as_object()
            .into_iter()
            .flatten();
        assert!(properties.all(|(_, schema)| schema.is_object()), "{tool}");
    }
    let hint = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["readOnlyHint"].clone()
    };
    assert_eq!((hint("Read"), hint("Write")), (json!(true), json!(false)));
    // A whole number may be written as a fraction.
    let read = old.call("Read", &json!({ "path": "a.txt", "limit": 1.0 }));
    assert!(
        text(&read).contains("one") && read["isError"] == false,
        "{read}"
    );
    let (rest, done) = old.end();
    assert_eq!(rest, Vec::<Value>::new());
    done.ends(0);

    let mut new = Serving::start(&scene, &["--tools", "Re*"]);
    let discovered = new.ask("server/discover", &json!({ "_meta": modern() }));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let listed = new.ask("tools/list", &json!({ "_meta": modern() }));
    let result = &listed["result"];
    assert_eq!(
        (
            &result["resultType"],
            &result["cacheScope"],
            &result["ttlMs"]
        ),
        (&json!("complete"), &json!("private"), &json!(0))
    );
    let names: Vec<_> = result["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert!(
        names.contains(&&json!("Read")) && !names.contains(&&json!("Write")),
        "{names:?}"
    );
    let lost = new.ask(
        "tools/call",
        &json!({ "_meta": modern(), "name": "Read", "arguments": { "path": "b.txt" } }),
    );
    assert_eq!(
        (&lost["result"]["isError"], &lost["result"]["resultType"]),
        (&json!(true), &json!("complete"))
    );
    // What the filter leaves out is not there.
    let hidden = new.ask(
        "tools/call",
        &json!({ "name": "Write", "arguments": { "path": "c", "content": "" } }),
    );
    assert_eq!(hidden["error"]["code"], -32602);
    let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2030-01-01" } });
    let other = new.ask("tools/list", &other);
    assert_eq!(
        (
            &other["error"]["code"],
            &other["error"]["data"]["supported"]
        ),
        (&json!(-32022), &json!(["2026-07-28"]))
    );
    new.end().1.ends(0);
    // The pod ended with its last client, and has a journal.
    let pods = scene.pods();
    assert_eq!(pods, ["mcp-project"]);
    assert_eq!(
        scene.records("mcp-project").last().unwrap()["k"],
        "host_stopped"
    );
    scene.sound("mcp-project");
}

#[test]
fn at_the_end_of_the_input_what_was_accepted_is_finished_and_answered() {
    let scene = Scene::new();
    let lines = [
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"Write","arguments":{"path":"made","content":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"resources/list"}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"Raed"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":[]}}"#,
        "not json",
    ];
    let done = scene
        .fed(&["mcp", "serve"], lines.join("\n").as_bytes())
        .ends(0);
    let answers = done.lines();
    let with = |id: Value| {
        let found = answers.iter().filter(|answer| answer["id"] == id);
        found.cloned().collect::<Vec<_>>()
    };
    assert_eq!(answers.len(), lines.len());
    assert_eq!(with(json!("a"))[0]["result"]["isError"], false);
    assert_eq!(with(json!(2))[0]["result"], json!({}));
    for (id, code) in [(3, -32601), (4, -32602), (5, -32602)] {
        assert_eq!(with(json!(id))[0]["error"]["code"], code, "{id}");
    }
    let mut codes: Vec<_> = with(Value::Null)
        .iter()
        .map(|of| of["error"]["code"].as_i64())
        .collect();
    codes.sort();
    assert_eq!(codes, [Some(-32700), Some(-32600)]);
    assert_eq!(scene.read("made"), "x");
    scene.sound("mcp-project");
}

#[test]
fn a_call_that_waits_for_a_person_says_how_and_runs_once() {
    let scene = Scene::new();
    scene.config("[[permissions.rules]]\ntool = \"Write\"\ndecision = \"ask\"\n");
    let mut serving = Serving::start(&scene, &[]);
    let arguments = json!({ "path": "made", "content": "x" });
    let params =
        json!({ "name": "Write", "arguments": arguments, "_meta": { "progressToken": 0 } });
    let id = serving.send("tools/call", &params);
    let told = serving.read();
    assert_eq!(
        (&told["method"], &told["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!(0))
    );
    let words = told["params"]["message"].as_str().unwrap();
    assert!(words.contains("`yoi approve mcp-project 1`"), "{words}");
    scene.yoi(&["approve", "mcp-project", "1"]).ends(0);
    let answer = loop {
        let line = serving.read();
        if line["id"] == json!(id) {
            break line;
        }
    };
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(scene.read("made"), "x");
    // One that nobody answers ends with its client, and does not run.
    let params = json!({ "name": "Write", "arguments": { "path": "other", "content": "x" }, "_meta": { "progressToken": "t" } });
    serving.send("tools/call", &params);
    assert_eq!(serving.read()["params"]["progressToken"], "t");
    serving
        .write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    let (rest, done) = serving.end();
    assert!(rest.iter().all(|line| line["id"] != json!(2)), "{rest:?}");
    done.ends(0);
    assert!(!scene.file("other").exists());
    scene.sound("mcp-project");
}
