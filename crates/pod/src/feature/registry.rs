//! What is live: built once per generation, whole features only, and then only read.

use super::capability::HostCapability;
use super::contained::{self, Ended, Job};
use super::context::{FeatureInstallContext, HostServices, RegistrarProbe};
use super::diagnostic::{DiagnosticCode, FeatureDiagnostic, FeatureInstallError};
use super::id::FeatureId;
use super::plan::{self, Declared, InstallPlan, PlannedFeature};
use super::policy::CapabilityPolicy;
use super::report::{FeatureInstallReport, HostReport, Outcome, RegistryReport, Totals};
use super::stage::{Complete, Stage};
use super::{FeatureModule, descriptor};
use crate::hook::{HookRegistry, HookRegistryBuilder};
use authority::{Door, Redactor};
use llm_worker::{Tool, ToolDefinition};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long one `descriptor()` or `install()` may take.
pub const CALLBACK_LIMIT: Duration = Duration::from_secs(5);

/// Collects modules, plans, installs. Callbacks run on threads of their own; [`FeatureRegistryBuilder::plan`] and
/// [`FeatureRegistryBuilder::install`] wait for them, so they belong before the control thread starts its work.
#[must_use]
pub struct FeatureRegistryBuilder {
    policy: CapabilityPolicy,
    modules: Vec<Arc<dyn FeatureModule>>,
    host: HostReport,
    limit: Duration,
    probe: Option<RegistrarProbe>,
    declared: Option<Declarations>,
}

/// The modules whose descriptors could be had, in plan order, and what is known of the others.
struct Declarations {
    features: Vec<(Declared, Arc<dyn FeatureModule>)>,
    lost: Vec<FeatureDiagnostic>,
}

impl FeatureRegistryBuilder {
    /// Starts without modules.
    pub fn new(policy: CapabilityPolicy) -> Self {
        let host = HostReport::default();
        Self { policy, modules: Vec::new(), host, limit: CALLBACK_LIMIT, probe: None, declared: None }
    }

    /// Adds a module. The order of adding means nothing.
    pub fn with(mut self, module: Arc<dyn FeatureModule>) -> Self {
        self.modules.push(module);
        self.declared = None;
        self
    }

    /// Adds modules.
    pub fn with_all(self, modules: impl IntoIterator<Item = Arc<dyn FeatureModule>>) -> Self {
        modules.into_iter().fold(self, Self::with)
    }

    /// Says what the host itself enforces, for the report.
    pub fn host(mut self, host: HostReport) -> Self {
        self.host = host;
        self
    }

    /// Waits less, or more, than [`CALLBACK_LIMIT`] for each callback.
    pub fn callback_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Lets a test fail any call an install makes.
    pub fn probe(mut self, probe: RegistrarProbe) -> Self {
        self.probe = Some(probe);
        self
    }

    /// What would be installed. Calls every `descriptor()` once, the first time.
    pub fn plan(&mut self) -> InstallPlan {
        let declared = match self.declared.take() {
            Some(declared) => declared,
            None => declare(&self.modules, self.limit),
        };
        let features: Vec<_> = declared.features.iter().map(|(d, _)| d).collect();
        let plan = plan::plan(&features, &self.policy, self.host.clone(), declared.lost.clone());
        self.declared = Some(declared);
        plan
    }

    /// Installs generation 1. A feature that fails is left out whole; this itself cannot fail, but
    /// [`RegistryReport::unmet`] may forbid to go on.
    pub fn install(mut self, services: &HostServices) -> FeatureRegistry {
        let plan = self.plan();
        let declared = self.declared.map_or_else(Vec::new, |d| d.features);
        let (mut jobs, mut installing): (Vec<Job<Staged>>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, (planned, (declared, module))) in plan.features.iter().zip(&declared).enumerate() {
            if planned.outcome.is_live() {
                let stage = Stage::new(&declared.descriptor, planned, self.probe.clone());
                jobs.push(job(Arc::clone(module), stage, services.clone()));
                installing.push(at);
            }
        }
        let mut ended: BTreeMap<usize, _> = installing.into_iter().zip(contained::run_all(jobs, self.limit)).collect();
        let (registry, hooks) = (FeatureRegistry::empty(), HookRegistryBuilder::new());
        let mut merging = Merging { registry, hooks, timings: Vec::new() };
        for (at, planned) in plan.features.into_iter().enumerate() {
            merging.feature(planned, ended.remove(&at));
        }
        merging.finish(self.host, &self.policy, plan.diagnostics, services.redactor())
    }
}

type Staged = (Result<(), FeatureInstallError>, Stage);

fn job(module: Arc<dyn FeatureModule>, mut stage: Stage, services: HostServices) -> Job<Staged> {
    Box::new(move || {
        let result = module.install(&mut FeatureInstallContext::new(&mut stage, &services));
        (result, stage)
    })
}

fn declare(modules: &[Arc<dyn FeatureModule>], limit: Duration) -> Declarations {
    let job = |module: &Arc<dyn FeatureModule>| -> Job<descriptor::FeatureDescriptor> {
        let module = Arc::clone(module);
        Box::new(move || module.descriptor())
    };
    let ended = contained::run_all(modules.iter().map(job).collect(), limit);
    let (mut features, mut lost) = (Vec::new(), Vec::new());
    for (module, ended) in modules.iter().zip(ended) {
        let source = module.source();
        let (code, what) = match ended {
            Ended::Done { value: descriptor, .. } => {
                features.push((Declared { source, descriptor }, Arc::clone(module)));
                continue;
            }
            Ended::Panicked { message } => (DiagnosticCode::DescriptorPanicked, format!("panicked: {message}")),
            Ended::TimedOut => (DiagnosticCode::DescriptorTimedOut, format!("did not return within {limit:?}")),
            Ended::NotCalled => (DiagnosticCode::TooManyStuck, "was not called: too many others hang".to_owned()),
        };
        lost.push(FeatureDiagnostic::general(code, format!("descriptor() of {source} {what}")));
    }
    features.sort_by_cached_key(|(declared, _)| plan::sort_key(declared));
    lost.sort();
    Declarations { features, lost }
}

/// Builds a registry feature by feature; each is merged whole or not at all.
struct Merging {
    registry: FeatureRegistry,
    hooks: HookRegistryBuilder,
    timings: Vec<(FeatureId, Duration)>,
}

impl Merging {
    fn feature(&mut self, planned: PlannedFeature, ended: Option<Ended<Staged>>) {
        let mut report = FeatureInstallReport::planned(&planned);
        if let Some(ended) = ended {
            match self.outcome(&planned.feature_id, ended) {
                Ok(complete) => self.merge(complete, &mut report),
                Err(why) => {
                    report.outcome = Outcome::Skipped;
                    report.diagnostics.extend(why);
                }
            }
        }
        self.registry.report.features.push(report);
    }

    fn outcome(&mut self, id: &FeatureId, ended: Ended<Staged>) -> Result<Complete, Vec<FeatureDiagnostic>> {
        let (code, what) = match ended {
            Ended::Done { value: (Ok(()), stage), took } => {
                self.timings.push((id.clone(), took));
                return stage.complete();
            }
            Ended::Done { value: (Err(error), _), .. } => (DiagnosticCode::InstallFailed, format!("failed: {error}")),
            Ended::Panicked { message } => (DiagnosticCode::InstallPanicked, format!("panicked: {message}")),
            Ended::TimedOut => {
                (DiagnosticCode::InstallTimedOut, "did not return in time; its thread is written off".into())
            }
            Ended::NotCalled => (DiagnosticCode::TooManyStuck, "was not called: too many others hang".into()),
        };
        Err(vec![FeatureDiagnostic::new(code, id, format!("install() of {id} {what}"))])
    }

    /// Infallible: the plan made names unique and the stage equals the plan.
    fn merge(&mut self, complete: Complete, report: &mut FeatureInstallReport) {
        let Complete { feature, tools, hooks, instructions, states, notes, doors } = complete;
        let (hooks, planned): (Vec<_>, Vec<_>) = hooks.into_iter().unzip();
        report.describe(&tools, &planned, &instructions);
        report.states = states;
        report.diagnostics.extend(notes);
        let doors = doors.keep().into_iter();
        self.registry.grants.extend(doors.map(|(grant, door)| (feature.clone(), grant, door)));
        self.registry.report.order.push(feature.clone());
        for (tool, deadline_ms) in tools {
            let deadline = Duration::from_millis(deadline_ms);
            let tool =
                RegisteredTool { feature: feature.clone(), definition: tool.definition, tool: tool.tool, deadline };
            self.registry.tools.by_name.insert(tool.definition.name.clone(), tool);
        }
        hooks.into_iter().for_each(|hook| hook.merge(&mut self.hooks));
        let texts =
            instructions.into_iter().map(|i| Instruction { feature: feature.clone(), name: i.name, text: i.text });
        self.registry.instructions.extend(texts);
    }

    fn finish(
        self,
        host: HostReport,
        policy: &CapabilityPolicy,
        lost: Vec<FeatureDiagnostic>,
        redactor: &Redactor,
    ) -> FeatureRegistry {
        let Self { mut registry, hooks, timings } = self;
        registry.hooks = hooks.redact(redactor.clone()).build();
        registry.redact(redactor.clone());
        let report = &mut registry.report;
        report.host = host;
        report.diagnostics = lost;
        report.unmet =
            plan::unmet(policy, report.features.iter().map(|f| (&f.feature_id, f.outcome, f.diagnostics.as_slice())));
        report.totals = Totals::of(&report.features);
        registry.timings = timings;
        registry
    }
}

/// One generation of live features.
pub struct FeatureRegistry {
    tools: ToolRegistry,
    hooks: HookRegistry,
    instructions: Vec<Instruction>,
    report: RegistryReport,
    timings: Vec<(FeatureId, Duration)>,
    grants: Vec<(FeatureId, HostCapability, Arc<Door>)>,
    redactor: Redactor,
}

/// A text for the system prompt, with who wants it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Whose.
    pub feature: FeatureId,
    /// Unique within the feature.
    pub name: String,
    /// What the model reads.
    pub text: String,
}

impl FeatureRegistry {
    fn empty() -> Self {
        let report = RegistryReport {
            generation: 1,
            order: Vec::new(),
            host: HostReport::default(),
            features: Vec::new(),
            totals: Totals::default(),
            unmet: Vec::new(),
            diagnostics: Vec::new(),
        };
        let tools = ToolRegistry { by_name: BTreeMap::new() };
        let (instructions, timings, grants) = (Vec::new(), Vec::new(), Vec::new());
        let redactor = Redactor::default();
        Self { tools, hooks: HookRegistry::default(), instructions, report, timings, grants, redactor }
    }

    /// Keeps secrets out of what was said so far, and from here on.
    fn redact(&mut self, redactor: Redactor) {
        let texts = self.instructions.iter_mut().map(|instruction| &mut instruction.text);
        let notes = self.report.features.iter_mut().flat_map(|feature| &mut feature.diagnostics);
        for text in texts.chain(notes.map(|note| &mut note.message)) {
            if redactor.finds(text.as_bytes()).is_some() {
                *text = redactor.text(text).into_owned();
            }
        }
        self.redactor = redactor;
    }

    /// What keeps secrets out of texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The version of the tool surface.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.report.generation
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.tools
    }

    /// The hooks.
    #[must_use]
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// The instructions, in install order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// What was installed and what was not.
    #[must_use]
    pub fn report(&self) -> &RegistryReport {
        &self.report
    }

    /// How long each `install()` took; apart from the report, whose bytes are stable.
    #[must_use]
    pub fn timings(&self) -> &[(FeatureId, Duration)] {
        &self.timings
    }
}

impl fmt::Debug for FeatureRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeatureRegistry").field("report", &self.report).finish_non_exhaustive()
    }
}

/// The tools of one generation, by name.
#[derive(Clone, Debug)]
pub struct ToolRegistry {
    by_name: BTreeMap<String, RegisteredTool>,
}

/// A tool, who contributed it, and how long the host waits for it.
#[derive(Clone)]
pub struct RegisteredTool {
    /// Whose.
    pub feature: FeatureId,
    /// What the model is told, as it was staged.
    pub definition: ToolDefinition,
    /// What runs.
    pub tool: Arc<dyn Tool>,
    /// How long the host waits for one call.
    pub deadline: Duration,
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feature, definition, deadline, tool: _ } = self;
        write!(f, "{} of {feature}, {deadline:?}", definition.name)
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

    /// What the model is told, by name: the same tools, the same bytes.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.iter().map(|t| t.definition.clone()).collect()
    }
}
