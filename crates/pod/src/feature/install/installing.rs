//! Turns a plan into a registry: installs run in the order of the plan, and each feature is merged whole or not at all.
//! Does not depend on turns.

mod enriching;

use super::context::FeatureInstallContext;
use super::host_services::HostServices;
use super::stage::{RegistrarProbe, Stage};
use crate::feature::FeatureModule;
use crate::feature::decide::plan::{self, PlannedFeature};
use crate::feature::decide::policy::CapabilityPolicy;
use crate::feature::decide::report::{FeatureInstallReport, HostReport, InstallOutcome, Totals};
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::contribution::Contribution;
use crate::feature::declare::descriptor::FeatureDescriptor;
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic, FeatureInstallError};
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::MissingService;
use crate::feature::live::command::RegisteredCommand;
use crate::feature::live::grant::FeatureGrants;
use crate::feature::live::registry::{FeatureRegistry, Instruction, RegisteredTool};
use crate::feature::live::service::Services;
use crate::feature::live::task::RegisteredTask;
use crate::foreign::installs::{CallbackEnd, InstallCallback, Runner};
use crate::hook::HookRegistryBuilder;
use enriching::InstalledEnricher;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A registry under construction.
pub(crate) struct Installing {
    runner: Runner,
    probe: Option<RegistrarProbe>,
    host: HostServices,
    registry: FeatureRegistry,
    hooks: HookRegistryBuilder,
    services: Services,
    reports: BTreeMap<usize, FeatureInstallReport>,
    /// Features that may install in one batch: none of them needs a service of another one in it.
    batch: Vec<Waiting>,
    batched: BTreeSet<FeatureId>,
    /// The categories that features of the batch serve, and those that installed features serve.
    batch_serves: BTreeSet<ToolCategory>,
    served: BTreeSet<ToolCategory>,
    /// In install order.
    enrichers: Vec<InstalledEnricher>,
    budget: plan::PlanBudget,
}

/// A feature that waits in the batch.
struct Waiting {
    at: usize,
    planned: PlannedFeature,
    holdings: FeatureGrants,
    callback: InstallCallback<Staged>,
}

type Staged = (Result<(), FeatureInstallError>, Stage);

impl Installing {
    pub(crate) fn new(runner: Runner, probe: Option<RegistrarProbe>, host: HostServices) -> Self {
        let registry = FeatureRegistry::empty();
        let hooks = HookRegistryBuilder::new();
        let services = Services::new();
        let reports = BTreeMap::new();
        let batch = Vec::new();
        let batched = BTreeSet::new();
        Self {
            runner,
            probe,
            host,
            registry,
            hooks,
            services,
            reports,
            batch,
            batched,
            batch_serves: BTreeSet::new(),
            served: BTreeSet::new(),
            enrichers: Vec::new(),
            budget: plan::PlanBudget::new(),
        }
    }

    /// The next feature in install order; `at` is its place in the report.
    pub(crate) fn feature(
        &mut self,
        at: usize,
        mut planned: PlannedFeature,
        descriptor: FeatureDescriptor,
        module: Arc<dyn FeatureModule>,
    ) {
        let needed = plan::needed_categories(&descriptor);
        if planned
            .services
            .resolved
            .iter()
            .any(|found| self.batched.contains(&found.provider))
            || needed
                .iter()
                .any(|category| self.batch_serves.contains(*category))
        {
            self.run();
        }
        self.lose_categories(&descriptor, &mut planned);
        self.lose_services(&descriptor, &mut planned);
        if !planned.outcome.is_live() {
            return self.left_out(at, &planned);
        }
        let holdings = FeatureGrants::default();
        let mut stage = Stage::new(
            &descriptor,
            &planned,
            &self.services,
            holdings.clone(),
            self.host.clone(),
            self.probe.clone(),
        );
        let callback = Box::new(move || {
            let result = module.install(&mut FeatureInstallContext(&mut stage));
            (result, stage)
        });
        self.batched.insert(planned.feature_id.clone());
        self.batch_serves.extend(planned.categories.iter().cloned());
        self.batch.push(Waiting {
            at,
            planned,
            holdings,
            callback,
        });
    }

    /// Reports a feature that the plan excludes.
    pub(crate) fn left_out(&mut self, at: usize, planned: &PlannedFeature) {
        self.reports
            .insert(at, FeatureInstallReport::planned(planned));
    }

    /// Planned tools of a category whose servers were not installed.
    fn lose_categories(&self, descriptor: &FeatureDescriptor, planned: &mut PlannedFeature) {
        let known = |category: &ToolCategory| {
            planned
                .unserved
                .iter()
                .any(|known| known.category == *category)
        };
        let needed = plan::needed_categories(descriptor).into_iter();
        let lost: Vec<_> = needed
            .filter(|category| !(self.served.contains(*category) || known(category)))
            .collect();
        if lost.is_empty() {
            return;
        }
        let reason = || "the features that serve it failed to install".to_owned();
        let lost = lost.into_iter().map(|category| plan::Unserved {
            category: category.clone(),
            reason: reason(),
        });
        planned.unserved.extend(lost);
        plan::contribute(descriptor, planned);
    }

    /// Planned services whose provider was not installed.
    fn lose_services(&self, descriptor: &FeatureDescriptor, planned: &mut PlannedFeature) {
        let resolved = std::mem::take(&mut planned.services.resolved);
        let (found, lost): (Vec<_>, Vec<_>) = resolved
            .into_iter()
            .partition(|found| self.services.contains_key(&found.service));
        planned.services.resolved = found;
        if lost.is_empty() {
            return;
        }
        let mut fatal = false;
        for lost in lost {
            let asked = descriptor
                .requires
                .iter()
                .find(|asked| !asked.each && asked.service == lost.service);
            // Of each instance, those are used that are there.
            if asked.is_none() {
                continue;
            }
            let version = asked.map(|asked| asked.version.clone()).unwrap_or_default();
            let required = asked.is_some_and(|asked| asked.need == crate::feature::Need::Required);
            let reason = format!("its provider {} failed to install", lost.provider);
            let missing = MissingService {
                service: lost.service,
                version,
                reason,
            };
            let code = if required {
                DiagnosticCode::RequiredServiceMissing
            } else {
                DiagnosticCode::OptionalServiceMissing
            };
            planned.diagnostics.push(plan::lacks(
                code,
                &planned.feature_id,
                &missing,
                Some(lost.provider),
            ));
            planned.services.missing.push(missing);
            fatal |= required;
        }
        plan::contribute(descriptor, planned);
        if fatal {
            plan::skip(planned);
        }
    }

    fn run(&mut self) {
        let mut callbacks = Vec::new();
        let mut waiting = Vec::new();
        self.batched.clear();
        self.batch_serves.clear();
        for Waiting {
            at,
            planned,
            holdings,
            callback,
        } in std::mem::take(&mut self.batch)
        {
            callbacks.push(callback);
            waiting.push((at, planned, holdings));
        }
        let ended = self.runner.run_all(callbacks);
        for ((at, planned, holdings), ended) in waiting.into_iter().zip(ended) {
            let mut report = FeatureInstallReport::planned(&planned);
            let outcome = self.outcome(&planned.feature_id, ended);
            match outcome.and_then(|stage| self.within_budget(stage, &planned.deferred)) {
                Ok(stage) => self.merge(stage, &holdings, &planned, &mut report),
                Err(why) => {
                    holdings.give_up();
                    report.outcome = InstallOutcome::Skipped;
                    report.services.provided.clear();
                    report.categories.clear();
                    report.diagnostics.extend(why);
                }
            }
            self.reports.insert(at, report);
        }
    }

    fn outcome(
        &mut self,
        id: &FeatureId,
        ended: CallbackEnd<Staged>,
    ) -> Result<Stage, Vec<FeatureDiagnostic>> {
        let mut remedy = None;
        let (code, what) = match ended {
            CallbackEnd::Done {
                value: (Ok(()), stage),
                took,
            } => {
                self.registry.timings.push((id.clone(), took));
                return stage.complete();
            }
            CallbackEnd::Done {
                value: (Err(error), _),
                ..
            } => {
                remedy = error.remedy();
                let what = format!("{id} was not installed: {error}");
                (DiagnosticCode::InstallFailed, what)
            }
            CallbackEnd::Panicked { message } => (
                DiagnosticCode::InstallPanicked,
                format!("the installation of {id} panicked: {message}"),
            ),
            CallbackEnd::TimedOut => (
                DiagnosticCode::InstallTimedOut,
                format!("the installation of {id} did not end in time"),
            ),
            CallbackEnd::NotCalled => (
                DiagnosticCode::TooManyStuck,
                format!("{id} was not installed: too many calls of other features hang"),
            ),
        };
        let failed = FeatureDiagnostic::quoting(code, id, &what, self.host.redactor());
        Err(vec![match remedy {
            Some(remedy) => failed.remedied(remedy, ", or disable the feature"),
            None => failed,
        }])
    }

    /// The plan counted declared texts; an install may have replaced instructions.
    fn within_budget(
        &mut self,
        stage: Stage,
        deferred: &BTreeSet<String>,
    ) -> Result<Stage, Vec<FeatureDiagnostic>> {
        let mut wanted = plan::FeatureDemand::default();
        let planned = stage.tools.planned();
        for tool in planned.filter(|tool| !deferred.contains(&tool.name)) {
            wanted.tool(&tool.name, &tool.about, &tool.schema);
        }
        for instruction in &stage.instructions {
            wanted.instruction(&instruction.text);
        }
        match self.budget.take(&stage.feature, wanted) {
            Ok(()) => Ok(stage),
            Err(full) => Err(vec![*full]),
        }
    }

    /// Infallible: the plan made names unique and the stage equals the plan.
    fn merge(
        &mut self,
        stage: Stage,
        holdings: &FeatureGrants,
        planned: &PlannedFeature,
        report: &mut FeatureInstallReport,
    ) {
        let feature = stage.feature;
        report.describe(planned, stage.tools.planned(), &stage.instructions);
        report.diagnostics.extend(stage.notes);
        self.served.extend(planned.categories.iter().cloned());
        let services = stage.services.into_staged();
        self.services
            .extend(services.map(|(_, service)| (service.id.clone(), service)));
        let registry = &mut self.registry;
        registry.report.order.push(feature.clone());
        let grants = &mut registry.grants;
        grants.extend(&feature, holdings);
        for (declared, tool) in stage.tools.into_staged() {
            let tool = RegisteredTool {
                feature: feature.clone(),
                door: grants.contributes(&feature, declared.implied()),
                definition: tool.definition,
                tool: tool.tool,
                deadline: Duration::from_millis(declared.deadline_ms),
                foreign: tool.contract,
                for_clients: declared.for_clients,
                category: declared.category,
                is_deferred: planned.deferred.contains(&declared.name),
                enrichment: None,
            };
            registry.tools.by_name.insert(declared.name, tool);
        }
        for (declared, hook) in stage.hooks.into_staged() {
            let requests = declared.requests().into_iter();
            let doors = requests.map(|capability| grants.contributes(&feature, capability));
            hook.merge(&declared, doors.collect(), &mut self.hooks);
        }
        for (declaration, code) in stage.enrichers.into_staged() {
            self.enrichers.push(InstalledEnricher {
                feature: feature.clone(),
                door: grants.contributes(&feature, declaration.implied()),
                declaration,
                code,
            });
        }
        for (declaration, task) in stage.tasks.into_staged() {
            registry.tasks.push(RegisteredTask {
                feature: feature.clone(),
                name: declaration.name.clone(),
                door: grants.contributes(&feature, declaration.implied()),
                declaration,
                events: task.events,
                files: task.files,
                body: task.body,
            });
        }
        let texts = stage.instructions.into_iter().map(|i| Instruction {
            feature: feature.clone(),
            name: i.name,
            text: i.text,
        });
        registry.instructions.extend(texts);
        for declaration in &planned.commands {
            // Of two features that offer one name, the first is typed.
            if let Some(first) = registry.commands.get(&declaration.name) {
                let name = &declaration.name;
                let text = format!(
                    "command /{name} of {feature} is not used: {} has one",
                    first.feature
                );
                let code = DiagnosticCode::ToolNameTaken;
                report
                    .diagnostics
                    .push(FeatureDiagnostic::new(code, &feature, text));
                continue;
            }
            let command = RegisteredCommand {
                feature: feature.clone(),
                door: grants.contributes(&feature, declaration.implied()),
                declaration: declaration.clone(),
                check: stage.command_check.clone(),
                text: stage.command_text.clone(),
            };
            registry.commands.insert(declaration.name.clone(), command);
        }
    }

    pub(crate) fn finish(
        mut self,
        host: HostReport,
        policy: &CapabilityPolicy,
        lost: Vec<FeatureDiagnostic>,
        services: &HostServices,
    ) -> FeatureRegistry {
        self.run();
        self.enrich();
        let Self {
            mut registry,
            hooks,
            reports,
            ..
        } = self;
        let redactor = services.redactor();
        registry.spawner = services.spawner.as_ref().ok().cloned();
        registry.hooks = hooks.redact(redactor.clone()).build();
        registry.report.features = reports.into_values().collect();
        registry.report.diagnostics = lost;
        registry.tools.caller = policy.caller().map(str::to_owned);
        registry.redact(redactor.clone());
        let report = &mut registry.report;
        report.host = host;
        report.unmet = plan::unmet(
            policy,
            report
                .features
                .iter()
                .map(|f| (&f.feature_id, f.outcome, f.diagnostics.as_slice())),
        );
        report.totals = Totals::of(&report.features);
        report.digest = report.digested();
        registry
    }
}
