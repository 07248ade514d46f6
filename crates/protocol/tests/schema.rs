//! The committed schema is that of the types, and no later schema breaks a client of a frozen one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use protocol::VERSION;
use protocol::event::Event;
use protocol::method::Method;
use protocol::schema::schema;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

fn at(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(name)
}

fn committed(name: &str) -> Value {
    let text = fs::read_to_string(at(name)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// `YOI_TEST_WRITE_SCHEMA=1` writes it.
#[test]
fn the_committed_schema_is_that_of_the_types() {
    let now = schema();
    if std::env::var_os("YOI_TEST_WRITE_SCHEMA").is_some() {
        fs::write(
            at("protocol.json"),
            serde_json::to_string_pretty(&now).unwrap() + "\n",
        )
        .unwrap();
    }
    assert!(
        committed("protocol.json") == now,
        "run this test with YOI_TEST_WRITE_SCHEMA=1, then read the difference"
    );
}

/// Where the schema of commit 030daae3 had nothing, or another text.
const SINCE: [(&str, &str, Option<&str>); 35] = [
    ("/$defs", "PreviewCall", None),
    ("/$defs", "PreviewedCall", None),
    ("/methods", "preview_call", None),
    ("/$defs/Done", "properties", None),
    (
        "/$defs/ModelRetry/properties/retry_in_s",
        "description",
        Some("Seconds until then, rounded up."),
    ),
    ("/$defs/ModelRetry/properties", "since_ms", None),
    (
        "/$defs/Status/properties/model_wait",
        "description",
        Some("Why a turn that is due does not begin yet."),
    ),
    ("/$defs/ToolStarted/properties", "hosts", None),
    ("/$defs/ToolFinished/properties", "command", None),
    ("/$defs", "CommandEnd", None),
    ("/$defs", "ResultData", None),
    ("/$defs/ToolFinished/properties", "data", None),
    ("/$defs", "ExpandedCommand", None),
    ("/$defs/InputQueued/properties", "command", None),
    ("/$defs/SendInput/properties", "expand", None),
    ("/$defs/Surface/properties", "effort", None),
    ("/$defs/Usage/properties", "reasoning", None),
    ("/$defs/Surface/properties", "media", None),
    ("/$defs/InputQueued/properties", "attachments", None),
    ("/$defs/ToolOutcome/properties", "attachments", None),
    ("/$defs", "Attachment", None),
    ("/$defs/SendInput/properties", "files", None),
    ("/$defs", "SentFile", None),
    ("/$defs", "SendFile", None),
    ("/$defs", "HeldFile", None),
    ("/methods", "file", None),
    ("/$defs/InputQueued/properties", "call", None),
    ("/$defs", "RequestedCall", None),
    ("/$defs", "SendCall", None),
    ("/methods", "call", None),
    ("/$defs/TurnEnded/properties", "result", None),
    ("/$defs", "GetTools", None),
    ("/$defs", "OfferedTools", None),
    ("/$defs", "OfferedTool", None),
    ("/methods", "tools", None),
];

/// The kinds of records moved into this crate, with one declaration each in place of a mirror: their schemas are, byte for
/// byte, those of before.
#[test]
fn the_schema_is_that_of_030daae3_with_what_is_named() {
    let mut then = schema();
    for (place, field, was) in SINCE {
        let object = then.pointer_mut(place).unwrap().as_object_mut().unwrap();
        match was {
            Some(was) => object.insert(field.to_owned(), json!(was)),
            None => object.remove(field),
        };
    }
    let text = serde_json::to_string_pretty(&then).unwrap() + "\n";
    assert_eq!(
        blake3::hash(text.as_bytes()).to_string(),
        "a0d25d9e1a99584a39a4d89e17a15bca388017964ccd5ea1c3abc04ae4f59960",
        "compare with `git show 030daae3:crates/protocol/schema/protocol.json`; name what is new"
    );
}

#[test]
fn a_later_schema_only_adds() {
    let now = schema();
    for version in 1..=VERSION {
        let frozen = committed(&format!("frozen/{version}.json"));
        assert!(
            frozen["methods"].is_object(),
            "schema/frozen/{version}.json is missing"
        );
        // A client of an older version is not served by a pod of a newer one.
        if version == VERSION {
            assert_eq!(broken(&frozen, &now), Vec::<String>::new());
        }
    }
}

#[test]
fn three_names_stay() {
    assert!(matches!(
        Method::read("notify", r#"{"text":"t","cmd_id":"1"}"#),
        Some(Ok(Method::Notify(notify))) if notify.text == "t" && !notify.wake
    ));
    let alert = Event::read("alert", r#"{"level":"warning","text":"t"}"#).unwrap();
    assert!(matches!(&alert, Event::Alert(alert) if alert.text == "t"));
    let item = Event::read(
        "system_item",
        r#"{"seq":7,"topic":"notification","text":"t"}"#,
    )
    .unwrap();
    assert!(
        matches!(&item, Event::SystemItem(item) if item.seq == 7 && item.item.topic == "notification")
    );
}

/// What a client of `old` would miss or not understand in `new`.
fn broken(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["methods", "events", "records", "error"] {
        compare(
            part,
            &old[part],
            &new[part],
            (&old["$defs"], &new["$defs"]),
            &mut found,
        );
    }
    found
}

fn compare(at: &str, old: &Value, new: &Value, defs: (&Value, &Value), found: &mut Vec<String>) {
    let old = resolved(old, defs.0);
    let new = resolved(new, defs.1);
    if new.is_null() && !old.is_null() {
        return found.push(format!("{at} is gone"));
    }
    if old.get("type") != new.get("type") || old.get("const") != new.get("const") {
        found.push(format!("{at} has another type"));
    }
    let names = |schema: &Value| -> Vec<String> {
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        required
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    let was = names(old);
    let is = names(new);
    found.extend(
        is.iter()
            .filter(|name| !was.contains(name))
            .map(|name| format!("{at}.{name} is required now")),
    );
    found.extend(
        was.iter()
            .filter(|name| !is.contains(name))
            .map(|name| format!("{at}.{name} may be absent now")),
    );
    for list in ["enum", "oneOf", "anyOf"] {
        let is = choices(new, list);
        for (name, old) in choices(old, list) {
            let there = is.iter().find(|(other, _)| *other == name);
            compare(
                &format!("{at}[{name}]"),
                old,
                there.map_or(&Value::Null, |(_, new)| new),
                defs,
                found,
            );
        }
    }
    if let Some(old) = old.get("items") {
        compare(&format!("{at}[]"), old, &new["items"], defs, found);
    }
    let empty = Map::new();
    let children = |value: &'_ Value| value.get("properties").and_then(Value::as_object).cloned();
    let (was, is) = match (children(old), children(new)) {
        (Some(was), Some(is)) => (was, is),
        // A table of this schema, no schema of a value.
        (None, None)
            if ["type", "const", "oneOf", "anyOf", "enum"]
                .iter()
                .all(|key| old.get(key).is_none()) =>
        {
            (
                old.as_object().unwrap_or(&empty).clone(),
                new.as_object().unwrap_or(&empty).clone(),
            )
        }
        _ => return,
    };
    for (name, old) in was.iter().filter(|(_, schema)| schema.is_object()) {
        let at = format!("{at}.{name}");
        compare(&at, old, is.get(name).unwrap_or(&Value::Null), defs, found);
    }
}

/// The choices of a schema, by what a client tells them apart.
fn choices<'a>(schema: &'a Value, list: &str) -> Vec<(String, &'a Value)> {
    let name = |one: &Value| {
        let tag = one
            .get("const")
            .or_else(|| one.pointer("/properties/type/const"));
        tag.or_else(|| one.get("$ref"))
            .or_else(|| one.get("type"))
            .unwrap_or(one)
            .to_string()
    };
    schema
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|one| (name(one), one))
        .collect()
}

fn resolved<'a>(schema: &'a Value, defs: &'a Value) -> &'a Value {
    let name = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix("#/$defs/"));
    name.map_or(schema, |name| &defs[name])
}

#[test]
fn what_breaks_a_client_is_seen() {
    let old = schema();
    let with = |change: fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        broken(&old, &new)
    };
    assert_eq!(with(|_| {}), Vec::<String>::new());
    assert_eq!(
        with(|new| new["$defs"]["SendInput"]["properties"]["colour"] = json!({ "type": "string" })),
        [""; 0]
    );
    assert_eq!(
        with(|new| new["methods"]["sing"] = json!({ "params": {}, "result": {} })),
        [""; 0]
    );
    let gone = with(|new| drop(new["methods"].as_object_mut().unwrap().remove("notify")));
    assert_eq!(gone, ["methods.notify is gone"]);
    let required =
        with(|new| new["$defs"]["SendInput"]["required"] = json!(["text", "cmd_id", "mode"]));
    assert_eq!(required, ["methods.input.params.mode is required now"]);
    let absent = with(|new| new["$defs"]["AcceptedInput"]["required"] = json!([]));
    assert_eq!(
        absent,
        ["call", "input"].map(|of| format!("methods.{of}.result.input may be absent now"))
    );
    let typed =
        with(|new| new["$defs"]["AcceptedInput"]["properties"]["input"]["type"] = json!("string"));
    assert_eq!(
        typed,
        ["call", "input"].map(|of| format!("methods.{of}.result.input has another type"))
    );
    let lost = with(|new| {
        drop(
            new["$defs"]["DeltaEvent"]["oneOf"]
                .as_array_mut()
                .unwrap()
                .remove(0),
        )
    });
    assert_eq!(lost, ["events.delta[\"text\"] is gone"]);
    assert_eq!(
        with(
            |new| new["$defs"]["DeltaEvent"]["oneOf"][0]["properties"]["at"] =
                json!({ "type": "integer" })
        ),
        [""; 0]
    );
    let lost = with(|new| {
        drop(
            new["$defs"]["DeltaEvent"]["oneOf"][0]["properties"]
                .as_object_mut()
                .unwrap()
                .remove("text"),
        )
    });
    assert_eq!(lost, ["events.delta[\"text\"].text is gone"]);
    let listed = with(|new| {
        drop(
            new["$defs"]["Queued"]["properties"]
                .as_object_mut()
                .unwrap()
                .remove("mode"),
        )
    });
    assert!(
        listed.contains(&"methods.status.result.queued[].mode is gone".to_owned()),
        "{listed:?}"
    );
    let field = with(|new| {
        drop(
            new["$defs"]["Status"]["properties"]
                .as_object_mut()
                .unwrap()
                .remove("seq"),
        )
    });
    assert!(
        field.iter().any(|what| what.ends_with("seq is gone")),
        "{field:?}"
    );
}
