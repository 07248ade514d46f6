//! Pods, tools and what must hold of every log.
use llm_worker::projection::{Dialect, Neutral, Projection, Surface};
use llm_worker::tool::FileChange;
use llm_worker::{CallId, ErrorKind, Item, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::control::Batch;
use pod::record::Record;
use pod::session::fold::SessionState;
use pod::session::replay::{Verification, verify};
use pod::session::resume::resume;
use protocol::method::{MoveInput, Resume};
use session_store::{Digest, Reader};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use testkit::{FnTool, LivePod, ModelScript, PodRun, PodUnderTest, ScriptedAnswer};
use tokio::sync::Notify;

pub(crate) fn pod(answers: Vec<ScriptedAnswer>, tools: Vec<FnTool>) -> PodUnderTest {
    PodUnderTest::new(&ambient::claim(), ModelScript::new(answers), tools)
}

/// A pod that is open, with the records of its start in the log.
pub(crate) fn live(pod: PodUnderTest) -> LivePod {
    let live = LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.events));
    live.until(|status| live.folded(status.folded).hosted);
    live
}

#[allow(clippy::unnecessary_wraps, reason = "what a tool answers")]
pub(crate) fn said(summary: &str) -> ToolResult {
    Ok(ToolOutput {
        summary: summary.to_owned(),
        content: String::new(),
        data: None,
    })
}

/// Answers with its arguments.
pub(crate) fn echo(name: &str, effect: ToolEffect) -> FnTool {
    FnTool::new(name, effect, |_, arguments| async move { said(&arguments) })
}

/// Adds a tool whose calls take so many seconds by the clock of the pod.
pub(crate) fn add_slow(pod: &mut PodUnderTest, seconds: u64) {
    let clock = pod.clock.clone();
    pod.tools.push(FnTool::new(
        "Slow",
        ToolEffect::ReadOnly,
        move |_, arguments| {
            clock.advance(seconds * 1_000_000);
            async move { said(&arguments) }
        },
    ));
}

/// A tool that says when it runs, and ends when it is told to or cancelled.
pub(crate) fn waits(runs: &Arc<Notify>, ends: &Arc<Notify>) -> FnTool {
    let runs = Arc::clone(runs);
    let ends = Arc::clone(ends);
    FnTool::new("Wait", ToolEffect::ReadOnly, move |cx, _| {
        let runs = Arc::clone(&runs);
        let ends = Arc::clone(&ends);
        async move {
            runs.notify_one();
            tokio::select! {
                () = ends.notified() => said("waited"),
                () = cx.cancel.cancelled() => Err(ToolError::new(ErrorKind::Cancelled, "stopped")),
            }
        }
    })
}

/// Files that were changed, by a tool that asks first as it must.
pub(crate) type Changed = Arc<Mutex<Vec<String>>>;

/// Changes `/p/<call>` behind the host's leave.
pub(crate) fn changer(name: &str, changed: &Changed) -> FnTool {
    let changed = Arc::clone(changed);
    FnTool::new(name, ToolEffect::Effectful, move |cx, _| {
        let changed = Arc::clone(&changed);
        async move {
            let path = format!("/p/{}", cx.call);
            let after = Some(Digest::of(path.as_bytes()).to_string());
            let change = FileChange {
                path: path.clone().into(),
                before: Some(b"old".to_vec()),
                mode: None,
                after,
                made: None,
            };
            cx.host.file_changing(change).await?;
            changed.lock().unwrap().push(path);
            said("changed")
        }
    })
}

/// Writes this many lines of 16 bytes, a thousand at a time.
pub(crate) fn printer(name: &str, lines: usize) -> FnTool {
    FnTool::new(name, ToolEffect::ReadOnly, move |cx, _| async move {
        for thousand in (0..lines).step_by(1000) {
            let text: String = (thousand..lines.min(thousand + 1000))
                .map(|line| format!("line {line:>10}\n"))
                .collect();
            cx.host.write_output(text.as_bytes())?;
        }
        said("printed")
    })
}

pub(crate) fn neutral(id: &str, _: &Surface) -> Option<Arc<dyn Dialect>> {
    (id == Neutral::ID).then(|| Arc::new(Neutral) as Arc<dyn Dialect>)
}

pub(crate) fn verified(pod: &PodUnderTest) -> Verification {
    let opened = pod.store().unwrap();
    verify(
        || Reader::open(&pod.dir).unwrap().frames(),
        opened.blobs.view(),
        &neutral,
        pod.blob_bytes,
    )
}

/// A pod with the same records, whose requests are those of an older version of the projection.
pub(crate) fn as_written_by(
    version: u16,
    pod: &PodUnderTest,
    next: ScriptedAnswer,
) -> PodUnderTest {
    let script = ModelScript::new(vec![next]);
    let old = PodUnderTest::new(&ambient::claim(), script, Vec::new());
    let mut state = SessionState::default();
    let mut rebuilt = None;
    let journal = old.journal();
    for (_, mut record) in pod.records() {
        if let Record::Request(request) = &mut record {
            let sent: &mut Projection = rebuilt.as_mut().unwrap();
            request.projection = version;
            request.neutral_digest = sent.neutral_digest();
            request.body_digest = sent.body().digest;
            request.bytes = sent.body().len;
        }
        let items = state.apply(&record).unwrap();
        if let (Record::SurfaceSet(_), None) = (&record, &rebuilt) {
            let (surface, _) = state.surface.clone().unwrap();
            rebuilt = Some(Projection::new(&surface, Arc::new(Neutral)).ordered_as(version));
        }
        items
            .iter()
            .for_each(|item| rebuilt.as_mut().unwrap().push(item));
        // The store writes its own.
        if !matches!(record, Record::Other { .. }) {
            journal.append(Batch::of(vec![record])).wait().unwrap();
        }
    }
    journal.close();
    old
}

/// Results per call, of every call the log has.
pub(crate) fn results(items: &[Item]) -> BTreeMap<CallId, Vec<String>> {
    let mut results: BTreeMap<CallId, Vec<String>> = BTreeMap::new();
    for item in items {
        match item {
            Item::ToolCall { id, .. } => {
                results.insert(*id, Vec::new());
            }
            Item::ToolResult { id, outcome } => {
                results.get_mut(id).unwrap().push(outcome.summary.clone())
            }
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { .. } => {}
        }
    }
    results
}

/// What holds of every log whose pod ended or was opened again.
pub(crate) fn sound(pod: &PodUnderTest, what: &str) {
    let resumed = resume(pod.resume().unwrap().1).unwrap().restored;
    let restored = pod.restored();
    assert_eq!(resumed, restored, "{what}: from the checkpoint");
    for (call, results) in results(&restored.items) {
        assert_eq!(results.len(), 1, "{what}: {call} has {results:?}");
    }
    assert!(
        !restored.state.turn_open && restored.state.open_calls.is_empty(),
        "{what}"
    );
    let found = verified(pod);
    assert_eq!(found.wrong, None, "{what}");
    assert_eq!(found.requests, restored.state.requests, "{what}");
}

/// The watcher was told of exactly the records that became durable while it watched.
pub(crate) fn told_what_is_durable(ran: &PodRun, log: &[(u64, Record)], before: u64, what: &str) {
    let ours = |record: &Record| !matches!(record, Record::Other { .. });
    let durable: Vec<_> = log
        .iter()
        .filter(|(seq, record)| before < *seq && *seq <= ran.durable && ours(record))
        .map(|(seq, record)| (*seq, record.kind().to_owned()))
        .collect();
    let told: Vec<_> = ran
        .records()
        .iter()
        .map(|(seq, record)| (*seq, record.kind().to_owned()))
        .collect();
    assert_eq!(told, durable, "{what}");
    for (seq, record) in ran.records() {
        assert_eq!(
            log[usize::try_from(seq).unwrap() - 1],
            (seq, record),
            "{what}"
        );
    }
}

/// No call ran twice.
pub(crate) fn ran_once(tools: &[FnTool], what: &str) {
    let mut all: Vec<CallId> = tools.iter().flat_map(FnTool::ran).collect();
    let ran = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ran, "{what}: a call ran twice");
}

/// An input that waits goes before another one, or to the end.
pub(crate) fn moved(input: u64, before: Option<u64>) -> MoveInput {
    MoveInput {
        input,
        before,
        cmd_id: String::new(),
    }
}

/// As much again of what is used up.
pub(crate) fn more() -> Resume {
    Resume {
        more: true,
        cmd_id: String::new(),
    }
}
