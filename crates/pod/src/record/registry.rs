//! What the install report of a start says, as far as a later start compares it. Does not depend on features.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The features of an earlier start, as its report was recorded: the live ones only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedRegistry {
    pub digest: String,
    pub features: Vec<RecordedFeature>,
    /// What it said about rules that did not hold.
    #[serde(default)]
    pub lost_rules: Vec<String>,
}

/// A live feature of an earlier start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedFeature {
    pub feature_id: String,
    pub body: String,
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    pub settings_digest: String,
    pub content_digest: String,
    /// The granted capabilities.
    pub granted: Vec<Value>,
    pub installed_tools: Vec<String>,
    /// Of the hooks, those that can refuse a call or withhold a result.
    #[serde(rename = "installed_hooks")]
    pub guards: Vec<Value>,
    /// Its rules of permission.
    #[serde(default)]
    pub rules: Vec<Value>,
    #[serde(default)]
    pub required_by: Option<String>,
}

impl RecordedRegistry {
    /// Reads the report of a `features` record; none if it has no digest, as those of older programs.
    #[must_use]
    pub fn of(report: &Value) -> Option<Self> {
        let digest = report.get("digest")?.as_str()?.to_owned();
        let is_live = |feature: &&Value| {
            matches!(
                feature.get("outcome").and_then(Value::as_str),
                Some("installed" | "degraded")
            )
        };
        let live = report.get("features")?.as_array()?.iter().filter(is_live);
        let features: Result<Vec<RecordedFeature>, _> =
            live.map(RecordedFeature::deserialize).collect();
        let mut features = features.ok()?;
        features
            .iter_mut()
            .for_each(|feature| feature.guards.retain(is_guard));
        let notes = report
            .get("diagnostics")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let lost =
            notes.filter(|note| note.get("code").and_then(Value::as_str) == Some("rules_lost"));
        let lost_rules = lost
            .filter_map(|note| Some(note.get("message")?.as_str()?.to_owned()))
            .collect();
        Some(Self {
            digest,
            features,
            lost_rules,
        })
    }

    pub(crate) fn feature(&self, id: &str) -> Option<&RecordedFeature> {
        self.features
            .iter()
            .find(|feature| feature.feature_id == id)
    }
}

/// Whether a hook of a report can refuse, or withholds a result when it fails.
fn is_guard(hook: &Value) -> bool {
    let is = |key: &str, word: &str| hook.get(key).and_then(Value::as_str) == Some(word);
    is("class", "gate") || is("on_failure", "withhold")
}
