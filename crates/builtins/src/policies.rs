//! Every built-in feature once: how it is made, and what it may have unless a person says otherwise. Those with settings,
//! each of a type of its own, are off until configured, except the one that waits for inputs with a schema, and the one for
//! results of MCP servers and providers where there are some.

use crate::circuit_breaker::CircuitBreaker;
use crate::clock::Now;
use crate::command_blocklist::CommandBlocklist;
use crate::confirm_gate::ConfirmGate;
use crate::context::ContextSearch;
use crate::dedup::Dedup;
use crate::format::ShorterResults;
use crate::jobs::Jobs;
use crate::list_features::ListFeatures;
use crate::loop_detect::LoopDetect;
use crate::memory::Memory;
use crate::notes_router::NotesRouter;
use crate::notify_person::NotifyPerson;
use crate::output_validate::OutputValidate;
use crate::phase_recorder::PhaseRecorder;
use crate::redact::Redact;
use crate::retry::Retry;
use crate::schedule::ScheduledPrompts;
use crate::step_tracer::StepTracer;
use crate::watch::ProjectWatch;
use crate::web::Pages;
use crate::work_item::WorkItems;
use crate::work_item_intake::Intake;
use crate::write_policy::WritePolicy;
use crate::{
    circuit_breaker, command_blocklist, commands, confirm_gate, context, dedup, files, format,
    jobs, list_features, loop_detect, memory, notes_router, notify_person, output_validate,
    phase_recorder, redact, retry, schedule, search, shell, skills, step_tracer, task, watch, web,
    work_item, work_item_intake, write_policy,
};
use HostCapability as Can;
use api_clickup::{self as clickup, ClickUp};
use api_core::provider::{
    EPICS, ISSUES, MEETING_NOTES, MERGE_REQUESTS, MESSENGER, PIPELINES, RELEASES,
};
use api_core::source::{CheckedSource, ProviderFeature, SourceProvider};
use api_core::tools as sources;
use api_fireflies::{self as fireflies, Fireflies};
use api_github::{self as github, GitHub};
use api_gitlab::{self as gitlab, GitLab};
use api_jira::{self as jira, Jira};
use api_slack::{self as slack, Slack};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureModule, HostCapability};
use pod::hook::{
    Event, PostAssistant, PreRequest, PreToolCall, PromptSubmit, ToolOutcome, ToolRepeat,
    ToolShape, TurnEnd,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings that a user wrote for one feature, without `enabled` and `required`.
pub type Settings = Map<String, Value>;

/// The error of [`with_settings`]: the settings of a feature are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{feature}: {problem}")]
pub struct BadSettings {
    pub feature: FeatureId,
    /// The key, and what was expected.
    pub problem: String,
}

/// The row of a table of grants.
type Grants = (FeatureId, &'static [HostCapability]);

/// The features with settings: each by its module, how it is made of its settings, and what it may have.
macro_rules! opt_in {
    ($($module:ident: $new:expr, [$($grant:expr),+];)+) => {
        /// The ids of built-in features that are off unless the configuration enables them, and of
        /// `builtin:output-validate`, which has settings, too.
        pub const OPT_IN: [FeatureId; COUNT] = [$($module::ID),+];

        const COUNT: usize = [$(stringify!($module)),+].len();

        const OPT_IN_GRANTS: [Grants; COUNT] = [$(($module::ID, &[$($grant),+])),+];

        /// The descriptors of all [`OPT_IN`] features, for plans in which they are off.
        #[must_use]
        pub fn declared() -> Vec<FeatureDescriptor> {
            vec![$($module::declared()),+]
        }

        /// Those that are enabled; the settings of all are read.
        fn made(of: impl Fn(FeatureId) -> Written, now: &Now) -> Made {
            let mut modules: Vec<Arc<dyn FeatureModule>> = Vec::new();
            $(modules.extend(module(of($module::ID), now, $new)?);)+
            Ok(modules)
        }
    };
}

/// What the features that are on by default may have; those of skills, commands and providers are on where there are some.
const ALWAYS_ON: [Grants; 7] = [
    (files::ID, &[ANY_TOOL, Can::WRITE_WORKSPACE]),
    (search::ID, &[ANY_TOOL, Can::READ_WORKSPACE]),
    (
        shell::ID,
        &[ANY_TOOL, Can::READ_WORKSPACE, Can::ANY_PROGRAM],
    ),
    (commands::ID, &[Can::ANY_COMMAND]),
    (skills::ID, &[ANY_TOOL, skills::READ]),
    (sources::ID, &sources::GRANTS),
    (
        task::ID,
        &[ANY_TOOL, GATE_REQUESTS, Can::SESSION_STATE, task::NOTIFY],
    ),
];

opt_in! {
    loop_detect: |own, _| LoopDetect::new(own),
        [GATE_CALLS, GATE_ANSWERS, HOOK_RESULTS, Can::ANY_RESULT, Can::SESSION_STATE];
    circuit_breaker: CircuitBreaker::new,
        [GATE_CALLS, GATE_REQUESTS, HOOK_RESULTS, Can::ANY_RESULT, Can::SESSION_STATE];
    write_policy: |own, _| WritePolicy::new(own),
        [GATE_CALLS, Can::READ_WORKSPACE];
    phase_recorder: |Nothing {}, _| Ok(PhaseRecorder),
        [ANY_TOOL, Can::SESSION_STATE];
    work_item: WorkItems::new,
        [ANY_TOOL, GATE_CALLS, Can::SESSION_STATE, work_item::WRITE, work_item::PROVIDE,
         work_item::PROVIDE_TRACKER, work_item::ENRICH];
    memory: |Nothing {}, now| Ok(Memory::new(now)),
        [ANY_TOOL, memory::WRITE, memory::PROVIDE];
    notes_router: |Nothing {}, _| Ok(NotesRouter),
        [ANY_TOOL, WRITE_ITEMS, WRITE_NOTES];
    // Its hosts are a person's to name.
    web: |Nothing {}, _| Ok(Pages),
        [ANY_TOOL];
    command_blocklist: |own, _| CommandBlocklist::new(own),
        [GATE_CALLS, HOOK_RESULTS, Can::ANY_RESULT, Can::EmitUserAlert];
    confirm_gate: |own, _| ConfirmGate::new(own),
        [GATE_CALLS];
    schedule: ScheduledPrompts::new,
        [ANY_TOOL, Can::SESSION_STATE, schedule::NOTIFY, schedule::DELIVERS];
    // The person writes its command, and names the host of its webhook.
    notify_person: NotifyPerson::new,
        [Can::ANY_BACKGROUND_TASK, OBSERVE, Can::SESSION_STATE, Can::ANY_PROGRAM,
         Can::READ_WORKSPACE, notify_person::SECRET];
    work_item_intake: Intake::new,
        [Can::ANY_BACKGROUND_TASK, Can::SESSION_STATE, READ_ITEMS, work_item_intake::NOTIFY];
    watch: |own, _| Ok(ProjectWatch(own)),
        [Can::READ_WORKSPACE, GATE_REQUESTS, OBSERVE, watch::NOTIFY, watch::LOOKS];
    jobs: |own, _| Jobs::new(own),
        [ANY_TOOL, Can::READ_WORKSPACE, Can::ANY_PROGRAM, Can::SESSION_STATE, Can::EmitUserAlert,
         jobs::NOTIFY, jobs::TELLS];
    list_features: |Nothing {}, _| Ok(ListFeatures),
        [ANY_TOOL, list_features::RECORDS];
    redact: |own, _| Redact::new(own),
        [SHAPE_RESULTS, Can::ANY_RESULT];
    retry: |own, _| Retry::new(own),
        [REPEAT_CALLS, Can::ANY_REPEAT];
    dedup: |own, _| Dedup::new(own),
        [HOOK_RESULTS, Can::ANY_RESULT, Can::SESSION_STATE];
    format: |own, _| ShorterResults::new(own),
        [SHAPE_RESULTS, Can::ANY_RESULT];
    // The settings of a provider name its host and its token, which it then has.
    github: |own, _| GitHub::new(own),
        [Can::provide(ISSUES.name()), Can::provide(MERGE_REQUESTS.name()),
         Can::provide(PIPELINES.name()), Can::provide(RELEASES.name()), Can::ANY_ENRICHING];
    gitlab: |own, _| GitLab::new(own),
        [Can::provide(ISSUES.name()), Can::provide(MERGE_REQUESTS.name()),
         Can::provide(PIPELINES.name()), Can::provide(RELEASES.name()), Can::ANY_ENRICHING];
    jira: |own, _| Jira::new(own),
        [Can::provide(ISSUES.name()), Can::provide(EPICS.name()), Can::ANY_ENRICHING];
    slack: |own, _| Slack::new(own),
        [Can::provide(MESSENGER.name()), Can::ANY_ENRICHING];
    fireflies: |own, _| Fireflies::new(own),
        [Can::provide(MEETING_NOTES.name()), Can::ANY_ENRICHING];
    clickup: |own, _| ClickUp::new(own),
        [Can::provide(ISSUES.name()), Can::ANY_ENRICHING];
    output_validate: |own, _| OutputValidate::new(own),
        [JUDGE_INPUTS, END_TURNS, Can::ANY_PROGRAM, Can::READ_WORKSPACE];
    context: |Nothing {}, _| Ok(ContextSearch),
        [ANY_TOOL, context::READ, context::PROVIDE];
    step_tracer: |Nothing {}, now| Ok(StepTracer::new(now)),
        [OBSERVE, step_tracer::WRITE];
}

const ANY_TOOL: Can = Can::tool("*");

/// Reading work items through their store.
const READ_ITEMS: Can = Can::WorkItemStore {
    read: true,
    write: false,
};

/// Changing work items through the feature that provides them.
const WRITE_ITEMS: Can = Can::WorkItemStore {
    read: false,
    write: true,
};

/// Keeping notes through the feature that provides memory.
const WRITE_NOTES: Can = Can::MemoryStore {
    read: false,
    write: true,
};

const GATE_CALLS: Can = Can::hook::<PreToolCall>();

/// Ending the turn of an answer.
const GATE_ANSWERS: Can = Can::hook::<PostAssistant>();

/// Seeing that the model is asked, which is the same as standing where it could be refused.
const GATE_REQUESTS: Can = Can::hook::<PreRequest>();

/// Seeing results, which is the same as standing where they could be changed.
const HOOK_RESULTS: Can = Can::hook::<ToolOutcome>();

/// Refusing inputs.
const JUDGE_INPUTS: Can = Can::hook::<PromptSubmit>();

/// Having the model go on, or a person look, at the end of a turn.
const END_TURNS: Can = Can::hook::<TurnEnd>();

/// Running calls again that are safe to repeat.
const REPEAT_CALLS: Can = Can::hook::<ToolRepeat>();

/// Seeing whole results before they are kept.
const SHAPE_RESULTS: Can = Can::hook::<ToolShape>();

/// Getting every record.
const OBSERVE: Can = Can::hook::<Event>();

/// What the built-in features are granted unless a person says otherwise. What stands in no row is refused. One with
/// background tasks has `HostCapability::ANY_BACKGROUND_TASK` in its row.
pub fn grants() -> impl Iterator<Item = (FeatureId, HostCapability)> {
    let rows = ALWAYS_ON.into_iter().chain(OPT_IN_GRANTS);
    rows.flat_map(|(id, held)| held.iter().map(move |one| (id.clone(), one.clone())))
}

/// Creates the opt-in features that have complete settings, for `yoi` to install. `enabled` names the features whose
/// settings must be complete.
///
/// # Errors
/// Invalid settings, or settings for a built-in that has none.
pub fn with_settings(
    settings: &BTreeMap<FeatureId, Settings>,
    enabled: impl Fn(&FeatureId) -> bool,
    now: &Now,
) -> Made {
    for (feature, keys) in settings {
        if let (false, Some(key)) = (OPT_IN.contains(feature), keys.keys().next()) {
            let problem = format!("unknown key `{key}`");
            return Err(BadSettings {
                feature: feature.clone(),
                problem,
            });
        }
    }
    let of = |feature| Written {
        is_enabled: enabled(&feature),
        keys: settings.get(&feature).cloned().unwrap_or_default(),
        feature,
    };
    made(of, now)
}

/// The providers that `enabled` names, as a person checks them. One whose settings are invalid is left out.
pub fn checked_sources(
    settings: &BTreeMap<FeatureId, Settings>,
    enabled: impl Fn(&FeatureId) -> bool,
) -> Vec<Box<dyn CheckedSource>> {
    let rows: [(FeatureId, MadeSource); 6] = [
        (github::ID, checked::<github::Repository>),
        (gitlab::ID, checked::<gitlab::GitLabProject>),
        (jira::ID, checked::<jira::JiraProject>),
        (slack::ID, checked::<slack::SlackWorkspace>),
        (fireflies::ID, checked::<fireflies::MeetingAccount>),
        (clickup::ID, checked::<clickup::ClickUpList>),
    ];
    let on = rows.into_iter().filter(|(id, _)| enabled(id));
    on.filter_map(|(id, made)| made(Value::Object(settings.get(&id).cloned()?)))
        .collect()
}

/// Makes a provider of its settings.
type MadeSource = fn(Value) -> Option<Box<dyn CheckedSource>>;

fn checked<P: SourceProvider>(settings: Value) -> Option<Box<dyn CheckedSource>> {
    let settings = serde_json::from_value(settings).ok()?;
    Some(Box::new(ProviderFeature::<P>::new(settings).ok()?))
}

/// Features, or the first whose settings are invalid.
type Made = Result<Vec<Arc<dyn FeatureModule>>, BadSettings>;

/// What a user wrote about one feature.
struct Written {
    feature: FeatureId,
    is_enabled: bool,
    keys: Settings,
}

/// Nothing to set, beside a grant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn module<S: DeserializeOwned, M: FeatureModule>(
    written: Written,
    now: &Now,
    new: impl FnOnce(S, Now) -> Result<M, String>,
) -> Result<Option<Arc<dyn FeatureModule>>, BadSettings> {
    let feature = written.feature;
    let bad = |problem: String| BadSettings { feature, problem };
    let made = match serde_json::from_value(Value::Object(written.keys)) {
        Ok(settings) if written.is_enabled => new(settings, Arc::clone(now)),
        Ok(_unused) => return Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let module = made.map_err(bad)?;
    Ok(Some(Arc::new(module)))
}
