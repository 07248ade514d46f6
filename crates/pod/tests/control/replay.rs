//! Every request is rebuilt from the log, and a log that says another thing than what was sent is told apart.

use crate::fixtures::{echo, neutral, pod, printer, verified};
use crate::record_strategy::surface;
use llm_worker::projection::{Dialect, Neutral, Open, Surface};
use llm_worker::{Item, ToolEffect};
use pod::control::Batch;
use pod::record::{Record, SystemItem};
use pod::session::replay::{Verification, Wrong, verify};
use session_store::{BLOB_BYTES, BlobView, Reader};
use std::path::Path;
use std::sync::Arc;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Three turns: parallel calls, a long output, a changed note, and in the end a changed tool.
fn told(dialect: Arc<dyn Dialect>) -> PodUnderTest {
    let calls = [("Echo", "{\"a\":1}"), ("Print", "{}"), ("Nothing", "{}")];
    let tools = |words: &str| -> Vec<FnTool> {
        vec![
            echo("Echo", ToolEffect::Effectful).described(words),
            printer("Print", 4000),
        ]
    };
    let mut pod = pod(Vec::new(), tools("Says it again."));
    let answers = vec![
        ScriptedAnswer::calls(&calls),
        ScriptedAnswer::text("one"),
        ScriptedAnswer::text("two"),
        ScriptedAnswer::text("three"),
    ];
    pod.script = ModelScript::in_dialect(dialect, answers);
    pod.run("first").end();
    *pod.environment.lock().unwrap() = "elsewhere".to_owned();
    pod.run("second").end();
    pod.tools = tools("Says it twice.");
    pod.run("third").end();
    pod
}

fn check(dir: &Path, blobs: &BlobView) -> Verification {
    verify(
        || Reader::open(dir).unwrap().frames(),
        blobs,
        &neutral,
        BLOB_BYTES,
    )
}

// covers: INV-04
#[test]
fn every_request_that_was_sent_is_rebuilt_from_the_log() {
    let pod = told(Arc::new(Neutral));
    let bodies = pod.script.bodies();
    let found = verified(&pod);
    assert_eq!(found.wrong, None);
    assert_eq!(
        (found.requests, found.bodies, found.blobs, found.notes.len()),
        (4, 4, 1, 0)
    );
    assert_eq!(found.records, pod.records().len() as u64);
    // What the log names is what the model was really given.
    let sent = |record: &Record| match record {
        Record::Request(request) => Some((request.body_digest.clone(), request.bytes)),
        _ => None,
    };
    let logged: Vec<_> = pod
        .records()
        .iter()
        .filter_map(|(_, record)| sent(record))
        .collect();
    let given: Vec<_> = bodies
        .iter()
        .map(|b| (blake3::hash(b).to_hex().to_string(), b.len() as u64))
        .collect();
    assert_eq!(logged, given);
    let last = pod.script.requests().pop().unwrap();
    assert_eq!(
        (last.generation, last.tools[0].description.as_str()),
        (2, "Says it twice.")
    );
    let notes = last
        .items
        .iter()
        .filter(|item| matches!(item, Item::System { .. }))
        .count();
    assert_eq!(notes, 2, "the environment, each time it changed");
}

/// The same log with one record changed in it; answers what was wrong with it, and at which seq.
fn forged(pod: &PodUnderTest, change: &dyn Fn(&mut Record) -> bool) -> (u64, Option<Wrong>) {
    let records: Vec<_> = pod
        .records()
        .into_iter()
        .filter(|(_, r)| !matches!(r, Record::Other { .. }))
        .collect();
    let other = crate::fixtures::pod(Vec::new(), Vec::new());
    let opened = other.store().unwrap();
    let mut at = None;
    for (seq, mut record) in records {
        if at.is_none() && change(&mut record) {
            at = Some(seq);
        }
        let done = opened
            .journal
            .append(Batch::of(vec![record]))
            .wait()
            .unwrap();
        assert_eq!(*done.seqs().start(), seq);
    }
    let blobs = pod.store().unwrap().blobs;
    let found = check(&other.dir, blobs.view());
    (at.unwrap(), found.wrong)
}

#[test]
fn one_changed_field_is_named() {
    type Change = (&'static str, &'static str, Box<dyn Fn(&mut Record) -> bool>);
    macro_rules! change {
        ($name:literal, $what:literal, $variant:ident($body:ident) $(if $guard:expr)? => $do:expr) => {
            ($name, $what, Box::new(|record: &mut Record| match record {
                Record::$variant($body) $(if $guard)? => {
                    $do;
                    true
                }
                _ => false,
            }) as Box<dyn Fn(&mut Record) -> bool>)
        };
    }
    let cases: Vec<Change> = vec![
        change!("system prompt", "rebuilt digest", SurfaceSet(s) => s.surface.system.push('!')),
        change!("model", "rebuilt digest", SurfaceSet(s) => s.surface.model.push('!')),
        change!("tool", "rebuilt digest", SurfaceSet(s) => s.surface.tools[0].description.push('!')),
        change!("generation", "generation", SurfaceSet(s) => s.surface.generation += 1),
        change!("user text", "rebuilt digest", InputQueued(i) => i.text.push('!')),
        change!("note", "rebuilt digest", SystemItem(n) => {
            if let SystemItem::Environment { text, .. } = n { text.push('!') }
        }),
        change!("answer", "rebuilt digest", ItemAdded(i) if matches!(i.item, Item::Assistant { .. }) => {
            i.item = Item::Assistant { text: "other".to_owned() }
        }),
        change!("call", "rebuilt digest", ItemAdded(i) if matches!(i.item, Item::ToolCall { .. }) => {
            if let Item::ToolCall { arguments, .. } = &mut i.item { arguments.push(' ') }
        }),
        change!("result", "rebuilt digest", ToolFinished(f) => f.outcome.summary.push('!')),
        change!("blob", "is missing", ToolFinished(f) if f.output.is_some() => {
            f.output.as_mut().unwrap().stored.digest = session_store::Digest::of(b"other")
        }),
        change!("blob's length", "were stored", ToolFinished(f) if f.output.is_some() => {
            f.output.as_mut().unwrap().stored.bytes += 1
        }),
        change!("request's items", "all items", Request(r) => r.items += 1),
        change!("request's number", "does not follow the last one", Request(r) => r.number += 1),
        change!("request's generation", "differs from the surface", Request(r) => r.generation += 1),
        change!("request's encoder", "differs from the surface", Request(r) => r.encoder.version += 1),
        change!("neutral digest", "rebuilt digest", Request(r) => r.neutral_digest = "0".repeat(64)),
        change!("body digest", "rebuilt body", Request(r) => r.body_digest = "0".repeat(64)),
        change!("body length", "rebuilt body", Request(r) => r.bytes += 1),
        change!("call number", "its call is not open", ToolStarted(s) => s.call = llm_worker::CallId::new(9).unwrap()),
        change!("turn number", "does not follow the last one", TurnStarted(t) => t.turn += 1),
    ];
    let pod = told(Arc::new(Neutral));
    for (name, what, change) in cases {
        let (at, wrong) = forged(&pod, &*change);
        let wrong = wrong.unwrap_or_else(|| panic!("{name}: nothing is wrong"));
        assert!(
            wrong.seq >= at && wrong.what.contains(what),
            "{name} at {at}: {wrong:?}"
        );
    }
    let (_, untouched) = forged(&pod, &|record| matches!(record, Record::HostStopped(_)));
    assert_eq!(untouched, None);
}

/// What a change of the view says of itself is compared with what it does.
#[test]
fn a_forged_change_of_the_view_is_named() {
    let pod = crate::views::short();
    type Change = (&'static str, &'static str, fn(&mut Record) -> bool);
    let cases: [Change; 6] = [
        ("results", "what left the requests", |record| match record {
            Record::Pruned(pruned) => {
                pruned.left.results += 1;
                true
            }
            _ => false,
        }),
        ("bytes", "what left the requests", |record| match record {
            Record::Pruned(pruned) => {
                pruned.left.bytes.clear();
                true
            }
            _ => false,
        }),
        ("mark", "what left the requests", |record| match record {
            Record::Pruned(pruned) => {
                pruned.mark.push('!');
                true
            }
            _ => false,
        }),
        ("view", "what left the requests", |record| match record {
            Record::Pruned(pruned) => {
                pruned.view.pruned -= 4;
                true
            }
            _ => false,
        }),
        (
            "view of nothing",
            "does not follow the last one",
            |record| match record {
                Record::Pruned(pruned) => {
                    pruned.view.pruned = 1000;
                    true
                }
                _ => false,
            },
        ),
        ("request", "view in force", |record| match record {
            Record::Request(request) if request.view.is_some() => {
                request.view = None;
                true
            }
            _ => false,
        }),
    ];
    for (name, what, change) in cases {
        let (at, wrong) = forged(&pod, &change);
        let wrong = wrong.unwrap_or_else(|| panic!("{name}: nothing is wrong"));
        assert!(
            wrong.seq >= at && wrong.what.contains(what),
            "{name} at {at}: {wrong:?}"
        );
    }
}

/// A dialect of another version than the one in the log.
struct Other(&'static str, u16);

impl Dialect for Other {
    fn id(&self) -> &'static str {
        self.0
    }
    fn version(&self) -> u16 {
        self.1
    }
    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        Neutral.head(surface, out);
        out.push(b' ');
    }
    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        Neutral.append(open, first, item, out)
    }
    fn close(&self, open: Open, out: &mut Vec<u8>) {
        Neutral.close(open, out);
    }
}

#[test]
fn an_encoder_that_is_not_here_is_a_note_and_no_damage() {
    let pod = told(Arc::new(Other("other", 1)));
    let blobs = pod.store().unwrap().blobs;
    type Have = Option<(&'static str, u16)>;
    let cases: [(Have, u64, &[&str]); 3] = [
        (Some(("other", 1)), 4, &[]),
        (
            Some(("other", 2)),
            0,
            &[
                "a request was not rebuilt: it was made with version 1 of the encoder `other`; this yoi has version 2",
            ],
        ),
        (
            None,
            0,
            &[
                "a request was not rebuilt: it was made with version 1 of the encoder `other`; this yoi has no such encoder",
            ],
        ),
    ];
    for (have, bodies, notes) in cases {
        let dialects = move |_: &str, _: &Surface| {
            have.map(|(id, v)| Arc::new(Other(id, v)) as Arc<dyn Dialect>)
        };
        let found = verify(
            || Reader::open(&pod.dir).unwrap().frames(),
            blobs.view(),
            &dialects,
            BLOB_BYTES,
        );
        assert_eq!(
            (found.wrong, found.requests, found.bodies),
            (None, 4, bodies),
            "{have:?}"
        );
        assert!(found.notes.iter().eq(notes), "{have:?}: {:?}", found.notes);
    }
}

#[test]
fn a_request_without_a_surface_and_a_damaged_blob_are_named() {
    let pod = told(Arc::new(Neutral));
    let (at, wrong) = forged(&pod, &|record| match record {
        Record::SurfaceSet(set) => {
            *record = Record::HostStopped(pod::record::HostStopped {
                reason: set.surface.model.clone(),
            });
            true
        }
        _ => false,
    });
    assert!(wrong.is_some_and(|wrong| wrong.seq > at && wrong.what.contains("no surface")));
    assert_eq!(surface(1).surface.generation, 1);

    let output = pod.state().outputs[0].clone();
    let opened = pod.store().unwrap();
    let path = opened.blobs.view().path(&output.stored.digest);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let wrong = check(&pod.dir, opened.blobs.view()).wrong.unwrap();
    assert!(wrong.what.contains("damaged"), "{wrong:?}");
}
