//! An exchange as version 1 wrote it, in both directions: today's types read every line of it, and as much of one with
//! what a later version adds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind};
use protocol::message::{ClientRequest, Message, event_line, request_line};
use protocol::method::{Ask, Attached, Method, RecordPage, Welcome};
use protocol::record::{RecordBody, RecordLine};
use protocol::status::{State, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CLIENT: &str = include_str!("recorded/1/client.jsonl");
const POD: &str = include_str!("recorded/1/pod.jsonl");

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Reads a method's answer and writes it again.
fn again<A: Ask>(_: &A, answer: &RawValue) -> Value
where
    A::Answer: Serialize + DeserializeOwned,
{
    serde_json::to_value(serde_json::from_str::<A::Answer>(answer.get()).unwrap()).unwrap()
}

/// A request as today's program writes it, and its answer as today's program reads and writes it.
fn request_and_answer(request: &ClientRequest, answer: &RawValue) -> (String, Value) {
    macro_rules! each {
        ($($variant:ident)*) => {
            match &request.method { $(Method::$variant(ask) => (request_line(request.id, ask).unwrap(), again(ask, answer)),)* }
        };
    }
    each! {
        Hello Attach Page GetStatus GetFeatures GetTools GetApprovals GetPastCalls PreviewCall Approve SendFile SendInput SendCall Wait EditInput Notify CallTool
        SetDraft StopJob Undo Shutdown Verb
    }
}

/// Every field of `old` is in `new`, with its value.
fn has(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old
            .iter()
            .all(|(key, old)| new.get(key).is_some_and(|new| has(new, old))),
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| has(new, old))
        }
        (new, old) => new == old,
    }
}

/// Every object has two fields more.
fn later(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The arguments of a tool are the tool's.
            fields
                .iter_mut()
                .filter(|(name, _)| *name != "arguments")
                .for_each(|(_, value)| later(value));
            fields.insert(
                "later".to_owned(),
                json!({ "a": [null, 1e300, "\u{1f600}"] }),
            );
            fields.insert("LATER".to_owned(), Value::Null);
        }
        Value::Array(values) => values.iter_mut().for_each(later),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn requests(lines: &[String]) -> BTreeMap<u64, ClientRequest> {
    lines
        .iter()
        .map(|line| ClientRequest::read(line.as_bytes()).unwrap())
        .map(|read| (read.id, read))
        .collect()
}

fn read_pod(line: &str, requests: &BTreeMap<u64, ClientRequest>) -> Value {
    match Message::read(line).unwrap() {
        Message::Answer {
            id,
            answer: Ok(answer),
        } => {
            let result = request_and_answer(&requests[&id.unwrap()], &answer).1;
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        Message::Answer {
            id,
            answer: Err(error),
        } => {
            assert_ne!(error.kind, ErrorKind::Unknown);
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
        Message::Event(event) => {
            assert_ne!(event.kind(), EventKind::Unknown, "{line}");
            if let Event::Record(record) = &event {
                let fields = record.read().unwrap().body.fields();
                assert!(has(&value(record.as_str()), &fields), "{fields}");
            }
            value(&event_line(&event).unwrap())
        }
    }
}

#[test]
fn every_line_of_version_1_is_read_whole() {
    let lines: Vec<String> = CLIENT.lines().map(str::to_owned).collect();
    let asked = requests(&lines);
    let nothing = serde_json::value::to_raw_value(&json!({})).unwrap();
    for line in &lines {
        let request = ClientRequest::read(line.as_bytes()).unwrap();
        // The answers that can be empty: of the others, only the request is of interest here.
        if request.method.cmd_id().is_some()
            && !matches!(
                request.method,
                Method::SendInput(_)
                    | Method::SendCall(_)
                    | Method::SendFile(_)
                    | Method::Undo(_)
                    | Method::CallTool(_)
                    | Method::Approve(_)
            )
        {
            assert!(
                has(
                    &value(&request_and_answer(&request, &nothing).0),
                    &value(line)
                ),
                "{line}"
            );
        }
    }
    for line in POD.lines() {
        assert_eq!(read_pod(line, &asked), value(line), "{line}");
    }
    let methods: BTreeSet<&str> = asked
        .values()
        .map(|request| request.method.name())
        .collect();
    assert_eq!(methods, Method::NAMES.iter().copied().collect());
    let lines = POD.lines().map(value);
    let events: BTreeSet<String> = lines
        .filter_map(|line| Some(line.get("method")?.as_str()?.to_owned()))
        .collect();
    assert_eq!(
        events,
        Event::NAMES.iter().map(|name| (*name).to_owned()).collect()
    );
}

#[test]
fn fields_of_a_later_version_change_nothing() {
    let changed = |line: &str| {
        let mut value = value(line);
        later(&mut value);
        value.to_string()
    };
    let lines: Vec<String> = CLIENT.lines().map(str::to_owned).collect();
    let asked = requests(&lines);
    assert_eq!(
        requests(&lines.iter().map(|line| changed(line)).collect::<Vec<_>>()),
        asked
    );
    for line in POD.lines() {
        let read = read_pod(&changed(line), &asked);
        assert!(has(&read, &value(line)), "{line}\n{read}");
    }
}

#[test]
fn words_of_a_later_version_are_unknown_and_known_ones_stay() {
    let unknown = ClientRequest::read(br#"{"jsonrpc":"2.0","id":9,"method":"dance","params":{}}"#)
        .unwrap_err();
    assert_eq!(
        (unknown.id, unknown.error.kind),
        (Some(9), ErrorKind::Method)
    );
    let Message::Event(event) =
        Message::read(r#"{"jsonrpc":"2.0","method":"approval","params":{"n":1}}"#).unwrap()
    else {
        panic!()
    };
    assert_eq!(
        (event.kind(), event.name()),
        (EventKind::Unknown, "approval")
    );
    let mut found = Map::new();
    for line in POD.lines().map(value) {
        let result = &line["result"];
        for (name, is) in [
            ("program", "welcome"),
            ("draft", "attached"),
            ("state", "status"),
            ("first", "page"),
        ] {
            if result.get(name).is_some() {
                found.insert(is.to_owned(), result.clone());
            }
        }
    }
    found["welcome"]["methods"]
        .as_array_mut()
        .unwrap()
        .push(json!("dance"));
    assert!(
        serde_json::from_value::<Welcome>(found["welcome"].clone())
            .unwrap()
            .methods
            .contains(&"dance".to_owned())
    );
    found["status"]["state"] = json!("dreaming");
    assert_eq!(
        serde_json::from_value::<Status>(found["status"].clone())
            .unwrap()
            .state,
        State::Unknown
    );
    let attached: Attached = serde_json::from_value(found["attached"].clone()).unwrap();
    let page: RecordPage = serde_json::from_value(found["page"].clone()).unwrap();
    for record in attached.page.unwrap().records.iter().chain(&page.records) {
        for (key, later) in [("k", json!("dream")), ("v", json!(2))] {
            let mut line = value(record.as_str());
            line[key] = later;
            let read = RecordLine::new(line.to_string()).unwrap().read().unwrap();
            assert!(matches!(read.body, RecordBody::Other { .. }), "{line}");
        }
    }
    let attach =
        br#"{"jsonrpc":"2.0","id":1,"method":"attach","params":{"without":["dream","delta"]}}"#;
    let Method::Attach(attach) = ClientRequest::read(attach).unwrap().method else {
        panic!()
    };
    assert_eq!(attach.without, [EventKind::Unknown, EventKind::Delta]);
}
