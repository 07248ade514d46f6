//! Matches providers and consumers of services, as declared, before it is decided which features are installed.

use super::categories::{self, Unserved};
use super::order::{self, Needs, Order};
use super::{Declared, PlannedFeature};
use crate::feature::decide::report::InstallOutcome;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::grants::Need;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::{
    MissingService, ResolvedService, ServiceDeclaration, ServiceEvent, ServiceId,
    ServiceRequirement,
};
use std::collections::BTreeMap;

/// The name of a service, and of its instance.
type Instance<'a> = (&'a str, Option<&'a str>);

fn instance(service: &ServiceId) -> Instance<'_> {
    (&service.name, service.instance.as_deref())
}

/// Services and their providers.
pub(super) struct Wiring<'a> {
    declared: &'a [&'a Declared],
    /// The first provider of each instance that is allowed to provide it.
    providers: BTreeMap<Instance<'a>, usize>,
    /// The first declared provider of each name, allowed or not: the cause if the service is missing.
    known: BTreeMap<Instance<'a>, usize>,
    /// The features that serve each category of tools, live or not.
    servers: BTreeMap<&'a ToolCategory, Vec<usize>>,
    order: Order,
}

/// The result of a requirement.
pub(super) enum Resolution {
    Resolved(ResolvedService),
    Missing {
        code: DiagnosticCode,
        missing: MissingService,
        cause: Option<FeatureId>,
    },
}

impl<'a> Wiring<'a> {
    /// `planned` has the features that could be installed alone.
    pub(super) fn of(declared: &'a [&'a Declared], planned: &[PlannedFeature]) -> Self {
        let providers = BTreeMap::new();
        let known = BTreeMap::new();
        let order = Order::default();
        let mut wiring = Self {
            declared,
            providers,
            known,
            servers: categories::servers(declared),
            order,
        };
        for (at, (one, planned)) in declared.iter().zip(planned).enumerate() {
            for service in &one.descriptor.provides {
                wiring.known.entry(instance(&service.service)).or_insert(at);
                if planned.outcome.is_live()
                    && planned.grants.allows(&provides(&service.service.name))
                {
                    wiring
                        .providers
                        .entry(instance(&service.service))
                        .or_insert(at);
                }
            }
        }
        let needs: Needs = declared
            .iter()
            .zip(planned)
            .enumerate()
            .map(|(at, (one, planned))| wiring.needs(at, one, planned))
            .collect();
        wiring.order = order::order(needs);
        wiring
    }

    fn needs(&self, at: usize, one: &Declared, planned: &PlannedFeature) -> BTreeMap<usize, bool> {
        let mut needs = BTreeMap::new();
        if !planned.outcome.is_live() {
            return needs;
        }
        for asked in &one.descriptor.requires {
            if !planned.grants.allows(&asked.service.admission()) {
                continue;
            }
            for (provider, offer) in self.offers(asked) {
                if asked.takes(&offer.version) {
                    *needs.entry(provider).or_insert(false) |= asked.need == Need::Required;
                }
            }
        }
        for category in super::needed_categories(&one.descriptor) {
            for server in self
                .servers
                .get(category)
                .into_iter()
                .flatten()
                .filter(|server| **server != at)
            {
                needs.entry(*server).or_insert(false);
            }
        }
        needs
    }

    /// The categories of the tools of `at` that no live feature serves, once all features before it are decided.
    pub(super) fn unserved(&self, at: usize, planned: &[PlannedFeature]) -> Vec<Unserved> {
        let Some(one) = self.declared.get(at) else {
            return Vec::new();
        };
        let needed = super::needed_categories(&one.descriptor);
        let reason = |category: &ToolCategory| {
            let servers = self
                .servers
                .get(category)
                .into_iter()
                .flatten()
                .filter(|server| **server != at);
            let servers: Vec<_> = servers
                .filter_map(|server| Some((*server, planned.get(*server)?)))
                .collect();
            let served = servers.iter().any(|(server, by)| {
                by.outcome.is_live() && !self.order.cut.contains(&(at, *server))
            });
            (!served).then(|| categories::absence(servers.first().map(|(_, by)| *by)))
        };
        needed
            .into_iter()
            .filter_map(|category| {
                Some(Unserved {
                    category: category.clone(),
                    reason: reason(category)?,
                })
            })
            .collect()
    }

    /// Providers before consumers.
    pub(super) fn sequence(&self) -> &[usize] {
        &self.order.sequence
    }

    /// The problem that excludes `at` regardless of the other features.
    pub(super) fn obstacles(&self, at: usize) -> Vec<FeatureDiagnostic> {
        let Some(one) = self.declared.get(at) else {
            return Vec::new();
        };
        let id = &one.descriptor.id;
        if let Some(cycle) = self.order.cycles.get(&at) {
            let message = format!(
                "services of {id} form a cycle: {}",
                order::path(cycle, |at| self.id(at))
            );
            return vec![FeatureDiagnostic::new(
                DiagnosticCode::ServiceCycle,
                id,
                message,
            )];
        }
        let mut names: Vec<_> = one
            .descriptor
            .provides
            .iter()
            .map(|s| instance(&s.service))
            .collect();
        names.dedup();
        let taken = names.into_iter().filter_map(|of| {
            let owner = self.providers.get(&of).filter(|owner| **owner < at)?;
            let name = of.1.map_or_else(
                || of.0.to_owned(),
                |instance| format!("{}#{instance}", of.0),
            );
            let message = format!("service {name} of {id} is provided by {}", self.id(*owner)?);
            let taken = FeatureDiagnostic::new(DiagnosticCode::ServiceTaken, id, message);
            Some(taken.remedied("disable one of them", ""))
        });
        taken.collect()
    }

    /// Resolves a requirement of `at`, once all features before it are decided.
    /// Also its `events` must be declared by the provider.
    pub(super) fn find<'e>(
        &self,
        at: usize,
        asked: &ServiceRequirement,
        events: impl Iterator<Item = &'e ServiceEvent>,
        planned: &[PlannedFeature],
    ) -> Resolution {
        let ServiceRequirement {
            service,
            version: range,
            ..
        } = asked;
        let missing = |code, cause: Option<usize>, reason: String| {
            let cause = cause.and_then(|cause| self.id(cause)).cloned();
            let code = if asked.need == Need::Optional {
                DiagnosticCode::OptionalServiceMissing
            } else {
                code
            };
            let missing = MissingService {
                service: service.clone(),
                version: range.clone(),
                reason,
            };
            Resolution::Missing {
                code,
                missing,
                cause,
            }
        };
        let Some((provider, offer)) = self.offer(service) else {
            let known = self.known.get(&instance(service)).copied();
            let reason = match known.and_then(|known| planned.get(known)) {
                Some(provider) => absence(provider, service),
                None => "no feature provides it".to_owned(),
            };
            return missing(DiagnosticCode::RequiredServiceMissing, known, reason);
        };
        let Some(by) = planned.get(provider) else {
            return missing(
                DiagnosticCode::RequiredServiceMissing,
                None,
                "no feature provides it".to_owned(),
            );
        };
        let version = offer.version.as_str();
        if !asked.takes(version) {
            let reason = format!("{} provides {version}", by.feature_id);
            return missing(DiagnosticCode::ServiceVersionUnmet, Some(provider), reason);
        }
        let mut events = events.filter(|event| event.service == *service);
        if let Some(absent) = events.find(|event| !offer.events.contains(&event.event)) {
            let reason = format!(
                "{} declares no event `{}` of it",
                by.feature_id, absent.event
            );
            return missing(DiagnosticCode::ServiceVersionUnmet, Some(provider), reason);
        }
        if self.order.cut.contains(&(at, provider)) {
            let reason = format!("{} also needs this feature", by.feature_id);
            return missing(
                DiagnosticCode::RequiredServiceMissing,
                Some(provider),
                reason,
            );
        }
        if !by.outcome.is_live() {
            return missing(
                DiagnosticCode::RequiredServiceMissing,
                Some(provider),
                absence(by, service),
            );
        }
        let version = version.to_owned();
        let provider = by.feature_id.clone();
        Resolution::Resolved(ResolvedService {
            service: service.clone(),
            version,
            provider,
        })
    }

    /// All instances for a requirement of `at` that asks for each, once all features before it are decided. Those that
    /// are not live, or have another version, are left out.
    pub(super) fn find_each(
        &self,
        at: usize,
        asked: &ServiceRequirement,
        planned: &[PlannedFeature],
    ) -> Vec<ResolvedService> {
        let live = self.offers(asked).into_iter().filter(|(provider, offer)| {
            asked.takes(&offer.version) && !self.order.cut.contains(&(at, *provider))
        });
        let found = live.filter_map(|(provider, offer)| {
            let by = planned.get(provider).filter(|by| by.outcome.is_live())?;
            let service = offer.service.clone();
            let version = offer.version.clone();
            Some(ResolvedService {
                service,
                version,
                provider: by.feature_id.clone(),
            })
        });
        found.collect()
    }

    /// The providers that a requirement means.
    fn offers(&self, asked: &ServiceRequirement) -> Vec<(usize, &'a ServiceDeclaration)> {
        if !asked.each {
            return self.offer(&asked.service).into_iter().collect();
        }
        let instances = self
            .providers
            .keys()
            .filter(|(name, _)| *name == asked.service.name);
        let id = |(name, instance): &Instance<'_>| ServiceId {
            name: (*name).to_owned(),
            access: asked.service.access,
            instance: instance.map(str::to_owned),
        };
        instances
            .filter_map(|instance| self.offer(&id(instance)))
            .collect()
    }

    /// The provider of exactly this service, with its declaration.
    fn offer(&self, service: &ServiceId) -> Option<(usize, &'a ServiceDeclaration)> {
        let provider = *self.providers.get(&instance(service))?;
        let declared = &self.declared.get(provider)?.descriptor.provides;
        declared
            .iter()
            .find(|offer| offer.service == *service)
            .map(|offer| (provider, offer))
    }

    fn id(&self, at: usize) -> Option<&'a FeatureId> {
        self.declared.get(at).map(|one| &one.descriptor.id)
    }
}

/// The capability for providing a service.
pub(super) fn provides(name: &str) -> HostCapability {
    HostCapability::ProvideService {
        key: name.to_owned().into(),
    }
}

fn absence(provider: &PlannedFeature, service: &ServiceId) -> String {
    let id = &provider.feature_id;
    let name = service.name.as_str();
    match provider.outcome {
        InstallOutcome::Disabled => format!("its provider {id} is disabled"),
        InstallOutcome::Skipped => format!("its provider {id} is skipped"),
        InstallOutcome::Installed | InstallOutcome::Degraded
            if provider.grants.allows(&provides(name)) =>
        {
            format!("{id} provides only another access to it")
        }
        InstallOutcome::Installed | InstallOutcome::Degraded => {
            format!("{id} is not allowed to provide it")
        }
    }
}
