//! A pod with one of these features, tools to try it on, and a clock that the test moves.
use builtins::policies::{self, Settings};
use builtins::{Now, task};
use llm_worker::{ErrorKind, ResultStatus, ToolEffect, ToolError, ToolOutput};
use pod::feature::{FeatureId, FeatureModule, HostCapability};
use pod::hook::{PostAssistant, PreRequest, PreToolCall, ToolOutcome};
use pod::record::Record;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use testkit::{FnTool, ModelScript, PodRun, PodUnderTest, ScriptedAnswer};

/// A call: a tool and its arguments.
pub(crate) type Call = (&'static str, &'static str);

/// Seconds since 1970.
pub(crate) type Seconds = Arc<AtomicU64>;

/// When it all begins.
pub(crate) const BEGAN: u64 = 1_790_000_000;

pub(crate) fn settings(value: Value) -> Settings {
    value.as_object().unwrap().clone()
}

/// A clock that shows this.
pub(crate) fn clock(seconds: &Seconds) -> Now {
    let now = Arc::clone(seconds);
    Arc::new(move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::Relaxed)))
}

/// A pod with one feature that is off by itself.
pub(crate) fn pod(id: &FeatureId, keys: Value, tools: Vec<FnTool>) -> (PodUnderTest, Seconds) {
    let seconds = Arc::new(AtomicU64::new(BEGAN));
    let all = BTreeMap::from([(id.clone(), settings(keys))]);
    let module = policies::with_settings(&all, |other| other == id, &clock(&seconds))
        .unwrap()
        .remove(0);
    (with(module, tools), seconds)
}

/// A pod with one feature, which may have whatever it asks for.
pub(crate) fn with(module: Arc<dyn FeatureModule>, tools: Vec<FnTool>) -> PodUnderTest {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), tools);
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::hook::<PostAssistant>(),
        HostCapability::hook::<PreRequest>(),
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_RESULT,
        HostCapability::READ_WORKSPACE,
        HostCapability::SESSION_STATE,
        task::NOTIFY,
    ];
    pod.features = vec![(module, grants)];
    pod
}

/// One more turn: these calls, a step each, and the end.
pub(crate) fn turn(pod: &PodUnderTest, calls: &[Call]) -> Vec<Ended> {
    let steps: Vec<&[Call]> = calls.chunks(1).collect();
    steps_of(pod, &steps)
}

/// How a call ended: its status and its summary.
pub(crate) type Ended = (ResultStatus, String);

/// One more turn: steps of calls that the model makes at once, and the end. How each ended, in the order of the calls.
pub(crate) fn steps_of(pod: &PodUnderTest, steps: &[&[Call]]) -> Vec<Ended> {
    play(pod, steps).end();
    let mut ended = finished(pod);
    let calls = steps.iter().map(|calls| calls.len()).sum();
    // Before them stand those of turns before, and those that were cut off.
    ended.split_off(ended.len().checked_sub(calls).unwrap())
}

/// The same, whatever becomes of it.
pub(crate) fn play(pod: &PodUnderTest, steps: &[&[Call]]) -> PodRun {
    steps
        .iter()
        .for_each(|calls| pod.script.add(ScriptedAnswer::calls(calls)));
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("go")
}

/// Every point that a run came by from its turn's beginning on: before, nothing of a feature is written.
pub(crate) fn points(ran: &PodUnderTest) -> Vec<(String, usize)> {
    let mut points = ran.points.numbered();
    let turn = points
        .iter()
        .position(|(name, _)| name == "commit:turn_started")
        .unwrap();
    assert!(
        points
            .iter()
            .any(|(name, _)| name == "commit:feature_state"),
        "{points:?}"
    );
    points.split_off(turn)
}

/// The text of every result so far, in the order of the calls.
pub(crate) fn results(pod: &PodUnderTest) -> Vec<String> {
    let ended = |(_, record)| match record {
        Record::ToolFinished(finished) => Some((finished.call, finished.outcome.text())),
        _ => None,
    };
    let ended: BTreeMap<_, _> = pod.records().into_iter().filter_map(ended).collect();
    ended.into_values().collect()
}

/// How every call so far ended, in the order of the calls.
pub(crate) fn finished(pod: &PodUnderTest) -> Vec<Ended> {
    let ended = |(_, record)| match record {
        Record::ToolFinished(finished) => Some((
            finished.call,
            (finished.outcome.status, finished.outcome.summary),
        )),
        _ => None,
    };
    let ended: BTreeMap<_, _> = pod.records().into_iter().filter_map(ended).collect();
    ended.into_values().collect()
}

/// What the model got of each call.
pub(crate) fn texts(pod: &PodUnderTest) -> Vec<String> {
    let text = |(_, record)| match record {
        Record::ToolFinished(finished) => Some(finished.outcome.text()),
        _ => None,
    };
    pod.records().into_iter().filter_map(text).collect()
}

/// Which calls were refused.
pub(crate) fn refused(ended: &[Ended]) -> Vec<usize> {
    let refused = ended
        .iter()
        .enumerate()
        .filter(|(_, (status, _))| *status == ResultStatus::Refused);
    refused.map(|(at, _)| at).collect()
}

/// A state as the log has it.
pub(crate) fn state(pod: &PodUnderTest, id: &FeatureId, name: &str) -> Value {
    let state = pod
        .state()
        .features
        .remove(&(id.to_string(), name.to_owned()));
    state.map_or(Value::Null, |state| (*state.value).clone())
}

/// Answers the same each time.
pub(crate) fn same(name: &str) -> FnTool {
    FnTool::new(name, ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "same".into(),
            ..Default::default()
        })
    })
}

/// Answers something else each time.
pub(crate) fn counting(name: &str) -> FnTool {
    let count = Arc::new(AtomicUsize::new(0));
    FnTool::new(name, ToolEffect::ReadOnly, move |_, _| {
        let summary = count.fetch_add(1, Ordering::Relaxed).to_string();
        async {
            Ok(ToolOutput {
                summary,
                ..Default::default()
            })
        }
    })
}

/// Works or fails as this says, call by call; then it works.
pub(crate) fn flaky(works: &[bool]) -> FnTool {
    let works = Mutex::new(VecDeque::from(works.to_vec()));
    FnTool::new("Flaky", ToolEffect::ReadOnly, move |_, _| {
        let works = works.lock().unwrap().pop_front().unwrap_or(true);
        async move {
            if works {
                Ok(ToolOutput::default())
            } else {
                Err(ToolError::new(ErrorKind::Unavailable, "broken"))
            }
        }
    })
}
