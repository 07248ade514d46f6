//! What a configuration makes of the features of this build: which are on, with which settings, under which policy.

use super::grants;
use super::off::{Off, is_unused};
use super::packages::{self, Packages};
use super::servers;
use super::settings::written;
use super::sources::Sources;
use crate::config::parser_text::in_words;
use crate::config::{Config, Granted, Sourced, Switches};
use crate::env::Env;
use crate::exit::{Exit, Failure, Help};
use crate::nearest::did_you_mean;
use builtins::Now;
use builtins::commands::{self, Commands};
use builtins::format;
use builtins::notify_person;
use builtins::output_validate;
use builtins::policies::{BadSettings, OPT_IN, Settings};
use builtins::skills::{self, Skills};
use builtins::tool_search;
use pod::feature::{CapabilityPolicy, FeatureDescriptor, FeatureId, FeatureModule};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The keys that every feature has.
const COMMON: [&str; 3] = ["enabled", "grant", "required"];

/// The features of this build under a configuration.
pub struct Switched {
    /// Who may have what, who is off and who must be there.
    pub policy: CapabilityPolicy,
    /// Every feature, those that are off included.
    pub modules: Vec<Arc<dyn FeatureModule>>,
    /// Those with settings that are on.
    pub on: BTreeSet<FeatureId>,
    /// The file with the URL of the webhook of `builtin:notify-person`, and where it is set.
    pub webhook: Option<Sourced<PathBuf>>,
    /// Those plugins that the person granted, and what is wrong with others.
    pub packages: Packages,
}

/// Decides; features and tools that the configuration names must be those of this build.
pub fn switched(config: &Config, env: &Env) -> Result<Switched, Failure> {
    let declared = config.declared(env);
    names(config, env, &declared)?;
    let mut on: BTreeSet<FeatureId> = config
        .features
        .iter()
        .filter(|(_, switches)| switches.on())
        .filter_map(|(id, _)| id.parse().ok())
        .collect();
    let settings = written(config)?;
    let opted = opted_in(config, &settings, &on)?;
    let sources = Sources::of(config, env, &opted);
    on.extend(on_by_default(config, env, &sources));
    let mut modules = builtins::all(env.words.path);
    // What is on by default has settings, too.
    modules.extend(opted_in(config, &settings, &on)?);
    modules.extend(env.added.modules());
    let unused: Vec<FeatureId> = declared
        .iter()
        .filter(|feature| is_unused(config, feature))
        .map(|feature| feature.id.clone())
        .collect();
    let off = declared
        .into_iter()
        .filter(|feature| OPT_IN.contains(&feature.id) && !on.contains(&feature.id));
    let mut policy = env.added.granted(grants::defaults());
    policy = with_skills(config, env, policy, &mut modules);
    policy = sources.decided(policy, &mut modules);
    for feature in off {
        policy = policy.disable(feature.id.clone(), "default");
        modules.push(Arc::new(Off(feature)));
    }
    let mut packages = Packages::default();
    policy = packages::decided(config, env, policy, &mut modules, &mut packages);
    let mut problems = Vec::new();
    let off = |launch: &_| servers::withheld(packages::mode(config), launch);
    policy = servers::decided(config, env, policy, &mut modules, &mut problems, off);
    packages.add_problems(problems);
    for (id, switches) in &config.features {
        let Ok(id) = id.parse::<FeatureId>() else {
            continue;
        };
        for Granted { table, at, keys } in &switches.grants {
            policy = policy.configured(&id, table, at).map_err(|bad| {
                let message = format!(
                    "{}: features.\"{id}\".{bad}",
                    keys.get(bad.key).unwrap_or(at)
                );
                Failure::new(Exit::Config, message).help(grant_example(bad.key))
            })?;
        }
        if let Some(source) = switches.off() {
            policy = policy.disable(id.clone(), source);
        }
        if let Some(source) = switches.on_by() {
            policy = policy.attach(id.clone(), source);
        }
        if let Some(source) = switches.required() {
            policy = policy.require(id, source);
        }
    }
    policy = settings.into_iter().fold(policy, |policy, (id, settings)| {
        policy.settings(id, settings)
    });
    if let Some(Sourced {
        value: tools,
        source,
    }) = &config.only_tools
    {
        policy = policy.only_tools(tools.iter().cloned(), source);
        policy = unused
            .into_iter()
            .fold(policy, |policy, id| policy.disable(id, source));
    }
    let webhook = webhook(config, &on);
    Ok(Switched {
        policy,
        modules,
        on,
        webhook,
        packages,
    })
}

/// The features with settings that are on without any, unless they are switched off. The one is asked about nothing but
/// inputs with a schema, the other about results of servers and providers.
fn on_by_default(config: &Config, env: &Env, sources: &Sources) -> Vec<FeatureId> {
    let mut ids = vec![output_validate::ID];
    if !config.servers(env).all.is_empty() || sources.has_provider {
        ids.push(format::ID);
    }
    ids.retain(|id| {
        let switches = config.features.get(&id.to_string());
        switches.is_none_or(|switches| switches.off().is_none())
    });
    ids
}

/// Adds the skills and commands that were found. Their features are off where there are none.
fn with_skills(
    config: &Config,
    env: &Env,
    mut policy: CapabilityPolicy,
    modules: &mut Vec<Arc<dyn FeatureModule>>,
) -> CapabilityPolicy {
    let found = config.skills(env);
    if found.skills.is_empty() {
        policy = policy.disable(skills::ID, "default");
    }
    if found.commands.is_empty() {
        policy = policy.disable(commands::ID, "default");
    }
    modules.push(Arc::new(Commands(
        found.commands.clone(),
        found.command_check(),
    )));
    modules.push(Arc::new(Skills(found.skills.clone(), found.skill_check())));
    policy
}

fn webhook(config: &Config, on: &BTreeSet<FeatureId>) -> Option<Sourced<PathBuf>> {
    let switches = config
        .features
        .get(&notify_person::ID.to_string())
        .filter(|_| on.contains(&notify_person::ID))?;
    let Sourced { value, source } = switches.settings.get("webhook_file")?;
    Some(Sourced::new(value.as_str()?.into(), source.clone()))
}

/// Refuses names of features and tools that this build does not have.
fn names(config: &Config, env: &Env, declared: &[FeatureDescriptor]) -> Result<(), Failure> {
    let ids: Vec<String> = declared
        .iter()
        .map(|feature| feature.id.to_string())
        .collect();
    for (id, switches) in &config.features {
        if let Err(error) = id.parse::<FeatureId>() {
            let message = format!("{}: {error}", switches.at);
            return Err(Failure::new(Exit::Config, message).help(Help::ListFeatures));
        }
        // A plugin that is not there costs nothing but itself.
        if !id.starts_with("plugin:") {
            known(&switches.at, "feature", id, &ids)?;
        }
    }
    let tools = declared
        .iter()
        .flat_map(|feature| &feature.declared_tools)
        .map(|tool| tool.name.clone());
    // No rule is about the tool that calls others: it is judged as a call of the other one.
    let tools = tools.filter(|tool| tool != tool_search::CALLER);
    let tools: Vec<String> = tools.chain(["*".to_owned()]).collect();
    // A rule may be about a tool of a plugin that cannot be read.
    let is_incomplete = config.plugins(env).is_incomplete();
    for layer in &config.rules {
        for written in &layer.rules {
            if is_incomplete && written.rule.tool != tool_search::CALLER {
                continue;
            }
            known(
                &format!("{}: {}.tool", written.place("tool"), written.key()),
                "tool",
                &written.rule.tool,
                &tools,
            )?;
        }
    }
    Ok(())
}

fn known(place: &str, what: &str, name: &str, all: &[String]) -> Result<(), Failure> {
    if all.iter().any(|known| known == name) {
        return Ok(());
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let meant = did_you_mean(name, &all);
    let help = format!("{meant}known: {}", all.join(", "));
    Err(Failure::new(
        Exit::Config,
        format!("{place}: there is no {what} `{name}`"),
    )
    .help(help))
}

/// The features that are off until configured, with their settings, where they are on.
fn opted_in(
    config: &Config,
    settings: &BTreeMap<FeatureId, Settings>,
    on: &BTreeSet<FeatureId>,
) -> Result<Vec<Arc<dyn FeatureModule>>, Failure> {
    let now: Now = Arc::new(SystemTime::now);
    // Those of plugins and of the program are checked by the plan, against the schemas that they declare.
    let is_built_in = |id: &FeatureId| id.to_string().starts_with("builtin:");
    let settings = settings.iter().filter(|(id, _)| is_built_in(id));
    let settings = &settings
        .map(|(id, own)| (id.clone(), own.clone()))
        .collect::<BTreeMap<_, _>>();
    let made = |settings: &BTreeMap<FeatureId, Settings>| {
        builtins::policies::with_settings(settings, |id| on.contains(id), &now)
    };
    made(settings).map_err(|bad| {
        let blamed = blamed(settings, &bad, |without| made(without).err());
        unfit(
            config.features.get(&bad.feature.to_string()),
            &bad,
            blamed.as_deref(),
        )
    })
}

/// The key that is to blame: the one the problem names, else the one without which there is another problem or none.
fn blamed(
    settings: &BTreeMap<FeatureId, Settings>,
    bad: &BadSettings,
    retry: impl Fn(&BTreeMap<FeatureId, Settings>) -> Option<BadSettings>,
) -> Option<String> {
    let own = settings.get(&bad.feature)?;
    let named = bad
        .problem
        .split('`')
        .skip(1)
        .step_by(2)
        .find(|name| own.contains_key(*name));
    named.map(str::to_owned).or_else(|| {
        let without = |key: &&String| {
            let mut fewer = settings.clone();
            fewer.get_mut(&bad.feature).map(|own| own.remove(*key));
            retry(&fewer).as_ref() != Some(bad)
        };
        own.keys().find(without).cloned()
    })
}

fn unfit(switches: Option<&Switches>, bad: &BadSettings, key: Option<&str>) -> Failure {
    let place = switches.map_or("", |switches| {
        key.map_or(&switches.at, |key| switches.place(key))
    });
    let text = in_words(&bad.problem, key);
    // Most problems name their key.
    let field = key
        .filter(|key| !text.contains(&format!("`{key}`")))
        .map(|key| format!(".{key}"))
        .unwrap_or_default();
    let message = format!("{place}: features.\"{}\"{field}: {text}", bad.feature);
    let failure = Failure::new(Exit::Config, message);
    let unknown = key.filter(|key| {
        bad.problem.contains(&format!("unknown field `{key}`"))
            || bad.problem.contains(&format!("unknown key `{key}`"))
    });
    let Some(unknown) = unknown else {
        return failure.help(setting_example(key, &text));
    };
    let expected = bad
        .problem
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| *name != unknown);
    let known: Vec<&str> = expected.chain(COMMON).collect();
    failure.help(format!(
        "{}known keys: {}",
        did_you_mean(unknown, &known),
        known.join(", ")
    ))
}

/// How a setting of a feature is written; a required one has no default.
fn setting_example(key: Option<&str>, problem: &str) -> &'static str {
    match key {
        None if !problem.contains("scopes") => "write the setting below the table of the feature",
        None | Some("scopes") => {
            "write paths below the project, such as scopes = [\"src\", \"docs\"]"
        }
        Some("patterns") => {
            "write programs with their first words, such as patterns = [\"git push\"]"
        }
        Some(_) => "delete the line to use the default",
    }
}

/// How a grant is written.
fn grant_example(key: &str) -> Help {
    match key {
        "process" => "name programs, such as process = [\"git\", \"cargo\"]".into(),
        "fs" => "write access to a directory, such as fs = { workspace = \"read\" }".into(),
        "tools" => "name tools, such as tools = [\"Read\"]".into(),
        _ => Help::GrantForms,
    }
}
