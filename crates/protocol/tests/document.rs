//! `docs/PROTOCOL.md` says what the types say: each line of its examples is a message, and its tables are complete.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind};
use protocol::message::{ClientRequest, Message};
use protocol::method::{Ask, Method};
use protocol::record::{RecordBody, RecordLine};
use protocol::schema::schema;
use serde_json::Value;
use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../docs/PROTOCOL.md");

/// The lines of the blocks in this language.
fn lines(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}");
    let mut inside = false;
    let mut found = Vec::new();
    for line in DOCUMENT.lines() {
        match inside {
            true if line == "```" => inside = false,
            true => found.push(line),
            false => inside = line == fence,
        }
    }
    assert!(!inside && !found.is_empty(), "blocks of {language}");
    found
}

/// Every field is one of the type, with a value that fits, and none that is required is missing.
fn fits(all: &Value, wanted: &Value, value: &Value, place: &str) {
    let named = wanted
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|name| name.strip_prefix("#/$defs/"));
    let wanted = named.map_or(wanted, |name| &all["$defs"][name]);
    let (Some(fields), Some(properties)) = (value.as_object(), wanted.get("properties")) else {
        return;
    };
    for required in wanted
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert!(
            fields.contains_key(required.as_str().unwrap()),
            "{place} lacks {required}"
        );
    }
    for (name, value) in fields {
        let place = format!("{place}.{name}");
        match properties.get(name) {
            Some(wanted) => fits(all, wanted, value, &place),
            // A type whose variants have fields of their own.
            None => assert!(wanted.get("oneOf").is_some(), "{place} is no field"),
        }
    }
}

fn is_record(line: &RecordLine) {
    let record = line.read().unwrap();
    let known = RecordBody::KINDS.contains(&record.body.kind())
        && !matches!(record.body, RecordBody::Other { .. });
    assert!(known, "{} is no kind that clients draw", record.body.kind());
}

fn event_fits(all: &Value, event: &Event, line: &Value) {
    assert_ne!(event.kind(), EventKind::Unknown, "{line}");
    match event {
        Event::Record(record) => is_record(record),
        event => fits(
            all,
            &all["events"][event.name()],
            &line["params"],
            event.name(),
        ),
    }
}

#[test]
fn each_line_of_the_examples_is_a_message() {
    let all = schema();
    let mut asked = BTreeMap::new();
    let mut events = 0;
    for text in lines("json") {
        let line: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        if line.get("id").is_some() && line.get("method").is_some() {
            let ClientRequest { id, method } = ClientRequest::read(text.as_bytes()).unwrap();
            fits(
                &all,
                &all["methods"][method.name()]["params"],
                &line["params"],
                method.name(),
            );
            asked.insert(id, method);
            continue;
        }
        match Message::read(text).unwrap() {
            Message::Event(event) => {
                event_fits(&all, &event, &line);
                events += 1;
            }
            Message::Answer { id, answer } => {
                let method = asked
                    .remove(&id.unwrap())
                    .unwrap_or_else(|| panic!("no request before {text}"));
                match answer {
                    Ok(_) => fits(
                        &all,
                        &all["methods"][method.name()]["result"],
                        &line["result"],
                        method.name(),
                    ),
                    Err(error) => assert_eq!(line["error"]["code"], error.kind.code(), "{text}"),
                }
            }
        }
    }
    assert!(
        asked.is_empty() && events > 0,
        "requests without an answer: {asked:?}"
    );
}

#[test]
fn the_tables_have_every_method_event_and_kind_of_error() {
    let row = |name: &str| {
        let start = format!("| `{name}` |");
        DOCUMENT
            .lines()
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("no row for {name}"))
    };
    let all = schema();
    for name in Method::NAMES {
        let wanted = &all["methods"][name]["params"];
        let named = wanted["$ref"]
            .as_str()
            .and_then(|name| name.strip_prefix("#/$defs/"))
            .unwrap();
        for field in all["$defs"][named]["properties"]
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys())
        {
            assert!(
                row(name).contains(&format!("`{field}`")),
                "{name} without {field}"
            );
        }
    }
    let events = DOCUMENT
        .split("\n## ")
        .find(|part| part.starts_with("Events\n"))
        .unwrap();
    for name in Event::NAMES {
        assert!(
            events.contains(&format!("\n| `{name}` |")),
            "no row for the event {name}"
        );
    }
    let codes = DOCUMENT.lines().filter_map(|line| {
        let (code, rest) = line.strip_prefix("| -")?.split_once(" | `")?;
        Some((-code.parse::<i32>().ok()?, rest.split('`').next()?))
    });
    let kinds = all["$defs"]["ErrorKind"].to_string();
    let mut listed = 0;
    for (code, name) in codes {
        let kind: ErrorKind = serde_json::from_value(Value::from(name)).unwrap();
        assert!(
            kind != ErrorKind::Unknown && kind.code() == code,
            "{name} has {code}"
        );
        listed += 1;
    }
    assert_eq!(
        listed,
        kinds.matches("\"const\":").count() - 1,
        "all but that of a later version"
    );
}
