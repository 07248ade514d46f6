//! The services of the stores as JSON: the same as typed, behind the same grants.

use crate::rig::{Granted, Rig, Seconds, block_on};
use crate::{memory, work_items};
use builtins::{memory as notes, work_item};
use llm_worker::ErrorKind;
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HostCapability, JsonCall, JsonService, Need, ServiceFault, ServiceHandle, ServiceId,
    ServiceRequirement,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Handles = Arc<Mutex<BTreeMap<String, ServiceHandle<dyn JsonService>>>>;

fn services() -> [ServiceId; 5] {
    [
        work_item::READER.id(),
        work_item::WRITER.id(),
        ServiceId::whole(work_item::TRACKER),
        notes::LOOKUP.id(),
        notes::KEEPER.id(),
    ]
}

/// A feature that uses all of them as JSON.
struct Elsewhere(Handles);

impl FeatureModule for Elsewhere {
    fn descriptor(&self) -> FeatureDescriptor {
        let start = FeatureDescriptor::builder(FeatureId::user("elsewhere")).version("1.0.0");
        let requires = |id| ServiceRequirement::declared(id, "^1", Need::Required);
        services()
            .into_iter()
            .fold(start, |builder, id| builder.requires(requires(id)))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        for id in services() {
            let handle = ctx.services().require_json(&id)?;
            self.0.lock().unwrap().insert(id.to_string(), handle);
        }
        Ok(())
    }
}

fn rig() -> (Rig, Handles) {
    let seconds = Seconds::noon();
    let handles = Handles::default();
    let granted = vec![
        HostCapability::WorkItemStore {
            read: true,
            write: false,
        },
        HostCapability::WorkItemStore {
            read: false,
            write: true,
        },
        HostCapability::using(work_item::TRACKER),
        HostCapability::MemoryStore {
            read: true,
            write: false,
        },
        HostCapability::MemoryStore {
            read: false,
            write: true,
        },
    ];
    let elsewhere: Granted = (Arc::new(Elsewhere(Arc::clone(&handles))), granted);
    let features = vec![
        work_items::feature(&seconds),
        memory::feature(&seconds),
        elsewhere,
    ];
    (Rig::new(features, &[work_item::ROOT, notes::ROOT]), handles)
}

fn call(handles: &Handles, id: &ServiceId, call: JsonCall) -> Result<Value, ServiceFault> {
    let handle = handles
        .lock()
        .unwrap()
        .get(&id.to_string())
        .cloned()
        .unwrap();
    block_on(handle.call(|service| service.call(call))).unwrap()
}

#[test]
fn work_items_are_read_and_written_as_json() {
    let (rig, handles) = rig();
    let [reader, writer, tracker, ..] = services();
    let item = |title: &str| {
        JsonCall::new(
            "create",
            json!({ "title": title, "body": "It fails.", "kind": "bug" }),
        )
    };
    let made = call(&handles, &writer, item("Fix it").within(rig.context()));
    assert_eq!(made, Ok(json!({ "id": "20260131-120000-fix-it" })));
    assert_eq!(
        rig.host.told.lock().unwrap().len(),
        2,
        "each file is recorded before it changes"
    );
    let made = call(&handles, &tracker, item("Fix that").within(rig.context()));
    assert_eq!(made, Ok(json!({ "id": "20260131-120000-fix-that" })));
    let closing = json!({ "id": "fix-that", "comment": "Done.", "status": "closed" });
    let closed = call(
        &handles,
        &tracker,
        JsonCall::new("update", closing).within(rig.context()),
    )
    .unwrap();
    assert_eq!(
        (&closed["id"], &closed["status"]),
        (&json!("20260131-120000-fix-that"), &json!("closed"))
    );
    for service in [&reader, &tracker] {
        let listed = call(
            &handles,
            service,
            JsonCall::new("list", json!({ "kind": "bug" })),
        )
        .unwrap();
        assert_eq!(
            (&listed["found"], &listed["items"][0]["title"]),
            (&json!(1), &json!("Fix it"))
        );
        let shown = call(
            &handles,
            service,
            JsonCall::new("show", json!({ "id": "fix-it" })),
        )
        .unwrap();
        assert_eq!(
            (&shown["body"], &shown["events"][0]["author"]),
            (&json!("It fails."), &json!("tester"))
        );
    }
}

#[test]
fn notes_are_read_and_written_as_json() {
    let (rig, handles) = rig();
    let [.., lookup, keeper] = services();
    let note = json!({ "name": "parser", "description": "How it works.", "kind": "fact", "text": "It reads." });
    let saved = call(
        &handles,
        &keeper,
        JsonCall::new("write", note).within(rig.context()),
    );
    assert_eq!(saved, Ok(json!({ "saved": "created" })));
    let found = call(
        &handles,
        &lookup,
        JsonCall::new("search", json!({ "query": "parser" })),
    )
    .unwrap();
    assert_eq!(
        (&found["found"], &found["notes"][0]["updated"]),
        (&json!(1), &json!("2026-01-31"))
    );
    let read = call(
        &handles,
        &lookup,
        JsonCall::new("read", json!({ "name": "parser" })),
    )
    .unwrap();
    assert_eq!(read["text"], json!("It reads."));
    let forgotten = call(
        &handles,
        &keeper,
        JsonCall::new("forget", json!({ "name": "parser" })).within(rig.context()),
    );
    assert_eq!(forgotten.unwrap()["name"], json!("parser"));
}

#[test]
fn a_call_that_does_not_fit_is_refused() {
    let (rig, handles) = rig();
    let [reader, writer, tracker, lookup, keeper] = services();
    let item = || json!({ "title": "Fix it", "body": "" });
    let cases = [
        // A side has its own methods only, and a change belongs to a call.
        (
            &reader,
            JsonCall::new("create", item()).within(rig.context()),
            "no method `create`",
        ),
        (
            &writer,
            JsonCall::new("list", json!({})),
            "no method `list`",
        ),
        (
            &lookup,
            JsonCall::new("write", json!({})),
            "no method `write`",
        ),
        (
            &keeper,
            JsonCall::new("read", json!({})),
            "no method `read`",
        ),
        (
            &tracker,
            JsonCall::new("delete", json!({})),
            "no method `delete`",
        ),
        (
            &writer,
            JsonCall::new("create", item()),
            "within a call of a tool",
        ),
        (
            &keeper,
            JsonCall::new("forget", json!({ "name": "a" })),
            "within a call of a tool",
        ),
        (
            &reader,
            JsonCall::new("list", json!({ "kin": "bug" })),
            "/kin: unknown field",
        ),
        (
            &reader,
            JsonCall::new("list", json!([])),
            "expected an object",
        ),
        (
            &reader,
            JsonCall::new("show", json!({ "id": "../x" })),
            "no id",
        ),
    ];
    for (service, asked, says) in cases {
        let what = format!("{service} {} {}", asked.method, asked.params);
        let fault = call(&handles, service, asked).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::FixInput, "{what}: {fault}");
        assert!(fault.message.contains(says), "{what}: {fault}");
    }
}
