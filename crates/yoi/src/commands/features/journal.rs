//! The install reports in a pod's journal, start by start. Prints nothing.

use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, read_failure};
use pod::feature::RegistryReport;
use pod::record::{Record, UsedGrant};
use pod::session::restore::decode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use session_store::Reader;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod's reports. Starts are numbered from 1, in the order of their `features` records.
pub(super) struct Starts {
    pub(super) pod: String,
    pub(super) count: u64,
    /// Those that were asked for, and the newest, in order.
    pub(super) kept: Vec<PodStart>,
    /// The newest value of every state, by feature and name.
    pub(super) states: BTreeMap<(String, String), Arc<Value>>,
}

/// One start of a pod.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Start")]
pub(super) struct PodStart {
    /// Its number, from 1.
    pub(super) start: u64,
    /// The record that holds its report.
    pub(super) seq: u64,
    /// When, in microseconds since 1970.
    pub(super) at_us: u64,
    /// What was installed, as it was journaled.
    #[serde(flatten)]
    #[schemars(with = "RegistryReport")]
    pub(super) report: Value,
    /// The notes of its features while it ran.
    pub(super) notes: Vec<StartNote>,
    /// How often each tool was called.
    pub(super) calls: BTreeMap<String, u64>,
    /// The use of its grants; none while it runs, or if it did not stop normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<Vec<UsedGrant>>,
}

/// A text of a feature for people who inspect the pod.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Note")]
pub(super) struct StartNote {
    /// The number of its record.
    pub(super) seq: u64,
    pub(super) feature: String,
    pub(super) text: String,
}

impl Starts {
    /// Reads beside a running pod. Of all starts but those in `wanted` and the newest, only the number stays.
    pub(super) fn read(name: &str, env: &Env, wanted: &[u64]) -> Result<Self, Failure> {
        let pods = Pods::of(env)?;
        let pod = pods.find(name)?;
        let reader = Reader::open(&pods.dir(&pod)).map_err(|e| read_failure(&pod, &e))?;
        let mut starts = Self {
            pod,
            count: 0,
            kept: Vec::new(),
            states: BTreeMap::new(),
        };
        for frame in reader.frames() {
            let frame = frame.map_err(|e| read_failure(&starts.pod, &e))?;
            if matches!(
                frame.kind.as_str(),
                "features" | "feature_note" | "feature_state" | "tool_started" | "grants_used"
            ) {
                let record = decode(&frame)
                    .map_err(|e| Failure::new(Exit::Data, format!("{}: {e}", starts.pod)))?;
                starts.take(record, frame.seq, frame.time, wanted);
            }
        }
        if starts.count == 0 {
            return Err(Failure::new(
                Exit::Data,
                format!("{} has no install report", starts.pod),
            ));
        }
        Ok(starts)
    }

    fn take(&mut self, record: Record, seq: u64, at_us: u64, wanted: &[u64]) {
        if let Record::Features(features) = record {
            self.kept.pop_if(|last| !wanted.contains(&last.start));
            self.count += 1;
            let start = self.count;
            let report = features.report;
            let notes = Vec::new();
            let calls = BTreeMap::new();
            let used = None;
            self.kept.push(PodStart {
                start,
                seq,
                at_us,
                report,
                notes,
                calls,
                used,
            });
        } else if let Record::FeatureState(state) = record {
            self.states.insert((state.feature, state.name), state.value);
        } else if let Some(last) = self.kept.last_mut() {
            match record {
                Record::FeatureNote(note) => last.notes.push(StartNote {
                    seq,
                    feature: note.feature,
                    text: note.text,
                }),
                Record::ToolStarted(started) => *last.calls.entry(started.name).or_default() += 1,
                Record::GrantsUsed(used) => last.used = Some(used.grants),
                _ => {}
            }
        }
    }

    pub(super) fn number(&self, number: u64) -> Result<&PodStart, Failure> {
        self.kept
            .iter()
            .find(|start| start.start == number)
            .ok_or_else(|| {
                let starts = tui::count(self.count, "start");
                let what = format!("{} has no start {number}: it has {starts}", self.pod);
                Failure::new(Exit::Usage, what).help(match self.count {
                    1 => format!("`yoi features {}` shows that start", self.pod),
                    count => format!("use a number from 1 to {count}"),
                })
            })
    }

    pub(super) fn newest(&self) -> Result<&PodStart, Failure> {
        self.number(self.count)
    }
}
