//! The private stage of one feature: compared with its plan, then merged whole or dropped.

use super::contributions::{EnricherContribution, HookContribution, ToolContribution};
use super::probe::{RegistrarCall, RegistrarProbe, Staging};
use super::tasks::BackgroundTaskContribution;
use crate::feature::decide::plan::{PlannedFeature, PlannedHook};
use crate::feature::decide::report::ContributionKind;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::descriptor::{FeatureDescriptor, InstructionDeclaration};
use crate::feature::declare::diagnostic::{
    DiagnosticCode, FeatureDiagnostic, FeatureInstallError, MAX_NOTES,
};
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::grants::CapabilityGrantSet;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::service::{
    ServiceDeclaration, ServiceEvent, ServiceId, ServiceRequirement,
};
use crate::feature::declare::settings::Settings;
use crate::feature::declare::state::StateDeclaration;
use crate::feature::declare::task::BackgroundTaskDeclaration;
use crate::feature::declare::tool::ToolDeclaration;
use crate::feature::live::foreign::ForeignContract;
use crate::feature::live::grant::{FeatureGrants, GrantHandle, GrantObject};
use crate::feature::live::presence::Presence;
use crate::feature::live::service::{JsonService, Service, ServiceHandle, Services};
use crate::feature::live::sink::ServiceEventSink;
use crate::feature::live::task::{GrantedEvent, TaskHandle};
use crate::mailbox::requests::MailboxSender;
use authority::{Door, Redactor, Workspace};
use llm_worker::ToolDefinition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The kind of a background task in errors.
const TASK: &str = "background task";
/// The kind of an enricher in errors.
const ENRICHER: &str = "enricher";
/// The kind of a service in errors.
const SERVICE: &str = "service";

/// Most calls of one install into the host.
const MAX_CALLS: usize = 1_024;

/// A feature's private stage; refuses contributions that are not in the plan.
pub(crate) struct Stage {
    pub(crate) feature: FeatureId,
    pub(crate) grants: CapabilityGrantSet,
    /// None if the descriptor declares none.
    pub(crate) settings: Option<Settings>,
    planned: BTreeMap<String, ToolDeclaration>,
    planned_hooks: Vec<PlannedHook>,
    skipped: Vec<(ContributionKind, String)>,
    instructions: Vec<InstructionDeclaration>,
    tools: BTreeMap<String, ToolContribution>,
    hooks: BTreeMap<String, HookContribution>,
    planned_enrichers: Vec<EnricherDeclaration>,
    enrichers: BTreeMap<String, EnricherContribution>,
    planned_tasks: Vec<BackgroundTaskDeclaration>,
    tasks: BTreeMap<String, BackgroundTaskContribution>,
    planned_states: Vec<StateDeclaration>,
    states: BTreeSet<String>,
    planned_services: Vec<ServiceDeclaration>,
    services: Services,
    requires: Vec<ServiceRequirement>,
    /// The result of each requirement; without a service, the reason.
    wanted: BTreeMap<ServiceId, Result<Arc<Service>, String>>,
    holdings: FeatureGrants,
    redactor: Redactor,
    notes: Vec<FeatureDiagnostic>,
    refusal: Option<FeatureInstallError>,
    probe: Option<RegistrarProbe>,
    calls: usize,
}

/// A stage that equals its plan: merging it cannot fail.
pub(crate) struct Complete {
    pub(crate) feature: FeatureId,
    pub(crate) tools: Vec<(ToolContribution, ToolDeclaration)>,
    pub(crate) hooks: Vec<(HookContribution, PlannedHook)>,
    pub(crate) enrichers: Vec<EnricherContribution>,
    pub(crate) tasks: Vec<BackgroundTaskContribution>,
    pub(crate) instructions: Vec<InstructionDeclaration>,
    pub(crate) states: Vec<StateDeclaration>,
    pub(crate) notes: Vec<FeatureDiagnostic>,
    pub(crate) services: Vec<Arc<Service>>,
}

impl Stage {
    pub(crate) fn new(
        descriptor: &FeatureDescriptor,
        planned: &PlannedFeature,
        services: &Services,
        holdings: FeatureGrants,
        redactor: Redactor,
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
        let expected = |t: &&ToolDeclaration| planned.tools.iter().any(|p| p.name == t.name);
        let runs = |t: &&BackgroundTaskDeclaration| {
            planned.background_tasks.iter().any(|p| p.name == t.name)
        };
        Self {
            feature: descriptor.id.clone(),
            grants: planned.grants.clone(),
            settings: descriptor
                .settings
                .as_ref()
                .map(|_| planned.settings.clone()),
            planned: descriptor
                .declared_tools
                .iter()
                .filter(expected)
                .map(|t| (t.name.clone(), t.clone()))
                .collect(),
            planned_hooks: planned.hooks.clone(),
            skipped: planned
                .skipped_contributions
                .iter()
                .map(|s| (s.kind, s.name.clone()))
                .collect(),
            instructions: descriptor.instructions.clone(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            planned_enrichers: planned.enrichers.clone(),
            enrichers: BTreeMap::new(),
            planned_tasks: descriptor
                .declared_background_tasks
                .iter()
                .filter(runs)
                .cloned()
                .collect(),
            tasks: BTreeMap::new(),
            planned_states: planned.states.clone(),
            states: BTreeSet::new(),
            planned_services: planned.services.provided.clone(),
            services: Services::new(),
            requires: descriptor.requires.clone(),
            wanted,
            holdings,
            redactor,
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
        grant.ok_or_else(|| FeatureInstallError::Denied {
            feature: self.feature.clone(),
            asked: asked.to_string(),
        })
    }

    /// The message for a grant for which the host offers nothing.
    pub(crate) fn unavailable(&self, asked: String, why: &str) -> FeatureInstallError {
        FeatureInstallError::Unavailable {
            feature: self.feature.clone(),
            asked,
            why: why.to_owned(),
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
            .unwrap_or_else(|| self.hold(grant, Door::new())))
    }

    /// Records a door under its grant.
    pub(crate) fn hold(&self, capability: HostCapability, door: Arc<Door>) -> Arc<Door> {
        self.holdings.hold(GrantHandle {
            capability,
            door: Arc::clone(&door),
            about: GrantObject::Operations,
        });
        door
    }

    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(self.holdings.presence())
    }

    pub(crate) fn provide<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        id: &ServiceId,
        target: Arc<T>,
    ) -> Result<Staging, FeatureInstallError> {
        self.offer(id, |service| service.provide(target))
    }

    pub(crate) fn provide_json(
        &mut self,
        id: &ServiceId,
        target: Arc<dyn JsonService>,
    ) -> Result<Staging, FeatureInstallError> {
        self.offer(id, |service| service.provide_json(target))
    }

    /// Provides one form of a declared service.
    fn offer(
        &mut self,
        id: &ServiceId,
        provide: impl FnOnce(&Service) -> bool,
    ) -> Result<Staging, FeatureInstallError> {
        let (kind, feature) = (SERVICE, self.feature.clone());
        if self.leaves_out(ContributionKind::Service, &id.to_string()) {
            return Ok(Staging::Skipped);
        }
        if !self
            .planned_services
            .iter()
            .any(|planned| planned.service == *id)
        {
            return Err(FeatureInstallError::NotDeclared {
                kind,
                name: id.to_string(),
                feature,
            });
        }
        let service = match self.services.get(id) {
            Some(service) => Arc::clone(service),
            None => {
                let capability = self.granted(&HostCapability::ProvideService {
                    key: id.name.clone().into(),
                })?;
                let service = Arc::new(Service::new(id.clone(), feature.clone()));
                let (door, about) = (
                    Arc::clone(&service.door),
                    GrantObject::Provided(Arc::clone(&service)),
                );
                self.holdings.hold(GrantHandle {
                    capability,
                    door,
                    about,
                });
                self.services.insert(id.clone(), Arc::clone(&service));
                service
            }
        };
        match provide(&service) {
            true => Ok(Staging::Staged),
            false => Err(FeatureInstallError::StagedTwice {
                kind,
                name: id.to_string(),
                feature,
            }),
        }
    }

    pub(crate) fn require<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        id: &ServiceId,
    ) -> Result<ServiceHandle<T>, FeatureInstallError> {
        let (service, door) = self.service_door(id)?;
        let (kind, feature) = (SERVICE, self.feature.clone());
        let differs = FeatureInstallError::Differs {
            kind,
            name: id.to_string(),
            feature,
            what: "its trait",
        };
        service.handle(door, self.redactor.clone()).ok_or(differs)
    }

    pub(crate) fn require_json(
        &mut self,
        id: &ServiceId,
    ) -> Result<ServiceHandle<dyn JsonService>, FeatureInstallError> {
        let (service, door) = self.service_door(id)?;
        let why = || format!("{} does not provide it as JSON", service.provider);
        let handle = service.json_handle(door, self.redactor.clone());
        handle.ok_or_else(|| self.unavailable(format!("service {id}"), &why()))
    }

    /// The instances that were found for a requirement of each one, by name.
    pub(crate) fn each(&self, of: &ServiceId) -> Result<Vec<ServiceId>, FeatureInstallError> {
        let asked = |asked: &&ServiceRequirement| asked.each && asked.service == *of;
        if !self.requires.iter().any(|required| asked(&required)) {
            let (kind, name, feature) = (SERVICE, of.to_string(), self.feature.clone());
            return Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            });
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
        let feature = self.feature.clone();
        let Some(wanted) = self.wanted.get(id) else {
            return Err(FeatureInstallError::NotDeclared {
                kind: SERVICE,
                name: id.to_string(),
                feature,
            });
        };
        let capability = self.granted(&id.admission())?;
        let asked = format!("service {id}");
        let service = wanted
            .as_ref()
            .map_err(|why| FeatureInstallError::Unavailable {
                feature,
                asked,
                why: why.clone(),
            })?;
        let door = self.holdings.service(service).unwrap_or_else(|| {
            let (door, about) = (
                service.door.derive(),
                GrantObject::Used(Arc::clone(service)),
            );
            self.holdings.hold(GrantHandle {
                capability,
                door: Arc::clone(&door),
                about,
            });
            door
        });
        Ok((Arc::clone(service), door))
    }

    /// Creates the sink for a declared event of a service that this feature provides.
    pub(crate) fn event_sink(
        &mut self,
        event: ServiceEvent,
        mailbox: impl FnOnce(&FeatureId, &str) -> Result<MailboxSender, FeatureInstallError>,
    ) -> Result<ServiceEventSink, FeatureInstallError> {
        let feature = self.feature.clone();
        let capability = HostCapability::ProvideService {
            key: event.service.name.clone().into(),
        };
        let door = self.grant(&capability)?;
        let declares = |planned: &ServiceDeclaration| {
            planned.service == event.service && planned.events.contains(&event.event)
        };
        if !self.planned_services.iter().any(declares) {
            return Err(FeatureInstallError::NotDeclared {
                kind: SERVICE,
                name: event.to_string(),
                feature,
            });
        }
        let mailbox = mailbox(&feature, &event.to_string())?;
        Ok(ServiceEventSink {
            event,
            door,
            presence: self.presence(),
            mailbox,
        })
    }

    /// Opens a state that equals its declaration.
    pub(crate) fn state<T>(
        &mut self,
        declared: &StateDeclaration,
        load: impl FnOnce(&FeatureId, Arc<Door>, Arc<Presence>) -> Result<T, FeatureInstallError>,
    ) -> Result<T, FeatureInstallError> {
        let (kind, name, feature) = ("state", declared.name.clone(), self.feature.clone());
        let door = self.grant(&HostCapability::StateStore {
            scope: declared.scope,
        })?;
        let Some(planned) = self
            .planned_states
            .iter()
            .find(|planned| planned.name == name)
        else {
            return Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            });
        };
        if planned != declared {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "its version or scope",
            });
        }
        if !self.states.insert(name.clone()) {
            return Err(FeatureInstallError::StagedTwice {
                kind,
                name,
                feature,
            });
        }
        load(&feature, door, self.presence())
    }

    /// Takes a tool that equals its declaration. `contribution` is not called when the plan left it out.
    pub(crate) fn tool(
        &mut self,
        definition: &ToolDefinition,
        contribution: impl FnOnce() -> ToolContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = ("tool", definition.name.clone(), self.feature.clone());
        if self.leaves_out(ContributionKind::Tool, &name) {
            return Ok(Staging::Skipped);
        }
        let Some(declared) = self.planned.get(&name) else {
            return Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            });
        };
        if self.tools.contains_key(&name) {
            return Err(FeatureInstallError::StagedTwice {
                kind,
                name,
                feature,
            });
        }
        if let Some(what) = difference(declared, definition) {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what,
            });
        }
        let contribution = contribution();
        if contribution.feature_id != feature {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "its feature id",
            });
        }
        if contribution.required_capabilities != declared.needs {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "its required capabilities",
            });
        }
        if contribution.foreign != declared.foreign {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "whether its schema is foreign",
            });
        }
        let contract = declared
            .foreign
            .then(|| ForeignContract::of(declared))
            .transpose();
        let contract = contract.map_err(FeatureInstallError::failed)?.map(Arc::new);
        self.tools.insert(
            name,
            ToolContribution {
                contract,
                ..contribution
            },
        );
        Ok(Staging::Staged)
    }

    /// Takes a hook that equals its declaration.
    pub(crate) fn hook(&mut self, hook: HookContribution) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = ("hook", hook.name.clone(), self.feature.clone());
        if self.leaves_out(ContributionKind::Hook, &name) {
            return Ok(Staging::Skipped);
        }
        let Some(planned) = self
            .planned_hooks
            .iter()
            .find(|planned| planned.name == name)
        else {
            return Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            });
        };
        if self.hooks.contains_key(&name) {
            return Err(FeatureInstallError::StagedTwice {
                kind,
                name,
                feature,
            });
        }
        if let Some(what) = hook.differs(planned) {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what,
            });
        }
        if hook.feature_id != feature {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "its feature id",
            });
        }
        self.hooks.insert(name, hook);
        Ok(Staging::Staged)
    }

    /// Takes an enricher that equals its declaration.
    pub(crate) fn enricher(
        &mut self,
        enricher: EnricherContribution,
    ) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = (
            ENRICHER,
            enricher.declaration.name.clone(),
            self.feature.clone(),
        );
        if self.leaves_out(ContributionKind::Enricher, &name) {
            return Ok(Staging::Skipped);
        }
        match self
            .planned_enrichers
            .iter()
            .find(|planned| planned.name == name)
        {
            None => Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            }),
            Some(planned) if *planned != enricher.declaration => {
                Err(FeatureInstallError::Differs {
                    kind,
                    name,
                    feature,
                    what: "its tools, category or needs",
                })
            }
            Some(_) if self.enrichers.contains_key(&name) => {
                Err(FeatureInstallError::StagedTwice {
                    kind,
                    name,
                    feature,
                })
            }
            Some(_) => {
                self.enrichers.insert(name, enricher);
                Ok(Staging::Staged)
            }
        }
    }

    /// Takes a background task that equals its declaration. `project` gives the granted handle of the project's files.
    pub(crate) fn task(
        &mut self,
        mut task: BackgroundTaskContribution,
        project: impl FnOnce(&mut Self) -> Result<Workspace, FeatureInstallError>,
    ) -> Result<Staging, FeatureInstallError> {
        let (kind, name, feature) = (TASK, task.name.clone(), self.feature.clone());
        if self.leaves_out(ContributionKind::Task, &name) {
            return Ok(Staging::Skipped);
        }
        self.planned_task(&task.declaration)?;
        if self.tasks.contains_key(&name) {
            return Err(FeatureInstallError::StagedTwice {
                kind,
                name,
                feature,
            });
        }
        if task.feature_id != feature {
            return Err(FeatureInstallError::Differs {
                kind,
                name,
                feature,
                what: "its feature id",
            });
        }
        for event in task.declaration.service_events() {
            let (_, door) = self.service_door(&event.service)?;
            task.events.push(GrantedEvent {
                event: event.clone(),
                door,
            });
        }
        if task.declaration.is_on_file_change() {
            task.files = Some(project(self)?);
        }
        self.tasks.insert(name, task);
        Ok(Staging::Staged)
    }

    /// Creates the handle that requests runs of a planned background task.
    pub(crate) fn task_handle(
        &mut self,
        task: &BackgroundTaskDeclaration,
        mailbox: impl FnOnce(&FeatureId, &str) -> Result<MailboxSender, FeatureInstallError>,
    ) -> Result<TaskHandle, FeatureInstallError> {
        let asked = task.implied();
        if self.leaves_out(ContributionKind::Task, &task.name) {
            self.granted(&asked)?;
            return Err(self.unavailable(asked.to_string(), "the background task is left out"));
        }
        self.planned_task(task)?;
        if !task.is_on_request() {
            let (feature, name) = (&self.feature, &task.name);
            let why = format!("background task `{name}` of {feature} has no trigger `on_request`");
            return Err(FeatureInstallError::failed(why));
        }
        let door = self.grant(&asked)?;
        let (feature, presence) = (self.feature.clone(), self.presence());
        let mailbox = mailbox(&feature, &asked.to_string())?;
        Ok(TaskHandle {
            feature,
            task: task.name.clone(),
            door,
            presence,
            mailbox,
        })
    }

    /// Checks that a background task is planned exactly so.
    fn planned_task(&self, task: &BackgroundTaskDeclaration) -> Result<(), FeatureInstallError> {
        let (kind, name, feature) = (TASK, task.name.clone(), self.feature.clone());
        match self
            .planned_tasks
            .iter()
            .find(|planned| planned.name == name)
        {
            None => Err(FeatureInstallError::NotDeclared {
                kind,
                name,
                feature,
            }),
            Some(planned) if planned != task => {
                let what = "its effect, triggers, restart, deadline or needs";
                Err(FeatureInstallError::Differs {
                    kind,
                    name,
                    feature,
                    what,
                })
            }
            Some(_) => Ok(()),
        }
    }

    fn leaves_out(&self, kind: ContributionKind, name: &str) -> bool {
        self.skipped
            .iter()
            .any(|(skipped, other)| *skipped == kind && other == name)
    }

    pub(crate) fn instruction(
        &mut self,
        name: &str,
        text: String,
    ) -> Result<(), FeatureInstallError> {
        let Some(declared) = self.instructions.iter_mut().find(|i| i.name == name) else {
            let (name, feature) = (name.to_owned(), self.feature.clone());
            return Err(FeatureInstallError::NotDeclared {
                kind: "instruction",
                name,
                feature,
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
            &self.redactor,
        ));
        Ok(())
    }

    /// Completes the stage, or returns all differences from the plan.
    pub(crate) fn complete(self) -> Result<Complete, Vec<FeatureDiagnostic>> {
        let Self {
            feature,
            planned,
            planned_hooks,
            instructions,
            mut tools,
            mut hooks,
            notes,
            refusal,
            ..
        } = self;
        let Self {
            planned_tasks,
            mut tasks,
            planned_states,
            states,
            planned_services,
            services,
            redactor,
            ..
        } = self;
        let Self {
            planned_enrichers,
            mut enrichers,
            ..
        } = self;
        if let Some(refusal) = refusal {
            let (code, why) = (DiagnosticCode::InstallFailed, refusal.to_string());
            return Err(vec![FeatureDiagnostic::quoting(
                code, &feature, &why, &redactor,
            )]);
        }
        let (mut staged, mut missing) = (Vec::new(), Vec::new());
        let lacks =
            |message| FeatureDiagnostic::new(DiagnosticCode::PlannedNotStaged, &feature, message);
        for (name, declared) in planned {
            match tools.remove(&name) {
                Some(tool) => staged.push((tool, declared)),
                None => missing.push(lacks(format!(
                    "tool `{name}` of {feature} is declared but was not staged"
                ))),
            }
        }
        let mut staged_hooks = Vec::new();
        for planned in planned_hooks {
            match hooks.remove(&planned.name) {
                Some(hook) => staged_hooks.push((hook, planned)),
                None => {
                    missing.push(lacks(format!(
                        "hook `{}` of {feature} is declared but was not staged",
                        planned.name
                    )));
                }
            }
        }
        let mut staged_enrichers = Vec::new();
        for EnricherDeclaration { name, .. } in planned_enrichers {
            match enrichers.remove(&name) {
                Some(enricher) => staged_enrichers.push(enricher),
                None => missing.push(lacks(format!(
                    "enricher `{name}` of {feature} is declared but was not staged"
                ))),
            }
        }
        let mut staged_tasks = Vec::new();
        for BackgroundTaskDeclaration { name, .. } in planned_tasks {
            match tasks.remove(&name) {
                Some(task) => staged_tasks.push(task),
                None => {
                    missing.push(lacks(format!(
                        "background task `{name}` of {feature} is declared but was not staged"
                    )));
                }
            }
        }
        for StateDeclaration { name, .. } in planned_states
            .iter()
            .filter(|planned| !states.contains(&planned.name))
        {
            missing.push(lacks(format!(
                "state `{name}` of {feature} is declared but was not opened"
            )));
        }
        for ServiceDeclaration { service, .. } in planned_services
            .iter()
            .filter(|p| !services.contains_key(&p.service))
        {
            missing.push(lacks(format!(
                "service {service} of {feature} is declared but was not provided"
            )));
        }
        let (tools, hooks, enrichers, tasks) =
            (staged, staged_hooks, staged_enrichers, staged_tasks);
        let (states, services) = (planned_states, services.into_values().collect());
        let complete = Complete {
            feature,
            tools,
            hooks,
            enrichers,
            tasks,
            instructions,
            states,
            notes,
            services,
        };
        if missing.is_empty() {
            Ok(complete)
        } else {
            Err(missing)
        }
    }
}

fn difference(declared: &ToolDeclaration, staged: &ToolDefinition) -> Option<&'static str> {
    let pairs = [
        ("its description", declared.about == staged.description),
        ("its schema", declared.schema == staged.schema),
        ("its effect", declared.effect == staged.effect),
    ];
    pairs
        .into_iter()
        .find_map(|(what, same)| (!same).then_some(what))
}
