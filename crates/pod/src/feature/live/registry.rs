//! The live registry: built once per generation, of whole features only, and read-only from then on. Does not depend on
//! modules or the plan.

use super::command::RegisteredCommand;
use super::enrich::Enrichment;
use super::foreign::ForeignContract;
use super::grant::{GrantLedger, Revoke};
use super::task::RegisteredTask;
use crate::feature::decide::report::{HostReport, RegistryReport, Totals};
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::grants::GrantUse;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::text::escape_line;
use crate::hook::HookRegistry;
use crate::record::{GrantsUsed, UsedGrant};
use authority::{Beyond, Door, HostPattern, Permit, Redactor, Spawner};
use llm_worker::tool::Escalation;
use llm_worker::{CallId, Tool, ToolDefinition};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Most grants of one ledger that are journaled.
const MAX_USES: usize = 4096;

/// Longest text of a grant, in bytes.
const MAX_GRANT: usize = 128;

/// One generation of live features: tools, hooks, background tasks, instructions, grants and the install report. Built by
/// [`FeatureRegistryBuilder`](crate::feature::FeatureRegistryBuilder); the pod uses it for its whole run.
pub struct FeatureRegistry {
    pub(crate) tools: ToolRegistry,
    pub(crate) hooks: HookRegistry,
    pub(crate) tasks: Vec<RegisteredTask>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) commands: BTreeMap<String, RegisteredCommand>,
    pub(crate) report: RegistryReport,
    pub(crate) timings: Vec<(FeatureId, Duration)>,
    pub(crate) grants: GrantLedger,
    /// The host's own handle.
    pub(crate) spawner: Option<Spawner>,
    redactor: Redactor,
}

/// A text for the system prompt, with its feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub feature: FeatureId,
    /// Unique within the feature.
    pub name: String,
    pub text: String,
}

impl FeatureRegistry {
    pub(crate) fn empty() -> Self {
        let report = RegistryReport {
            generation: 1,
            order: Vec::new(),
            digest: String::new(),
            host: HostReport::default(),
            features: Vec::new(),
            totals: Totals::default(),
            unmet: Vec::new(),
            diagnostics: Vec::new(),
        };
        let tools = ToolRegistry {
            by_name: BTreeMap::new(),
            caller: None,
        };
        let instructions = Vec::new();
        let timings = Vec::new();
        let grants = GrantLedger::default();
        let redactor = Redactor::default();
        let hooks = HookRegistry::default();
        let tasks = Vec::new();
        Self {
            tools,
            hooks,
            tasks,
            instructions,
            commands: BTreeMap::new(),
            report,
            timings,
            grants,
            spawner: None,
            redactor,
        }
    }

    /// Redacts the texts written so far, and later ones.
    pub(crate) fn redact(&mut self, redactor: Redactor) {
        let texts = self
            .instructions
            .iter_mut()
            .map(|instruction| &mut instruction.text);
        let notes = self
            .report
            .features
            .iter_mut()
            .flat_map(|feature| &mut feature.diagnostics);
        let notes = notes.chain(&mut self.report.diagnostics);
        for text in texts.chain(notes.map(|note| &mut note.message)) {
            if redactor.finds(text.as_bytes()).is_some() {
                *text = redactor.text(text).into_owned();
            }
        }
        self.redactor = redactor;
    }

    /// Lets the command of a call go so far beyond the sandbox, until the permit is dropped.
    pub(crate) fn permit(
        &self,
        call: CallId,
        escalation: Escalation,
        hosts: &[String],
    ) -> Option<Permit> {
        let beyond = match escalation {
            Escalation::Network if !hosts.is_empty() => Beyond::Hosts(
                hosts
                    .iter()
                    .filter_map(|host| HostPattern::named(host).ok())
                    .collect(),
            ),
            Escalation::Network => Beyond::Network,
            Escalation::Unconfined => Beyond::Unconfined,
        };
        self.spawner.as_ref()?.permit(&call.to_string(), beyond)
    }

    /// The redactor for texts of features.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The number of this generation of the registry.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.report.generation
    }

    /// The tools of all installed features.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.tools
    }

    /// The hooks of all installed features, in the order of asking.
    #[must_use]
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// The background tasks, in install order.
    #[must_use]
    pub fn tasks(&self) -> &[RegisteredTask] {
        &self.tasks
    }

    /// The instructions, in install order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The report of the install.
    #[must_use]
    pub fn report(&self) -> &RegistryReport {
        &self.report
    }

    /// The use of the grants that live features hold as handles, in install order. Tools and hooks are no handles and
    /// have no row.
    #[must_use]
    pub fn grants(&self) -> Vec<GrantUse> {
        let reports: BTreeMap<_, _> = self
            .report
            .features
            .iter()
            .map(|report| (&report.feature_id, report))
            .collect();
        let live = self
            .report
            .order
            .iter()
            .filter_map(|id| reports.get(id).copied());
        let granted = live.flat_map(|f| {
            f.granted
                .iter()
                .map(move |capability| (&f.feature_id, capability))
        });
        self.grants
            .uses(granted.filter(|(_, capability)| capability.is_held()))
    }

    /// [`Self::grants`] for the journal: grants with a handle, at most [`MAX_USES`] rows.
    pub(crate) fn grants_used(&self) -> GrantsUsed {
        let row = |used: &GrantUse| UsedGrant {
            feature: used.feature_id.to_string(),
            grant: escape_line(&used.capability.to_string(), MAX_GRANT),
            uses: used.uses,
            refused: used.refused,
            last_use_ms: used.last_use_ms,
        };
        GrantsUsed {
            grants: self
                .grants()
                .iter()
                .filter(|used| used.held)
                .take(MAX_USES)
                .map(row)
                .collect(),
        }
    }

    /// Revokes every grant of a feature that has any part of `capability`, whole; also grants that others derived from
    /// it, such as handles on its services. Reading and writing includes a handle that only reads. A tool with a
    /// revoked grant is not called any more, and a running call ends at its next wait; a transform or an observer is
    /// skipped; a gate refuses from then on. New uses are refused at once. The future resolves, with the number of
    /// doors, when nothing runs under these grants any more. Dropping it does not restore a grant, and ends a drain
    /// early.
    #[must_use = "new uses are refused at once, but those under way end only when this resolves"]
    pub fn revoke(
        &self,
        feature: &FeatureId,
        capability: &HostCapability,
        how: Revoke,
    ) -> impl Future<Output = usize> + Send + use<> {
        self.grants.revoke(feature, capability, how)
    }

    /// Revokes every handle of a feature; callers of its tools and hooks must stop calling them. Consumers of its
    /// services get an error that says that it left.
    #[must_use = "the doors are shut at once, but uses under way end only when this resolves"]
    pub fn leave(&self, feature: &FeatureId) -> impl Future<Output = usize> + Send + use<> {
        self.grants.leave(feature)
    }

    /// The duration of each `install()`; not in the report, whose bytes are stable.
    #[must_use]
    pub fn timings(&self) -> &[(FeatureId, Duration)] {
        &self.timings
    }
}

impl fmt::Debug for FeatureRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeatureRegistry")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// The tools of one generation of the feature registry, by name. The surface and every call use it.
#[derive(Clone, Debug)]
pub struct ToolRegistry {
    pub(crate) by_name: BTreeMap<String, RegisteredTool>,
    /// The tool by which the model calls those that are deferred.
    pub(crate) caller: Option<String>,
}

/// An installed tool with its feature and its deadline.
#[derive(Clone)]
pub struct RegisteredTool {
    pub feature: FeatureId,
    pub definition: ToolDefinition,
    pub tool: Arc<dyn Tool>,
    pub deadline: Duration,
    /// What the host enforces of a tool whose schema comes from elsewhere: nothing here knows what its calls change.
    pub foreign: Option<Arc<ForeignContract>>,
    /// The door of the tool's grant: each step of a call enters it; shut when the grant is revoked.
    pub door: Arc<Door>,
    /// Whether clients of the pod may call it.
    pub for_clients: bool,
    /// What the tool is for.
    pub category: Option<ToolCategory>,
    /// What enrichers changed of it.
    pub enrichment: Option<Arc<Enrichment>>,
    /// Whether requests leave it out.
    pub is_deferred: bool,
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            feature,
            definition,
            deadline,
            ..
        } = self;
        write!(f, "{} of {feature}, {deadline:?}", definition.name)
    }
}

impl RegisteredTool {
    /// The definition that its feature declared, without what enrichers changed.
    #[must_use]
    pub fn declared(&self) -> &ToolDefinition {
        self.enrichment
            .as_ref()
            .map_or(&self.definition, |enrichment| enrichment.declared())
    }
}

impl ToolRegistry {
    /// The tool of this exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.by_name.get(name)
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.by_name.values()
    }

    /// The tools that requests define, by name.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.iter().filter(|tool| !tool.is_deferred)
    }

    /// The definitions for the model, by name: the same tools, the same bytes.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.offered().map(|t| t.definition.clone()).collect()
    }
}
