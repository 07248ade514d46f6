//! Features that one start attaches over the files: a profile, an agent file, the command line. They add and narrow: what a
//! file refuses stays off, and what judges or watches calls there stays as it is.

use super::switches::Granted;
use super::{Config, Source, Sourced, Switches};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::nearest::did_you_mean;
use builtins::output_validate;
use builtins::policies::OPT_IN;
use pod::feature::FeatureDescriptor;
use std::collections::BTreeMap;

/// What is attached to a feature.
#[derive(Default)]
pub struct AttachedFeature {
    pub settings: BTreeMap<String, Sourced<toml::Value>>,
    pub grants: Vec<Granted>,
    pub required: Option<Sourced<bool>>,
}

/// Who switches a feature off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detacher {
    /// A person, who may take back what this start attached.
    Person,
    /// A file that may come from elsewhere.
    AgentFile,
}

/// A configuration under the layers of one start.
pub struct Attaching<'a> {
    config: &'a mut Config,
    env: &'a Env,
    declared: Vec<FeatureDescriptor>,
}

impl<'a> Attaching<'a> {
    /// Over this configuration.
    pub fn new(config: &'a mut Config, env: &'a Env) -> Self {
        let declared = config.declared(env);
        Self {
            config,
            env,
            declared,
        }
    }

    /// The configuration as it is by now.
    pub fn config(&mut self) -> &mut Config {
        self.config
    }

    /// The names of all tools that are declared.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self
            .declared
            .iter()
            .flat_map(|feature| &feature.declared_tools);
        tools.map(|tool| tool.name.as_str()).collect()
    }

    /// Whether a feature is on by now.
    pub fn is_on(&self, id: &str) -> bool {
        let by_default = !OPT_IN.iter().any(|known| known.to_string() == id)
            || id == output_validate::ID.to_string();
        let switches = self.config.features.get(id);
        switches.map_or(by_default, |switches| {
            if by_default {
                switches.off().is_none()
            } else {
                switches.on()
            }
        })
    }

    /// Switches a feature on.
    pub fn on(
        &mut self,
        id: &str,
        source: &Source,
        addition: AttachedFeature,
    ) -> Result<(), Failure> {
        self.known(id, source)?;
        let was_on = self.is_on(id);
        let AttachedFeature {
            settings,
            grants,
            required,
        } = addition;
        let switches = self.config.features.entry(id.to_owned()).or_default();
        if let Some(place) = switches.off() {
            let what = format!("{source}: {id} is switched off in {place}");
            return Err(
                Failure::new(Exit::Config, what).help("set enabled = true there, or leave it off")
            );
        }
        let adds = !settings.is_empty() || !grants.is_empty();
        if was_on && adds && switches.is_chosen() {
            let what = format!(
                "{source}: {id} is on already, with the settings of {}",
                switches.at
            );
            return Err(Failure::new(Exit::Config, what)
                .help("change these settings there, or attach it without settings"));
        }
        if !was_on {
            switches.enabled = Some(Sourced::new(true, source.clone()));
            switches.attached = true;
        }
        if adds || !was_on {
            switches.at.clone_from(source);
        }
        switches.settings.extend(settings);
        switches.grants.extend(grants);
        if required.as_ref().is_some_and(|required| required.value) {
            switches.required = required;
        }
        Ok(())
    }

    /// Switches a feature off: one that this start attached, or one that only takes tools with it.
    pub fn off(&mut self, id: &str, source: &Source, who: Detacher) -> Result<(), Failure> {
        let declared = self.known(id, source)?;
        let is_plain = declared.declared_hooks.is_empty()
            && declared.declared_background_tasks.is_empty()
            && declared.rules.is_empty();
        if !self.is_on(id) {
            return Ok(());
        }
        let switches = self.config.features.entry(id.to_owned()).or_default();
        let refused = |why: String, help: String| {
            Err(Failure::new(Exit::Config, format!("{source}: {id} {why}"))
                .help(format!("{help}, or leave it on")))
        };
        if let Some(place) = switches.required() {
            return refused(
                format!("is required by {place}"),
                "change it there".to_owned(),
            );
        }
        let own = switches.attached && who == Detacher::Person;
        if !(own || is_plain) {
            let place = switches
                .enabled
                .as_ref()
                .map_or("default", |enabled| &enabled.source);
            let help =
                format!("set enabled = false under [features.\"{id}\"] in your own configuration");
            return refused(
                format!("judges or watches what the model does, and is switched on by {place}"),
                help,
            );
        }
        switches.enabled = Some(Sourced::new(false, source.clone()));
        switches.attached = true;
        Ok(())
    }

    /// The layer that is called `name` in the files.
    pub fn profile(&mut self, name: &Sourced<String>) -> Result<(), Failure> {
        let Some(profile) = self.config.profiles.get(&name.value).cloned() else {
            let known: Vec<&str> = self.config.profiles.keys().map(String::as_str).collect();
            let what = format!("{}: there is no profile `{}`", name.source, name.value);
            let help = match known.as_slice() {
                [] => format!(
                    "write [profiles.{}.features.\"ID\"] into your configuration file",
                    name.value
                ),
                known => format!(
                    "{}known: {}",
                    did_you_mean(&name.value, known),
                    known.join(", ")
                ),
            };
            return Err(Failure::new(Exit::Config, what).help(help));
        };
        for (
            id,
            Switches {
                at,
                enabled,
                required,
                grants,
                settings,
                ..
            },
        ) in profile
        {
            let source = format!("profile {} ({at})", name.value);
            match enabled {
                Some(Sourced { value: false, .. }) => self.off(&id, &source, Detacher::Person)?,
                _ => self.on(
                    &id,
                    &source,
                    AttachedFeature {
                        settings,
                        grants,
                        required,
                    },
                )?,
            }
        }
        Ok(())
    }

    /// Keeps these tools only.
    pub fn only_tools(&mut self, tools: Sourced<Vec<String>>) -> Result<(), Failure> {
        let known: Vec<&str> = self
            .declared
            .iter()
            .flat_map(|feature| &feature.declared_tools)
            .map(|tool| tool.name.as_str())
            .collect();
        if let Some(tool) = tools
            .value
            .iter()
            .find(|tool| !known.contains(&tool.as_str()))
        {
            let what = format!("{}: there is no tool `{tool}`", tools.source);
            let help = format!("{}known: {}", did_you_mean(tool, &known), known.join(", "));
            return Err(Failure::new(Exit::Config, what).help(help));
        }
        self.config.only_tools = Some(tools);
        Ok(())
    }

    /// The names of the skills that there are by now.
    pub fn skills(&self) -> Vec<String> {
        let found = self.config.skills(self.env).skills.iter();
        found.map(|skill| skill.name.clone()).collect()
    }

    /// Keeps these skills only.
    pub fn only_skills(&mut self, skills: Sourced<Vec<String>>) -> Result<(), Failure> {
        let known = self.skills();
        if let Some(skill) = skills.value.iter().find(|skill| !known.contains(skill)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let what = format!("{}: there is no skill `{skill}`", skills.source);
            let help = format!("{}known: {}", did_you_mean(skill, &known), known.join(", "));
            return Err(Failure::new(Exit::Config, what).help(help));
        }
        self.config.keep_skills(skills);
        Ok(())
    }

    fn known(&self, id: &str, source: &Source) -> Result<&FeatureDescriptor, Failure> {
        self.declared
            .iter()
            .find(|feature| feature.id.to_string() == id)
            .ok_or_else(|| {
                let ids: Vec<String> = self
                    .declared
                    .iter()
                    .map(|feature| feature.id.to_string())
                    .collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let help = format!("{}known: {}", did_you_mean(id, &ids), ids.join(", "));
                Failure::new(
                    Exit::Config,
                    format!("{source}: there is no feature `{id}`"),
                )
                .help(help)
            })
    }
}

impl Switches {
    /// Whether somebody said more of it than that it is off.
    fn is_chosen(&self) -> bool {
        self.on() || !self.settings.is_empty() || !self.grants.is_empty()
    }
}
