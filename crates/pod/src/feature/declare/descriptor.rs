//! A feature's descriptor: pure, bounded data without secrets, safe to show anywhere. Does not depend on the host.

use super::about::About;
use super::capability::HostCapability;
use super::category::ToolCategory;
use super::command::CommandDeclaration;
use super::contribution::{problems, twice};
use super::enricher::EnricherDeclaration;
use super::grants::CapabilityRequest;
use super::hook::{HookDeclaration, HookKey, WrapKey};
use super::id::FeatureId;
use super::service::{ServiceDeclaration, ServiceRequirement, parsed};
use super::settings;
use super::state::{StateDeclaration, StateKey};
use super::task::{BackgroundTaskDeclaration, TaskKey};
use super::text::{self, Lines, MAX_NAME, MAX_TEXT};
use super::tool::{ToolDeclaration, ToolKey};
use crate::hook::{Gate, Observe, Transform};
use crate::permission::{Layer, Rule, RuleDecision};
use llm_worker::tool::canonical_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Longest reason of a request, in bytes.
const MAX_REASON: usize = 512;
/// Limit on the tools, requests, hooks, background tasks, instructions, states, provided and required services, enrichers
/// and served categories of one feature.
const MAX_TOOLS: usize = 64;
/// Most tools of a server elsewhere, which no request may have to define: as many as the client of servers keeps.
const MAX_BRIDGED: usize = 512;
const MAX_REQUESTS: usize = 64;
const MAX_HOOKS: usize = 16;
const MAX_TASKS: usize = 8;
const MAX_INSTRUCTIONS: usize = 16;
const MAX_STATES: usize = 16;
const MAX_PROVIDED: usize = 16;
const MAX_REQUIRED: usize = 16;
const MAX_ENRICHERS: usize = 8;
const MAX_SERVED: usize = 8;
const MAX_COMMANDS: usize = 256;

/// Most rules of permission of one feature.
const MAX_RULES: usize = 32;

/// How a feature's code runs. All but `Builtin` are refused in plans, unless their adapter is in this build:
/// [`FeatureRegistryBuilder::runtime`](crate::feature::FeatureRegistryBuilder::runtime).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FeatureRuntimeKind {
    /// Compiled in.
    Builtin,
    /// A child process that answers requests: a guest.
    #[serde(alias = "external_process", alias = "wasm_placeholder")]
    Guest,
    /// An MCP server.
    McpBridge,
    /// Data without code.
    #[serde(alias = "declarative_placeholder")]
    Declarative,
}

/// A feature's identity and everything it would contribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FeatureDescriptor {
    pub id: FeatureId,
    /// For people; at most 64 bytes.
    pub display_name: String,
    /// `MAJOR.MINOR.PATCH`.
    pub version: String,
    /// How its code runs.
    pub runtime: FeatureRuntimeKind,
    /// What it wants to hold; at most 64.
    #[serde(alias = "requests")]
    pub requested_capabilities: Vec<CapabilityRequest>,
    /// Its tools; at most 64, of an MCP server 512.
    #[serde(alias = "tools")]
    pub declared_tools: Vec<ToolDeclaration>,
    /// Its hooks; at most 16.
    #[serde(default, alias = "hooks")]
    pub declared_hooks: Vec<HookDeclaration>,
    /// Its background tasks; at most 8.
    #[serde(default, alias = "background_tasks")]
    pub declared_background_tasks: Vec<BackgroundTaskDeclaration>,
    /// What the model is told while the feature is there; at most 16.
    pub instructions: Vec<InstructionDeclaration>,
    /// What it remembers; at most 16.
    #[serde(default)]
    pub states: Vec<StateDeclaration>,
    /// What it does for other features; at most 16.
    #[serde(default)]
    pub provides: Vec<ServiceDeclaration>,
    /// What other features must do for it; at most 16.
    #[serde(default)]
    pub requires: Vec<ServiceRequirement>,
    /// What it changes of the schemas of tools; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enriches: Vec<EnricherDeclaration>,
    /// The categories of tools that work where it is installed; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serves: Vec<ToolCategory>,
    /// What a person can type behind a slash; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandDeclaration>,
    /// Rules of permission that ask or deny, for any tools, of a feature that is not compiled in; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The JSON Schema of its settings, at most 64 KiB; a feature without one has no settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Arc<str>>,
    /// Whether a type of this program made that schema, so that it is one.
    #[serde(skip)]
    pub(crate) typed_settings: bool,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// A text for the system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstructionDeclaration {
    /// Unique within the feature; at most 64 bytes.
    pub name: String,
    /// What the model reads; at most 8 KiB.
    pub text: String,
}

impl FeatureDescriptor {
    /// Starts a descriptor; `display_name` is the id's name, `version` 0.0.0 and `runtime` `Builtin` until said.
    pub fn builder(id: FeatureId) -> FeatureDescriptorBuilder {
        FeatureDescriptorBuilder(Self {
            display_name: id.name().to_owned(),
            id,
            version: "0.0.0".into(),
            runtime: FeatureRuntimeKind::Builtin,
            requested_capabilities: Vec::new(),
            declared_tools: Vec::new(),
            declared_hooks: Vec::new(),
            declared_background_tasks: Vec::new(),
            instructions: Vec::new(),
            states: Vec::new(),
            provides: Vec::new(),
            requires: Vec::new(),
            enriches: Vec::new(),
            serves: Vec::new(),
            commands: Vec::new(),
            rules: Vec::new(),
            settings: None,
            typed_settings: false,
            about: None,
        })
    }

    fn most_tools(&self) -> usize {
        match self.runtime {
            FeatureRuntimeKind::McpBridge => MAX_BRIDGED,
            FeatureRuntimeKind::Builtin
            | FeatureRuntimeKind::Guest
            | FeatureRuntimeKind::Declarative => MAX_TOOLS,
        }
    }

    /// The capabilities that contributions may name as needs: requested ones, and those that admit to a required
    /// service.
    fn requested(&self) -> Vec<HostCapability> {
        let services = self.requires.iter().map(|asked| asked.service.admission());
        self.requested_capabilities
            .iter()
            .map(|request| request.capability.clone())
            .chain(services)
            .collect()
    }

    /// All violations of bounds, at most one per part. Planning refuses a descriptor with any.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.problems_with(self.settings.as_deref())
    }

    /// The same, but for the schema of settings that a type made: what is written is checked against it later.
    pub(crate) fn problems_in_plan(&self) -> Vec<String> {
        self.problems_with(self.settings.as_deref().filter(|_| !self.typed_settings))
    }

    fn problems_with(&self, settings: Option<&str>) -> Vec<String> {
        let mut found = self.problems_but_schemas();
        if found.is_empty() {
            found.extend(settings.and_then(settings::problem));
            // Those of a server were compiled when a person added it.
            let is_known = self.runtime == FeatureRuntimeKind::McpBridge;
            let tools = self.declared_tools.iter().filter(|_| !is_known);
            found.extend(tools.filter_map(ToolDeclaration::schema_problem));
        }
        found
    }

    /// The same without compiling a schema, which takes longer than all the rest: for descriptors that nothing is
    /// installed of.
    #[must_use]
    pub fn problems_but_schemas(&self) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(text::check("display_name", &self.display_name, MAX_NAME, Lines::One).err());
        if parsed::<semver::Version>(&self.version).is_none() {
            found.push(format!(
                "version `{}` is not MAJOR.MINOR.PATCH",
                text::escape_line(&self.version, MAX_NAME)
            ));
        }
        let counts = [
            ("tools", self.declared_tools.len(), self.most_tools()),
            ("requests", self.requested_capabilities.len(), MAX_REQUESTS),
            ("hooks", self.declared_hooks.len(), MAX_HOOKS),
            (
                "background tasks",
                self.declared_background_tasks.len(),
                MAX_TASKS,
            ),
            ("instructions", self.instructions.len(), MAX_INSTRUCTIONS),
            ("states", self.states.len(), MAX_STATES),
            ("provided services", self.provides.len(), MAX_PROVIDED),
            ("required services", self.requires.len(), MAX_REQUIRED),
            ("enrichers", self.enriches.len(), MAX_ENRICHERS),
            ("categories", self.serves.len(), MAX_SERVED),
            ("commands", self.commands.len(), MAX_COMMANDS),
            ("rules", self.rules.len(), MAX_RULES),
        ];
        found.extend(
            counts
                .iter()
                .filter(|(_, n, max)| n > max)
                .map(|(what, n, max)| format!("{n} {what}; at most {max} are allowed")),
        );
        if !found.is_empty() {
            return found;
        }
        for request in &self.requested_capabilities {
            let reason = || {
                text::check(
                    &format!("the reason of {}", request.capability),
                    &request.reason,
                    MAX_REASON,
                    Lines::One,
                )
            };
            found.extend(request.capability.problem().or_else(|| reason().err()));
            let is_bound = matches!(&request.capability, HostCapability::SecretRef { hosts, .. } if !hosts.is_empty());
            if is_bound && self.runtime != FeatureRuntimeKind::Guest {
                found.push(format!(
                    "{}: only guests have secrets with hosts",
                    request.capability
                ));
            }
        }
        found.extend(self.about.as_ref().and_then(About::problem));
        found.extend(
            self.rules_problem()
                .map(|problem| format!("rules: {problem}")),
        );
        let requested = self.requested();
        found.extend(problems(&self.provides, &requested));
        found.extend(self.requires.iter().filter_map(ServiceRequirement::problem));
        found.extend(problems(&self.declared_tools, &requested));
        found.extend(problems(&self.declared_hooks, &requested));
        found.extend(problems(&self.enriches, &requested));
        found.extend(problems(&self.commands, &requested));
        found.extend(problems(&self.declared_background_tasks, &requested));
        let tasks = self.declared_background_tasks.iter();
        found.extend(tasks.filter_map(|task| task.foreign_event(&self.requires)));
        for InstructionDeclaration { name, text } in &self.instructions {
            let problem = text::check("an instruction's name", name, MAX_NAME, Lines::One)
                .and_then(|()| instruction_text(name, text));
            found.extend(problem.err());
        }
        found.extend(problems(&self.states, &requested));
        let required = self.requires.iter().map(|asked| asked.service.to_string());
        found.extend(twice("requirement", required));
        let served = self.serves.iter().map(ToolCategory::to_string);
        found.extend(twice("category", served));
        let named = self.instructions.iter().map(|one| one.name.clone());
        found.extend(twice("instruction", named));
        found
    }
}

impl FeatureDescriptor {
    /// The host asks a compiled-in feature by its hooks.
    fn rules_problem(&self) -> Option<String> {
        if self
            .rules
            .iter()
            .any(|rule| rule.decision == RuleDecision::Allow)
        {
            return Some("a plugin can `ask` and `deny`, not `allow`".to_owned());
        }
        let is_read = [FeatureRuntimeKind::Declarative, FeatureRuntimeKind::Guest];
        if !self.rules.is_empty() && !is_read.contains(&self.runtime) {
            return Some("a feature with code has hooks instead".to_owned());
        }
        Layer::new(self.id.to_string(), self.rules.clone())
            .err()
            .map(|error| error.problem)
    }
}

/// The bounds of an instruction, declared or set at install.
pub(crate) fn instruction_text(name: &str, text: &str) -> Result<(), String> {
    text::check(
        &format!("instruction `{name}`"),
        text,
        MAX_TEXT,
        Lines::Many,
    )
}

/// Builds a [`FeatureDescriptor`] in `descriptor()` of a feature. Nothing is checked before planning, so building
/// cannot fail.
#[derive(Clone, Debug)]
#[must_use]
pub struct FeatureDescriptorBuilder(FeatureDescriptor);

impl FeatureDescriptorBuilder {
    /// For people; at most 64 bytes.
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.0.display_name = name.into();
        self
    }

    /// `MAJOR.MINOR.PATCH`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.0.version = version.into();
        self
    }

    /// How its code runs.
    pub fn runtime(mut self, runtime: FeatureRuntimeKind) -> Self {
        self.0.runtime = runtime;
        self
    }

    /// Requests a capability.
    pub fn request(mut self, request: CapabilityRequest) -> Self {
        self.0.requested_capabilities.push(request);
        self
    }

    /// Declares a typed tool by the key that will also stage it.
    pub fn tool<A: JsonSchema + 'static>(mut self, key: &ToolKey<A>) -> Self {
        self.0.declared_tools.push(key.declaration());
        self
    }

    /// Declares a tool with a foreign schema, whatever its `foreign` says.
    pub fn foreign_tool(mut self, tool: ToolDeclaration) -> Self {
        self.0.declared_tools.push(ToolDeclaration {
            foreign: true,
            ..tool
        });
        self
    }

    /// Declares a hook that is known only at run time.
    pub fn foreign_hook(mut self, hook: HookDeclaration) -> Self {
        self.0.declared_hooks.push(hook);
        self
    }

    /// Declares a state that is known only at run time.
    pub fn foreign_state(mut self, state: StateDeclaration) -> Self {
        self.0.states.push(state);
        self
    }

    /// Declares a background task that is known only at run time.
    pub fn foreign_background_task(mut self, task: BackgroundTaskDeclaration) -> Self {
        self.0.declared_background_tasks.push(task);
        self
    }

    /// Declares a gate by the key that will also stage it.
    pub fn gate<P: Gate>(mut self, key: &HookKey<P>) -> Self {
        self.0.declared_hooks.push(key.declaration());
        self
    }

    /// Declares a transform by the key that will also stage it.
    pub fn transform<P: Transform>(mut self, key: &HookKey<P>) -> Self {
        self.0.declared_hooks.push(key.declaration());
        self
    }

    /// Declares the hooks around a call by the key that will also stage them.
    pub fn wrap(mut self, key: &WrapKey) -> Self {
        self.0.declared_hooks.extend(key.declarations());
        self
    }

    /// Declares an observer by the key that will also stage it.
    pub fn observe<P: Observe>(mut self, key: &HookKey<P>) -> Self {
        self.0.declared_hooks.push(key.declaration());
        self
    }

    /// Declares a background task by the key that will also stage it.
    pub fn background_task(mut self, key: &TaskKey) -> Self {
        self.0.declared_background_tasks.push(key.declaration());
        self
    }

    /// Declares a text for the system prompt.
    pub fn instruction(
        mut self,
        name: impl Into<String>,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.0.instructions.push(InstructionDeclaration {
            name: name.into(),
            text: text.into().into_owned(),
        });
        self
    }

    /// Declares a command for people.
    pub fn command(mut self, command: CommandDeclaration) -> Self {
        self.0.commands.push(command);
        self
    }

    /// Declares a state by the key that will also open it.
    pub fn state<T>(mut self, key: &StateKey<T>) -> Self {
        self.0.states.push(key.declaration());
        self
    }

    /// Declares a service that this feature provides.
    pub fn provides(mut self, service: ServiceDeclaration) -> Self {
        self.0.provides.push(service);
        self
    }

    /// Requires a service of another feature.
    pub fn requires(mut self, service: ServiceRequirement) -> Self {
        self.0.requires.push(service);
        self
    }

    /// Declares what this feature changes of the schemas of tools, by the key that will also stage it or as data.
    pub fn enriches(mut self, enricher: impl Into<EnricherDeclaration>) -> Self {
        self.0.enriches.push(enricher.into());
        self
    }

    /// Declares that tools of this category work where this feature is installed.
    pub fn serves(mut self, category: ToolCategory) -> Self {
        self.0.serves.push(category);
        self
    }

    /// Declares a rule of permission.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.0.rules.push(rule);
        self
    }

    /// Declares the settings by the type that will read them, with
    /// [`FeatureInstallContext::settings`](crate::feature::FeatureInstallContext::settings). Defaults in the schema are
    /// filled in.
    pub fn settings<T: JsonSchema + 'static>(self) -> Self {
        let mut builder = self.foreign_settings(canonical_schema::<T>());
        builder.0.typed_settings = true;
        builder
    }

    /// Declares the settings by a JSON Schema.
    pub fn foreign_settings(mut self, schema: impl Into<Arc<str>>) -> Self {
        self.0.settings = Some(schema.into());
        self.0.typed_settings = false;
        self
    }

    /// Says who made it.
    pub fn about(mut self, about: About) -> Self {
        self.0.about = Some(about);
        self
    }

    /// The descriptor.
    #[must_use]
    pub fn build(self) -> FeatureDescriptor {
        self.0
    }
}
