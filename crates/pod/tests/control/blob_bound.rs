//! The bound on a session's blobs, as tools and the model meet it.

use crate::fixtures::{pod, printer, said, sound, verified};
use llm_worker::tool::{FileChange, LineRange};
use llm_worker::{ErrorKind, Item, ResultStatus, ToolEffect, ToolError};
use pod::control::Outbox;
use std::fs;
use std::sync::{Arc, Mutex};
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Room for three outputs of 64 kB and a bit; half of it for one.
const ROOM: u64 = 220_000;

/// Each print is another one.
fn prints(count: usize) -> Vec<FnTool> {
    (0..count)
        .map(|n| printer(&format!("Print{n}"), 4000 + n))
        .collect()
}

fn run(pod: &mut PodUnderTest, names: &[&str]) -> Vec<(ResultStatus, String)> {
    let calls: Vec<_> = names
        .iter()
        .map(|name| ScriptedAnswer::calls(&[(*name, "{}")]))
        .collect();
    let before = if pod.dir.exists() {
        pod.restored().items.len()
    } else {
        0
    };
    pod.script = ModelScript::new(calls.into_iter().chain([ScriptedAnswer::text("done")]));
    pod.run("go").end();
    let result = |item: &Item| match item {
        Item::ToolResult { outcome, .. } => Some((outcome.status, outcome.text())),
        _ => None,
    };
    pod.restored().items[before..]
        .iter()
        .filter_map(result)
        .collect()
}

/// Reads the output with this number of the newest ones, counted from the oldest.
fn reader(pod: &PodUnderTest, nth: usize) -> (FnTool, Arc<Mutex<Option<ToolError>>>) {
    let handle = pod.state().outputs[nth].handle.clone();
    let told = Arc::<Mutex<Option<ToolError>>>::default();
    let refused = told.clone();
    let tool = FnTool::new("Page", ToolEffect::ReadOnly, move |cx, _| {
        let read = cx
            .host
            .read_output(&handle, LineRange::From { from: 1, lines: 2 });
        *refused.lock().unwrap() = read.as_ref().err().cloned();
        async move { said(&read.map_or_else(|refused| refused.message, |shown| shown.text)) }
    });
    (tool, told)
}

#[test]
fn the_next_turn_drops_the_oldest_outputs() {
    let mut pod = pod(Vec::new(), prints(4));
    pod.blob_bytes = ROOM;
    let answers =
        ["Print0", "Print1", "Print2", "Print3"].map(|name| ScriptedAnswer::calls(&[(name, "{}")]));
    let again = [
        ScriptedAnswer::text("full"),
        ScriptedAnswer::calls(&[("Print3", "{}")]),
        ScriptedAnswer::text("done"),
    ];
    pod.script = ModelScript::new(answers.into_iter().chain(again));
    let (stored, end) = pod.serve(Outbox::unwatched(), async |client| {
        client.submit("go").await.unwrap();
        let before = pod.state().outputs.len();
        client.submit("again").await.unwrap();
        (before, pod.state().outputs.len())
    });
    end.result.unwrap();
    assert_eq!(stored, (3, 4));
    assert_eq!((verified(&pod).blobs, verified(&pod).dropped), (3, 1));
    sound(&pod, "two turns");
}

#[test]
fn the_next_run_lets_go_of_the_oldest_outputs() {
    let mut pod = pod(Vec::new(), prints(5));
    pod.blob_bytes = ROOM;
    let first = run(&mut pod, &["Print0", "Print1", "Print2", "Print3"]);
    assert!(
        first[..3]
            .iter()
            .all(|(status, _)| *status == ResultStatus::Ok),
        "{first:?}"
    );
    let (status, text) = &first[3];
    assert_eq!(*status, ResultStatus::Error);
    assert!(
        text.contains("its output was lost") && text.contains("end this turn"),
        "{text}"
    );
    sound(&pod, "full");
    assert_eq!(run(&mut pod, &["Print3"])[0].0, ResultStatus::Ok);
    let found = verified(&pod);
    assert_eq!((found.wrong, found.blobs, found.dropped), (None, 3, 1));
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.starts_with("1 data file was deleted")),
        "{:?}",
        found.notes
    );

    for (nth, gone) in [(0, true), (1, false)] {
        let (page, told) = reader(&pod, nth);
        pod.tools = vec![page];
        let text = run(&mut pod, &["Page"]).remove(0).1;
        assert_eq!(text.starts_with("gone: output `o-"), gone, "{text}");
        assert_eq!(
            told.lock().unwrap().take().map(|refused| refused.kind),
            gone.then_some(ErrorKind::Unavailable)
        );
    }
}

/// What was in a file is never let go, so that a change without room for it is not made.
#[test]
fn a_change_without_room_for_what_was_is_refused() {
    let told: Arc<Mutex<Vec<ErrorKind>>> = Arc::default();
    let refused = told.clone();
    let change = FnTool::new("Change", ToolEffect::Effectful, move |cx, arguments| {
        let refused = refused.clone();
        async move {
            let before = vec![arguments.len() as u8; 100_000];
            let change = FileChange {
                path: "/p/f".into(),
                before: Some(before),
                mode: None,
                after: None,
                made: None,
            };
            let Err(error) = cx.host.file_changing(change).await else {
                return said("changed");
            };
            refused.lock().unwrap().push(error.kind);
            Err(error)
        }
    });
    let mut pod = pod(Vec::new(), vec![change]);
    pod.blob_bytes = ROOM;
    let calls = ["{}", "{\"a\":1}", "{\"a\":11}"]
        .map(|arguments| ScriptedAnswer::calls(&[("Change", arguments)]));
    pod.script = ModelScript::new(
        calls
            .clone()
            .into_iter()
            .chain([ScriptedAnswer::text("done")]),
    );
    pod.run("go").end();
    // The next run lets go of none of them either.
    pod.script = ModelScript::new([calls[2].clone(), ScriptedAnswer::text("done")]);
    pod.run("go").end();
    assert_eq!(told.lock().unwrap().as_slice(), [ErrorKind::Exhausted; 2]);
    sound(&pod, "no room");
}

/// Nothing that something leads to may be missing, whatever the bound.
#[test]
fn a_blob_that_is_still_led_to_is_missed() {
    let mut pod = pod(Vec::new(), prints(2));
    run(&mut pod, &["Print0", "Print1"]);
    let stored = pod.state().outputs[0].stored.clone();
    fs::remove_file(pod.store().unwrap().blobs.view().path(&stored.digest)).unwrap();
    let wrong = verified(&pod).wrong.unwrap();
    assert!(wrong.what.contains("missing"), "{wrong:?}");
}
