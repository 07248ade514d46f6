//! Collects modules, plans them and installs them. Independent of turns: a registry is complete before the first.

use super::host_services::HostServices;
use super::installing::Installing;
use super::module::FeatureModule;
use super::stage::RegistrarProbe;
use crate::feature::decide::plan::{self, Declared, InstallPlan};
use crate::feature::decide::policy::CapabilityPolicy;
use crate::feature::decide::report::HostReport;
use crate::feature::declare::descriptor::{FeatureDescriptor, FeatureRuntimeKind};
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::id::FeatureId;
use crate::feature::live::registry::FeatureRegistry;
use crate::foreign::installs::{CallbackEnd, InstallCallback, Runner};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long one `descriptor()` or `install()` may take.
pub const CALLBACK_LIMIT: Duration = Duration::from_secs(5);

/// Plans and installs modules into a [`FeatureRegistry`]; `yoi` and tests use it once per start. Callbacks run on
/// threads of their own; [`FeatureRegistryBuilder::plan`] and [`FeatureRegistryBuilder::install`] block until these
/// end, so call them before the control thread starts its work.
#[must_use]
pub struct FeatureRegistryBuilder {
    policy: CapabilityPolicy,
    modules: Vec<Arc<dyn FeatureModule>>,
    runtimes: BTreeSet<FeatureRuntimeKind>,
    host: HostReport,
    limit: Duration,
    probe: Option<RegistrarProbe>,
    declared: Option<Declarations>,
    /// The plan of what was added so far.
    plan: Option<InstallPlan>,
    problems: Vec<FeatureDiagnostic>,
}

/// The modules whose descriptors are known, in plan order, and the problems of the others.
struct Declarations {
    features: Vec<(Declared, Arc<dyn FeatureModule>)>,
    lost: Vec<FeatureDiagnostic>,
}

impl FeatureRegistryBuilder {
    /// Starts without modules.
    pub fn new(policy: CapabilityPolicy) -> Self {
        let host = HostReport::default();
        let modules = Vec::new();
        let runtimes = BTreeSet::from([FeatureRuntimeKind::Builtin]);
        Self {
            policy,
            modules,
            runtimes,
            host,
            limit: CALLBACK_LIMIT,
            probe: None,
            declared: None,
            plan: None,
            problems: Vec::new(),
        }
    }

    /// Adds a module. The order of adding has no effect.
    pub fn with(mut self, module: Arc<dyn FeatureModule>) -> Self {
        self.modules.push(module);
        (self.declared, self.plan) = (None, None);
        self
    }

    /// Adds modules.
    pub fn with_all(self, modules: impl IntoIterator<Item = Arc<dyn FeatureModule>>) -> Self {
        modules.into_iter().fold(self, Self::with)
    }

    /// Says that the modules bring an adapter for features of this kind.
    pub fn runtime(mut self, kind: FeatureRuntimeKind) -> Self {
        self.runtimes.insert(kind);
        (self.declared, self.plan) = (None, None);
        self
    }

    /// Adds a problem to the report: why a package, or a feature of one, is not among the modules.
    pub fn problem(mut self, feature: Option<FeatureId>, message: &str) -> Self {
        let problem = FeatureDiagnostic::general(DiagnosticCode::InvalidDescriptor, message);
        self.problems.push(FeatureDiagnostic {
            feature_id: feature,
            ..problem
        });
        self.plan = None;
        self
    }

    /// Adds to the report that rules do not hold which the person granted with a package.
    pub fn lost_rules(mut self, feature: Option<FeatureId>, message: &str) -> Self {
        let lost = FeatureDiagnostic::general(DiagnosticCode::RulesLost, message);
        self.problems.push(FeatureDiagnostic {
            feature_id: feature,
            ..lost
        });
        self.plan = None;
        self
    }

    /// Sets the host's own part of the report.
    pub fn host(mut self, host: HostReport) -> Self {
        self.host = host;
        self.plan = None;
        self
    }

    /// Sets the deadline of each callback, instead of [`CALLBACK_LIMIT`].
    pub fn callback_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets a probe with which a test can fail any call of an install into the host.
    pub fn probe(mut self, probe: RegistrarProbe) -> Self {
        self.probe = Some(probe);
        self
    }

    /// The plan of the install. Calls every `descriptor()` once, the first time.
    pub fn plan(&mut self) -> InstallPlan {
        if let Some(plan) = &self.plan {
            return plan.clone();
        }
        let declared = match self.declared.take() {
            Some(declared) => declared,
            None => declare(&self.modules, &self.runtimes, self.limit),
        };
        let features: Vec<_> = declared.features.iter().map(|(d, _)| d).collect();
        let problems = declared
            .lost
            .iter()
            .chain(&self.problems)
            .cloned()
            .collect();
        let plan = plan::plan(&features, &self.policy, self.host.clone(), problems);
        self.declared = Some(declared);
        self.plan = Some(plan.clone());
        plan
    }

    /// Installs generation 1. A feature that fails is left out whole; this itself cannot fail, but if
    /// [`RegistryReport::unmet`] is not empty, no pod may start.
    pub fn install(mut self, services: &HostServices) -> FeatureRegistry {
        let plan = self.plan();
        let declared = self.declared.map_or_else(Vec::new, |d| d.features);
        let mut places: BTreeMap<_, _> = plan
            .features
            .into_iter()
            .zip(declared)
            .enumerate()
            .collect();
        let mut at: BTreeMap<_, _> = places
            .iter()
            .map(|(at, (planned, _))| (planned.feature_id.clone(), *at))
            .collect();
        let mut installing = Installing::new(Runner::new(self.limit), self.probe, services.clone());
        for id in &plan.order {
            if let Some((at, (planned, (declared, module)))) =
                at.remove(id).and_then(|at| places.remove_entry(&at))
            {
                installing.feature(at, planned, declared.descriptor, module);
            }
        }
        for (at, (planned, _)) in places {
            installing.left_out(at, &planned);
        }
        installing.finish(self.host, &self.policy, plan.diagnostics, services)
    }
}

fn declare(
    modules: &[Arc<dyn FeatureModule>],
    runtimes: &BTreeSet<FeatureRuntimeKind>,
    limit: Duration,
) -> Declarations {
    let callback =
        |module: &Arc<dyn FeatureModule>| -> InstallCallback<(FeatureDescriptor, Option<String>)> {
            let module = Arc::clone(module);
            Box::new(move || (module.descriptor(), module.body()))
        };
    let ended = Runner::new(limit).run_all(modules.iter().map(callback).collect());
    let mut features = Vec::new();
    let mut lost = Vec::new();
    for (module, ended) in modules.iter().zip(ended) {
        let source = module.source();
        let (code, what) = match ended {
            CallbackEnd::Done {
                value: (descriptor, body),
                ..
            } => {
                let is_supported = runtimes.contains(&descriptor.runtime);
                features.push((
                    Declared {
                        source,
                        descriptor,
                        body,
                        is_supported,
                    },
                    Arc::clone(module),
                ));
                continue;
            }
            CallbackEnd::Panicked { message } => (
                DiagnosticCode::DescriptorPanicked,
                format!("panicked: {message}"),
            ),
            CallbackEnd::TimedOut => (
                DiagnosticCode::DescriptorTimedOut,
                format!("did not return within {limit:?}"),
            ),
            CallbackEnd::NotCalled => (
                DiagnosticCode::TooManyStuck,
                "was not called: too many calls of other features hang".to_owned(),
            ),
        };
        lost.push(FeatureDiagnostic::general(
            code,
            format!("descriptor() of {source} {what}"),
        ));
    }
    features.sort_by(|(one, _), (other, _)| plan::order(one, other));
    lost.sort();
    Declarations { features, lost }
}
