//! `builtin:step-tracer`: a line of JSON for each step of the pod, in files beside its journal, for programs that draw or
//! count them. Off until configured.
//!
//! A line has no texts of people, models or tools: names, numbers and reasons only. Files are bounded and the oldest is
//! removed; what the disk refuses is dropped. The journal stays what counts.

use crate::clock::Now;
use authority::Workspace;
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, ResultStatus};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, HostCapability,
};
use pod::hook::{Event, EventView};
use pod::record::{Record, VerdictGiven};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("step-tracer");

/// The directory of the traces: `traces` in the session's directory.
pub const ROOT: &str = "traces";

/// The request for that directory.
pub const WRITE: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: true,
    execute: false,
};

const STEPS: HookKey<Event> = HookKey::new("step-tracer");

/// Bytes of one file.
pub const MAX_FILE: usize = 128 * 1024;
/// How many files are kept.
pub const MAX_FILES: u64 = 16;
/// Lines that may wait to be written; the end of a turn writes them, too.
const MAX_WAITING: usize = 64;
/// Bytes of a reason.
const MAX_REASON: usize = 200;
/// Calls whose tools are remembered.
const MAX_CALLS: usize = 1_024;

/// The feature that traces steps.
pub struct StepTracer(Now);

impl StepTracer {
    /// Creates the feature with this clock.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self(now)
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Steps")
        .version(env!("CARGO_PKG_VERSION"))
        .request(CapabilityRequest::required(WRITE, "write the traces"))
        .observe(&STEPS)
        .build()
}

impl FeatureModule for StepTracer {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let trace = Trace::new(ctx.services().fs(ROOT)?);
        let live = Arc::new(Live {
            now: Arc::clone(&self.0),
            trace: Mutex::new(trace),
        });
        ctx.hooks().observe(&STEPS, &live, Live::step).map(drop)
    }
}

struct Live {
    now: Now,
    trace: Mutex<Trace>,
}

/// The file that is being written, and what its lines need of earlier records.
struct Trace {
    files: Workspace,
    /// The number of the file; none before the first line.
    number: Option<u64>,
    bytes: Vec<u8>,
    waiting: usize,
    /// The tool of each call without a result.
    calls: BTreeMap<CallId, String>,
    /// When the newest request was sent.
    asked_ms: u64,
}

impl Live {
    fn step(&self, view: &EventView) {
        let at_ms = (self.now)()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_millis());
        let at_ms = u64::try_from(at_ms).unwrap_or(u64::MAX);
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        if view.missed > 0 {
            trace.add(view.seq, at_ms, "error", json!({ "missed": view.missed }));
        }
        for (kind, fields) in trace.steps(&view.record, at_ms) {
            trace.add(view.seq, at_ms, kind, fields);
        }
        let ends = matches!(
            &*view.record,
            Record::TurnFinished(_) | Record::HostStopped(_) | Record::Suspended(_)
        );
        if trace.waiting >= MAX_WAITING || (ends && trace.waiting > 0) {
            trace.write();
        }
    }
}

impl Trace {
    fn new(files: Workspace) -> Self {
        Self {
            files,
            number: None,
            bytes: Vec::new(),
            waiting: 0,
            calls: BTreeMap::new(),
            asked_ms: 0,
        }
    }

    /// The steps that a record stands for.
    fn steps(&mut self, record: &Record, at_ms: u64) -> Vec<(&'static str, Value)> {
        match record {
            Record::HostStarted(started) => {
                vec![("run_start", json!({ "version": started.version }))]
            }
            Record::InputQueued(queued) => match &queued.again {
                Some(again) => {
                    let fields = json!({ "input": queued.input, "feature": again.feature, "nth": again.nth });
                    vec![("output_retry", fields)]
                }
                None => vec![("input_validated", json!({ "input": queued.input }))],
            },
            Record::TurnStarted(started) => vec![("turn_start", json!({ "turn": started.turn }))],
            Record::Request(_) => {
                self.asked_ms = at_ms;
                Vec::new()
            }
            Record::Response(response) => {
                let usage = &response.usage;
                let cost = response.cost.map(|cost| cost.count());
                let tokens = json!({ "input": usage.input, "output": usage.output, "cached": usage.cached, "cost": cost });
                let ms = at_ms.saturating_sub(self.asked_ms);
                vec![
                    ("llm_call", json!({ "ms": ms, "stop": response.stop })),
                    ("usage", tokens),
                ]
            }
            Record::ItemAdded(added) => {
                if let Item::ToolCall { id, name, .. } = &added.item {
                    self.calls.insert(*id, short(name));
                    while self.calls.len() > MAX_CALLS {
                        self.calls.pop_first();
                    }
                }
                Vec::new()
            }
            // Of a call that names another tool than the one of its item.
            Record::VerdictGiven(VerdictGiven {
                call: Some(call),
                tool: Some(named),
                ..
            }) => {
                if let Some(tool) = self.calls.get_mut(call) {
                    *tool = short(named);
                }
                Vec::new()
            }
            Record::ToolFinished(done) => {
                let tool = self.calls.remove(&done.call);
                let kind = if done.outcome.status == ResultStatus::Ok {
                    "tool"
                } else {
                    "tool_error"
                };
                let status = done.outcome.status;
                vec![(
                    kind,
                    json!({ "call": done.call, "tool": tool, "status": status, "ms": done.ms }),
                )]
            }
            Record::TurnFinished(finished) => match &finished.outcome {
                Outcome::ModelFailed { kind, .. } => {
                    vec![("error", json!({ "turn": finished.turn, "error": kind }))]
                }
                Outcome::Aborted { reason } => {
                    vec![(
                        "error",
                        json!({ "turn": finished.turn, "reason": short(reason) }),
                    )]
                }
                _ended => Vec::new(),
            },
            Record::Suspended(suspended) => {
                vec![("error", json!({ "reason": short(&suspended.reason) }))]
            }
            Record::HostStopped(_) => vec![("run_end", json!({}))],
            // Of later versions.
            Record::Other { kind } if kind == "compaction" => vec![("compaction", json!({}))],
            Record::Other { kind } if kind == "subagent" => vec![("subagent", json!({}))],
            _other => Vec::new(),
        }
    }

    fn add(&mut self, seq: u64, at_ms: u64, kind: &str, fields: Value) {
        let mut line = json!({ "seq": seq, "at_ms": at_ms, "step": kind });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        let line = format!("{line}\n");
        if self.bytes.len() + line.len() > MAX_FILE {
            self.write();
            self.bytes.clear();
            self.number = self.number.map(|number| number + 1);
        }
        self.bytes.extend_from_slice(line.as_bytes());
        self.waiting += 1;
    }

    /// Writes the file whole, and removes the one that is too old. What the disk refuses is tried with the next lines.
    fn write(&mut self) {
        self.waiting = 0;
        let number = self.number.unwrap_or_else(|| self.last() + 1);
        self.number = Some(number);
        let Ok(at) = self.files.inside(&name(number)) else {
            return;
        };
        let written = self
            .files
            .stage(&at, number, &self.bytes)
            .and_then(authority::Staged::publish);
        if let (Ok(_), Some(old)) = (written, number.checked_sub(MAX_FILES)) {
            // None is there before there are so many.
            drop(
                self.files
                    .inside(&name(old))
                    .and_then(|at| self.files.remove(&at)),
            );
        }
    }

    /// The number of the newest file of earlier starts.
    fn last(&self) -> u64 {
        let root = self.files.inside(&PathBuf::from("."));
        let names = root
            .and_then(|root| self.files.read_dir(&root))
            .unwrap_or_default();
        let number = |name: &str| {
            name.strip_prefix("steps-")?
                .strip_suffix(".jsonl")?
                .parse()
                .ok()
        };
        names
            .iter()
            .filter_map(|(name, _)| number(name.to_str()?))
            .max()
            .unwrap_or(0)
    }
}

fn name(number: u64) -> PathBuf {
    PathBuf::from(format!("steps-{number:06}.jsonl"))
}

fn short(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_REASON))
        .unwrap_or(text)
        .to_owned()
}
