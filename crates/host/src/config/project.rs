//! What a project's file may do by itself: narrow. Everything else in it asks.
//!
//! At once act: `model`, if it is `offline` or its provider is known outside the file; `[limits]`, where they are lower;
//! rules that ask or deny; more names of files that may hold secrets; features required, where that switches nothing on, or switched off, unless the user switched
//! them on; `strict` plugins; a stricter sandbox. All other keys are inert until the user grants exactly what they say. A rule that is
//! granted and allows stands below the rules of the user's own files, so it overrules none of them.

use super::file::{ContextConfig, Feature, File, McpConfig, ModelConfig, NetworkMode, Sandbox};
use super::grants::Grants;
use super::pending::PendingGrant;
use super::read::Text;
use super::{Config, FileRules, Source, Sourced, WrittenRule, hosts, set};
use crate::compose::model;
use crate::limits::LimitsConfig;
use builtins::policies::OPT_IN;
use pod::permission::{Rule, RuleDecision};
use std::collections::BTreeMap;

/// The keys of one file that ask.
pub(super) struct Narrowing<'a> {
    pub(super) text: &'a Text,
    grants: &'a Grants,
    pending: Vec<PendingGrant>,
}

impl Narrowing<'_> {
    /// Whether what stands there was granted; it is pending otherwise.
    pub(super) fn granted(&mut self, path: &[&str]) -> bool {
        let Some(asked) = PendingGrant::at(self.text, path) else {
            return false;
        };
        let granted = self.grants.has(&asked.digest);
        if !granted {
            self.pending.push(asked);
        }
        granted
    }

    /// The granted entries of a table.
    fn entries<T>(&mut self, table: &str, entries: BTreeMap<String, T>) -> BTreeMap<String, T> {
        entries
            .into_iter()
            .filter(|(name, _)| self.granted(&[table, name]))
            .collect()
    }
}

impl Config {
    /// Takes a file above the repository of the project: only what narrows.
    pub(super) fn narrow_from_above(&mut self, mut text: Text) {
        text.file.model = None;
        let pending = std::mem::take(&mut self.pending);
        self.narrow(text, &Grants::none());
        self.pending = pending;
    }

    /// Takes a project's file.
    pub(super) fn narrow(&mut self, mut text: Text, grants: &Grants) {
        let file = std::mem::take(&mut text.file);
        // A file with keys for its reader alone was refused.
        let File {
            model,
            providers,
            models,
            secrets,
            limits,
            context,
            embeddings: _,
            permissions,
            features,
            profiles,
            plugins,
            mcp,
            sandbox,
            state,
            terminal: _,
            ca_file: _,
            instructions,
        } = file;
        let mut asking = Narrowing {
            text: &text,
            grants,
            pending: Vec::new(),
        };
        let mut accepted = File {
            providers: asking.entries("providers", providers),
            secrets: asking.entries("secrets", secrets),
            models: granted_models(models, &mut asking),
            ..File::default()
        };
        self.lower_limits(&limits, |key| text.place(&[&["limits"], key].concat()));
        self.add_secrets(permissions.secrets, &|key| text.place(key));
        self.narrow_rules(permissions.rules, &mut asking);
        for (id, feature) in features {
            if let Some(granted) = self.narrow_feature(&id, feature, &mut asking) {
                accepted.features.insert(id, granted);
            }
        }
        for (name, profile) in profiles {
            // A profile of the person's own stays what it is.
            if !self.profiles.contains_key(&name) && asking.granted(&["profiles", &name]) {
                accepted.profiles.insert(name, profile);
            }
        }
        accepted.plugins = self.narrow_plugins(plugins, &mut asking);
        accepted.sandbox = self.narrow_sandbox(sandbox, &mut asking);
        if state
            .any_file_system
            .is_some_and(|any| any != self.any_file_system.value)
            && asking.granted(&["state", "any_file_system"])
        {
            accepted.state.any_file_system = state.any_file_system;
        }
        accepted.context = self.narrow_context(context, &mut asking);
        accepted.mcp = self.narrow_mcp(mcp, &mut asking);
        // The user's own instructions are among those that would be left out.
        if instructions.is_some_and(|read| read != self.instructions.value)
            && asking.granted(&["instructions"])
        {
            accepted.instructions = instructions;
        }
        self.layer(accepted, &|key| granted_at(&text, key));
        if let Some(name) = model {
            self.narrow_model(name, &mut asking);
        }
        self.pending.append(&mut asking.pending);
    }

    /// What is stricter counts; what is laxer asks.
    fn narrow_sandbox(&mut self, asked: Sandbox, asking: &mut Narrowing<'_>) -> Sandbox {
        // With the whole network, any list of hosts is a narrower one.
        let had_all = self.network.value == NetworkMode::On;
        let mode = narrow_choice(&mut self.sandbox, asked.mode, "mode", asking);
        let network = narrow_choice(&mut self.network, asked.network, "network", asking);
        let narrows = |hosts: &Vec<String>| had_all || hosts::is_within(hosts, &self.hosts.value);
        let (narrower, wider) = match asked.hosts {
            Some(hosts) if narrows(&hosts) => (Some(hosts), None),
            wider => (None, wider),
        };
        self.hosts
            .set(narrower, || asking.text.place(&["sandbox", "hosts"]));
        Sandbox {
            mode,
            network,
            hosts: wider.filter(|_| asking.granted(&["sandbox", "hosts"])),
        }
    }

    /// A script or a recording is no choice among models: what they do on this machine is the file's. A model whose
    /// provider nobody knows here waits for it.
    fn narrow_model(&mut self, name: String, asking: &mut Narrowing<'_>) {
        let plain = !name.starts_with(model::SCRIPTED) && !name.starts_with(model::RECORD);
        if !model::is_one(&name) || (plain && model::named(&name, self).is_ok()) {
            // One that can be no model's name is refused where everything in force is checked.
            self.model = Some(Sourced::new(name, asking.text.place(&["model"])));
        } else if model::named(&name, self).is_err() {
            asking
                .pending
                .extend(PendingGrant::at(asking.text, &["model"]));
        } else if asking.granted(&["model"]) {
            self.model = Some(Sourced::new(name, granted_at(asking.text, &["model"])));
        }
    }

    /// Takes the limits that are lower than those in force; `at` gives the source of a key.
    pub fn lower_limits(&mut self, file: &LimitsConfig, at: impl Fn(&[&str]) -> Source) {
        self.limits
            .narrow(|row| (row.of_run)(file), |row| at(&[row.key]));
        let calls = file.tool_concurrency;
        let calls = calls.filter(|calls| *calls < self.tool_concurrency.value);
        self.tool_concurrency
            .set(calls, || at(&["tool_concurrency"]));
        self.pod_limits
            .narrow(|row| (row.of_pod)(&file.pod), |row| at(&["pod", row.key]));
    }

    fn narrow_rules(&mut self, rules: Vec<Rule>, asking: &mut Narrowing<'_>) {
        let text = asking.text;
        let mut narrowing = Vec::new();
        let mut allowing = Vec::new();
        for (index, rule) in rules.into_iter().enumerate() {
            match rule.decision {
                RuleDecision::Ask | RuleDecision::Deny => {
                    narrowing.push(WrittenRule::new(rule, index, &|key| text.place(key)));
                }
                RuleDecision::Allow => {
                    let path = ["permissions", "rules", &index.to_string()];
                    if asking.granted(&path) {
                        allowing.push(WrittenRule::new(rule, index, &|key| granted_at(text, key)));
                    }
                }
            }
        }
        if let Some(allowing) =
            FileRules::of(format!("{}, granted", text.shown()), allowing.into_iter())
        {
            self.rules.insert(0, allowing);
        }
        let narrowing = FileRules::of(text.shown().to_owned(), narrowing.into_iter());
        self.rules.extend(narrowing.map(|rules| FileRules {
            tightens: true,
            ..rules
        }));
    }

    fn narrow_context(&self, context: ContextConfig, asking: &mut Narrowing<'_>) -> ContextConfig {
        let ContextConfig {
            protect_tokens,
            prune_at,
            compact_at,
        } = context;
        let most = protect_tokens.filter(|most| *most != self.protect_tokens.value);
        let prune = prune_at.filter(|at| *at != self.prune_at.value);
        let compact = compact_at.filter(|at| *at != self.compact_at.value);
        ContextConfig {
            protect_tokens: most.filter(|_| asking.granted(&["context", "protect_tokens"])),
            prune_at: prune.filter(|_| asking.granted(&["context", "prune_at"])),
            compact_at: compact.filter(|_| asking.granted(&["context", "compact_at"])),
        }
    }

    fn narrow_mcp(&self, mcp: McpConfig, asking: &mut Narrowing<'_>) -> McpConfig {
        let McpConfig { defer, always } = mcp;
        let defer = defer.filter(|most| *most != self.mcp_defer.value);
        let always = always.filter(|tools| *tools != self.mcp_always.value);
        McpConfig {
            defer: defer.filter(|_| asking.granted(&["mcp", "defer"])),
            always: always.filter(|_| asking.granted(&["mcp", "always"])),
        }
    }

    /// Switches off and requires; gives what else was granted.
    fn narrow_feature(
        &mut self,
        id: &str,
        feature: Feature,
        asking: &mut Narrowing<'_>,
    ) -> Option<Feature> {
        let Feature {
            enabled,
            required,
            grant,
            settings,
        } = feature;
        let text = asking.text;
        let place = |key: &str| text.place(&["features", id, key]);
        let opt_in = OPT_IN.iter().any(|feature| feature.to_string() == id);
        let switches = self.features.entry(id.to_owned()).or_default();
        switches.at = text.place(&["features", id]);
        let on = if opt_in {
            switches.on()
        } else {
            switches.off().is_none()
        };
        let mut granted = |key: &str| asking.granted(&["features", id, key]);
        let switched_on = enabled == Some(true) && !on && granted("enabled");
        // What a person switched on may be a gate, and a plugin that they granted may have rules: only they switch it off.
        let chosen = (opt_in || id.starts_with("plugin:")) && on;
        set(
            &mut switches.enabled,
            enabled.filter(|enabled| !enabled && !chosen),
            || place("enabled"),
        );
        let switched_off = enabled == Some(false) && chosen && granted("enabled");
        set(
            &mut switches.expected,
            required.filter(|required| *required),
            || place("required"),
        );
        let grant = grant.filter(|_| granted("grant"));
        let settings: toml::Table = settings
            .into_iter()
            .filter(|(key, _)| granted(key))
            .collect();
        let switched = (switched_on || switched_off).then_some(switched_on);
        let something = switched.is_some() || grant.is_some() || !settings.is_empty();
        something.then_some(Feature {
            enabled: switched,
            required: None,
            grant,
            settings,
        })
    }
}

/// What of the models was granted.
fn granted_models(
    models: BTreeMap<String, ModelConfig>,
    asking: &mut Narrowing<'_>,
) -> BTreeMap<String, ModelConfig> {
    let mut accepted = BTreeMap::new();
    for (
        name,
        ModelConfig {
            price,
            max_output,
            effort,
            thinking,
            images,
            context,
            timeouts,
        },
    ) in models
    {
        let mut part = |key: &str, there: bool| there && asking.granted(&["models", &name, key]);
        let priced = part("price", price.is_some());
        let bounded = part("max_output", max_output.is_some());
        let sized = part("context", context.is_some());
        let asked = part("effort", effort.is_some());
        let shown = part("thinking", thinking.is_some());
        let seen = part("images", images.is_some());
        let waits = part("timeouts", timeouts.is_some());
        let granted = ModelConfig {
            price: price.filter(|_| priced),
            max_output: max_output.filter(|_| bounded),
            effort: effort.filter(|_| asked),
            thinking: thinking.filter(|_| shown),
            images: images.filter(|_| seen),
            context: context.filter(|_| sized),
            timeouts: timeouts.filter(|_| waits),
        };
        if priced || bounded || sized || asked || shown || seen || waits {
            accepted.insert(name, granted);
        }
    }
    accepted
}

/// Takes a choice that is stricter than the one in force; returns a laxer one that was granted.
fn narrow_choice<T: Copy + PartialOrd>(
    now: &mut Sourced<T>,
    asked: Option<T>,
    key: &str,
    asking: &mut Narrowing<'_>,
) -> Option<T> {
    let path = ["sandbox", key];
    let asked = asked?;
    if asked < now.value {
        *now = Sourced::new(asked, asking.text.place(&path));
    }
    (asked > now.value && asking.granted(&path)).then_some(asked)
}

/// The place of something that acts because it was granted.
pub(super) fn granted_at(text: &Text, key: &[&str]) -> Source {
    format!("{}, granted", text.place(key))
}

impl Config {
    /// One line for each project file that asks for what is not granted.
    pub fn asks(&self) -> Vec<String> {
        let mut files: BTreeMap<&str, usize> = BTreeMap::new();
        for asked in &self.pending {
            *files.entry(&asked.file).or_default() += 1;
        }
        let line = |(file, count): (&str, usize)| match count {
            1 => format!("{file} has 1 pending entry (`yoi grant` lists it)"),
            _ => format!("{file} has {count} pending entries (`yoi grant` lists them)"),
        };
        files.into_iter().map(line).collect()
    }
}
