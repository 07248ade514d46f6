//! From descriptors and a policy to what will be installed: a pure function, the same for every registration order.

use super::capability::{CapabilityGrantSet, DeniedCapability, HostCapability, Need};
use super::descriptor::{FeatureDescriptor, FeatureRuntimeKind, ToolDeclaration};
use super::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use super::hook::HookDeclaration;
use super::id::{FeatureId, Tier};
use super::policy::{CapabilityPolicy, GrantDecision};
use super::report::{ContributionKind, HostReport, Outcome, SkippedContribution};
use super::state::StateDeclaration;
use crate::hook::{FailureRule, HookClass, HookPoint};
use llm_worker::ToolEffect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most features of one pod.
pub const MAX_FEATURES: usize = 4_096;

/// What will be installed, in this order, and what will not. It cannot be read back: a plan carries grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstallPlan {
    /// What the host itself enforces.
    pub host: HostReport,
    /// Every declared feature by tier and id, which is also the order of installation.
    pub features: Vec<PlannedFeature>,
    /// Required features that will not be there. Not empty: no new pod may start.
    pub unmet: Vec<Unmet>,
    /// What belongs to no feature.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

/// What the host decided about one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedFeature {
    /// Who.
    pub feature_id: FeatureId,
    /// As declared.
    pub version: String,
    /// As declared.
    pub runtime: FeatureRuntimeKind,
    /// Whether it will be installed.
    pub outcome: Outcome,
    /// What switches it off: `default`, or a file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_by: Option<String>,
    /// What it gets and does not get.
    pub grants: CapabilityGrantSet,
    /// The tools it must stage.
    pub tools: Vec<PlannedTool>,
    /// The hooks it must stage.
    pub hooks: Vec<PlannedHook>,
    /// The instructions it brings.
    pub instructions: Vec<String>,
    /// The states it must take up.
    pub states: Vec<StateDeclaration>,
    /// What is left out.
    pub skipped_contributions: Vec<SkippedContribution>,
    /// Why.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

/// A tool that will be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedTool {
    /// Its name.
    pub name: String,
    /// What repeating a call does.
    pub effect: ToolEffect,
    /// How long the host waits for one call.
    pub deadline_ms: u64,
    /// Name, description and schema, before encoding.
    pub bytes: u64,
}

/// A hook that will be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedHook {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub point: HookPoint,
    /// What it may do.
    pub class: HookClass,
    /// How long the host waits for one answer.
    pub deadline_ms: u64,
    /// The tools a transform is asked about; `*` is any. Empty for other classes.
    pub tools: Vec<String>,
    /// What a panic, a hang or a late answer means.
    pub on_failure: FailureRule,
}

/// A required feature that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmet {
    /// Which feature.
    pub feature_id: FeatureId,
    /// Where it is required.
    pub required_by: String,
    /// Why it is not there.
    pub reason: String,
}

/// A descriptor and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) source: &'static str,
    pub(super) descriptor: FeatureDescriptor,
}

/// Decides. `declared` must be sorted by [`sort_key`]; the plan's features stand in the same order.
pub(super) fn plan(
    declared: &[&Declared],
    policy: &CapabilityPolicy,
    host: HostReport,
    diagnostics: Vec<FeatureDiagnostic>,
) -> InstallPlan {
    let mut names = Names::of(declared);
    let features: Vec<_> =
        declared.iter().enumerate().map(|(at, d)| plan_one(at, d, declared, policy, &mut names)).collect();
    let unmet = unmet(policy, features.iter().map(|f| (&f.feature_id, f.outcome, f.diagnostics.as_slice())));
    InstallPlan { host, features, unmet, diagnostics }
}

/// The order of planning: by tier and id; equal ids, which are all refused, by content.
pub(super) fn sort_key(declared: &Declared) -> (FeatureId, &'static str, String) {
    let content = serde_json::to_string(&declared.descriptor).unwrap_or_default();
    (declared.descriptor.id.clone(), declared.source, content)
}

/// Required features that are not live, with the reason.
pub(super) fn unmet<'a>(
    policy: &CapabilityPolicy,
    features: impl Iterator<Item = (&'a FeatureId, Outcome, &'a [FeatureDiagnostic])>,
) -> Vec<Unmet> {
    let known: BTreeMap<_, _> = features.map(|(id, outcome, why)| (id, (outcome, why))).collect();
    let mut unmet = Vec::new();
    for (id, source) in policy.required() {
        let reason = match known.get(id) {
            Some((outcome, _)) if outcome.is_live() => continue,
            Some((Outcome::Disabled, _)) => "it is disabled".to_owned(),
            Some((_, why)) => why.first().map_or_else(|| "it was skipped".to_owned(), |d| d.message.clone()),
            None => "no such feature in this build".to_owned(),
        };
        unmet.push(Unmet { feature_id: id.clone(), required_by: source.to_owned(), reason });
    }
    unmet
}

/// Who has which tool name, case aside.
struct Names {
    reserved: BTreeMap<String, FeatureId>,
    taken: BTreeMap<String, FeatureId>,
}

impl Names {
    fn of(declared: &[&Declared]) -> Self {
        let builtin = declared.iter().filter(|d| d.descriptor.id.tier() == Tier::Builtin);
        let names = builtin
            .flat_map(|d| d.descriptor.tools.iter().map(|t| (t.name.to_ascii_lowercase(), d.descriptor.id.clone())));
        Self { reserved: names.collect(), taken: BTreeMap::new() }
    }

    fn conflict(&self, id: &FeatureId, tool: &str) -> Option<FeatureDiagnostic> {
        let name = tool.to_ascii_lowercase();
        if let Some(owner) = self.taken.get(&name) {
            let message = format!("tool `{tool}` of {id} is taken by {owner}; rename it");
            return Some(FeatureDiagnostic::new(DiagnosticCode::ToolNameTaken, id, message));
        }
        let owner = self.reserved.get(&name).filter(|_| id.tier() != Tier::Builtin)?;
        let message = format!("tool `{tool}` of {id} is reserved for {owner}, also while that is off; rename it");
        Some(FeatureDiagnostic::new(DiagnosticCode::ToolNameReserved, id, message))
    }
}

fn plan_one(
    at: usize,
    declared: &Declared,
    all: &[&Declared],
    policy: &CapabilityPolicy,
    names: &mut Names,
) -> PlannedFeature {
    let FeatureDescriptor { id, version, runtime, instructions, .. } = &declared.descriptor;
    let mut planned = PlannedFeature {
        feature_id: id.clone(),
        version: super::text::shown(version, 64),
        runtime: *runtime,
        outcome: Outcome::Skipped,
        disabled_by: None,
        grants: CapabilityGrantSet::default(),
        tools: Vec::new(),
        hooks: Vec::new(),
        instructions: Vec::new(),
        states: Vec::new(),
        skipped_contributions: Vec::new(),
        diagnostics: Vec::new(),
    };
    if let Some(source) = policy.disabled_by(id) {
        planned.outcome = Outcome::Disabled;
        planned.disabled_by = Some(source.to_owned());
        return planned;
    }
    planned.diagnostics = obstacles(at, declared, all);
    if !planned.diagnostics.is_empty() {
        return planned;
    }
    let (grants, denied) = grants(&declared.descriptor, policy);
    planned.grants = grants;
    planned.diagnostics = denied;
    if planned.diagnostics.iter().any(|d| d.code == DiagnosticCode::RequiredCapabilityDenied) {
        return planned;
    }
    let (tools, skipped) = tools(&declared.descriptor, &planned.grants);
    planned.skipped_contributions = skipped;
    let (hooks, skipped) = hooks(&declared.descriptor, &planned.grants);
    planned.skipped_contributions.extend(skipped);
    let (states, skipped) = states(&declared.descriptor, &planned.grants);
    planned.skipped_contributions.extend(skipped);
    let conflicts: Vec<_> = tools.iter().filter_map(|t| names.conflict(id, &t.name)).collect();
    if !conflicts.is_empty() {
        planned.diagnostics.extend(conflicts);
        return planned;
    }
    names.taken.extend(tools.iter().map(|t| (t.name.to_ascii_lowercase(), id.clone())));
    planned.tools = tools.into_iter().map(planned_tool).collect();
    planned.hooks = hooks;
    planned.states = states;
    planned.instructions = instructions.iter().map(|i| i.name.clone()).collect();
    planned.outcome = if planned.grants.denied().is_empty() { Outcome::Installed } else { Outcome::Degraded };
    planned
}

/// What keeps a feature out before any capability is looked at.
fn obstacles(at: usize, declared: &Declared, all: &[&Declared]) -> Vec<FeatureDiagnostic> {
    let FeatureDescriptor { id, runtime, .. } = &declared.descriptor;
    if at >= MAX_FEATURES {
        let message = format!("{id} is one of {} features; at most {MAX_FEATURES} are installed", all.len());
        return vec![FeatureDiagnostic::new(DiagnosticCode::TooManyFeatures, id, message)];
    }
    let neighbours = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter_map(|i| all.get(i));
    let same: Vec<_> = neighbours.filter(|other| other.descriptor.id == *id).collect();
    if let Some(other) = same.first() {
        let message = format!("{id} is claimed by {} and {}; neither is installed", declared.source, other.source);
        return vec![FeatureDiagnostic::new(DiagnosticCode::DuplicateId, id, message)];
    }
    let problems = declared.descriptor.problems();
    if !problems.is_empty() {
        let diagnostic =
            |p: &String| FeatureDiagnostic::new(DiagnosticCode::InvalidDescriptor, id, format!("{id}: {p}"));
        return problems.iter().map(diagnostic).collect();
    }
    match runtime {
        FeatureRuntimeKind::Builtin => Vec::new(),
        FeatureRuntimeKind::ExternalProcess
        | FeatureRuntimeKind::McpBridge
        | FeatureRuntimeKind::WasmPlaceholder
        | FeatureRuntimeKind::DeclarativePlaceholder => {
            let message = format!("{id} wants runtime {runtime:?}: no adapter in this build");
            vec![FeatureDiagnostic::new(DiagnosticCode::NoAdapter, id, message)]
        }
    }
}

/// What is granted: each explicit request, and the tools, hooks and states, which ask for themselves. A feature can do
/// without a tool or a hook, and without a state only when it says so.
fn grants(descriptor: &FeatureDescriptor, policy: &CapabilityPolicy) -> (CapabilityGrantSet, Vec<FeatureDiagnostic>) {
    let id = &descriptor.id;
    let explicit = descriptor.requests.iter().map(|r| (r.capability.clone(), r.need));
    let asked: BTreeSet<_> = descriptor.requests.iter().map(|r| &r.capability).collect();
    let implied = descriptor.tools.iter().map(|t| HostCapability::ContributeTool { name: t.name.clone().into() });
    let hooks: BTreeSet<_> = descriptor.hooks.iter().flat_map(HookDeclaration::implied).collect();
    let implied = implied.chain(hooks).map(|c| (c, Need::Optional));
    let states: BTreeSet<_> = descriptor.states.iter().map(|s| HostCapability::StateStore { scope: s.scope }).collect();
    let implied = implied.chain(states.into_iter().map(|c| (c, Need::Required))).filter(|(c, _)| !asked.contains(c));
    let (mut granted, mut denied, mut diagnostics) = (Vec::new(), Vec::new(), Vec::new());
    for (capability, need) in explicit.chain(implied) {
        let GrantDecision::Denied { reason } = policy.decide(id, &capability) else {
            granted.push(capability);
            continue;
        };
        let code = match need {
            Need::Required => DiagnosticCode::RequiredCapabilityDenied,
            Need::Optional => DiagnosticCode::OptionalCapabilityDenied,
        };
        diagnostics.push(FeatureDiagnostic::new(code, id, format!("{id} was denied {capability}: {reason}")));
        denied.push(DeniedCapability { capability, reason });
    }
    (CapabilityGrantSet::new(granted, denied), diagnostics)
}

/// The declared tools, parted by whether what each needs was granted.
fn tools<'a>(
    descriptor: &'a FeatureDescriptor,
    grants: &CapabilityGrantSet,
) -> (Vec<&'a ToolDeclaration>, Vec<SkippedContribution>) {
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for tool in &descriptor.tools {
        let own = HostCapability::ContributeTool { name: tool.name.clone().into() };
        let denied = grants.denied().iter().find(|d| d.capability == own || tool.needs.contains(&d.capability));
        match denied {
            None => kept.push(tool),
            Some(DeniedCapability { capability, reason }) => skipped.push(SkippedContribution {
                kind: ContributionKind::Tool,
                name: tool.name.clone(),
                reason: format!("it needs {capability}: {reason}"),
            }),
        }
    }
    (kept, skipped)
}

/// The declared hooks, parted the same way.
fn hooks(descriptor: &FeatureDescriptor, grants: &CapabilityGrantSet) -> (Vec<PlannedHook>, Vec<SkippedContribution>) {
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for hook in &descriptor.hooks {
        let implied = hook.implied();
        let needed = |denied: &&DeniedCapability| {
            implied.contains(&denied.capability) || hook.needs.contains(&denied.capability)
        };
        match grants.denied().iter().find(needed) {
            None => kept.push(hook.planned()),
            Some(DeniedCapability { capability, reason }) => skipped.push(SkippedContribution {
                kind: ContributionKind::Hook,
                name: hook.name.clone(),
                reason: format!("it needs {capability}: {reason}"),
            }),
        }
    }
    (kept, skipped)
}

/// The declared states, parted the same way.
fn states(
    descriptor: &FeatureDescriptor,
    grants: &CapabilityGrantSet,
) -> (Vec<StateDeclaration>, Vec<SkippedContribution>) {
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for state in &descriptor.states {
        let own = HostCapability::StateStore { scope: state.scope };
        match grants.denied().iter().find(|denied| denied.capability == own) {
            None => kept.push(state.clone()),
            Some(DeniedCapability { capability, reason }) => skipped.push(SkippedContribution {
                kind: ContributionKind::State,
                name: state.name.clone(),
                reason: format!("it needs {capability}: {reason}"),
            }),
        }
    }
    (kept, skipped)
}

fn planned_tool(tool: &ToolDeclaration) -> PlannedTool {
    let bytes = u64::try_from(tool.bytes()).unwrap_or(u64::MAX);
    PlannedTool { name: tool.name.clone(), effect: tool.effect, deadline_ms: tool.deadline_ms, bytes }
}
