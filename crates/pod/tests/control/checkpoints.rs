//! Going on from a checkpoint is going on from the log.

use crate::fixtures::{echo, pod, printer, sound};
use crate::{record_strategy, task_runs};
use llm_worker::{CallId, Item, ProviderSignature, ToolEffect};
use pod::record::{
    BackgroundTask, FeatureState, Features, FileChanged, InputConsumed, Stored, TaskRunState,
    TurnStarted,
};
use pod::session::checkpoint::{CheckpointBuilder, VERSION};
use pod::session::restore::Restored;
use pod::session::resume::{ResumedSession, everything, resume};
use pod::session::summary::Summary;
use session_store::{Digest, EncodeError, Frames, Reader, RecordId, Records, SessionRecords};
use std::fs;
use std::sync::Arc;
use testkit::{ModelScript, PodUnderTest, ScriptedAnswer};

/// A pod whose journal goes on in a new segment every few records, after `runs` runs.
fn sealed(runs: usize) -> PodUnderTest {
    let calls = [("Echo", "{\"a\":1}"), ("Print", "{}"), ("None", "{}")];
    let mut pod = pod(
        Vec::new(),
        vec![echo("Echo", ToolEffect::Effectful), printer("Print", 3000)],
    );
    pod.segment_bytes = 2500;
    for run in 0..runs {
        pod.script = ModelScript::new(vec![
            ScriptedAnswer::calls(&calls),
            ScriptedAnswer::text(&format!("answer {run}")),
        ]);
        pod.run(&format!("input {run}")).end();
    }
    pod
}

fn past(pod: &PodUnderTest) -> SessionRecords {
    let (opened, past) = pod.resume().unwrap();
    opened.journal.close();
    past
}

fn resumed(pod: &PodUnderTest) -> ResumedSession {
    resume(past(pod)).unwrap()
}

/// Where the pod's checkpoint ends; 0 without one.
fn kept(pod: &PodUnderTest) -> u64 {
    past(pod)
        .checkpoint()
        .map_or(0, session_store::Checkpoint::seq)
}

#[test]
fn only_what_is_behind_the_checkpoint_is_folded() {
    let pod = sealed(4);
    let last = pod.records().len() as u64;
    let behind = past(&pod).behind_checkpoint().count() as u64;
    assert!(
        kept(&pod) > 0 && behind < last / 4,
        "{behind} of {last} behind {}",
        kept(&pod)
    );
    assert_eq!(resumed(&pod).restored, pod.restored());
    sound(&pod, "sealed");
    // What a checkpoint says is believed: nothing before it is folded again.
    let seal = newest_seal(&pod);
    let before = past(&pod)
        .all()
        .take_while(|frame| frame.as_ref().unwrap().seq <= seal.seq());
    let mut told = Restored::from_frames(before).unwrap();
    told.state.usage.input += 7;
    let (opened, _) = pod.resume().unwrap();
    opened.journal.checkpoint(
        seal,
        VERSION,
        CheckpointBuilder::of(&told).bytes(&told.state).unwrap(),
    );
    opened.journal.close();
    assert_eq!(
        resumed(&pod).restored.state.usage.input,
        pod.restored().state.usage.input + 7
    );
}

fn newest_seal(pod: &PodUnderTest) -> RecordId {
    let frames: Vec<_> = past(pod).all().map(Result::unwrap).collect();
    frames
        .iter()
        .rev()
        .find(|frame| frame.kind == "seal")
        .map(RecordId::of)
        .unwrap()
}

/// Only the version that the glance knows is read at a glance.
#[test]
fn an_item_of_another_version_is_read_as_one() {
    struct Strange;
    impl Records for Strange {
        fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
            let item =
                serde_json::json!({ "item": { "type": "assistant", "text": "of a later form" } });
            frames.record("item", 2, &item).map(drop)
        }
    }
    let pod = sealed(1);
    let (opened, _) = pod.resume().unwrap();
    opened.journal.append(Strange).wait().unwrap();
    opened.journal.close();
    let whole = Restored::from_frames(past(&pod).all());
    let glanced = everything(past(&pod).all());
    assert_eq!(
        glanced
            .map(|glanced| glanced.restored)
            .map_err(|e| e.to_string()),
        whole.map_err(|e| e.to_string())
    );
}

#[test]
fn without_its_index_a_session_is_the_same_and_gets_one_again() {
    let pod = sealed(3);
    let whole = pod.restored();
    fs::remove_dir_all(pod.dir.join("idx")).unwrap();
    assert_eq!(kept(&pod), 0);
    assert_eq!(resumed(&pod).restored, whole);
    // Opening the pod, not only folding it, keeps the fold at the newest seal.
    let opened = pod.resume().unwrap();
    let journal = opened.0.journal.clone();
    drop(pod.opening(opened).unwrap());
    journal.close();
    assert_eq!(kept(&pod), newest_seal(&pod).seq());
    assert_eq!(resumed(&pod).restored, whole);
}

/// Of another version, of other bytes, or whole and wrong: the log has the last word.
#[test]
fn a_checkpoint_that_does_not_serve_is_left_aside() {
    let pod = sealed(3);
    let whole = pod.restored();
    let good = CheckpointBuilder::of(&whole).bytes(&whole.state).unwrap();
    let mut other = whole.state.clone();
    other.turns += 7;
    let wrong = CheckpointBuilder::of(&whole).bytes(&other).unwrap();
    let mut cut = good.clone();
    cut.pop();
    let cases = [
        (VERSION + 1, good),
        (VERSION, b"{}\n".to_vec()),
        (VERSION, Vec::new()),
        (VERSION, cut),
        (VERSION, wrong),
    ];
    for (n, (version, bytes)) in cases.into_iter().enumerate() {
        let seal = newest_seal(&pod);
        let (opened, _) = pod.resume().unwrap();
        opened.journal.checkpoint(seal, version, bytes);
        opened.journal.close();
        assert!(kept(&pod) > 0, "{n}");
        pod.script.add(ScriptedAnswer::text("went on"));
        assert_eq!(
            pod.run("next").end().answer.as_deref(),
            Some("went on"),
            "{n}"
        );
        sound(&pod, &format!("case {n}"));
    }
}

/// Without any full segment: a host that stops leaves one, if enough came since the last.
#[test]
fn a_host_that_stops_leaves_one() {
    let mut pod = pod(Vec::new(), vec![echo("Echo", ToolEffect::Effectful)]);
    let mut lasts = Vec::new();
    for run in 0..40 {
        pod.script = ModelScript::new(vec![
            ScriptedAnswer::calls(&[("Echo", "{\"a\":1}")]),
            ScriptedAnswer::text(&format!("answer {run}")),
        ]);
        pod.run(&format!("input {run}")).end();
        let last = pod.records().len() as u64;
        assert!(kept(&pod) * 16 >= last * 15, "{} of {last}", kept(&pod));
        assert_eq!(resumed(&pod).restored, pod.restored());
        lasts.push(kept(&pod) == last);
    }
    // Each of the first runs is a large part of the log, none of the last ones is.
    assert!(
        lasts[..5].iter().all(|there| *there) && lasts.iter().any(|there| !*there),
        "{lasts:?}"
    );
    sound(&pod, "stopped");
}

/// What a listing folds is what the log comes to: from a checkpoint, from the log, and from the log when that contradicts.
#[test]
fn a_summary_is_the_state_without_the_items() {
    let pod = sealed(3);
    let whole = pod.restored();
    let summary = || {
        let mut folded = 0;
        let summary = Summary::read(&Reader::open(&pod.dir).unwrap(), || folded += 1).unwrap();
        assert_eq!(
            (summary.state, summary.last_time),
            (whole.state.clone(), whole.last_time)
        );
        folded
    };
    assert_eq!(summary(), 0);
    let mut wrong = whole.clone();
    wrong.state.turns += 7;
    let first = past(&pod)
        .all()
        .map(Result::unwrap)
        .find(|frame| frame.kind == "surface")
        .unwrap();
    let (opened, _) = pod.resume().unwrap();
    let bytes = CheckpointBuilder::of(&wrong).bytes(&wrong.state).unwrap();
    opened
        .journal
        .checkpoint(RecordId::of(&first), VERSION, bytes);
    opened.journal.close();
    // What follows does not fit a fold that says that there were more turns.
    assert_eq!(summary() as usize, pod.records().len());
    fs::remove_dir_all(pod.dir.join("idx")).unwrap();
    assert_eq!(summary() as usize, pod.records().len());
}

/// The report of a start, as far as the fold keeps it.
fn report() -> serde_json::Value {
    let feature = serde_json::json!({
        "feature_id": "user:a", "outcome": "installed", "body": "b", "settings": { "n": 3 }, "settings_digest": "s",
        "content_digest": "c", "granted": [], "installed_tools": ["T"], "installed_hooks": [],
    });
    serde_json::json!({ "digest": "d", "features": [feature] })
}

#[test]
fn what_a_fold_is_kept_in_is_pinned() {
    let id = CallId::new(1).unwrap();
    let signature = ProviderSignature {
        kind: "signature".to_owned(),
        data: "wax".to_owned(),
    };
    let seal = Some(llm_worker::SealedReasoning {
        model: "m".to_owned(),
        generation: 1,
        signature,
    });
    let stored = Stored {
        digest: Digest::of(b"x"),
        bytes: 1,
        gap: None,
        whole: None,
    };
    let change = FileChanged {
        call: Some(id),
        path: "/p/f".to_owned(),
        before: Some(stored.clone()),
        mode: Some(0o644),
        after: Some("00".to_owned()),
        made: None,
    };
    let state = FeatureState {
        feature: "builtin:t".to_owned(),
        name: "n".to_owned(),
        version: 1,
        value: Arc::new(serde_json::json!({ "a": [1] })),
    };
    let records = vec![
        record_strategy::surface(1).into(),
        record_strategy::queued(1, Some(stored.into())),
        record_strategy::queued(2, None),
        TurnStarted { turn: 1 }.into(),
        InputConsumed { input: 1 }.into(),
        record_strategy::note("here"),
        record_strategy::item(Item::Reasoning {
            text: "so".to_owned(),
            seal,
        }),
        record_strategy::item(Item::Reasoning {
            text: "and so".to_owned(),
            seal: None,
        }),
        record_strategy::item(Item::Assistant {
            text: "well \"é\"\n".to_owned(),
        }),
        record_strategy::asked(id),
        record_strategy::started(id, ToolEffect::Effectful),
        record_strategy::finished(id, None),
        record_strategy::asked(CallId::new(2).unwrap()),
        record_strategy::started(CallId::new(2).unwrap(), ToolEffect::Effectful),
        FileChanged {
            call: CallId::new(2),
            ..change
        }
        .into(),
        Features { report: report() }.into(),
        state.into(),
        record_strategy::notification(3),
        task_runs::running(1, "done", ToolEffect::ReadOnly).into(),
        BackgroundTask {
            state: TaskRunState::Failed,
            reason: Some("why".to_owned()),
            ..task_runs::running(1, "done", ToolEffect::ReadOnly)
        }
        .into(),
        task_runs::running(2, "open", ToolEffect::Effectful).into(),
    ];
    let mut whole = Restored::default();
    for (seq, record) in (1..).zip(records) {
        whole.take(seq, 1000 + seq, &record).unwrap();
    }
    let mut draft = CheckpointBuilder::of(&whole);
    let bytes = draft.bytes(&whole.state).unwrap();
    // Another digest is another version: what an older build kept does not read any more, or means another thing.
    let digest = blake3::hash(&bytes).to_hex();
    assert_eq!(
        (VERSION, digest.as_str()),
        (30, PINNED),
        "{}",
        String::from_utf8_lossy(&bytes)
    );
    for cut in 0..bytes.len() {
        assert!(
            CheckpointBuilder::read(VERSION, &bytes[..cut]).is_none(),
            "{cut}"
        );
    }
    assert_eq!(CheckpointBuilder::read(VERSION + 1, &bytes), None);
    assert_eq!(
        CheckpointBuilder::read(VERSION, &bytes),
        Some((whole, draft))
    );
    let empty = Restored::default();
    assert!(
        CheckpointBuilder::read(
            VERSION,
            &CheckpointBuilder::of(&empty).bytes(&empty.state).unwrap()
        )
        .is_some()
    );
}

const PINNED: &str = "6f3e61009cf3d25835db18d9785aeef685fb7853611e42b6dfe8a00e579e1cef";
