//! What clients read of a record is what the pod wrote: nothing is lost and nothing changed.

use crate::record_strategy;
use pod::record::{ApprovalDecision, JobEndKind, Record, TaskRunState};
use protocol::record::{RecordBody as Body, RecordView as Mirror};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// Ways of [`record_strategy::record`], each with enough numbers for all its branches.
const WAYS: u8 = 26;
const NUMBERS: u64 = 42;

/// The body of a line without the header, and without fields that say `null`.
fn body(line: &str) -> Value {
    let mut fields: Map<String, Value> = serde_json::from_str(line).unwrap();
    fields.retain(|key, value| key.len() > 1 && !value.is_null());
    Value::Object(fields)
}

fn without_nulls(mut value: Value) -> Value {
    value
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    value
}

#[test]
fn every_kind_is_read_as_it_was_written() {
    let mut kinds: Vec<String> = Vec::new();
    for (way, n) in (0..WAYS).flat_map(|way| (0..NUMBERS).map(move |n| (way, n))) {
        let record = record_strategy::record(way, n, None);
        let line = record_strategy::line(7, 9, &record);
        let mirror = Mirror::read(&line).unwrap();
        assert_eq!(
            (mirror.seq, mirror.time_us, mirror.body.kind()),
            (7, 9, record.kind())
        );
        assert_eq!(without_nulls(mirror.body.fields()), body(&line));
        kinds.push(record.kind().to_owned());
    }
    // Those that only a start writes are in the golden journals.
    let made = Body::KINDS
        .iter()
        .filter(|kind| kinds.iter().any(|made| made == *kind))
        .count();
    assert!(made >= Body::KINDS.len() - 3, "{made} of {:?}", Body::KINDS);
}

/// The bytes that the kinds of commit 030daae3 have in a journal: each field with its name, in its place.
#[test]
fn every_kind_is_written_as_before() {
    let mut all = blake3::Hasher::new();
    for (way, n) in (0..WAYS).flat_map(|way| (0..NUMBERS).map(move |n| (way, n))) {
        let record = record_strategy::record(way, n, None);
        all.update(record_strategy::line(7, 9, &record).as_bytes());
    }
    assert_eq!(
        all.finalize().to_string(),
        "1b94345928065be497d14b82092cc978966fa6cd22f712d88c79baf70bd2b49c"
    );
}

#[test]
fn golden_journals_are_read_by_both() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    let mut known = 0;
    let mut runs = Vec::new();
    let mut ends = Vec::new();
    let mut answers = Vec::new();
    for file in [
        "run.jsonl",
        "two-formats.jsonl",
        "tasks.jsonl",
        "jobs.jsonl",
        "approvals.jsonl",
    ] {
        let text = fs::read_to_string(root.join("../fuzz/seeds/journal").join(file)).unwrap();
        for line in text.lines() {
            let header: Value = serde_json::from_str(line).unwrap();
            let kind = header["k"].as_str().unwrap();
            let version = header["v"].as_u64().unwrap();
            let Ok(record) = Record::decode(kind, u16::try_from(version).unwrap(), line.as_bytes())
            else {
                continue;
            };
            let mirror = Mirror::read(line).unwrap();
            assert_eq!(
                (mirror.body.kind(), without_nulls(mirror.body.fields())),
                (kind, body(line))
            );
            match &record {
                Record::BackgroundTask(run) if file == "tasks.jsonl" => {
                    runs.push((run.run, run.state))
                }
                Record::ChildProcess(job) => {
                    ends.push((job.job, job.pid > 0, job.ended.as_ref().map(|end| end.how)))
                }
                Record::ApprovalResolved(answer) => {
                    answers.push((answer.approval, answer.decision))
                }
                _ => {}
            }
            seen += 1;
            known += usize::from(
                !matches!(record, Record::Other { .. })
                    && !matches!(mirror.body, Body::Other { .. }),
            );
        }
    }
    assert!(
        seen > 40 && known > 20,
        "{seen} lines, {known} with a mirror"
    );
    use TaskRunState::{Failed, Orphaned, Running};
    assert_eq!(
        answers,
        [(1, ApprovalDecision::Allow), (2, ApprovalDecision::Deny)]
    );
    assert_eq!(
        runs,
        [(1, Running), (1, Failed), (2, Running), (2, Orphaned)]
    );
    // The second one was running when the host was killed.
    let exited = Some(JobEndKind::Exited);
    let lost = Some(JobEndKind::Lost);
    assert_eq!(
        ends,
        [
            (1, false, None),
            (1, true, exited),
            (2, false, None),
            (2, false, lost)
        ]
    );
}

#[test]
fn what_is_not_known_is_kept() {
    let line = json!({ "k": "input_queued", "q": 1, "t": 2, "v": 1, "input": 3, "text": "t", "colour": ["red"] });
    let Body::InputQueued(queued) = Mirror::read(&line.to_string()).unwrap().body else {
        panic!()
    };
    assert_eq!(
        (queued.input, &queued.other["colour"]),
        (3, &json!(["red"]))
    );
    for (kind, version) in [("compaction", 1), ("input_queued", 2)] {
        let line = json!({ "k": kind, "q": 1, "t": 2, "v": version, "whatever": true });
        let Body::Other { kind: kept, fields } = Mirror::read(&line.to_string()).unwrap().body
        else {
            panic!()
        };
        assert_eq!(
            (kept.as_str(), fields["whatever"].as_bool()),
            (kind, Some(true))
        );
    }
    for line in [
        "",
        "{}",
        "7",
        r#"{"k":"item","q":1,"t":2,"v":1}"#,
        r#"{"k":"item","t":2,"v":1,"item":{}}"#,
    ] {
        assert!(Mirror::read(line).is_err(), "{line}");
    }
}
