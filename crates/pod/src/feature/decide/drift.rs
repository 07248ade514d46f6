//! What changed between the features of the last start and those of this one, and how much that matters. Does not depend
//! on running features.

use super::report::RegistryReport;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::permission::Rule;
use crate::record::{RecordedFeature, RecordedRegistry};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The beginning of the body of features that are part of a program.
const BUILD: &str = "build:";

/// What the difference between two starts means for the second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    Same,
    /// Nothing is missing: people are told.
    Compatible(Vec<Difference>),
    /// The model has less than before: it is told, too.
    Degraded(Vec<Difference>),
    /// A gate or a required feature is gone or has changed: a person decides whether the pod goes on.
    Breaking(Vec<Difference>),
}

/// How much one difference matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftGrade {
    Compatible,
    Degraded,
    Breaking,
}

/// One difference between two starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub grade: DriftGrade,
    /// The feature; none for all together.
    pub feature: Option<String>,
    /// What differs, in one line.
    pub text: String,
}

impl RegistryReport {
    /// What changed since an earlier start of the same pod.
    #[must_use]
    pub fn since(&self, earlier: &RecordedRegistry) -> Drift {
        let lost = self.lost_rules(earlier);
        if self.digest == earlier.digest {
            return Drift::of(lost);
        }
        let today = serde_json::to_value(self)
            .ok()
            .and_then(|report| RecordedRegistry::of(&report));
        let today = today.unwrap_or_default();
        let mut found = Differences(lost);
        found.build(earlier, &today);
        for was in &earlier.features {
            match today.feature(&was.feature_id) {
                Some(is) => found.changed(was, is),
                None => found.gone(was, &self.absence(&was.feature_id)),
            }
        }
        for new in today
            .features
            .iter()
            .filter(|new| earlier.feature(&new.feature_id).is_none())
        {
            found.add(new, DriftGrade::Compatible, "is new".to_owned());
        }
        if found.0.is_empty() {
            let text = "the features are installed in another order".to_owned();
            found.0.push(Difference {
                grade: DriftGrade::Compatible,
                feature: None,
                text,
            });
        }
        Drift::of(found.0)
    }

    /// Rules that do not hold, which the earlier start did not say. Where a feature is gone, that is said of the feature.
    fn lost_rules(&self, earlier: &RecordedRegistry) -> Vec<Difference> {
        let lost = self
            .diagnostics
            .iter()
            .filter(|found| found.code == DiagnosticCode::RulesLost);
        let is_known = |found: &&FeatureDiagnostic| {
            let feature = found
                .feature_id
                .as_ref()
                .and_then(|id| earlier.feature(&id.to_string()));
            feature.is_some_and(|was| !was.rules.is_empty())
                || earlier.lost_rules.contains(&found.message)
        };
        let new = lost
            .filter(|found| !is_known(found))
            .map(|found| found.message.clone());
        new.map(|text| Difference {
            grade: DriftGrade::Breaking,
            feature: None,
            text,
        })
        .collect()
    }

    /// Why a feature is not live.
    fn absence(&self, id: &str) -> String {
        let Some(report) = self
            .features
            .iter()
            .find(|feature| feature.feature_id.to_string() == id)
        else {
            return match id.starts_with("plugin:") {
                true => "was removed".to_owned(),
                false => "is not part of this program any more".to_owned(),
            };
        };
        match (&report.disabled_by, report.diagnostics.first()) {
            (Some(source), _) if source == "default" => "is not switched on any more".to_owned(),
            (Some(source), _) => format!("was switched off by {source}"),
            (None, Some(why)) => format!("is not installed: {}", why.message),
            (None, None) => "is not installed".to_owned(),
        }
    }
}

impl Drift {
    fn of(found: Vec<Difference>) -> Self {
        match found.iter().map(|difference| difference.grade).max() {
            None => Self::Same,
            Some(DriftGrade::Compatible) => Self::Compatible(found),
            Some(DriftGrade::Degraded) => Self::Degraded(found),
            Some(DriftGrade::Breaking) => Self::Breaking(found),
        }
    }

    /// All differences.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Same => &[],
            Self::Compatible(found) | Self::Degraded(found) | Self::Breaking(found) => found,
        }
    }

    /// What the model is told: what it has no longer.
    #[must_use]
    pub fn for_model(&self) -> Option<String> {
        let lost = self
            .differences()
            .iter()
            .filter(|difference| difference.grade == DriftGrade::Degraded);
        let lost: Vec<String> = lost.take(MAX_TOLD).map(ToString::to_string).collect();
        (!lost.is_empty()).then(|| format!("[since this session last ran: {}]", lost.join("; ")))
    }
}

/// Most differences that the model is told.
const MAX_TOLD: usize = 16;

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.feature {
            Some(feature) => write!(f, "{feature} {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn add(&mut self, of: &RecordedFeature, grade: DriftGrade, text: String) {
        self.0.push(Difference {
            grade,
            feature: Some(of.feature_id.clone()),
            text,
        });
    }

    /// The features of a program have one version.
    fn build(&mut self, earlier: &RecordedRegistry, today: &RecordedRegistry) {
        let build = |registry: &RecordedRegistry| {
            registry
                .features
                .iter()
                .find_map(|feature| feature.body.strip_prefix(BUILD).map(str::to_owned))
        };
        if let (Some(was), Some(is)) = (build(earlier), build(today))
            && was != is
        {
            let text = format!("the program changed from version {was} to {is}");
            self.0.push(Difference {
                grade: DriftGrade::Compatible,
                feature: None,
                text,
            });
        }
    }

    fn gone(&mut self, was: &RecordedFeature, why: &str) {
        let grade = was.weight(DriftGrade::Compatible);
        let guards = was
            .guards
            .iter()
            .map(|guard| format!("guard {}", name(guard)));
        let lost = guards
            .chain(was.rules.iter().map(rule))
            .collect::<Vec<_>>()
            .join(", ");
        let lost = if lost.is_empty() {
            String::new()
        } else {
            format!(" ({lost})")
        };
        self.add(was, grade, format!("{why}{lost}"));
        if !was.installed_tools.is_empty() {
            let tools = was.installed_tools.join(", ");
            self.add(
                was,
                DriftGrade::Degraded,
                format!("no longer offers {tools}"),
            );
        }
    }

    fn changed(&mut self, was: &RecordedFeature, is: &RecordedFeature) {
        let before = self.0.len();
        let grade = was.weight(DriftGrade::Compatible);
        if was.body != is.body && !(was.is_build() && is.is_build()) {
            self.add(was, grade, "has other code than before".to_owned());
        }
        if was.settings_digest != is.settings_digest {
            self.settings(was, is);
        }
        for guard in &was.guards {
            let today = is.guards.iter().find(|today| name(today) == name(guard));
            match today {
                None => self.add(
                    was,
                    DriftGrade::Breaking,
                    format!("no longer has its guard {}", name(guard)),
                ),
                Some(today) if today != guard => {
                    self.add(
                        was,
                        DriftGrade::Breaking,
                        format!("has another form of its guard {}", name(guard)),
                    );
                }
                Some(_) => {}
            }
        }
        for lost in was.rules.iter().filter(|rule| !is.rules.contains(rule)) {
            self.add(
                was,
                DriftGrade::Breaking,
                format!("no longer has its {}", rule(lost)),
            );
        }
        let tools: BTreeSet<&String> = is.installed_tools.iter().collect();
        let lost = was
            .installed_tools
            .iter()
            .filter(|tool| !tools.contains(tool))
            .cloned()
            .collect::<Vec<_>>();
        if !lost.is_empty() {
            let grade = if was.required_by.is_some() {
                DriftGrade::Breaking
            } else {
                DriftGrade::Degraded
            };
            self.add(was, grade, format!("no longer offers {}", lost.join(", ")));
        }
        self.grants(was, is);
        if was.content_digest != is.content_digest && self.0.len() == before {
            let grade = if was.required_by.is_some() {
                DriftGrade::Breaking
            } else {
                DriftGrade::Compatible
            };
            self.add(
                was,
                grade,
                "has other tools, hooks or texts than before".to_owned(),
            );
        }
    }

    fn settings(&mut self, was: &RecordedFeature, is: &RecordedFeature) {
        let grade = was.weight(DriftGrade::Compatible);
        let keys: BTreeSet<&String> = was.settings.keys().chain(is.settings.keys()).collect();
        for key in keys {
            // A digest says nothing to people.
            let text = match (was.settings.get(key), is.settings.get(key)) {
                (was, is) if was == is => continue,
                (
                    Some(was @ (Value::Number(_) | Value::Bool(_))),
                    Some(is @ (Value::Number(_) | Value::Bool(_))),
                ) => {
                    format!("has its setting `{key}` changed from {was} to {is}")
                }
                _ => format!("has its setting `{key}` changed"),
            };
            self.add(was, grade, text);
        }
    }

    fn grants(&mut self, was: &RecordedFeature, is: &RecordedFeature) {
        let before = was.held();
        let today = is.held();
        let covered =
            |one: &HostCapability, by: &[HostCapability]| by.iter().any(|wide| wide.covers(one));
        for lost in before.iter().filter(|one| !covered(one, &today)) {
            self.add(
                was,
                was.weight(DriftGrade::Degraded),
                format!("is no longer granted {lost}"),
            );
        }
        for new in today.iter().filter(|one| !covered(one, &before)) {
            self.add(was, DriftGrade::Compatible, format!("is now granted {new}"));
        }
    }
}

impl RecordedFeature {
    /// The grade of a change: breaking for guards, rules and required features.
    fn weight(&self, otherwise: DriftGrade) -> DriftGrade {
        let restricts = !(self.guards.is_empty() && self.rules.is_empty());
        if restricts || self.required_by.is_some() {
            DriftGrade::Breaking
        } else {
            otherwise
        }
    }

    /// What it holds; its tools and hooks are compared themselves.
    fn held(&self) -> Vec<HostCapability> {
        let granted = self
            .granted
            .iter()
            .filter_map(|granted| HostCapability::deserialize(granted).ok());
        granted.filter(HostCapability::is_held).collect()
    }

    fn is_build(&self) -> bool {
        self.body.starts_with(BUILD)
    }
}

fn name(hook: &Value) -> &str {
    hook.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn rule(rule: &Value) -> String {
    Rule::deserialize(rule).map_or_else(|_| "rule".to_owned(), |rule| format!("rule `{rule}`"))
}
