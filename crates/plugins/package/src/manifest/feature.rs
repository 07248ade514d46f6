//! One feature of a manifest, as data and as what the registry knows.

use crate::program::{ProgramTable, ToolProgram};
use llm_worker::{ToolDefinition, ToolEffect};
use pod::feature::{
    About, BackgroundTaskDeclaration, CapabilityRequest, DEFAULT_TASK_DEADLINE, FeatureDescriptor,
    FeatureId, FeatureRuntimeKind, HookDeclaration, HostCapability, InstructionDeclaration, Need,
    Restart, ServiceDeclaration, ServiceId, ServiceRequirement, StateDeclaration, StateScope,
    TaskTrigger, ToolCategory, ToolDeclaration, TouchKind, TouchRule,
};
use pod::hook::{DEFAULT_DEADLINE, HookClass, HookPoint};
use pod::permission::Rule;
use semver::Version;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// The deadline of a hook that names none, long enough for the start of an interpreter.
const DEFAULT_HOOK_MS: u64 = DEFAULT_DEADLINE.as_millis() as u64;

/// How the names of tools of MCP servers begin, which no package takes.
const OF_MCP: &str = "mcp__";

/// A feature as the manifest declares it, and the programs of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredFeature {
    pub descriptor: FeatureDescriptor,
    /// By the names of tools.
    pub programs: BTreeMap<String, ToolProgram>,
    /// The program whose children answer its tools and hooks, in place of those.
    pub guest: Option<ToolProgram>,
    /// What the manifest calls tools that a person renamed, by their new names.
    own_names: BTreeMap<String, String>,
}

/// What answers the tools and hooks of a feature.
#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Runtime {
    /// A program for each tool, started for each call.
    #[default]
    Program,
    /// A program that answers requests.
    Guest,
    /// A script that this program runs, with the runtime of this name.
    #[serde(untagged)]
    Script(String),
}

/// `[features.NAME]`: what a feature without code can declare, under the names of [`FeatureDescriptor`], and its programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeatureTable {
    display_name: Option<String>,
    #[serde(default)]
    tools: Vec<ToolTable>,
    #[serde(default)]
    instructions: Vec<InstructionDeclaration>,
    #[serde(default)]
    serves: Vec<ToolCategory>,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    run: BTreeMap<String, ProgramTable>,
    #[serde(default)]
    runtime: Runtime,
    guest: Option<ProgramTable>,
    script: Option<String>,
    #[serde(default)]
    hooks: Vec<HookTable>,
    #[serde(default)]
    states: Vec<StateTable>,
    #[serde(default)]
    tasks: Vec<TaskTable>,
    #[serde(default)]
    provides: Vec<ProvidedTable>,
    #[serde(default)]
    requires: Vec<RequiredTable>,
    #[serde(default)]
    requests: Vec<CapabilityRequest>,
    /// A JSON Schema.
    settings: Option<Value>,
}

/// `[[features.NAME.hooks]]`, under the names of [`HookDeclaration`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HookTable {
    name: String,
    point: HookPoint,
    deadline_ms: Option<u64>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    withholds: bool,
    #[serde(default)]
    with_output_schema: bool,
    #[serde(default)]
    shortens: bool,
    #[serde(default)]
    before: Vec<FeatureId>,
    #[serde(default)]
    after: Vec<FeatureId>,
}

/// `[[features.NAME.states]]`, under the names of [`StateDeclaration`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    name: String,
    #[serde(default = "first")]
    version: u16,
    #[serde(default = "of_session")]
    scope: StateScope,
}

/// `[[features.NAME.tasks]]`, under the names of [`BackgroundTaskDeclaration`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    name: String,
    effect: ToolEffect,
    triggers: Vec<TaskTrigger>,
    #[serde(default = "never")]
    restart: Restart,
    #[serde(default = "task_ms")]
    deadline_ms: u64,
}

/// `[[features.NAME.provides]]`: a service as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProvidedTable {
    service: String,
    version: String,
}

/// `[[features.NAME.requires]]`: a service as JSON of another feature.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequiredTable {
    service: String,
    version: String,
    #[serde(default = "required")]
    need: Need,
}

fn never() -> Restart {
    Restart::Never
}

fn task_ms() -> u64 {
    DEFAULT_TASK_DEADLINE.as_millis() as u64
}

fn required() -> Need {
    Need::Required
}

fn first() -> u16 {
    1
}

fn of_session() -> StateScope {
    StateScope::Session
}

/// `[[features.NAME.tools]]`: what a tool of a package can declare, under the names of [`ToolDeclaration`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    name: String,
    about: String,
    effect: ToolEffect,
    /// A table, or the same as JSON text.
    schema: Spanned<Value>,
    deadline_ms: Option<u64>,
    #[serde(default)]
    touches: Vec<TouchRule>,
    category: Option<ToolCategory>,
}

impl DeclaredFeature {
    /// The feature of a package with this version and description.
    pub(super) fn of(
        id: FeatureId,
        version: &Version,
        about: Option<About>,
        table: FeatureTable,
        (rename, runtimes): (&BTreeMap<String, String>, &[&str]),
        line_at: impl Fn(usize) -> usize,
    ) -> Result<Self, String> {
        let name = id.name().rsplit('/').next().unwrap_or_default().to_owned();
        let guest = table.guest_program(runtimes)?;
        let FeatureTable {
            display_name,
            tools,
            instructions,
            serves,
            rules,
            mut run,
            runtime: _,
            guest: _,
            script: _,
            hooks,
            states,
            tasks,
            provides,
            requires,
            requests: asked,
            settings,
        } = table;
        let rules = renamed(rules, &tools, rename);
        let mut programs = BTreeMap::new();
        let mut own_names = BTreeMap::new();
        let mut builder = FeatureDescriptor::builder(id)
            .display_name(display_name.unwrap_or_else(|| name.clone()))
            .version(version.to_string())
            .runtime(match guest {
                Some(_) => FeatureRuntimeKind::Guest,
                None => FeatureRuntimeKind::Declarative,
            });
        for tool in tools.into_iter().map(ToolTable::with_schema) {
            let tool = tool?;
            let own = tool.name.clone();
            let program = match run.remove(&own) {
                Some(_) if guest.is_some() => {
                    let text = "the guest answers all tools of this feature";
                    return Err(format!("run.{own}: {text}"));
                }
                None if guest.is_none() => return Err(without_program(&name, &own, &run)),
                program => program,
            };
            let program = program.map(|program| tool.program(program)).transpose();
            let program = program.map_err(|why| format!("run.{own}: {why}"))?;
            let line = line_at(tool.schema.span().start);
            let declared = tool.declaration(rename.get(&own).cloned(), !states.is_empty())?;
            declared
                .model_problem()
                .map_or(Ok(()), |why| Err(format!("line {line}: {why}")))?;
            if own != declared.name {
                own_names.insert(declared.name.clone(), own);
            }
            programs.extend(program.map(|program| (declared.name.clone(), program)));
            builder = builder.foreign_tool(declared);
        }
        if let Some(name) = run.keys().next() {
            return Err(format!("run.{name}: there is no tool `{name}`"));
        }
        let mut descriptor = builder.build();
        descriptor.instructions = instructions;
        (descriptor.rules, descriptor.serves) = (rules, serves);
        descriptor.about = about;
        let services = (provides, requires);
        add_answered(&mut descriptor, (hooks, states), tasks, services);
        descriptor.settings = settings.map(|schema| schema.to_string().into());
        descriptor.requested_capabilities = requests(&programs, guest.as_ref());
        descriptor.requested_capabilities.extend(asked);
        // A schema is compiled where the feature is planned: nothing of a package costs much before it is granted.
        let problems = descriptor.problems_but_schemas();
        if problems.is_empty() {
            Ok(Self {
                descriptor,
                programs,
                guest,
                own_names,
            })
        } else {
            Err(problems.join("; "))
        }
    }

    /// What the manifest calls a tool.
    pub(crate) fn own_name<'a>(&'a self, tool: &'a str) -> &'a str {
        self.own_names.get(tool).map_or(tool, String::as_str)
    }

    /// All that it starts: the names of what the programs answer, and the programs.
    pub fn started(&self) -> impl Iterator<Item = (&str, &ToolProgram)> {
        let programs = self
            .programs
            .iter()
            .map(|(tool, program)| (tool.as_str(), program));
        programs.chain(self.guest.iter().map(|guest| ("guest", guest)))
    }

    /// What it adds beside tools, rules and texts, a line each: its hooks, states, tasks and services, and what its guests
    /// may do.
    pub fn further(&self) -> Vec<String> {
        let of = &self.descriptor;
        let hooks = of.declared_hooks.iter();
        let hooks = hooks.map(|hook| format!("{} {} at {}", hook.class, hook.name, hook.point));
        let states = of.states.iter();
        let states =
            states.map(|state| format!("state {}, kept for the {}", state.name, state.scope));
        let tasks = of.declared_background_tasks.iter();
        let tasks = tasks.map(|task| format!("background task {}", task.name));
        let provides = of.provides.iter();
        let provides = provides.map(|provided| format!("provides {}", provided.service));
        let requires = of.requires.iter();
        let requires = requires.map(|required| format!("uses {}", required.service));
        // The first request is for the program of the guests, which has a line of its own.
        let asked = of.requested_capabilities.iter().skip(1);
        let asked = asked.filter(|_| self.guest.is_some());
        let asked = asked.map(|request| format!("may {}: {}", request.capability, request.reason));
        let declared = hooks.chain(states).chain(tasks);
        declared
            .chain(provides)
            .chain(requires)
            .chain(asked)
            .collect()
    }

    /// The feature with those of its tools and hooks whose programs are kept.
    #[must_use]
    pub fn keep(&self, keep: impl Fn(&ToolProgram) -> bool) -> Self {
        let mut kept = self.clone();
        if let Some(guest) = &self.guest {
            if !keep(guest) {
                kept.guest = None;
                let of = &mut kept.descriptor;
                (of.declared_tools, of.declared_hooks) = Default::default();
                (of.states, of.requested_capabilities) = Default::default();
                of.declared_background_tasks = Vec::new();
                (of.provides, of.requires) = Default::default();
            }
            return kept;
        }
        kept.programs.retain(|_, program| keep(program));
        kept.descriptor
            .declared_tools
            .retain(|tool| kept.programs.contains_key(&tool.name));
        kept.descriptor.requested_capabilities = requests(&kept.programs, None);
        kept
    }
}

/// Adds what guests answer beside tools.
fn add_answered(
    descriptor: &mut FeatureDescriptor,
    (hooks, states): (Vec<HookTable>, Vec<StateTable>),
    tasks: Vec<TaskTable>,
    (provides, requires): (Vec<ProvidedTable>, Vec<RequiredTable>),
) {
    descriptor.declared_hooks = hooks.into_iter().map(HookTable::declaration).collect();
    descriptor.states = states.into_iter().map(StateTable::declaration).collect();
    descriptor.provides = provides
        .into_iter()
        .map(ProvidedTable::declaration)
        .collect();
    descriptor.declared_background_tasks = tasks.into_iter().map(TaskTable::declaration).collect();
    descriptor.requires = requires
        .into_iter()
        .map(RequiredTable::declaration)
        .collect();
}

/// A tool without a program; what is left of `run` may be a slip of the pen.
fn without_program(feature: &str, tool: &str, run: &BTreeMap<String, ProgramTable>) -> String {
    let found = run
        .keys()
        .next()
        .map(|other| format!(" (there is one for `{other}`)"))
        .unwrap_or_default();
    format!("tool `{tool}` has no program{found}; write [features.{feature}.run.\"{tool}\"]")
}

impl ToolTable {
    /// Reads the schema where it is text.
    fn with_schema(mut self) -> Result<Self, String> {
        let schema = self.schema.get_mut();
        if let Value::String(text) = schema {
            *schema = serde_json::from_str(text)
                .map_err(|error| format!("the schema of {}: {error}", self.name))?;
        }
        schema.sort_all_objects();
        Ok(self)
    }

    fn program(&self, table: ProgramTable) -> Result<ToolProgram, String> {
        let properties = self
            .schema
            .get_ref()
            .get("properties")
            .and_then(Value::as_object);
        ToolProgram::of(table, properties.unwrap_or(&Map::new()))
    }

    /// The tool as the registry knows it. A program has effects of its own, and the state of the pod is out of its reach.
    fn declaration(
        self,
        other_name: Option<String>,
        has_states: bool,
    ) -> Result<ToolDeclaration, String> {
        let Self {
            name,
            about,
            effect,
            schema,
            deadline_ms,
            touches,
            category,
        } = self;
        if !has_states && touches.iter().any(|rule| rule.is == TouchKind::Session) {
            return Err(format!(
                "tool `{name}` touches `session`, which no program can that has no states"
            ));
        }
        let name = other_name.unwrap_or(name);
        if name.starts_with(OF_MCP) {
            // A person allows calls of an MCP server by the names of its tools.
            return Err(format!(
                "tool `{name}` has a name of an MCP server, which begin with `{OF_MCP}`; give it another one"
            ));
        }
        let definition = ToolDefinition {
            name,
            description: about,
            schema: schema.into_inner().to_string().into(),
            effect,
        };
        let declared = ToolDeclaration::of(definition);
        let deadline_ms = deadline_ms.unwrap_or(declared.deadline_ms);
        Ok(ToolDeclaration {
            deadline_ms,
            touches,
            category,
            ..declared
        })
    }
}

/// Rules about a tool of the feature have the name that a person chose. One about another tool is about both names: whether
/// the tool is one of the package is not known here, and a rule never moves away from a tool that is not.
fn renamed(rules: Vec<Rule>, tools: &[ToolTable], rename: &BTreeMap<String, String>) -> Vec<Rule> {
    let mut all = Vec::with_capacity(rules.len());
    for rule in rules {
        let other = rename.get(&rule.tool).map(|other| Rule {
            tool: other.clone(),
            ..rule.clone()
        });
        let is_own = tools.iter().any(|tool| tool.name == rule.tool);
        all.extend(Some(rule).filter(|_| !is_own || other.is_none()));
        all.extend(other);
    }
    all
}

impl FeatureTable {
    /// The program of guests, which is there exactly if they answer.
    fn guest_program(&self, runtimes: &[&str]) -> Result<Option<ToolProgram>, String> {
        let is_carried = |request: &&CapabilityRequest| match &request.capability {
            HostCapability::EmitModelNotification { .. }
            | HostCapability::EmitUserAlert
            | HostCapability::Network { .. }
            | HostCapability::Endpoint { .. }
            | HostCapability::SecretRef { .. } => true,
            HostCapability::ScopedFs { execute, .. } => !execute,
            HostCapability::Process { programs, .. } => programs.iter().all(|name| name != "*"),
            _ => false,
        };
        let needs_guest = !(self.hooks.is_empty()
            && self.states.is_empty()
            && self.tasks.is_empty()
            && self.provides.is_empty()
            && self.requires.is_empty()
            && self.requests.is_empty())
            || self.settings.is_some();
        let is_script = matches!(self.runtime, Runtime::Script(_));
        if self.script.is_some() && !is_script {
            return Err("`script` needs a runtime that reads it".to_owned());
        }
        let guest = match (&self.runtime, &self.guest) {
            (Runtime::Program, None) if needs_guest => {
                let text = "hooks, states, tasks, services, requests and settings are of guests";
                return Err(format!("{text}; write `runtime = \"guest\"`"));
            }
            (Runtime::Program, None) => return Ok(None),
            (Runtime::Program | Runtime::Script(_), Some(_)) => {
                return Err("`guest` needs `runtime = \"guest\"`".to_owned());
            }
            (Runtime::Script(name), None) if !runtimes.contains(&name.as_str()) => {
                let known = ["program", "guest"].iter().chain(runtimes);
                let known: Vec<&str> = known.copied().collect();
                return Err(format!(
                    "the runtime `{name}` is not known; known are {}",
                    known.join(", ")
                ));
            }
            (Runtime::Script(name), None) => {
                let needs =
                    || format!("`runtime = \"{name}\"` needs `script`, a file of the package");
                let script = self.script.as_ref().ok_or_else(needs)?;
                ToolProgram::script(name, script)?
            }
            (Runtime::Guest, None) => {
                return Err("`runtime = \"guest\"` needs `guest = { program, args }`".to_owned());
            }
            (Runtime::Guest, Some(guest)) => ToolProgram::of(guest.clone(), &Map::new())
                .map_err(|why| format!("guest: {why}"))?,
        };
        for task in &self.tasks {
            let is_asked = |trigger: &TaskTrigger| {
                matches!(trigger, TaskTrigger::Request | TaskTrigger::ChildEnded)
            };
            if task.triggers.iter().any(is_asked) {
                let name = &task.name;
                return Err(format!(
                    "task `{name}`: a guest requests no runs and starts no jobs"
                ));
            }
        }
        if let Some(other) = self.requests.iter().find(|request| !is_carried(request)) {
            let capability = &other.capability;
            return Err(format!(
                "requests: a guest is given no handle for {capability}"
            ));
        }
        Ok(Some(guest))
    }
}

impl HookTable {
    fn declaration(self) -> HookDeclaration {
        let Self {
            name,
            point,
            deadline_ms,
            tools,
            withholds,
            with_output_schema,
            shortens,
            before,
            after,
        } = self;
        let class = point.class();
        let every = || match class {
            HookClass::Transform => vec!["*".to_owned()],
            HookClass::Gate | HookClass::Observe => Vec::new(),
        };
        HookDeclaration {
            name,
            point,
            class,
            deadline_ms: deadline_ms.unwrap_or(DEFAULT_HOOK_MS),
            tools: tools.unwrap_or_else(every),
            needs: Vec::new(),
            withholds,
            with_output_schema,
            shortens,
            before,
            after,
        }
    }
}

impl TaskTable {
    fn declaration(self) -> BackgroundTaskDeclaration {
        let Self {
            name,
            effect,
            triggers,
            restart,
            deadline_ms,
        } = self;
        BackgroundTaskDeclaration {
            name,
            effect,
            triggers,
            restart,
            deadline_ms,
            needs: Vec::new(),
        }
    }
}

impl ProvidedTable {
    fn declaration(self) -> ServiceDeclaration {
        ServiceDeclaration::declared(ServiceId::whole(self.service), self.version)
    }
}

impl RequiredTable {
    fn declaration(self) -> ServiceRequirement {
        let Self {
            service,
            version,
            need,
        } = self;
        ServiceRequirement {
            service: ServiceId::whole(service),
            version,
            need,
            each: false,
        }
    }
}

impl StateTable {
    fn declaration(self) -> StateDeclaration {
        let Self {
            name,
            version,
            scope,
        } = self;
        StateDeclaration {
            name,
            version,
            scope,
        }
    }
}

/// What the programs need: to be started, in the working directory; and what guests need.
fn requests(
    programs: &BTreeMap<String, ToolProgram>,
    guest: Option<&ToolProgram>,
) -> Vec<CapabilityRequest> {
    let mut requests = Vec::new();
    requests.extend(guest.map(|guest| {
        let programs = vec![guest.program.clone().into()].into();
        let network = guest.network;
        let capability = HostCapability::Process { programs, network };
        CapabilityRequest::required(capability, "run its guests")
    }));
    if !programs.is_empty() {
        let reason = "start the programs of its tools in the working directory";
        requests.push(CapabilityRequest::required(
            HostCapability::READ_WORKSPACE,
            reason,
        ));
    }
    for network in [false, true] {
        let of = programs
            .values()
            .filter(|program| program.network == network);
        let names: BTreeSet<Cow<'static, str>> =
            of.map(|program| program.program.clone().into()).collect();
        if !names.is_empty() {
            let programs = names.into_iter().collect();
            let reason = "run the programs of its tools";
            requests.push(CapabilityRequest::required(
                HostCapability::Process { programs, network },
                reason,
            ));
        }
    }
    requests
}
