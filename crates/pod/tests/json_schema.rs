//! The host's JSON Schemas against the official test suite of draft 2020-12, and references that leave a schema.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "data that does not read is a failed test"
)]

use pod::schema::Schema;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

/// The groups whose schema refers to another document: the suite has them served at `localhost:1234`, and two refer to the
/// schema of schemas. Nothing is loaded, so these schemas do not compile. `None` is the whole file.
const REMOTE: &[(&str, Option<&str>)] = &[
    ("refRemote.json", None),
    (
        "dynamicRef.json",
        Some("strict-tree schema, guards against misspelled properties"),
    ),
    (
        "dynamicRef.json",
        Some("tests for implementation dynamic anchor and reference link"),
    ),
    (
        "dynamicRef.json",
        Some("$ref and $dynamicAnchor are independent of order - $defs first"),
    ),
    (
        "dynamicRef.json",
        Some("$ref and $dynamicAnchor are independent of order - $ref first"),
    ),
    (
        "dynamicRef.json",
        Some("$ref to $dynamicRef finds detached $dynamicAnchor"),
    ),
    ("vocabulary.json", None),
    ("ref.json", Some("remote ref, containing refs itself")),
    ("defs.json", Some("validate definition against metaschema")),
];

fn is_remote(file: &str, group: &str) -> bool {
    REMOTE
        .iter()
        .any(|(known, named)| *known == file && named.is_none_or(|named| named == group))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

#[test]
fn every_case_of_the_suite_is_accepted_exactly_when_valid() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json_schema_suite");
    let mut cases = 0;
    let mut remote = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        if !file.ends_with(".json") {
            continue;
        }
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for group in &groups {
            let name = text(group, "description");
            let compiled = Schema::compile(group["schema"].clone());
            if is_remote(file, name) {
                remote += 1;
                if !compiled.as_ref().is_err_and(|why| {
                    why.contains("outside of the schema are not loaded")
                        || why.contains("cannot be followed")
                }) {
                    wrong.push(format!("{file}: {name}: {:?}", compiled.err()));
                }
                continue;
            }
            let schema = match compiled {
                Ok(schema) => schema,
                Err(why) => {
                    wrong.push(format!("{file}: {name}: {why}"));
                    continue;
                }
            };
            for test in group["tests"].as_array().unwrap() {
                cases += 1;
                let checked = schema.check(&test["data"]);
                if checked.is_ok() != test["valid"].as_bool().unwrap() {
                    wrong.push(format!(
                        "{file}: {name}: {}: {checked:?}",
                        text(test, "description")
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // All 1,245 cases of the suite: 53 of them stand in the groups that are not loaded.
    assert_eq!((cases, remote), (1_192, 24));
}

#[test]
fn a_reference_to_a_listening_port_is_never_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{}").unwrap();
    let schemas = [
        json!({ "$ref": address }),
        json!({ "$ref": format!("{address}#/$defs/a") }),
        json!({ "$dynamicRef": format!("{address}#a") }),
        json!({ "$schema": address }),
        json!({ "$id": address, "$ref": "other.json" }),
        json!({ "properties": { "a": { "items": { "$ref": address } } } }),
        json!({ "$ref": format!("file://{}", file.path().display()) }),
    ];
    for schema in schemas {
        let why = Schema::compile(schema.clone()).expect_err(&schema.to_string());
        assert!(
            why.contains("outside of the schema are not loaded"),
            "{schema}: {why}"
        );
    }
    // What is in the schema under that address is no other document.
    let inside = json!({ "$id": address, "$ref": format!("{address}#/$defs/a"), "$defs": { "a": { "type": "null" } } });
    assert!(Schema::compile(inside).unwrap().check(&json!(1)).is_err());
    assert_eq!(
        listener.accept().err().map(|error| error.kind()),
        Some(ErrorKind::WouldBlock)
    );
}
