//! Plans an install from descriptors and a policy: a pure function with the same result for every registration order.
//! Does not depend on modules.

mod budget;
mod categories;
mod hook_order;
mod order;
mod wiring;

use super::policy::{CapabilityGrantSet, CapabilityPolicy, Denial, DeniedCapability};
use super::report::{HostReport, InstallOutcome, ReportedCommand, SkippedContribution};
use crate::feature::declare::about::About;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::command::CommandDeclaration;
use crate::feature::declare::contribution::Contribution;
use crate::feature::declare::descriptor::{FeatureDescriptor, FeatureRuntimeKind};
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::grants::Need;
use crate::feature::declare::hook::HookDeclaration;
use crate::feature::declare::id::{FeatureId, Tier};
use crate::feature::declare::service::{FeatureServices, MissingService};
use crate::feature::declare::settings::{self, Settings};
use crate::feature::declare::state::StateDeclaration;
use crate::feature::declare::task::{BackgroundTaskDeclaration, Restart, TaskTrigger};
use crate::feature::declare::tool::ToolDeclaration;
use crate::hook::{FailureRule, HookClass, HookPoint};
use crate::permission::Rule;
pub(crate) use budget::{FeatureDemand, PlanBudget};
pub(crate) use budget::{MAX_GATES, MAX_TRANSFORMS};
pub(crate) use categories::{Unserved, needed_categories};
use llm_worker::ToolEffect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use wiring::{Resolution, Wiring};

/// Most features of one pod.
pub const MAX_FEATURES: usize = 4_096;

/// The body of features that are part of this program.
pub(crate) const BUILD: &str = concat!("build:", env!("CARGO_PKG_VERSION"));

/// What will be installed, in this order, and what will not. It cannot be read back: a plan carries grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstallPlan {
    /// What the host itself enforces.
    pub host: HostReport,
    /// Every declared feature by tier and id.
    pub features: Vec<PlannedFeature>,
    /// Who is installed, in the order of installation: the provider of a service before its consumers, ties by
    /// tier and id.
    pub order: Vec<FeatureId>,
    /// Required features that will not be installed. If there is one, no new pod may start.
    pub unmet: Vec<Unmet>,
    /// Messages that belong to no feature.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

/// What the host decided about one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedFeature {
    pub feature_id: FeatureId,
    /// As declared.
    pub version: String,
    /// As declared.
    pub runtime: FeatureRuntimeKind,
    /// Who made it, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// Whether it will be installed.
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
    /// The version of its code: a digest, or `build:` and the version of this program.
    pub body: String,
    /// The settings in effect; reports show them shortened.
    #[serde(skip)]
    pub settings: Settings,
    /// The granted and denied capabilities.
    pub grants: CapabilityGrantSet,
    /// The tools it must stage.
    pub tools: Vec<PlannedTool>,
    /// The hooks it must stage.
    pub hooks: Vec<PlannedHook>,
    /// The background tasks it must stage.
    pub background_tasks: Vec<PlannedTask>,
    /// The names of its instructions.
    pub instructions: Vec<String>,
    /// The states that it must open.
    pub states: Vec<StateDeclaration>,
    /// The services that it provides and uses.
    pub services: FeatureServices,
    /// The enrichers that it must stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enrichers: Vec<EnricherDeclaration>,
    /// The categories of tools that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<ToolCategory>,
    /// The commands that it offers people.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "reported")]
    #[schemars(with = "Vec<ReportedCommand>")]
    pub commands: Vec<CommandDeclaration>,
    /// Its rules of permission.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Categories of its tools that no feature serves; these tools are left out.
    #[serde(skip)]
    pub(crate) unserved: Vec<Unserved>,
    /// Those of its tools that requests leave out.
    #[serde(skip)]
    pub(crate) deferred: BTreeSet<String>,
    /// Contributions that are left out.
    pub skipped_contributions: Vec<SkippedContribution>,
    /// Warnings and reasons.
    pub diagnostics: Vec<FeatureDiagnostic>,
}

/// Commands without their texts.
fn reported<S: Serializer>(commands: &[CommandDeclaration], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(commands.iter().map(ReportedCommand::from))
}

/// A tool that will be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlannedTool {
    pub name: String,
    /// Whether a call is safe to repeat.
    pub effect: ToolEffect,
    /// How long the host waits for one call.
    pub deadline_ms: u64,
    /// Name, description and schema, before encoding.
    pub bytes: u64,
    /// Whether requests leave it out: the model finds it by a search.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// A hook that will be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedHook {
    pub name: String,
    pub point: HookPoint,
    /// The class of the hook.
    pub class: HookClass,
    /// How long the host waits for one answer.
    pub deadline_ms: u64,
    /// The tools for which a transform is called; `*` is any. Empty for other classes.
    pub tools: Vec<String>,
    /// What happens when it panics, hangs or is late.
    pub on_failure: FailureRule,
    /// Features before whose hooks at the same point it is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<FeatureId>,
    /// Features after whose hooks at the same point it is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<FeatureId>,
}

/// A background task that will be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTask {
    pub name: String,
    /// Whether a run is safe to repeat.
    pub effect: ToolEffect,
    /// The triggers that start a run.
    pub triggers: Vec<TaskTrigger>,
    /// Whether a run that ended is followed by another one.
    pub restart: Restart,
    /// How long one run may take.
    pub deadline_ms: u64,
}

/// A required feature that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmet {
    /// The feature that is required.
    pub feature_id: FeatureId,
    /// The file and line that require it.
    pub required_by: String,
    /// The reason why it is not installed.
    pub reason: String,
    /// The reason without the remedy, as a clause about the feature.
    #[serde(skip)]
    pub problem: String,
    /// What a person can do.
    #[serde(skip)]
    pub remedy: Option<String>,
}

/// A descriptor and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) source: Cow<'static, str>,
    pub(crate) descriptor: FeatureDescriptor,
    /// The digest of code that is not part of this program.
    pub(crate) body: Option<String>,
    /// Whether this build can run its kind of code.
    pub(crate) is_supported: bool,
}

/// Plans all features. `declared` must be sorted by [`order`]; the plan's features are in the same order.
pub(crate) fn plan(
    declared: &[&Declared],
    policy: &CapabilityPolicy,
    host: HostReport,
    diagnostics: Vec<FeatureDiagnostic>,
) -> InstallPlan {
    let mut features: Vec<_> = declared
        .iter()
        .enumerate()
        .map(|(at, d)| alone(at, d, declared, policy))
        .collect();
    hook_order::refuse_cycles(declared, &mut features);
    let wiring = Wiring::of(declared, &features);
    let mut order = Vec::new();
    let mut taken = (TakenNames::of(declared), PlanBudget::new());
    for &at in wiring.sequence() {
        let (Some(one), Some(planned)) = (declared.get(at), features.get(at)) else {
            continue;
        };
        if planned.outcome.is_live() {
            let planned = together(
                at,
                &one.descriptor,
                planned.clone(),
                &wiring,
                &features,
                &mut taken,
            );
            order.extend(
                planned
                    .outcome
                    .is_live()
                    .then(|| planned.feature_id.clone()),
            );
            if let Some(slot) = features.get_mut(at) {
                slot.clone_from(&planned);
            }
        }
    }
    let unmet = unmet(
        policy,
        features
            .iter()
            .map(|f| (&f.feature_id, f.outcome, f.diagnostics.as_slice())),
    );
    InstallPlan {
        host,
        features,
        order,
        unmet,
        diagnostics,
    }
}

/// The order of planning: by tier and id; equal ids, which are all refused, by content.
pub(crate) fn order(one: &Declared, other: &Declared) -> Ordering {
    let content =
        |declared: &Declared| serde_json::to_string(&declared.descriptor).unwrap_or_default();
    let ids = one
        .descriptor
        .id
        .cmp(&other.descriptor.id)
        .then_with(|| one.source.cmp(&other.source));
    ids.then_with(|| content(one).cmp(&content(other)))
}

/// Required features that will not be live, with the reason.
pub(crate) fn unmet<'a>(
    policy: &CapabilityPolicy,
    features: impl Iterator<Item = (&'a FeatureId, InstallOutcome, &'a [FeatureDiagnostic])>,
) -> Vec<Unmet> {
    let known: BTreeMap<_, _> = features
        .map(|(id, outcome, why)| (id, (outcome, why)))
        .collect();
    let mut unmet = Vec::new();
    for (id, source) in policy.required() {
        let (own, found) = match known.get(id) {
            Some((outcome, _)) if outcome.is_live() => continue,
            Some((InstallOutcome::Disabled, _)) => ("is disabled", None),
            Some((_, why)) => ("was skipped", why.first()),
            None => ("does not exist", None),
        };
        unmet.push(Unmet {
            feature_id: id.clone(),
            required_by: source.to_owned(),
            reason: found.map_or_else(|| format!("it {own}"), |found| found.message.clone()),
            problem: found.map_or(own, FeatureDiagnostic::problem).to_owned(),
            remedy: found.and_then(|found| found.remedy.clone()),
        });
    }
    unmet
}

/// The owner of each tool name, case ignored.
struct TakenNames {
    reserved: BTreeMap<String, FeatureId>,
    taken: BTreeMap<String, FeatureId>,
}

impl TakenNames {
    fn of(declared: &[&Declared]) -> Self {
        let builtin = declared
            .iter()
            .filter(|d| d.descriptor.id.tier() == Tier::Builtin);
        let names = builtin.flat_map(|d| {
            d.descriptor
                .declared_tools
                .iter()
                .map(|t| (t.name.to_ascii_lowercase(), d.descriptor.id.clone()))
        });
        Self {
            reserved: names.collect(),
            taken: BTreeMap::new(),
        }
    }

    fn conflict(&self, id: &FeatureId, tool: &str) -> Option<FeatureDiagnostic> {
        let name = tool.to_ascii_lowercase();
        let reserved = || {
            self.reserved
                .get(&name)
                .filter(|_| id.tier() != Tier::Builtin)
        };
        let (code, what) = match self.taken.get(&name) {
            Some(owner) => (
                DiagnosticCode::ToolNameTaken,
                format!("the same name as a tool of {owner}"),
            ),
            None => (
                DiagnosticCode::ToolNameReserved,
                reserved().map(|owner| {
                    format!("a name that is reserved for {owner}, even when {owner} is disabled")
                })?,
            ),
        };
        let message = format!("tool `{tool}` of {id} has {what}");
        Some(FeatureDiagnostic::new(code, id, message).remedied("rename it", ""))
    }
}

/// Plans one feature alone: whether it could be installed if all required services exist.
fn alone(
    at: usize,
    declared: &Declared,
    all: &[&Declared],
    policy: &CapabilityPolicy,
) -> PlannedFeature {
    let FeatureDescriptor {
        id,
        version,
        runtime,
        ..
    } = &declared.descriptor;
    let mut planned = PlannedFeature {
        feature_id: id.clone(),
        version: crate::feature::escape_line(version, 64),
        runtime: *runtime,
        about: declared
            .descriptor
            .about
            .clone()
            .filter(|about| about.problem().is_none()),
        outcome: InstallOutcome::Skipped,
        disabled_by: None,
        attached_by: None,
        required_by: policy.required_by(id).map(str::to_owned),
        body: declared.body.clone().unwrap_or_else(|| BUILD.to_owned()),
        settings: Settings::new(),
        grants: CapabilityGrantSet::default(),
        tools: Vec::new(),
        hooks: Vec::new(),
        background_tasks: Vec::new(),
        instructions: Vec::new(),
        states: Vec::new(),
        services: FeatureServices::default(),
        enrichers: Vec::new(),
        categories: Vec::new(),
        commands: Vec::new(),
        rules: Vec::new(),
        unserved: Vec::new(),
        deferred: BTreeSet::new(),
        skipped_contributions: Vec::new(),
        diagnostics: Vec::new(),
    };
    if let Some(source) = policy.disabled_by(id) {
        planned.outcome = InstallOutcome::Disabled;
        planned.disabled_by = Some(source.to_owned());
        return planned;
    }
    planned.attached_by = Some(policy.attached_by(id).to_owned());
    planned.diagnostics = obstacles(at, declared, all);
    if !planned.diagnostics.is_empty() {
        return planned;
    }
    match settings::effective(&declared.descriptor, &policy.settings_of(id)) {
        Ok(settings) => planned.settings = settings,
        Err(problems) => {
            let invalid = |p: &String| {
                FeatureDiagnostic::new(
                    DiagnosticCode::InvalidSettings,
                    id,
                    format!("settings of {id}: {p}"),
                )
            };
            planned.diagnostics = problems.iter().map(invalid).collect();
            return planned;
        }
    }
    let (grants, denied) = grants(&declared.descriptor, policy);
    planned.grants = grants;
    let tools = declared.descriptor.declared_tools.iter();
    planned.deferred = tools
        .filter(|tool| policy.defers(&tool.name))
        .map(|tool| tool.name.clone())
        .collect();
    planned.diagnostics = denied;
    if !planned
        .diagnostics
        .iter()
        .any(|d| d.code == DiagnosticCode::RequiredCapabilityDenied)
    {
        planned.outcome = InstallOutcome::Installed;
    }
    planned
}

/// Plans the feature among the others; the features it requires were planned before.
fn together(
    at: usize,
    descriptor: &FeatureDescriptor,
    mut planned: PlannedFeature,
    wiring: &Wiring<'_>,
    others: &[PlannedFeature],
    (names, budget): &mut (TakenNames, PlanBudget),
) -> PlannedFeature {
    let mut against = wiring.obstacles(at);
    if !against.is_empty() {
        planned.diagnostics.extend(against);
        planned.outcome = InstallOutcome::Skipped;
        return planned;
    }
    for asked in &descriptor.requires {
        if let Some(denied) = planned
            .grants
            .denied()
            .iter()
            .find(|d| d.capability == asked.service.admission())
        {
            let reason = denied.reason.clone();
            planned.services.missing.push(MissingService {
                service: asked.service.clone(),
                version: asked.version.clone(),
                reason,
            });
            continue;
        }
        if asked.each {
            planned
                .services
                .resolved
                .extend(wiring.find_each(at, asked, others));
            continue;
        }
        let events = descriptor
            .declared_background_tasks
            .iter()
            .flat_map(|task| task.service_events());
        match wiring.find(at, asked, events, others) {
            Resolution::Resolved(service) => planned.services.resolved.push(service),
            Resolution::Missing {
                code,
                missing,
                cause,
            } => {
                let diagnostic = lacks(code, &planned.feature_id, &missing, cause);
                let list = if asked.need == Need::Required {
                    &mut against
                } else {
                    &mut planned.diagnostics
                };
                list.push(diagnostic);
                planned.services.missing.push(missing);
            }
        }
    }
    planned.unserved = wiring.unserved(at, others);
    contribute(descriptor, &mut planned);
    against.extend(
        planned
            .tools
            .iter()
            .filter_map(|t| names.conflict(&planned.feature_id, &t.name)),
    );
    if against.is_empty() {
        against.extend(
            budget
                .take(&planned.feature_id, demand(descriptor, &planned))
                .err()
                .map(|full| *full),
        );
    }
    if against.is_empty() {
        names.taken.extend(
            planned
                .tools
                .iter()
                .map(|t| (t.name.to_ascii_lowercase(), planned.feature_id.clone())),
        );
        return planned;
    }
    planned.diagnostics.extend(against);
    skip(&mut planned);
    planned
}

/// The feature's share of the common budgets, as declared.
fn demand(descriptor: &FeatureDescriptor, planned: &PlannedFeature) -> FeatureDemand {
    let mut demand = FeatureDemand::default();
    let tools = descriptor.declared_tools.iter().filter(|tool| {
        planned
            .tools
            .iter()
            .any(|planned| planned.name == tool.name && !planned.deferred)
    });
    tools.for_each(|tool| demand.tool(&tool.name, &tool.about, &tool.schema));
    descriptor
        .instructions
        .iter()
        .for_each(|instruction| demand.instruction(&instruction.text));
    planned
        .hooks
        .iter()
        .for_each(|hook| demand.hook(hook.point));
    demand
}

/// The message about a requirement that is not met.
pub(crate) fn lacks(
    code: DiagnosticCode,
    id: &FeatureId,
    missing: &MissingService,
    cause: Option<FeatureId>,
) -> FeatureDiagnostic {
    let MissingService {
        service,
        version,
        reason,
    } = missing;
    FeatureDiagnostic::new(
        code,
        id,
        format!("{id} needs service {service} {version}: {reason}"),
    )
    .caused_by(cause)
}

/// Removes a feature from the plan; its grants stay in the report.
pub(crate) fn skip(planned: &mut PlannedFeature) {
    planned.outcome = InstallOutcome::Skipped;
    planned.tools.clear();
    planned.hooks.clear();
    planned.background_tasks.clear();
    planned.states.clear();
    planned.instructions.clear();
    planned.services.provided.clear();
    planned.enrichers.clear();
    planned.categories.clear();
    planned.commands.clear();
    planned.rules.clear();
}

/// Plans the contributions that are possible with the granted capabilities and services, and lists the skipped ones.
pub(crate) fn contribute(descriptor: &FeatureDescriptor, planned: &mut PlannedFeature) {
    let missing = planned.services.missing.iter();
    let missing = missing.map(|m| DeniedCapability {
        capability: m.service.admission(),
        reason: m.reason.clone(),
        denial: Denial::default(),
    });
    let lost: Vec<_> = planned
        .grants
        .denied()
        .iter()
        .cloned()
        .chain(missing)
        .collect();
    let mut skipped = Vec::new();
    let tools = kept(&descriptor.declared_tools, &lost, &mut skipped);
    let tools = categories::served(tools, &planned.unserved, &mut skipped);
    let deferred = &planned.deferred;
    let planned_tool = |tool| planned_tool(tool, deferred);
    planned.tools = tools.into_iter().map(planned_tool).collect();
    let enrichers = kept(&descriptor.enriches, &lost, &mut skipped);
    planned.enrichers = enrichers.into_iter().cloned().collect();
    planned.categories.clone_from(&descriptor.serves);
    let commands = kept(&descriptor.commands, &lost, &mut skipped);
    planned.commands = commands.into_iter().cloned().collect();
    planned.rules.clone_from(&descriptor.rules);
    let hooks = kept(&descriptor.declared_hooks, &lost, &mut skipped);
    planned.hooks = hooks.into_iter().map(planned_hook).collect();
    let tasks = kept(&descriptor.declared_background_tasks, &lost, &mut skipped);
    planned.background_tasks = tasks.into_iter().map(planned_task).collect();
    let states = kept(&descriptor.states, &lost, &mut skipped);
    planned.states = states.into_iter().cloned().collect();
    let provided = kept(&descriptor.provides, &lost, &mut skipped);
    planned.services.provided = provided.into_iter().cloned().collect();
    planned.instructions = descriptor
        .instructions
        .iter()
        .map(|i| i.name.clone())
        .collect();
    let is_whole = lost.is_empty() && skipped.is_empty();
    planned.outcome = if is_whole {
        InstallOutcome::Installed
    } else {
        InstallOutcome::Degraded
    };
    planned.skipped_contributions = skipped;
}

/// The problem that excludes a feature before any capability is decided.
fn obstacles(at: usize, declared: &Declared, all: &[&Declared]) -> Vec<FeatureDiagnostic> {
    let FeatureDescriptor { id, runtime, .. } = &declared.descriptor;
    if at >= MAX_FEATURES {
        let message = format!(
            "{id} is not installed: there are {} features, and the limit is {MAX_FEATURES}",
            all.len()
        );
        return vec![FeatureDiagnostic::new(
            DiagnosticCode::TooManyFeatures,
            id,
            message,
        )];
    }
    let neighbours = [at.checked_sub(1), at.checked_add(1)]
        .into_iter()
        .flatten()
        .filter_map(|i| all.get(i));
    let same: Vec<_> = neighbours
        .filter(|other| other.descriptor.id == *id)
        .collect();
    if let Some(other) = same.first() {
        let message = format!(
            "{id} is declared twice, by {} and by {}; neither feature is installed",
            declared.source, other.source
        );
        return vec![FeatureDiagnostic::new(
            DiagnosticCode::DuplicateId,
            id,
            message,
        )];
    }
    let mut problems = declared.descriptor.problems_in_plan();
    problems.extend(declared.body.as_deref().and_then(body_problem));
    if !problems.is_empty() {
        let diagnostic = |p: &String| {
            FeatureDiagnostic::new(DiagnosticCode::InvalidDescriptor, id, format!("{id}: {p}"))
        };
        return problems.iter().map(diagnostic).collect();
    }
    if declared.is_supported {
        return Vec::new();
    }
    let message = format!("{id} needs the runtime {runtime:?}, which this build does not support");
    vec![FeatureDiagnostic::new(
        DiagnosticCode::NoAdapter,
        id,
        message,
    )]
}

fn body_problem(body: &str) -> Option<String> {
    let is_digest = body.len() == 64
        && body
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (!is_digest).then(|| "body() is not a BLAKE3 digest in lower-case hex".to_owned())
}

/// Decides each explicit request and the implicit ones of contributions. Tools, hooks and background tasks are optional;
/// states only if they are declared so.
fn grants(
    descriptor: &FeatureDescriptor,
    policy: &CapabilityPolicy,
) -> (CapabilityGrantSet, Vec<FeatureDiagnostic>) {
    let id = &descriptor.id;
    let explicit = descriptor
        .requested_capabilities
        .iter()
        .map(|r| (r.capability.clone(), r.need));
    let asked: BTreeSet<_> = descriptor
        .requested_capabilities
        .iter()
        .map(|r| &r.capability)
        .collect();
    let implied = requests(&descriptor.declared_tools, Need::Optional)
        .chain(sorted(requests(&descriptor.declared_hooks, Need::Optional)))
        .chain(requests(
            &descriptor.declared_background_tasks,
            Need::Optional,
        ))
        .chain(sorted(requests(&descriptor.enriches, Need::Optional)))
        .chain(requests(&descriptor.commands, Need::Optional))
        .chain(sorted(requests(&descriptor.states, Need::Required)))
        .chain(sorted(requests(&descriptor.provides, Need::Optional)))
        .chain(admissions(descriptor))
        .filter(|(c, _)| !asked.contains(c));
    let mut granted = Vec::new();
    let mut denied = Vec::new();
    let mut diagnostics = Vec::new();
    for (capability, need) in explicit.chain(implied) {
        let decision = policy.decide(id, &capability, need);
        granted.extend(decision.granted.filter(|new| !granted.contains(new)));
        let Some(refused) = decision.denied else {
            continue;
        };
        let code = match need {
            Need::Required => DiagnosticCode::RequiredCapabilityDenied,
            Need::Optional => DiagnosticCode::OptionalCapabilityDenied,
        };
        let message = format!("{id} was denied {capability}: {}", refused.reason);
        diagnostics.push(FeatureDiagnostic {
            remedy: refused.denial.setting(id),
            ..FeatureDiagnostic::new(code, id, message)
        });
        denied.push(refused);
    }
    (CapabilityGrantSet::new(granted, denied), diagnostics)
}

/// What the declarations of one kind request by themselves.
fn requests<C: Contribution>(
    declared: &[C],
    need: Need,
) -> impl Iterator<Item = (HostCapability, Need)> {
    declared
        .iter()
        .flat_map(C::requests)
        .map(move |capability| (capability, need))
}

/// Each request once.
fn sorted<T: Ord>(requests: impl Iterator<Item = T>) -> BTreeSet<T> {
    requests.collect()
}

/// The capabilities that the requirements request; the strictest need of each.
fn admissions(descriptor: &FeatureDescriptor) -> BTreeMap<HostCapability, Need> {
    let mut needs = BTreeMap::new();
    for asked in &descriptor.requires {
        let need: &mut Need = needs.entry(asked.service.admission()).or_insert(asked.need);
        *need = (*need).min(asked.need);
    }
    needs
}

/// The contributions that are possible; lists the others as skipped.
fn kept<'a, C: Contribution>(
    declared: &'a [C],
    lost: &[DeniedCapability],
    skipped: &mut Vec<SkippedContribution>,
) -> Vec<&'a C> {
    let mut kept = |one: &&C| {
        let takes = one.takes();
        let denied = lost
            .iter()
            .find(|denied| takes.contains(&denied.capability));
        skipped.extend(denied.map(|denied| SkippedContribution {
            kind: C::KIND,
            name: one.name(),
            reason: format!("it needs {}: {}", denied.capability, denied.reason),
            denied: Some(denied.clone()),
        }));
        denied.is_none()
    };
    declared
        .iter()
        .filter(|one| lost.is_empty() || kept(one))
        .collect()
}

fn planned_hook(hook: &HookDeclaration) -> PlannedHook {
    PlannedHook {
        name: hook.name.clone(),
        point: hook.point,
        class: hook.class,
        deadline_ms: hook.deadline_ms,
        tools: hook.tools.clone(),
        on_failure: hook.on_failure(),
        before: hook.before.clone(),
        after: hook.after.clone(),
    }
}

/// The part of a declaration that plans and reports show.
fn planned_task(task: &BackgroundTaskDeclaration) -> PlannedTask {
    PlannedTask {
        name: task.name.clone(),
        effect: task.effect,
        triggers: task.triggers.clone(),
        restart: task.restart,
        deadline_ms: task.deadline_ms,
    }
}

fn planned_tool(tool: &ToolDeclaration, deferred: &BTreeSet<String>) -> PlannedTool {
    let bytes = u64::try_from(tool.bytes()).unwrap_or(u64::MAX);
    PlannedTool {
        name: tool.name.clone(),
        effect: tool.effect,
        deadline_ms: tool.deadline_ms,
        bytes,
        deferred: deferred.contains(&tool.name),
    }
}
