//! `yoi acp` as an editor meets it: every line that it sends fits the schema that the makers of the protocol published.

mod offers;
mod sessions;

use crate::scene::{Scene, finish};
use pod::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Of version 1, from the package `@agentclientprotocol/sdk` 2.4.0 for Node, without its texts; under the Apache License 2.0.
const PUBLISHED: &str = include_str!("editors/published.json");

/// How long a line may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the pods of a scene, which outlive their editors.
pub(crate) struct Stays<'a>(&'a Scene);

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        for name in self.0.pods() {
            drop(self.0.yoi(&["stop", &name, "--now"]));
        }
    }
}

/// An editor: a process of `yoi acp`, and what it said.
pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    requests: BTreeMap<u64, String>,
    last: u64,
    /// Updates, in order.
    told: Vec<Value>,
    /// Requests and other notifications of the agent, in order.
    asked: Vec<Value>,
}

impl Editor {
    fn start(scene: &Scene, flags: &[&str]) -> Self {
        let mut child = scene
            .command(&[&["acp"], flags].concat())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            requests: BTreeMap::new(),
            last: 100,
            told: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// One that said hello.
    fn ready(scene: &Scene, flags: &[&str]) -> Self {
        let mut editor = Self::start(scene, flags);
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        assert_eq!(editor.call("initialize", hello)["protocolVersion"], 1);
        editor
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.write(&message.to_string());
    }

    /// Sends a request; gives its number.
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.requests.insert(self.last, method.to_owned());
        self.send(json!({ "id": self.last, "method": method, "params": params }));
        self.last
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// The next line; one that is no answer is kept.
    fn read(&mut self) -> Option<Value> {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        let message: Value = serde_json::from_str(&line).expect(&line);
        self.fits(&message);
        match message["method"].as_str() {
            Some("session/update") => self.told.push(message["params"].clone()),
            Some(_) => self.asked.push(message),
            None => return Some(message),
        }
        None
    }

    /// Asserts that the message is one of the published ones.
    fn fits(&self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        let (definition, part) = match message["method"].as_str() {
            Some("session/update") => ("SessionNotification", "params"),
            Some("session/request_permission") => ("RequestPermissionRequest", "params"),
            Some("$/cancel_request") => ("CancelRequestNotification", "params"),
            Some(other) => panic!("{other}"),
            None if message.get("error").is_some() => ("Error", "error"),
            None => {
                let id = message["id"].as_u64().unwrap();
                let answer = match self.requests[&id].as_str() {
                    "initialize" => "InitializeResponse",
                    "session/new" => "NewSessionResponse",
                    "session/load" => "LoadSessionResponse",
                    "session/list" => "ListSessionsResponse",
                    "session/prompt" => "PromptResponse",
                    "session/set_mode" => "SetSessionModeResponse",
                    other => panic!("{other} has an answer"),
                };
                (answer, "result")
            }
        };
        let mut schema: Value = serde_json::from_str(PUBLISHED).unwrap();
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        let checked = Schema::compile(schema).unwrap().check(&message[part]);
        assert_eq!(checked, Ok(()), "{definition}: {message:#}");
    }

    /// The answer to a request.
    #[track_caller]
    fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.read() {
                assert_eq!(answer["id"], id, "{answer}");
                return answer;
            }
        }
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a request: its code and words.
    #[track_caller]
    fn fails(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.request(method, params);
        let answer = self.answer(id);
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap_or_default();
        (error["code"].as_i64().unwrap(), message.to_owned())
    }

    /// Opens a session in the project.
    #[track_caller]
    fn new_session(&mut self, scene: &Scene) -> String {
        let params = json!({ "cwd": scene.path("project"), "mcpServers": [] });
        let opened = self.call("session/new", params);
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a text; gives the number of the request.
    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let block = json!({ "type": "text", "text": text });
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": [block] }),
        )
    }

    /// The stop reason of a prompt.
    #[track_caller]
    fn stopped(&mut self, id: u64) -> String {
        let answer = self.answer(id);
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Waits for an update that fits.
    fn until_told(&mut self, fits: impl Fn(&Value) -> bool) {
        while !self.told.iter().any(|told| fits(&told["update"])) {
            assert_eq!(self.read(), None);
        }
    }

    /// Waits for the next request or notification of the agent of this method.
    fn next_asked(&mut self, method: &str) -> Value {
        loop {
            let of_method = |message: &Value| message["method"] == method;
            if let Some(at) = self.asked.iter().position(of_method) {
                return self.asked.remove(at);
            }
            assert_eq!(self.read(), None);
        }
    }

    /// Answers a question with one of its options.
    fn choose(&mut self, asked: &Value, kind: &str) {
        let options = asked["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind);
        let outcome = json!({ "outcome": "selected", "optionId": option.unwrap()["optionId"] });
        self.send(json!({ "id": asked["id"], "result": { "outcome": outcome } }));
    }

    /// What was told as messages, by who says it: the texts of each message together.
    fn messages(&self) -> Vec<(String, String)> {
        let mut messages: Vec<(Value, String, String)> = Vec::new();
        for told in &self.told {
            let update = &told["update"];
            let Some(text) = update["content"]["text"].as_str() else {
                continue;
            };
            let id = &update["messageId"];
            let kind = update["sessionUpdate"].as_str().unwrap();
            match messages.iter_mut().find(|(known, _, _)| known == id) {
                Some((_, _, known)) => known.push_str(text),
                None => messages.push((id.clone(), kind.to_owned(), text.to_owned())),
            }
        }
        let named = messages.into_iter().map(|(_, kind, text)| (kind, text));
        named.collect()
    }

    /// The last state of each call: its title and status.
    fn calls(&self) -> Vec<(String, String)> {
        let mut calls: Vec<(Value, String, String)> = Vec::new();
        for told in &self.told {
            let update = &told["update"];
            let id = &update["toolCallId"];
            let status = update["status"].as_str().unwrap_or_default().to_owned();
            match calls.iter_mut().find(|(known, _, _)| known == id) {
                Some(_) if status.is_empty() => {}
                Some((_, _, known)) => *known = status,
                None if update["sessionUpdate"] == "tool_call" => {
                    let title = update["title"].as_str().unwrap().to_owned();
                    calls.push((id.clone(), title, status));
                }
                None => {}
            }
        }
        let named = calls.into_iter().map(|(_, title, status)| (title, status));
        named.collect()
    }

    /// Ends its messages, and gives the exit code and standard error.
    fn leave(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        let done = finish(self.child);
        (done.code(), done.err)
    }
}
