//! The parts of a pod, before its session is opened. Nothing runs and nothing is written.

use super::context::HostContext;
use super::messages::PersonMessages;
use super::session_location::{SessionLocation, WantedSession};
use crate::compose::model::{self, Built, ModelChoice, OFFLINE};
use crate::compose::packages::{self, OFF};
use crate::compose::roots::Added;
use crate::compose::secrets::ResolvedSecrets;
use crate::compose::{Composed, compose};
use crate::config::file::Mode;
use crate::config::{Config, PendingGrant};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::instructions::Instructions;
use authority::Secret;
use llm_worker::Model;
use pod::feature::{DiagnosticCode, InstallPlan, Unmet};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A pod that is composed, but not opened.
pub struct PreparedPod {
    /// As the command line has it.
    pub(super) model_name: String,
    pub(super) model: Arc<dyn Model>,
    /// The keys of models.
    pub(super) keys: Vec<Secret>,
    pub(super) secrets: ResolvedSecrets,
    pub(super) composed: Composed,
    pub(super) instructions: Instructions,
    /// The names of the commands that a person can type.
    pub commands: Vec<String>,
}

impl PreparedPod {
    /// Whether the built-in planner answers.
    pub fn is_planner(&self) -> bool {
        self.model_name == OFFLINE
    }

    /// Whether commands run without a sandbox.
    pub fn is_unconfined(&self) -> bool {
        self.composed.mode == Mode::Off
    }
}

impl HostContext<'_> {
    /// Chooses the model and the session, and plans the features. Tells the person what was chosen and what is unusual.
    pub fn prepare(
        &self,
        wanted: WantedSession<'_>,
    ) -> Result<(PreparedPod, SessionLocation), Failure> {
        let Self {
            env,
            config,
            ambient,
            messages,
            ..
        } = *self;
        let choice = self.resolved.map_or_else(
            || model::choose(config, env),
            |resolved| resolved.choice.clone(),
        );
        let Built {
            model,
            recording,
            secrets: keys,
        } = match self.resolved {
            Some(resolved) => model::build_with(ambient, &choice.name, config, env, |_| {
                Ok(resolved.key.secret(ambient))
            })?,
            None => model::build(ambient, &choice.name, config, env)?,
        };
        model::affordable(model.name(), model.price(), config, env)?;
        let added = Added {
            read: self.launch.add_dirs(),
            write: self.launch.add_write_dirs(),
        };
        let mut composed = compose(ambient, config, env, added)?;
        let secrets = match self.secrets {
            Some(resolved) => resolved.clone(),
            None => ResolvedSecrets::of(ambient, config, env)?,
        };
        let plan = composed.plan();
        invalid_settings(&plan, config)?;
        packages::strict(config, &plan, env)?;
        let roots: Vec<&Path> = composed.workspace.roots().map(|(root, _)| root).collect();
        let place = SessionLocation::choose(wanted, config, env, &composed.project.root, &roots)?;
        self.restricted(&composed, place.is_known())?;
        // A pod that is there gets the report, also of a plan that will not do: it stands in its journal then.
        if !plan.unmet.is_empty() && !place.is_known() {
            self.required(&plan.unmet, &plan)?;
        }
        if let Some(agent) = self.launch.agent() {
            messages.say(&agent.line());
            if let Some(ignored) = agent.ignored(config, env) {
                messages.say(&format!("agent {}: ignored: {ignored}", agent.name()));
            }
        }
        greet(messages, config, env, &choice, &composed, &plan);
        secrets
            .missing()
            .for_each(|why| messages.warn(&format!("warning: {why}")));
        composed
            .target_note(env)
            .iter()
            .for_each(|note| messages.say(note));
        let commands = plan.features.iter().flat_map(|feature| &feature.commands);
        let commands = commands.map(|command| command.name.clone()).collect();
        let instructions = match config.instructions.value {
            true => Instructions::read(ambient, &composed.project, env)?,
            false => Instructions::default(),
        };
        if let Some(line) = instructions.line() {
            messages.say(&line);
        }
        if let Some(file) = recording {
            messages.say(&format!("answers are written to {}", env.shown(&file)));
        }
        Ok((
            PreparedPod {
                model_name: choice.name,
                model,
                keys,
                secrets,
                composed,
                instructions,
                commands,
            },
            place,
        ))
    }

    /// What a grant restricts holds, or nothing starts. Of a pod that is there, its drift says which rules it lost.
    fn restricted(&self, composed: &Composed, is_known: bool) -> Result<(), Failure> {
        let restricts =
            |asked: &PendingGrant| RESTRICTING.iter().any(|key| asked.key.starts_with(key));
        if let Some(failure) = &self.config.grants_unread
            && self.config.pending.iter().any(restricts)
        {
            return Err(failure.clone());
        }
        let lost = composed.lost_rules()?;
        if lost.is_empty() || is_known {
            return Ok(());
        }
        if self.launch.adopts() {
            lost.iter()
                .for_each(|what| self.messages.warn(&format!("warning: {what}")));
            return Ok(());
        }
        Err(Failure::new(
            Exit::Config,
            format!("rules that you granted do not hold: {}", lost.join("; ")),
        )
        .help(Help::AdoptLostRules))
    }

    /// Nothing starts without the features the configuration requires; what became of all of them is said first.
    pub(super) fn required(&self, unmet: &[Unmet], report: impl Serialize) -> Result<(), Failure> {
        unmet.first().map_or(
            Ok(()),
            |Unmet {
                 feature_id,
                 required_by,
                 problem,
                 remedy,
                 ..
             }| {
                let mut report = serde_json::to_value(report).unwrap_or_default();
                without_reason(&mut report, &feature_id.to_string());
                let off_by = switched_off_by(&report, &feature_id.to_string());
                (self.show_report)(&report);
                let of_plugin = off_by
                    .and_then(|source| source.strip_prefix(OFF))
                    .map(str::to_owned);
                let of_plugin =
                    of_plugin.or_else(|| packages::why_absent(self.config, feature_id, self.env));
                let message = match &of_plugin {
                    Some(why) => format!(
                        "{feature_id} is required by {required_by} but is not installed: {why}"
                    ),
                    None => unavailable(&feature_id.to_string(), required_by, problem),
                };
                if of_plugin.is_some() {
                    let help = Help::RequiredPlugin(required_by.to_string());
                    return Err(Failure::new(Exit::Config, message).help(help));
                }
                let next = match off_by {
                    Some("default") => {
                        format!("set enabled = true under [features.\"{feature_id}\"]")
                    }
                    Some(source) => format!("set enabled = true in {source}"),
                    None => remedy.as_deref().unwrap_or("fix the cause").to_owned(),
                };
                Err(Failure::new(Exit::Config, message).help(format!(
                    "{next}, or delete `required = true` in {required_by}"
                )))
            },
        )
    }
}

/// Keys of a project that can restrict what a pod does, once granted.
const RESTRICTING: [&str; 3] = ["features.", "profiles.", "plugins."];

/// A feature whose settings do not fit is no feature that is merely missing: it may be a guard.
fn invalid_settings(plan: &InstallPlan, config: &Config) -> Result<(), Failure> {
    let all = plan.features.iter().flat_map(|feature| {
        feature
            .diagnostics
            .iter()
            .map(move |found| (feature, found))
    });
    let Some((feature, found)) = all
        .into_iter()
        .find(|(_, found)| found.code == DiagnosticCode::InvalidSettings)
    else {
        return Ok(());
    };
    let switches = config.features.get(&feature.feature_id.to_string());
    let message = match switches {
        Some(switches) => format!("{}: {}", switches.blamed(&found.message), found.message),
        // Nothing is written, and something must be.
        None => found.message.clone(),
    };
    Err(Failure::new(Exit::Config, message).help(Help::PlanFeatures))
}

/// Where a disabled feature is disabled.
fn switched_off_by<'a>(report: &'a Value, feature: &str) -> Option<&'a str> {
    let mut rows = report.get("features")?.as_array()?.iter();
    rows.find(|row| row.get("feature_id").and_then(Value::as_str) == Some(feature))?
        .get("disabled_by")?
        .as_str()
}

/// A report for people, without what the error after it says.
fn without_reason(report: &mut Value, feature: &str) {
    let Some(report) = report.as_object_mut() else {
        return;
    };
    report.remove("unmet");
    let features = report
        .get_mut("features")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for row in features.filter_map(Value::as_object_mut) {
        if row.get("feature_id").and_then(Value::as_str) == Some(feature) {
            row.remove("diagnostics");
        }
    }
}

/// Why a required feature is missing; `problem` may name the feature as its subject.
fn unavailable(feature: &str, required_by: &str, problem: &str) -> String {
    let problem = problem
        .strip_prefix(feature)
        .map_or(problem, str::trim_start);
    format!("{feature} is required by {required_by} but {problem}")
}

fn greet(
    messages: PersonMessages,
    config: &Config,
    env: &Env,
    choice: &ModelChoice,
    composed: &Composed,
    plan: &InstallPlan,
) {
    if let Some(warning) = config.warning() {
        messages.say(&warning);
    }
    messages.say(&format!("model: {} ({})", choice.name, choice.why));
    for line in config.asks() {
        messages.say(&line);
    }
    for line in packages::unused(config, plan, env) {
        messages.say(&line);
    }
    let provider =
        provider::catalog::split(model::bare(&choice.name)).map(|(provider, _)| provider);
    if let Some(exposed) = provider.and_then(|provider| model::in_the_clear(provider, config)) {
        // Said even to those who want no progress.
        messages.warn(&format!("warning: {exposed}"));
    }
    if let Some(failure) = &config.grants_unread {
        messages.warn(&format!("warning: {}", failure.message));
    }
    if let Some(why) = composed.project.too_wide {
        let root = authority::escape(&composed.project.root);
        messages.say(&format!(
            "{root} is read-only in this run, because {why}; start in a project directory"
        ));
    }
    if composed.mode == Mode::Off {
        // Said even to those who want no progress.
        messages.warn("warning: the sandbox is off; commands have all of your permissions");
    }
}
