//! `builtin:notes-router` with both services, without the one it can do without, and without the one it needs.

use crate::rig::{Granted, Recorder, Rig, Seconds, block_on};
use crate::{memory, work_items};
use builtins::notes_router::{self, NotesRouter};
use builtins::{memory as notes, work_item};
use llm_worker::ErrorKind;
use llm_worker::tool::Touch;
use pod::feature::{DiagnosticCode, HostCapability, InstallOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

const WORK: HostCapability = HostCapability::WorkItemStore {
    read: false,
    write: true,
};
const NOTES: HostCapability = HostCapability::MemoryStore {
    read: false,
    write: true,
};

fn router(held: &[HostCapability]) -> Granted {
    let grants = [HostCapability::tool("*")]
        .into_iter()
        .chain(held.iter().cloned());
    (Arc::new(NotesRouter), grants.collect())
}

fn fix() -> Value {
    json!({"title": "Fix the parser", "text": "It fails."})
}

fn fact() -> Value {
    json!({"title": "How the parser works", "text": "It reads."})
}

fn rig(held: &[HostCapability], roots: &[&'static str]) -> Rig {
    let seconds = Seconds::noon();
    let features = vec![
        router(held),
        work_items::feature(&seconds),
        memory::feature(&seconds),
    ];
    Rig::with(features, roots, Recorder::default())
}

fn outcome(rig: &Rig) -> InstallOutcome {
    rig.registry
        .report()
        .feature(&notes_router::ID)
        .unwrap()
        .outcome
}

#[test]
fn each_note_goes_where_it_belongs_and_the_answer_says_why() {
    let rig = rig(&[WORK, NOTES], &[work_item::ROOT, notes::ROOT]);
    assert_eq!(
        outcome(&rig),
        InstallOutcome::Installed,
        "{:#?}",
        rig.registry.report()
    );
    let filed = rig.ok("RouteNote", fix()).summary;
    assert_eq!(
        filed,
        "work item 20260131-120000-fix-the-parser: its title begins with `fix`"
    );
    let kept = rig.ok("RouteNote", fact()).summary;
    assert_eq!(
        kept,
        "memory note how-the-parser-works: nothing in it requests work"
    );
    assert!(
        rig.ok("WorkItemShow", json!({"id": "fix-the-parser"}))
            .content
            .contains("It fails.")
    );
    assert!(
        rig.ok("MemoryRead", json!({"name": "how-the-parser-works"}))
            .content
            .contains("It reads.")
    );
    assert_eq!(
        rig.host.told.lock().unwrap().len(),
        3,
        "for the call that files them"
    );
    // What the stores refuse is refused here.
    rig.refused("RouteNote", fact(), ErrorKind::FixInput);
    rig.refused(
        "RouteNote",
        json!({"title": "Notes", "text": ""}),
        ErrorKind::FixInput,
    );
    let root = rig.path("work-items").canonicalize().unwrap();
    assert_eq!(
        rig.prepare("RouteNote", &fix()).unwrap().touches,
        [Touch::Write(root)]
    );
    assert_eq!(rig.prepare("RouteNote", &fact()).unwrap().touches, []);
}

#[test]
fn without_work_items_everything_is_remembered_and_said() {
    let cases: [(&[HostCapability], &[&str]); 2] = [
        // Nobody provides them; or this one may not use them.
        (&[WORK, NOTES], &[notes::ROOT]),
        (&[NOTES], &[work_item::ROOT, notes::ROOT]),
    ];
    for (held, roots) in cases {
        let roots: Vec<&'static str> = [work_item::ROOT, notes::ROOT]
            .into_iter()
            .filter(|root| roots.contains(root))
            .collect();
        let rig = rig(held, &roots);
        assert_eq!(
            outcome(&rig),
            InstallOutcome::Degraded,
            "{:#?}",
            rig.registry.report()
        );
        let said = rig.ok("RouteNote", fix()).summary;
        assert_eq!(
            said,
            "memory note fix-the-parser, though its title begins with `fix`: there are no work items here"
        );
        assert!(rig.prepare("RouteNote", &fix()).unwrap().touches.is_empty());
    }
}

/// A provider that goes while the pod runs: the one it can do without is done without, the one it needs is an error.
#[test]
fn what_leaves_is_missed_and_named() {
    let rig = rig(&[WORK, NOTES], &[work_item::ROOT, notes::ROOT]);
    block_on(rig.registry.leave(&work_item::ID));
    let said = rig.ok("RouteNote", fix()).summary;
    assert!(
        said.starts_with("memory note fix-the-parser, though its title begins with `fix`: "),
        "{said}"
    );
    assert!(said.contains("builtin:work-item was removed"), "{said}");
    block_on(rig.registry.leave(&notes::ID));
    let message = rig.refused("RouteNote", fact(), ErrorKind::Unavailable);
    assert!(message.contains("builtin:memory was removed"), "{message}");
}

#[test]
fn without_memory_it_is_not_there() {
    for (held, roots) in [
        (&[WORK, NOTES][..], &[work_item::ROOT][..]),
        (&[WORK], &[work_item::ROOT, notes::ROOT]),
    ] {
        let rig = rig(held, roots);
        let report = rig.registry.report().feature(&notes_router::ID).unwrap();
        assert_eq!(report.outcome, InstallOutcome::Skipped);
        let decided = report
            .diagnostics
            .iter()
            .all(|d| d.code != DiagnosticCode::InstallFailed);
        assert!(
            decided,
            "the plan says it, before anything is installed: {report:#?}"
        );
        assert!(!rig.tools().contains(&"RouteNote".to_owned()));
        assert!(
            rig.tools().contains(&"WorkItemList".to_owned()),
            "others stay"
        );
    }
}
