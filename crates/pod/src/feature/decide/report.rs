//! What was installed, what was not, and why: stable bytes for journals, scripts and diffs. Does not depend on doors.

use super::plan::{PlannedFeature, PlannedHook, PlannedTask, Unmet};
use super::policy::DeniedCapability;
use crate::feature::declare::about::About;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::command::CommandDeclaration;
use crate::feature::declare::contribution::ContributionKind;
use crate::feature::declare::descriptor::{FeatureRuntimeKind, InstructionDeclaration};
use crate::feature::declare::diagnostic::FeatureDiagnostic;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::{FeatureServices, ServiceDeclaration};
use crate::feature::declare::settings;
use crate::feature::declare::state::StateDeclaration;
use crate::feature::declare::tool::ToolDeclaration;
use crate::permission::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The result of an installation, or of its plan.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum InstallOutcome {
    /// All declared contributions are installed.
    Installed,
    /// The feature is installed without some of its contributions.
    Degraded,
    /// The feature is enabled and not installed; the diagnostics say why.
    Skipped,
    /// The feature is disabled.
    Disabled,
}

impl InstallOutcome {
    /// Whether the feature is part of the pod.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Installed | Self::Degraded)
    }
}

/// A declared contribution that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedContribution {
    pub kind: ContributionKind,
    pub name: String,
    /// The reason, and the setting that decides.
    pub reason: String,
    /// What it needs and the feature is not granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<DeniedCapability>,
}

/// A tool whose schema a feature narrowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enriched {
    pub tool: String,
    /// The enricher that did it.
    pub by: String,
    /// The properties of the arguments that changed.
    pub properties: Vec<String>,
}

/// A command that a feature offers people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedCommand {
    pub name: String,
    pub about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Whose words they are.
    pub source: String,
    /// BLAKE3 of its text, lower-case hex.
    pub digest: String,
}

impl From<&CommandDeclaration> for ReportedCommand {
    fn from(declared: &CommandDeclaration) -> Self {
        Self {
            name: declared.name.clone(),
            about: declared.about.clone(),
            argument_hint: declared.argument_hint.clone(),
            source: declared.source.clone(),
            digest: declared.digest(),
        }
    }
}

/// The result of installing or planning one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FeatureInstallReport {
    pub feature_id: FeatureId,
    /// As declared.
    pub version: String,
    /// As declared.
    pub runtime: FeatureRuntimeKind,
    /// Who made it, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// Whether the configuration enables it.
    pub enabled: bool,
    /// Whether it was installed completely, in part or not.
    pub outcome: InstallOutcome,
    /// What switches it off: `default`, or a file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_by: Option<String>,
    /// What switches it on: `default`, a file and line, an option, a profile or an agent file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_by: Option<String>,
    /// What requires it: a file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_by: Option<String>,
    /// The version of its code: a BLAKE3 digest, or `build:` and the version of this program, which contains it.
    pub body: String,
    /// The settings in effect, by key: numbers and switches as they are, other values by the beginning of their digest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// BLAKE3 of the settings in effect, lower-case hex.
    pub settings_digest: String,
    /// BLAKE3 of the granted capabilities, lower-case hex.
    pub grants_digest: String,
    /// The granted capabilities.
    pub granted: Vec<HostCapability>,
    /// The denied capabilities, with the reasons.
    pub denied: Vec<DeniedCapability>,
    /// Tool names, sorted.
    pub installed_tools: Vec<String>,
    /// Those of them that requests leave out: the model finds them by a search. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deferred_tools: Vec<String>,
    /// Its hooks, in the order they are asked at their points.
    pub installed_hooks: Vec<PlannedHook>,
    /// Its background tasks, as declared.
    pub background_tasks: Vec<PlannedTask>,
    /// Instruction names, in their order.
    pub instructions: Vec<String>,
    /// The states that it declared.
    pub states: Vec<StateDeclaration>,
    /// The services that it provides and uses.
    pub services: FeatureServices,
    /// The categories of tools that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<ToolCategory>,
    /// The commands that it offers people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ReportedCommand>,
    /// Its rules of permission, as they are declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The tools whose schemas it narrowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enriched: Vec<Enriched>,
    /// Bytes its tools and instructions add to every request, before encoding.
    pub schema_bytes: u64,
    /// `schema_bytes` divided by four.
    pub estimated_tokens: u64,
    /// BLAKE3 of what it contributes (definitions, hooks, background tasks, services and instruction texts), lower-case hex.
    pub content_digest: String,
    /// Declared contributions that were left out.
    pub skipped_contributions: Vec<SkippedContribution>,
    /// Warnings and reasons.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

/// The results of all features. Holds no secret, no time and no path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegistryReport {
    /// The version of the tool surface, from 1.
    pub generation: u64,
    /// The live features in install order.
    pub order: Vec<FeatureId>,
    /// BLAKE3 of body, settings, grants and content of the live features, in install order; lower-case hex.
    pub digest: String,
    /// What the host itself enforces.
    pub host: HostReport,
    /// One report per feature, by tier and id.
    pub features: Vec<FeatureInstallReport>,
    /// Numbers of features, tools and tokens.
    pub totals: Totals,
    /// Required features that are not installed. If there is one, the pod must not start.
    pub unmet: Vec<Unmet>,
    /// Messages that belong to no feature, such as a descriptor that failed.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

impl RegistryReport {
    /// One line of JSON: the same report, the same bytes.
    ///
    /// # Errors
    /// None in practice: no map key or number here can fail to encode.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The digest of the live features.
    pub(crate) fn digested(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for feature in self.order.iter().filter_map(|id| self.feature(id)) {
            let FeatureInstallReport {
                feature_id,
                body,
                settings_digest,
                grants_digest,
                content_digest,
                ..
            } = feature;
            digest(
                &mut hasher,
                &[
                    &feature_id.to_string(),
                    body,
                    settings_digest,
                    grants_digest,
                    content_digest,
                ],
            );
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The report of one feature.
    #[must_use]
    pub fn feature(&self, id: &FeatureId) -> Option<&FeatureInstallReport> {
        self.features.iter().find(|f| f.feature_id == *id)
    }
}

/// The host's own part of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// The checks of a call in their order, with the places of the hooks of features.
    pub gates: Vec<HostGate>,
    /// The sandbox of child processes; absent if no tool starts any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<HostSandbox>,
    /// The permission layers, outermost first: the built-in table, then rules.
    pub rules: Vec<HostRule>,
    /// The limits, by name.
    pub limits: Vec<HostLimit>,
}

/// A check that every call passes, or a point at which hooks are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostGate {
    /// The name in verdicts, or the hook point.
    pub name: String,
    /// What it checks, and what its result means.
    pub text: String,
}

/// The sandbox of child processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSandbox {
    /// `read-only`, `workspace-write` or `off`.
    pub mode: String,
    /// Whether this kernel enforces it.
    pub enforced: bool,
    /// Where the mode is written.
    pub source: String,
}

/// A limit of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostLimit {
    /// Such as `tool.concurrency`.
    pub name: String,
    pub value: u64,
    /// Such as `bytes`, `ms` or `calls`.
    pub unit: String,
    /// `built-in`, or where it is written.
    pub source: String,
}

/// A permission rule of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostRule {
    /// Where it is written: `default`, or a file and key.
    pub source: String,
    pub text: String,
}

/// Numbers of features, tools and tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// All features of this build.
    pub features: u64,
    /// Installed features, degraded ones included.
    pub live: u64,
    /// Features that are installed without some of their contributions.
    pub degraded: u64,
    /// Enabled features that are not installed.
    pub skipped: u64,
    /// The feature is disabled.
    pub disabled: u64,
    /// Tools that the model is offered.
    pub tools: u64,
    /// Bytes of tools and instructions before encoding.
    pub schema_bytes: u64,
    /// `schema_bytes` divided by four.
    pub estimated_tokens: u64,
}

impl FeatureInstallReport {
    /// The report of a feature as planned, before anything was staged.
    pub(crate) fn planned(planned: &PlannedFeature) -> Self {
        Self {
            feature_id: planned.feature_id.clone(),
            version: planned.version.clone(),
            runtime: planned.runtime,
            enabled: planned.outcome != InstallOutcome::Disabled,
            outcome: planned.outcome,
            disabled_by: planned.disabled_by.clone(),
            about: planned.about.clone(),
            attached_by: planned.attached_by.clone(),
            required_by: planned.required_by.clone(),
            body: planned.body.clone(),
            settings: settings::shown(&planned.settings),
            settings_digest: settings::digest(&Value::Object(planned.settings.clone())),
            grants_digest: settings::digest(
                &serde_json::to_value(planned.grants.granted()).unwrap_or_default(),
            ),
            granted: planned.grants.granted().to_vec(),
            denied: planned.grants.denied().to_vec(),
            installed_tools: Vec::new(),
            deferred_tools: Vec::new(),
            installed_hooks: Vec::new(),
            background_tasks: Vec::new(),
            instructions: Vec::new(),
            states: Vec::new(),
            services: planned.services.clone(),
            categories: planned.categories.clone(),
            commands: planned.commands.iter().map(ReportedCommand::from).collect(),
            rules: planned.rules.clone(),
            enriched: Vec::new(),
            schema_bytes: 0,
            estimated_tokens: 0,
            content_digest: blake3::Hasher::new().finalize().to_hex().to_string(),
            skipped_contributions: planned.skipped_contributions.clone(),
            diagnostics: planned.diagnostics.clone(),
        }
    }

    /// Adds what was installed as planned: these tools, by name, and these instructions.
    pub(crate) fn describe<'a>(
        &mut self,
        planned: &PlannedFeature,
        tools: impl Iterator<Item = &'a ToolDeclaration>,
        instructions: &[InstructionDeclaration],
    ) {
        self.installed_hooks.clone_from(&planned.hooks);
        self.background_tasks.clone_from(&planned.background_tasks);
        self.states.clone_from(&planned.states);
        self.instructions = instructions.iter().map(|i| i.name.clone()).collect();
        let mut hasher = blake3::Hasher::new();
        for tool in tools {
            self.installed_tools.push(tool.name.clone());
            let bytes = digest(&mut hasher, &[&tool.name, &tool.about, &tool.schema]);
            match planned.deferred.contains(&tool.name) {
                true => self.deferred_tools.push(tool.name.clone()),
                false => self.schema_bytes += bytes,
            }
            let effect = format!("{:?} {}", tool.effect, tool.deadline_ms);
            digest(&mut hasher, &[&effect]);
        }
        for PlannedHook {
            name,
            point,
            class,
            deadline_ms,
            tools,
            on_failure: _,
            before,
            after,
        } in &self.installed_hooks
        {
            digest(
                &mut hasher,
                &[
                    name,
                    &format!("{point} {class} {deadline_ms} {}", tools.join(",")),
                ],
            );
            if !(before.is_empty() && after.is_empty()) {
                digest(&mut hasher, &[&format!("{before:?} {after:?}")]);
            }
        }
        for task in &self.background_tasks {
            digest(
                &mut hasher,
                &[&task.name, &serde_json::to_string(task).unwrap_or_default()],
            );
        }
        for ServiceDeclaration {
            service,
            version,
            events,
        } in &self.services.provided
        {
            digest(&mut hasher, &[&service.to_string(), version]);
            for event in events {
                digest(&mut hasher, &[event]);
            }
        }
        for category in &self.categories {
            digest(&mut hasher, &["serves", category.as_str()]);
        }
        for ReportedCommand {
            name, digest: text, ..
        } in &self.commands
        {
            digest(&mut hasher, &["command", name, text]);
        }
        for rule in &self.rules {
            digest(&mut hasher, &["rule", &rule.to_string()]);
        }
        for InstructionDeclaration { name, text } in instructions {
            digest(&mut hasher, &[name]);
            self.schema_bytes += digest(&mut hasher, &[text]);
        }
        self.resize(0, 0);
        self.content_digest = hasher.finalize().to_hex().to_string();
    }
}

impl FeatureInstallReport {
    /// Replaces a part of its bytes by another one.
    pub(crate) fn resize(&mut self, before: u64, after: u64) {
        self.schema_bytes = self.schema_bytes.saturating_sub(before) + after;
        self.estimated_tokens = estimated_tokens(self.schema_bytes);
    }
}

/// English and JSON come to about this many bytes a token in the common vocabularies.
const BYTES_PER_TOKEN: u64 = 4;

/// About how many tokens texts of so many bytes are, as in reports.
#[must_use]
pub const fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Hashes parts with their lengths, so that no two lists run together; returns their bytes.
fn digest(hasher: &mut blake3::Hasher, parts: &[&str]) -> u64 {
    let mut bytes = 0;
    for part in parts {
        let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
        hasher.update(&len.to_le_bytes()).update(part.as_bytes());
        bytes += len;
    }
    bytes
}

impl Totals {
    pub(crate) fn of(features: &[FeatureInstallReport]) -> Self {
        let mut totals = Self::default();
        for feature in features {
            totals.features += 1;
            totals.live += u64::from(feature.outcome.is_live());
            match feature.outcome {
                InstallOutcome::Installed => {}
                InstallOutcome::Degraded => totals.degraded += 1,
                InstallOutcome::Skipped => totals.skipped += 1,
                InstallOutcome::Disabled => totals.disabled += 1,
            }
            totals.tools += u64::try_from(feature.installed_tools.len()).unwrap_or(u64::MAX);
            totals.schema_bytes += feature.schema_bytes;
        }
        totals.estimated_tokens = estimated_tokens(totals.schema_bytes);
        totals
    }
}
