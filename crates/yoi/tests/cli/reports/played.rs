//! Rows that a provider on loopback plays: the first answer is the row's, the later ones are `second`.

use super::row::{Row, bytes, says};
use crate::endpoint::{Endpoint, Reply, delta, stop, text};
use crate::scene::finish;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Two attempts are enough: what passes is right at the second one.
const QUICK: &str =
    "timeouts = { connect_s = 5, first_byte_s = 30, between_bytes_s = 30 }\nattempts = 2\n";

/// The answer `second` in the language of the Messages API.
const SECOND: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"m2","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":10,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"second"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#,
    r#"{"type":"message_stop"}"#,
];

/// What a row's provider sends, owned, so that it outlives the row.
enum Play {
    Stream(String),
    Status(String, String, String),
}

impl Play {
    fn of(row: &Row) -> Self {
        if let Some(status) = &row.status {
            let headers = row
                .headers
                .iter()
                .map(|header| format!("{header}\r\n"))
                .collect();
            return Self::Status(status.clone(), headers, row.body.clone());
        }
        if let Some(stream) = &row.stream {
            return Self::Stream(stream.clone());
        }
        if row.api == "anthropic" {
            return Self::Stream(named(
                row.events.as_ref().unwrap().iter().map(String::as_str),
            ));
        }
        let mut pieces: Vec<String> = row.events.clone().unwrap_or_default();
        let parsed = |text: &String| serde_json::from_str::<Value>(text).expect(text);
        pieces.extend(
            row.deltas
                .iter()
                .flatten()
                .map(|one| delta(&parsed(one)).to_string()),
        );
        let calls = row.calls.iter().flat_map(|step| step.all());
        pieces.extend(calls.map(|one| delta(&json!({ "tool_calls": parsed(one) })).to_string()));
        pieces.extend(row.finish.iter().map(|reason| stop(reason).to_string()));
        if row.done.unwrap_or(true) {
            pieces.push("[DONE]".to_owned());
        }
        Self::Stream(
            pieces
                .iter()
                .map(|piece| format!("data: {piece}\n\n"))
                .collect(),
        )
    }

    fn reply(&self) -> Reply {
        match self {
            Self::Stream(stream) => Reply::Stream(stream.clone()),
            // The endpoint's statuses are constants elsewhere; a test process can keep a few more.
            Self::Status(status, headers, body) => {
                Reply::Status(status.clone().leak(), dated(headers).leak(), body.clone())
            }
        }
    }
}

/// Events of the Messages API with their names.
fn named<'a>(events: impl Iterator<Item = &'a str>) -> String {
    let name = |event: &str| {
        let (_, rest) = event.split_once("\"type\":\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    events
        .map(|event| format!("event: {}\ndata: {event}\n\n", name(event)))
        .collect()
}

/// Headers with a date instead of `{asctime+SECONDS}`.
fn dated(headers: &str) -> String {
    let Some((before, rest)) = headers.split_once("{asctime+") else {
        return headers.to_owned();
    };
    let (seconds, after) = rest.split_once('}').unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let at = format!("@{}", now + seconds.parse::<u64>().unwrap());
    let date = Command::new("date")
        .args(["-u", "-d", &at, "+%a %b %e %H:%M:%S %Y"])
        .env("LC_ALL", "C")
        .output();
    format!(
        "{before}{}{after}",
        String::from_utf8(date.unwrap().stdout).unwrap().trim_end()
    )
}

pub(super) fn run(row: &Row) -> Vec<String> {
    let play = Play::of(row);
    let always = row.always;
    let messages = row.api == "anthropic";
    let came = Arc::new(Mutex::new(Vec::new()));
    let times = came.clone();
    let endpoint = Endpoint::start(move |number, _| {
        times.lock().unwrap().push(Instant::now());
        match number {
            0 => play.reply(),
            _ if always => play.reply(),
            _ if messages => Reply::Stream(named(SECOND.into_iter())),
            _ => text("second"),
        }
    });
    let scene = row.scene();
    scene.config(&endpoint.speaking(if messages { "anthropic" } else { "openai-chat" }, QUICK));
    let key = String::from_utf8(bytes(row.key.as_deref().unwrap_or("sk-row-4711"))).unwrap();
    let done = finish(
        scene
            .command(&["run", "--pod", "p", "go"])
            .env("FAKE_KEY", key)
            .spawn()
            .unwrap(),
    );

    let mut problems = Vec::new();
    let code = done.code();
    if row.fails && code.is_none_or(|code| code == 0) || !row.fails && code != Some(row.code) {
        let expected = if row.fails {
            "another than 0".to_owned()
        } else {
            row.code.to_string()
        };
        problems.push(format!(
            "exit code {code:?}, not {expected}; it says {:?}",
            done.err
        ));
    }
    if row
        .out
        .as_ref()
        .is_some_and(|out| *out != done.out.trim_end())
    {
        problems.push(format!(
            "the answer is {:?}, not {:?}",
            done.out.trim_end(),
            row.out.as_ref().unwrap()
        ));
    }
    for words in row.says.iter().filter(|words| !says(&done.err, words)) {
        problems.push(format!("it does not say {words:?}: {:?}", done.err));
    }
    row.check_hidden(&format!("{}{}", done.err, done.out), &mut problems);
    row.check_files(&scene, &mut problems);

    let requests = endpoint.requests();
    if row.requests.is_some_and(|count| count != requests.len()) {
        problems.push(format!(
            "{} requests, not {}: {:?}",
            requests.len(),
            row.requests.unwrap(),
            done.err
        ));
    }
    if let Some((least, most)) = row.wait {
        let came = came.lock().unwrap();
        let waited = came
            .windows(2)
            .next()
            .map(|pair| (pair[1] - pair[0]).as_secs_f64());
        if !waited.is_some_and(|waited| (least..=most).contains(&waited)) {
            problems.push(format!(
                "the second request came after {waited:?} s, not {least} to {most}"
            ));
        }
    }
    let last = requests
        .last()
        .map(|request| request.body.to_string())
        .unwrap_or_default();
    problems.extend(
        row.sent
            .iter()
            .filter(|part| !last.contains(*part))
            .map(|part| format!("not sent: {part}")),
    );
    problems.extend(
        row.unsent
            .iter()
            .filter(|part| last.contains(*part))
            .map(|part| format!("sent: {part:?}")),
    );
    for request in &requests {
        problems.extend(invalid(&request.body));
    }
    problems
}

/// What a strict server refuses in a request.
fn invalid(body: &Value) -> Vec<String> {
    let Some(messages) = body["messages"].as_array() else {
        return vec!["a request is not JSON".to_owned()];
    };
    let mut pairs: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut call = |id: &Value, name: &Value, count: fn(&mut (usize, usize))| {
        let id = id.as_str().unwrap_or_default();
        count(pairs.entry(id.to_owned()).or_default());
        let good = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
        };
        if !good(id) || !name.as_str().is_some_and(good) {
            problems.push(format!(
                "a request has a call with the id {id:?} and the name {name}"
            ));
        }
    };
    let any = Value::from("any");
    for message in messages {
        for made in message["tool_calls"].as_array().into_iter().flatten() {
            call(&made["id"], &made["function"]["name"], |pair| pair.0 += 1);
        }
        if message["role"] == "tool" {
            call(&message["tool_call_id"], &any, |pair| pair.1 += 1);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => call(&block["id"], &block["name"], |pair| pair.0 += 1),
                Some("tool_result") => call(&block["tool_use_id"], &any, |pair| pair.1 += 1),
                _ => {}
            }
        }
    }
    let unpaired = pairs.iter().filter(|(_, pair)| **pair != (1, 1));
    problems.extend(
        unpaired.map(|(id, (calls, results))| {
            format!("the id {id:?}: {calls} calls, {results} results")
        }),
    );
    problems
}
