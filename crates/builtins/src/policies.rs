//! The features with settings, each of a type of its own; they are off until configured, except the one that waits for
//! inputs with a schema.

use crate::circuit_breaker::{self, CircuitBreaker};
use crate::clock::Now;
use crate::command_blocklist::{self, CommandBlocklist};
use crate::confirm_gate::{self, ConfirmGate};
use crate::dedup::{self, Dedup};
use crate::jobs::{self, Jobs};
use crate::list_features::{self, ListFeatures};
use crate::loop_detect::{self, LoopDetect};
use crate::memory::{self, Memory};
use crate::notes_router::{self, NotesRouter};
use crate::notify_person::{self, NotifyPerson};
use crate::output_validate::{self, OutputValidate};
use crate::phase_recorder::{self, PhaseRecorder};
use crate::redact::{self, Redact};
use crate::retry::{self, Retry};
use crate::schedule::{self, ScheduledPrompts};
use crate::step_tracer::{self, StepTracer};
use crate::watch::{self, ProjectWatch};
use crate::web::{self, Pages};
use crate::work_item::{self, WorkItems};
use crate::work_item_intake::{self, Intake};
use crate::write_policy::{self, WritePolicy};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureModule};
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

/// The ids of built-in features that are off unless the configuration enables them, and of `builtin:output-validate`, which has
/// settings, too.
pub const OPT_IN: [FeatureId; 21] = [
    loop_detect::ID,
    circuit_breaker::ID,
    write_policy::ID,
    phase_recorder::ID,
    work_item::ID,
    memory::ID,
    notes_router::ID,
    web::ID,
    command_blocklist::ID,
    confirm_gate::ID,
    schedule::ID,
    notify_person::ID,
    work_item_intake::ID,
    watch::ID,
    jobs::ID,
    list_features::ID,
    redact::ID,
    retry::ID,
    dedup::ID,
    output_validate::ID,
    step_tracer::ID,
];

/// The descriptors of all [`OPT_IN`] features, for plans in which they are off.
#[must_use]
pub fn declared() -> Vec<FeatureDescriptor> {
    vec![
        loop_detect::declared(),
        circuit_breaker::declared(),
        write_policy::declared(),
        phase_recorder::declared(),
        work_item::declared(),
        memory::declared(),
        notes_router::declared(),
        web::declared(),
        command_blocklist::declared(),
        confirm_gate::declared(),
        schedule::declared(),
        notify_person::declared(),
        work_item_intake::declared(),
        watch::declared(),
        jobs::declared(),
        list_features::declared(),
        redact::declared(),
        retry::declared(),
        dedup::declared(),
        output_validate::declared(),
        step_tracer::declared(),
    ]
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
) -> Result<Vec<Arc<dyn FeatureModule>>, BadSettings> {
    for (feature, keys) in settings {
        if let (false, Some(key)) = (OPT_IN.contains(feature), keys.keys().next()) {
            let problem = format!("unknown key `{key}`");
            return Err(BadSettings {
                feature: feature.clone(),
                problem,
            });
        }
    }
    let of = |id: FeatureId| {
        (
            enabled(&id),
            settings.get(&id).cloned().unwrap_or_default(),
            id,
        )
    };
    let mut modules: Vec<Arc<dyn FeatureModule>> = Vec::new();
    modules.extend(module(of(loop_detect::ID), LoopDetect::new)?);
    modules.extend(module(of(circuit_breaker::ID), |settings| {
        CircuitBreaker::new(settings, Arc::clone(now))
    })?);
    modules.extend(module(of(write_policy::ID), WritePolicy::new)?);
    modules.extend(module(of(phase_recorder::ID), |Nothing {}| {
        Ok(PhaseRecorder)
    })?);
    modules.extend(module(of(work_item::ID), |settings| {
        WorkItems::new(settings, Arc::clone(now))
    })?);
    modules.extend(module(of(memory::ID), |Nothing {}| {
        Ok(Memory::new(Arc::clone(now)))
    })?);
    modules.extend(module(of(notes_router::ID), |Nothing {}| Ok(NotesRouter))?);
    modules.extend(module(of(web::ID), |Nothing {}| Ok(Pages))?);
    modules.extend(module(of(command_blocklist::ID), CommandBlocklist::new)?);
    modules.extend(module(of(confirm_gate::ID), ConfirmGate::new)?);
    modules.extend(module(of(watch::ID), |settings| {
        Ok(ProjectWatch(settings))
    })?);
    modules.extend(module(of(schedule::ID), |settings| {
        ScheduledPrompts::new(settings, Arc::clone(now))
    })?);
    modules.extend(module(of(notify_person::ID), |settings| {
        NotifyPerson::new(settings, Arc::clone(now))
    })?);
    modules.extend(module(of(work_item_intake::ID), |settings| {
        Intake::new(settings, Arc::clone(now))
    })?);
    modules.extend(module(of(jobs::ID), Jobs::new)?);
    modules.extend(module(of(list_features::ID), |Nothing {}| {
        Ok(ListFeatures)
    })?);
    modules.extend(module(of(redact::ID), Redact::new)?);
    modules.extend(module(of(retry::ID), Retry::new)?);
    modules.extend(module(of(dedup::ID), Dedup::new)?);
    modules.extend(module(of(output_validate::ID), OutputValidate::new)?);
    modules.extend(module(of(step_tracer::ID), |Nothing {}| {
        Ok(StepTracer::new(Arc::clone(now)))
    })?);
    Ok(modules)
}

/// Nothing to set, beside a grant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn module<S: DeserializeOwned, M: FeatureModule>(
    (enabled, keys, feature): (bool, Settings, FeatureId),
    new: impl FnOnce(S) -> Result<M, String>,
) -> Result<Option<Arc<dyn FeatureModule>>, BadSettings> {
    let bad = |problem: String| BadSettings {
        feature: feature.clone(),
        problem,
    };
    let typed =
        serde_json::from_value(Value::Object(keys)).map_err(|error| bad(error.to_string()))?;
    if !enabled {
        return Ok(None);
    }
    new(typed)
        .map(|module| Some(Arc::new(module) as Arc<dyn FeatureModule>))
        .map_err(bad)
}
