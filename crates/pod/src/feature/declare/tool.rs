//! Tools as declared: one `const` key both declares and stages a tool, so the two cannot differ. Does not depend on
//! running tools.

use super::capability::HostCapability;
use super::category::{ToolCategory, category_fits};
use super::contribution::{Contribution, ContributionKind};
use super::text::{Lines, MAX_NAME, MAX_TEXT, check, escape_line, millis, tool_name_fits};
use super::touch::TouchRule;
use crate::schema::Schema;
use llm_worker::tool::{Touch, canonical_schema};
use llm_worker::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Deadline of a call whose key sets none.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
/// Longest schema, in bytes.
pub(super) const MAX_SCHEMA: usize = 64 * 1024;
/// Keywords that APIs of models refuse at the top level of a schema; below a property they take them.
const REFUSED_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];
/// Longest text about a schema that does not compile, in bytes.
const MAX_DEFECT: usize = 512;
/// The longest deadline that a key may set: an hour of work and ten seconds to report its end.
pub const MAX_DEADLINE: Duration = Duration::from_secs(3_610);

/// A tool's name, effect and argument type, as a `const`.
///
/// ```
/// use pod::feature::ToolKey;
/// use llm_worker::ToolEffect;
/// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// struct GreetArgs {
///     name: String,
/// }
/// const GREET: ToolKey<GreetArgs> = ToolKey::new("Greet", ToolEffect::ReadOnly, "Greet somebody.");
/// assert_eq!(GREET.name(), "Greet");
/// ```
pub struct ToolKey<A> {
    name: &'static str,
    effect: ToolEffect,
    about: &'static str,
    pub(crate) touches: fn(&A) -> Vec<Touch>,
    deadline: Duration,
    needs: &'static [HostCapability],
    for_clients: bool,
    category: Option<&'static str>,
}

impl<A> ToolKey<A> {
    /// A tool that names no files or commands in its arguments, with [`DEFAULT_DEADLINE`]. Meant for a `const`, where a
    /// bad name or description does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of `[A-Za-z0-9_-]`, and on a description that is empty or has more than 8 KiB.
    #[must_use]
    pub const fn new(name: &'static str, effect: ToolEffect, about: &'static str) -> Self {
        assert!(
            tool_name_fits(name),
            "a tool's name is 1 to 64 bytes of [A-Za-z0-9_-]"
        );
        assert!(
            !about.is_empty() && about.len() <= MAX_TEXT,
            "a tool's description has 1 byte to 8 KiB"
        );
        Self {
            name,
            effect,
            about,
            touches: |_| Vec::new(),
            deadline: DEFAULT_DEADLINE,
            needs: &[],
            for_clients: false,
            category: None,
        }
    }

    /// Sets the function that lists the files, commands and hosts named in the arguments, or says that a call changes
    /// only the feature's session state. Permission judges this list.
    #[must_use]
    pub const fn touching(mut self, touches: fn(&A) -> Vec<Touch>) -> Self {
        self.touches = touches;
        self
    }

    /// How long the host waits for one call; at most [`MAX_DEADLINE`].
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Requests of the feature without which this tool is left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// Lets clients of the pod call the tool, too: one that changes nothing any client, another one only a driver. Neither
    /// permission nor gates judge such a call, and the model does not see it, so that the tool may touch only the
    /// feature's own state, and its [`ToolContext::host`](llm_worker::ToolContext::host) does nothing.
    #[must_use]
    pub const fn for_clients(mut self) -> Self {
        self.for_clients = true;
        self
    }

    /// What the tool is for: it is left out where no feature [serves](super::descriptor::FeatureDescriptorBuilder::serves)
    /// this category.
    ///
    /// # Panics
    /// On a name that is not 1 to 32 bytes of `[a-z0-9-]`.
    #[must_use]
    pub const fn category(mut self, category: &'static str) -> Self {
        assert!(
            category_fits(category),
            "a category is 1 to 32 bytes of [a-z0-9-]"
        );
        self.category = Some(category);
        self
    }

    /// The tool's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn needed(&self) -> &'static [HostCapability] {
        self.needs
    }
}

impl<A: JsonSchema + 'static> ToolKey<A> {
    pub(crate) fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            effect: self.effect,
            schema: canonical_schema::<A>(),
            deadline_ms: millis(self.deadline),
            needs: self.needs.to_vec(),
            for_clients: self.for_clients,
            foreign: false,
            touches: Vec::new(),
            category: self.category.map(ToolCategory::new),
        }
    }
}

/// The arguments of the tool by which the model calls those that requests leave out
/// ([`CapabilityPolicy::defer`](crate::feature::CapabilityPolicy::defer)).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct NamedCall {
    /// The tool to call.
    pub name: String,
    /// Its arguments, as its schema says.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A tool as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolDeclaration {
    /// 1 to 64 bytes of `[A-Za-z0-9_-]`.
    pub name: String,
    /// What the model reads; at most 8 KiB.
    pub about: String,
    /// Whether a call is safe to repeat.
    pub effect: ToolEffect,
    /// Canonical JSON Schema of the arguments object; at most 64 KiB.
    pub schema: Arc<str>,
    /// How long the host waits for one call.
    pub deadline_ms: u64,
    /// Requests of this feature without which this tool is left out.
    #[serde(default)]
    pub needs: Vec<HostCapability>,
    /// Whether clients of the pod may call this tool, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_clients: bool,
    /// Whether its schema comes from elsewhere: the host then checks the arguments against it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// What its arguments touch; at most 16, and only of a foreign tool. A call with effects of which no rule says what it
    /// changes counts as [`Touch::RemoteWrite`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<TouchRule>,
    /// What the tool is for; it is left out where no feature serves this category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ToolCategory>,
}

impl ToolDeclaration {
    /// A tool with a foreign schema, with the default deadline, without needs and touches.
    #[must_use]
    pub fn of(definition: ToolDefinition) -> Self {
        let ToolDefinition {
            name,
            description,
            schema,
            effect,
        } = definition;
        let deadline_ms = millis(DEFAULT_DEADLINE);
        let needs = Vec::new();
        let for_clients = false;
        let foreign = true;
        let touches = Vec::new();
        let category = None;
        Self {
            name,
            about: description,
            effect,
            schema,
            deadline_ms,
            needs,
            for_clients,
            foreign,
            touches,
            category,
        }
    }

    /// Adds a rule for what a call touches.
    #[must_use]
    pub fn touching(mut self, rule: TouchRule) -> Self {
        self.touches.push(rule);
        self
    }

    /// The tool's definition for the model.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: self.about.clone(),
            schema: Arc::clone(&self.schema),
            effect: self.effect,
        }
    }

    /// Bytes of text that this tool adds to every request.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.len() + self.about.len() + self.schema.len()
    }

    /// The request to offer it, which every declaration makes by itself.
    pub(crate) fn implied(&self) -> HostCapability {
        HostCapability::ContributeTool {
            name: self.name.clone().into(),
        }
    }

    /// What APIs of models refuse, with every request that has the tool: a name, or a part of the schema's top level.
    #[must_use]
    pub fn model_problem(&self) -> Option<String> {
        if !tool_name_fits(&self.name) {
            let name = escape_line(&self.name, MAX_NAME);
            return Some(format!(
                "tool name `{name}` is not 1 to 64 bytes of [A-Za-z0-9_-]"
            ));
        }
        let schema = serde_json::from_str::<serde_json::Value>(&self.schema).ok()?;
        let of = |what: String| {
            Some(format!(
                "the schema of tool `{}` {what}, which APIs of models refuse",
                self.name
            ))
        };
        if let Some(key) = REFUSED_AT_TOP
            .into_iter()
            .find(|key| schema.get(key).is_some())
        {
            return of(format!("has `{key}` at its top level"));
        }
        let mut names = schema.get("properties")?.as_object()?.keys();
        let name = names.find(|name| !tool_name_fits(&name.replace('.', "_")))?;
        of(format!(
            "names a property `{}`, not 1 to 64 bytes of [A-Za-z0-9_.-]",
            escape_line(name, MAX_NAME)
        ))
    }

    /// The problem of a foreign schema.
    pub(crate) fn schema_problem(&self) -> Option<String> {
        let schema = || serde_json::from_str(&self.schema).map_err(|error| error.to_string());
        let why = self
            .foreign
            .then(|| schema().and_then(Schema::compile).err())
            .flatten()?;
        Some(format!(
            "the schema of tool `{}`: {}",
            self.name,
            escape_line(&why, MAX_DEFECT)
        ))
    }
}

impl Contribution for ToolDeclaration {
    const KIND: ContributionKind = ContributionKind::Tool;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![self.implied()]
    }

    fn needs(&self) -> Vec<HostCapability> {
        self.needs.clone()
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        let Self {
            name,
            about,
            schema,
            deadline_ms,
            foreign,
            touches,
            ..
        } = self;
        if let Some(problem) = self.model_problem() {
            return Some(problem);
        }
        if let Err(problem) = check(
            &format!("the description of tool `{name}`"),
            about,
            MAX_TEXT,
            Lines::Many,
        ) {
            return Some(problem);
        }
        if schema.len() > MAX_SCHEMA {
            return Some(format!(
                "the schema of tool `{name}` has {} bytes; at most {MAX_SCHEMA} are allowed",
                schema.len()
            ));
        }
        let object = serde_json::from_str::<serde_json::Value>(schema)
            .ok()
            .filter(|schema| schema.get("type").is_some_and(|of| of == "object"));
        let Some(object) = object else {
            return Some(format!(
                "the schema of tool `{name}` is not a JSON Schema of an object (`\"type\":\"object\"`)"
            ));
        };
        if !foreign && !touches.is_empty() {
            return Some(format!(
                "tool `{name}` has rules of touches, which only a foreign tool may have"
            ));
        }
        if let Some(problem) = TouchRule::problem(touches, name, &object) {
            return Some(problem);
        }
        if *deadline_ms == 0 || *deadline_ms > millis(MAX_DEADLINE) {
            return Some(format!(
                "the deadline of tool `{name}` is {deadline_ms} ms; expected 1 to {}",
                millis(MAX_DEADLINE)
            ));
        }
        None
    }
}
