//! The private stage of one feature: compared with its plan, then merged whole or dropped.

use super::contributions::{BackgroundTaskContribution, HookContribution, ToolContribution};
use super::host_services::{HostServices, NOT_OFFERED};
use super::slots::Slots;
use crate::feature::decide::plan::PlannedFeature;
use crate::feature::decide::policy::CapabilityGrantSet;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::contribution::ContributionKind;
use crate::feature::declare::descriptor::{FeatureDescriptor, InstructionDeclaration};
use crate::feature::declare::diagnostic::{
    DiagnosticCode, FeatureDiagnostic, FeatureInstallError, MAX_NOTES,
};
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::hook::HookDeclaration;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::{
    ServiceDeclaration, ServiceEvent, ServiceId, ServiceRequirement,
};
use crate::feature::declare::settings::Settings;
use crate::feature::declare::state::{StateDeclaration, StateKey};
use crate::feature::declare::task::BackgroundTaskDeclaration;
use crate::feature::declare::tool::ToolDeclaration;
use crate::feature::live::command::{CommandCheck, CommandText};
use crate::feature::live::enrich::ToolEnricher;
use crate::feature::live::foreign::ForeignContract;
use crate::feature::live::grant::{FeatureGrants, GrantHandle, GrantObject};
use crate::feature::live::service::{JsonService, Service, ServiceHandle, Services};
use crate::feature::live::sink::{ServiceEventSink, SinkLink};
use crate::feature::live::state::DurableState;
use crate::feature::live::task::{GrantedEvent, TaskHandle};
use authority::Door;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// Whether a staged contribution will be installed. A registrar returns it, so that a feature can adapt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// It will be installed, if the whole feature is.
    Staged,
    /// The plan left it out, because an optional capability was denied.
    Skipped,
}

/// One call into the host during an install, as a [`RegistrarProbe`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct RegistrarCall<'a> {
    pub feature: &'a FeatureId,
    /// Its number in this install, from 1.
    pub number: usize,
    pub registrar: &'static str,
    /// The object of the call: a tool, an instruction, a root.
    pub name: &'a str,
}

/// Called before each call into the host takes effect; its error, panic or delay replaces the call's. For tests of
/// features: a failure at every point of an install.
pub type RegistrarProbe =
    Arc<dyn Fn(RegistrarCall<'_>) -> Result<(), FeatureInstallError> + Send + Sync>;

/// Most calls of one install into the host.
const MAX_CALLS: usize = 1_024;

/// A feature's private stage; refuses contributions that are not in the plan.
pub(crate) struct Stage {
    pub(crate) feature: FeatureId,
    pub(crate) grants: CapabilityGrantSet,
    /// None if the descriptor declares none.
    pub(crate) settings: Option<Settings>,
    pub(super) tools: Slots<ToolDeclaration, ToolContribution>,
    pub(super) hooks: Slots<HookDeclaration, HookContribution>,
    pub(super) enrichers: Slots<EnricherDeclaration, Arc<dyn ToolEnricher>>,
    pub(super) tasks: Slots<BackgroundTaskDeclaration, BackgroundTaskContribution>,
    states: Slots<StateDeclaration, ()>,
    pub(super) services: Slots<ServiceDeclaration, Arc<Service>>,
    pub(super) instructions: Vec<InstructionDeclaration>,
    pub(super) command_check: Option<CommandCheck>,
    pub(super) command_text: Option<CommandText>,
    requires: Vec<ServiceRequirement>,
    /// The result of each requirement; without a service, the reason.
    wanted: BTreeMap<ServiceId, Result<Arc<Service>, String>>,
    holdings: FeatureGrants,
    pub(super) host: HostServices,
    pub(super) notes: Vec<FeatureDiagnostic>,
    refusal: Option<FeatureInstallError>,
    probe: Option<RegistrarProbe>,
    calls: usize,
}

impl Stage {
    pub(crate) fn new(
        descriptor: &FeatureDescriptor,
        planned: &PlannedFeature,
        services: &Services,
        holdings: FeatureGrants,
        host: HostServices,
        probe: Option<RegistrarProbe>,
    ) -> Self {
        let missing = planned
            .services
            .missing
            .iter()
            .map(|m| (m.service.clone(), Err(m.reason.clone())));
        let found = planned
            .services
            .resolved
            .iter()
            .filter_map(|r| services.get(&r.service));
        let wanted = found
            .map(|s| (s.id.clone(), Ok(Arc::clone(s))))
            .chain(missing)
            .collect();
        let skipped = &planned.skipped_contributions;
        Self {
            feature: descriptor.id.clone(),
            grants: planned.grants.clone(),
            settings: descriptor
                .settings
                .as_ref()
                .map(|_| planned.settings.clone()),
            tools: Slots::new(&descriptor.declared_tools, skipped).sorted(),
            hooks: Slots::new(&descriptor.declared_hooks, skipped),
            enrichers: Slots::new(&descriptor.enriches, skipped),
            tasks: Slots::new(&descriptor.declared_background_tasks, skipped),
            states: Slots::new(&descriptor.states, skipped),
            services: Slots::new(&descriptor.provides, skipped),
            instructions: descriptor.instructions.clone(),
            command_check: None,
            command_text: None,
            requires: descriptor.requires.clone(),
            wanted,
            holdings,
            host,
            notes: Vec::new(),
            refusal: None,
            probe,
            calls: 0,
        }
    }

    /// Counts a call into the host. A refusal is remembered, so that a feature that ignores it is not installed; a
    /// refused handle is not, since a feature can work without it.
    pub(crate) fn call<T>(
        &mut self,
        registrar: &'static str,
        name: &str,
        act: impl FnOnce(&mut Self) -> Result<T, FeatureInstallError>,
    ) -> Result<T, FeatureInstallError> {
        self.calls += 1;
        let call = RegistrarCall {
            feature: &self.feature,
            number: self.calls,
            registrar,
            name,
        };
        let probed = self.probe.as_ref().map_or(Ok(()), |probe| probe(call));
        let result = probed.and_then(|()| self.room()).and_then(|()| act(self));
        if let (Err(error), None) = (&result, &self.refusal) {
            let survivable = matches!(
                error,
                FeatureInstallError::Denied { .. } | FeatureInstallError::Unavailable { .. }
            );
            self.refusal = (!survivable).then(|| error.clone());
        }
        result
    }

    /// Bounds the size of a stage: nothing is staged and no handle is given without a call.
    fn room(&self) -> Result<(), FeatureInstallError> {
        let many = || {
            format!(
                "install() of {} made more than {MAX_CALLS} calls",
                self.feature
            )
        };
        if self.calls > MAX_CALLS {
            Err(FeatureInstallError::Exhausted(many()))
        } else {
            Ok(())
        }
    }

    pub(crate) fn granted(
        &self,
        asked: &HostCapability,
    ) -> Result<HostCapability, FeatureInstallError> {
        let grant = self
            .grants
            .granted()
            .iter()
            .find(|grant| grant.covers(asked))
            .cloned();
        grant.ok_or_else(|| self.denied(asked))
    }

    pub(super) fn denied(&self, asked: impl Display) -> FeatureInstallError {
        FeatureInstallError::Denied {
            feature: self.feature.clone(),
            asked: asked.to_string(),
        }
    }

    /// The message for a grant for which the host offers nothing.
    pub(super) fn unavailable(
        &self,
        asked: impl Display,
        why: impl Display,
    ) -> FeatureInstallError {
        FeatureInstallError::Unavailable {
            feature: self.feature.clone(),
            asked: asked.to_string(),
            why: why.to_string(),
        }
    }

    /// The door of the grant that includes `asked`.
    pub(crate) fn grant(
        &mut self,
        asked: &HostCapability,
    ) -> Result<Arc<Door>, FeatureInstallError> {
        let grant = self.granted(asked)?;
        Ok(self
            .holdings
            .find(&grant)
            .unwrap_or_else(|| self.hold(grant, &Door::new())))
    }

    /// Records a door under its grant.
    pub(super) fn hold(&self, capability: HostCapability, door: &Arc<Door>) -> Arc<Door> {
        self.holdings.hold(GrantHandle {
            capability,
            door: Arc::clone(door),
            about: GrantObject::Operations,
        });
        Arc::clone(door)
    }

    /// The way of a sink to the pod, under a door.
    pub(super) fn link(
        &self,
        asked: impl Display,
        door: Arc<Door>,
    ) -> Result<SinkLink, FeatureInstallError> {
        let Some(link) = &self.host.link else {
            return Err(self.unavailable(asked, NOT_OFFERED));
        };
        Ok(SinkLink {
            feature: self.feature.clone(),
            door,
            presence: Arc::clone(self.holdings.presence()),
            mailbox: link.mailbox.clone(),
        })
    }

    /// Provides one form of a declared service.
    pub(super) fn offer(
        &mut self,
        id: &ServiceId,
        provide: impl FnOnce(&Service) -> bool,
    ) -> Result<Staging, FeatureInstallError> {
        let name = id.to_string();
        if self.services.declared(&name, &self.feature)?.is_none() {
            return Ok(Staging::Skipped);
        }
        let service = match self.services.get(&name) {
            Some(service) => Arc::clone(service),
            None => {
                let capability = self.granted(&HostCapability::ProvideService {
                    key: id.name.clone().into(),
                })?;
                let service = Arc::new(Service::new(id.clone(), self.feature.clone()));
                self.holdings.hold(GrantHandle {
                    capability,
                    door: Arc::clone(&service.door),
                    about: GrantObject::Provided(Arc::clone(&service)),
                });
                self.services.put(&name, Arc::clone(&service));
                service
            }
        };
        if provide(&service) {
            return Ok(Staging::Staged);
        }
        let kind = ContributionKind::Service;
        Err(FeatureInstallError::twice(kind, name, &self.feature))
    }

    pub(crate) fn require<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        id: &ServiceId,
    ) -> Result<ServiceHandle<T>, FeatureInstallError> {
        let (service, door) = self.service_door(id)?;
        let handle = service.handle(door, self.host.redactor.clone());
        let kind = ContributionKind::Service;
        handle.ok_or_else(|| FeatureInstallError::differs(kind, id, &self.feature, "its trait"))
    }

    pub(crate) fn require_json(
        &mut self,
        id: &ServiceId,
    ) -> Result<ServiceHandle<dyn JsonService>, FeatureInstallError> {
        let (service, door) = self.service_door(id)?;
        let why = || format!("{} does not provide it as JSON", service.provider);
        let handle = service.json_handle(door, self.host.redactor.clone());
        handle.ok_or_else(|| self.unavailable(format!("service {id}"), why()))
    }

    /// The instances that were found for a requirement of each one, by name.
    pub(crate) fn each(&self, of: &ServiceId) -> Result<Vec<ServiceId>, FeatureInstallError> {
        let asked = |asked: &&ServiceRequirement| asked.each && asked.service == *of;
        if !self.requires.iter().any(|required| asked(&required)) {
            return Err(self.undeclared_service(of));
        }
        let instance = |id: &&ServiceId| id.name == of.name && id.access == of.access;
        Ok(self
            .wanted
            .iter()
            .filter(|(_, found)| found.is_ok())
            .map(|(id, _)| id)
            .filter(instance)
            .cloned()
            .collect())
    }

    /// A required service, and the door of its grant.
    fn service_door(
        &self,
        id: &ServiceId,
    ) -> Result<(Arc<Service>, Arc<Door>), FeatureInstallError> {
        let Some(wanted) = self.wanted.get(id) else {
            return Err(self.undeclared_service(id));
        };
        let capability = self.granted(&id.admission())?;
        let service = wanted
            .as_ref()
            .map_err(|why| self.unavailable(format!("service {id}"), why))?;
        let door = self.holdings.service(service).unwrap_or_else(|| {
            let door = service.door.derive();
            let about = GrantObject::Used(Arc::clone(service));
            self.holdings.hold(GrantHandle {
                capability,
                door: Arc::clone(&door),
                about,
            });
            door
        });
        Ok((Arc::clone(service), door))
    }

    fn undeclared_service(&self, name: &dyn Display) -> FeatureInstallError {
        FeatureInstallError::undeclared(ContributionKind::Service, name, &self.feature)
    }

    /// Creates the sink for a declared event of a service that this feature provides.
    pub(crate) fn event_sink(
        &mut self,
        event: ServiceEvent,
    ) -> Result<ServiceEventSink, FeatureInstallError> {
        let capability = HostCapability::ProvideService {
            key: event.service.name.clone().into(),
        };
        let door = self.grant(&capability)?;
        let declares = |planned: &ServiceDeclaration| {
            planned.service == event.service && planned.events.contains(&event.event)
        };
        if !self.services.planned().any(declares) {
            return Err(self.undeclared_service(&event));
        }
        let link = self.link(&event, door)?;
        Ok(ServiceEventSink { link, event })
    }

    /// Opens a state that equals its declaration.
    pub(super) fn state<T>(
        &mut self,
        key: &StateKey<T>,
    ) -> Result<DurableState<T>, FeatureInstallError>
    where
        T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
    {
        let name = key.name();
        let declared = key.declaration();
        let asked = HostCapability::StateStore {
            scope: declared.scope,
        };
        let door = self.grant(&asked)?;
        let differs = |planned: &_| (*planned != declared).then_some("its version or scope");
        let staging = self.states.stage(name, &self.feature, differs, ())?;
        if staging == Staging::Skipped {
            return Err(self.denied(&asked));
        }
        let Some(link) = &self.host.link else {
            return Err(self.unavailable(format!("state `{name}`"), NOT_OFFERED));
        };
        let presence = Arc::clone(self.holdings.presence());
        let redactor = self.host.redactor.clone();
        let state = DurableState::load(key, &self.feature, link, (door, presence), redactor);
        state.map_err(|why| {
            FeatureInstallError::failed(format!("state `{name}` cannot be read: {why}"))
        })
    }

    /// Takes a tool that equals its declaration.
    pub(crate) fn tool(
        &mut self,
        mut tool: ToolContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let name = tool.definition.name.clone();
        let differs = |declared: &ToolDeclaration| tool.difference(declared, &self.feature);
        let staging = self.tools.check(&name, &self.feature, differs)?;
        if let Some(declared) = self.tools.declared(&name, &self.feature)? {
            if declared.foreign {
                tool.contract = Some(Arc::new(ForeignContract::of(declared)));
            }
            self.tools.put(&name, tool);
        }
        Ok(staging)
    }

    /// Takes a hook that equals its declaration.
    pub(crate) fn hook(&mut self, hook: HookContribution) -> Result<Staging, FeatureInstallError> {
        let name = hook.declaration.name.clone();
        let differs = |declared: &HookDeclaration| hook.difference(declared, &self.feature);
        let staging = self.hooks.check(&name, &self.feature, differs)?;
        if staging == Staging::Staged {
            self.hooks.put(&name, hook);
        }
        Ok(staging)
    }

    /// Takes an enricher that equals its declaration.
    pub(crate) fn enricher(
        &mut self,
        enricher: &EnricherDeclaration,
        code: Arc<dyn ToolEnricher>,
    ) -> Result<Staging, FeatureInstallError> {
        let differs = |planned: &_| (planned != enricher).then_some("its tools, category or needs");
        self.enrichers
            .stage(&enricher.name, &self.feature, differs, code)
    }

    /// Takes a background task that equals its declaration.
    pub(crate) fn task(
        &mut self,
        mut task: BackgroundTaskContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let name = task.declaration.name.clone();
        let differs = |planned: &BackgroundTaskDeclaration| {
            task_difference(planned, &task.declaration)
                .or((task.feature_id != self.feature).then_some(FEATURE_ID))
        };
        if self.tasks.check(&name, &self.feature, differs)? == Staging::Skipped {
            return Ok(Staging::Skipped);
        }
        for event in task.declaration.service_events() {
            let (_, door) = self.service_door(&event.service)?;
            task.events.push(GrantedEvent {
                event: event.clone(),
                door,
            });
        }
        if task.declaration.is_on_file_change() {
            task.files = Some(self.fs(HostCapability::WORKSPACE)?);
        }
        self.tasks.put(&name, task);
        Ok(Staging::Staged)
    }

    /// Creates the handle that requests runs of a planned background task.
    pub(crate) fn task_handle(
        &mut self,
        task: &BackgroundTaskDeclaration,
    ) -> Result<TaskHandle, FeatureInstallError> {
        let asked = task.implied();
        let Some(planned) = self.tasks.declared(&task.name, &self.feature)? else {
            self.granted(&asked)?;
            return Err(self.unavailable(asked, "the background task is left out"));
        };
        if let Some(what) = task_difference(planned, task) {
            let kind = ContributionKind::Task;
            return Err(FeatureInstallError::differs(
                kind,
                &task.name,
                &self.feature,
                what,
            ));
        }
        if !task.is_on_request() {
            let feature = &self.feature;
            let name = &task.name;
            let why = format!("background task `{name}` of {feature} has no trigger `on_request`");
            return Err(FeatureInstallError::failed(why));
        }
        let door = self.grant(&asked)?;
        Ok(TaskHandle {
            link: self.link(asked, door)?,
            task: task.name.clone(),
        })
    }

    pub(crate) fn instruction(
        &mut self,
        name: &str,
        text: String,
    ) -> Result<(), FeatureInstallError> {
        let Some(declared) = self.instructions.iter_mut().find(|i| i.name == name) else {
            return Err(FeatureInstallError::NotDeclared {
                kind: "instruction",
                name: name.to_owned(),
                feature: self.feature.clone(),
            });
        };
        crate::feature::declare::descriptor::instruction_text(name, &text)
            .map_err(FeatureInstallError::Exhausted)?;
        declared.text = text;
        Ok(())
    }

    pub(crate) fn note(&mut self, text: &str) -> Result<(), FeatureInstallError> {
        if self.notes.len() >= MAX_NOTES {
            return Err(FeatureInstallError::Exhausted(format!(
                "{} has already added {MAX_NOTES} notes, the limit",
                self.feature
            )));
        }
        self.notes.push(FeatureDiagnostic::quoting(
            DiagnosticCode::Note,
            &self.feature,
            text,
            &self.host.redactor,
        ));
        Ok(())
    }

    /// The stage, if it equals its plan: merging it cannot fail. Otherwise all that is missing.
    pub(crate) fn complete(self) -> Result<Self, Vec<FeatureDiagnostic>> {
        let feature = &self.feature;
        if let Some(refusal) = &self.refusal {
            let code = DiagnosticCode::InstallFailed;
            let why = refusal.to_string();
            let refused = FeatureDiagnostic::quoting(code, feature, &why, &self.host.redactor);
            return Err(vec![refused]);
        }
        let missing = self.tools.missing(feature);
        let missing = missing.chain(self.hooks.missing(feature));
        let missing = missing.chain(self.enrichers.missing(feature));
        let missing = missing.chain(self.tasks.missing(feature));
        let missing = missing.chain(self.states.missing(feature));
        let missing = missing.chain(self.services.missing(feature));
        let lacks =
            |message| FeatureDiagnostic::new(DiagnosticCode::PlannedNotStaged, feature, message);
        let missing: Vec<_> = missing.map(lacks).collect();
        if missing.is_empty() {
            Ok(self)
        } else {
            Err(missing)
        }
    }
}

/// What differs where a contribution is that of another feature.
pub(super) const FEATURE_ID: &str = "its feature id";

fn task_difference(
    planned: &BackgroundTaskDeclaration,
    staged: &BackgroundTaskDeclaration,
) -> Option<&'static str> {
    (planned != staged).then_some("its effect, triggers, restart, deadline or needs")
}
