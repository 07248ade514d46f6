//! `builtin:list-features`: ListFeatures shows the model which features its pod has, from the install report in the
//! journal. Off until configured.

use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    About, CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, HookKey, HostCapability, ToolKey,
};
use pod::hook::{Event, EventView};
use pod::record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;
use tools::{answer, counted, fail};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("list-features");

/// The capability to see records, of which only the report is used.
pub const RECORDS: HostCapability = HostCapability::hook::<Event>();

const REPORT: HookKey<Event> = HookKey::new("report");
const LIST: ToolKey<Selection> = ToolKey::new(
    "ListFeatures",
    ToolEffect::ReadOnly,
    "List this pod's features, with their tools, background tasks, states and problems.",
);

/// Most bytes of a list.
const MAX_LIST: usize = 16 * 1024;
/// Most bytes of one line.
const MAX_LINE: usize = 1024;

/// Which features.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct Selection {
    /// Only those with this text in their id.
    #[serde(default)]
    words: String,
}

/// The feature that adds ListFeatures.
#[derive(Debug)]
pub struct ListFeatures;

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("List of features")
        .version(env!("CARGO_PKG_VERSION"))
        .request(CapabilityRequest::required(
            RECORDS,
            "read the install report in the journal",
        ))
        .tool(&LIST)
        .observe(&REPORT)
        .build()
}

impl FeatureModule for ListFeatures {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            report: watch::Sender::new(None),
        });
        ctx.hooks().observe(&REPORT, &live, Live::note)?;
        ctx.tools().implement(&LIST, &live, Live::list).map(drop)
    }
}

struct Live {
    report: watch::Sender<Option<Arc<Report>>>,
}

impl Live {
    /// Keeps the newest report.
    fn note(&self, event: &EventView) {
        if let Record::Features(features) = &*event.record {
            // A report of another version is one without features.
            let report = Report::deserialize(&features.report).unwrap_or_default();
            self.report.send_replace(Some(Arc::new(report)));
        }
    }

    async fn list(self: Arc<Self>, selection: Selection, cx: ToolContext) -> ToolResult {
        let mut report = self.report.subscribe();
        // The report was recorded before the first turn; its observer may be late.
        let known = tokio::select! {
            known = report.wait_for(Option::is_some) => known.ok().and_then(|known| known.clone()),
            () = cx.cancel.cancelled() => None,
        };
        let known = known
            .ok_or_else(|| fail(ErrorKind::Retry, "the report is not there yet; call again"))?;
        let (summary, content) = known.text(&selection.words);
        Ok(answer(&summary, content))
    }
}

/// What the model may see of an install report. A report without these fields is read, too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Report {
    features: Vec<ReportedFeature>,
    diagnostics: Vec<ReportedProblem>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedFeature {
    feature_id: String,
    outcome: String,
    about: About,
    installed_tools: Vec<String>,
    background_tasks: Vec<ReportedPart>,
    states: Vec<ReportedPart>,
    skipped_contributions: Vec<ReportedPart>,
    diagnostics: Vec<ReportedProblem>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedPart {
    name: String,
    reason: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedProblem {
    message: String,
}

impl Report {
    /// A summary, and the features that are on with what they contribute, then those that are off, within [`MAX_LIST`].
    fn text(&self, words: &str) -> (String, String) {
        let chosen = self
            .features
            .iter()
            .filter(|feature| feature.feature_id.contains(words));
        let (off, on): (Vec<_>, Vec<_>) = chosen.partition(|feature| feature.outcome == "disabled");
        let mut lines: Vec<String> = on.iter().flat_map(|feature| feature.lines()).collect();
        if !off.is_empty() {
            lines.push(format!(
                "off: {}",
                joined(off.iter().map(|feature| &feature.feature_id))
            ));
        }
        lines.extend(
            self.diagnostics
                .iter()
                .map(|problem| format!("problem: {}", problem.message)),
        );
        let summary = counted((on.len() + off.len()) as u64, "feature", "features");
        (format!("{summary}, {} on", on.len()), bounded(&lines))
    }
}

impl ReportedFeature {
    fn lines(&self) -> Vec<String> {
        let name = |part: &ReportedPart| part.name.clone();
        let mut lines = vec![format!("{}: {}", self.feature_id, self.outcome)];
        let About {
            authors,
            license,
            homepage,
            metadata,
        } = &self.about;
        let metadata = (!metadata.is_empty()).then(|| Value::Object(metadata.clone()).to_string());
        for (what, text) in [
            ("authors", (!authors.is_empty()).then(|| joined(authors))),
            ("license", license.clone()),
            ("homepage", homepage.clone()),
            ("metadata", metadata),
        ] {
            lines.extend(text.map(|text| format!("  {what}: {text}")));
        }
        for (what, names) in [
            ("tools", self.installed_tools.clone()),
            (
                "background tasks",
                self.background_tasks.iter().map(name).collect(),
            ),
            ("states", self.states.iter().map(name).collect()),
        ] {
            lines.extend((!names.is_empty()).then(|| format!("  {what}: {}", joined(&names))));
        }
        let skipped = |part: &ReportedPart| format!("  left out: {}: {}", part.name, part.reason);
        lines.extend(self.skipped_contributions.iter().map(skipped));
        lines.extend(
            self.diagnostics
                .iter()
                .map(|problem| format!("  problem: {}", problem.message)),
        );
        lines
    }
}

fn joined<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names
        .into_iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The lines that fit, each cut to its bound, and how many do not.
fn bounded(lines: &[String]) -> String {
    let mut text = String::new();
    for (shown, line) in lines.iter().enumerate() {
        let line = line.replace('\n', " ");
        let cut = line
            .get(..line.floor_char_boundary(MAX_LINE))
            .unwrap_or_default();
        if text.len() + cut.len() >= MAX_LIST {
            text.push_str(&format!(
                "{} more lines; narrow them with `words`",
                lines.len() - shown
            ));
            break;
        }
        text.push_str(cut);
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_is_listed_with_the_reason() {
        let report = json!({
            "features": [
                {
                    "feature_id": "user:press", "outcome": "degraded", "installed_tools": ["Press"],
                    "skipped_contributions": [{"kind": "tool", "name": "Publish", "reason": "it needs to write"}],
                    "diagnostics": [{"code": "x", "message": "no\npaper"}],
                },
                {"feature_id": "builtin:web", "outcome": "disabled"},
                {"feature_id": "builtin:memory", "outcome": "disabled"},
            ],
            "diagnostics": [{"code": "x", "message": "a descriptor failed"}],
        });
        let (summary, content) = Report::deserialize(&report).unwrap().text("");
        assert_eq!(summary, "3 features, 1 on");
        assert_eq!(
            content,
            "user:press: degraded\n  tools: Press\n  left out: Publish: it needs to write\n  problem: no paper\n\
             off: builtin:web, builtin:memory\nproblem: a descriptor failed"
        );
    }

    #[test]
    fn a_report_of_many_features_is_cut() {
        let feature = |n: u32| json!({"feature_id": format!("user:f{n}"), "outcome": "skipped", "diagnostics": [{"message": "é".repeat(900)}]});
        let report = json!({ "features": (0..40).map(feature).collect::<Vec<_>>(), "later": 1 });
        let report = Report::deserialize(&report).unwrap();
        let (summary, content) = report.text("");
        assert_eq!(summary, "40 features, 40 on");
        assert!(
            content.len() < MAX_LIST + 100 && content.lines().all(|line| line.len() <= MAX_LINE),
            "{content}"
        );
        assert!(
            content.ends_with("more lines; narrow them with `words`"),
            "{content}"
        );
        assert_eq!(report.text("f39").1.lines().count(), 2);
        assert_eq!(
            report.text("none"),
            ("0 features, 0 on".to_owned(), String::new())
        );
    }
}
