//! Enrichers while a pod runs: what they change of the arguments of calls, and what the host enforces of the schemas that
//! they narrowed. Does not depend on the install.

use crate::feature::declare::id::FeatureId;
use crate::feature::declare::text::{MAX_NAME, escape_line};
use crate::feature::declare::tool_schema::{Narrowing, ToolSchema};
use crate::hook::{DEFAULT_DEADLINE, MAX_CONSECUTIVE_FAILURES};
use crate::schema::Schema;
use authority::Door;
use llm_worker::ToolDefinition;
use llm_worker::tool::{ArgumentError, parse_arguments};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Narrows the schemas of tools by what only a running feature knows, such as the labels of a project; staged with
/// `ctx.tools().enrich(…)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it enriches a tool",
    note = "implement `ToolEnricher` for it: `enrich`, and `arguments` if it also changes arguments"
)]
pub trait ToolEnricher: Send + Sync + 'static {
    /// Changes the schema of one of its tools. Called once for each tool of a generation, on an install thread, after all
    /// features are installed, and within the time of an install. What it leaves is compared with what it may change.
    ///
    /// # Errors
    /// Why the tool stays as it is, for the report.
    fn enrich(&self, tool: &str, schema: &mut ToolSchema) -> Result<(), String>;

    /// Changes the arguments of a call before the tool parses them. It gets those whose schema it changed, and can leave
    /// no others. Pure; has 2 seconds. A failure keeps the arguments.
    ///
    /// # Errors
    /// Why the arguments stay as they are, for the log.
    fn arguments(&self, _tool: &str, _arguments: &mut Map<String, Value>) -> Result<(), String> {
        Ok(())
    }
}

/// What enrichers changed of one installed tool.
pub struct Enrichment {
    /// The tool as its feature declared it.
    declared: ToolDefinition,
    /// The new enums; none if there are none.
    narrowed: Option<Schema>,
    pub(crate) enrichers: Vec<Arc<ArgumentEnricher>>,
}

/// An enricher of the arguments of one tool.
pub(crate) struct ArgumentEnricher {
    pub(crate) feature: FeatureId,
    pub(crate) name: String,
    pub(crate) code: Arc<dyn ToolEnricher>,
    /// Shut when its grant is revoked.
    pub(crate) door: Arc<Door>,
    /// The properties whose schema it changed, and whose values it may change.
    pub(crate) properties: BTreeSet<String>,
    consecutive_failures: AtomicU32,
}

impl Enrichment {
    /// Nothing is changed yet.
    pub(crate) fn new(declared: ToolDefinition) -> Self {
        Self {
            declared,
            narrowed: None,
            enrichers: Vec::new(),
        }
    }

    /// The tool as its feature declared it.
    #[must_use]
    pub const fn declared(&self) -> &ToolDefinition {
        &self.declared
    }

    /// This enrichment with one more enricher, after which the tool is `now`.
    ///
    /// # Errors
    /// The changes together are not narrower than the declaration.
    pub(crate) fn with(
        &self,
        now: &ToolSchema,
        enricher: Option<ArgumentEnricher>,
    ) -> Result<Self, String> {
        let Narrowing { overlay, .. } = now.narrowed_from(&ToolSchema::of(&self.declared))?;
        let narrowed = match overlay.as_object().is_some_and(Map::is_empty) {
            true => None,
            false => Some(Schema::compile(overlay)?),
        };
        let enrichers = self
            .enrichers
            .iter()
            .cloned()
            .chain(enricher.map(Arc::new))
            .collect();
        Ok(Self {
            declared: self.declared.clone(),
            narrowed,
            enrichers,
        })
    }

    /// Checks raw arguments against the new enums. Arguments that are not one JSON object are left to the tool's parse.
    pub(crate) fn check(&self, raw: &str) -> Result<(), ArgumentError> {
        let (Some(narrowed), tool) = (&self.narrowed, &self.declared.name) else {
            return Ok(());
        };
        let Ok((arguments, _canonical)) = parse_arguments::<Map<String, Value>>(tool, raw) else {
            return Ok(());
        };
        narrowed
            .check(&Value::Object(arguments))
            .map_err(|mut problems| {
                problems.truncate(ArgumentError::MAX_PROBLEMS);
                ArgumentError {
                    tool: tool.clone(),
                    problems,
                }
            })
    }
}

impl ArgumentEnricher {
    /// How long one answer may take.
    pub(crate) const DEADLINE: Duration = DEFAULT_DEADLINE;

    pub(crate) fn new(
        (feature, name): (FeatureId, String),
        code: Arc<dyn ToolEnricher>,
        door: Arc<Door>,
        properties: BTreeSet<String>,
    ) -> Self {
        Self {
            feature,
            name,
            code,
            door,
            properties,
            consecutive_failures: AtomicU32::new(0),
        }
    }

    /// Whether it failed too often in a row to be asked again.
    pub(crate) fn is_suspended(&self) -> bool {
        self.consecutive_failures.load(Ordering::Relaxed) >= MAX_CONSECUTIVE_FAILURES
    }

    /// Counts a failure, or resets the count.
    pub(crate) fn count(&self, failed: bool) {
        match failed {
            true => drop(self.consecutive_failures.fetch_add(1, Ordering::Relaxed)),
            false => self.consecutive_failures.store(0, Ordering::Relaxed),
        }
    }

    /// The arguments that it may change.
    pub(crate) fn own(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let own = arguments
            .iter()
            .filter(|(name, _)| self.properties.contains(*name));
        own.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Puts its own arguments back, as it left them.
    ///
    /// # Errors
    /// There are others among them.
    pub(crate) fn put(
        &self,
        own: Map<String, Value>,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if let Some(other) = own.keys().find(|name| !self.properties.contains(*name)) {
            return Err(format!(
                "it added `{}`, whose schema it did not change",
                escape_line(other, MAX_NAME)
            ));
        }
        arguments.retain(|name, _| !self.properties.contains(name));
        arguments.extend(own);
        Ok(())
    }
}

impl std::fmt::Debug for Enrichment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by: Vec<_> = self
            .enrichers
            .iter()
            .map(|by| format!("{} of {}", by.name, by.feature))
            .collect();
        f.debug_struct("Enrichment")
            .field("tool", &self.declared.name)
            .field("by", &by)
            .finish_non_exhaustive()
    }
}
