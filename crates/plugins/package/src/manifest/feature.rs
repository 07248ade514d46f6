//! One feature of a manifest, as data and as what the registry knows.

use crate::program::{ProgramTable, ToolProgram};
use llm_worker::{ToolDefinition, ToolEffect};
use pod::feature::{
    About, CapabilityRequest, FeatureDescriptor, FeatureId, FeatureRuntimeKind, HostCapability,
    InstructionDeclaration, ToolCategory, ToolDeclaration, TouchKind, TouchRule,
};
use pod::permission::Rule;
use semver::Version;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// A feature as the manifest declares it, and the programs of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredFeature {
    pub descriptor: FeatureDescriptor,
    /// By the names of tools.
    pub programs: BTreeMap<String, ToolProgram>,
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
        rename: &BTreeMap<String, String>,
        line_at: impl Fn(usize) -> usize,
    ) -> Result<Self, String> {
        let name = id.name().rsplit('/').next().unwrap_or_default().to_owned();
        let FeatureTable {
            display_name,
            tools,
            instructions,
            serves,
            rules,
            mut run,
        } = table;
        let rules = renamed(rules, &tools, rename);
        let mut programs = BTreeMap::new();
        let mut builder = FeatureDescriptor::builder(id)
            .display_name(display_name.unwrap_or_else(|| name.clone()))
            .version(version.to_string())
            .runtime(FeatureRuntimeKind::Declarative);
        for tool in tools.into_iter().map(ToolTable::with_schema) {
            let tool = tool?;
            let own = tool.name.clone();
            let program = run
                .remove(&own)
                .ok_or_else(|| without_program(&name, &own, &run))?;
            let program = tool
                .program(program)
                .map_err(|why| format!("run.{own}: {why}"))?;
            let line = line_at(tool.schema.span().start);
            let declared = tool.declaration(rename.get(&own).cloned())?;
            declared
                .model_problem()
                .map_or(Ok(()), |why| Err(format!("line {line}: {why}")))?;
            programs.insert(declared.name.clone(), program);
            builder = builder.foreign_tool(declared);
        }
        if let Some(name) = run.keys().next() {
            return Err(format!("run.{name}: there is no tool `{name}`"));
        }
        builder = instructions.into_iter().fold(builder, |builder, text| {
            builder.instruction(text.name, text.text)
        });
        builder = rules
            .into_iter()
            .fold(builder, pod::feature::FeatureDescriptorBuilder::rule);
        builder = serves
            .into_iter()
            .fold(builder, pod::feature::FeatureDescriptorBuilder::serves);
        builder = about
            .into_iter()
            .fold(builder, pod::feature::FeatureDescriptorBuilder::about);
        let mut descriptor = builder.build();
        descriptor.requested_capabilities = requests(&programs);
        // A schema is compiled where the feature is planned: nothing of a package costs much before it is granted.
        let problems = descriptor.problems_but_schemas();
        if problems.is_empty() {
            Ok(Self {
                descriptor,
                programs,
            })
        } else {
            Err(problems.join("; "))
        }
    }

    /// The feature with those of its tools whose programs are kept.
    #[must_use]
    pub fn keep(&self, keep: impl Fn(&ToolProgram) -> bool) -> Self {
        let mut kept = self.clone();
        kept.programs.retain(|_, program| keep(program));
        kept.descriptor
            .declared_tools
            .retain(|tool| kept.programs.contains_key(&tool.name));
        kept.descriptor.requested_capabilities = requests(&kept.programs);
        kept
    }
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
    fn declaration(self, other_name: Option<String>) -> Result<ToolDeclaration, String> {
        let Self {
            name,
            about,
            effect,
            schema,
            deadline_ms,
            touches,
            category,
        } = self;
        if touches.iter().any(|rule| rule.is == TouchKind::Session) {
            return Err(format!(
                "tool `{name}` touches `session`, which no program can"
            ));
        }
        let name = other_name.unwrap_or(name);
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

/// What the programs need: to be started, in the working directory.
fn requests(programs: &BTreeMap<String, ToolProgram>) -> Vec<CapabilityRequest> {
    let mut requests = Vec::new();
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
